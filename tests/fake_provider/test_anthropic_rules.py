"""Each rule of the Messages dialect with a request it refuses and the nearest request it accepts."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fake_provider.dialects import DIALECTS, RefusedRequestError
from fake_provider.dialects.anthropic_rules import (
    CONVERSATION_RULES,
    SHAPE_RULES,
    estimated_tokens,
    signature_of,
)
from fake_provider.requests import Received
from tests.fake_provider.property_settings import QUICK

DIALECT = DIALECTS["anthropic_messages"]
WINDOW_TOKENS = 1_000


def user(*content: Any) -> dict[str, Any]:
    return {"role": "user", "content": list(content)}


def assistant(*content: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": list(content)}


def text(words: str = "words") -> dict[str, Any]:
    return {"type": "text", "text": words}


def use(call_id: str = "toolu_1", name: str = "deploy", arguments: Any = None) -> dict[str, Any]:
    return {"type": "tool_use", "id": call_id, "name": name, "input": {} if arguments is None else arguments}


def result(call_id: str = "toolu_1", **extra: Any) -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": call_id, "content": "ok", **extra}


def thinking(words: str = "hm", **extra: Any) -> dict[str, Any]:
    return {"type": "thinking", "thinking": words, "signature": signature_of(words), **extra}


def request(*messages: Any, **fields: Any) -> dict[str, Any]:
    return {"model": "m", "max_tokens": 9, "messages": list(messages) or [user(text())], **fields}


def without(body: Mapping[str, Any], *keys: str) -> dict[str, Any]:
    return {key: value for key, value in body.items() if key not in keys}


def judged(body: Any) -> list[tuple[str, str]]:
    """Return the rules that speak about a request with their messages, as the provider applies them."""
    received = Received("POST", "/v1/messages", "", {}, body if isinstance(body, bytes) else json.dumps(body).encode())
    try:
        decoded = DIALECT.decode(received)
    except RefusedRequestError as refused:
        problems = refused.problems
    else:
        problems = DIALECT.problems(decoded, WINDOW_TOKENS)
    return [(problem.rule, problem.message) for problem in problems]


def nested(levels: int) -> dict[str, Any]:
    """Tool arguments so many levels deep."""
    arguments: dict[str, Any] = {}
    for _ in range(levels - 1):
        arguments = {"a": arguments}
    return arguments


def filling(tokens: int) -> dict[str, Any]:
    """A request of exactly so many tokens."""
    empty = len(json.dumps([user(text(""))], separators=(",", ":")))
    return request(user(text("x" * (tokens * 4 - empty))))


CASES: list[tuple[str, Any, str, Any]] = [
    # rule, refused request, message, accepted twin
    ("json", b"{", "The request body is not valid JSON: Input data was truncated", request()),
    (
        "json",
        request(user(text()), assistant(use(arguments=nested(196))), user(result())),
        "The request body is not valid JSON: it is nested more than 200 levels deep",
        request(user(text()), assistant(use(arguments=nested(195))), user(result())),
    ),
    ("json", b"[]", "Input should be a valid dictionary", request()),
    ("required-fields", without(request(), "model"), "model: Field required", request()),
    ("required-fields", without(request(), "messages"), "messages: Field required", request()),
    ("required-fields", without(request(), "max_tokens"), "max_tokens: Field required", request()),
    ("field-types", request(model=7), "model: Input should be a valid string", request(model="7")),
    ("field-types", request(max_tokens=True), "max_tokens: Input should be a valid integer", request(max_tokens=1)),
    ("field-types", request(stream="yes"), "stream: Input should be a valid boolean", request(stream=False)),
    ("field-types", request(tools={}), "tools: Input should be a valid list", request(tools=[])),
    ("field-types", request(system=7), "system: Input should be a valid list", request(system=[text()])),
    ("field-types", {**request(), "messages": {}}, "messages: Input should be a valid list", request()),
    (
        "max-tokens-positive",
        request(max_tokens=0),
        "max_tokens: Input should be greater than or equal to 1",
        request(max_tokens=1),
    ),
    ("message-shape", request("hi"), "messages.0: Input should be a valid dictionary", request(user(text("hi")))),
    ("message-shape", request({"content": "hi"}), "messages.0.role: Field required", request(user(text("hi")))),
    ("message-shape", request({"role": "user"}), "messages.0.content: Field required", request(user(text("hi")))),
    (
        "message-shape",
        request({"role": "user", "content": 7}),
        "messages.0.content: Input should be a valid list",
        request({"role": "user", "content": "7"}),
    ),
    (
        "roles",
        request({"role": "tool", "content": "x"}),
        "messages.0.role: Input should be 'user', 'assistant' or 'system'",
        request({"role": "user", "content": "x"}, {"role": "system", "content": "y"}),
    ),
    ("block-shape", request(user("x")), "messages.0.content.0: Input should be a valid dictionary", request()),
    ("block-shape", request(user({})), "messages.0.content.0.type: Field required", request(user({"type": "image"}))),
    ("block-shape", request(user({"type": "text"})), "messages.0.content.0.text.text: Field required", request()),
    (
        "block-shape",
        request(user(text()), assistant(use(arguments="{}")), user(result())),
        "messages.1.content.0.tool_use.input: Input should be a valid dictionary",
        request(user(text()), assistant(use(arguments={})), user(result())),
    ),
    (
        "block-shape",
        request(user(text()), assistant(without(thinking(), "signature"), text())),
        "messages.1.content.0.thinking.signature: Field required",
        request(user(text()), assistant(thinking(), text())),
    ),
    ("tool-shape", request(tools=["deploy"]), "tools.0: Input should be a valid dictionary", request(tools=[])),
    ("tool-shape", request(tools=[{}]), "tools.0.custom.name: Field required", request(tools=[{"name": "deploy"}])),
    (
        "at-least-one-message",
        {**request(), "messages": []},
        "messages: at least one message is required",
        request(),
    ),
    (
        "first-role",
        request(assistant(text()), user(text())),
        'messages: first message must use the "user" role',
        request(user(text()), assistant(text())),
    ),
    (
        "empty-content",
        request(user()),
        "messages.0: all messages must have non-empty content except for the optional final assistant message",
        request(user(text()), assistant()),
    ),
    (
        "empty-content",
        request(user(text()), {"role": "assistant", "content": ""}, user(text())),
        "messages.1: all messages must have non-empty content except for the optional final assistant message",
        request(user(text()), assistant(text()), user(text())),
    ),
    (
        "empty-text",
        request(user(text()), assistant(text(""), text()), user(text())),
        "messages.1: text content blocks must be non-empty",
        request(user(text()), assistant(text(), text()), user(text())),
    ),
    (
        "empty-text",
        request(user(text(" \n"))),
        "messages.0: text content blocks must contain non-whitespace text",
        request(user(text(" \n."))),
    ),
    (
        "block-roles",
        request(user(use())),
        "messages.0.content.0: `tool_use` blocks can only be in `assistant` messages",
        request(user(text()), assistant(use()), user(result())),
    ),
    (
        "tool-results-first",
        request(user(text()), assistant(use()), user(text(), result())),
        (
            "messages.2: Did not find 1 `tool_result` block(s) at the beginning of this message. "
            "Messages following `tool_use` blocks must begin with a matching number of `tool_result` blocks."
        ),
        request(user(text()), assistant(use()), user(result(), text())),
    ),
    (
        "tool-use-answered",
        request(user(text()), assistant(use("a"), use("b")), user(result("a"), text())),
        (
            "messages.1: `tool_use` ids were found without `tool_result` blocks immediately after: b. "
            "Each `tool_use` block must have a corresponding `tool_result` block in the next message."
        ),
        request(user(text()), assistant(use("a"), use("b")), user(result("b"), result("a"), text())),
    ),
    (
        "tool-use-answered",
        request(user(text()), assistant(use("a"))),
        (
            "messages.1: `tool_use` ids were found without `tool_result` blocks immediately after: a. "
            "Each `tool_use` block must have a corresponding `tool_result` block in the next message."
        ),
        request(user(text()), assistant(use("a")), user(result("a"))),
    ),
    (
        "tool-result-asked",
        request(user(text()), assistant(use("a")), user(result("a"), result("b"))),
        (
            "messages.2.content.1: unexpected `tool_use_id` found in `tool_result` blocks: b. "
            "Each `tool_result` block must have a corresponding `tool_use` block in the previous message."
        ),
        request(user(text()), assistant(use("a"), use("b")), user(result("a"), result("b"))),
    ),
    (
        "tool-result-asked",
        request(user(result("a"))),
        (
            "messages.0.content.0: unexpected `tool_use_id` found in `tool_result` blocks: a. "
            "Each `tool_result` block must have a corresponding `tool_use` block in the previous message."
        ),
        request(user(text()), assistant(use("a")), user(result("a"))),
    ),
    (
        "tool-use-ids-unique",
        request(user(text()), assistant(use("a")), user(result("a")), assistant(use("a")), user(result("a"))),
        "messages.3.content.0: `tool_use` ids must be unique",
        request(user(text()), assistant(use("a")), user(result("a")), assistant(use("b")), user(result("b"))),
    ),
    (
        "tool-result-once",
        request(user(text()), assistant(use("a")), user(result("a"), result("a"))),
        "messages.2.content.1: each tool_use must have a single result. Found multiple `tool_result` blocks with id: a",
        request(user(text()), assistant(use("a")), user(result("a", is_error=True))),
    ),
    (
        "tool-names",
        request(tools=[{"name": "effects.deploy"}]),
        "tools.0.custom.name: String should match pattern '^[a-zA-Z0-9_-]{1,128}$'",
        request(tools=[{"name": "mcp__effects__deploy-1"}]),
    ),
    (
        "tool-names",
        request(tools=[{"name": "d" * 129}]),
        "tools.0.custom.name: String should match pattern '^[a-zA-Z0-9_-]{1,128}$'",
        request(tools=[{"name": "d" * 128}]),
    ),
    (
        "tool-names",
        request(user(text()), assistant(use(name="a b")), user(result())),
        "messages.1.content.0.tool_use.name: String should match pattern '^[a-zA-Z0-9_-]{1,128}$'",
        request(user(text()), assistant(use(name="a_b")), user(result())),
    ),
    (
        "tool-names-unique",
        request(tools=[{"name": "deploy"}, {"name": "deploy"}]),
        "tools: Tool names must be unique.",
        request(tools=[{"name": "deploy"}, {"name": "Deploy"}]),
    ),
    *(
        (
            "thinking-signed",
            request(user(text()), assistant(changed, text()), user(text())),
            "messages.1.content.0: Invalid `signature` in `thinking` block",
            request(user(text()), assistant(thinking(), text()), user(text())),
        )
        for changed in (thinking(signature=""), thinking(signature="c2lnbmVk"), {**thinking(), "thinking": "hm."})
    ),
    (
        "final-whitespace",
        request(user(text()), assistant(text("So "))),
        "messages: final assistant content cannot end with trailing whitespace",
        request(user(text()), assistant(text("So ")), user(text())),
    ),
    (
        "window",
        filling(WINDOW_TOKENS + 1),
        "prompt is too long: 1001 tokens > 1000 maximum",
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
    assert {case[0] for case in CASES} == {"json", *SHAPE_RULES, *CONVERSATION_RULES}


def test_tokens_are_counted_by_the_documented_rule() -> None:
    body = request(user(text("é")), system="s", tools=[{"name": "t"}])
    parts = [body["system"], body["tools"], body["messages"]]
    counted = [json.dumps(part, separators=(",", ":"), ensure_ascii=False) for part in parts]
    size = sum(len(part.encode()) for part in counted)
    assert estimated_tokens(body) == (size + 3) // 4
    assert estimated_tokens({"model": "m"}) == 0


JSON_VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-9, 9)
    | st.sampled_from(["", "user", "assistant", "text", "tool_use", "a"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["role", "content", "type", "text", "id", "name", "input", "tool_use_id", "thinking", "signature", "x"]
            ),
            inner,
            max_size=5,
        )
    ),
    max_leaves=12,
)


@QUICK
@given(st.dictionaries(st.sampled_from(["model", "max_tokens", "messages", "tools", "system", "stream"]), JSON_VALUES))
def test_no_json_object_makes_a_rule_fail(body: dict[str, Any]) -> None:
    judged(body)


@QUICK
@given(JSON_VALUES, JSON_VALUES)
def test_no_conversation_makes_a_rule_fail(first: Any, second: Any) -> None:
    judged(request(user(first, second), assistant(second), user(first), tools=[first]))


@QUICK
@given(st.binary(max_size=40))
def test_no_bytes_make_decoding_fail(body: bytes) -> None:
    try:
        msgspec.json.decode(body)
    except msgspec.DecodeError:
        assert judged(body)[0][0] == "json"
