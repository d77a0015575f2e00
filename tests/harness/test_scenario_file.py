"""A mistake in a scenario is one sentence with file, line, what was allowed and the nearest word, before anything runs.

Method: a table of broken documents with the exact message of each, a table of whole documents that use every key, the
scenarios of the repository, and random damage to a valid document, which may only ever raise ``DocumentError``.
"""

from __future__ import annotations

import copy
import io
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from ruamel.yaml import YAML

from fake_provider.document import DocumentError
from harness.model.capability import Capability
from harness.model.scenario import (
    Crash,
    EffectMode,
    EffectTool,
    Expectation,
    FileExpectation,
    Hook,
    HookEvent,
    Phase,
    Position,
    ResultExpectation,
    Scenario,
    Settings,
)
from harness.probe import SCENARIOS
from harness.scenario_file import ARGUMENT_TYPES, JSON_TYPES, SCENARIO_KEYS, SETTING_READERS, load_scenario

HEAD = "id: a.b\nclaim: It works.\nclauses: [A1]\n"  # three lines
SAY = "model:\n  main:\n    - say: Hi.\n"  # three lines
DEPLOY = "tools:\n  deploy: {arguments: {release: string}}\n"  # two lines


def written(folder: Path, text: str) -> Path:
    path = folder / "s.yaml"
    path.write_text(text, encoding="utf-8")
    return path


def problem(folder: Path, text: str) -> str:
    """Return the message about a document, without its folder."""
    with pytest.raises(DocumentError) as caught:
        load_scenario(written(folder, text))
    return str(caught.value).removeprefix(f"{folder}/")


KEYS = ", ".join(sorted(SCENARIO_KEYS))
ONE = HEAD + "prompt: Go.\n" + SAY  # seven lines; the next one is line 8

