"""Any schedule of replies, tool outcomes and kills: valid requests, one typed end, no write past an unknown one."""

import asyncio
import os
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reference_runtime.recovery.receipts import CallVerdict, Effect
from reference_runtime.recovery.terminals import Terminal
from reference_runtime.recovery.tools import ToolFailure
from reference_runtime.session import read_session
from reference_runtime.tools.tool import CallIdentity, ToolAnswer, ToolInterruptedError, text_answer
from tests.reference_runtime.bench import AgentBench, StandInTool, calling, strict_problems
from tests.reference_runtime.parts import (
    Cut,
    NoConnection,
    Scripted,
    failed,
    message_events,
    said,
    sse,
    text_block,
    thinking_block,
    tool_block,
)
from tests.reference_runtime.property_settings import SCHEDULES

THINKING = thinking_block("hm")
ENDS = {
    Terminal.COMPLETED,
    Terminal.MAX_TURNS,
    Terminal.API_ERROR,
    Terminal.MODEL_ERROR,
    Terminal.PROMPT_TOO_LONG,
    Terminal.REFUSED,
    Terminal.MAX_OUTPUT_EXHAUSTED,
    Terminal.MALFORMED_TOOL_USE_EXHAUSTED,
    Terminal.RECOVERY_REQUIRED,
}


def reply(*blocks: Mapping[str, Any], stop_reason: str) -> Scripted:
    return Scripted([sse(*message_events(*blocks, stop_reason=stop_reason))])


CALLS = st.lists(
    st.tuples(st.sampled_from(["t1", "t2", "t3"]), st.sampled_from(["deploy", "look", "nothing"])),
    min_size=1,
    max_size=3,
)
REPLIES = st.one_of(
    CALLS.map(lambda calls: calling(*calls)),
    CALLS.map(lambda calls: calling(*calls, thought=[THINKING])),
    st.sampled_from(
        [
            said("Done."),
            said(""),
            reply(stop_reason="end_turn"),
            reply(THINKING, stop_reason="end_turn"),
            reply(text_block("part"), stop_reason="max_tokens"),
            reply(THINKING, stop_reason="max_tokens"),
            reply(text_block("I call."), stop_reason="tool_use"),
            reply(tool_block("t9", "deploy", '{"release": "'), stop_reason="max_tokens"),
            reply(
                tool_block("t9", "deploy", '{"release": "'), tool_block("t9", "look", {"release": "1"}), stop_reason="x"
            ),
            reply(text_block("No."), tool_block("t9", "deploy", {"release": "7"}), stop_reason="refusal"),
            Scripted([sse(*message_events(tool_block("t9", "deploy", {"release": "7"}))[:-1]), Cut()]),
            NoConnection(),
            failed(529, "overloaded_error"),
            failed(400, "invalid_request_error"),
            failed(413),
        ]
    ),
)


class DeadError(BaseException):
    """The process is killed here."""


class Kind:
    """Outcomes of a tool, by name."""

    ALL = ("done", "refused", "lost", "timed_out", "broken", "killed")
    UNKNOWN = ("lost", "timed_out", "broken", "killed")


@dataclass
class World:
    """What really happened, over all runs of a session."""

    outcomes: list[str]
    writes: list[str] = field(default_factory=list)

    def next_outcome(self) -> str:
        return self.outcomes.pop(0) if self.outcomes else "done"


class WorldTool(StandInTool):
    """Does what the schedule says, and leaves it in the world."""

    def __init__(self, name: str, effect: Effect, world: World) -> None:
        super().__init__(name, effect)
        self._world = world

    async def run(self, arguments: Mapping[str, Any], identity: CallIdentity) -> ToolAnswer:
        outcome = self._world.next_outcome()
        if self.spec.effect is Effect.WRITE:
            self._world.writes.append(outcome)
        match outcome:
            case "killed":
                raise DeadError
            case "lost":
                raise ToolInterruptedError(ToolFailure.CONNECTION_LOST, "lost")
            case "timed_out":
                raise ToolInterruptedError(ToolFailure.TIMED_OUT, "timed out")
            case "broken":
                raise ZeroDivisionError
            case _:
                return text_answer(outcome, is_error=outcome == "refused")


async def run_phase(home: Path, replies: list[Scripted | NoConnection], world: World, *, resume: bool) -> None:
    tools = [WorldTool("deploy", Effect.WRITE, world), WorldTool("look", Effect.READ_ONLY, world)]
    # Enough plain answers after the schedule for whatever recovery asks again.
    bench = AgentBench(home, *replies, *[said("End.")] * 8, tools=tools, models=("a", "b"), max_turns=6, resume=resume)
    try:
        outcome = await bench.run()
    except DeadError:
        bench.session.close()
        assert [problem for body in bench.transport.bodies for problem in strict_problems(body)] == []
        return
    assert outcome.terminal in ENDS
    assert (outcome.terminal is Terminal.COMPLETED) == (outcome.ending.exit_code == 0)
    if outcome.terminal is Terminal.COMPLETED:
        assert bench.tool_runner.writes_held == 0
    if bench.transport.headers:
        assert outcome.num_turns == int(bench.transport.headers[-1]["x-crashcart-turn"])
    assert bench.counters.http_attempts == len(bench.transport.bodies)
    assert bench.session.graph.unanswered_calls() == []


PHASES = st.lists(st.lists(REPLIES, max_size=5), min_size=1, max_size=3)
OUTCOMES = st.lists(st.sampled_from(Kind.ALL), max_size=6)


@SCHEDULES
@given(phases=PHASES, outcomes=OUTCOMES)
def test_every_schedule_keeps_the_contract(phases: list[list[Scripted | NoConnection]], outcomes: list[str]) -> None:
    world = World(list(outcomes))
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        # Kills end the process here and not the machine; waiting for the disk would only slow the schedules down.
        patch.setattr(os, "fsync", lambda _descriptor: None)
        home = Path(folder)
        for number, replies in enumerate(phases):
            asyncio.run(run_phase(home, replies, world, resume=number > 0))
        (path,) = (home / "sessions").iterdir()
        history = read_session(path)
    unknown = [at for at, outcome in enumerate(world.writes) if outcome in Kind.UNKNOWN]
    assert unknown in ([], [len(world.writes) - 1]), "no write runs past an unknown one"
    held = [r for r in history.receipts if r.verdict is CallVerdict.UNKNOWN_HOLDS_WRITES]
    assert len(held) == len(unknown), "what is unknown is neither forgotten nor made up"
    assert history.damages == ()
