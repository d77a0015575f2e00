"""What each policy decides, request by request; ``insist`` is tested with the playback, which it needs ids from."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fake_provider.limits import Limits, RateLimit
from fake_provider.playback import NothingToPlay, Playback, Played
from fake_provider.policies import POLICIES
from fake_provider.policies.insist import succeeded
from fake_provider.policies.obedient import NOTHING_TO_SAY
from fake_provider.policies.quota import Bucket
from fake_provider.policies.summarise import is_compaction
from fake_provider.replies import ErrorReply, Reply, Text, ToolUse
from fake_provider.requests import ModelRequest
from tests.fake_provider.property_settings import QUICK
from tests.fake_provider.scripts import asked, assistant, result, script, text, use, user


def played(playback: Playback, request: ModelRequest, seconds: float = 0.0) -> Played:
    outcome = playback.play(request, seconds)
    assert isinstance(outcome, Played), outcome
    return outcome


def said(outcome: Played) -> str:
    """What was answered, in one line."""
    if isinstance(outcome.answer, ErrorReply):
        return str(outcome.answer.status)
    [block] = outcome.answer.blocks
    if isinstance(block, ToolUse):
        return f"{block.name} {json.dumps(block.input)}"
    assert isinstance(block, Text)
    return block.text


def test_the_register_and_the_words_agree() -> None:
    assert {word: kind.word for word, kind in POLICIES.items()} == {word: word for word in POLICIES}


# --- stubborn


def call_id(outcome: Played) -> str | None:
    assert isinstance(outcome.answer, Reply)
    [call] = outcome.answer.blocks
    assert isinstance(call, ToolUse)
    return call.id


def test_stubborn_asks_with_one_id_whatever_it_sees() -> None:
    playback = Playback(script("main: [{stubborn: {call: deploy, at_most: 3}}, {say: after}]"))
    first = call_id(played(playback, asked()))
    assert first is not None
    done = asked(user(text()), assistant(use(first)), user(result(first)))
    assert [call_id(played(playback, done)) for _ in range(2)] == [first, first]
    assert [said(played(playback, done)) for _ in range(2)] == ["Done.", "after"]


def test_stubborn_may_end_at_a_success() -> None:
    playback = Playback(script("main: [{stubborn: {call: deploy, id: toolu_own, until: success, then: Shipped.}}]"))
    assert call_id(played(playback, asked())) == "toolu_own"
    failed = asked(user(text()), assistant(use("toolu_own")), user(result("toolu_own", is_error=True)))
    assert call_id(played(playback, failed)) == "toolu_own"
    done = asked(user(text()), assistant(use("toolu_own")), user(result("toolu_own")))
    assert said(played(playback, done)) == "Shipped."


def test_a_fault_of_stubborn_strikes_its_first_ask_only() -> None:
    playback = Playback(script("main: [{stubborn: {call: deploy}, cut: {event: tool_start}}]"))
    assert [played(playback, asked()).fault is not None for _ in range(3)] == [True, False, False]


# --- obedient


@pytest.mark.parametrize(
    ("messages", "answer"),
    [
        ([user(text('call deploy {"release": 7}'))], 'deploy {"release": 7}'),
        ([user(text("say Good morning."))], "Good morning."),
        ([user(text('say no\ncall deploy {"release": 7}\n'))], 'deploy {"release": 7}'),
        ([user(text('call deploy {"release": 7}\nplease')), assistant(text("ok")), user(text("say bye"))], "bye"),
        ([user(text("Please say nothing."))], "Please say nothing."),
        ([user(text("call deploy now"))], "call deploy now"),
        ([user(text("call deploy {broken}"))], "call deploy {broken}"),
        ([user(text("call deploy [1]"))], "call deploy [1]"),
        ([user(text("call deploy {}")), assistant(use()), user(result(content="shipped"))], "shipped"),
        ([user(text("call deploy {}")), assistant(use()), user(result(), text("say seen"))], "seen"),
        ([user(text("call deploy {}")), assistant(use()), user(result(content=""))], NOTHING_TO_SAY),
        (
            [user(text("go")), assistant(use("a"), use("b")), user(result("a", content="1"), result("b", content="2"))],
            "1\n2",
        ),
    ],
)
def test_obedient_follows_the_last_instruction(messages: list[Any], answer: str) -> None:
    assert said(played(Playback(script("main: [{obedient: {}}]")), asked(*messages))) == answer


def test_obedient_goes_on_for_ever_or_as_often_as_it_is_told() -> None:
    playback = Playback(script("main: [{obedient: {at_most: 2}}, {say: after}]"))
    assert [said(played(playback, asked())) for _ in range(3)] == ["hi", "hi", "after"]


@QUICK
@given(st.text(max_size=40))
def test_obedient_answers_any_text(words: str) -> None:
    conversation = asked(user(text(words)))
    assert said(played(Playback(script("main: [{obedient: {}}]")), conversation)).strip()


# --- windowed

LONG = asked(user(text("x" * 4000)))


def test_windowed_refuses_what_is_too_long_and_uses_up_no_step_for_it() -> None:
    playback = Playback(script("main: [{windowed: {tokens: 100, steps: [{say: a}, {say: b}]}}, {say: outside}]"))
    outcomes = [played(playback, request) for request in (LONG, asked(), LONG, asked(), LONG)]
    assert [said(outcome) for outcome in outcomes] == ["400", "a", "400", "b", "outside"]
    assert [outcome.step for outcome in outcomes] == ["windowed", "say", "windowed", "say", "say"]
    assert [outcome.window_tokens for outcome in outcomes] == [100, None, 100, None, None]
    refused = outcomes[0].answer
    assert isinstance(refused, ErrorReply)
    assert refused.word == "prompt_too_long"


def test_a_window_is_exact() -> None:
    request = asked()
    tokens = request.estimated_tokens
    lanes = "main: [{{windowed: {{tokens: {}, steps: [{{say: a}}]}}}}]"
    assert said(played(Playback(script(lanes.format(tokens))), request)) == "a"
    assert said(played(Playback(script(lanes.format(tokens - 1))), request)) == "400"


# --- quota


def test_a_quota_of_requests_refills_evenly() -> None:
    playback = Playback(
        script("main: [{quota: {requests_per_minute: 2, steps: [{repeat: {forever: true, steps: [{say: a}]}}]}}]")
    )
    times = [0.0, 0.0, 1.0, 29.9, 30.0, 30.0, 1000.0, 1000.0, 1000.0]
    outcomes = [played(playback, asked(), seconds) for seconds in times]
    assert [said(outcome) for outcome in outcomes] == ["a", "a", "429", "429", "a", "429", "a", "a", "429"]
    refused = [outcome.answer.headers for outcome in outcomes if isinstance(outcome.answer, ErrorReply)]
    assert refused == [(("retry-after", seconds),) for seconds in ("29", "1", "30", "30")]
    stated = [outcome.limits.requests for outcome in outcomes if outcome.limits is not None]
    assert stated[:3] == [RateLimit(2, 1, 30.0), RateLimit(2, 0, 60.0), RateLimit(2, 0, 59.0)]
    assert stated[6] == RateLimit(2, 1, 30.0)
    assert outcomes[0].limits is not None
    assert outcomes[0].limits.tokens == Limits().tokens


def test_a_client_that_waits_as_long_as_it_is_told_is_served() -> None:
    playback = Playback(
        script("main: [{quota: {requests_per_minute: 7, tokens_per_minute: 90, steps: [{say: a, forever: true}]}}]")
    )
    seconds, refusals = 0.0, 0
    for _ in range(50):
        outcome = played(playback, asked(), seconds)
        if isinstance(outcome.answer, ErrorReply):
            refusals += 1
            seconds += float(dict(outcome.answer.headers)["retry-after"])
            assert said(played(playback, asked(), seconds)) == "a"
    assert refusals > 10


def test_a_request_that_no_minute_can_hold_is_always_refused() -> None:
    playback = Playback(script("main: [{quota: {tokens_per_minute: 100, steps: [{say: a}]}}]"))
    outcomes = [played(playback, LONG, seconds) for seconds in (0.0, 600.0)]
    assert [said(outcome) for outcome in outcomes] == ["429", "429"]
    assert isinstance(outcomes[0].answer, ErrorReply)
    assert outcomes[0].answer.headers == ()
    assert "rate limit of 100 input tokens per minute" in outcomes[0].answer.message
    assert said(played(playback, asked(), 600.0)) == "a"


@QUICK
@given(
    st.integers(1, 1000),
    st.lists(st.tuples(st.floats(0, 100), st.integers(1, 50)), max_size=20),
)
def test_a_bucket_never_gives_more_than_it_held_and_what_flowed_in(
    a_minute: int, takes: list[tuple[float, int]]
) -> None:
    bucket, now, taken = Bucket(a_minute, float(a_minute), 0.0), 0.0, 0
    for wait, cost in takes:
        now += wait
        bucket = bucket.refilled(now)
        if bucket.wait_seconds(cost) == 0:
            bucket = bucket.less(cost)
            taken += cost
        assert 0 <= bucket.level <= a_minute
    assert taken <= a_minute + now * a_minute / 60 + 1e-6


def test_a_clock_that_goes_backwards_refills_nothing() -> None:
    assert Bucket(60, 1.0, 10.0).refilled(5.0).level == 1.0


# --- summarise

TOOLS = [{"name": "t", "input_schema": {"type": "object"}}]
COMPACT = "Write a summary of our conversation so far."
WORK = (
    user(text("Ship release 7.")),
    assistant(text("I begin."), use("toolu_1", "deploy", {"release": 7})),
    user(result("toolu_1", content="accepted")),
    assistant(use("toolu_2", "read", {"file_path": "a/b.txt", "lines": 3})),
    user(result("toolu_2", content="no such file", is_error=True)),
    assistant(use("toolu_3", "refund", {})),
    user(result("toolu_3", content="the outcome is unknown")),
    assistant(use("toolu_4", "notify", {})),
)
OPEN = asked(*WORK, user(text(COMPACT)))
WHOLE = """\
Summary of the conversation so far.
The user said: Ship release 7.
Done: deploy {"release":7}: accepted
Failed: read {"file_path":"a/b.txt","lines":3}: no such file
Unknown: refund {}: the outcome is unknown
Unfinished: notify {} has no result
Files: a/b.txt
The assistant last said: I begin."""


def summary(request: ModelRequest, leave_out: str = "") -> str:
    return said(played(Playback(script(f"main: [{{summarise: {{leave_out: [{leave_out}]}}}}]")), request))


def test_a_summary_tells_the_conversation_and_not_the_request_for_it() -> None:
    assert summary(OPEN) == WHOLE


@pytest.mark.parametrize(
    ("leave_out", "missing"),
    [
        ("deploy", ["Done: deploy"]),
        ("tools", ["Done: deploy", "Failed: read", "Unknown: refund", "Unfinished: notify", "Files:"]),
        ("unfinished", ["Unfinished: notify"]),
        ("unknown", ["Unknown: refund"]),
        ("deploy, unknown", ["Done: deploy", "Unknown: refund"]),
        ("read", ["Failed: read", "Files:"]),
    ],
)
def test_a_summary_leaves_out_whole_lines(leave_out: str, missing: list[str]) -> None:
    kept = [line for line in WHOLE.splitlines() if not line.startswith(tuple(missing))]
    assert summary(OPEN, leave_out).splitlines() == kept
    assert len(kept) == len(WHOLE.splitlines()) - len(missing)


def test_a_summary_leaves_out_files_wherever_they_are_named() -> None:
    text_without = summary(OPEN, "files")
    assert "a/b.txt" not in text_without
    assert 'Failed: read {"lines":3}: no such file' in text_without


def test_a_summary_stands_in_the_tag_that_it_was_asked_for_in() -> None:
    request = asked(user(text("Summarise our conversation inside <summary> tags.")))
    assert summary(request).splitlines()[0] == "<summary>"
    assert summary(request).splitlines()[-1] == "</summary>"


def test_a_long_text_is_quoted_in_short() -> None:
    line = summary(asked(user(text("word " * 100)), assistant(text("ok")), user(text(COMPACT)))).splitlines()[1]
    assert line == "The user said: " + ("word " * 40) + "…"


@pytest.mark.parametrize(
    ("request_", "expected"),
    [
        (asked(user(text(COMPACT))), True),
        (asked(user(text("Compact the history, please."))), True),
        (asked(user(text("Summarise report.txt."))), False),
        (asked(user(text(COMPACT)), tools=TOOLS), True),
        (asked(user(text("You are performing a CONTEXT CHECKPOINT COMPACTION.")), tools=TOOLS), True),
        (asked(user(text("Write a continuation summary of the work above.")), tools=TOOLS), True),
        (asked(user(text("Add a git history summary to the README")), tools=TOOLS), False),
        (asked(user(text("Summarise the session handling in auth.py")), tools=TOOLS), False),
        (asked(user(text("hi")), system="You condense a conversation into a summary."), True),
        (
            asked(
                user(text("hi")),
                system="The conversation may be compacted later.",
                tools=[{"name": "t", "input_schema": {"type": "object"}}],
            ),
            False,
        ),
    ],
)
def test_a_compaction_request_is_known_by_the_documented_rule(request_: ModelRequest, expected: bool) -> None:
    assert is_compaction(request_) is expected


def test_other_requests_are_for_the_inner_steps() -> None:
    playback = Playback(script("main: [{summarise: {steps: [{say: a}, {say: b}]}}, {say: after}]"))
    compaction = asked(user(text(COMPACT)))
    steps = [played(playback, request).step for request in (asked(), compaction, asked(), compaction)]
    assert steps == ["say", "summarise", "say", "say"]


def test_without_inner_steps_the_next_step_takes_over() -> None:
    playback = Playback(script("main: [{summarise: {when: {text: now}}}, {say: after}]"))
    now = asked(user(text("now")))
    assert [played(playback, request).step for request in (now, now, asked())] == ["summarise", "summarise", "say"]
    assert isinstance(playback.play(now), NothingToPlay)


def test_a_lane_in_which_nothing_answers_says_so() -> None:
    playback = Playback(script("main: [{summarise: {when: {text: now}}, forever: true}]"))
    assert played(playback, asked(user(text("now")))).step == "summarise"
    assert playback.play(asked()) == NothingToPlay("main", "none of its steps answers such a request")
    assert played(playback, asked(user(text("now")))).step == "summarise"


# --- together


def test_policies_stand_in_each_other_and_the_outer_one_is_asked_first() -> None:
    playback = Playback(
        script("""
            main:
              - quota:
                  requests_per_minute: 3
                  steps:
                    - windowed: {tokens: 100, steps: [{say: a, times: 2}]}
                    - {say: b, forever: true}
        """)
    )
    outcomes = [said(played(playback, request)) for request in (LONG, asked(), asked(), asked())]
    assert outcomes == ["400", "a", "a", "429"]
    assert said(played(playback, LONG, 60.0)) == "b"


def test_a_step_left_inside_a_quota_does_not_take_twice() -> None:
    playback = Playback(
        script("""
            main:
              - quota:
                  requests_per_minute: 2
                  steps: [{summarise: {when: {text: now}}}, {say: a, forever: true}]
        """)
    )
    outcome = played(playback, asked())
    assert (said(outcome), outcome.limits and outcome.limits.requests.remaining) == ("a", 1)


def renaming(name: str, arguments: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    return f"mcp__{name}", arguments


def test_tools_are_renamed_in_policies_and_inside_them() -> None:
    original = script("""
        main:
          - stubborn: {call: a}
          - repeat:
              times: 2
              steps: [{windowed: {tokens: 9, steps: [{call: b}]}}]
          - summarise: {when: {tool: c}, leave_out: [d, files]}
    """)
    assert original.renamed_tools(renaming) == script("""
        main:
          - {stubborn: {call: mcp__a}, name: stubborn a}
          - repeat:
              times: 2
              steps: [{windowed: {tokens: 9, steps: [{call: mcp__b, name: call b}]}}]
          - summarise: {when: {tool: mcp__c}, leave_out: [mcp__d, files]}
    """)


@pytest.mark.parametrize(
    ("name", "content", "seen"),
    [
        ("anthropic_messages", "The outcome is unknown.", False),
        ("anthropic_messages", "Errors: none", True),
        ("openai_chat", "Error: no such host", False),
        ("openai_responses", " Error: no such host", False),
        ("openai_chat", "shipped without an Error", True),
    ],
)
def test_insist_takes_no_doubt_for_a_success(name: str, content: str, seen: bool) -> None:
    answered = asked(user(text()), assistant(use("a", "deploy")), user(result("a", content=content)))
    assert succeeded(ToolUse("deploy", {}), ("a",), replace(answered, dialect=name)) is seen