BROKEN: dict[str, tuple[str, str]] = {
    "empty": ("", "s.yaml:1: expected scenario as a mapping, found nothing"),
    "not a mapping": ("- a\n", "s.yaml:1: expected scenario as a mapping, found a list"),
    "crash by a signal that ends nothing": (
        HEAD + "prompt: Go.\nmodel: {main: [{say: Hi.}]}\ncrash: {at: request.received, signal: SIGSTOP}\n",
        "s.yaml:6: unknown signal 'SIGSTOP'",
    ),
    "crash before a mode can strike": (
        HEAD
        + "prompt: Go.\nmodel: {main: [{call: deploy}]}\ntools: {deploy: {mode: error_after_commit}}\n"
        + "crash: {at: tool.committed, tool: deploy}\n",
        "s.yaml:7: call 1 of deploy has mode error_after_commit and a crash at tool.committed",
    ),
    "no such date": ("id: 2026-99-99\n", "s.yaml:1: not valid YAML: month must be in 1..12"),
    "not YAML": ("id: [\n", "s.yaml:2: not valid YAML: "),
    "key twice": (ONE + "prompt: Go.\n", "s.yaml:8: not valid YAML: found duplicate key"),
    "unknown key": (
        ONE + "expects: {}\n",
        f"s.yaml:8: unknown key 'expects' in scenario; did you mean 'expect'? Allowed: {KEYS}",
    ),
    "no id": (
        ONE.replace("id: a.b\n", ""),
        "s.yaml:1: scenario has no 'id'. Required: claim, clauses, id, model",
    ),
    "no model": (HEAD + "prompt: Go.\n", "s.yaml:1: scenario has no 'model'. Required: claim, clauses, id, model"),
    "id of the wrong type": (
        ONE.replace("a.b", "7"),
        "s.yaml:1: expected text, found a whole number 7 (in id)",
    ),
    "id that is no slug": (
        ONE.replace("a.b", "A B"),
        "s.yaml:1: 'A B' is no id; write AREA.NAME in small letters, digits and dashes (in id)",
    ),
    "claim missing its text": (ONE.replace("It works.", ""), "s.yaml:2: expected text, found nothing (in claim)"),
    "unknown clause": (
        ONE.replace("A1", "A11"),
        "s.yaml:3: unknown clause 'A11'; did you mean 'A1'? Allowed: A1, A2,",
    ),
    "clauses as text": (
        ONE.replace("[A1]", "A1"),
        "s.yaml:3: expected clauses as a list, found text 'A1' (in clauses)",
    ),
    "neither prompt nor phases": (
        HEAD + SAY,
        "s.yaml:1: a scenario has either 'prompt' (one phase) or 'phases' (a list), not both and not neither",
    ),
    "prompt and phases": (
        ONE + "phases: []\n",
        "s.yaml:1: a scenario has either 'prompt' (one phase) or 'phases' (a list), not both and not neither",
    ),
    "no phase": (HEAD + SAY + "phases: []\n", "s.yaml:7: phases is empty; at least one is needed (in phases)"),
    "crash beside phases": (
        HEAD + SAY + "phases:\n  - prompt: Go.\ncrash: {at: request.received}\n",
        "s.yaml:9: with 'phases', the crash stands in the phase that it ends (in crash)",
    ),
    "phase with prompt and resume": (
        HEAD + SAY + "phases:\n  - {prompt: Go., resume: On.}\n",
        "s.yaml:8: a phase has either 'prompt' (a new session) or 'resume' (the session goes on) (in phases[0])",
    ),
    "first phase resumes nothing": (
        HEAD + SAY + "phases:\n  - resume: On.\n",
        (
            "s.yaml:8: the first phase has nothing to resume; begin with 'prompt', or name a 'session' "
            "(in phases[0].resume)"
        ),
    ),
    "session without resume": (
        HEAD + SAY + "phases:\n  - prompt: Go.\n    session: 00000000-0000-4000-8000-000000000000\n",
        "s.yaml:9: 'session' names the session to resume, and this phase has no 'resume' (in phases[0].session)",
    ),
    "session that is no UUID": (
        HEAD + SAY + "phases:\n  - resume: Go.\n    session: mine\n",
        "s.yaml:9: expected a session id as a UUID, found text 'mine' (in phases[0].session)",
    ),
    "prompt with a zero byte": (
        ONE.replace("Go.", '"a\\0b"'),
        "s.yaml:4: a text that becomes a command's argument has no zero byte (in prompt)",
    ),
    "crash without a place": (ONE + "crash: {tool: x}\n", "s.yaml:8: crash has no 'at'. Required: at (in crash)"),
    "crash at an unknown place": (
        ONE + "crash: {at: tool.comitted}\n",
        (
            "s.yaml:8: unknown position 'tool.comitted'; did you mean 'tool.committed'? "
            "Allowed: reply.streaming, request.received, tool.called, tool.committed (in crash.at)"
        ),
    ),
    "crash by an unknown signal": (
        ONE + "crash: {at: request.received, signal: SIGKIL}\n",
        "s.yaml:8: unknown signal 'SIGKIL'; did you mean 'SIGKILL'? Allowed: ",
    ),
    "crash at a tool without tools": (
        ONE + "crash: {at: tool.called}\n",
        (
            "s.yaml:8: a crash at tool.called names a tool of this scenario's 'tools', found none; "
            "allowed: none, the scenario has no tools (in crash)"
        ),
    ),
    "crash at another tool": (
        ONE + DEPLOY + "crash: {at: tool.called, tool: refund}\n",
        (
            "s.yaml:10: a crash at tool.called names a tool of this scenario's 'tools', found refund; "
            "allowed: deploy (in crash)"
        ),
    ),
    "crash at a request with a tool": (
        ONE + DEPLOY + "crash: {at: request.received, tool: deploy}\n",
        "s.yaml:10: a crash at request.received happens in the provider and takes no 'tool' (in crash)",
    ),
    "crash at a tool with a lane": (
        ONE + DEPLOY + "crash: {at: tool.called, tool: deploy, lane: main}\n",
        "s.yaml:10: a crash at tool.called happens in the effect server and takes no 'lane' (in crash.lane)",
    ),
    "crash at a request with an event": (
        ONE + "crash: {at: request.received, event: ping}\n",
        "s.yaml:8: a crash at request.received happens before any event and takes no 'event' (in crash.event)",
    ),
    "crash in an unknown lane": (
        ONE + "crash: {at: request.received, lane: mian}\n",
        (
            "s.yaml:8: this crash can never be reached: there is no lane 'mian'; did you mean 'main'? Allowed: main "
            "(in crash)"
        ),
    ),
    "crash at a request that never comes": (
        ONE + "crash: {at: request.received, nth: 2}\n",
        "s.yaml:8: this crash can never be reached: lane 'main' answers 1 requests so, and nth is 2 (in crash)",
    ),
    "crash in a reply that has no such event": (
        ONE + "crash: {at: reply.streaming, event: message_stopp}\n",
        (
            "s.yaml:8: this crash can never be reached: reply 1 of lane 'main' has no event 'message_stopp'; "
            "did you mean 'message_stop'? Allowed: content_block_delta,"
        ),
    ),
    "crash in a reply that has fewer events": (
        ONE + "crash: {at: reply.streaming, event: message_stop, event_nth: 2}\n",
        "s.yaml:8: this crash can never be reached: reply 1 of lane 'main' has 1 of 'message_stop', not 2 (in crash)",
    ),
    "crash in a stream that is a status": (
        HEAD + "prompt: Go.\nmodel: {main: [overloaded]}\ncrash: {at: reply.streaming}\n",
        "s.yaml:6: this crash can never be reached: lane 'main' answers 0 requests so, and nth is 1 (in crash)",
    ),
    "unreachable crash in a phase": (
        HEAD + SAY + "phases:\n  - prompt: Go.\n    crash: {at: request.received, nth: 9}\n",
        (
            "s.yaml:9: this crash can never be reached: lane 'main' answers 1 requests so, and nth is 9 "
            "(in phases[0].crash)"
        ),
    ),
    "nth below one": (
        ONE + "crash: {at: request.received, nth: 0}\n",
        "s.yaml:8: expected a whole number of at least 1, found 0 (in crash.nth)",
    ),
    "unknown step": (
        ONE.replace("say: Hi.", "overlaoded"),
        "s.yaml:7: unknown step 'overlaoded'; did you mean 'overloaded'? Allowed: ",
    ),
    "unreachable fault": (
        ONE + "      fault: {cut: {event: content_block_delta, nth: 9}}\n",
        "s.yaml:8: fault 'cut' cannot be reached in step 'say': ",
    ),
    "unknown setting": (
        ONE + "settings: {max_retry: 2}\n",
        (
            "s.yaml:8: unknown key 'max_retry' in settings; did you mean 'max_retries'? Allowed: fallback_models, "
            "max_retries, max_turns, model, stream_idle_timeout_seconds"
        ),
    ),
    "setting as text": (
        ONE + 'settings: {max_retries: "2"}\n',
        "s.yaml:8: expected a whole number, found text '2' (in settings.max_retries)",
    ),
    "limit that is no limit": (
        ONE + "settings: {stream_idle_timeout_seconds: .inf}\n",
        "s.yaml:8: expected a finite number, found inf (in settings.stream_idle_timeout_seconds)",
    ),
    "wall that never falls": (
        ONE + "wall_seconds: .nan\n",
        "s.yaml:8: expected a finite number, found nan (in wall_seconds)",
    ),
    "wall too short": (
        ONE + "wall_seconds: 0\n",
        "s.yaml:8: expected a number of at least 1, found 0 (in wall_seconds)",
    ),
    "tool with a name that no API takes": (
        ONE + "tools: {de ploy: {}}\n",
        "s.yaml:8: 'de ploy' is no tool name; allowed are letters, digits, '_' and '-', at most 64 (in tools.de ploy)",
    ),
    "tool with an unknown mode": (
        ONE + "tools: {deploy: {mode: hang}}\n",
        (
            "s.yaml:8: unknown mode 'hang'. Allowed: error_after_commit, exit_after_commit, hang_after_commit, "
            "hang_before_commit, normal, slow (in tools.deploy.mode)"
        ),
    ),
    "tool with mode and modes": (
        ONE + "tools: {deploy: {mode: slow, modes: [slow]}}\n",
        "s.yaml:8: a tool has either 'mode' (every call) or 'modes' (call by call) (in tools.deploy)",
    ),
    "tool without modes": (
        ONE + "tools: {deploy: {modes: []}}\n",
        "s.yaml:8: modes is empty; at least one is needed (in tools.deploy.modes)",
    ),
    "tool that reads and fails after the commit": (
        ONE + "tools: {look: {read_only: true, mode: error_after_commit}}\n",
        "s.yaml:8: a read_only tool commits nothing, so 'error_after_commit' can never strike (in tools.look)",
    ),
    "argument of an unknown type": (
        ONE + "tools: {deploy: {arguments: {release: text}}}\n",
        (
            "s.yaml:8: unknown argument type 'text'. Allowed: array, boolean, integer, number, object, string "
            "(in tools.deploy.arguments.release)"
        ),
    ),
    "hook without a reason": (
        ONE + "hooks:\n  - {event: stop}\n",
        "s.yaml:9: hook has no 'reason'. Required: event, reason (in hooks[0])",
    ),
    "hook at an unknown event": (
        ONE + "hooks:\n  - {event: pre-tool, reason: No.}\n",
        "s.yaml:9: unknown hook event 'pre-tool'; did you mean 'pre_tool'? Allowed: pre_tool, stop (in hooks[0].event)",
    ),
    "stop hook of a tool": (
        ONE + "hooks:\n  - {event: stop, reason: No., tool: Bash}\n",
        "s.yaml:9: a stop hook is asked about no tool (in hooks[0].tool)",
    ),
    "workspace outside": (
        ONE + "workspace:\n  ../a: x\n",
        "s.yaml:9: '../a' is no path inside the workspace, like 'folder/note.txt' (in workspace.../a)",
    ),
    "workspace at the root": (
        ONE + "workspace:\n  /a: x\n",
        "s.yaml:9: '/a' is no path inside the workspace, like 'folder/note.txt' (in workspace./a)",
    ),
    "workspace without a name": (
        ONE + 'workspace:\n  "": x\n',
        "s.yaml:9: '' is no path inside the workspace, like 'folder/note.txt' (in workspace.)",
    ),
    "file that is a folder too": (
        ONE + "workspace:\n  a: x\n  a/b: y\n",
        "s.yaml:10: 'a/b' lies inside 'a', which is a file (in workspace.a/b)",
    ),
    "unknown expectation": (
        ONE + "expect: {turn: 1}\n",
        "s.yaml:8: unknown key 'turn' in expect; did you mean 'turns'? Allowed: ",
    ),
    "unknown terminal": (
        ONE + "expect: {terminal: complete}\n",
        "s.yaml:8: unknown terminal reason 'complete'; did you mean 'completed'? Allowed: ",
    ),
    "exit as a word": (
        ONE + "expect: {exit: zero}\n",
        "s.yaml:8: expected an exit code, or the word nonzero, found text 'zero' (in expect.exit)",
    ),
    "exit below zero": (
        ONE + "expect: {exit: -9}\n",
        "s.yaml:8: expected a whole number of at least 0, found -9 (in expect.exit)",
    ),
    "effect of an unknown tool": (
        ONE + DEPLOY + "expect:\n  effects: {deplo: 1}\n",
        "s.yaml:11: unknown key 'deplo' in tool counts; did you mean 'deploy'? Allowed: deploy",
    ),
    "count of a hook that is not there": (
        ONE + "hooks:\n  - {event: stop, reason: No.}\nexpect:\n  hooks: {pre_tool: 0}\n",
        "s.yaml:11: unknown key 'pre_tool' in hook event counts. Allowed: stop",
    ),
    "result without a tool": (
        ONE + "expect:\n  results:\n    - {error: true}\n",
        "s.yaml:10: result has no 'tool'. Required: tool (in expect.results[0])",
    ),
    "file with nothing said": (
        ONE + "expect:\n  files:\n    a.txt: {}\n",
        "s.yaml:10: a file has exactly one of 'equals', 'contains', 'absent' (in expect.files.a.txt)",
    ),
    "file that no listing names so": (
        ONE + "expect:\n  files:\n    ./a.txt: {absent: true}\n",
        "s.yaml:10: './a.txt' is no path inside the workspace, like 'folder/note.txt' (in expect.files../a.txt)",
    ),
    "request text without a number": (
        ONE + "expect:\n  request_contains: {one: x}\n",
        "s.yaml:9: expected a request number from 1 and a text, found 'one': 'x' (in expect.request_contains)",
    ),
    "request number as a flag": (
        ONE + "expect:\n  request_contains: {true: x}\n",
        "s.yaml:9: expected a request number from 1 and a text, found True: 'x' (in expect.request_contains)",
    ),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_scenario_is_refused_with_its_line(name: str, tmp_path: Path) -> None:
    text, expected = BROKEN[name]
    found = problem(tmp_path, text)
    assert found.startswith(expected), found
    assert "\n" not in found


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(DocumentError) as caught:
        load_scenario(tmp_path / "none.yaml")
    assert str(caught.value) == f"{tmp_path}/none.yaml:1: cannot read the file: No such file or directory"


WHOLE = """\
id: tool.everything
claim: Every key is read.
clauses: [N4, N5]
phases:
  - prompt: Go.
    crash: {at: tool.committed, tool: deploy, nth: 2, signal: SIGTERM}
  - resume: Go on.
    crash: {at: reply.streaming, lane: title, nth: 1, event: message_stop, event_nth: 1}
  - resume: And on.
    session: 00000000-0000-4000-8000-000000000000
settings: {model: m, fallback_models: [f, g], max_retries: 0, max_turns: 3, stream_idle_timeout_seconds: 1.5}
model:
  title: {match: {has_tools: false}, steps: [{say: A title.}]}
  main:
    - {say: Hi., fault: {cut: {event: message_start}}, times: 2}
tools:
  deploy:
    description: Deploys.
    arguments: {release: string, fast: boolean}
    modes: [normal, slow, exit_after_commit]
    delay_seconds: 0
  look: {read_only: true}
  refund: {mode: hang_before_commit}
hooks:
  - {event: pre_tool, reason: No., tool: Bash, times: 2}
  - {event: stop, reason: Once more.}
workspace: {a.txt: "one\\n", folder/b.txt: ""}
expect:
  models: [m, f]
  requests: 2
  turns: 1
  terminal: max_turns
  subtype: error_max_turns
  exit: nonzero
  effects: {deploy: 2, look: 0}
  results: [{tool: deploy, error: true, contains: lost}, {tool: Bash}]
  files: {a.txt: {equals: ""}, b.txt: {contains: x}, c.txt: {absent: true}}
  answer_contains: Done
  request_contains: {2: more}
  output_contains: Error
  hooks: {stop: 1}
wall_seconds: 30
"""

READ = Scenario(
    id="tool.everything",
    claim="Every key is read.",
    clauses=("N4", "N5"),
    phases=(
        Phase("Go.", crash=Crash(Position.TOOL_COMMITTED, "SIGTERM", "deploy", nth=2)),
        Phase(
            "Go on.",
            resume=True,
            crash=Crash(Position.REPLY_STREAMING, lane="title", event="message_stop"),
        ),
        Phase("And on.", resume=True, session="00000000-0000-4000-8000-000000000000"),
    ),
    model={
        "title": {"match": {"has_tools": False}, "steps": [{"say": "A title."}]},
        "main": [{"say": "Hi.", "fault": {"cut": {"event": "message_start"}}, "times": 2}],
    },
    settings=Settings("m", ("f", "g"), 0, 3, 1.5),
    tools=(
        EffectTool(
            "deploy",
            "Deploys.",
            {"release": "string", "fast": "boolean"},
            (EffectMode.NORMAL, EffectMode.SLOW, EffectMode.EXIT_AFTER_COMMIT),
            delay_seconds=0.0,
        ),
        EffectTool("look", "Does look.", {}, read_only=True),
        EffectTool("refund", "Does refund.", {}, (EffectMode.HANG_BEFORE_COMMIT,)),
    ),
    hooks=(Hook(HookEvent.PRE_TOOL, "No.", "Bash", 2), Hook(HookEvent.STOP, "Once more.")),
    workspace={"a.txt": "one\n", "folder/b.txt": ""},
    expect=Expectation(
        models=("m", "f"),
        requests=2,
        turns=1,
        terminal="max_turns",
        subtype="error_max_turns",
        exit="nonzero",
        effects={"deploy": 2, "look": 0},
        results=(ResultExpectation("deploy", True, "lost"), ResultExpectation("Bash")),
        files=(
            FileExpectation("a.txt", equals=""),
            FileExpectation("b.txt", contains="x"),
            FileExpectation("c.txt", absent=True),
        ),
        answer_contains="Done",
        request_contains={2: "more"},
        output_contains="Error",
        hooks={"stop": 1},
    ),
    wall_seconds=30.0,
    faults_declared=(
        "lane main: say: cut",
        "lane main: say: cut",
        "tool deploy call 2: slow",
        "tool deploy call 3 and later: exit_after_commit",
        "tool refund every call: hang_before_commit",
        "phase 1: SIGTERM at tool.committed",
        "phase 2: SIGKILL at reply.streaming",
    ),
)


def test_every_key_is_read(tmp_path: Path) -> None:
    loaded = load_scenario(written(tmp_path, WHOLE))
    assert loaded.scenario == READ
    assert loaded.text == WHOLE
    assert len(loaded.digest) == 64
    assert [lane.name for lane in loaded.script.lanes] == ["title", "main"]
    top = {line.partition(":")[0] for line in WHOLE.splitlines() if not line.startswith(" ")}
    assert top == SCENARIO_KEYS - {"prompt", "crash"}, "a new key has to be in this document too"
    assert set(SETTING_READERS) == set(Settings.__struct_fields__)
    assert loaded.scenario.settings.given().keys() == set(Settings.__struct_fields__)
    expect = loaded.scenario.expect
    unread = [name for name in Expectation.__struct_fields__ if getattr(expect, name) == getattr(Expectation(), name)]
    assert unread == [], "an expectation that is allowed and not read can never fail"


def test_one_prompt_is_one_phase(tmp_path: Path) -> None:
    loaded = load_scenario(written(tmp_path, ONE + "crash: {at: request.received}\n"))
    assert loaded.scenario.phases == (Phase("Go.", crash=Crash(Position.REQUEST_RECEIVED)),)
    assert loaded.scenario.wall_seconds == 60.0
    assert loaded.scenario.expect == Expectation()


def test_a_policy_may_be_asked_more_often_than_it_has_steps(tmp_path: Path) -> None:
    text = HEAD + "prompt: Go.\nmodel: {main: [{insist: {call: x}}]}\ncrash: {at: request.received, nth: 5}\n"
    assert load_scenario(written(tmp_path, text)).scenario.phases[0].crash is not None


def test_the_provider_of_a_scenario_is_strict_and_speaks_what_the_runtimes_speak(tmp_path: Path) -> None:
    script = load_scenario(written(tmp_path, ONE)).script
    assert (script.strict, script.dialects, script.every_dialect) == (True, ("anthropic_messages",), True)


def test_a_fault_in_a_repeat_is_declared_as_often_as_it_is_played(tmp_path: Path) -> None:
    text = (
        HEAD
        + """\
prompt: Go.
model:
  main:
    - repeat:
        times: 2
        steps: [{say: a, close: {}}, {windowed: {tokens: 9, steps: [{insist: {call: x}, close: {}}]}}]
    - {say: b, close: {}, times: 1000000}
  title: {match: {has_tools: false}, steps: [{say: c, close: {}, forever: true}]}
"""
    )
    declared = load_scenario(written(tmp_path, text)).scenario.faults_declared
    assert declared[:4] == ("lane main: say: close", "lane main: insist x: close") * 2
    assert declared[4:] == ("lane main: say: close",) * 1000 + ("lane title: say: close",)


@pytest.mark.parametrize(
    ("call", "crash", "reason"),
    [
        ("{say: a, times: 3}", "{at: request.received, nth: 4}", "lane 'main' answers 3 requests so, and nth is 4"),
        ("{say: a, times: 3}", "{at: request.received, nth: 3}", None),
        ("{say: a, forever: true}", "{at: request.received, nth: 400}", None),
        ("{say: a, forever: true}", "{at: reply.streaming, nth: 4, event: pong}", "has no event 'pong'"),
        ("{error: overloaded, forever: true}", "{at: reply.streaming}", "lane 'main' answers 0 requests so"),
        ("{say: a}", "{at: reply.streaming, event: text}", None),
        ("{say: a}", "{at: reply.streaming, event: text, event_nth: 2}", "has 1 of 'text', not 2"),
    ],
)
def test_a_crash_is_looked_for_in_repeats_and_at_places(
    call: str, crash: str, reason: str | None, tmp_path: Path
) -> None:
    text = HEAD + f"prompt: Go.\nmodel: {{main: [{call}]}}\ncrash: {crash}\n"
    if reason is None:
        assert load_scenario(written(tmp_path, text)).scenario.phases[0].crash is not None
    else:
        assert reason in problem(tmp_path, text)


TYPED = """\
tools:
  deploy: {arguments: {release: string, fast: boolean, parts: array, size: number, count: integer, more: object}}
"""
RIGHT = "{release: '7', fast: true, parts: [], size: 1, count: 1, more: {}}"


@pytest.mark.parametrize(
    ("step", "warning"),
    [
        (f"{{call: deploy, with: {RIGHT}}}", None),
        ("{call: Bash, with: {anything: 1}}", None),
        ("{call: deploy, arguments: '{'}", None),
        ("{call: deplyo}", "calls 'deplyo', which is no tool of this scenario; did you mean 'deploy'? Allowed: Bash, "),
        (
            "{call: deploy}",
            "calls 'deploy' with no arguments; it is declared with count, fast, more, parts, release, size",
        ),
        (
            f"{{call: deploy, with: {RIGHT.replace('fast', 'slow')}}}",
            "calls 'deploy' with count, more, parts, release, ",
        ),
        (f"{{call: deploy, with: {RIGHT.replace('true', '1')}}}", "calls 'deploy' with fast: 1, which is no boolean"),
        (f"{{call: deploy, with: {RIGHT.replace('size: 1', 'size: true')}}}", "with size: True, which is no number"),
        (f"{{call: deploy, with: {RIGHT.replace('count: 1', 'count: 1.5')}}}", "with count: 1.5, which is no integer"),
        (
            "{windowed: {tokens: 9, steps: [{insist: {call: shout}}]}}",
            "step 'insist shout' in lane 'main': calls 'shout'",
        ),
    ],
)
def test_a_call_that_no_tool_can_take_is_warned_about(step: str, warning: str | None, tmp_path: Path) -> None:
    text = HEAD + f"prompt: Go.\nmodel:\n  main:\n    - {step}\n{TYPED}"
    warnings = load_scenario(written(tmp_path, text)).warnings
    if warning is None:
        assert warnings == ()
    else:
        [found] = warnings
        assert warning in found
        assert found.startswith(f"{tmp_path}/s.yaml:7: step '")


def test_every_argument_type_is_known_in_python() -> None:
    assert set(JSON_TYPES) == ARGUMENT_TYPES


NEEDS: dict[Capability, str] = {
    Capability.RESUME: HEAD + SAY + "phases:\n  - prompt: Go.\n  - resume: On.\n",
    Capability.MCP_TOOLS: ONE + DEPLOY,
    Capability.PRE_TOOL_HOOK: ONE + "hooks: [{event: pre_tool, reason: No.}]\n",
    Capability.STOP_HOOK: ONE + "hooks: [{event: stop, reason: No.}]\n",
    Capability.MODEL_FALLBACK: ONE + "settings: {fallback_models: [f]}\n",
    Capability.RETRY_LIMIT: ONE + "settings: {max_retries: 0}\n",
    Capability.TURN_LIMIT: ONE + "settings: {max_turns: 1}\n",
    Capability.STREAM_IDLE_LIMIT: ONE + "settings: {stream_idle_timeout_seconds: 0}\n",
    Capability.TERMINAL_REASON: ONE + "expect: {terminal: completed}\n",
    Capability.TURN_COUNT: ONE + "expect: {turns: 0}\n",
    Capability.SHELL_TOOL: ONE.replace("say: Hi.", "{call: Bash, with: {command: ls}}"),
    Capability.FILE_TOOLS: ONE.replace("say: Hi.", "{reply: {blocks: [{tool_use: {name: Write}}]}}"),
}


@pytest.mark.parametrize("capability", NEEDS)
def test_what_a_scenario_uses_is_what_it_needs(capability: Capability, tmp_path: Path) -> None:
    assert load_scenario(written(tmp_path, NEEDS[capability])).scenario.needs() == {capability}


def test_a_plain_scenario_needs_nothing(tmp_path: Path) -> None:
    assert load_scenario(written(tmp_path, ONE)).scenario.needs() == frozenset()


def test_an_effect_tool_may_have_a_built_in_name(tmp_path: Path) -> None:
    text = ONE.replace("say: Hi.", "{call: Bash}") + "tools: {Bash: {}}\n"
    assert load_scenario(written(tmp_path, text)).scenario.needs() == {Capability.MCP_TOOLS}


FILES = sorted(SCENARIOS.rglob("*.yaml"))


def test_there_are_scenarios() -> None:
    assert len(FILES) >= 10


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(SCENARIOS)))
def test_a_scenario_of_the_repository_loads_under_its_own_name(path: Path) -> None:
    scenario = load_scenario(path).scenario
    assert scenario.id == str(path.relative_to(SCENARIOS).with_suffix("")).replace("/", ".")
    assert scenario.claim.endswith(".")
    assert scenario.clauses


