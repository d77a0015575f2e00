"""Which reply a request gets: lanes, matchers, identifiers, and the policy that insists."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fake_provider.document import parse_document
from fake_provider.matchers import read_matcher
from fake_provider.playback import NothingToPlay, Playback, Played
from fake_provider.replies import ErrorReply, Reply, Text, ToolUse
from fake_provider.requests import ModelRequest, canonical_arguments
from tests.fake_provider.property_settings import QUICK
from tests.fake_provider.scripts import asked, script
from tests.fake_provider.test_anthropic_rules import assistant, result, text, use, user


def played(playback: Playback, request: ModelRequest) -> Played:
    outcome = playback.play(request)
    assert isinstance(outcome, Played)
    return outcome


def call_of(outcome: Played) -> ToolUse:
    assert isinstance(outcome.answer, Reply)
    [call] = [block for block in outcome.answer.blocks if isinstance(block, ToolUse)]
    return call


def text_of(outcome: Played) -> str:
    assert isinstance(outcome.answer, Reply)
    return "".join(block.text for block in outcome.answer.blocks if isinstance(block, Text))


@pytest.mark.parametrize(
    ("match", "fitting", "other"),
    [
        ("model: asked", asked(), asked(model="other")),
        ("model: /^as/", asked(), asked(model="was")),
        ("path: /v1/messages", asked(), None),
        ("header: {X-App: cli}", asked(headers={"x-app": "cli"}), asked(headers={"x-app": "web"})),
        ("header: {x-app: /^c/}", asked(headers={"x-app": "cli"}), asked()),
        ("has_tools: true", asked(tools=[{"name": "t"}]), asked()),
        ("stream: false", asked(), asked(stream=True)),
        ("system_contains: title", asked(system=[text("Write a title")]), asked(system="none")),
        ("text_contains: deploy", asked(user(text("deploy 7"))), asked(user(text("deploy")), user(text("other")))),
        (
            "has_tool_results: true",
            asked(user(text()), assistant(use()), user(result())),
            asked(user(text()), assistant(use()), user(result()), assistant(text()), user(text())),
        ),
        ("{model: asked, stream: true}", asked(stream=True), asked(stream=False)),
    ],
)
def test_a_matcher_takes_what_fits(match: str, fitting: ModelRequest, other: ModelRequest | None) -> None:
    conditions = read_matcher(parse_document(match, "match.yaml"))
    assert all(condition.holds(fitting) for condition in conditions)
    assert other is None or not all(condition.holds(other) for condition in conditions)


def test_the_first_lane_that_matches_wins_and_the_rest_goes_to_the_default_lane() -> None:
    playback = Playback(
        script("""
            main: [{say: default}]
            big: {match: {model: /big/}, steps: [{say: first}]}
            also_big: {match: {model: big}, steps: [{say: second}]}
        """)
    )
    assert played(playback, asked(model="big")).lane == "big"
    assert played(playback, asked(model="small")).lane == "main"
    assert playback.play(asked(model="big")) == NothingToPlay("big", "the script of lane 'big' is used up (steps: 1)")


def test_a_request_that_no_lane_takes_is_said() -> None:
    playback = Playback(script("a: {match: {model: x}, steps: [{say: hi}]}"))
    assert playback.play(asked()) == NothingToPlay(None, "no lane takes it. Lanes: a")


def test_identifiers_are_fresh_in_each_lane_and_the_same_in_each_run() -> None:
    lanes = "main: [{call: a}, {call: a}, overloaded]\nside: {match: {model: s}, steps: [{call: a}]}"

    def run() -> list[tuple[str, str | None]]:
        playback = Playback(script(lanes))
        outcomes = [played(playback, asked(model=model)) for model in ("m", "s", "m")]
        assert isinstance(played(playback, asked()).answer, ErrorReply)
        return [(outcome.message_id, call_of(outcome).id) for outcome in outcomes]

    assert (
        run()
        == run()
        == [
            ("msg_010000000000000000000001", "toolu_010000000000000000000001"),
            ("msg_020000000000000000000001", "toolu_020000000000000000000001"),
            ("msg_010000000000000000000002", "toolu_010000000000000000000002"),
        ]
    )


def test_a_fresh_id_is_none_that_an_older_conversation_holds() -> None:
    old = "toolu_010000000000000000000001"
    request = asked(user(text()), assistant(use(old)), user(result(old)))
    assert call_of(played(Playback(script("main: [{call: a}]")), request)).id == "toolu_010000000000000000000002"


INSIST = "main: [{insist: {call: deploy, with: {release: 7, to: [a]}, at_most: 3}}, {say: after}]"
ARGUMENTS = {"release": 7, "to": ["a"]}


def answered(call: ToolUse, *, is_error: bool = False, name: str | None = None) -> tuple[Any, Any, Any]:
    """A conversation in which a call was answered."""
    asked_for = use(call.id or "", name or call.name, dict(call.input))
    return user(text()), assistant(asked_for), user(result(call.id or "", is_error=is_error))


def test_insist_asks_with_fresh_ids_until_it_sees_a_success() -> None:
    playback = Playback(script(INSIST))
    first = call_of(played(playback, asked()))
    second = call_of(played(playback, asked(*answered(first, is_error=True))))
    assert (first.name, first.input, second.name, second.input) == ("deploy", ARGUMENTS, "deploy", ARGUMENTS)
    assert first.id != second.id
    assert text_of(played(playback, asked(*answered(second)))) == "Done."
    assert text_of(played(playback, asked(*answered(second)))) == "after"


def test_insist_asks_again_when_the_client_lost_its_history() -> None:
    playback = Playback(script(INSIST))
    ids = [call_of(played(playback, asked())).id for _ in range(3)]
    assert len(set(ids)) == 3
    assert text_of(played(playback, asked())) == "I could not get deploy done; I asked 3 times."
    assert text_of(played(playback, asked())) == "after"


@pytest.mark.parametrize(
    ("name", "arguments", "is_error", "seen"),
    [
        ("deploy", {"to": ["a"], "release": 7.0}, False, True),
        ("deploy", {"to": ["a"], "release": 7}, True, False),
        ("deploy", {"to": ["a"], "release": 8}, False, False),
        ("deploy", {"to": ["a"], "release": True}, False, False),
        ("destroy", ARGUMENTS, False, False),
    ],
)
def test_insist_takes_an_equal_call_of_the_history(name: str, arguments: Any, is_error: bool, seen: bool) -> None:
    history = answered(ToolUse(name, arguments, "toolu_older"), is_error=is_error)
    outcome = played(Playback(script(INSIST)), asked(*history))
    assert (text_of(outcome) == "Done.") is seen


def test_insist_takes_its_own_call_by_id_whatever_the_client_calls_it() -> None:
    playback = Playback(script(INSIST))
    call = call_of(played(playback, asked()))
    assert text_of(played(playback, asked(*answered(call, name="mcp__effects__deploy")))) == "Done."


def test_insist_still_counts_when_its_last_ask_succeeded() -> None:
    playback = Playback(script("main: [{insist: {call: deploy, at_most: 1, then: Shipped.}}]"))
    call = call_of(played(playback, asked()))
    assert text_of(played(playback, asked(*answered(call)))) == "Shipped."


def test_a_fault_of_insist_strikes_its_first_ask_only() -> None:
    lanes = "main: [{insist: {call: deploy}, fault: {cut: {event: content_block_delta}}}]"
    playback = Playback(script(lanes))
    faults = [played(playback, asked()).fault for _ in range(2)]
    assert faults[0] is not None
    assert faults[1] is None


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)


@QUICK
@given(st.dictionaries(st.text(max_size=3), JSON, max_size=4))
def test_canonical_arguments_do_not_depend_on_order_or_on_a_float_without_a_fraction(arguments: dict[str, Any]) -> None:
    def rewritten(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: rewritten(value[key]) for key in reversed(value)}
        if isinstance(value, list):
            return [rewritten(item) for item in value]
        if isinstance(value, int) and not isinstance(value, bool) and abs(value) <= 2**53:
            return float(value)
        return value

    assert canonical_arguments(rewritten(arguments)) == canonical_arguments(arguments)


@QUICK
@given(JSON, JSON)
def test_canonical_arguments_differ_where_the_json_differs(first: Any, second: Any) -> None:
    same = canonical_arguments({"a": first}) == canonical_arguments({"a": second})
    if same:
        assert json.dumps({"a": first}, sort_keys=True) == json.dumps({"a": second}, sort_keys=True) or first == second
