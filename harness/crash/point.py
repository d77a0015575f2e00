"""Crash points: places on edges that the harness owns, where a peer is held while the runtime is killed.

A position is reached on the provider's side or on the effect server's side, so every runtime can be crashed there, and
what was and was not done before the crash is known from outside. This module arms and names points; sending the signal
is the driver's work.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from fake_provider.document import nearest
from fake_provider.hold import EVENT_DEFAULT, Hold
from fake_provider.replies import ErrorReply
from fake_provider.script import Script
from fake_provider.steps import in_order, sample_frames
from harness.model.scenario import Crash, Phase, Position
from harness.tools.gate import ToolHold


class Held(Protocol):
    """A place where a peer is kept waiting."""

    reached: asyncio.Event

    def release(self) -> None:
        """Let the peer go on."""


@dataclass(frozen=True)
class CrashPoint:
    """A crash of a phase, armed."""

    phase: int
    crash: Crash
    held: Held

    @property
    def label(self) -> str:
        """The point as the scenario's declared faults name it."""
        return crash_label(self.phase, self.crash)


def crash_label(phase: int, crash: Crash) -> str:
    """Return a crash in one short sentence, equal for the declaration and for the event that it fired."""
    return f"phase {phase}: {crash.signal} at {crash.at}"


def armed(phases: Sequence[Phase]) -> tuple[CrashPoint, ...]:
    """Return the crash points of a scenario, each with its own hold."""
    return tuple(
        CrashPoint(number, phase.crash, _held(phase.crash))
        for number, phase in enumerate(phases, start=1)
        if phase.crash is not None
    )


def provider_holds(points: Sequence[CrashPoint]) -> tuple[Hold, ...]:
    """Return the holds that the provider keeps."""
    return tuple(point.held for point in points if isinstance(point.held, Hold))


def tool_holds(points: Sequence[CrashPoint]) -> tuple[ToolHold, ...]:
    """Return the holds that the gate keeps."""
    return tuple(point.held for point in points if isinstance(point.held, ToolHold))


def unreachable(crash: Crash, script: Script) -> str | None:
    """Return why a crash on the provider's side can never be reached, or nothing when it may be.

    A policy decides at run time how often it speaks, so only a lane of plain steps can be counted beforehand.
    """
    lanes = {lane.name: lane for lane in script.lanes}
    lane = lanes.get(crash.lane)
    if lane is None:
        return f"there is no lane '{crash.lane}'{nearest(crash.lane, lanes)}"
    steps = tuple(in_order(lane.steps, rounds_at_most=crash.nth))
    if any(step.policy is not None for step in steps):
        return None
    if crash.at is Position.REPLY_STREAMING:
        steps = tuple(step for step in steps if not isinstance(step.answer, ErrorReply))
    if crash.nth > len(steps):
        return f"lane '{crash.lane}' answers {len(steps)} requests so, and nth is {crash.nth}"
    step = steps[crash.nth - 1]
    if crash.at is not Position.REPLY_STREAMING or step.templated:
        return None
    event = crash.event or EVENT_DEFAULT
    frames = sample_frames(step, script.dialects[0])
    count = sum(frame.is_at(event) for frame in frames)
    if not count:
        names = {frame.name for frame in frames}
        return f"reply {crash.nth} of lane '{crash.lane}' has no event '{event}'{nearest(event, names)}"
    if crash.event_nth > count:
        return f"reply {crash.nth} of lane '{crash.lane}' has {count} of '{event}', not {crash.event_nth}"
    return None


def _held(crash: Crash) -> Hold | ToolHold:
    match crash.at:
        case Position.TOOL_CALLED | Position.TOOL_COMMITTED:
            return ToolHold(crash.at.value, crash.tool or "", crash.nth)
        case Position.REQUEST_RECEIVED:
            return Hold("request.received", lane=crash.lane, nth=crash.nth)
        case Position.REPLY_STREAMING:
            return Hold("reply.streaming", lane=crash.lane, nth=crash.nth, event=crash.event, event_nth=crash.event_nth)
