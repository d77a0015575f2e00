"""Conditions of a lane, and what a step expects of its request: each holds where it should and nowhere else."""

from __future__ import annotations

from typing import Any

import pytest

from fake_provider.document import DocumentError, parse_document
from fake_provider.expectations import EXPECTATIONS, Mismatch, RequestExpectation
from fake_provider.matchers import CONDITIONS, read_matcher
from fake_provider.requests import ModelRequest
from tests.fake_provider.scripts import asked, assistant, result, text, use, user

TOOLS = [{"name": "deploy", "input_schema": {"type": "object"}}, {"name": "look", "input_schema": {"type": "object"}}]
ANSWERED = (user(text("go")), assistant(use("toolu_1", "deploy", {})), user(result("toolu_1")))

MATCHES: list[tuple[str, ModelRequest, ModelRequest]] = [
    ("model: asked", asked(), asked(model="other")),
    ("model: /^as/", asked(), asked(model="was")),
    ("path: /messages$/", asked(), asked()),
    ("header: {X-App: cli}", asked(headers={"x-app": "cli"}), asked(headers={"x-app": "web"})),
    ("header: {x-app: /^c/}", asked(headers={"x-app": "cli"}), asked()),
    ("dialect: anthropic_messages", asked(), asked()),
    ("stream: false", asked(), asked(stream=True)),
    ("has_tools: true", asked(tools=TOOLS), asked()),
    ("tool: deploy", asked(tools=TOOLS), asked(tools=TOOLS[1:])),
    ("tool: /^dep/", asked(tools=TOOLS), asked()),
    ("system: be kind", asked(system="be kind"), asked(system="be kind now")),
    ("system: /kind/", asked(system="be kind now"), asked(system="be")),
    ("system_contains: title", asked(system=[text("Write a title")]), asked(system="none")),
    ("text: hi", asked(), asked(user(text("hi there")))),
    ("text: /the/", asked(user(text("hi there"))), asked()),
    ("text_contains: deploy", asked(user(text("deploy 7"))), asked(user(text("deploy")), user(text("other")))),
    ("any_text: deploy", asked(user(text("deploy")), user(text("other"))), asked(user(text("other")))),
    ("any_text: /^dep.oy$/", asked(user(text("deploy")), user(text("other"))), asked(user(text("deploy 7")))),
    ("message_count: 1", asked(), asked(*ANSWERED)),
    ("message_count: {min: 2}", asked(*ANSWERED), asked()),
    ("message_count: {min: 1, max: 2}", asked(), asked(*ANSWERED)),
    ("has_tool_results: true", asked(*ANSWERED), asked(*ANSWERED, assistant(text()), user(text()))),
    ("{model: asked, stream: true}", asked(stream=True), asked(stream=False)),
]
ALWAYS = ("path", "dialect")
"""Every request of these tests has the same path and dialect, so those two have no request that does not fit."""


@pytest.mark.parametrize(("match", "fitting", "other"), MATCHES, ids=[match for match, _, _ in MATCHES])
def test_a_matcher_takes_what_fits(match: str, fitting: ModelRequest, other: ModelRequest) -> None:
    conditions = read_matcher(parse_document(match, "match.yaml"))
    assert all(condition.holds(fitting) for condition in conditions)
    fits_both = match.split(":", maxsplit=1)[0] in ALWAYS
    assert all(condition.holds(other) for condition in conditions) is fits_both


@pytest.mark.parametrize("match", ["path: /v2/messages", "path: /responses$/"])
def test_another_path_does_not_fit(match: str) -> None:
    [condition] = read_matcher(parse_document(match, "match.yaml"))
    assert not condition.holds(asked())


def test_every_condition_has_an_example() -> None:
    assert {key for match, _, _ in MATCHES for key in parse_document(match, "m").entries("match")} == set(CONDITIONS)


def test_a_tool_of_a_matcher_is_renamed_and_an_expression_is_not() -> None:
    exact, expression = (read_matcher(parse_document(f"tool: {name}", "m"))[0] for name in ("deploy", "/dep/"))
    assert exact.renamed(lambda name, arguments: (f"mcp__{name}", arguments)).holds(
        asked(tools=[{**TOOLS[0], "name": "mcp__deploy"}])
    )
    assert expression.renamed(lambda name, arguments: (f"mcp__{name}", arguments)) == expression


CONVERSATION = asked(
    user(text("deploy 7")),
    assistant(use("toolu_1", "deploy", {})),
    user(result("toolu_1", is_error=True)),
    assistant(use("toolu_2", "look", {})),
    user(result("toolu_2"), text("go on")),
    tools=TOOLS,
    system="be kind",
    headers={"x-app": "cli"},
)

