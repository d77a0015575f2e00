"""The provider-neutral view of a decoded request: what matchers, policies and the journal may ask about it.

Frozen data without I/O. A request that reached this form has passed the shape rules of its dialect; it never says
whether the conversation in it is a valid one.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias

import msgspec

from fake_provider.replies import RedactedThinking, Text, Thinking, ToolUse


@dataclass(frozen=True, slots=True)
class Received:
    """One HTTP request as it arrived.

    Attributes:
        method: The verb, in capitals.
        path: The path without its query.
        query: What stood behind the question mark, or nothing.
        headers: Names in lower case; of a repeated header the last value.
        body: The body's bytes, de-chunked.
    """

    method: str
    path: str
    query: str
    headers: Mapping[str, str]
    body: bytes


def asks_to_close(connection: str) -> bool:
    """Whether the value of a ``connection`` header asks for the end of the connection (RFC 9110, section 7.6.1)."""
    return "close" in [option.strip().lower() for option in connection.split(",")]


@dataclass(frozen=True, slots=True)
class ToolResult:
    """The outcome of a tool call as the client reports it."""

    tool_use_id: str
    is_error: bool
    text: str


@dataclass(frozen=True, slots=True)
class OtherBlock:
    """A block that the neutral model has no word for, such as an image."""

    type: str


RequestBlock: TypeAlias = Text | Thinking | RedactedThinking | ToolUse | ToolResult | OtherBlock


@dataclass(frozen=True, slots=True)
class Message:
    """One message of the conversation."""

    role: str
    blocks: tuple[RequestBlock, ...]


@dataclass(frozen=True)
class ModelRequest:
    """A request for a reply of the model; ``estimated_tokens`` follows the dialect's counting rule."""

    dialect: str
    path: str
    headers: Mapping[str, str]
    model: str
    stream: bool
    max_tokens: int | None
    system: str
    messages: tuple[Message, ...]
    tools: tuple[str, ...]
    estimated_tokens: int
    body: Mapping[str, Any]

    @cached_property
    def last_user_text(self) -> str:
        """The text of the last user message, its text blocks joined by newlines."""
        for message in reversed(self.messages):
            if message.role == "user":
                return "\n".join(block.text for block in message.blocks if isinstance(block, Text))
        return ""

    @cached_property
    def tool_calls(self) -> Mapping[str, ToolUse]:
        """Every tool call of the conversation by its id."""
        return {block.id: block for block in self._blocks() if isinstance(block, ToolUse) and block.id is not None}

    @cached_property
    def tool_results(self) -> tuple[ToolResult, ...]:
        """Every tool result of the conversation, oldest first."""
        return tuple(block for block in self._blocks() if isinstance(block, ToolResult))

    @property
    def brings_tool_results(self) -> bool:
        """Whether the last message holds a tool result."""
        return bool(self.messages) and any(isinstance(block, ToolResult) for block in self.messages[-1].blocks)

    def _blocks(self) -> Iterator[RequestBlock]:
        for message in self.messages:
            yield from message.blocks


NESTING_LEVELS_MAX = 200


class NotJsonError(ValueError):
    """A body that is no JSON, or is nested so deeply that nothing here would want to walk it."""


def decode_json(body: bytes) -> Any:
    """Decode a JSON body.

    Raises:
        NotJsonError: The message says why.
    """
    try:
        value = msgspec.json.decode(body)
    except (msgspec.DecodeError, RecursionError) as error:
        raise NotJsonError(str(error)) from error
    if _deeper_than(value, NESTING_LEVELS_MAX):
        raise NotJsonError(f"it is nested more than {NESTING_LEVELS_MAX} levels deep")
    return value


def _deeper_than(value: Any, levels: int) -> bool:
    if not isinstance(value, dict | list):
        return False
    children = value.values() if isinstance(value, dict) else value
    return levels == 0 or any(_deeper_than(child, levels - 1) for child in children)


def canonical_arguments(arguments: Mapping[str, Any]) -> str:
    """Return tool arguments as text that is equal exactly when they mean the same.

    Keys are sorted, spacing is dropped, and a float without a fraction is the whole number it equals, because a
    client written in another language writes ``7.0`` back as ``7``.
    """
    return json.dumps(_whole_numbers(arguments), sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def _whole_numbers(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _whole_numbers(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_whole_numbers(item) for item in value]
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return value
