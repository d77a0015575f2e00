"""The whole road with a small real agent: sandbox, provider, effect server, crash, resume, judgement, evidence.

Method: each agent does one thing well or one thing wrong, and the evidence must say exactly that. A crash is put at
each of the four positions, by a signal that cannot be caught and by one that can.
"""

from __future__ import annotations

import asyncio
import json
import os
import select
import tempfile
from concurrent.futures import CancelledError as FutureCancelledError
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import jsonschema
import msgspec
import pytest

from harness.checks.check import Check
from harness.driver import DEFAULT_GRACES, Drive, Graces
from harness.engine import Cancellation, Played, evidence_of, play
from harness.model.capability import Capability
from harness.model.evidence import Evidence, behaviour_text, decode, encode, schema, timed_history
from harness.model.history import History
from harness.model.outcome import CheckResult, Outcome
from harness.runtimes.adapter import Installation
from harness.sandbox import SandboxProcess, open_sandbox
from harness.scenario_file import LoadedScenario, load_scenario
from tests.harness.fake_adapter import INSTALLATION, FakeAdapter

WAIT_SECONDS = 30.0
IMPATIENT = Graces(children_seconds=0.0, signal_seconds=0.2)

PLAIN = """
id: a.plain
claim: It talks.
clauses: [A1]
prompt: Hello.
model: {main: [{say: Hi there.}]}
expect: {requests: 1, answer_contains: Hi there., terminal: completed, turns: 1, exit: 0}
"""


def loaded(folder: Path, text: str, wall_seconds: float | None = None) -> LoadedScenario:
    path = folder / "scenario.yaml"
    path.write_text(text, encoding="utf-8")
    found = load_scenario(path)
    if wall_seconds is None:
        return found
    scenario = msgspec.structs.replace(found.scenario, wall_seconds=wall_seconds)
    return LoadedScenario(scenario, found.script, found.path, found.text)


def judged(played: Played, installation: Installation = INSTALLATION) -> Evidence:
    return evidence_of(played, installation, "crashcart run scenario.yaml", "run-1")


def driven(
    folder: Path,
    text: str,
    adapter: FakeAdapter,
    *,
    wall_seconds: float | None = None,
    graces: Graces = DEFAULT_GRACES,
    installation: Installation = INSTALLATION,
) -> Evidence:
    scenario = loaded(folder, text, wall_seconds)
    return judged(play(scenario, adapter, installation, Cancellation(), graces), installation)


def said(evidence: Evidence, check: str) -> CheckResult:
    return next(result for result in evidence.checks if result.check == check)


def unmet(evidence: Evidence) -> dict[str, Outcome]:
    return {result.check: result.outcome for result in evidence.checks if result.outcome is not Outcome.PASS}


