"""Each rule of the Gemini dialect with a request it refuses and the nearest request it accepts."""

from __future__ import annotations

import base64
import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fake_provider.dialects import DIALECTS, RefusedRequestError, Served
from fake_provider.dialects.gemini_rules import CONVERSATION_RULES, estimated_tokens, thought_signature
from fake_provider.requests import Received
from tests.fake_provider.property_settings import QUICK

DIALECT = DIALECTS["gemini"]
WINDOW_TOKENS = 1_000
OLD, NEW = "gemini-2.5-flash", "gemini-3-pro-preview"


def user(*parts: Any) -> dict[str, Any]:
    return {"role": "user", "parts": list(parts)}


def model(*parts: Any) -> dict[str, Any]:
    return {"role": "model", "parts": list(parts)}


def text(words: str = "words", **extra: Any) -> dict[str, Any]:
    return {"text": words, **extra}


def call(name: str = "deploy", **extra: Any) -> dict[str, Any]:
    return {"functionCall": {"name": name, "args": {}}, **extra}


def response(name: str = "deploy", **extra: Any) -> dict[str, Any]:
    return {"functionResponse": {"name": name, "response": {"output": "ok"}, **extra}}


def signed(part: dict[str, Any], ordinal: int = 0, thought: str = "", data: str = "") -> dict[str, Any]:
    return {**part, "thoughtSignature": thought_signature(OLD, ordinal, thought, data)}


def request(*contents: Any, **fields: Any) -> dict[str, Any]:
    return {"contents": list(contents) or [user(text())], **fields}


def declaring(*declarations: Any) -> dict[str, Any]:
    return request(tools=[{"functionDeclarations": list(declarations)}])


def judged(body: Any, asked: str = OLD) -> list[tuple[str, str]]:
    """Return the rules that speak about a request with their messages, as the provider applies them."""
    path = f"/v1beta/models/{asked}:generateContent"
    received = Received("POST", path, "", {}, body if isinstance(body, bytes) else json.dumps(body).encode())
    try:
        decoded = DIALECT.decode(received)
    except RefusedRequestError as refused:
        problems = refused.problems
    else:
        problems = DIALECT.problems(decoded, WINDOW_TOKENS)
    return [(problem.rule, problem.message) for problem in problems]


def filling(tokens: int) -> dict[str, Any]:
    """A request of exactly so many tokens."""
    empty = len(json.dumps([user(text(""))], separators=(",", ":")))
    return request(user(text("x" * (tokens * 4 - empty))))


def unknown(name: str, at: str = "") -> str:
    place = f" at '{at}'" if at else ""
    return f'Invalid JSON payload received. Unknown name "{name}"{place}: Cannot find field.'


COUNT = (
    "Please ensure that the number of function response parts is equal to the number of function call parts "
    "of the function call turn."
)
CALL_TURN = (
    "Please ensure that function call turn comes immediately after a user turn or after a function response turn."
)
RESPONSE_TURN = "Please ensure that function response turn comes immediately after a function call turn."
NAME = (
    "[FIELD_INVALID] Invalid function name. Must start with a letter or an underscore. Must be alphameric "
    "(a-z, A-Z, 0-9), underscores (_), dots (.), colons (:), or dashes (-), with a maximum length of 64."
)

