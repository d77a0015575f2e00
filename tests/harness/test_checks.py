"""Every check is seen to pass and to turn red, on histories made by hand.

Method: a table of examples; a test that enumerates the public check factories of ``harness.checks`` fails when one has
no red example or no green one, so that a check that cannot fail is not possible. The same table proves purity.
"""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import harness.checks
from harness.checks import effects, ending, expectation, faults, requests, tools
from harness.checks.check import Check, holds
from harness.model.event import Source
from harness.model.history import Ending, History, ProcessEnd
from harness.model.outcome import Outcome, Role
from harness.model.scenario import Expectation, FileExpectation, ResultExpectation
from tests.harness.histories import (
    BY_ITSELF,
    CRASHED,
    OVERDUE,
    answering,
    asking,
    assistant,
    called_and_done,
    event,
    file,
    fired,
    hook,
    made,
    mismatched,
    printed,
    refused,
    reply,
    request,
    side_request,
    tool,
    unexpected,
    user,
)

PASS, FAIL, INCONCLUSIVE = Outcome.PASS, Outcome.FAIL, Outcome.INCONCLUSIVE


@dataclass(frozen=True)
class Example:
    """One history and what one check says of it."""

    factory: Callable[..., Check]
    arguments: tuple[Any, ...]
    name: str
    outcome: Outcome
    history: History

    @property
    def check(self) -> Check:
        return self.factory(*self.arguments)

    def __str__(self) -> str:
        return f"{self.factory.__module__.rpartition('.')[2]}.{self.factory.__name__}: {self.name}"


EXAMPLES: list[Example] = []


def examples(factory: Callable[..., Check], *arguments: Any, **cases: tuple[Outcome, History]) -> None:
    for name, (outcome, history) in cases.items():
        EXAMPLES.append(Example(factory, arguments, name.replace("_", " "), outcome, history))


# --- effects

DEPLOYED = called_and_done("deploy", 1)
CUT_OFF = called_and_done("deploy", 1, answered=False)
CALL = assistant(asking("t1"))
ASKED = request(1, user("Deploy."))


def resumed(*messages: Any) -> History:
    """A call cut off after its effect, and the first request of the next process."""
    return made(ASKED, *CUT_OFF, request(2, user("Deploy."), *messages, phase=2), ends=(CRASHED, BY_ITSELF))


examples(
    effects.count,
    "deploy",
    1,
    as_many=(PASS, made(*DEPLOYED)),
    one_too_many=(FAIL, made(*DEPLOYED, *called_and_done("deploy", 2))),
    none=(FAIL, made()),
    called_and_not_done=(FAIL, made(tool("called", "deploy", 1))),
    another_tool=(FAIL, made(*called_and_done("refund", 1))),
)
examples(
    effects.exactly_once,
    "deploy",
    once=(PASS, made(*DEPLOYED)),
    twice=(FAIL, made(*DEPLOYED, *called_and_done("deploy", 2, 2))),
    never=(FAIL, made(tool("called", "deploy", 1))),
)
examples(
    effects.unknown_is_called_unknown,
    "deploy",
    said_unknown=(PASS, resumed(CALL, user([answering("t1", "The outcome is UNKNOWN.", error=True)]))),
    said_failed=(FAIL, resumed(CALL, user([answering("t1", "The call failed.", error=True)]))),
    said_failed_with_the_word=(FAIL, resumed(CALL, user([answering("t1", "It failed: unknown error.", error=True)]))),
    said_failed_for_reasons=(FAIL, resumed(CALL, user([answering("t1", "It failed for unknown reasons.")]))),
    said_nothing=(FAIL, resumed(user("Go on."))),
    judged_the_next_call_instead=(
        FAIL,
        made(
            ASKED,
            *CUT_OFF,
            request(2, user("Deploy."), user("Go on."), phase=2),
            *called_and_done("deploy", 2, 2),
            request(3, user("Go on."), CALL, user([answering("t1", "unknown release")]), phase=2),
            ends=(CRASHED, BY_ITSELF),
        ),
    ),
    beside_a_finished_call=(
        PASS,
        made(
            ASKED,
            *DEPLOYED,
            *called_and_done("deploy", 2, answered=False),
            request(
                2,
                user("Deploy."),
                assistant(asking("t1"), asking("t2")),
                user([answering("t1"), answering("t2", "unknown", error=True)]),
                phase=2,
            ),
            ends=(CRASHED, BY_ITSELF),
        ),
    ),
    one_of_two_denied=(
        FAIL,
        made(
            ASKED,
            *CUT_OFF,
            *called_and_done("deploy", 2, answered=False),
            request(
                2,
                user("Deploy."),
                assistant(asking("t1"), asking("t2")),
                user([answering("t1", "not run"), answering("t2", "unknown", error=True)]),
                phase=2,
            ),
            ends=(CRASHED, BY_ITSELF),
        ),
    ),
    nothing_was_cut_off=(INCONCLUSIVE, made(*DEPLOYED)),
    no_request_after=(INCONCLUSIVE, made(ASKED, *CUT_OFF, ends=(CRASHED, BY_ITSELF))),
)

