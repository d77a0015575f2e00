"""Small stand-ins for the parts of the runtime: a clock that does not wait, a sink that remembers, a transport.

They hold no expectations; the tests do.
"""

import asyncio
import json
from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from fake_provider.dialects.anthropic_rules import signature_of
from reference_runtime.clock import Clock
from reference_runtime.requests import Response, TransportError


@dataclass(frozen=True)
class InstantClock(Clock):
    """Remembers what it was asked to wait and waits for none of it."""

    slept_seconds: list[float] = field(default_factory=list)

    async def sleep(self, seconds: float) -> None:
        self.slept_seconds.append(seconds)


class RememberingSink:
    """Keeps every frame."""

    def __init__(self) -> None:
        self.frames: list[Mapping[str, Any]] = []

    def emit(self, frame: Mapping[str, Any]) -> None:
        self.frames.append(frame)

    def of(self, subtype: str) -> list[Mapping[str, Any]]:
        return [frame for frame in self.frames if frame.get("subtype") == subtype]


@dataclass(frozen=True)
class Cut:
    """The connection ends here."""


@dataclass(frozen=True)
class Silence:
    """Nothing more comes, for ever."""


Part = bytes | Cut | Silence


@dataclass(frozen=True)
class Scripted:
    """One scripted response."""

    parts: Sequence[Part]
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=lambda: {"content-type": "text/event-stream"})

    async def chunks(self) -> AsyncGenerator[bytes, None]:
        for part in self.parts:
            if isinstance(part, Cut):
                raise TransportError("cut")
            if isinstance(part, Silence):
                await asyncio.Event().wait()
            else:
                yield part


@dataclass(frozen=True)
class NoConnection:
    """The connection is refused."""


class ScriptedTransport:
    """Answers each request with the next scripted response, and remembers what it was sent."""

    def __init__(self, *answers: Scripted | NoConnection) -> None:
        self._answers = list(answers)
        self.bodies: list[dict[str, Any]] = []
        self.headers: list[Mapping[str, str]] = []
        self.asked = asyncio.Event()

    @asynccontextmanager
    async def post(self, path: str, headers: Mapping[str, str], body: bytes) -> AsyncIterator[Response]:
        assert path == "/v1/messages"
        self.bodies.append(json.loads(body))
        self.headers.append(headers)
        self.asked.set()
        answer = self._answers.pop(0)
        if isinstance(answer, NoConnection):
            raise TransportError("refused")
        yield answer


def sse(*events: Mapping[str, Any]) -> bytes:
    """Events as they go over the wire."""
    return b"".join(f"event: {e['type']}\ndata: {json.dumps(e)}\n\n".encode() for e in events)


def start_event(model: str = "m") -> dict[str, Any]:
    return {"type": "message_start", "message": {"model": model, "usage": {"input_tokens": 3, "output_tokens": 1}}}


def block_events(index: int, block: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The events of one block; a tool's input is streamed in pieces of four characters."""
    if block["type"] == "text":
        opening: dict[str, Any] = {"type": "text", "text": ""}
        deltas = [{"type": "text_delta", "text": block["text"]}]
    elif block["type"] == "thinking":
        opening = {"type": "thinking", "thinking": "", "signature": ""}
        deltas = [
            {"type": "thinking_delta", "thinking": block["thinking"]},
            {"type": "signature_delta", "signature": block["signature"]},
        ]
    else:
        opening = {**block, "input": {}}
        text = block["input"] if isinstance(block["input"], str) else json.dumps(block["input"])
        pieces = [text[at : at + 4] for at in range(0, len(text), 4)]
        deltas = [{"type": "input_json_delta", "partial_json": piece} for piece in pieces]
    return [
        {"type": "content_block_start", "index": index, "content_block": opening},
        *({"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas),
        {"type": "content_block_stop", "index": index},
    ]


def message_events(*blocks: Mapping[str, Any], stop_reason: str = "end_turn", model: str = "m") -> list[dict[str, Any]]:
    """The events of one whole message."""
    return [
        start_event(model),
        *(event for index, block in enumerate(blocks) for event in block_events(index, block)),
        {"type": "message_delta", "delta": {"stop_reason": stop_reason}, "usage": {"output_tokens": 7}},
        {"type": "message_stop"},
    ]


def text_block(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}


def thinking_block(text: str) -> dict[str, Any]:
    """A thinking block with the signature that the fake provider knows for its own."""
    return {"type": "thinking", "thinking": text, "signature": signature_of(text)}


def tool_block(call_id: str, name: str, arguments: object) -> dict[str, Any]:
    """A tool call; arguments given as a text are streamed as they are, also when they are no JSON."""
    return {"type": "tool_use", "id": call_id, "name": name, "input": arguments}


def said(text: str, model: str = "m") -> Scripted:
    """A streamed reply of one text."""
    return Scripted([sse(*message_events(text_block(text), model=model))])


def failed(status: int, error_type: str = "api_error", message: str = "no", **headers: str) -> Scripted:
    """A reply that is an error."""
    body = json.dumps({"type": "error", "error": {"type": error_type, "message": message}}).encode()
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return Scripted([body], status, {"content-type": "application/json", **named})