CASES: list[tuple[str, Any, str, Any]] = [
    # rule, refused request, message, accepted twin
    ("json", b"{", "Invalid JSON payload received. Input data was truncated", request()),
    ("root", [], 'Invalid JSON payload received. Unknown name "": Root element must be a message.', request()),
    ("unknown-fields", request(messages=[]), unknown("messages"), request(systemInstruction=user(text()))),
    (
        "unknown-fields",
        request(user(text(), {"text": "x", "cache": 1})),
        unknown("cache", "contents[0].parts[1]"),
        request(user(text(), {"text": "x", "videoMetadata": {}})),
    ),
    (
        "unknown-fields",
        request(user(text()), model(call()), user(response(call_id="c"))),
        unknown("call_id", "contents[2].parts[0].function_response"),
        request(user(text()), model(call()), user(response(id="c"))),
    ),
    (
        "unknown-fields",
        request(generation_config={"maxTokens": 1}),
        unknown("maxTokens", "generation_config"),
        request(generation_config={"max_output_tokens": 1}),
    ),
    (
        "unknown-fields",
        declaring(
            {"name": "a", "parameters": {"type": "OBJECT", "properties": {"b": {}, "c": {"const": 1}}}},
            {"name": "d", "parameters": {"additionalProperties": False}},
        ),
        unknown("const", "tools[0].function_declarations[0].parameters.properties[1].value")
        + "\n"
        + unknown("additionalProperties", "tools[0].function_declarations[1].parameters"),
        declaring({"name": "a", "parametersJsonSchema": {"properties": {"c": {"const": 1}}}}),
    ),
    (
        "unknown-fields",
        request(systemInstruction=[user(text())]),
        (
            'Invalid JSON payload received. Unknown name "systemInstruction": '
            "Proto field is not repeating, cannot start list."
        ),
        request(system_instruction=user(text())),
    ),
    (
        "field-values",
        request(user({"text": 7})),
        "Invalid value at 'contents[0].parts[0].text' (TYPE_STRING), 7",
        request(user({"text": "7"})),
    ),
    (
        "field-values",
        request("hi"),
        ("Invalid value at 'contents[0]' (type.googleapis.com/google.ai.generativelanguage.v1beta.Content), \"hi\""),
        {"contents": {"role": "user", "parts": {"text": "hi"}}},
    ),
    (
        "field-values",
        request(user(text()), model({"functionCall": {"name": "a", "args": "{}"}}), user(response("a"))),
        (
            "Invalid value at 'contents[1].parts[0].function_call.args' "
            '(type.googleapis.com/google.protobuf.Struct), "{}"'
        ),
        request(user(text()), model({"functionCall": {"name": "a", "args": None}}), user(response("a"))),
    ),
    (
        "field-values",
        request(generationConfig={"maxOutputTokens": True}),
        "Invalid value at 'generation_config.max_output_tokens' (TYPE_INT32), true",
        request(generationConfig={"maxOutputTokens": 5}),
    ),
    (
        "field-values",
        request(user({"text": "x", "inlineData": {}})),
        ("Invalid value at 'contents[0].parts[0]' (oneof), oneof field 'data' is already set. Cannot set 'inlineData'"),
        request(user({"inlineData": {}})),
    ),
    (
        "contents-present",
        {"contents": []},
        "* GenerateContentRequest.contents: contents is not specified\n",
        request(),
    ),
    ("roles", request({"role": "assistant", "parts": [text()]}), "Please use a valid role: user, model.", request()),
    (
        "parts-present",
        request(user()),
        "* GenerateContentRequest.contents[0].parts: contents.parts must not be empty.\n",
        request({"parts": [text()]}),
    ),
    (
        "part-data",
        request(user(text(), {})),
        (
            "* GenerateContentRequest.contents[0].parts[1].data: "
            "required oneof field 'data' must have one initialized field\n"
        ),
        request(user(text(), text(""))),
    ),
    (
        "names-present",
        request(user(text()), model(call()), user(response(""))),
        "* GenerateContentRequest.contents[2].parts[0].function_response.name: Name cannot be empty.\n",
        request(user(text()), model(call()), user(response())),
    ),
    (
        "names-present",
        request(user(text()), model({"functionCall": {}}), user(response())),
        "* GenerateContentRequest.contents[1].parts[0].function_call.name: Name cannot be empty.\n",
        request(user(text()), model({"functionCall": {"name": "deploy"}}), user(response())),
    ),
    (
        "declared-names",
        declaring({"name": "a"}, {"name": "1b"}),
        f"* GenerateContentRequest.tools[0].function_declarations[1].name: {NAME}\n",
        declaring({"name": "a"}, {"name": "_b.c:d-e"}),
    ),
    (
        "declared-names",
        declaring({"name": "a" * 65}),
        f"* GenerateContentRequest.tools[0].function_declarations[0].name: {NAME}\n",
        declaring({"name": "a" * 64}),
    ),
    (
        "declared-once",
        declaring({"name": "a"}, {"name": "a"}),
        "Duplicate function declaration found: a",
        declaring({"name": "a"}, {"name": "A"}),
    ),
    (
        "call-turns",
        request(model(call()), user(response())),
        CALL_TURN,
        request(user(text()), model(call()), user(response())),
    ),
    (
        "call-turns",
        request(user(text()), model(text()), model(call()), user(response())),
        CALL_TURN,
        request(user(text()), model(text(), call()), user(response()), model(call()), user(response())),
    ),
    (
        "response-turns",
        request(user(text()), model(text()), user(response())),
        RESPONSE_TURN,
        request(user(text()), model(call()), {"role": "function", "parts": [response()]}),
    ),
    (
        "response-turns",
        request(user(response())),
        RESPONSE_TURN,
        request(user(text())),
    ),
    (
        "response-counts",
        request(user(text()), model(call("a"), call("b")), user(response("a"))),
        COUNT,
        request(user(text()), model(call("a"), call("b")), user(response("b"), response("a"), text())),
    ),
    (
        "response-counts",
        request(user(text()), model(call()), user(text())),
        COUNT,
        request(user(text()), model(text()), user(text())),
    ),
    (
        "response-counts",
        request(user(text()), model(call())),
        COUNT,
        request(user(text()), model(call()), user(response())),
    ),
    (
        "last-turn",
        request(user(text()), model(text())),
        "Please ensure that multiturn requests ends with a user role or a function response.",
        request(user(text()), model(text()), user(text())),
    ),
    (
        "last-turn",
        request(model(text())),
        "Please ensure that single turn requests end with a user role or the role field is empty.",
        request({"parts": [text()]}),
    ),
    *(
        ("signatures-issued", damaged, "Corrupted thought signature.", genuine)
        for damaged, genuine in (
            (
                request(user(text()), model(text(thoughtSignature="c2lnbmVk")), user(text())),
                request(user(text()), model(signed(text())), user(text())),
            ),
            (
                request(user(text()), model(text(thoughtSignature="not base64")), user(text())),
                request(user(text()), model(text(thoughtSignature="")), user(text())),
            ),
            (
                request(
                    user(text()),
                    model(text(thoughtSignature=thought_signature(OLD, 0, "a", "a") + "QQ==")),
                    user(text()),
                ),
                request(user(text()), model(signed(text(), data="a")), user(text())),
            ),
        )
    ),
    *(
        ("signatures-unmodified", changed, "Invalid thought signature.", genuine)
        for changed, genuine in (
            (
                request(user(text()), model(text("hm", thought=True), signed(call(), thought="Hm")), user(response())),
                request(user(text()), model(text("Hm", thought=True), signed(call(), thought="Hm")), user(response())),
            ),
            (
                request(user(text()), model(signed(text(), 1), signed(call(), 0)), user(response())),
                request(user(text()), model(signed(text(), 0), signed(call(), 1)), user(response())),
            ),
            # A client need not send thoughts back, and an older turn is not compared.
            (
                request(user(text()), model(text("h", thought=True), signed(call(), thought="Hm")), user(response())),
                request(user(text()), model(signed(call(), thought="Hm")), user(response())),
            ),
            (
                request(user(text()), model(text("h", thought=True), signed(call(), thought="Hm")), user(response())),
                request(user(text()), model(text("h", thought=True), signed(text(), thought="Hm")), user(text())),
            ),
        )
    ),
    (
        "window",
        filling(WINDOW_TOKENS + 1),
        "The input token count (1001) exceeds the maximum number of tokens allowed (1000).",
        filling(WINDOW_TOKENS),
    ),
]


