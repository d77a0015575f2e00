"""One agent in this process: a real session on disk, real tools or stand-ins, and a scripted transport.

Every request that it sends is judged by the fake provider's own rules, so that no test passes on a request that a
provider would refuse.
"""

import random
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from fake_provider.dialects.anthropic_rules import CONVERSATION_RULES, SHAPE_RULES, Judged, judge
from reference_runtime.counters import Counters
from reference_runtime.hooks import HookRunner
from reference_runtime.loop import AgentLoop, RunLimits, discard_messages
from reference_runtime.permissions import PermissionMode, Permissions
from reference_runtime.recovery.receipts import Effect
from reference_runtime.recovery.terminals import Signal
from reference_runtime.report import RunOutcome, Usage
from reference_runtime.requests import ModelChain, RequestLimits, RequestRunner
from reference_runtime.session import Session, new_id
from reference_runtime.settings import HookCommand
from reference_runtime.tool_runner import ToolRunner
from reference_runtime.tools.tool import CallIdentity, Tool, ToolAnswer, ToolSpec, text_answer
from tests.reference_runtime.parts import (
    InstantClock,
    NoConnection,
    RememberingSink,
    Scripted,
    ScriptedTransport,
    message_events,
    sse,
    tool_block,
)

SESSION_ID = "11111111-1111-4111-8111-111111111111"


def strict_problems(body: Mapping[str, Any]) -> list[str]:
    """What a strict provider would refuse in this request."""
    judged = Judged(dict(body), 0, 1_000_000)
    return [str(problem) for rules in (SHAPE_RULES, CONVERSATION_RULES) for problem in judge(rules, judged)]


class StandInTool:
    """A tool that remembers its calls and answers what it is told to; an exception given is raised."""

    def __init__(
        self, name: str, effect: Effect = Effect.WRITE, *answers: ToolAnswer | BaseException, gone: str | None = None
    ) -> None:
        schema = {"type": "object", "properties": {"release": {"type": "string"}}, "required": ["release"]}
        self.spec = ToolSpec(name, name, schema, effect)
        self.unavailable_because = gone
        self.calls: list[Mapping[str, Any]] = []
        self.identities: list[CallIdentity] = []
        self._answers = list(answers)

    async def run(self, arguments: Mapping[str, Any], identity: CallIdentity) -> ToolAnswer:
        self.calls.append(arguments)
        self.identities.append(identity)
        answer = self._answers.pop(0) if self._answers else text_answer("done")
        if isinstance(answer, BaseException):
            raise answer
        return answer


def calling(*calls: tuple[str, str], thought: Sequence[Mapping[str, Any]] = ()) -> Scripted:
    """A reply that calls tools, each given as (call id, tool name), with release 7 as the argument."""
    blocks = [*thought, *(tool_block(call_id, name, {"release": "7"}) for call_id, name in calls)]
    return Scripted([sse(*message_events(*blocks, stop_reason="tool_use"))])


class AgentBench:
    """Runs prompts in one session under `home`, resuming it when it is there."""

    def __init__(
        self,
        home: Path,
        *answers: Scripted | NoConnection,
        tools: Sequence[Tool] = (),
        hooks: Sequence[HookCommand] = (),
        mode: PermissionMode = PermissionMode.BYPASS,
        max_turns: int | None = None,
        cap: int = 8,
        clean_retry: bool = False,
        models: tuple[str, ...] = ("m",),
        resume: bool = False,
    ) -> None:
        self.clock, self.sink, self.counters = InstantClock(scale=1000), RememberingSink(), Counters()
        if resume:
            self.session = Session.resume(home, SESSION_ID, self.clock)
        else:
            self.session = Session.begin(home, SESSION_ID, self.clock, model="m", cwd=str(home))
        self.transport = ScriptedTransport(*answers)
        self.signal = Signal.NONE
        about = {"session_id": SESSION_ID, "transcript_path": str(self.session.path), "cwd": str(home)}
        hook_runner = HookRunner(tuple(hooks), self.clock, self.sink, about)
        runner = RequestRunner(
            self.transport,
            RequestLimits(2, 50, 600, stream_fallback_allowed=True),
            self.clock,
            random.Random(7),
            self.sink,
            self.counters,
            lambda reason: discard_messages(self.session, self.sink, reason, (new_id(),)),
        )
        self.tool_runner = ToolRunner(
            tools, self.session.ledger, hook_runner, Permissions(mode, ()), self.session.append, self.sink
        )
        self.loop = AgentLoop(
            self.session,
            runner,
            ModelChain(models),
            self.tool_runner,
            [tool.spec for tool in tools],
            hook_runner,
            self.sink,
            self.counters,
            Usage({}),
            RunLimits(max_turns, 100, cap, clean_retry),
            str(home),
            lambda: self.signal,
        )

    async def run(self, prompt: str = "Go.") -> RunOutcome:
        outcome = await self.loop.run(prompt)
        self.session.close()
        for body in self.transport.bodies:
            assert strict_problems(body) == []
        assert len({frame["uuid"] for frame in self.frames("assistant")}) == len(self.frames("assistant"))
        return outcome

    def frames(self, kind: str) -> list[Mapping[str, Any]]:
        return [frame for frame in self.sink.frames if frame["type"] == kind]

    def results(self) -> dict[str, tuple[bool, str]]:
        """Every tool result that was shown: call id to (is error, text)."""
        return {
            result["tool_use_id"]: (
                result.get("is_error", False),
                "\n".join(block["text"] for block in result["content"]),
            )
            for frame in self.frames("user")
            for result in frame["message"]["content"]
        }
