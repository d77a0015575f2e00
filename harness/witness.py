"""Turns what each witness wrote down into one list of events on one clock.

Witnesses are the provider's journal, the effect ledger, the hook log and the processes' output. They all use the
monotonic clock of this machine, so their times can be put in order. Nothing here judges. Left out are connections,
whose closing races with a process' end and which the journal keeps, and the bulk of what every request repeats.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from fake_provider import journal as provider
from harness.model.event import Event, Source
from harness.model.scenario import EffectMode
from harness.sandbox import SandboxProcess
from harness.scenario_file import tool_fault_label
from harness.tools.ledger import Ledger

OUTPUT_LINE_CHARACTERS_MAX = 20_000

KINDS: Mapping[type[provider.Entry], str] = {
    provider.RequestReceived: "request.received",
    provider.RequestRefused: "request.refused",
    provider.UnexpectedRequest: "request.unexpected",
    provider.RequestMismatch: "request.mismatch",
    provider.ReplyStarted: "reply.started",
    provider.ReplyEnded: "reply.ended",
    provider.FaultFired: "fault.fired",
    provider.FaultSkipped: "fault.skipped",
    provider.HoldReached: "hold.reached",
    provider.HoldReleased: "hold.released",
    provider.HoldSkipped: "hold.skipped",
    provider.ClientLeft: "client.left",
    provider.ConnectionsRefused: "connections.refused",
    provider.ConnectionsTaken: "connections.taken",
    provider.HandshakeFailed: "handshake.failed",
    provider.GarbageReceived: "garbage.received",
    provider.ControlRequested: "control.requested",
}


class Timeline:
    """The starts of the phases, to tell in which phase something happened."""

    def __init__(self, start_seconds: float) -> None:
        self.start_seconds = start_seconds
        self._starts: list[float] = []

    def phase_begins(self, monotonic_seconds: float) -> None:
        """Note that the next phase begins now."""
        self._starts.append(monotonic_seconds - self.start_seconds)

    def event(self, monotonic_seconds: float, source: Source, kind: str, data: dict[str, Any]) -> Event:
        """Return an event from a time of the shared monotonic clock."""
        at = max(0.0, monotonic_seconds - self.start_seconds)
        phase = sum(start <= at for start in self._starts)
        return Event(at, source, kind, phase, data)


def provider_events(
    entries: Sequence[provider.AnyEntry],
    timeline: Timeline,
    fault_label: Callable[[str, str], str],
    steady: Callable[[str], str],
) -> list[Event]:
    """Return the journal's entries as events.

    Args:
        entries: The journal.
        timeline: The clock.
        fault_label: Names a fault, from its lane and what it is, as the scenario declared it.
        steady: Replaces what varies in a text, so that a digest of it is the same in every run.
    """
    steps = {e.request: (e.lane or "", e.step or "") for e in entries if isinstance(e, provider.RequestReceived)}
    found = []
    for entry in entries:
        if type(entry) not in KINDS:
            continue
        data = msgspec.to_builtins(entry)
        for key in ("entry", "at_seconds"):
            del data[key]
        if isinstance(entry, provider.RequestReceived):
            data["body"] = condensed(data["body"], steady)
        if isinstance(entry, provider.FaultFired | provider.FaultSkipped):
            lane, step = steps[entry.request]
            data["fault"] = fault_label(lane, f"{step}: {entry.kind}")
        if isinstance(entry, provider.HoldSkipped):
            data["fault"] = entry.position
        at = timeline.start_seconds + entry.at_seconds
        found.append(timeline.event(at, Source.PROVIDER, KINDS[type(entry)], data))
    return found


def condensed(body: Any, steady: Callable[[str], str]) -> Any:
    """Return a request body with its system prompt as a digest and its tools as names; every request repeats both."""
    if not isinstance(body, dict):
        return body
    short = dict(body)
    if "system" in short:
        text = steady(json.dumps(short["system"], sort_keys=True))
        short["system"] = {"sha256": hashlib.sha256(text.encode()).hexdigest(), "characters": len(text)}
    if isinstance(short.get("tools"), list):
        short["tools"] = [tool.get("name") if isinstance(tool, dict) else tool for tool in short["tools"]]
    return short


def tool_events(ledger: Ledger, timeline: Timeline) -> list[Event]:
    """Return the effect ledger's lines as events."""
    return [
        timeline.event(
            line.at_seconds,
            Source.TOOL,
            line.kind,
            {
                "tool": line.tool,
                "call": line.call,
                "request": line.request,
                "meta": line.meta,
                "arguments": line.arguments,
                "mode": line.mode,
            },
        )
        for line in ledger.lines()
    ]


def effect_faults(events: Iterable[Event], timeline: Timeline, modes: Mapping[str, Sequence[str]]) -> list[Event]:
    """Return a ``fault.fired`` event for each call that the effect server treated with a fault mode.

    A mode that strikes after the commit has fired once the effect is in the ledger; one that strikes before it, at the
    call.
    """
    found = []
    for event in events:
        mode = event.data.get("mode")
        if mode is None or not EffectMode(mode).is_fault:
            continue
        if event.kind != ("tool.committed" if EffectMode(mode).after_commit else "tool.called"):
            continue
        fault = tool_fault_label(event.data["tool"], event.data["call"], modes[event.data["tool"]])
        at = timeline.start_seconds + event.at_seconds
        found.append(timeline.event(at, Source.TOOL, "fault.fired", {"fault": fault}))
    return found


def hook_events(log: Path, timeline: Timeline) -> list[Event]:
    """Return the hook log's lines as events; a hook that was never asked has no log."""
    if not log.is_file():
        return []
    found = []
    for line in log.read_text(encoding="utf-8").splitlines():
        data = json.loads(line)
        at = data.pop("at_seconds")
        found.append(timeline.event(at, Source.HOOK, "hook.asked", data))
    return found


def output_events(process: SandboxProcess, timeline: Timeline) -> list[Event]:
    """Return what a process printed, line by line."""
    return [
        timeline.event(
            line.at_seconds,
            Source.RUNTIME,
            "output.line",
            {"stream": line.stream, "text": line.text[:OUTPUT_LINE_CHARACTERS_MAX]},
        )
        for line in process.lines
    ]