# --- ending

SIGNALLED = made(ends=(ProcessEnd(None, "SIGSEGV", ended=True, crashed=False),))
EXITED_3 = made(ends=(ProcessEnd(3, None, ended=True, crashed=False),))

examples(
    ending.exit_code,
    3,
    equal=(PASS, EXITED_3),
    another=(FAIL, made()),
    signal=(FAIL, SIGNALLED),
    did_not_end=(INCONCLUSIVE, made(ends=(OVERDUE,))),
    caught_its_signal=(PASS, made(ends=(ProcessEnd(3, None, ended=False, crashed=True),))),
    was_killed=(FAIL, made(ends=(CRASHED,))),
    never_began=(INCONCLUSIVE, made(ends=())),
)
examples(ending.exit_code, "nonzero", three=(PASS, EXITED_3), zero=(FAIL, made()), signal=(FAIL, SIGNALLED))
examples(
    ending.terminal,
    "completed",
    equal=(PASS, made(endings=(Ending(terminal="completed"),))),
    another=(FAIL, made(endings=(Ending(terminal="max_turns"),))),
    said_nothing=(FAIL, made()),
    only_the_last_phase_counts=(
        FAIL,
        made(ends=(BY_ITSELF, BY_ITSELF), endings=(Ending(terminal="completed"), Ending(terminal="api_error"))),
    ),
)
examples(
    ending.subtype,
    "error_max_turns",
    equal=(PASS, made(endings=(Ending(subtype="error_max_turns"),))),
    another=(FAIL, made(endings=(Ending(subtype="success"),))),
    said_nothing=(FAIL, made()),
)
examples(
    ending.turns,
    2,
    equal=(PASS, made(endings=(Ending(turns=2),))),
    another=(FAIL, made(endings=(Ending(turns=3),))),
    said_nothing=(FAIL, made()),
)
examples(
    ending.answer_contains,
    "Done",
    there=(PASS, made(endings=(Ending(text="All Done."),))),
    not_there=(FAIL, made(endings=(Ending(text="No."),))),
    said_nothing=(FAIL, made()),
)
examples(
    ending.output_contains,
    "No conversation",
    standard_output=(PASS, made(printed("No conversation found\n"))),
    error_output=(PASS, made(printed("No conversation found\n", stream="stderr"))),
    not_there=(FAIL, made(printed("Hello\n"))),
    only_in_an_earlier_phase=(
        FAIL,
        made(printed("No conversation\n"), printed("Hello\n", phase=2), ends=(BY_ITSELF, BY_ITSELF)),
    ),
    nothing_printed=(FAIL, made()),
)
examples(
    ending.within_bound,
    by_itself=(PASS, made()),
    at_its_crash_point=(PASS, made(ends=(CRASHED, BY_ITSELF))),
    overdue=(INCONCLUSIVE, made(ends=(OVERDUE,))),
    never_began=(INCONCLUSIVE, made(ends=())),
)
examples(
    ending.nothing_left_running,
    nothing=(PASS, made()),
    a_child=(FAIL, made(left_running=("sleep 1000",))),
)