@pytest.mark.parametrize(
    ("rule", "refused", "message", "accepted"),
    [pytest.param(*case, id=f"{number}-{case[0]}") for number, case in enumerate(CASES)],
)
def test_a_rule_refuses_its_case_and_accepts_the_twin(rule: str, refused: Any, message: str, accepted: Any) -> None:
    assert (rule, message) in judged(refused)
    assert judged(accepted) == []


def test_every_rule_has_a_case() -> None:
    shapes = {"json", "root", "unknown-fields", "field-values"}
    assert {case[0] for case in CASES} == {*shapes, *CONVERSATION_RULES} - {"signatures-present"}


UNSIGNED = (
    "Function call is missing a thought_signature in functionCall parts. This is required for tools to work correctly, "
    "and missing thought_signature may lead to degraded model performance. Additional data, function call "
    "`default_api:deploy` , position {position}. Please refer to "
    "https://ai.google.dev/gemini-api/docs/thought-signatures for more details."
)
TURN = [user(text()), model(call()), user(response())]
SKIP = "skip_thought_signature_validator"


@pytest.mark.parametrize(
    ("contents", "position"),
    [
        (TURN, 2),
        ([user(text()), model(call("a"), signed(call())), user(response("a"), response())], 2),
        ([user(text()), model(signed(call())), user(response()), model(call()), user(response())], 4),
        ([user(text()), model(signed(call()), call("b")), user(response(), response("b"))], None),
        ([user(text()), model(text("hm", thought=True), signed(call(), thought="hm")), user(response())], None),
        # What an older turn lacks is not missed.
        ([*TURN, model(text()), user(text())], None),
        ([user(text()), model(call(thoughtSignature=SKIP)), user(response())], None),
        (
            [user(text()), model(call(thoughtSignature=base64.b64encode(SKIP.encode()).decode())), user(response())],
            None,
        ),
    ],
)
def test_newer_models_miss_a_signature_on_the_first_call_of_a_step(contents: list[Any], position: int | None) -> None:
    found = judged(request(*contents), NEW)
    if position is None:
        assert found == []
    else:
        name = contents[1]["parts"][0]["functionCall"]["name"] if position == 2 else "deploy"
        message = UNSIGNED.format(position=position).replace("deploy", name)
        assert found == [("signatures-present", message)]
    assert judged(request(*contents), OLD) == []


