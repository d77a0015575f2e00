"""A script being played: where each lane stands, which identifiers are used up, what a policy has asked so far.

The only state that replies depend on. No I/O, no time and no chance: the same requests in the same order get the same
answers with the same identifiers.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from fake_provider.faults import Fault
from fake_provider.replies import ErrorReply, Reply, ToolUse
from fake_provider.requests import ModelRequest, canonical_arguments
from fake_provider.script import Lane, Script
from fake_provider.steps import Insist, Step


@dataclass(frozen=True, slots=True)
class Played:
    """The answer to one request."""

    lane: str
    step: str
    message_id: str
    answer: Reply | ErrorReply
    fault: Fault | None


@dataclass(frozen=True, slots=True)
class NothingToPlay:
    """The script has no answer; ``lane`` is nothing where no lane takes the request."""

    lane: str | None
    reason: str


@dataclass(slots=True)
class _LanePosition:
    """Where one lane stands; ``number`` keeps the identifiers of two lanes apart, from 1."""

    lane: Lane
    number: int
    cursor: int = 0
    messages: int = 0
    calls: int = 0
    asked: list[str] = field(default_factory=list)

    def advance(self) -> None:
        self.cursor += 1
        self.asked = []


class Playback:
    """The positions in a script, shared by all connections of a provider."""

    def __init__(self, script: Script) -> None:
        self.script = script
        self._positions = {lane.name: _LanePosition(lane, number) for number, lane in enumerate(script.lanes, start=1)}

    def play(self, request: ModelRequest) -> Played | NothingToPlay:
        """Answer one valid request and move its lane on."""
        lane = self.script.lane_for(request)
        if lane is None:
            return NothingToPlay(None, f"no lane takes it. Lanes: {', '.join(self._positions)}")
        position = self._positions[lane.name]
        if position.cursor >= len(lane.steps):
            return NothingToPlay(lane.name, f"the script of lane '{lane.name}' is used up (steps: {len(lane.steps)})")
        step = lane.steps[position.cursor]
        if isinstance(step.answer, Insist):
            return self._insist(position, step, step.answer, request)
        position.advance()
        answer = step.answer if isinstance(step.answer, ErrorReply) else _with_ids(step.answer, position, request)
        return self._played(position, step, answer, step.fault)

    def _insist(self, position: _LanePosition, step: Step, insist: Insist, request: ModelRequest) -> Played:
        if _succeeded(insist, position.asked, request):
            position.advance()
            return self._played(position, step, insist.finished(), None)
        if len(position.asked) >= insist.at_most:
            position.advance()
            return self._played(position, step, insist.exhausted(), None)
        reply = _with_ids(insist.asking(), position, request)
        fault = None if position.asked else step.fault
        position.asked += [block.id for block in reply.blocks if isinstance(block, ToolUse) and block.id is not None]
        return self._played(position, step, reply, fault)

    def _played(self, position: _LanePosition, step: Step, answer: Reply | ErrorReply, fault: Fault | None) -> Played:
        position.messages += 1
        message_id = f"msg_{position.number:02d}{position.messages:022d}"
        return Played(position.lane.name, step.label, message_id, answer, fault)


def _with_ids(reply: Reply, position: _LanePosition, request: ModelRequest) -> Reply:
    """Give every tool call without an id a fresh one, also one that an older conversation does not hold."""
    blocks = []
    for block in reply.blocks:
        if isinstance(block, ToolUse) and block.id is None:
            block = replace(block, id=_fresh_id(position, request))
        blocks.append(block)
    return replace(reply, blocks=tuple(blocks))


def _fresh_id(position: _LanePosition, request: ModelRequest) -> str:
    while True:
        position.calls += 1
        call_id = f"toolu_{position.number:02d}{position.calls:022d}"
        if call_id not in request.tool_calls:
            return call_id


def _succeeded(insist: Insist, asked: list[str], request: ModelRequest) -> bool:
    """Whether the request shows a result without error for a call this policy made, or for an equal one."""
    wanted = (insist.call.name, canonical_arguments(insist.call.input))
    for result in request.tool_results:
        if result.is_error:
            continue
        call = request.tool_calls.get(result.tool_use_id)
        if result.tool_use_id in asked or (call and (call.name, canonical_arguments(call.input)) == wanted):
            return True
    return False