examples(
    ending.nothing_after_exit,
    nothing=(PASS, made(request(1, user("Go.")))),
    a_request=(FAIL, made(request(1, user("Go."), after_exit=True))),
    an_effect=(FAIL, made(event(Source.TOOL, "tool.committed", tool="deploy", call=1, after_exit=True))),
)

# --- faults

TWICE = ("lane main: say: cut", "lane main: say: cut")

examples(
    faults.all_fired,
    none_declared=(PASS, made()),
    all=(PASS, made(fired("a"), fired("b"), faults_declared=("a", "b"))),
    one_missing=(INCONCLUSIVE, made(fired("a"), faults_declared=("a", "b"))),
    skipped=(
        INCONCLUSIVE,
        made(event(Source.PROVIDER, "fault.skipped", fault="a", reason="not streamed"), faults_declared=("a",)),
    ),
    two_of_one_name=(PASS, made(fired(TWICE[0]), fired(TWICE[1]), faults_declared=TWICE)),
    one_of_two_of_one_name=(INCONCLUSIVE, made(fired(TWICE[0]), faults_declared=TWICE)),
)

# --- requests

examples(
    requests.count,
    2,
    as_many=(PASS, made(request(1), request(2))),
    too_few=(FAIL, made(request(1))),
    side_requests_and_other_lanes_do_not_count=(
        PASS,
        made(side_request(1), request(2), request(3, lane="title"), request(4)),
    ),
)
examples(
    requests.models,
    ("a", "b"),
    in_order=(PASS, made(request(1, model="a"), request(2, model="b"))),
    other_order=(FAIL, made(request(1, model="b"), request(2, model="a"))),
    one_missing=(FAIL, made(request(1, model="a"))),
)
examples(
    requests.contain,
    {2: 'say "hi"\n'},
    in_text=(PASS, made(request(1), request(2, user('Please say "hi"\n.')))),
    in_a_tool_result=(PASS, made(request(1), request(2, user([answering("t", 'say "hi"\n')])))),
    in_another_request=(FAIL, made(request(1, user('say "hi"\n')), request(2, user("no")))),
    no_such_request=(FAIL, made(request(1, user('say "hi"\n')))),
)
examples(
    requests.contain,
    {1: "content"},
    a_key_is_no_text=(FAIL, made(request(1, user("Hello.")))),
)
BEFORE = request(1, user("The word is kingfisher."), assistant("Noted."), user([{"type": "text", "text": "Thanks."}]))
examples(
    requests.carry_earlier_turns,
    kept=(
        PASS,
        made(
            BEFORE,
            request(2, user("The word is kingfisher."), assistant("Noted."), user("Thanks."), user("Which?"), phase=2),
        ),
    ),
    one_lost=(FAIL, made(BEFORE, request(2, user("The word is kingfisher."), user("Which?"), phase=2))),
    all_lost=(FAIL, made(BEFORE, request(2, user("Which?"), phase=2))),
    other_order=(FAIL, made(BEFORE, request(2, user("Thanks."), user("The word is kingfisher."), phase=2))),
    no_request_before=(INCONCLUSIVE, made(request(1, user("Which?"), phase=2))),
    no_request_after=(INCONCLUSIVE, made(BEFORE)),
    nothing_said_before=(INCONCLUSIVE, made(request(1), request(2, user("Which?"), phase=2))),
)
examples(
    requests.accepted,
    all=(PASS, made(request(1), *reply(1))),
    one_refused=(FAIL, made(request(1), refused(1, "messages: at least one message is required"))),
    refused_in_no_lane=(FAIL, made(request(1, lane=None, body="hello"), refused(1, "not JSON"))),
)
examples(
    requests.as_expected,
    all=(PASS, made(request(1))),
    another_model=(FAIL, made(request(1), request(2), mismatched(2, "model: expected a, found b"))),
)
examples(
    requests.readable,
    nothing=(PASS, made(request(1, user("Go.")))),
    garbage=(FAIL, made(event(Source.PROVIDER, "garbage.received", connection=1, reason="no request line"))),
    half_a_request_of_a_crashed_phase=(
        PASS,
        made(event(Source.PROVIDER, "garbage.received", connection=1, reason="half"), ends=(CRASHED, BY_ITSELF)),
    ),
    half_a_request_after_a_crashed_phase=(
        FAIL,
        made(event(Source.PROVIDER, "garbage.received", 2, connection=1, reason="half"), ends=(CRASHED, BY_ITSELF)),
    ),
)
examples(
    requests.scripted,
    all=(PASS, made(request(1))),
    beyond_the_script=(INCONCLUSIVE, made(request(1), request(2), unexpected(2, "the script is used up"))),
)