EXPECTED: list[tuple[str, ModelRequest, str | None]] = [
    ("model: asked", CONVERSATION, None),
    ("model: /other/", CONVERSATION, "model: expected /other/, found asked"),
    ("path: /v1/messages", CONVERSATION, None),
    ("path: /v1/responses", CONVERSATION, "path: expected /v1/responses, found /v1/messages"),
    ("dialect: anthropic_messages", CONVERSATION, None),
    ("stream: false", CONVERSATION, None),
    ("stream: true", CONVERSATION, "stream: expected true, found false"),
    ("max_tokens: 64", CONVERSATION, None),
    ("max_tokens: {min: 100}", CONVERSATION, "max_tokens: expected at least 100, found 64"),
    ("messages: {max: 5}", CONVERSATION, None),
    ("messages: {min: 6, max: 7}", CONVERSATION, "messages: expected at least 6 and at most 7, found 5"),
    ("system_contains: [kind, /^be/]", CONVERSATION, None),
    ("system_contains: rude", CONVERSATION, "system: expected contains rude, found be kind"),
    ("last_user_text: go on", CONVERSATION, None),
    ("last_user_text: go", CONVERSATION, "last_user_text: expected go, found go on"),
    ("any_text_contains: deploy", CONVERSATION, None),
    ("any_text_contains: destroy", CONVERSATION, "messages: expected contains destroy, found deploy 7 / go on"),
    ("tools: [look, deploy]", CONVERSATION, None),
    ("tools: {equals: [look]}", CONVERSATION, "tools: expected exactly look, found deploy, look"),
    ("tools: {contains: [look]}", CONVERSATION, None),
    ("tools: {contains: [shout]}", CONVERSATION, "tools: expected among others shout, found deploy, look"),
    ("tools: []", asked(), None),
    ("tool_result: {id: toolu_1, is_error: true}", CONVERSATION, None),
    ("tool_result: {name: deploy, is_error: false}", CONVERSATION, "tool_result[deploy].is_error: expected false"),
    ("tool_result: [{name: look, contains: ok}, {name: deploy}]", CONVERSATION, None),
    (
        "tool_result: {name: look, contains: refused}",
        CONVERSATION,
        "tool_result[look].text: expected contains refused, found ok",
    ),
    (
        "tool_result: {name: shout}",
        CONVERSATION,
        "tool_result[shout]: expected a result, found none; results are there of: deploy, look",
    ),
    ("no_duplicate_results: true", CONVERSATION, None),
    ("header: {X-App: /^c/}", CONVERSATION, None),
    ("header: {x-app: web}", CONVERSATION, "header.x-app: expected web, found cli"),
    ("header: {x-key: a}", CONVERSATION, "header.x-key: expected a, found no such header"),
]


@pytest.mark.parametrize(("text", "request_", "difference"), EXPECTED, ids=[text for text, _, _ in EXPECTED])
def test_a_request_is_compared_with_what_is_expected(text: str, request_: ModelRequest, difference: str | None) -> None:
    found = RequestExpectation.read(parse_document(text, "expect.yaml")).mismatches(request_)
    if difference is None:
        assert found == ()
    else:
        [mismatch] = found
        assert str(mismatch).startswith(difference)


def test_every_key_has_been_seen_to_differ() -> None:
    seen = {key for text, _, difference in EXPECTED if difference for key in parse_document(text, "e").entries("e")}
    # A request in another dialect, and one with a result twice, need requests of their own.
    assert set(EXPECTATIONS) - seen == {"dialect", "no_duplicate_results"}


def changed(request: ModelRequest, **fields: Any) -> ModelRequest:
    """A request that the dialect itself would not decode to."""
    return ModelRequest(**{**{name: getattr(request, name) for name in ModelRequest.__dataclass_fields__}, **fields})


def test_another_dialect_differs() -> None:
    expectation = RequestExpectation.read(parse_document("dialect: anthropic_messages", "e"))
    [mismatch] = expectation.mismatches(changed(asked(), dialect="other"))
    assert mismatch == Mismatch("dialect", "anthropic_messages", "other")


def test_a_result_that_is_there_twice_differs() -> None:
    twice = changed(CONVERSATION, messages=(*CONVERSATION.messages, CONVERSATION.messages[2]))
    expectation = RequestExpectation.read(parse_document("no_duplicate_results: true", "e"))
    assert [str(found) for found in expectation.mismatches(twice)] == [
        "tool_results: expected one result for each call, found several for toolu_1"
    ]


def test_a_missing_limit_differs() -> None:
    expectation = RequestExpectation.read(parse_document("max_tokens: {min: 1}", "e"))
    [mismatch] = expectation.mismatches(changed(asked(), max_tokens=None))
    assert mismatch.actual == "nothing"


def test_a_long_text_is_shown_in_short() -> None:
    expectation = RequestExpectation.read(parse_document("last_user_text: hi", "e"))
    [mismatch] = expectation.mismatches(asked(user(text("x" * 900))))
    assert mismatch.actual == "x" * 200 + "… (900 characters)"


def test_tools_of_an_expectation_are_renamed() -> None:
    expectation = RequestExpectation.read(
        parse_document("{tools: [a], tool_result: [{name: a}, {id: a}], model: a}", "e")
    )
    renamed = expectation.renamed(lambda name, arguments: (f"mcp__{name}", arguments))
    assert renamed == RequestExpectation.read(
        parse_document("{tools: [mcp__a], tool_result: [{name: mcp__a}, {id: a}], model: a}", "e")
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("tool_result: {is_error: true}", "a tool_result is found by its call's 'id' or by its tool's 'name'"),
        ("tool_result: {id: a, name: b}", "a tool_result is found by its call's 'id' or by its tool's 'name'"),
        ("tools: {equals: [a], contains: [b]}", "tools has one of 'equals' and 'contains'"),
        ("model: /(/", "not a valid regular expression"),
    ],
)
def test_a_mistake_in_an_expectation_is_said(text: str, message: str) -> None:
    with pytest.raises(DocumentError, match=message.replace("(", r"\(")):
        RequestExpectation.read(parse_document(text, "expect.yaml"))
