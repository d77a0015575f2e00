"""Each rule of the Responses dialect with a request it refuses and the nearest request it accepts."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fake_provider.dialects import DIALECTS, RefusedRequestError
from fake_provider.dialects.openai_reasoning import REDACTED, THOUGHT, seal, unseal
from fake_provider.dialects.openai_responses_rules import CONVERSATION_RULES
from fake_provider.dialects.openai_responses_shapes import ITEM_TYPES, SHAPE_RULES
from fake_provider.requests import Received
from tests.fake_provider.property_settings import QUICK

DIALECT = DIALECTS["openai_responses"]
WINDOW_TOKENS = 1_000
REPLY = "010000000000000000000001"
"""The digits of the first reply of the first lane."""


def user(content: Any = "words") -> dict[str, Any]:
    return {"role": "user", "content": content}


def said(content: Any = "words", **extra: Any) -> dict[str, Any]:
    return {"type": "message", "role": "assistant", "content": content, **extra}


def call(call_id: str = "call_1", **extra: Any) -> dict[str, Any]:
    return {"type": "function_call", "call_id": call_id, "name": "deploy", "arguments": "{}", **extra}


def result(call_id: str = "call_1", **extra: Any) -> dict[str, Any]:
    return {"type": "function_call_output", "call_id": call_id, "output": "ok", **extra}


def patch(**extra: Any) -> dict[str, Any]:
    return {"type": "custom_tool_call", "call_id": "call_1", "name": "patch", "input": "***", **extra}


def patched() -> dict[str, Any]:
    return {"type": "custom_tool_call_output", "call_id": "call_1", "output": "ok"}


def thought(index: int = 0, text: str = "hm", reply: str = REPLY, **extra: Any) -> dict[str, Any]:
    """A reasoning item as the dialect makes it, with its id."""
    suffix = f"{reply}{index:03d}a"
    return {
        "type": "reasoning",
        "id": f"rs_{suffix}",
        "summary": [{"type": "summary_text", "text": text}],
        "encrypted_content": seal(THOUGHT, "m", suffix, text),
        **extra,
    }


def request(*items: Any, **fields: Any) -> dict[str, Any]:
    return {"model": "m", "input": list(items) or [user()], **fields}


def without(value: Mapping[str, Any], *keys: str) -> dict[str, Any]:
    return {key: item for key, item in value.items() if key not in keys}


def judged(body: Any, status: int = 400) -> list[tuple[str, str, str | None, str | None]]:
    """Return the rules that speak about a request, each with its message, parameter and code."""
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    received = Received("POST", "/v1/responses", "", {}, data)
    try:
        decoded = DIALECT.decode(received)
    except RefusedRequestError as refused:
        problems = refused.problems
    else:
        problems = DIALECT.problems(decoded, WINDOW_TOKENS)
    assert all(problem.status == status for problem in problems)
    return [(problem.rule, problem.message, problem.param, problem.code) for problem in problems]


FUNCTION = {"type": "function", "name": "deploy"}
GROUP = {"type": "namespace", "name": "mcp__ship", "tools": [FUNCTION]}
MISSING, TYPE, VALUE, ENCRYPTED = (
    "missing_required_parameter",
    "invalid_type",
    "invalid_value",
    "invalid_encrypted_content",
)
CONTENT = "one of a string or array of objects"
NOTHING_TO_ANSWER = "One of \"input\" or \"previous_response_id\" or 'prompt' or 'conversation_id' must be provided."
INPUT_PARTS = (
    "'input_text', 'input_image', 'output_text', 'refusal', 'input_file', 'computer_screenshot', and 'summary_text'"
)
KINDS = f"{', '.join(repr(kind) for kind in ITEM_TYPES[:-1])}, and '{ITEM_TYPES[-1]}'"
PATTERN = "string does not match pattern. Expected a string that matches the pattern '^[a-zA-Z0-9_-]+$'."
MOVED = (
    "Unsupported parameter: 'messages'. In the Responses API, this parameter has moved to 'input'. Try again with the "
    "new parameter. See the API documentation for more information: "
    "https://platform.openai.com/docs/api-reference/responses/create."
)
UNSTORED = (
    " Items are not persisted when `store` is set to false. Try again with `store` set to true, or remove this item "
    "from your input."
)
TWICE = "Remove duplicate items from your input and try again."


def excerpted(item: Mapping[str, Any]) -> str:
    content = item["encrypted_content"]
    return (
        f"The encrypted content {content[:4]}...{content[-4:]} could not be verified. Reason: Encrypted content "
        "could not be decrypted or parsed."
    )


def filling(tokens: int, **fields: Any) -> dict[str, Any]:
    """A request whose input has exactly so many tokens."""
    return {"model": "m", "input": "x" * (tokens * 4 - 2), **fields}


CHANGED = thought(text="hm", summary=[{"type": "summary_text", "text": "changed"}])
NAMED = "msg_0100000000000000000000010"

CASES: list[tuple[str, Any, str, str | None, str | None, Any]] = [
    # rule, refused request, message, parameter, code, accepted twin
    ("json", b"{", "We could not parse the JSON body of your request. (HINT: ", None, None, request()),
    ("known-fields", request(messages=[]), MOVED, "messages", "unsupported_parameter", request()),
    ("known-fields", request(n=1), "Unknown parameter: 'n'.", "n", "unknown_parameter", request(client_metadata={})),
    (
        "field-values",
        without(request(), "model"),
        "Missing required parameter: 'model'.",
        "model",
        MISSING,
        request(),
    ),
    (
        "field-values",
        request(stream="yes"),
        "Invalid type for 'stream': expected a boolean, but got a string instead.",
        "stream",
        TYPE,
        request(stream=True),
    ),
    (
        "field-values",
        request("hi"),
        "Invalid type for 'input[0]': expected an object, but got a string instead.",
        "input[0]",
        TYPE,
        {"model": "m", "input": "hi"},
    ),
    (
        "field-values",
        request(max_output_tokens=15),
        "Invalid 'max_output_tokens': integer below minimum value. Expected a value >= 16, but got 15 instead.",
        "max_output_tokens",
        "integer_below_min_value",
        request(max_output_tokens=16),
    ),
    ("input-given", {"model": "m"}, NOTHING_TO_ANSWER, "input", MISSING, {"model": "m", "input": "hi"}),
    (
        "input-given",
        {"model": "m", "input": ""},
        "Invalid 'input': empty string. Expected a string with minimum length 1, but got an empty string instead.",
        "input",
        "empty_string",
        {"model": "m", "input": " "},
    ),
    (
        "item-types",
        request({"content": "x"}),
        "Missing required parameter: 'input[0].type'.",
        "input[0].type",
        MISSING,
        request(user("x")),
    ),
    (
        "item-types",
        request({"type": "text"}),
        f"Invalid value: 'text'. Supported values are: {KINDS}.",
        "input[0]",
        VALUE,
        request({"type": "web_search_call", "id": "ws_1"}),
    ),
    (
        "item-fields",
        request(user(), without(call(), "call_id")),
        "Missing required parameter: 'input[1].call_id'.",
        "input[1].call_id",
        MISSING,
        request(user(), call(), result()),
    ),
    (
        "item-fields",
        request(user(), call(arguments={}), result()),
        "Invalid type for 'input[1].arguments': expected a string, but got an object instead.",
        "input[1].arguments",
        TYPE,
        request(user(), call(arguments="not JSON"), result()),
    ),
    (
        "item-fields",
        request(user(), without(thought(), "summary"), said()),
        "Missing required parameter: 'input[1].summary'.",
        "input[1].summary",
        MISSING,
        request(user(), thought(), said()),
    ),
    (
        "item-fields",
        request(user(7)),
        f"Invalid type for 'input[0].content': expected {CONTENT}, but got an integer instead.",
        "input[0].content",
        TYPE,
        request(user([{"type": "input_text", "text": "7"}])),
    ),
    (
        "item-fields",
        request(user(["x"])),
        "Invalid type for 'input[0].content[0]': expected an object, but got a string instead.",
        "input[0].content[0]",
        TYPE,
        request(user([{"type": "input_text", "text": "x"}])),
    ),
    (
        "item-ids",
        request(user(), call(id="call_1"), result()),
        "Invalid 'input[1].id': 'call_1'. Expected an ID that begins with 'fc'.",
        "input[1].id",
        VALUE,
        request(user(), call(id="fc_1"), result()),
    ),
    (
        "reasoning-status",
        request(user(), thought(status=None), said()),
        "Unknown parameter: 'input[1].status'.",
        "input[1].status",
        "unknown_parameter",
        request(user(), thought(status="completed"), said()),
    ),
    (
        "roles",
        request({"role": "tool", "content": "x"}),
        "Invalid value: 'tool'. Supported values are: 'assistant', 'system', 'developer', and 'user'.",
        "input[0].role",
        VALUE,
        request({"role": "developer", "content": "x"}),
    ),
    (
        "parts",
        request(user(), said([{"type": "input_text", "text": "x"}])),
        "Invalid value: 'input_text'. Supported values are: 'output_text' and 'refusal'.",
        "input[1].content[0].type",
        VALUE,
        request(user(), said([{"type": "output_text", "text": "x"}])),
    ),
    (
        "parts",
        request(user([{"type": "text", "text": "x"}])),
        f"Invalid value: 'text'. Supported values are: {INPUT_PARTS}.",
        "input[0].content[0].type",
        VALUE,
        request(user([{"type": "input_image", "image_url": "data:"}])),
    ),
    (
        "parts",
        request(user([{"text": "x"}])),
        "Missing required parameter: 'input[0].content[0].type'.",
        "input[0].content[0].type",
        MISSING,
        request(user([{"type": "input_text", "text": "x"}])),
    ),
    (
        "parts",
        request(user([{"type": "input_text"}])),
        "Missing required parameter: 'input[0].content[0].text'.",
        "input[0].content[0].text",
        MISSING,
        request(user([{"type": "input_text", "text": ""}])),
    ),
    (
        "parts",
        request(user(), said([{"type": "refusal"}])),
        "Missing required parameter: 'input[1].content[0].refusal'.",
        "input[1].content[0].refusal",
        MISSING,
        request(user(), said([{"type": "refusal", "refusal": "No."}])),
    ),
    (
        "call-shape",
        request(user(), call("c" * 65), result("c")),
        (
            "Invalid 'input[1].call_id': string too long. Expected a string with maximum length 64, but got a string "
            "with length 65 instead."
        ),
        "input[1].call_id",
        "string_above_max_length",
        request(user(), call("c" * 64), result("c" * 64)),
    ),
    (
        "call-shape",
        request(user(), call(name="mcp.deploy"), result()),
        f"Invalid 'input[1].name': {PATTERN}",
        "input[1].name",
        VALUE,
        request(user(), call(name="mcp-deploy"), result()),
    ),
    (
        "tools-shape",
        request(tools=[{}]),
        "Missing required parameter: 'tools[0].type'.",
        "tools[0].type",
        MISSING,
        request(tools=[{"type": "web_search"}]),
    ),
    (
        "tools-shape",
        request(tools=[{"type": [], "name": "deploy"}]),
        "Invalid type for 'tools[0].type': expected a string, but got an array instead.",
        "tools[0].type",
        TYPE,
        request(tools=[FUNCTION]),
    ),
    (
        "tools-shape",
        request(tools=[{"type": "function", "function": {"name": "deploy"}}]),
        "Missing required parameter: 'tools[0].name'.",
        "tools[0].name",
        MISSING,
        request(tools=[FUNCTION]),
    ),
    (
        "tools-shape",
        request(tools=[{"type": "function", "name": 7}]),
        "Invalid type for 'tools[0].name': expected a string, but got an integer instead.",
        "tools[0].name",
        TYPE,
        request(tools=[FUNCTION]),
    ),
    (
        "tools-shape",
        request(tools=[{"type": "namespace", "name": "mcp__ship"}]),
        "Missing required parameter: 'tools[0].tools'.",
        "tools[0].tools",
        MISSING,
        request(tools=[GROUP]),
    ),
    (
        "tools-shape",
        request(tools=[{**GROUP, "tools": [{"type": "function"}]}]),
        "Missing required parameter: 'tools[0].tools[0].name'.",
        "tools[0].tools[0].name",
        MISSING,
        request(tools=[GROUP]),
    ),
    (
        "tool-choice",
        request(tool_choice="required"),
        "Tool choice 'required' must be specified with 'tools' parameter.",
        "tool_choice",
        None,
        request(tool_choice="required", tools=[FUNCTION]),
    ),
    (
        "tool-choice",
        request(tool_choice={"type": "function", "name": "other"}, tools=[FUNCTION]),
        "Tool choice 'function' not found in 'tools' parameter.",
        "tool_choice",
        None,
        request(tool_choice={"type": "function", "name": "deploy"}, tools=[FUNCTION]),
    ),
    (
        "previous-response",
        request(previous_response_id="resp_unknown"),
        "Previous response with id 'resp_unknown' not found.",
        "previous_response_id",
        "previous_response_not_found",
        request(result(), previous_response_id=f"resp_{REPLY}"),
    ),
    (
        "items-once",
        request(user(), said(id="msg_1"), said(id="msg_1")),
        f"Duplicate item found with id msg_1. {TWICE}",
        "input",
        None,
        request(user(), said(id="msg_1"), said(id="msg_2")),
    ),
    (
        "calls-once",
        request(user(), call(), call(), result()),
        f"Duplicate item found with call_id call_1. {TWICE}",
        "input",
        None,
        request(user(), call(), call("call_2"), result(), result("call_2")),
    ),
    (
        "calls-once",
        request(user(), call(), result(), result()),
        f"Duplicate item found with call_id call_1. {TWICE}",
        "input",
        None,
        request(user(), call(), result()),
    ),
    (
        "outputs-asked",
        request(user(), result()),
        "No tool call found for function call output with call_id call_1.",
        "input",
        None,
        request({"id": f"fc_{REPLY}000a"}, result()),
    ),
    (
        "outputs-asked",
        request(user(), result(), call()),
        "No tool call found for function call output with call_id call_1.",
        "input",
        None,
        request(user(), call(), said(), result()),
    ),
    (
        "calls-answered",
        request(user(), call(), call("call_2"), result("call_2")),
        "No tool output found for function call call_1.",
        "input",
        None,
        request(user(), call(), call("call_2"), result("call_2"), result()),
    ),
    (
        "calls-answered",
        request(user(), patch()),
        "No tool output found for custom tool call call_1.",
        "input",
        None,
        request(user(), patch(), patched()),
    ),
    (
        "reasoning-unchanged",
        request(user(), CHANGED, said()),
        excerpted(CHANGED),
        None,
        ENCRYPTED,
        request(user(), CHANGED, said(), user()),
    ),
    (
        "reasoning-unchanged",
        request(user(), without(thought(id="rs_1"), "type") | {"type": "reasoning"}, said()),
        "The encrypted content for item rs_1 could not be verified.",
        None,
        ENCRYPTED,
        request(user(), without(thought(), "id"), said()),
    ),
    (
        "reasoning-in-order",
        request(user(), thought(1), thought(0), said()),
        f"The encrypted content for item rs_{REPLY}000a could not be verified.",
        None,
        ENCRYPTED,
        request(user(), thought(0), thought(1), said()),
    ),
    (
        "reasoning-followed",
        request(user(), thought(), user()),
        f"Item 'rs_{REPLY}000a' of type 'reasoning' was provided without its required following item.",
        "input",
        None,
        request(user(), without(thought(), "id"), user()),
    ),
    (
        "reasoning-followed",
        request(user(), call(), thought(), result()),
        f"Item 'rs_{REPLY}000a' of type 'reasoning' was provided without its required following item.",
        "input",
        None,
        request(user(), thought(), call(), result()),
    ),
    (
        "reasoning-followed",
        request(user(), thought()),
        f"Item 'rs_{REPLY}000a' of type 'reasoning' was provided without its required following item.",
        "input",
        None,
        request(user(), thought(), said()),
    ),
    (
        "reasoning-kept",
        request(user(), said(id=f"msg_{REPLY}001b")),
        (
            f"Item 'msg_{REPLY}001b' of type 'message' was provided without its required 'reasoning' item: "
            f"'rs_{REPLY}000a'."
        ),
        "input",
        None,
        request(user(), thought(), said(id=f"msg_{REPLY}001b")),
    ),
    (
        "reasoning-kept",
        request(user(), thought(2), call(id=f"fc_{REPLY}001b"), result()),
        (
            f"Item 'fc_{REPLY}001b' of type 'function_call' was provided without its required 'reasoning' item: "
            f"'rs_{REPLY}000a'."
        ),
        "input",
        None,
        request(user(), call(id=f"fc_{REPLY}001b"), result(), user()),
    ),
    (
        "window",
        filling(1_001),
        "Your input exceeds the context window of this model. Please adjust your input and try again.",
        "input",
        "context_length_exceeded",
        filling(1_001, truncation="auto"),
    ),
    (
        "window",
        filling(1_000, instructions="x"),
        "Your input exceeds the context window of this model. Please adjust your input and try again.",
        "input",
        "context_length_exceeded",
        filling(1_000),
    ),
]

NOT_FOUND: list[tuple[str, Any, str, str, Any]] = [
    (
        "conversation",
        request(conversation="conv_1"),
        "Conversation with id 'conv_1' not found.",
        "conversation",
        request(conversation=None),
    ),
    (
        "conversation",
        request(conversation={"id": "conv_1"}),
        "Conversation with id 'conv_1' not found.",
        "conversation",
        request(conversation=None),
    ),
    (
        "stored-items",
        request(user(), {"type": "item_reference", "id": "msg_1"}),
        "Item with id 'msg_1' not found.",
        "input",
        request(user(), {"type": "item_reference", "id": f"msg_{REPLY}000a"}),
    ),
    (
        "stored-items",
        request(user(), {"type": "item_reference", "id": f"msg_{REPLY}000a"}, store=False),
        f"Item with id 'msg_{REPLY}000a' not found.{UNSTORED}",
        "input",
        request(user(), {"type": "item_reference", "id": f"msg_{REPLY}000a"}, store=True),
    ),
    (
        "stored-items",
        request(user(), thought(encrypted_content=None), said(), store=False),
        f"Item with id 'rs_{REPLY}000a' not found.{UNSTORED}",
        "input",
        request(user(), thought(encrypted_content=None), said()),
    ),
]


@pytest.mark.parametrize(("rule", "refused", "message", "param", "code", "accepted"), CASES)
def test_each_rule_refuses_its_case_and_accepts_the_nearest_one(
    rule: str, refused: Any, message: str, param: str | None, code: str | None, accepted: Any
) -> None:
    found = judged(refused)
    assert [(name, place, word) for name, _, place, word in found] == [(rule, param, code)]
    assert found[0][1] == message or (rule == "json" and found[0][1].startswith(message))
    assert judged(accepted) == []


@pytest.mark.parametrize(("rule", "refused", "message", "param", "accepted"), NOT_FOUND)
def test_what_is_not_stored_is_not_found(rule: str, refused: Any, message: str, param: str, accepted: Any) -> None:
    assert judged(refused, 404) == [(rule, message, param, None)]
    assert judged(accepted) == []


def test_every_rule_has_a_case() -> None:
    assert {case[0] for case in (*CASES, *NOT_FOUND)} - {"json"} == {*SHAPE_RULES, *CONVERSATION_RULES}


def test_what_a_model_thought_in_another_lane_is_in_no_order() -> None:
    other = "020000000000000000000001"
    turn = [user(), thought(reply=other), call(), result(), thought(), said()]
    assert judged(request(*turn)) == []


TEXTS = st.text(max_size=20)


@QUICK
@given(st.sampled_from([THOUGHT, REDACTED]), TEXTS, st.from_regex(r"\w{0,30}", fullmatch=True), TEXTS, TEXTS)
def test_a_seal_covers_its_own_text_only(kind: str, model: str, suffix: str, text: str, other: str) -> None:
    content = seal(kind, model, suffix.encode("ascii", "ignore").decode(), text)
    sealed = unseal(content)
    assert sealed is not None
    summary = text if kind == THOUGHT else ""
    assert sealed.covers(summary)
    assert sealed.is_of(model)
    assert sealed.is_of(other) == (other == model)
    assert sealed.covers(other) == (other == summary)
    for place in range(0, len(content), 7):
        changed = content[:place] + ("A" if content[place] != "A" else "B") + content[place + 1 :]
        damaged = unseal(changed)
        assert damaged is None or not damaged.covers(summary)


NAMES = st.sampled_from(
    ["role", "content", "type", "text", "id", "call_id", "name", "arguments", "output", "summary", "encrypted_content"]
)
WORDS = st.sampled_from(["user", "assistant", "message", "function_call", "reasoning", "input_text", "call_1", "rs_1"])
LEAVES = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | WORDS
VALUES = st.recursive(
    LEAVES, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=5), max_leaves=12
)
ITEMS = st.lists(st.dictionaries(NAMES, VALUES, max_size=6), max_size=3)
FIELDS = st.sampled_from(["model", "tools", "stream", "tool_choice", "previous_response_id", "conversation", "store"])


@QUICK
@given(st.dictionaries(FIELDS, VALUES), VALUES | ITEMS)
def test_any_request_is_decoded_or_refused(fields: dict[str, Any], items: Any) -> None:
    for body in ({"model": "m", **fields, "input": items}, {"model": "m", "input": items}):
        received = Received("POST", "/v1/responses", "", {}, json.dumps(body).encode())
        with suppress(RefusedRequestError):
            DIALECT.problems(DIALECT.decode(received), WINDOW_TOKENS)