def test_a_signature_is_read_in_both_alphabets_and_for_any_model() -> None:
    made = next(
        name
        for name in map(str, range(999))
        if "/" in thought_signature(name, 0, "") and "+" in thought_signature(name, 0, "")
    )
    signature = thought_signature(made, 0, "")
    for written in (signature, signature.replace("+", "-").replace("/", "_")):
        assert judged(request(user(text()), model(call(thoughtSignature=written)), user(response())), NEW) == []


def test_a_refusal_names_each_wrong_field() -> None:
    body = request(user({"txt": 1}), foo=1)
    received = Received("POST", f"/v1beta/models/{OLD}:generateContent", "", {}, json.dumps(body).encode())
    with pytest.raises(RefusedRequestError) as refused:
        DIALECT.decode(received)
    plain = DIALECT.refusal(refused.value.problems[0], Served("", "r", OLD, 0, 9))
    first, second = unknown("txt", "contents[0].parts[0]"), unknown("foo")
    assert (plain.status, json.loads(plain.body)) == (
        400,
        {
            "error": {
                "code": 400,
                "message": f"{first}\n{second}",
                "status": "INVALID_ARGUMENT",
                "details": [
                    {
                        "@type": "type.googleapis.com/google.rpc.BadRequest",
                        "fieldViolations": [
                            {"field": "contents[0].parts[0]", "description": first},
                            {"description": second},
                        ],
                    }
                ],
            }
        },
    )


