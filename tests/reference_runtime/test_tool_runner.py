"""The order around a tool call: checks before anything durable, the start on disk before the work, one result each."""

import asyncio
import errno
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from reference_runtime.digests import arguments_digest
from reference_runtime.permissions import PermissionMode, Permissions
from reference_runtime.recovery.hooks import HookEvent
from reference_runtime.recovery.receipts import Effect
from reference_runtime.recovery.terminals import Signal, Terminal
from reference_runtime.recovery.tools import ToolFailure
from reference_runtime.settings import HookCommand
from reference_runtime.tools.tool import CallIdentity, ToolAnswer, ToolInterruptedError, ToolSpec, text_answer
from tests.reference_runtime.bench import SESSION_ID, AgentBench, StandInTool, calling
from tests.reference_runtime.parts import Scripted, message_events, said, sse, tool_block

PRE, POST = HookEvent.PRE_TOOL_USE, HookEvent.POST_TOOL_USE


def hook(event: HookEvent, command: str, matcher: str | None = None, timeout_seconds: float = 30) -> HookCommand:
    return HookCommand(event, matcher, command, timeout_seconds)


def say_json(value: object) -> str:
    return f"echo '{json.dumps(value)}'"


class WitnessTool(StandInTool):
    """Reads what is on disk at the moment when it runs."""

    def __init__(self, name: str, path: Path) -> None:
        super().__init__(name)
        self._path = path
        self.seen: list[dict[str, Any]] = []

    async def run(self, arguments: Mapping[str, Any], identity: CallIdentity) -> ToolAnswer:
        self.seen = [json.loads(line) for line in self._path.read_text().splitlines()]
        return await super().run(arguments, identity)


async def test_receipt_and_start_are_on_disk_when_the_tool_runs(tmp_path: Path) -> None:
    deploy = WitnessTool("deploy", tmp_path / "sessions" / f"{SESSION_ID}.jsonl")
    bench = AgentBench(tmp_path, calling(("t1", "deploy")), said("x"), tools=[deploy])
    await bench.run()
    assert [line["kind"] for line in deploy.seen][-3:] == ["message", "receipt", "tool_started"]
    receipt, start = deploy.seen[-2:]
    (identity,) = deploy.identities
    assert receipt["attempt_id"] == start["attempt_id"] == identity.attempt_id
    assert receipt["idempotency_key"] == identity.idempotency_key
    assert receipt["digest"] == arguments_digest({"release": "7"})
    assert {receipt[name] for name in ("session_id", "call_id", "tool", "effect")} == {
        SESSION_ID,
        "t1",
        "deploy",
        "write",
    }
    after = [json.loads(line) for line in bench.session.path.read_text().splitlines()]
    (result,) = [line for line in after if line["kind"] == "result_confirmed"]
    assert (result["attempt_id"], result["content"]) == (identity.attempt_id, [{"type": "text", "text": "done"}])


@pytest.mark.parametrize(
    ("name", "arguments", "told"),
    [
        ("nothing", {}, "there is no tool nothing; there are: deploy"),
        ("deploy", {}, "invalid input for deploy: input.release is missing"),
        ("deploy", {"release": 7}, "invalid input for deploy: input.release is int; allowed is string"),
    ],
)
async def test_a_wrong_call_is_refused_before_anything_durable(
    tmp_path: Path, name: str, arguments: dict[str, Any], told: str
) -> None:
    deploy = StandInTool("deploy")
    wrong = Scripted([sse(*message_events(tool_block("t1", name, arguments), stop_reason="tool_use"))])
    bench = AgentBench(tmp_path, wrong, said("x"), tools=[deploy], hooks=[hook(PRE, "touch hooked")])
    assert (await bench.run()).terminal is Terminal.COMPLETED
    assert (deploy.calls, bench.results()) == ([], {"t1": (True, told)})
    assert '"receipt"' not in bench.session.path.read_text()
    assert not (tmp_path / "hooked").exists()


DENY = say_json({"hookSpecificOutput": {"permissionDecision": "deny", "permissionDecisionReason": "because"}})


@pytest.mark.parametrize("command", [DENY, "echo because >&2; exit 2"])
async def test_a_denying_hook_keeps_the_tool_from_running(tmp_path: Path, command: str) -> None:
    deploy = StandInTool("deploy")
    bench = AgentBench(
        tmp_path, calling(("t1", "deploy")), said("x"), tools=[deploy], hooks=[hook(PRE, command, "deploy|other")]
    )
    outcome = await bench.run()
    assert (outcome.terminal, outcome.num_turns, deploy.calls) == (Terminal.COMPLETED, 2, [])
    assert bench.results() == {"t1": (True, "a hook denied deploy: because")}
    assert [frame["outcome"] for frame in bench.sink.of("hook")] == ["deny"]


