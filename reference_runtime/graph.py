"""The message graph: who answers whom, which messages are tombstoned, and which view goes to the provider (C2, C6, F2).

It holds messages only. A tombstone takes a message out of every later request and undoes nothing that a tool did.
"""

from collections.abc import Iterable, Mapping
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

    def __contains__(self, uuid: str) -> bool:
        """Whether there is a message with this uuid, tombstoned or not."""
        return uuid in self._messages

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


LOST_BEGINNING_TEXT = "The beginning of this conversation is lost."


def provider_view(messages: Iterable[Message]) -> list[dict[str, Any]]:
    """The messages as a strict provider accepts them.

    Neighbours of one role become one message with tool results first, empty text is left out, and a message that has
    nothing else to say (only thinking, or nothing) is left out as a whole. Whatever damage made of a conversation, each
    call stands once and its result right after it; a call or a result without the other is left out, and a
    conversation whose beginning is gone says so.
    """
    branch = list(messages)
    results: dict[str, Block] = {}
    for message in branch:
        for block in message.content:
            if block.get("type") == "tool_result":
                results.setdefault(block["tool_use_id"], block)
    view: list[dict[str, Any]] = []
    for message in branch:
        content = _sendable(message, results)
        _say(view, message.role, content)
        # Taken out, so that a second call with this id has no result and is left out.
        _say(view, "user", [results.pop(block["id"]) for block in content if block.get("type") == "tool_use"])
    if view and view[0]["role"] != "user":
        view.insert(0, {"role": "user", "content": [{"type": "text", "text": LOST_BEGINNING_TEXT}]})
    return view


def _say(view: list[dict[str, Any]], role: str, content: list[Block]) -> None:
    if not content:
        return
    if view and view[-1]["role"] == role:
        view[-1]["content"] = _results_first([*view[-1]["content"], *content])
    else:
        view.append({"role": role, "content": content})


def _sendable(message: Message, results: Mapping[str, Block]) -> list[Block]:
    """A message's own blocks; results are not among them, since they stand where their calls say."""
    blocks: list[Block] = []
    called: set[str] = set()
    for block in message.content:
        match block.get("type"):
            case "text" if not block["text"].strip():
                continue
            case "tool_result":
                continue
            case "tool_use":
                if message.role != "assistant" or block["id"] in called or block["id"] not in results:
                    continue
                called.add(block["id"])
        blocks.append(block)
    speaks = any(block.get("type") not in ("thinking", "redacted_thinking") for block in blocks)
    return blocks if speaks else []


def _results_first(content: list[Block]) -> list[Block]:
    results = [block for block in content if block.get("type") == "tool_result"]
    return results + [block for block in content if block.get("type") != "tool_result"]
