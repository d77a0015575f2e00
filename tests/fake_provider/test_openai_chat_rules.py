"""Each rule of the Chat Completions dialect with a request it refuses and the nearest request it accepts."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fake_provider.dialects import DIALECTS, RefusedRequestError
from fake_provider.dialects.openai_chat_rules import CONVERSATION_RULES, SHAPE_RULES
from fake_provider.requests import Received
from tests.fake_provider.property_settings import QUICK

DIALECT = DIALECTS["openai_chat"]
WINDOW_TOKENS = 1_000


def user(content: Any = "words") -> dict[str, Any]:
    return {"role": "user", "content": content}


def call(call_id: str = "call_1", name: str = "deploy", arguments: str = "{}") -> dict[str, Any]:
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}


def assistant(*calls: Any, **extra: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": None, "tool_calls": list(calls), **extra}


def result(call_id: str = "call_1", **extra: Any) -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": call_id, "content": "ok", **extra}


def tool(**function: Any) -> dict[str, Any]:
    return {"type": "function", "function": function}


def request(*messages: Any, **fields: Any) -> dict[str, Any]:
    return {"model": "m", "messages": list(messages) or [user()], **fields}


def without(value: Mapping[str, Any], *keys: str) -> dict[str, Any]:
    return {key: item for key, item in value.items() if key not in keys}


def judged(body: Any) -> list[tuple[str, str, str | None, str | None]]:
    """Return the rules that speak about a request, each with its message, parameter and code."""
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    received = Received("POST", "/v1/chat/completions", "", {}, data)
    try:
        decoded = DIALECT.decode(received)
    except RefusedRequestError as refused:
        problems = refused.problems
    else:
        problems = DIALECT.problems(decoded, WINDOW_TOKENS)
    assert all(problem.status == 400 for problem in problems)
    return [(problem.rule, problem.message, problem.param, problem.code) for problem in problems]


def filling(tokens: int, **fields: Any) -> dict[str, Any]:
    """A request whose messages have exactly so many tokens."""
    empty = len(json.dumps([user("")], separators=(",", ":")))
    return request(user("x" * (tokens * 4 - empty)), **fields)


TOOLS = [tool(name="deploy")]
UNANSWERED = (
    "An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'. "
    "The following tool_call_ids did not have response messages: "
)
NOT_ASKED = "Invalid parameter: messages with role 'tool' must be a response to a preceeding message with 'tool_calls'."
ROLES = "'system', 'assistant', 'user', 'function', 'tool', and 'developer'"
PARTS = "'text', 'image_url', 'input_audio', 'refusal', 'audio', and 'file'"
EMPTY = "empty array. Expected an array with minimum length 1, but got an empty array instead."
NULL = "Invalid value for 'content': expected a string, got null."
PATTERN = "string does not match pattern. Expected a string that matches the pattern '^[a-zA-Z0-9_-]+$'."
CONTENT = "one of a string or array of objects"
CALL = "messages[1].tool_calls[0].function"

MISSING, TYPE, VALUE = "missing_required_parameter", "invalid_type", "invalid_value"

CASES: list[tuple[str, Any, str, str | None, str | None, Any]] = [
    # rule, refused request, message, parameter, code, accepted twin
    ("json", b"{", "We could not parse the JSON body of your request. (HINT: ", None, None, request()),
    ("json", b"[]", "Invalid type: expected an object, but got an array instead.", None, TYPE, request()),
    ("model-given", without(request(), "model"), "you must provide a model parameter", None, None, request()),
    (
        "model-given",
        request(model=7),
        "Invalid type for 'model': expected a string, but got an integer instead.",
        "model",
        TYPE,
        request(model="7"),
    ),
    (
        "known-fields",
        request(input="hi", instructions="x"),
        "Unrecognized request arguments supplied: input, instructions",
        None,
        None,
        request(enable_thinking=True),
    ),
    (
        "known-fields",
        request(system="x"),
        "Unrecognized request argument supplied: system",
        None,
        None,
        request({"role": "system", "content": "x"}, user()),
    ),
    (
        "field-values",
        without(request(), "messages"),
        "Missing required parameter: 'messages'.",
        "messages",
        MISSING,
        request(),
    ),
    (
        "field-values",
        {"model": "m", "messages": "hi"},
        "Invalid type for 'messages': expected an array of objects, but got a string instead.",
        "messages",
        TYPE,
        request(),
    ),
    (
        "field-values",
        request(user(), "hi"),
        "Invalid type for 'messages[1]': expected an object, but got a string instead.",
        "messages[1]",
        TYPE,
        request(user(), user()),
    ),
    (
        "field-values",
        request(max_tokens=True),
        "Invalid type for 'max_tokens': expected an integer, but got a boolean instead.",
        "max_tokens",
        TYPE,
        request(max_tokens=1),
    ),
    (
        "field-values",
        request(max_completion_tokens=0),
        "Invalid 'max_completion_tokens': integer below minimum value. Expected a value >= 1, but got 0 instead.",
        "max_completion_tokens",
        "integer_below_min_value",
        request(max_completion_tokens=1),
    ),
    (
        "field-values",
        request(temperature=2.5),
        "Invalid 'temperature': decimal above maximum value. Expected a value <= 2, but got 2.5 instead.",
        "temperature",
        "decimal_above_max_value",
        request(temperature=None),
    ),
    (
        "arrays-filled",
        {"model": "m", "messages": []},
        f"Invalid 'messages': {EMPTY}",
        "messages",
        "empty_array",
        request(),
    ),
    ("arrays-filled", request(tools=[]), f"Invalid 'tools': {EMPTY}", "tools", "empty_array", request(tools=TOOLS)),
    (
        "roles",
        request({"content": "x"}),
        "Missing required parameter: 'messages[0].role'.",
        "messages[0].role",
        MISSING,
        request(user()),
    ),
    (
        "roles",
        request({"role": 7, "content": "x"}),
        "Invalid type for 'messages[0].role': expected a string, but got an integer instead.",
        "messages[0].role",
        TYPE,
        request(user()),
    ),
    (
        "roles",
        request({"role": "model", "content": "x"}),
        f"Invalid value: 'model'. Supported values are: {ROLES}.",
        "messages[0].role",
        VALUE,
        request({"role": "developer", "content": "x"}),
    ),
    (
        "content",
        request({"role": "user"}),
        "Missing required parameter: 'messages[0].content'.",
        "messages[0].content",
        MISSING,
        request(user("")),
    ),
    ("content", request(user(None)), NULL, "messages.[0].content", None, request(user(""))),
    (
        "content",
        request(user(), {"role": "assistant"}),
        NULL,
        "messages.[1].content",
        None,
        request(user(), {"role": "assistant", "refusal": "No."}),
    ),
    (
        "content",
        request(user({"text": "x"})),
        f"Invalid type for 'messages[0].content': expected {CONTENT}, but got an object instead.",
        "messages[0].content",
        TYPE,
        request(user([{"type": "text", "text": "x"}])),
    ),
    (
        "content",
        request(user([])),
        f"Invalid 'messages[0].content': {EMPTY}",
        "messages[0].content",
        "empty_array",
        request(user("")),
    ),
    (
        "content",
        request(user(["x"])),
        "Invalid type for 'messages[0].content[0]': expected an object, but got a string instead.",
        "messages[0].content[0]",
        TYPE,
        request(user([{"type": "text", "text": "x"}])),
    ),
    (
        "parts",
        request(user([{"text": "x"}])),
        "Missing required parameter: 'messages[0].content[0].type'.",
        "messages[0].content[0].type",
        MISSING,
        request(user([{"type": "text", "text": "x"}])),
    ),
    (
        "parts",
        request(user([{"type": "input_text", "text": "x"}])),
        f"Invalid value: 'input_text'. Supported values are: {PARTS}.",
        "messages[0].content[0].type",
        VALUE,
        request(user([{"type": "image_url", "image_url": {"url": "data:"}}])),
    ),
    (
        "parts",
        request(user([{"type": "text"}])),
        "Missing required parameter: 'messages[0].content[0].text'.",
        "messages[0].content[0].text",
        MISSING,
        request(user([{"type": "text", "text": ""}])),
    ),
    (
        "tool-calls-shape",
        request(user(), assistant(content="x")),
        f"Invalid 'messages[1].tool_calls': {EMPTY}",
        "messages[1].tool_calls",
        "empty_array",
        request(user(), {"role": "assistant", "content": "x"}),
    ),
    (
        "tool-calls-shape",
        request(user(), {"role": "assistant", "content": "x", "tool_calls": {}}),
        "Invalid type for 'messages[1].tool_calls': expected an array of objects, but got an object instead.",
        "messages[1].tool_calls",
        TYPE,
        request(user(), {"role": "assistant", "content": "x", "tool_calls": None}),
    ),
    (
        "tool-calls-shape",
        request(user(), assistant(without(call(), "id")), result()),
        "Missing required parameter: 'messages[1].tool_calls[0].id'.",
        "messages[1].tool_calls[0].id",
        MISSING,
        request(user(), assistant(call()), result()),
    ),
    (
        "tool-calls-shape",
        request(user(), assistant({**call(), "type": "tool"}), result()),
        "Invalid value: 'tool'. Supported values are: 'function' and 'custom'.",
        "messages[1].tool_calls[0].type",
        VALUE,
        request(user(), assistant({"id": "call_1", "type": "custom", "custom": {"name": "x", "input": ""}}), result()),
    ),
    (
        "tool-calls-shape",
        request(user(), assistant(without(call(), "function")), result()),
        "Missing required parameter: 'messages[1].tool_calls[0].function'.",
        "messages[1].tool_calls[0].function",
        MISSING,
        request(user(), assistant(call()), result()),
    ),
    (
        "tool-calls-shape",
        request(user(), assistant({**call(), "function": "deploy"}), result()),
        "Invalid type for 'messages[1].tool_calls[0].function': expected an object, but got a string instead.",
        "messages[1].tool_calls[0].function",
        TYPE,
        request(user(), assistant(call()), result()),
    ),
    (
        "tool-calls-shape",
        request(user(), assistant({**call(), "function": {"name": "deploy", "arguments": {}}}), result()),
        f"Invalid type for '{CALL}.arguments': expected a string, but got an object instead.",
        f"{CALL}.arguments",
        TYPE,
        request(user(), assistant(call(arguments="not JSON")), result()),
    ),
    (
        "tool-calls-shape",
        request(user(), assistant(call(name="mcp.deploy")), result()),
        f"Invalid 'messages[1].tool_calls[0].function.name': {PATTERN}",
        "messages[1].tool_calls[0].function.name",
        VALUE,
        request(user(), assistant(call(name="mcp-deploy")), result()),
    ),
    (
        "tool-calls-shape",
        request(user(), assistant(call("c" * 65)), result("c" * 65)),
        (
            "Invalid 'messages[1].tool_calls[0].id': string too long. Expected a string with maximum length 64, but "
            "got a string with length 65 instead."
        ),
        "messages[1].tool_calls[0].id",
        "string_above_max_length",
        request(user(), assistant(call("c" * 64)), result("c" * 64)),
    ),
    (
        "tool-messages-shape",
        request(user(), assistant(call()), without(result(), "tool_call_id")),
        "Missing required parameter: 'messages[2].tool_call_id'.",
        "messages[2].tool_call_id",
        MISSING,
        request(user(), assistant(call()), result()),
    ),
    (
        "tools-shape",
        request(tools=[{"name": "deploy"}]),
        "Missing required parameter: 'tools[0].type'.",
        "tools[0].type",
        MISSING,
        request(tools=TOOLS),
    ),
    (
        "tools-shape",
        request(tools=[{"type": "web_search"}]),
        "Invalid value: 'web_search'. Supported values are: 'function' and 'custom'.",
        "tools[0].type",
        VALUE,
        request(tools=[{"type": "custom", "custom": {"name": "patch"}}]),
    ),
    (
        "tools-shape",
        request(tools=[{"type": "function", "name": "deploy"}]),
        "Missing required parameter: 'tools[0].function'.",
        "tools[0].function",
        MISSING,
        request(tools=TOOLS),
    ),
    (
        "tools-shape",
        request(tools=[{"type": "function", "function": "deploy"}]),
        "Invalid type for 'tools[0].function': expected an object, but got a string instead.",
        "tools[0].function",
        TYPE,
        request(tools=TOOLS),
    ),
    (
        "tools-shape",
        request(tools=[tool()]),
        "Missing required parameter: 'tools[0].function.name'.",
        "tools[0].function.name",
        MISSING,
        request(tools=TOOLS),
    ),
    (
        "tools-shape",
        request(tools=[tool(name=7)]),
        "Invalid type for 'tools[0].function.name': expected a string, but got an integer instead.",
        "tools[0].function.name",
        TYPE,
        request(tools=TOOLS),
    ),
    (
        "tools-shape",
        request(tools=[tool(name="")]),
        (
            "Invalid 'tools[0].function.name': empty string. Expected a string with minimum length 1, but got an empty "
            "string instead."
        ),
        "tools[0].function.name",
        "empty_string",
        request(tools=TOOLS),
    ),
    (
        "stream-options-streamed",
        request(stream_options={"include_usage": True}),
        "The 'stream_options' parameter is only allowed when 'stream' is enabled.",
        "stream_options",
        None,
        request(stream_options={"include_usage": True}, stream=True),
    ),
    (
        "tool-settings-with-tools",
        request(tool_choice="auto"),
        "Invalid value for 'tool_choice': 'tool_choice' is only allowed when 'tools' are specified.",
        "tool_choice",
        None,
        request(tool_choice="auto", tools=TOOLS),
    ),
    (
        "tool-settings-with-tools",
        request(parallel_tool_calls=False),
        "Invalid value for 'parallel_tool_calls': 'parallel_tool_calls' is only allowed when 'tools' are specified.",
        "parallel_tool_calls",
        None,
        request(parallel_tool_calls=False, tools=TOOLS),
    ),
    (
        "token-limits",
        request(max_tokens=5, max_completion_tokens=5),
        "Setting 'max_tokens' and 'max_completion_tokens' at the same time is not supported.",
        "max_tokens",
        "invalid_parameter_combination",
        request(max_tokens=5, max_completion_tokens=None),
    ),
    (
        "token-limits",
        request(max_tokens=5, model="gpt-5-mini"),
        "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.",
        "max_tokens",
        "unsupported_parameter",
        request(max_tokens=5, model="gpt-4.1"),
    ),
    (
        "call-ids-unique",
        request(user(), assistant(call(), call()), result()),
        "Invalid parameter: Duplicate value for 'id' of 'call_1', in tool_calls[0] and tool_calls[1].",
        "messages.[1].tool_calls.[1].id",
        None,
        request(user(), assistant(call()), result(), assistant(call()), result()),
    ),
    (
        "tool-messages-once",
        request(user(), assistant(call()), result(), result()),
        "Invalid parameter: Duplicate value for 'tool_call_id' of 'call_1', in messages[2] and messages[3].",
        "messages.[3].tool_call_id",
        None,
        request(user(), assistant(call(), call("call_2")), result(), result("call_2")),
    ),
    ("tool-messages-asked", request(user(), result()), NOT_ASKED, "messages.[1].role", None, request(user())),
    (
        "tool-messages-asked",
        request(user(), {"role": "assistant", "content": "x"}, result()),
        NOT_ASKED,
        "messages.[2].role",
        None,
        request(user(), assistant(call(), content="x"), result()),
    ),
    (
        "tool-messages-asked",
        request(user(), assistant(call()), result(), result("call_2")),
        "Invalid parameter: 'tool_call_id' of 'call_2' not found in 'tool_calls' of previous message.",
        "messages.[3].tool_call_id",
        None,
        request(user(), assistant(call(), call("call_2")), result("call_2"), result()),
    ),
    (
        "tool-calls-answered",
        request(user(), assistant(call())),
        f"{UNANSWERED}call_1",
        "messages",
        None,
        request(user(), assistant(call()), result()),
    ),
    (
        "tool-calls-answered",
        request(user(), assistant(call(), call("call_2"), call("call_3")), result("call_2"), user()),
        f"{UNANSWERED}call_1, call_3",
        "messages.[3].role",
        None,
        request(user(), assistant(call("call_2")), result("call_2"), user()),
    ),
    (
        "window",
        filling(1_001),
        (
            "This model's maximum context length is 1000 tokens. However, your messages resulted in 1001 tokens. "
            "Please reduce the length of the messages."
        ),
        "messages",
        "context_length_exceeded",
        filling(1_000),
    ),
    (
        "window",
        filling(990, tools=TOOLS),
        (
            "This model's maximum context length is 1000 tokens. However, your messages resulted in 1003 tokens (990 "
            "in the messages, 13 in the functions). Please reduce the length of the messages or functions."
        ),
        "messages",
        "context_length_exceeded",
        filling(986, tools=TOOLS),
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


def test_every_rule_has_a_case() -> None:
    assert {case[0] for case in CASES} - {"json"} == {*SHAPE_RULES, *CONVERSATION_RULES}


NAMES = st.sampled_from(
    ["role", "content", "type", "text", "tool_calls", "tool_call_id", "id", "function", "name", "arguments", "refusal"]
)
WORDS = st.sampled_from(["user", "assistant", "tool", "system", "function", "text", "call_1", ""]) | st.text(max_size=3)
LEAVES = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | WORDS
VALUES = st.recursive(
    LEAVES, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=4), max_leaves=12
)


@QUICK
@given(st.dictionaries(st.sampled_from(["model", "tools", "stream", "tool_choice", "max_tokens"]), VALUES), VALUES)
def test_any_request_is_decoded_or_refused(fields: dict[str, Any], messages: Any) -> None:
    judged({"model": "m", **fields, "messages": messages})
    judged({"model": "m", "messages": [messages]})


def test_a_spoken_answer_needs_no_text() -> None:
    spoken = {"role": "assistant", "content": None, "audio": {"id": "audio_1"}}
    assert judged(request(user(), spoken, user())) == []
