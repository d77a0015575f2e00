"""What an upstream answered, as bytes, and what a reader makes of it: neutral data without I/O."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypeAlias

from fake_provider.replies import Block, Reply, Text, Thinking, ToolUse, Usage


@dataclass(frozen=True, slots=True)
class Answer:
    """One reply of the upstream.

    Attributes:
        status: HTTP status code; nothing where the connection ended before any byte of an answer.
        headers: Names in lower case.
        body: The body's bytes, without transfer coding, as far as they came.
        ended: Whether the body ended by HTTP's own rules.
    """

    status: int | None
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""
    ended: bool = True

    @property
    def content_type(self) -> str:
        """The media type without its parameters."""
        return self.headers.get("content-type", "").partition(";")[0].strip().lower()


Reached: TypeAlias = Literal["head", "start", "content", "tool_end", "stop", "terminal"]
"""How far a reply came: words of ``wire.PLACES``, and ``head`` where no event came."""


@dataclass(frozen=True, slots=True)
class Reading:
    """What a reply said.

    Attributes:
        reply: As far as it came.
        reached: The last place that it reached.
        error: Type and message of an error event, where one ended it.
    """

    reply: Reply
    reached: Reached
    error: tuple[str, str] | None = None


class UnreadableError(Exception):
    """The body is not what the dialect says; it can only be stored as it is."""


@dataclass(frozen=True, slots=True)
class Asked:
    """What a reader has to know of the request: the model, and whether the counts were asked for."""

    model: str
    wants_usage: bool = True


def json_object(data: bytes | str) -> dict[str, Any]:
    """Decode a JSON object.

    Raises:
        UnreadableError: It is none.
    """
    try:
        value = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise UnreadableError(str(error)) from error
    if not isinstance(value, dict):
        raise UnreadableError("not a JSON object")
    return value


def tool_use(name: str, arguments: str, call_id: str | None) -> ToolUse:
    """Return a call whose arguments came as text: as data where they are a JSON object, and raw otherwise."""
    try:
        value = json.loads(arguments)
    except (ValueError, RecursionError):
        value = None
    if isinstance(value, dict):
        return ToolUse(name, value, call_id)
    return ToolUse(name, {}, call_id, arguments=arguments)


def merged(blocks: Sequence[Block]) -> tuple[Block, ...]:
    """Drop what says nothing, and join neighbours of one kind."""
    joined: list[Block] = []
    for block in blocks:
        if block in (Text(""), Thinking("")):
            continue
        before = joined[-1] if joined else None
        if isinstance(block, Text) and isinstance(before, Text):
            joined[-1] = replace(before, text=before.text + block.text, citations=(*before.citations, *block.citations))
        elif isinstance(block, Thinking) and isinstance(before, Thinking):
            joined[-1] = replace(before, thinking=before.thinking + block.thinking)
        else:
            joined.append(block)
    return tuple(joined)


def served_model(model: object, asked: Asked) -> str | None:
    """Return the serving model where it is another than the one asked for."""
    return model if isinstance(model, str) and model and model != asked.model else None


def counted(total: object, *, read: object = 0, written: object = 0, output: object = 0) -> Usage:
    """Return counts whose total of input holds what was read from a cache and written to it."""
    cached, stored = _count(read), _count(written)
    return Usage(max(0, _count(total) - cached - stored), _count(output), cached, stored)


def _count(value: object) -> int:
    return value if isinstance(value, int) and value > 0 else 0