# --- tools

ANSWERED = request(2, user("Deploy."), CALL, user([answering("t1", "accepted")]))
WANTED = (ResultExpectation("deploy", error=False, contains="accept"),)

examples(
    tools.results,
    WANTED,
    as_wanted=(PASS, made(ANSWERED, tool_names={"deploy": "deploy"})),
    under_the_runtimes_name=(
        PASS,
        made(
            request(2, assistant(asking("t1", "mcp__effects__deploy")), user([answering("t1")])),
            tool_names={"deploy": "mcp__effects__deploy"},
        ),
    ),
    error=(FAIL, made(request(2, CALL, user([answering("t1", error=True)])))),
    other_text=(FAIL, made(request(2, CALL, user([answering("t1", "refused")])))),
    other_tool=(FAIL, made(request(2, assistant(asking("t1", "refund")), user([answering("t1")])))),
    none=(FAIL, made(request(1, user("Deploy.")))),
    one_more=(FAIL, made(request(2, assistant(asking("a"), asking("b")), user([answering("a"), answering("b")])))),
)
examples(
    tools.every_call_answered_once,
    no_call=(PASS, made(ASKED)),
    answered=(PASS, made(ANSWERED)),
    answered_in_two_messages=(
        PASS,
        made(request(2, assistant(asking("a"), asking("b")), user([answering("a")]), user([answering("b")]))),
    ),
    asked_in_two_messages=(
        PASS,
        made(
            request(2, assistant(asking("a")), assistant(asking("b")), user([answering("a"), answering("b")])),
        ),
    ),
    unanswered=(FAIL, made(request(2, user("Deploy."), CALL, user("Go on.")))),
    unanswered_at_the_end=(FAIL, made(request(2, user("Deploy."), CALL))),
    answered_twice=(FAIL, made(request(2, CALL, user([answering("t1"), answering("t1")])))),
    never_asked=(FAIL, made(request(2, user([answering("t1")])))),
    answered_later=(FAIL, made(request(2, CALL, user("Wait."), assistant("So."), user([answering("t1")])))),
    answered_before=(FAIL, made(request(2, user([answering("t1")]), CALL, user("Go on.")))),
    in_another_lane=(FAIL, made(request(2, user("Deploy."), CALL, user("Go on."), lane="subagent"))),
)
examples(
    tools.never_called,
    "deploy",
    never=(PASS, made(tool("called", "refund", 1))),
    called=(FAIL, made(tool("called", "deploy", 1))),
)


def after(**files: str | None) -> History:
    return made(files_after={path: file(path, text) for path, text in files.items()})


