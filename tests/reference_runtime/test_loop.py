"""The agent loop over a scripted transport: turns, budgets, tools, Stop hooks, endings."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from reference_runtime.permissions import PermissionMode
from reference_runtime.recovery.hooks import HookEvent
from reference_runtime.recovery.receipts import Effect
from reference_runtime.recovery.terminals import Signal, Terminal
from reference_runtime.recovery.tools import ToolFailure
from reference_runtime.settings import HookCommand
from reference_runtime.tools.tool import CallIdentity, ToolAnswer, ToolInterruptedError, text_answer
from tests.reference_runtime.bench import AgentBench, StandInTool, calling
from tests.reference_runtime.parts import (
    Cut,
    Scripted,
    Silence,
    failed,
    message_events,
    said,
    sse,
    text_block,
    thinking_block,
    tool_block,
)

THINKING = thinking_block("hm")


def reply(*blocks: dict[str, Any], stop_reason: str) -> Scripted:
    return Scripted([sse(*message_events(*blocks, stop_reason=stop_reason))])


def stop_hook(command: str, event: HookEvent = HookEvent.STOP) -> HookCommand:
    return HookCommand(event, None, command, 30)


BLOCK_STOP = "echo 'not yet' >&2; exit 2"


async def test_saying_hi_is_one_turn(tmp_path: Path) -> None:
    outcome = await AgentBench(tmp_path, said("Hi.")).run()
    assert (outcome.terminal, outcome.num_turns, outcome.text) == (Terminal.COMPLETED, 1, "Hi.")
    frame = outcome.frame()
    assert (frame["subtype"], frame["is_error"], frame["stop_reason"]) == ("success", False, "end_turn")
    assert frame["usage"] == {
        "input_tokens": 3,
        "output_tokens": 7,
        "cache_read_input_tokens": 0,
        "cache_creation_input_tokens": 0,
    }


async def test_a_tool_round_trip_is_two_turns(tmp_path: Path) -> None:
    deploy = StandInTool("deploy")
    bench = AgentBench(tmp_path, calling(("t1", "deploy")), said("Done."), tools=[deploy])
    outcome = await bench.run()
    assert (outcome.terminal, outcome.num_turns) == (Terminal.COMPLETED, 2)
    assert deploy.calls == [{"release": "7"}]
    assert bench.results() == {"t1": (False, "done")}
    assert bench.transport.headers[1]["x-crashcart-turn"] == "2"
    assert bench.transport.headers[0]["x-crashcart-request"] != bench.transport.headers[1]["x-crashcart-request"]


async def test_attempts_and_fallbacks_raise_no_turn(tmp_path: Path) -> None:
    overloaded = [failed(529, "overloaded_error")] * 3
    bench = AgentBench(tmp_path, *overloaded, said("Done."), models=("a", "b"))
    outcome = await bench.run()
    assert (outcome.num_turns, bench.counters.http_attempts, bench.counters.model_fallbacks) == (1, 4, 1)
    assert {headers["x-crashcart-turn"] for headers in bench.transport.headers} == {"1"}


async def test_at_max_turns_the_tool_runs_and_the_model_is_not_asked(tmp_path: Path) -> None:
    deploy = StandInTool("deploy")
    hook = stop_hook("touch after", HookEvent.POST_TOOL_USE)
    bench = AgentBench(tmp_path, calling(("t1", "deploy")), tools=[deploy], hooks=[hook], max_turns=1)
    outcome = await bench.run()
    assert (outcome.terminal, outcome.num_turns) == (Terminal.MAX_TURNS, 1)
    assert (outcome.frame()["subtype"], outcome.ending.exit_code) == ("error_max_turns", 1)
    assert len(deploy.calls) == 1
    assert (tmp_path / "after").exists()
    assert len(bench.transport.bodies) == 1


async def test_a_cut_call_never_runs_and_its_half_is_never_sent_again(tmp_path: Path) -> None:
    deploy = StandInTool("deploy")
    half = sse(*message_events(tool_block("t1", "deploy", {"release": "7"}))[:4])
    bench = AgentBench(tmp_path, Scripted([half, Cut()]), said("Done."), tools=[deploy])
    outcome = await bench.run()
    assert (outcome.terminal, outcome.num_turns) == (Terminal.COMPLETED, 1)
    assert deploy.calls == []
    assert bench.transport.bodies[0]["messages"] == bench.transport.bodies[1]["messages"]
    assert len(bench.sink.of("tombstone")) == 1


async def test_output_is_continued_three_times_without_a_turn(tmp_path: Path) -> None:
    part = reply(text_block("part "), stop_reason="max_tokens")
    bench = AgentBench(tmp_path, part, part, part, said("end"))
    outcome = await bench.run()
    assert (outcome.terminal, outcome.text, outcome.num_turns) == (Terminal.COMPLETED, "part part part end", 1)
    assert {body["max_tokens"] for body in bench.transport.bodies} == {100}
    exhausted = AgentBench(tmp_path / "b", part, part, part, part)
    outcome = await exhausted.run()
    assert (outcome.terminal, exhausted.counters.output_continuations) == (Terminal.MAX_OUTPUT_EXHAUSTED, 3)


async def test_a_tool_cut_by_the_output_limit_is_dropped_and_the_output_continued(tmp_path: Path) -> None:
    deploy = StandInTool("deploy")
    cut = reply(tool_block("t1", "deploy", '{"release": "'), stop_reason="max_tokens")
    bench = AgentBench(tmp_path, cut, said("Done."), tools=[deploy])
    outcome = await bench.run()
    assert (outcome.terminal, deploy.calls, bench.counters.output_continuations) == (Terminal.COMPLETED, [], 1)


@pytest.mark.parametrize("clean", [False, True])
async def test_an_announced_call_that_is_missing_is_corrected_once(tmp_path: Path, clean: bool) -> None:
    missing = reply(text_block("I call."), stop_reason="tool_use")
    bench = AgentBench(tmp_path, missing, said("Done."), clean_retry=clean)
    outcome = await bench.run()
    assert (outcome.terminal, outcome.text, outcome.num_turns) == (Terminal.COMPLETED, "Done.", 1)
    assert bench.counters.malformed_retries == 1
    roles = [message["role"] for message in bench.transport.bodies[1]["messages"]]
    assert roles == (["user"] if clean else ["user", "assistant", "user"])
    again = AgentBench(tmp_path / "b", missing, missing, clean_retry=clean)
    assert (await again.run()).terminal is Terminal.MALFORMED_TOOL_USE_EXHAUSTED


async def test_a_call_that_does_not_parse_never_runs(tmp_path: Path) -> None:
    deploy = StandInTool("deploy")
    broken = reply(tool_block("t1", "deploy", '{"release": "7"'), stop_reason="tool_use")
    bench = AgentBench(tmp_path, broken, broken, tools=[deploy])
    assert (await bench.run()).terminal is Terminal.MALFORMED_TOOL_USE_EXHAUSTED
    assert deploy.calls == []
    both = reply(
        tool_block("t1", "deploy", '{"release"'), tool_block("t2", "deploy", {"release": "7"}), stop_reason="tool_use"
    )
    bench = AgentBench(tmp_path / "b", both, said("Done."), tools=[deploy])
    assert (await bench.run()).terminal is Terminal.COMPLETED
    assert len(deploy.calls) == 1
    assert bench.results()["t1"] == (True, "the input for deploy is not a whole JSON object")


async def test_silent_thinking_is_nudged_once_and_then_accepted(tmp_path: Path) -> None:
    silent = reply(THINKING, stop_reason="end_turn")
    bench = AgentBench(tmp_path, silent, silent)
    outcome = await bench.run()
    assert (outcome.terminal, outcome.text, bench.counters.thinking_nudges) == (Terminal.COMPLETED, "", 1)


async def test_a_refusal_is_typed_and_its_calls_do_not_run(tmp_path: Path) -> None:
    deploy = StandInTool("deploy")
    refusal = reply(text_block("No."), tool_block("t1", "deploy", {"release": "7"}), stop_reason="refusal")
    outcome = await AgentBench(tmp_path, refusal, tools=[deploy]).run()
    assert (outcome.terminal, outcome.ending.exit_code, deploy.calls) == (Terminal.REFUSED, 1, [])


@pytest.mark.parametrize(
    ("answer", "terminal"),
    [
        (failed(400, "invalid_request_error"), Terminal.API_ERROR),
        (failed(404, "not_found_error"), Terminal.MODEL_ERROR),
        (failed(413), Terminal.PROMPT_TOO_LONG),
    ],
)
async def test_a_failed_request_ends_typed(tmp_path: Path, answer: Scripted, terminal: Terminal) -> None:
    outcome = await AgentBench(tmp_path, answer).run()
    assert (outcome.terminal, outcome.ending.exit_code, len(outcome.errors)) == (terminal, 1, 1)


async def test_a_stop_hook_sends_the_model_back_and_raises_the_turn(tmp_path: Path) -> None:
    hook = stop_hook("cat > given; if [ -e once ]; then exit 0; fi; touch once; " + BLOCK_STOP)
    bench = AgentBench(tmp_path, said("One."), said("Two."), hooks=[hook])
    outcome = await bench.run()
    assert (outcome.terminal, outcome.text, outcome.num_turns) == (Terminal.COMPLETED, "Two.", 2)
    assert bench.counters.stop_hook_blocks == 1
    assert '"stop_hook_active": true' in (tmp_path / "given").read_text()
    last = bench.transport.bodies[1]["messages"]
    assert [message["role"] for message in last] == ["user", "assistant", "user"]
    assert "not yet" in last[2]["content"][0]["text"]


async def test_a_stop_hook_that_always_blocks_is_capped(tmp_path: Path) -> None:
    bench = AgentBench(tmp_path, *[said("x")] * 3, hooks=[stop_hook(BLOCK_STOP)], cap=2)
    outcome = await bench.run()
    assert (outcome.terminal, outcome.num_turns) == (Terminal.HOOK_STOPPED, 3)
    assert "block-cap" in bench.sink.of("warning")[0]["message"]
    limited = AgentBench(tmp_path / "b", said("x"), hooks=[stop_hook(BLOCK_STOP)], max_turns=1)
    (tmp_path / "b").mkdir(exist_ok=True)
    assert (await limited.run()).terminal is Terminal.MAX_TURNS


async def test_a_repeated_call_id_is_renamed(tmp_path: Path) -> None:
    deploy = StandInTool("deploy")
    bench = AgentBench(
        tmp_path, calling(("t1", "deploy"), ("t1", "deploy")), calling(("t1", "deploy")), said("x"), tools=[deploy]
    )
    assert (await bench.run()).terminal is Terminal.COMPLETED
    assert len({identity.call_id for identity in deploy.identities}) == 3
    assert len(bench.sink.of("warning")) == 2


async def test_an_empty_answer_is_an_end_and_leaves_a_valid_history(tmp_path: Path) -> None:
    assert (await AgentBench(tmp_path, reply(stop_reason="end_turn")).run()).terminal is Terminal.COMPLETED
    resumed = AgentBench(tmp_path, said("Hi."), resume=True)
    assert (await resumed.run()).text == "Hi."


async def test_a_resumed_session_sends_its_history(tmp_path: Path) -> None:
    deploy = StandInTool("deploy")
    await AgentBench(tmp_path, calling(("t1", "deploy")), said("Done."), tools=[deploy]).run("First.")
    resumed = AgentBench(tmp_path, said("Again."), tools=[deploy], resume=True)
    outcome = await resumed.run("Second.")
    sent = resumed.transport.bodies[0]["messages"]
    assert [message["role"] for message in sent] == ["user", "assistant", "user", "assistant", "user"]
    assert (sent[0]["content"][0]["text"], sent[4]["content"][0]["text"]) == ("First.", "Second.")
    assert (outcome.num_turns, len(deploy.calls)) == (1, 1)
    assert resumed.sink.of("recovery") == []


class EndlessTool(StandInTool):
    """Tells when it has begun and never ends by itself."""

    def __init__(self, name: str, effect: Effect) -> None:
        super().__init__(name, effect)
        self.begun = asyncio.Event()

    async def run(self, arguments: object, identity: CallIdentity) -> ToolAnswer:
        self.begun.set()
        await asyncio.Event().wait()
        raise AssertionError("nothing sets the event")


async def test_an_abort_during_a_write_is_unknown_and_the_rest_never_started(tmp_path: Path) -> None:
    slow, deploy = EndlessTool("slow", Effect.WRITE), StandInTool("deploy")
    bench = AgentBench(tmp_path, calling(("t1", "deploy"), ("t2", "slow"), ("t3", "deploy")), tools=[slow, deploy])
    running = asyncio.create_task(bench.run())
    await slow.begun.wait()
    bench.signal = Signal.TERMINATE
    running.cancel()
    outcome = await running
    assert (outcome.terminal, outcome.ending.exit_code) == (Terminal.ABORTED_TOOLS, 143)
    assert bench.results()["t1"] == (False, "done")
    assert "unknown" in bench.results()["t2"][1]
    assert bench.results()["t3"] == (True, "not started: the run was aborted")
    resumed = AgentBench(tmp_path, calling(("t4", "deploy")), said("x"), tools=[slow, deploy], resume=True)
    assert (await resumed.run()).terminal is Terminal.RECOVERY_REQUIRED
    assert len(deploy.calls) == 1


async def test_an_abort_while_the_model_streams_is_told_apart(tmp_path: Path) -> None:
    bench = AgentBench(tmp_path, Scripted([sse(*message_events(text_block("x"))[:2]), Silence()]))
    running = asyncio.create_task(bench.run())
    await bench.transport.asked.wait()
    bench.signal = Signal.INTERRUPT
    running.cancel()
    outcome = await running
    assert (outcome.terminal, outcome.ending.exit_code) == (Terminal.ABORTED_STREAMING, 130)


async def test_a_lost_write_holds_later_writes_in_the_same_run(tmp_path: Path) -> None:
    lost = ToolInterruptedError(ToolFailure.CONNECTION_LOST, "the server is gone")
    deploy, look = StandInTool("deploy", Effect.WRITE, lost), StandInTool("look", Effect.READ_ONLY)
    bench = AgentBench(
        tmp_path, calling(("t1", "deploy")), calling(("t2", "deploy"), ("t3", "look")), said("x"), tools=[deploy, look]
    )
    outcome = await bench.run()
    assert (outcome.terminal, outcome.ending.exit_code) == (Terminal.RECOVERY_REQUIRED, 1)
    assert (len(deploy.calls), len(look.calls)) == (1, 1)
    assert "unknown" in bench.results()["t1"][1]
    held = bench.results()["t2"]
    assert held[0]
    assert "call t1 of tool deploy is unknown" in held[1]
    assert bench.results()["t3"] == (False, "done")


async def test_an_unknown_write_alone_does_not_spoil_a_run_that_writes_no_more(tmp_path: Path) -> None:
    lost = ToolInterruptedError(ToolFailure.TIMED_OUT, "no answer")
    bench = AgentBench(
        tmp_path, calling(("t1", "deploy")), said("x"), tools=[StandInTool("deploy", Effect.WRITE, lost)]
    )
    assert (await bench.run()).terminal is Terminal.COMPLETED


async def test_a_failure_that_the_tool_itself_reports_holds_nothing(tmp_path: Path) -> None:
    no = text_answer("no such release", is_error=True)
    deploy = StandInTool("deploy", Effect.WRITE, no)
    bench = AgentBench(tmp_path, calling(("t1", "deploy")), calling(("t2", "deploy")), said("x"), tools=[deploy])
    assert (await bench.run()).terminal is Terminal.COMPLETED
    assert bench.results() == {"t1": (True, "no such release"), "t2": (False, "done")}


async def test_a_denied_write_is_counted_and_the_model_goes_on(tmp_path: Path) -> None:
    deploy, look = StandInTool("deploy"), StandInTool("look", Effect.READ_ONLY)
    bench = AgentBench(
        tmp_path, calling(("t1", "deploy"), ("t2", "look")), said("x"), tools=[deploy, look], mode=PermissionMode.ASK
    )
    outcome = await bench.run()
    assert (outcome.terminal, deploy.calls, len(look.calls)) == (Terminal.COMPLETED, [], 1)
    assert [denial["tool_use_id"] for denial in outcome.permission_denials] == ["t1"]
