"""Hand-made histories for tests of checks and reports: each function makes one event as its witness writes it.

Nothing here judges or runs anything, and no time is measured: events stand one second apart in the order given.
"""

from __future__ import annotations

from typing import Any

import msgspec

from harness.model.event import Event, Source
from harness.model.evidence import FORMAT_VERSION, Evidence, Input, Target, without_times
from harness.model.history import Ending, FileState, History, ProcessEnd
from harness.model.outcome import CheckResult, merged

BY_ITSELF = ProcessEnd(0, None, ended=True, crashed=False)
CRASHED = ProcessEnd(None, "SIGKILL", ended=False, crashed=True)
OVERDUE = ProcessEnd(None, None, ended=False, crashed=False)


def made(*events: Event, ends: tuple[ProcessEnd, ...] = (BY_ITSELF,), **fields: Any) -> History:
    """Return a history of these events, one second apart."""
    timed = tuple(msgspec.structs.replace(event, at_seconds=float(second)) for second, event in enumerate(events))
    return History(timed, ends, fields.pop("endings", (Ending(),) * len(ends)), **fields)


def event(source: Source, kind: str, phase: int = 1, /, **data: Any) -> Event:
    """Return any event."""
    return Event(0.0, source, kind, phase, data)


def in_phase(phase: int, *events: Event) -> tuple[Event, ...]:
    """Return events as if they had happened in this phase."""
    return tuple(msgspec.structs.replace(one, phase=phase) for one in events)


def request(number: int, *messages: Any, phase: int = 1, lane: str | None = "main", **data: Any) -> Event:
    """Return a model request with a conversation; ``body`` replaces the whole body."""
    body = {"model": "m", "messages": list(messages)}
    given = {"method": "POST", "path": "/v1/messages", "model": "m", "stream": True, "side": False, "body": body}
    return event(Source.PROVIDER, "request.received", phase, request=number, lane=lane, step="say", **{**given, **data})


def side_request(number: int) -> Event:
    """Return a request outside any lane."""
    return request(number, lane=None, side=True, method="HEAD", path="/api/hello", model=None, body=None)


def refused(number: int, *problems: str) -> Event:
    """Return that the provider refused a request."""
    return event(Source.PROVIDER, "request.refused", request=number, rules=["r"], problems=list(problems))


def unexpected(number: int, reason: str) -> Event:
    """Return that the script had no answer for a request."""
    return event(Source.PROVIDER, "request.unexpected", request=number, lane="main", reason=reason)


def mismatched(number: int, *differences: str) -> Event:
    """Return that a request was not what its step expects."""
    return event(Source.PROVIDER, "request.mismatch", request=number, step="say", differences=list(differences))


def reply(number: int, status: int | None = 200, *, complete: bool = True) -> tuple[Event, Event]:
    """Return the start and the end of a reply."""
    return (
        event(Source.PROVIDER, "reply.started", request=number, status=status),
        event(Source.PROVIDER, "reply.ended", request=number, status=status, frames={}, bytes=512, complete=complete),
    )


def fired(fault: str, phase: int = 1) -> Event:
    """Return that a fault struck."""
    return event(Source.PROVIDER, "fault.fired", phase, request=1, kind="cut", detail="after", fault=fault)


def tool(kind: str, name: str, call: int, phase: int = 1, **arguments: Any) -> Event:
    """Return a ledger line: ``called``, ``committed`` or ``answered``."""
    data = {"tool": name, "call": call, "request": "1", "meta": {}, "arguments": arguments, "mode": "normal"}
    return event(Source.TOOL, f"tool.{kind}", phase, **data)


def called_and_done(name: str, call: int, phase: int = 1, *, answered: bool = True) -> tuple[Event, ...]:
    """Return the ledger lines of one call of a tool."""
    kinds = ("called", "committed", "answered") if answered else ("called", "committed")
    return tuple(tool(kind, name, call, phase) for kind in kinds)


def hook(name: str, reason: str | None = None) -> Event:
    """Return that a hook was asked."""
    return event(Source.HOOK, "hook.asked", event=name, tool=None, rule=None, reason=reason, stop_hook_active=None)


def printed(text: str, phase: int = 1, stream: str = "stdout") -> Event:
    """Return one line of output."""
    return event(Source.RUNTIME, "output.line", phase, stream=stream, text=text)


def file(path: str, text: str | None) -> FileState:
    """Return a workspace file."""
    return FileState(path, "0o644", len(text or ""), f"sha256 of {text!r}", text)


def user(content: Any) -> dict[str, Any]:
    """Return a user's message."""
    return {"role": "user", "content": content}


def assistant(*blocks: dict[str, Any] | str) -> dict[str, Any]:
    """Return an assistant's message; text stands for a text block."""
    return {
        "role": "assistant",
        "content": [{"type": "text", "text": block} if isinstance(block, str) else block for block in blocks],
    }


def asking(identity: str, name: str = "deploy") -> dict[str, Any]:
    """Return a tool_use block."""
    return {"type": "tool_use", "id": identity, "name": name, "input": {}}


def answering(identity: str, text: str = "accepted", *, error: bool = False) -> dict[str, Any]:
    """Return a tool_result block."""
    content = [{"type": "text", "text": text}]
    return {"type": "tool_result", "tool_use_id": identity, "content": content, "is_error": error}


def evidence(history: History, checks: tuple[CheckResult, ...] = (), **fields: Any) -> Evidence:
    """Return hand-made evidence of a history; nothing in it comes from this machine."""
    timeless, times = without_times(history)
    whole: dict[str, Any] = {
        "format": FORMAT_VERSION,
        "run": "20261130-203015-1f2e",
        "target": Target("reference", "0.1.0", "ab" * 32),
        "captured_at": "2026-11-30T20:30:15Z",
        "environment": {"isolation": "network namespace", "weaker": "", "variables": {}},
        "commands": [["<reference>", "-p", "Go."]],
        "input": Input("tool.one", "cd" * 32, "id: tool.one\n", seed=0),
        "history": timeless,
        "timings_seconds": times,
        "literal_output": [{"stdout": "", "stderr": ""}],
        "observed": {"requests": 1, "effects": {}, "exit": 0},
        "before_after": [],
        "exit_status": [msgspec.to_builtins(end) for end in history.ends],
        "checks": list(checks),
        "outcome": merged(checks),
        "reproduce": "crashcart run scenarios/tool/one.yaml --runtime reference",
    }
    return Evidence(**{**whole, **fields})