examples(
    tools.files,
    (FileExpectation("note", equals="hi"),),
    equal=(PASS, after(note="hi")),
    another=(FAIL, after(note="hi!")),
    binary=(FAIL, after(note=None)),
    absent=(FAIL, after()),
)
examples(
    tools.files,
    (FileExpectation("note", equals=""),),
    empty=(PASS, after(note="")),
    not_empty=(FAIL, after(note="hi")),
)
examples(
    tools.files,
    (FileExpectation("note", contains="ell"),),
    there=(PASS, after(note="hello")),
    not_there=(FAIL, after(note="hi")),
    binary=(FAIL, after(note=None)),
)
examples(
    tools.files,
    (FileExpectation("note", absent=True),),
    absent=(PASS, after(other="hi")),
    there=(FAIL, after(note="hi")),
)
examples(
    tools.files,
    (FileExpectation("note"),),
    there=(PASS, after(note="hi")),
    absent=(FAIL, after()),
)
examples(
    tools.hooks,
    "stop",
    2,
    as_often=(PASS, made(hook("stop", "Once more."), hook("pre_tool"), hook("stop"))),
    too_seldom=(FAIL, made(hook("stop"))),
    never=(FAIL, made()),
)


def factories() -> dict[str, Callable[..., Check]]:
    """Return every public function under ``harness.checks`` that makes a check."""
    found: dict[str, Callable[..., Check]] = {}
    for module in pkgutil.iter_modules(harness.checks.__path__):
        loaded = importlib.import_module(f"harness.checks.{module.name}")
        for name, function in inspect.getmembers(loaded, inspect.isfunction):
            made_here = function.__module__ == loaded.__name__ and not name.startswith("_")
            if made_here and inspect.signature(function).return_annotation in ("Check", Check):
                found[f"{module.name}.{name}"] = function
    return found


FACTORIES = factories()


def test_there_are_factories_to_judge() -> None:
    assert {"effects.exactly_once", "faults.all_fired", "tools.results", "ending.exit_code"} <= set(FACTORIES)


@pytest.mark.parametrize("name", sorted(FACTORIES))
def test_every_check_has_been_seen_green_and_red(name: str) -> None:
    held = [example for example in EXAMPLES if example.factory is FACTORIES[name]]
    outcomes = {example.outcome for example in held}
    assert PASS in outcomes, f"{name} has no green example"
    is_claim = all(example.check.role is Role.CLAIM for example in held)
    assert (FAIL if is_claim else INCONCLUSIVE) in outcomes, f"{name} has no red example: can it fail at all?"


@pytest.mark.parametrize("example", EXAMPLES, ids=str)
def test_example(example: Example) -> None:
    result = example.check.result(example.history)
    assert result.outcome is example.outcome, result
    if example.outcome is INCONCLUSIVE:
        assert result.detail, "an inconclusive result says why"


@pytest.mark.parametrize("example", EXAMPLES, ids=str)
def test_asking_twice_gives_one_answer_and_changes_nothing(example: Example) -> None:
    before = msgspec.json.encode(example.history)
    first = msgspec.json.encode(example.check.result(example.history))
    assert msgspec.json.encode(example.check.result(example.history)) == first
    assert msgspec.json.encode(example.history) == before


@pytest.mark.parametrize("example", EXAMPLES, ids=str)
def test_a_history_read_back_from_evidence_is_judged_the_same(example: Example) -> None:
    again = msgspec.json.decode(msgspec.json.encode(example.history), type=History)
    assert example.check.result(again).outcome is example.outcome


def test_a_check_that_raises_is_a_harness_error_and_the_others_are_still_asked() -> None:
    def broken(history: History) -> Any:
        raise KeyError("lost")

    from harness.checks.check import results

    found = results((Check("broken", broken), ending.nothing_left_running()), made())
    assert [result.outcome for result in found] == [Outcome.HARNESS_ERROR, PASS]
    assert found[0].detail == "the check itself failed: KeyError: 'lost'"
    assert found[0].check == "broken"


def test_holds_is_not_always_true() -> None:
    assert holds(condition=False, expected=1, actual=2)[0] is FAIL