async def test_a_hook_that_does_not_fit_is_not_asked(tmp_path: Path) -> None:
    bench = AgentBench(
        tmp_path,
        calling(("t1", "deploy")),
        said("x"),
        tools=[StandInTool("deploy")],
        hooks=[hook(PRE, DENY, "deplo"), hook(PRE, DENY, "(")],
    )
    await bench.run()
    assert bench.results() == {"t1": (False, "done")}


async def test_an_allowing_hook_takes_the_place_of_the_question(tmp_path: Path) -> None:
    deploy = StandInTool("deploy")
    allow = say_json({"hookSpecificOutput": {"hookEventName": "PreToolUse", "permissionDecision": "allow"}})
    bench = AgentBench(
        tmp_path,
        calling(("t1", "deploy")),
        said("x"),
        tools=[deploy],
        hooks=[hook(PRE, allow)],
        mode=PermissionMode.ASK,
    )
    await bench.run()
    assert len(deploy.calls) == 1


BROKEN = ["exit 3", "kill -9 $$", "echo nonsense", "echo '[1]'", say_json({"decision": "approve"})]


@pytest.mark.parametrize("command", BROKEN)
@pytest.mark.parametrize("event", [PRE, POST])
async def test_a_broken_hook_neither_blocks_nor_hides_and_is_told(
    tmp_path: Path, event: HookEvent, command: str
) -> None:
    deploy = StandInTool("deploy")
    bench = AgentBench(tmp_path, calling(("t1", "deploy")), said("x"), tools=[deploy], hooks=[hook(event, command)])
    assert (await bench.run()).terminal is Terminal.COMPLETED
    is_error, text = bench.results()["t1"]
    assert (len(deploy.calls), is_error) == (1, False)
    assert text.startswith("done\nHook error: ")


async def test_a_hook_that_hangs_is_ended(tmp_path: Path) -> None:
    deploy = StandInTool("deploy")
    slow = hook(PRE, "sleep 600", timeout_seconds=0.05)
    bench = AgentBench(tmp_path, calling(("t1", "deploy")), said("x"), tools=[deploy], hooks=[slow])
    await bench.run()
    assert bench.sink.of("hook")[0]["detail"] == "the hook gave no answer within 0.05 s"
    assert len(deploy.calls) == 1


async def test_a_post_hook_may_replace_the_output_or_add_to_it(tmp_path: Path) -> None:
    replace = say_json({"hookSpecificOutput": {"hookEventName": "PostToolUse", "updatedToolOutput": "short"}})
    block = say_json({"decision": "block", "reason": "look again"})
    bench = AgentBench(
        tmp_path,
        calling(("t1", "deploy")),
        said("x"),
        tools=[StandInTool("deploy")],
        hooks=[hook(POST, replace), hook(POST, block)],
    )
    await bench.run()
    assert bench.results() == {"t1": (False, "short\nA hook says: look again")}


@pytest.mark.parametrize(("event", "ran"), [(PRE, 0), (POST, 1)])
async def test_a_hook_may_end_the_run_and_every_call_is_still_answered(
    tmp_path: Path, event: HookEvent, ran: int
) -> None:
    deploy = StandInTool("deploy")
    stop = hook(event, say_json({"continue": False, "stopReason": "enough"}))
    bench = AgentBench(tmp_path, calling(("t1", "deploy"), ("t2", "deploy")), tools=[deploy], hooks=[stop])
    outcome = await bench.run()
    assert (outcome.terminal, outcome.ending.exit_code) == (Terminal.HOOK_STOPPED, 1)
    assert (len(deploy.calls), set(bench.results())) == (ran, {"t1", "t2"})
    assert bench.results()["t2"] == (True, "not started: the run was stopped by a hook: enough")


async def test_an_abort_during_a_hook_keeps_what_the_tool_did(tmp_path: Path) -> None:
    deploy = StandInTool("deploy")
    os.mkfifo(tmp_path / "ready")
    bench = AgentBench(
        tmp_path,
        calling(("t1", "deploy"), ("t2", "deploy")),
        tools=[deploy],
        hooks=[hook(POST, "echo > ready; sleep 600")],
    )
    running = asyncio.create_task(bench.run())
    await asyncio.to_thread((tmp_path / "ready").read_text)
    bench.signal = Signal.TERMINATE
    running.cancel()
    assert (await running).terminal is Terminal.ABORTED_TOOLS
    assert bench.results() == {"t1": (False, "done"), "t2": (True, "not started: the run was aborted")}


