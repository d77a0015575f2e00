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
    sealed,
    signature_of,
)
from fake_provider.dialects.signatures import SIGNATURE_CHARACTERS
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


def redacted(words: str = "gAAA", **extra: Any) -> dict[str, Any]:
    return {"type": "redacted_thinking", "data": sealed(words), **extra}


def second(block: dict[str, Any]) -> dict[str, Any]:
    """The same thinking as the second reasoning block of its reply."""
    return {**block, "signature": signature_of(block["thinking"], ordinal=1)}


def tool(name: str = "deploy", **fields: Any) -> dict[str, Any]:
    return {"name": name, "input_schema": {"type": "object"}, **fields}


def enabled(**fields: Any) -> dict[str, Any]:
    """The settings of a request that thinks by hand."""
    return {"max_tokens": 2000, "thinking": {"type": "enabled", "budget_tokens": 1024}, **fields}


TOOLSETS = [
    {"type": "mcp_toolset", "mcp_server_name": "files"},
    {"type": "browser_toolset_20260801"},
    {"type": "computer_toolset_20260801"},
]
"""Tools of the service that have no name."""

CACHED: dict[str, Any] = {"cache_control": {"type": "ephemeral"}}


def request(*messages: Any, **fields: Any) -> dict[str, Any]:
    return {"model": "m", "max_tokens": 9, "messages": list(messages) or [user(text())], **fields}


def without(body: Mapping[str, Any], *keys: str) -> dict[str, Any]:
    return {key: value for key, value in body.items() if key not in keys}


