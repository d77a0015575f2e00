"""Which reply a request gets: lanes, matchers, identifiers, and the policy that insists."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fake_provider.dialects.anthropic_messages import AnthropicMessages
from fake_provider.playback import NothingToPlay, Playback, Played, UnknownLaneError
from fake_provider.replies import ErrorReply, Reply, Text, Thinking, ToolUse
from fake_provider.requests import ModelRequest, canonical_arguments
from fake_provider.steps import HoldStep
from tests.fake_provider.property_settings import QUICK
from tests.fake_provider.scripts import asked, assistant, result, script, text, use, user


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


def test_a_repeat_plays_its_steps_again_and_a_nested_one_anew() -> None:
    playback = Playback(
        script("main: [{repeat: {times: 2, steps: [{say: a}, {repeat: {times: 2, steps: [{say: b}]}}]}}, {say: c}]")
    )
    assert [text_of(played(playback, asked())) for _ in range(7)] == ["a", "b", "b", "a", "b", "b", "c"]
    assert playback.play(asked()) == NothingToPlay("main", "the script of lane 'main' is used up (steps: 7)")


def test_a_policy_in_a_repeat_begins_anew_each_round() -> None:
    playback = Playback(script("main: [{insist: {call: deploy, at_most: 1}, forever: true}]"))
    spent = "I could not get deploy done; I asked 1 times."
    assert [text_of(played(playback, asked())) for _ in range(4)] == ["", spent, "", spent]


def test_a_forever_step_is_steady_where_nothing_can_make_it_differ() -> None:
    def steady(lanes: str) -> bool:
        return played(Playback(script(f"main: [{lanes}]")), asked()).steady

    assert steady("{say: a, forever: true}")
    assert steady("{error: overloaded, forever: true}")
    assert steady("{repeat: {forever: true, steps: [{say: a, forever: true}]}}")
    assert steady("{call: t, id: toolu_x, forever: true}")
    assert not steady("{call: t, forever: true}")
    assert not steady("{say: a}")
    assert not steady("{say: a, times: 9}")
    assert not steady("{repeat: {forever: true, steps: [{say: a}, {say: b}]}}")
    assert not steady("{say: 'a {{model}}', forever: true}")
    assert not steady("{say: a, cut: {event: text}, forever: true}")
    assert not steady("{say: a, hold: x, forever: true}")
    assert not steady("{say: a, expect_request: {model: asked}, forever: true}")
    assert not steady("{windowed: {tokens: 900, steps: [{say: a, forever: true}]}}")


def test_a_steady_answer_is_the_same_object_each_time() -> None:
    playback = Playback(script("main: [{say: a, forever: true}]"))
    first, second = played(playback, asked()), played(playback, asked())
    assert first.answer is second.answer
    assert first.message_id != second.message_id


def test_a_hold_and_an_expectation_go_with_the_answer() -> None:
    playback = Playback(script("main: [{hold: gate}, {say: a, times: 2, expect_request: {model: other}}]"))
    outcomes = [played(playback, asked()), played(playback, asked(model="other"))]
    assert [outcome.hold for outcome in outcomes] == [HoldStep("gate"), None]
    assert [[str(found) for found in outcome.mismatches] for outcome in outcomes] == [
        ["model: expected other, found asked"],
        [],
    ]


VALUES = {
    "{{last_user_text}}": "hi",
    "{{ model }} {{request_number}} {{message_count}}": "asked 1 1",
    "[{{tool_result}}]": "[]",
    "{{header.X-App}}/{{header.x-none}}": "cli/",
    "{{{{model}} and {{model}}": "{{model}} and asked",
    "a {b} }}": "a {b} }}",
}


@pytest.mark.parametrize("written", VALUES)
def test_values_of_the_request_stand_in_texts_and_arguments(written: str) -> None:
    lane = json.dumps({"main": [{"say": written, "think": written, "call": "t", "with": {"a": [written, 1]}}]})
    outcome = played(Playback(script(lane)), asked(headers={"x-app": "cli"}))
    value = VALUES[written]
    assert isinstance(outcome.answer, Reply)
    assert outcome.answer.blocks[:2] == (Thinking(value), Text(value))
    assert call_of(outcome).input == {"a": [value, 1]}


def test_values_stand_in_raw_arguments_and_errors_and_the_number_counts_the_lane() -> None:
    lanes = """
        main:
          - {call: t, arguments: '{"a": "{{request_number}}'}
          - status: {code: 400, message: 'no {{model}}', body: '{{request_number}}'}
    """
    playback = Playback(script(lanes))
    assert call_of(played(playback, asked())).arguments == '{"a": "1'
    refused = played(playback, asked()).answer
    assert isinstance(refused, ErrorReply)
    assert (refused.message, refused.body) == ("no asked", "2")


def test_the_last_result_is_a_value() -> None:
    history = user(text()), assistant(use()), user(result(content="shipped"))
    assert text_of(played(Playback(script("main: [{say: 'It said {{tool_result}}.'}]")), asked(*history))) == (
        "It said shipped."
    )


def states(playback: Playback) -> list[tuple[int, int, str | None, int]]:
    return [(state.step, state.steps, state.label, state.answered) for state in playback.state()]


def test_a_lane_can_be_looked_at_skipped_and_begun_anew() -> None:
    playback = Playback(
        script("main: [{say: a, times: 2, name: first}, overloaded]\nempty: {match: {model: x}, steps: []}")
    )
    assert states(playback) == [(1, 2, "first", 0), (1, 0, None, 0)]
    first = played(playback, asked())
    playback.skip("main")
    assert states(playback)[0] == (2, 2, "overloaded", 1)
    playback.skip("main")
    playback.skip("main")
    assert states(playback)[0] == (3, 2, None, 1)
    assert isinstance(playback.play(asked()), NothingToPlay)
    playback.reset()
    assert played(playback, asked()) == first
    with pytest.raises(UnknownLaneError, match="no lane 'mian'; did you mean 'main'"):
        playback.skip("mian")


def test_a_policy_can_be_skipped_from_inside() -> None:
    playback = Playback(script("main: [{windowed: {tokens: 900, steps: [{say: a}, {say: b}]}}, {say: c}]"))
    assert text_of(played(playback, asked())) == "a"
    playback.skip("main")
    assert text_of(played(playback, asked())) == "c"


def test_a_reply_that_the_dialect_cannot_say_uses_up_no_step(monkeypatch: pytest.MonkeyPatch) -> None:
    playback = Playback(script("main: [{say: a}]"))
    with monkeypatch.context() as context:
        context.setattr(AnthropicMessages, "unsayable", lambda self, reply: "it has no texts")
        assert playback.play(asked()) == NothingToPlay(
            "main", "step 'say' cannot be said in anthropic_messages: it has no texts"
        )
    assert text_of(played(playback, asked())) == "a"


def test_an_empty_lane_is_used_up() -> None:
    assert Playback(script("main: []")).play(asked()) == NothingToPlay(
        "main", "the script of lane 'main' is used up (steps: 0)"
    )


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