@pytest.mark.parametrize(("kind", "ran"), [("receipt", 0), ("tool_started", 0), ("result_confirmed", 1)])
async def test_a_record_that_cannot_be_kept_ends_the_run_before_anything_else_happens(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, ran: int
) -> None:
    deploy = StandInTool("deploy")
    bench = AgentBench(tmp_path, calling(("t1", "deploy"), ("t2", "deploy")), tools=[deploy])
    real = os.write

    def write(descriptor: int, data: bytes) -> int:
        if f'"kind": "{kind}"'.encode() in data:
            raise OSError(errno.ENOSPC, "No space left on device")
        return real(descriptor, data)

    monkeypatch.setattr(os, "write", write)
    outcome = await bench.run()
    assert (outcome.terminal, outcome.ending.exit_code) == (Terminal.RECOVERY_REQUIRED, 1)
    assert len(deploy.calls) == ran
    assert len(outcome.errors) >= 1
    assert "No space left on device" in outcome.errors[0]


async def test_a_hook_is_given_what_it_needs(tmp_path: Path) -> None:
    hooks = [hook(PRE, "cat > before"), hook(POST, "cat > after")]
    await AgentBench(tmp_path, calling(("t1", "deploy")), said("x"), tools=[StandInTool("deploy")], hooks=hooks).run()
    before, after = (json.loads((tmp_path / name).read_text()) for name in ("before", "after"))
    assert (before["hook_event_name"], before["tool_name"], before["tool_input"]) == (
        "PreToolUse",
        "deploy",
        {"release": "7"},
    )
    assert before["session_id"] == SESSION_ID
    assert Path(before["transcript_path"]).exists()
    assert after["tool_response"] == [{"type": "text", "text": "done"}]


async def test_a_tool_that_is_gone_is_refused_without_a_receipt(tmp_path: Path) -> None:
    deploy = StandInTool("deploy", Effect.WRITE, gone="its server ended")
    bench = AgentBench(tmp_path, calling(("t1", "deploy")), said("x"), tools=[deploy])
    assert (await bench.run()).terminal is Terminal.COMPLETED
    assert bench.results() == {"t1": (True, "deploy is not there: its server ended")}
    assert bench.session.ledger.receipts() == ()


@pytest.mark.parametrize("failure", [ToolFailure.TIMED_OUT, ToolFailure.CONNECTION_LOST])
async def test_an_interrupted_read_is_an_ordinary_failure(tmp_path: Path, failure: ToolFailure) -> None:
    look = StandInTool("look", Effect.READ_ONLY, ToolInterruptedError(failure, "no answer"))
    deploy = StandInTool("deploy")
    bench = AgentBench(tmp_path, calling(("t1", "look")), calling(("t2", "deploy")), said("x"), tools=[look, deploy])
    assert (await bench.run()).terminal is Terminal.COMPLETED
    assert bench.results() == {"t1": (True, "no answer"), "t2": (False, "done")}


async def test_whatever_a_tool_raises_is_a_result_and_a_broken_write_is_unknown(tmp_path: Path) -> None:
    look = StandInTool("look", Effect.READ_ONLY, ZeroDivisionError("oops"))
    deploy = StandInTool("deploy", Effect.WRITE, ZeroDivisionError("oops"))
    bench = AgentBench(
        tmp_path, calling(("t1", "look"), ("t2", "deploy"), ("t3", "deploy")), said("x"), tools=[look, deploy]
    )
    assert (await bench.run()).terminal is Terminal.RECOVERY_REQUIRED
    assert bench.results()["t1"] == (True, "the tool broke off with ZeroDivisionError: oops")
    assert "The outcome of call t2 of tool deploy is unknown" in bench.results()["t2"][1]
    assert len(deploy.calls) == 1


def test_permission_is_by_name_or_by_the_beginning_of_a_name() -> None:
    def denied(mode: PermissionMode, patterns: tuple[str, ...], name: str, effect: Effect = Effect.WRITE) -> bool:
        return Permissions(mode, patterns).denial(ToolSpec(name, "", {}, effect)) is not None

    assert denied(PermissionMode.ASK, (), "Write")
    assert denied(PermissionMode.ASK, ("Writ",), "Write")
    assert not denied(PermissionMode.ASK, ("Write",), "Write")
    assert not denied(PermissionMode.ASK, ("mcp__a__*",), "mcp__a__deploy")
    assert denied(PermissionMode.ASK, ("mcp__a__*",), "mcp__b__deploy")
    assert not denied(PermissionMode.ASK, (), "Read", Effect.READ_ONLY)
    assert not denied(PermissionMode.BYPASS, (), "Write")


async def test_an_empty_output_is_never_an_empty_text(tmp_path: Path) -> None:
    look = StandInTool("look", Effect.READ_ONLY, text_answer(" \n"))
    bench = AgentBench(tmp_path, calling(("t1", "look")), said("x"), tools=[look])
    await bench.run()
    assert bench.results() == {"t1": (False, "(no output)")}