@pytest.fixture(autouse=True)
def no_folder_is_left(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Any:
    folder = tmp_path_factory.mktemp("t")
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    yield
    assert list(folder.iterdir()) == []


# --- one phase


def test_an_agent_that_does_well_is_green(tmp_path: Path) -> None:
    evidence = driven(tmp_path, PLAIN, FakeAdapter("talks"))
    assert unmet(evidence) == {}
    assert evidence.outcome is Outcome.PASS
    assert evidence.exit_status == [{"exit_code": 0, "signal": None, "ended": True, "crashed": False}]
    assert evidence.observed["models"] == ["m"]
    assert evidence.observed["statuses"] == [200]
    assert evidence.environment["variables"]["HOME"] == "<sandbox>/home"
    assert evidence.commands[0][0] == "<fake>"
    assert decode(encode(evidence)) == evidence
    jsonschema.Draft202012Validator(schema()).validate(json.loads(encode(evidence)))


def test_the_same_run_is_red_when_something_else_is_expected(tmp_path: Path) -> None:
    text = PLAIN.replace("requests: 1", "requests: 2").replace("exit: 0", "exit: 3")
    evidence = driven(tmp_path, text, FakeAdapter("talks"))
    assert unmet(evidence) == {"requests.count": Outcome.FAIL, "ending.exit": Outcome.FAIL}
    assert evidence.outcome is Outcome.FAIL


def test_a_program_that_cannot_start_is_a_harness_error(tmp_path: Path) -> None:
    nowhere = Installation("fake", "1.0", ("/none/agent",), "ef" * 32)
    evidence = driven(tmp_path, PLAIN, FakeAdapter("talks"), installation=nowhere)
    assert evidence.outcome is Outcome.HARNESS_ERROR
    [result] = evidence.checks
    assert result.detail == (
        "SandboxError: <fake> cannot be started: [Errno 2] No such file or directory: '<fake>'"
    ) or result.detail.startswith("SandboxError: /none/agent cannot be started: [Errno 2] No such file")


def test_an_agent_that_never_asks_and_never_ends_is_inconclusive_and_its_last_sign_is_named(tmp_path: Path) -> None:
    evidence = driven(tmp_path, PLAIN, FakeAdapter("silent"), wall_seconds=1.0, graces=IMPATIENT)
    assert evidence.outcome is Outcome.INCONCLUSIVE
    assert said(evidence, "ending.within-bound").outcome is Outcome.INCONCLUSIVE
    detail = said(evidence, "ending.within-bound").detail
    assert detail.startswith("the wall limit passed; last seen: ")
    assert "process.exited" not in detail, "that is the harness ending it, and not a sign of life"
    assert evidence.exit_status == [{"exit_code": None, "signal": None, "ended": False, "crashed": False}]
    assert said(evidence, "ending.nothing-left-running").outcome is Outcome.PASS, "the harness ended it itself"


def test_a_child_left_running_fails(tmp_path: Path) -> None:
    evidence = driven(tmp_path, PLAIN, FakeAdapter("leaves_child"), graces=IMPATIENT)
    assert unmet(evidence) == {"ending.nothing-left-running": Outcome.FAIL}
    [left] = evidence.history.left_running
    assert "fake_agent.py leaves_child" in left or "…" in left


def test_work_after_the_exit_fails(tmp_path: Path) -> None:
    evidence = driven(tmp_path, PLAIN, FakeAdapter("works_on_after_exit"))
    assert unmet(evidence) == {"ending.nothing-after-exit": Outcome.FAIL}
    assert said(evidence, "ending.nothing-after-exit").actual == ["provider request.received in phase 1"]


def test_an_invalid_request_fails_and_hides_nothing(tmp_path: Path) -> None:
    text = PLAIN.replace(
        "expect: {requests: 1, answer_contains: Hi there., terminal: completed, turns: 1, exit: 0}", ""
    )
    evidence = driven(tmp_path, text, FakeAdapter("invalid"))
    assert unmet(evidence) == {"requests.accepted": Outcome.FAIL}
    assert evidence.outcome is Outcome.FAIL


def test_asking_beyond_the_script_is_inconclusive(tmp_path: Path) -> None:
    evidence = driven(tmp_path, PLAIN, FakeAdapter("asks_twice"))
    assert evidence.outcome is Outcome.INCONCLUSIVE
    assert "request 2: the script of lane 'main' is used up" in said(evidence, "requests.scripted").detail


def test_a_request_that_its_step_did_not_expect_fails_with_both_in_the_evidence(tmp_path: Path) -> None:
    text = PLAIN.replace("{say: Hi there.}", "{say: Hi there., expect_request: {model: m, max_tokens: {min: 100}}}")
    assert text != PLAIN
    evidence = driven(tmp_path, text, FakeAdapter("talks"))
    assert unmet(evidence) == {"requests.expectation": Outcome.FAIL}
    assert said(evidence, "requests.expectation").actual == {
        "request 1 (say)": ["max_tokens: expected at least 100, found 99"]
    }


def test_what_an_agent_prints_is_evidence_and_not_to_be_trusted(tmp_path: Path) -> None:
    evidence = driven(tmp_path, PLAIN, FakeAdapter("misleads"))
    assert evidence.outcome is Outcome.PASS, unmet(evidence)


def test_a_fault_on_the_wire_that_the_agent_evades_is_inconclusive(tmp_path: Path) -> None:
    text = PLAIN.replace("{say: Hi there.}", "{say: Hi there., fault: {cut: {event: message_start}}}")
    evidence = driven(tmp_path, text, FakeAdapter("talks"))
    assert evidence.outcome is Outcome.INCONCLUSIVE
    assert said(evidence, "faults.all-fired").detail == (
        "did not fire: lane main: say: cut; lane main: say: cut: the reply is not streamed, "
        "so its only event is 'body' and 'message_start' is none"
    )


def test_a_fault_on_the_wire_that_strikes_counts(tmp_path: Path) -> None:
    text = PLAIN.replace("{say: Hi there.}", "{say: Hi there., fault: {cut: {event: message_start}}}")
    evidence = driven(tmp_path, text, FakeAdapter("streams"))
    assert said(evidence, "faults.all-fired").outcome is Outcome.PASS


def test_hooks_are_asked_and_counted(tmp_path: Path) -> None:
    text = """
id: a.hooked
claim: The hook speaks twice.
clauses: [G3]
prompt: Hello.
hooks: [{event: stop, reason: Say more., times: 2}]
model: {main: [{say: One.}, {say: Two.}, {say: Three.}]}
expect: {requests: 3, hooks: {stop: 3}, request_contains: {3: Say more.}, exit: 0}
"""
    evidence = driven(tmp_path, text, FakeAdapter("hooked"))
    assert unmet(evidence) == {}
    asked = [event.data["stop_hook_active"] for event in evidence.history.of("hook.asked")]
    assert asked == [False, True, True]


# --- crash points

CRASH = """
id: a.crash
claim: It is killed at {at}.
clauses: [N4]
phases:
  - prompt: Deploy.
    crash: {{at: {at}, signal: {signal}{more}}}
  - resume: Go on.
{tools}model:
  main:
    - {step}
    - say: Done.
expect: {{exit: 0}}
"""
TOOLS = "tools: {deploy: {arguments: {release: string}}}\n"
CALL = "{call: deploy, with: {release: '7'}}"
POSITIONS: dict[str, tuple[str, str, str, str]] = {
    "request.received": ("talks", "", "", "{say: Hi.}"),
    "reply.streaming": ("streams", "", "", "{say: Hi.}"),
    "tool.called": ("calls", ", tool: deploy", TOOLS, CALL),
    "tool.committed": ("calls", ", tool: deploy", TOOLS, CALL),
}
# What was done at each position before the crash: requests answered, tool calls, effects.
DONE = {
    "request.received": (0, 0, 0),
    "reply.streaming": (1, 0, 0),
    "tool.called": (1, 1, 0),
    "tool.committed": (1, 1, 1),
}
SIGNALS: dict[str, tuple[str, str, dict[str, Any]]] = {
    "SIGKILL": ("SIGKILL", "ignores", {"exit_code": None, "signal": "SIGKILL"}),
    "SIGTERM that is trapped": ("SIGTERM", "traps", {"exit_code": 143, "signal": None}),
    "SIGTERM that is ignored": ("SIGTERM", "ignores", {"exit_code": None, "signal": "SIGKILL"}),
}
CASES = [
    (position, how)
    for position in POSITIONS
    for how in SIGNALS
    if how != "SIGTERM that is ignored" or position == "reply.streaming"
]


def crash_scenario(position: str, signal_name: str) -> str:
    _, more, tools, step = POSITIONS[position]
    return CRASH.format(at=position, signal=signal_name, more=more, tools=tools, step=step)


@pytest.mark.parametrize(("position", "how"), CASES)
def test_a_crash_is_exactly_where_it_was_asked_for(position: str, how: str, tmp_path: Path) -> None:
    signal_name, on_term, end = SIGNALS[how]
    graces = IMPATIENT if how == "SIGTERM that is ignored" else DEFAULT_GRACES
    adapter = FakeAdapter(POSITIONS[position][0], on_term)
    evidence = driven(tmp_path, crash_scenario(position, signal_name), adapter, graces=graces)

    assert unmet(evidence) == {}
    assert evidence.exit_status[0] == {**end, "ended": False, "crashed": True}
    assert evidence.exit_status[1] == {"exit_code": 0, "signal": None, "ended": True, "crashed": False}
    history = timed_history(evidence)
    [crash] = [event for event in history.of("fault.fired") if event.phase == 1]
    before = [event for event in history.events if event.phase == 1 and event.at_seconds <= crash.at_seconds]
    kinds = [event.kind for event in before]
    assert (kinds.count("reply.started"), kinds.count("tool.called"), kinds.count("tool.committed")) == DONE[position]
    assert "tool.answered" not in [event.kind for event in history.events]
    assert len(history.of("process.killed")) == (how == "SIGTERM that is ignored")


def test_an_agent_that_ends_before_its_crash_point_is_inconclusive(tmp_path: Path) -> None:
    evidence = driven(tmp_path, crash_scenario("request.received", "SIGKILL"), FakeAdapter("quits"))
    assert evidence.outcome is Outcome.INCONCLUSIVE
    assert said(evidence, "faults.all-fired").detail == "did not fire: phase 1: SIGKILL at request.received"
    assert len(evidence.exit_status) == 2, "the next phase is played all the same"


async def test_a_kill_that_finds_the_process_ended_did_not_fire(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scenario = loaded(tmp_path, crash_scenario("tool.committed", "SIGKILL"))
    async with open_sandbox() as sandbox:
        drive = Drive(scenario, FakeAdapter("calls"), INSTALLATION, sandbox, DEFAULT_GRACES)
        process = SandboxProcess(1, 0.0, asyncio.get_running_loop().create_future())
        monkeypatch.setattr(sandbox, "signal", lambda *_: process.exited.set_result((0, None)))
        end = await drive.crash(process, drive.points[1])
    assert (end.exit_code, end.ended, end.crashed) == (0, True, False)
    assert [event.kind for event in drive.events] == ["fault.skipped"]


def test_an_agent_that_wipes_the_ledger_is_found_out(tmp_path: Path) -> None:
    text = CRASH.replace("    crash: {{at: {at}, signal: {signal}{more}}}\n", "")
    evidence = driven(tmp_path, text.format(at="no place", tools=TOOLS, step=CALL), FakeAdapter("erases"))
    assert evidence.outcome is Outcome.HARNESS_ERROR
    assert "tool.committed deploy #1" in evidence.checks[0].detail


def test_a_hold_that_the_reply_does_not_have_says_so(tmp_path: Path) -> None:
    evidence = driven(tmp_path, crash_scenario("reply.streaming", "SIGKILL"), FakeAdapter("talks"))
    assert evidence.outcome is Outcome.INCONCLUSIVE
    assert "reply.streaming: the request asked for a reply that is not streamed" in (
        said(evidence, "faults.all-fired").detail
    )


def test_a_second_prompt_is_a_second_session_and_a_resume_is_not(tmp_path: Path) -> None:
    text = """
id: a.sessions
claim: Sessions are told apart.
clauses: [J1]
phases: [{prompt: One.}, {resume: Two.}, {prompt: Three.}]
model: {main: [{say: A.}, {say: B.}, {say: C.}]}
expect: {exit: 0}
"""
    evidence = driven(tmp_path, text, FakeAdapter("talks"))
    assert [ending.session for ending in evidence.history.endings] == ["<uuid-1>", "<uuid-1>", "<uuid-2>"]
    assert [len(request.messages) for request in evidence.history.requests()] == [1, 3, 1]


def test_a_fault_of_a_tool_strikes_or_the_run_is_inconclusive(tmp_path: Path) -> None:
    text = """
id: a.tool
claim: The answer is an error although the effect happened.
clauses: [F1]
prompt: Deploy.
tools: {deploy: {arguments: {release: string}, mode: error_after_commit}}
model: {main: [{call: deploy, with: {release: '7'}}, {say: Failed.}]}
expect: {effects: {deploy: 1}, results: [{tool: deploy, error: true, contains: internal error}]}
"""
    assert unmet(driven(tmp_path, text, FakeAdapter("calls"))) == {}
    evidence = driven(tmp_path, text, FakeAdapter("talks"))
    assert evidence.outcome is Outcome.INCONCLUSIVE
    assert said(evidence, "faults.all-fired").detail == "did not fire: tool deploy every call: error_after_commit"


# --- one behaviour, one text


@pytest.mark.parametrize("position", ["reply.streaming", "tool.committed"])
def test_two_runs_of_one_behaviour_give_one_text(position: str, tmp_path: Path) -> None:
    text = crash_scenario(position, "SIGKILL") + "workspace: {note.txt: hello}\n"
    scenario, adapter = loaded(tmp_path, text), FakeAdapter(POSITIONS[position][0])
    texts = []
    for _ in range(2):
        evidence = judged(play(scenario, adapter, INSTALLATION, Cancellation()))
        assert evidence.outcome is Outcome.PASS
        texts.append(behaviour_text(evidence))
    assert texts[0] == texts[1]
    assert "/crashcart-" not in texts[0]


def test_another_behaviour_gives_another_text(tmp_path: Path) -> None:
    first = driven(tmp_path, PLAIN, FakeAdapter("talks"))
    second = driven(tmp_path, PLAIN.replace("Hi there", "Ho there"), FakeAdapter("talks"))
    assert behaviour_text(first) != behaviour_text(second)


# --- what does not become a verdict


def test_a_capability_declared_absent_is_unsupported_and_nothing_is_started(tmp_path: Path) -> None:
    adapter = FakeAdapter("talks", capabilities=frozenset(Capability) - {Capability.RESUME})
    evidence = driven(tmp_path, crash_scenario("request.received", "SIGKILL"), adapter)
    assert evidence.outcome is Outcome.UNSUPPORTED
    [result] = evidence.checks
    assert result.detail == "fake declares that it has no resume"
    assert evidence.history.events == ()
    assert decode(encode(evidence)) == evidence


def test_a_setting_that_cannot_be_translated_is_unsupported(tmp_path: Path) -> None:
    evidence = driven(tmp_path, PLAIN + "settings: {max_turns: 1}\n", FakeAdapter("talks"))
    assert evidence.outcome is Outcome.UNSUPPORTED
    assert evidence.checks[0].detail == "fake declares that it has no max_turns"


def raising(history: History) -> Any:
    raise KeyError("none")


def test_a_check_that_raises_is_a_harness_error(tmp_path: Path) -> None:
    played = play(loaded(tmp_path, PLAIN), FakeAdapter("talks"), INSTALLATION, Cancellation())
    played.checks.append(Check("mine", raising))
    evidence = judged(played)
    assert evidence.outcome is Outcome.HARNESS_ERROR
    assert unmet(evidence) == {"mine": Outcome.HARNESS_ERROR}


class BrokenAdapter(FakeAdapter):
    """An adapter with a mistake of its own."""

    def launch(self, installation: Installation, start: Any) -> Any:
        raise KeyError("launch")


def test_a_mistake_of_an_adapter_is_a_harness_error(tmp_path: Path) -> None:
    evidence = driven(tmp_path, PLAIN, BrokenAdapter("talks"))
    assert evidence.outcome is Outcome.HARNESS_ERROR
    assert evidence.checks[0].detail == "KeyError: 'launch'"


def test_a_file_whose_name_is_no_text_is_evidence_too(tmp_path: Path) -> None:
    from harness.driver import file_states

    (tmp_path / os.fsdecode(b"a\xff")).write_bytes(b"\xff\xfe")
    (tmp_path / "link").symlink_to("/etc/passwd")
    states = file_states(tmp_path)
    assert list(states) == ["a\\xff"]
    assert states["a\\xff"].text is None
    msgspec.json.encode(states)


# --- cancellation


def test_cancellation_ends_what_runs_and_leaves_nothing(tmp_path: Path) -> None:
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    scenario = loaded(tmp_path, PLAIN.replace("Hello.", json.dumps(str(fifo))))
    cancellation = Cancellation()
    with ThreadPoolExecutor(1) as pool:
        future = pool.submit(play, scenario, FakeAdapter("silent"), INSTALLATION, cancellation)
        descriptor = os.pidfd_open(int(fifo.read_text()))  # it runs
        cancellation.cancel_all()
        cancellation.cancel_all()
        with pytest.raises((asyncio.CancelledError, FutureCancelledError)):
            future.result(timeout=WAIT_SECONDS)
    assert select.select([descriptor], [], [], WAIT_SECONDS)[0]
    os.close(descriptor)
    with pytest.raises(asyncio.CancelledError):
        play(scenario, FakeAdapter("silent"), INSTALLATION, cancellation)