def test_tokens_are_counted_by_the_documented_rule() -> None:
    body = request(user(text("é")), systemInstruction=user(text("s")), tools=[{"codeExecution": {}}])
    counted = [json.dumps(part, separators=(",", ":"), ensure_ascii=False) for part in body.values()]
    assert estimated_tokens(body) == (sum(len(part.encode()) for part in counted) + 3) // 4
    assert estimated_tokens({}) == 0


NAMES = [
    *("contents", "role", "parts", "text", "thought", "thoughtSignature", "functionCall", "function_response"),
    *("name", "args", "response", "tools", "functionDeclarations", "parameters", "properties", "items", "anyOf", "x"),
    *("systemInstruction", "generationConfig", "maxOutputTokens", "id", "a_B", "_", ""),
]
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.sampled_from(["", "user", "model", "deploy", "QQ=="]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(NAMES), inner, max_size=5),
    max_leaves=12,
)
PARTS = st.fixed_dictionaries(
    {},
    optional={
        "text": st.sampled_from(["", "hm"]),
        "thought": st.booleans(),
        "thoughtSignature": st.sampled_from(["", "QQ==", thought_signature(OLD, 0, "hm")]),
        "functionCall": st.fixed_dictionaries(
            {}, optional={"name": st.just("a"), "args": st.just({}), "id": st.just("c")}
        ),
        "functionResponse": st.fixed_dictionaries({}, optional={"name": st.just("a"), "response": VALUES}),
    },
)
CONTENTS = st.fixed_dictionaries(
    {}, optional={"role": st.sampled_from(["user", "model", "x"]), "parts": st.lists(PARTS, max_size=3)}
)


@QUICK
@given(VALUES)
def test_no_json_makes_a_rule_fail(body: Any) -> None:
    judged(body)


@QUICK
@given(st.lists(CONTENTS, max_size=4), VALUES)
def test_no_conversation_makes_a_rule_fail(contents: list[Any], tool: Any) -> None:
    judged({"contents": contents, "tools": [tool]}, NEW)
    judged({"contents": contents}, NEW)


@QUICK
@given(st.binary(max_size=40))
def test_no_bytes_make_decoding_fail(body: bytes) -> None:
    try:
        msgspec.json.decode(body)
    except msgspec.DecodeError:
        assert judged(body)[0][0] == "json"


def test_a_request_in_neutral_words() -> None:
    body = {
        "system_instruction": {"parts": [{"text": "Be"}, {"text": "brief."}]},
        "contents": [
            user(text("Look.")),
            model(text("hm", thought=True), signed(call("a"), thought="hm"), call("b"), call("a")),
            user(response("a"), response("b", id="given"), response("a"), {"inlineData": {}}),
        ],
        "tools": [{"function_declarations": [{"name": "a"}, {"name": "b"}]}, {"googleSearch": {}}],
        "generation_config": {"max_output_tokens": 7},
    }
    body["contents"][2]["parts"][2]["functionResponse"]["response"] = {"error": {"code": 1}}  # type: ignore[index]
    received = Received("POST", f"/v1beta/models/{OLD}:streamGenerateContent", "alt=sse", {}, json.dumps(body).encode())
    asked = DIALECT.decode(received)
    assert (asked.model, asked.stream, asked.max_tokens, asked.system) == (OLD, True, 7, "Be\nbrief.")
    assert (asked.tools, asked.last_user_text, asked.brings_tool_results) == (("a", "b"), "", True)
    assert list(asked.tool_calls) == ["call-1-0", "call-1-1", "call-1-2"]
    assert [(result.tool_use_id, result.is_error, result.text) for result in asked.tool_results] == [
        ("call-1-0", False, "ok"),
        ("given", False, "ok"),
        ("call-1-2", True, '{"code": 1}'),
    ]
    assert [message.role for message in asked.messages] == ["user", "assistant", "user"]
    assert asked.body == body
