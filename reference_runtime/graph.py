"""The message graph: who answers whom, which messages are tombstoned, and which view goes to the provider (C2, C6, F2).

It holds messages only. A tombstone takes a message out of every later request and undoes nothing that a tool did.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

Block = Mapping[str, Any]


@dataclass(frozen=True)
class Message:
    """One message; `content` is a tuple of content blocks in the provider's own shape."""

    uuid: str
    parent_uuid: str | None
    role: str
    content: tuple[Block, ...]
    turn: int
    hidden: bool = False
    details: Mapping[str, Any] = field(default_factory=dict)


class RepeatedMessageError(Exception):
    """Two messages have one uuid."""


class MessageGraph:
    """Messages by uuid, the tombstoned ones, and the active leaf."""

    def __init__(self) -> None:
        self._messages: dict[str, Message] = {}
        self._tombstoned: set[str] = set()
        self._leaf: str | None = None

    @property
    def leaf(self) -> str | None:
        """The uuid of the newest active message, or None in an empty graph."""
        return self._leaf

    def add(self, message: Message) -> None:
        """Append a message; it becomes the leaf.

        Raises:
            RepeatedMessageError: There is a message with this uuid; the graph is as before.
        """
        if message.uuid in self._messages:
            raise RepeatedMessageError(message.uuid)
        self._messages[message.uuid] = message
        self._leaf = message.uuid

    def tombstone(self, uuids: Iterable[str]) -> None:
        """Take messages out of the active branch for good; an unknown uuid is that of a message never completed."""
        self._tombstoned.update(uuids)
        while self._leaf is not None and self._leaf in self._tombstoned:
            self._leaf = self._messages[self._leaf].parent_uuid

    def active(self) -> list[Message]:
        """The active branch from its first message to the leaf, without tombstoned messages."""
        branch: list[Message] = []
        uuid = self._leaf
        seen: set[str] = set()
        while uuid is not None and uuid in self._messages and uuid not in seen:
            seen.add(uuid)
            message = self._messages[uuid]
            if uuid not in self._tombstoned:
                branch.append(message)
            uuid = message.parent_uuid
        branch.reverse()
        return branch

    def tool_use_ids(self) -> set[str]:
        """Every tool call id of the active branch."""
        return {
            block["id"] for message in self.active() for block in message.content if block.get("type") == "tool_use"
        }

    def unanswered_calls(self) -> list[tuple[Message, Block]]:
        """The tool calls of the active branch that no later message answers, in order."""
        branch = self.active()
        answered = {
            block["tool_use_id"]
            for message in branch
            for block in message.content
            if block.get("type") == "tool_result"
        }
        return [
            (message, block)
            for message in branch
            for block in message.content
            if block.get("type") == "tool_use" and block["id"] not in answered
        ]


def provider_view(messages: Iterable[Message]) -> list[dict[str, Any]]:
    """The messages as a strict provider accepts them.

    Neighbours of one role become one message with tool results first, empty text is left out, and a message that has
    nothing else to say (only thinking, or nothing) is left out as a whole.
    """
    view: list[dict[str, Any]] = []
    for message in messages:
        content = list(_sendable(message))
        if not content:
            continue
        if view and view[-1]["role"] == message.role:
            view[-1]["content"] = _results_first([*view[-1]["content"], *content])
        else:
            view.append({"role": message.role, "content": _results_first(content)})
    return view


def _sendable(message: Message) -> Iterator[Block]:
    blocks = [block for block in message.content if block.get("type") != "text" or block["text"].strip()]
    if any(block.get("type") not in ("thinking", "redacted_thinking") for block in blocks):
        yield from blocks


def _results_first(content: list[Block]) -> list[Block]:
    results = [block for block in content if block.get("type") == "tool_result"]
    return results + [block for block in content if block.get("type") != "tool_result"]