def judged(body: Any, **headers: str) -> list[tuple[str, str]]:
    """Return the rules that speak about a request with their messages, as the provider applies them."""
    received = Received(
        "POST", "/v1/messages", "", headers, body if isinstance(body, bytes) else json.dumps(body).encode()
    )
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
        "max-tokens-range",
        request(max_tokens=-1),
        "max_tokens: Input should be greater than or equal to 0",
        request(max_tokens=0),
    ),
    (
        "temperature-range",
        request(temperature="hot"),
        "temperature: Input should be a valid number",
        request(temperature=0),
    ),
    (
        "temperature-range",
        request(temperature=-0.1),
        "temperature: Input should be greater than or equal to 0",
        request(temperature=0.5),
    ),
    (
        "temperature-range",
        request(temperature=1.1),
        "temperature: Input should be less than or equal to 1",
        request(temperature=1.0),
    ),
    (
        "message-extras",
        request({"role": "user", "content": "x", "name": "y"}),
        "messages.0.name: Extra inputs are not permitted",
        request({"role": "user", "content": "x"}, {"role": "system", "content": "y", "clear_at": "never"}),
    ),
    (
        "empty-system-text",
        request(system=[text("")]),
        "system: text content blocks must be non-empty",
        request(system=[text()]),
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
    ("tool-shape", request(tools=[{}]), "tools.0.custom.name: Field required", request(tools=[tool()])),
    ("tool-shape", request(tools=[{"type": "custom"}]), "tools.0.custom.name: Field required", request(tools=TOOLSETS)),
    (
        "tool-shape",
        request(tools=[{"type": "bash_20250124", "name": 7}]),
        "tools.0.bash_20250124.name: Input should be a valid string",
        request(tools=[{"type": "bash_20250124", "name": "bash"}]),
    ),
    (
        "tool-choice-offered",
        request(tools=[tool()], tool_choice={"type": "tool", "name": "search"}),
        "Tool 'search' not found in provided tools",
        request(tools=[tool(), *TOOLSETS], tool_choice={"type": "tool", "name": "search"}),
    ),
    (
        "tool-use-ids",
        request(user(text()), assistant(use("call:1")), user(result("call:1"))),
        "messages.1.content.0.tool_use.id: String should match pattern '^[a-zA-Z0-9_-]+$'",
        request(user(text()), assistant(use("call_1-a")), user(result("call_1-a"))),
    ),
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
        request(tools=[tool("effects.deploy")]),
        "tools.0.custom.name: String should match pattern '^[a-zA-Z0-9_-]{1,128}$'",
        request(tools=[tool("mcp__effects__deploy-1")]),
    ),
    (
        "tool-names",
        request(tools=[tool("d" * 129)]),
        "tools.0.custom.name: String should match pattern '^[a-zA-Z0-9_-]{1,128}$'",
        request(tools=[tool("d" * 128)]),
    ),
    (
        "tool-names",
        request(user(text()), assistant(use(name="a b")), user(result())),
        "messages.1.content.0.tool_use.name: String should match pattern '^[a-zA-Z0-9_-]{1,128}$'",
        request(user(text()), assistant(use(name="a_b")), user(result())),
    ),
    (
        "tool-names-unique",
        request(tools=[tool(), tool()]),
        "tools: Tool names must be unique.",
        request(tools=[tool(), tool("Deploy")]),
    ),
    ("extra-fields", request(temprature=1), "temprature: Extra inputs are not permitted", request(temperature=1)),
    (
        "block-extras",
        request(user(text()), assistant({**use(), "text": "x"}), user(result())),
        "messages.1.content.0.tool_use.text: Extra inputs are not permitted",
        request(user(text()), assistant({**use(), **CACHED}), user(result(**CACHED))),
    ),
    (
        "block-extras",
        request(user(text()), assistant({**thinking(), **CACHED}, text()), user(text())),
        "messages.1.content.0.thinking.cache_control: Extra inputs are not permitted",
        request(user(text()), assistant(thinking(), {**text(), **CACHED}), user({"type": "image", "x": 1})),
    ),
    (
        "block-shape",
        request(user(text()), assistant({"type": "redacted_thinking"}, text()), user(text())),
        "messages.1.content.0.redacted_thinking.data: Field required",
        request(user(text()), assistant(redacted(), text()), user(text())),
    ),
    ("thinking-shape", request(thinking=[]), "thinking: Input should be a valid dictionary", request(thinking=None)),
    (
        "thinking-shape",
        request(thinking={}),
        "thinking: Unable to extract tag using discriminator 'type'",
        request(thinking={"type": "disabled"}),
    ),
    (
        "thinking-shape",
        request(thinking={"type": "on"}),
        (
            "thinking: Input tag 'on' found using 'type' does not match any of the expected tags: "
            "'adaptive', 'between_tools', 'disabled', 'enabled'"
        ),
        request(thinking={"type": "adaptive"}),
    ),
    (
        "thinking-shape",
        request(thinking={"type": "enabled"}),
        "thinking.enabled.budget_tokens: Field required",
        request(**enabled()),
    ),
    (
        "thinking-shape",
        request(thinking={"type": "enabled", "budget_tokens": "1024"}),
        "thinking.enabled.budget_tokens: Input should be a valid integer",
        request(**enabled()),
    ),
    (
        "thinking-shape",
        request(max_tokens=2000, thinking={"type": "enabled", "budget_tokens": 1023}),
        "thinking.enabled.budget_tokens: Input should be greater than or equal to 1024",
        request(max_tokens=2000, thinking={"type": "enabled", "budget_tokens": 1024}),
    ),
    (
        "tool-choice-shape",
        request(tool_choice={"type": "all"}),
        (
            "tool_choice: Input tag 'all' found using 'type' does not match any of the expected tags: "
            "'any', 'auto', 'none', 'tool'"
        ),
        request(tool_choice={"type": "any"}, tools=[tool()]),
    ),
    (
        "tool-choice-shape",
        request(tool_choice={"type": "tool"}),
        "tool_choice.tool.name: Field required",
        request(tool_choice={"type": "tool", "name": "deploy"}, tools=[tool()]),
    ),
    (
        "tool-choice-shape",
        request(tool_choice={"type": "tool", "name": 7}),
        "tool_choice.tool.name: Input should be a valid string",
        request(tool_choice={"type": "tool", "name": "deploy"}, tools=[tool()]),
    ),
    (
        "tool-choice-offered",
        request(tool_choice={"type": "auto"}),
        "tool_choice: tool_choice may only be specified while providing tools.",
        request(tool_choice={"type": "auto"}, tools=[tool()]),
    ),
    (
        "tool-choice-offered",
        request(tool_choice={"type": "tool", "name": "Deploy"}, tools=[tool()]),
        "Tool 'Deploy' not found in provided tools",
        request(tool_choice={"type": "tool", "name": "deploy"}, tools=[tool()]),
    ),
    (
        "stop-sequences",
        request(stop_sequences=[" "]),
        "stop_sequences: each stop sequence must contain non-whitespace",
        request(stop_sequences=["END"]),
    ),
    (
        "stop-sequences",
        request(stop_sequences=[7]),
        "stop_sequences.0: Input should be a valid string",
        request(stop_sequences=["7"]),
    ),
    (
        "tool-input-schemas",
        request(tools=[{"name": "deploy"}]),
        "tools.0.custom.input_schema: Field required",
        request(tools=[{"name": "web_search", "type": "web_search_20250305"}]),
    ),
    (
        "tool-input-schemas",
        request(tools=[tool(input_schema="object")]),
        "tools.0.custom.input_schema: Input should be a valid dictionary",
        request(tools=[tool(type="custom")]),
    ),
    (
        "tool-input-schemas",
        request(tools=[tool(input_schema={})]),
        "tools.0.custom.input_schema.type: Field required",
        request(tools=[tool()]),
    ),
    (
        "tool-input-schemas",
        request(tools=[tool(input_schema={"type": "array"})]),
        "tools.0.custom.input_schema.type: Input should be 'object'",
        request(tools=[tool()]),
    ),
    (
        "cache-controls",
        request(
            user({**text(), **CACHED}),
            assistant(use()),
            user(result(content=[{**text(), **CACHED}])),
            system=[{**text(), **CACHED}],
            tools=[tool(**CACHED), tool("b", **CACHED)],
        ),
        "A maximum of 4 blocks with cache_control may be provided. Found 5.",
        request(user({**text(), **CACHED}), system=[{**text(), **CACHED}], tools=[tool(**CACHED), tool("b", **CACHED)]),
    ),
    *(
        (
            "thinking-signed",
            request(user(text()), assistant(changed, text()), user(text()), assistant(text()), user(text())),
            f"messages.1.content.0: Invalid `{field}` in `{changed['type']}` block",
            request(user(text()), assistant(genuine, text()), user(text()), assistant(text()), user(text())),
        )
        for changed, field, genuine in (
            (thinking(signature=""), "signature", thinking()),
            (thinking(signature="c2lnbmVk"), "signature", thinking()),
            (thinking(signature=signature_of("hm")[:-4] + "AAAA"), "signature", thinking()),
            # The text of an older message is not compared with what was signed.
            (thinking(signature="no base64"), "signature", {**thinking(), "thinking": "hm."}),
            (redacted(data="gAAA"), "data", redacted()),
            (redacted(data=sealed("gAAA") + "B"), "data", redacted("gAAAB")),
        )
    ),
    (
        "thinking-present",
        request(user(text()), assistant({**thinking(), "thinking": ""}, text()), user(text())),
        "messages.1.content.0.thinking: each thinking block must contain thinking",
        request(user(text()), assistant(thinking(""), text()), user(text())),
    ),
    *(
        (
            "thinking-unmodified",
            request(user(text()), assistant(*changed, text()), user(text())),
            (
                f"messages.1.content.{place}: `thinking` or `redacted_thinking` blocks in the latest assistant message "
                "cannot be modified. These blocks must remain as they were in the original response."
            ),
            request(user(text()), assistant(*genuine, text()), user(text())),
        )
        for place, changed, genuine in (
            (0, [{**thinking(), "thinking": "hm."}], [thinking()]),
            (0, [second(thinking("b")), thinking("a")], [thinking("a"), second(thinking("b"))]),
            (0, [second(thinking("b"))], [thinking("a"), redacted(data=sealed("b", ordinal=1))]),
            (1, [thinking("a"), {**thinking("c"), "signature": signature_of("c", ordinal=2)}], [thinking("a")] * 2),
        )
    ),
    (
        "thinking-first-in-message",
        request(user(text()), assistant(text(), thinking()), user(text())),
        (
            "messages.1.content.0: If an assistant message contains any thinking blocks, the first block must be "
            "`thinking` or `redacted_thinking`. Found `text`."
        ),
        request(user(text()), assistant(redacted(), second(thinking())), user(text())),
    ),
    *(
        (
            "thinking-first-in-turn",
            request(user(text()), *stripped, **enabled()),
            (
                f"messages.1.content.0.type: Expected `thinking` or `redacted_thinking`, but found "
                f"`{stripped[0]['content'][0]['type']}`. When `thinking` is enabled, a final `assistant` message must "
                "start with a thinking block (preceeding the lastmost set of `tool_use` and `tool_result` blocks). We "
                "recommend you include thinking blocks from previous turns. To avoid this requirement, disable "
                "`thinking`. Please consult our documentation at "
                "https://docs.claude.com/en/docs/build-with-claude/extended-thinking"
            ),
            request(user(text()), *genuine, **settings),
        )
        for stripped, genuine, settings in (
            ([assistant(use()), user(result())], [assistant(thinking(), use()), user(result())], enabled()),
            ([assistant(text(), use()), user(result())], [assistant(redacted(), use()), user(result())], enabled()),
            # Only the first message of a turn has to think, and only while the turn lasts.
            (
                [assistant(use("a")), user(result("a")), assistant(thinking(), use("b")), user(result("b"))],
                [assistant(thinking(), use("a")), user(result("a")), assistant(use("b")), user(result("b"))],
                enabled(),
            ),
            (
                [assistant(use()), user(result())],
                [assistant(use()), user(result()), assistant(text()), user(text())],
                enabled(),
            ),
            (
                [assistant(use()), user(result())],
                [assistant(use()), user(result())],
                {"thinking": {"type": "adaptive"}},
            ),
            ([assistant(use()), user(result())], [assistant(text()), user(text())], enabled()),
        )
    ),
    (
        "thinking-budget",
        request(**enabled(max_tokens=1024)),
        (
            "`max_tokens` must be greater than `thinking.budget_tokens`. Please consult our documentation at "
            "https://docs.claude.com/en/docs/build-with-claude/extended-thinking#max-tokens-and-context-window-size"
        ),
        request(**enabled(max_tokens=1025)),
    ),
    (
        "thinking-forced-tool",
        request(**enabled(tool_choice={"type": "any"}, tools=[tool()])),
        "Thinking may not be enabled when tool_choice forces tool use.",
        request(**enabled(tool_choice={"type": "auto"}, tools=[tool()])),
    ),
    (
        "thinking-temperature",
        request(**enabled(temperature=0)),
        (
            "`temperature` may only be set to 1 when thinking is enabled. Please consult our documentation at "
            "https://docs.claude.com/en/docs/build-with-claude/extended-thinking"
            "#important-considerations-when-using-extended-thinking"
        ),
        request(**enabled(temperature=1)),
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


@pytest.mark.parametrize("name", sorted(DIALECTS))
def test_the_ids_of_every_dialect_may_stand_in_a_call(name: str) -> None:
    made = DIALECTS[name].call_id(3, 41)
    assert judged(request(user(text()), assistant(use(made)), user(result(made)))) == []


def test_interleaved_thinking_may_exceed_the_output() -> None:
    body = request(**enabled(max_tokens=1024))
    assert [rule for rule, _ in judged(body)] == ["thinking-budget"]
    assert judged(body, **{"anthropic-beta": "other, interleaved-thinking-2025-05-14"}) == []


def test_a_block_of_another_model_is_not_refused() -> None:
    block = thinking(signature=signature_of("hm", "claude-opus-4-1"))
    assert block["signature"] != signature_of("hm")
    assert judged(request(user(text()), assistant(block, text()), user(text()))) == []


def test_two_replies_in_one_message_each_count_their_thinking_from_the_start() -> None:
    blocks = [thinking("a"), second(thinking("b")), text(), thinking("c")]
    assert judged(request(user(text()), assistant(*blocks, text()), user(text()))) == []


def test_a_signature_has_one_length_whatever_it_covers() -> None:
    assert {len(signature_of("t" * size, "m" * size, size)) for size in (0, 1, 100)} == {SIGNATURE_CHARACTERS}


def test_tokens_are_counted_by_the_documented_rule() -> None:
    body = request(user(text("é")), system="s", tools=[{"name": "t"}])
    parts = [body["system"], body["tools"], body["messages"]]
    counted = [json.dumps(part, separators=(",", ":"), ensure_ascii=False) for part in parts]
    size = sum(len(part.encode()) for part in counted)
    assert estimated_tokens(body) == (size + 3) // 4
    assert estimated_tokens({"model": "m"}) == 0


FIELDS = st.sampled_from(
    ["model", "max_tokens", "messages", "tools", "system", "stream", "thinking", "tool_choice", "stop_sequences"]
)
JSON_VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-9, 9)
    | st.sampled_from(
        ["", "user", "assistant", "text", "tool_use", "thinking", "redacted_thinking", "enabled", "tool", "a"]
    ),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                [
                    "role",
                    "content",
                    "type",
                    "text",
                    "id",
                    "name",
                    "input",
                    "tool_use_id",
                    "thinking",
                    "signature",
                    "data",
                    "x",
                ]
            ),
            inner,
            max_size=5,
        )
    ),
    max_leaves=12,
)


@QUICK
@given(st.dictionaries(FIELDS, JSON_VALUES))
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
