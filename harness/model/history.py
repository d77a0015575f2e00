"""Everything observed in one run, in order, with typed questions about it.

A history is the only thing that checks read. It answers from what the witnesses outside the runtime saw; what the
runtime says of itself is kept apart under :class:`Ending`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from harness.model.event import Event, Source


class FileState(msgspec.Struct, frozen=True):
    """One file under a watched root: permission bits in octal, size in bytes, sha256 of its content."""

    path: str
    mode: str
    size_bytes: int
    sha256: str
    text: str | None = None


class ProcessEnd(msgspec.Struct, frozen=True):
    """How the runtime's process of one phase ended.

    Attributes:
        exit_code: Its exit status, or ``None`` when a signal ended it or it never ended.
        signal: The name of the signal that ended it, or ``None``.
        ended: False when the wall limit passed and the harness ended it.
        crashed: True when the harness ended it on purpose, at a crash point.
    """

    exit_code: int | None
    signal: str | None
    ended: bool
    crashed: bool


class Ending(msgspec.Struct, frozen=True):
    """What the runtime said about its own end, translated by its adapter; ``None`` where it said nothing."""

    terminal: str | None = None
    turns: int | None = None
    subtype: str | None = None
    is_error: bool | None = None
    text: str | None = None
    session: str | None = None
    counters: dict[str, int] = {}


@dataclass(frozen=True)
class ModelRequest:
    """One request for a model reply as the provider received it.

    Attributes:
        number: The provider's own count, from 1.
        phase: The phase in which it arrived.
        lane: The lane that answered it.
        model: The model asked for.
        stream: Whether a stream was asked for.
        messages: The conversation, as sent, without what is no message.
        body: The whole decoded body.
        refused: What the strict validator found wrong, empty when accepted.
        status: The status code of the reply, or ``None`` when none was sent.
    """

    number: int
    phase: int
    lane: str
    at_seconds: float
    model: str
    stream: bool
    messages: Sequence[Mapping[str, Any]]
    body: Mapping[str, Any]
    refused: tuple[str, ...]
    status: int | None


@dataclass(frozen=True)
class ToolResult:
    """A tool_result block as it stood in a request: the answer the model was given for one tool call."""

    request: int
    tool_use_id: str
    tool: str | None
    is_error: bool
    text: str


class History(msgspec.Struct, frozen=True):
    """The record of one run.

    Attributes:
        events: All events in order of time.
        ends: How the process of each phase ended, in order of phases.
        endings: What the runtime said of each phase's end.
        files_before: The workspace before the first phase, by relative path.
        files_after: The workspace after the last phase.
        left_running: Command lines of processes that were still there after the runtime had ended.
        faults_declared: The faults, holds and crashes that the scenario asked for, as short sentences.
        tool_names: Neutral tool name to what the runtime calls it.
    """

    events: tuple[Event, ...]
    ends: tuple[ProcessEnd, ...]
    endings: tuple[Ending, ...]
    files_before: dict[str, FileState] = {}
    files_after: dict[str, FileState] = {}
    left_running: tuple[str, ...] = ()
    faults_declared: tuple[str, ...] = ()
    tool_names: dict[str, str] = {}

    def of(self, kind: str, source: Source | None = None) -> tuple[Event, ...]:
        """Return the events of one kind, in order."""
        return tuple(event for event in self.events if event.kind == kind and source in (None, event.source))

    def requests(self, lane: str | None = "main") -> tuple[ModelRequest, ...]:
        """Return the model requests of a lane (all lanes for ``None``), in the order of arrival."""
        refused = {e.data["request"]: tuple(e.data["problems"]) for e in self.of("request.refused")}
        statuses = {e.data["request"]: e.data["status"] for e in self.of("reply.started")}
        found = []
        for event in self.of("request.received"):
            data = event.data
            if data.get("side") or (lane is not None and data.get("lane") != lane):
                continue
            body = data["body"] if isinstance(data["body"], dict) else {}
            found.append(
                ModelRequest(
                    number=data["request"],
                    phase=event.phase,
                    lane=data.get("lane") or "",
                    at_seconds=event.at_seconds,
                    model=data.get("model") or "",
                    stream=bool(data.get("stream")),
                    messages=messages_of(body),
                    body=body,
                    refused=refused.get(data["request"], ()),
                    status=statuses.get(data["request"]),
                )
            )
        return tuple(found)

    def tool_results(self, lane: str | None = "main") -> tuple[ToolResult, ...]:
        """Return each tool call's answer once, as it first stood in a request."""
        neutral = {name: word for word, name in self.tool_names.items()}
        seen: dict[str, ToolResult] = {}
        for request in self.requests(lane):
            names: dict[str, str] = {}
            for message in request.messages:
                for block in blocks_of(message):
                    if block.get("type") == "tool_use":
                        names[str(block.get("id"))] = str(block.get("name"))
                    if block.get("type") != "tool_result":
                        continue
                    identity = str(block.get("tool_use_id"))
                    name = names.get(identity)
                    seen.setdefault(
                        identity,
                        ToolResult(
                            request=request.number,
                            tool_use_id=identity,
                            tool=neutral.get(name, name) if name is not None else None,
                            is_error=bool(block.get("is_error", False)),
                            text=text_of(block.get("content")),
                        ),
                    )
        return tuple(seen.values())

    def effects(self, tool: str) -> tuple[Event, ...]:
        """Return the lines that the effect ledger holds for a tool: what really happened outside."""
        return tuple(event for event in self.of("tool.committed", Source.TOOL) if event.data.get("tool") == tool)

    @property
    def ended(self) -> bool:
        """Whether every phase that ran ended by itself or by a crash that the scenario asked for."""
        return bool(self.ends) and all(end.ended or end.crashed for end in self.ends)

    @property
    def last_end(self) -> ProcessEnd | None:
        """How the last phase's process ended."""
        return self.ends[-1] if self.ends else None

    @property
    def last_ending(self) -> Ending:
        """What the runtime said of the last phase's end."""
        return self.endings[-1] if self.endings else Ending()


def messages_of(body: Mapping[str, Any]) -> tuple[Mapping[str, Any], ...]:
    """Return a request's messages; what is none is left out, since a runtime under test may send anything."""
    messages = body.get("messages")
    return tuple(item for item in messages if isinstance(item, dict)) if isinstance(messages, list | tuple) else ()


def blocks_of(message: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return a message's content as blocks; plain text becomes one text block, and what is no block is left out."""
    content = message.get("content")
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    return [block for block in content if isinstance(block, dict)] if isinstance(content, list | tuple) else []


def text_of(content: object) -> str:
    """Return all text in a tool_result's content."""
    if isinstance(content, str):
        return content
    if isinstance(content, list | tuple):
        return "\n".join(str(block.get("text", "")) for block in content if isinstance(block, dict))
    return ""