# --- random damage

VALUES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-2, 3),
    st.floats(),
    st.text(max_size=3),
    st.sampled_from(["main", "deploy", "SIGTERM", "nonzero", "request.received", "insist"]),
    st.lists(st.integers(0, 2) | st.text(max_size=2), max_size=2),
    st.dictionaries(st.text(max_size=3) | st.integers(0, 2), st.integers(0, 2) | st.text(max_size=2), max_size=2),
)
ACTIONS = st.sampled_from(["replace", "remove", "rename", "repeat"])


def damage(value: Any, path: list[int], action: str, replacement: Any) -> Any:
    """Change one place of a document, found by choosing a child at each level."""
    if isinstance(value, dict) and value and path:
        key = sorted(value, key=str)[path[0] % len(value)]
        if len(path) > 1 and isinstance(value[key], dict | list) and value[key]:
            value[key] = damage(value[key], path[1:], action, replacement)
        elif action == "remove":
            del value[key]
        elif action == "rename":
            value[replacement if isinstance(replacement, str) else "x"] = value.pop(key)
        else:
            value[key] = replacement
    elif isinstance(value, list) and value and path:
        index = path[0] % len(value)
        if len(path) > 1 and isinstance(value[index], dict | list) and value[index]:
            value[index] = damage(value[index], path[1:], action, replacement)
        elif action == "remove":
            del value[index]
        elif action == "repeat":
            value.append(copy.deepcopy(value[index]))
        else:
            value[index] = replacement
    return value


