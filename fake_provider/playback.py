"""A script being played: where each lane stands, which identifiers are used up, what a policy has asked so far.

The only state that replies depend on. No I/O, no clock of its own and no chance: the same requests at the same times
in the same order get the same answers with the same identifiers.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from fake_provider.dialects import DIALECTS, Dialect
from fake_provider.document import nearest
from fake_provider.expectations import Mismatch
from fake_provider.faults import Fault
from fake_provider.limits import Limits
from fake_provider.policies import Decision, Occasion, Policy
from fake_provider.replies import ErrorReply, Reply, ToolUse
from fake_provider.requests import ModelRequest
from fake_provider.script import Lane, Script
from fake_provider.steps import Entry, HoldStep, Repeat, Step, answers_at_least
from fake_provider.templates import Asked, filled


class Played(NamedTuple):
    """The answer to one request; a tuple, because one is made for every request.

    Attributes:
        lane: The lane's name.
        step: The step's label.
        message_id: The reply's identifier, in the request's dialect.
        answer: What is answered; every tool call in it has an id.
        fault: What goes wrong with it.
        hold: Where the client is kept waiting.
        mismatches: How the request differs from what the step expects.
        limits: What a quota has left, where one is kept.
        steady: Whether every further request of this lane that is equal in model and stream gets the same answer,
            with no other difference than its identifiers.
        window_tokens: The context window that the answer speaks of, where it is not the script's.
    """

    lane: str
    step: str
    message_id: str
    answer: Reply | ErrorReply
    fault: Fault | None
    hold: HoldStep | None = None
    mismatches: tuple[Mismatch, ...] = ()
    limits: Limits | None = None
    steady: bool = False
    window_tokens: int | None = None


@dataclass(frozen=True, slots=True)
class NothingToPlay:
    """The script has no answer; ``lane`` is nothing where no lane takes the request."""

    lane: str | None
    reason: str


@dataclass(frozen=True, slots=True)
class LaneState:
    """Where a lane stands, for people.

    Attributes:
        lane: Its name.
        step: The number of the entry that answers next, from 1; one more than ``steps`` when it is used up.
        steps: How many entries the lane has; a repeat, or a step with ``times``, is one.
        label: The step that answers next, or nothing when the lane is used up.
        answered: How many requests it has answered.
    """

    lane: str
    step: int
    steps: int
    label: str | None
    answered: int


class UnknownLaneError(LookupError):
    """There is no lane of that name; the message names those there are."""


_UNSTARTED = object()


@dataclass(slots=True)
class _Level:
    """A list of steps being played: the lane's own, a repeat's, or a policy's inner one.

    Attributes:
        entries: The list.
        rounds_left: How many rounds follow this one; nothing is for ever.
        index: Which entry is next.
        state: What the policy at that entry decided so far.
    """

    entries: tuple[Entry, ...]
    rounds_left: int | None = 0
    index: int = 0
    state: Any = _UNSTARTED

    @property
    def entry(self) -> Entry:
        return self.entries[self.index]


@dataclass(slots=True)
class _LanePosition:
    """Where one lane stands.

    Attributes:
        lane: The lane.
        number: Keeps the identifiers of two lanes apart, from 1.
        levels: The lists of steps being played, the lane's own first; none when it is used up.
        messages: How many requests it has answered.
        calls: How many identifiers of tool calls are used up.
        steady: The last answer and its dialect, where that is how it goes on.
    """

    lane: Lane
    number: int
    levels: list[_Level] = field(default_factory=list)
    messages: int = 0
    calls: int = 0
    steady: tuple[Dialect, Played] | None = None

    def __post_init__(self) -> None:
        if self.lane.steps:
            self.levels.append(_Level(self.lane.steps))

    def enter(self, depth: int, entries: tuple[Entry, ...], times: int | None) -> None:
        """Begin the list inside the entry at a depth, unless it is being played already."""
        if len(self.levels) == depth + 1:
            self.levels.append(_Level(entries, None if times is None else times - 1))

    def leave(self, depth: int) -> None:
        """Go to what follows the entry at a depth; a list that is over goes on to its next round, or is left too."""
        del self.levels[depth + 1 :]
        while self.levels:
            level = self.levels[-1]
            level.index += 1
            level.state = _UNSTARTED
            if level.index < len(level.entries):
                return
            if level.rounds_left is None or level.rounds_left > 0:
                level.rounds_left = None if level.rounds_left is None else level.rounds_left - 1
                level.index = 0
                return
            self.levels.pop()

    def settle(self) -> None:
        """Go down into repeats until a step is next."""
        while self.levels and isinstance(self.levels[-1].entry, Repeat):
            repeat = self.levels[-1].entry
            self.enter(len(self.levels) - 1, repeat.steps, repeat.times)


class Playback:
    """The positions in a script, shared by all connections of a provider.

    ``moves`` counts how often somebody moved a lane without a request; see ``again``.
    """

    def __init__(self, script: Script) -> None:
        self.script = script
        self._positions: dict[str, _LanePosition] = {}
        self.moves = 0
        self.reset()

    def reset(self) -> None:
        """Begin all lanes anew, their identifiers too."""
        self.moves += 1
        self._positions = {
            lane.name: _LanePosition(lane, number) for number, lane in enumerate(self.script.lanes, start=1)
        }

    def skip(self, lane: str) -> None:
        """Go to the lane's next step without a request; the one that is next is not played.

        At the end of a list that is repeated for ever, go to what follows it: nothing else ever can.

        Raises:
            UnknownLaneError: There is no such lane.
        """
        position = self._positions.get(lane)
        if position is None:
            raise UnknownLaneError(f"no lane '{lane}'{nearest(lane, self._positions)}")
        position.steady = None
        self.moves += 1
        position.settle()
        while position.levels:
            level = position.levels[-1]
            if level.rounds_left is not None or level.index < len(level.entries) - 1:
                position.leave(len(position.levels) - 1)
                return
            position.levels.pop()

    def again(self, lane: str, dialect: Dialect) -> str:
        """Count one more answer of a lane that answered steadily, and return the reply's identifier.

        The answer is the one before, as long as ``moves`` is what it was then.
        """
        position = self._positions[lane]
        position.messages += 1
        return dialect.message_id(position.number, position.messages)

    def state(self) -> tuple[LaneState, ...]:
        """Return where each lane stands, in the order of the script."""
        return tuple(_state_of(position) for position in self._positions.values())

    def play(self, request: ModelRequest, seconds: float = 0.0) -> Played | NothingToPlay:
        """Answer one valid request and move its lane on.

        Args:
            request: The request; its dialect says whose identifiers the answer gets.
            seconds: The provider's clock, for quotas only.
        """
        lane = self.script.lane_for(request)
        if lane is None:
            return NothingToPlay(None, f"no lane takes it. Lanes: {', '.join(self._positions)}")
        position = self._positions[lane.name]
        if position.steady is not None and position.steady[0].name == request.dialect:
            return _again(position, *position.steady)
        turn = _Turn(position, request, seconds)
        played = turn.played()
        position.steady = (turn.dialect, played) if isinstance(played, Played) and played.steady else None
        return played


def _again(position: _LanePosition, dialect: Dialect, before: Played) -> Played:
    """Return a steady answer once more, with the next identifier; spelled out, since this is the hot path."""
    position.messages += 1
    message_id = dialect.message_id(position.number, position.messages)
    return Played(before.lane, before.step, message_id, before.answer, None, steady=True)


def _state_of(position: _LanePosition) -> LaneState:
    steps = len(position.lane.steps)
    if not position.levels:
        return LaneState(position.lane.name, steps + 1, steps, None, position.messages)
    entry = position.levels[-1].entry
    while isinstance(entry, Repeat):
        entry = entry.steps[0]
    return LaneState(position.lane.name, position.levels[0].index + 1, steps, entry.label, position.messages)


class _Turn:
    """One request being answered by a lane."""

    def __init__(self, position: _LanePosition, request: ModelRequest, seconds: float) -> None:
        self._position = position
        self._request = request
        self._seconds = seconds
        self.dialect: Dialect = DIALECTS[request.dialect]
        self._limits: Limits | None = None

    def played(self) -> Played | NothingToPlay:
        """Ask the policies from the outermost inwards, and play the first step that answers."""
        position = self._position
        passed: set[int] = set()
        depth = 0
        while depth < len(position.levels):
            level = position.levels[depth]
            entry = level.entry
            if isinstance(entry, Repeat):
                position.enter(depth, entry.steps, entry.times)
                depth += 1
                continue
            if entry.policy is None:
                return self._plain(entry, depth)
            decision = self._decided(entry.policy, level)
            if decision.answer is not None:
                return self._by_policy(entry, depth, decision, decision.answer)
            if entry.steps:
                position.enter(depth, entry.steps, 1)
                depth += 1
                continue
            if id(entry) in passed:
                return self._nothing("none of its steps answers such a request")
            passed.add(id(entry))
            position.leave(depth)
            # What is around the entry that was left has let this request pass already.
            depth = len(position.levels) - 1 if position.levels else 0
        count = answers_at_least(position.lane.steps)
        return self._nothing(f"the script of lane '{position.lane.name}' is used up (steps: {count})")

    def _decided(self, policy: Policy, level: _Level) -> Decision:
        state = policy.start() if level.state is _UNSTARTED else level.state
        call_id, _ = self._fresh_id(self._position.calls)
        decision = policy.decide(Occasion(self._request, self._seconds, call_id), state)
        level.state = decision.state
        self._limits = decision.limits or self._limits
        return decision

    def _plain(self, step: Step, depth: int) -> Played | NothingToPlay:
        if not isinstance(step.answer, Reply | ErrorReply):
            raise TypeError(f"step '{step.label}' is a policy")
        answer = step.answer
        if step.templated:
            answer = filled(answer, Asked(self._request, self._position.messages + 1))
        steady = self._is_steady(step, depth)
        return self._answered(step, depth, answer, Decision(answer, None, done=True, first_ask=True), steady=steady)

    def _by_policy(
        self, step: Step, depth: int, decision: Decision, answer: Reply | ErrorReply
    ) -> Played | NothingToPlay:
        return self._answered(step, depth, answer, decision, steady=False)

    def _answered(
        self, step: Step, depth: int, answer: Reply | ErrorReply, decision: Decision, *, steady: bool
    ) -> Played | NothingToPlay:
        position = self._position
        if isinstance(answer, Reply):
            reason = self.dialect.unsayable(answer)
            if reason is not None:
                return self._nothing(f"step '{step.label}' cannot be said in {self.dialect.name}: {reason}")
            answer = self._with_ids(answer)
        if decision.done:
            position.leave(depth)
        position.messages += 1
        return Played(
            lane=position.lane.name,
            step=step.label,
            message_id=self.dialect.message_id(position.number, position.messages),
            answer=answer,
            fault=step.fault if decision.first_ask else None,
            hold=step.hold if decision.first_ask else None,
            mismatches=step.expectation.mismatches(self._request) if step.expectation is not None else (),
            limits=self._limits,
            steady=steady,
            window_tokens=decision.window_tokens,
        )

    def _is_steady(self, step: Step, depth: int) -> bool:
        level = self._position.levels[depth]
        alone = level.rounds_left is None and len(level.entries) == 1
        touched = step.fault or step.hold or step.expectation or step.templated
        if not alone or touched or self._limits is not None:
            return False
        # A policy around it may answer the next request itself.
        around = self._position.levels[:depth]
        if not all(isinstance(outer.entry, Repeat) for outer in around):
            return False
        return not isinstance(step.answer, Reply) or all(
            block.id is not None for block in step.answer.blocks if isinstance(block, ToolUse)
        )

    def _with_ids(self, reply: Reply) -> Reply:
        """Give every tool call without an id a fresh one, also one that an older conversation does not hold."""
        if not any(isinstance(block, ToolUse) for block in reply.blocks):
            return reply
        blocks = []
        for block in reply.blocks:
            if isinstance(block, ToolUse):
                fresh, calls = self._fresh_id(self._position.calls)
                if block.id is None or block.id == fresh:
                    block = replace(block, id=fresh)
                    self._position.calls = calls
            blocks.append(block)
        return replace(reply, blocks=tuple(blocks))

    def _fresh_id(self, used: int) -> tuple[str, int]:
        """Return an identifier that the conversation does not hold, and how many are used up with it."""
        while True:
            used += 1
            call_id = self.dialect.call_id(self._position.number, used)
            if call_id not in self._request.tool_calls:
                return call_id, used

    def _nothing(self, reason: str) -> NothingToPlay:
        return NothingToPlay(self._position.lane.name, reason)