def test_what_was_missed_is_named_with_its_reason() -> None:
    history = made(
        event(Source.PROVIDER, "fault.skipped", fault="lane main: say: cut", reason="not streamed"),
        event(Source.PROVIDER, "hold.skipped", fault="reply.streaming", reason="no such event"),
        faults_declared=("lane main: say: cut", "phase 1: SIGKILL at reply.streaming"),
    )
    assert faults.all_fired().result(history).detail == (
        "did not fire: lane main: say: cut, phase 1: SIGKILL at reply.streaming; "
        "lane main: say: cut: not streamed; reply.streaming: no such event"
    )


def test_an_overdue_run_names_what_was_last_seen_before_the_limit() -> None:
    history = made(
        ASKED,
        event(Source.PROCESS, "process.overdue", wall_seconds=60.0),
        event(Source.PROVIDER, "client.left", request=1, connection=1, bytes_sent=0),
        event(Source.PROCESS, "process.exited", code=None, signal=None, ended=False),
        ends=(OVERDUE,),
    )
    assert ending.within_bound().result(history).detail == (
        "the wall limit passed; last seen: provider request.received at 0.0 s"
    )


# --- expect: -> checks

EXPECTATIONS: dict[str, tuple[Expectation, list[str]]] = {
    "models": (Expectation(models=("m",)), ["requests.models"]),
    "requests": (Expectation(requests=0), ["requests.count"]),
    "turns": (Expectation(turns=0), ["ending.turns"]),
    "terminal": (Expectation(terminal="completed"), ["ending.terminal"]),
    "subtype": (Expectation(subtype="success"), ["ending.subtype"]),
    "exit": (Expectation(exit=0), ["ending.exit"]),
    "effects": (Expectation(effects={"a": 0, "b": 1}), ["effects.count.a", "effects.count.b"]),
    "results": (Expectation(results=WANTED), ["tools.results"]),
    "files": (Expectation(files=(FileExpectation("a"),)), ["tools.files"]),
    "answer_contains": (Expectation(answer_contains=""), ["ending.answer"]),
    "request_contains": (Expectation(request_contains={1: "a"}), ["requests.contain"]),
    "output_contains": (Expectation(output_contains=""), ["ending.output"]),
    "hooks": (Expectation(hooks={"stop": 0}), ["tools.hooks.stop"]),
}


@pytest.mark.parametrize("field", Expectation.__struct_fields__)
def test_every_expectation_becomes_its_checks(field: str) -> None:
    expect, ids = EXPECTATIONS[field]
    assert [check.id for check in expectation.checks_of(expect)] == ids


def test_nothing_expected_is_nothing_checked() -> None:
    assert expectation.checks_of(Expectation()) == ()


def test_the_universal_checks_have_distinct_ids() -> None:
    ids = [check.id for check in expectation.UNIVERSAL]
    assert len(ids) == len(set(ids)) == 9


# --- whatever a runtime sends, a check answers

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=8,
)
BLOCKS = st.fixed_dictionaries(
    {"type": st.sampled_from(["text", "tool_use", "tool_result"])},
    optional={"id": JSON, "tool_use_id": JSON, "name": JSON, "content": JSON, "text": JSON},
)
MESSAGES = st.fixed_dictionaries(
    {}, optional={"role": st.sampled_from(["user", "assistant", 5]), "content": JSON | st.lists(BLOCKS | JSON)}
)


@settings(max_examples=60, deadline=None, derandomize=True)
@given(body=JSON | st.fixed_dictionaries({"messages": JSON | st.lists(MESSAGES | JSON, max_size=4)}))
def test_no_request_body_makes_a_check_raise(body: Any) -> None:
    history = made(request(1, body=body), request(2, body=body, phase=2), *CUT_OFF)
    checks = (*expectation.UNIVERSAL, requests.carry_earlier_turns(), requests.contain({1: "a"}), tools.results(WANTED))
    for check in (*checks, effects.unknown_is_called_unknown("deploy")):
        result = check.result(history)
        assert result.outcome is not Outcome.HARNESS_ERROR, result