PLAIN = YAML(typ="safe").load(WHOLE)


def assert_placed(error: DocumentError, path: Path) -> None:
    assert str(error).startswith(f"{path}:")


@settings(max_examples=30, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(changes=st.lists(st.tuples(st.lists(st.integers(0, 20), min_size=1, max_size=6), ACTIONS, VALUES), max_size=3))
def test_damage_raises_nothing_but_document_errors(changes: list[tuple[list[int], str, Any]], tmp_path: Path) -> None:
    document = copy.deepcopy(PLAIN)
    for steps, action, replacement in changes:
        document = damage(document, steps, action, copy.deepcopy(replacement))
    text = io.StringIO()
    YAML().dump(document, text)
    path = written(tmp_path, text.getvalue())
    try:
        load_scenario(path)
    except DocumentError as error:
        assert_placed(error, path)


@settings(max_examples=60, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    start=st.integers(0, len(WHOLE)), length=st.integers(0, 40), junk=st.text("[]{}:-#&*!|>'\"%@ \n\tab0", max_size=6)
)
def test_cut_and_spliced_text_raises_nothing_but_document_errors(
    start: int, length: int, junk: str, tmp_path: Path
) -> None:
    path = written(tmp_path, WHOLE[:start] + junk + WHOLE[start + length :])
    try:
        load_scenario(path)
    except DocumentError as error:
        assert_placed(error, path)


@pytest.mark.parametrize("path", sorted(SCENARIOS.rglob("*.yaml")), ids=lambda path: path.stem)
def test_a_scenario_that_counts_requests_has_an_answer_to_spare(path: Path) -> None:
    """One request too many would else use up the script, and make the run inconclusive instead of red."""
    loaded = load_scenario(path)
    expect = loaded.scenario.expect
    counted = max(expect.requests or 0, len(expect.models or ()))
    lanes = {lane.name: lane.steps for lane in loaded.script.lanes}
    assert counted == 0 or len(lanes["main"]) > counted
