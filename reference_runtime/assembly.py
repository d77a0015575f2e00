"""From bytes of a reply to a complete message: server-sent events, content blocks, tool inputs (A7, B1, B6).

Pure: it is fed bytes and never reads a socket. Nothing that it holds may be acted on before the message is complete.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any


class MalformedReplyError(Exception):
    """What came is not a valid message or not a valid event of one."""


class ProviderErrorEvent(Exception):  # noqa: N818 - it is the provider's event, carried by a raise
    """The stream held an error event instead of the rest of the message."""

    def __init__(self, error_type: str, message: str) -> None:
        super().__init__(message)
        self.error_type = error_type
        self.message = message


@dataclass(frozen=True)
class Reply:
    """One complete message of the model; `broken` holds the indexes of tool calls whose input does not parse."""

    model: str
    stop_reason: str
    blocks: tuple[Mapping[str, Any], ...]
    usage: Mapping[str, Any]
    broken: frozenset[int] = frozenset()

    @property
    def text(self) -> str:
        """The visible text."""
        return "".join(block["text"] for block in self.blocks if block["type"] == "text")


class EventDecoder:
    """Decodes server-sent events from chunks of bytes cut anywhere (WHATWG HTML, server-sent events)."""

    def __init__(self) -> None:
        self._buffer = b""
        self._data: list[str] = []

    def feed(self, chunk: bytes) -> Iterator[Mapping[str, Any]]:
        """The data objects of the events that this chunk completes.

        Raises:
            MalformedReplyError: An event's data is not a JSON object with a type.
        """
        self._buffer += chunk
        *lines, self._buffer = self._buffer.split(b"\n")
        for line in lines:
            yield from self._line(line.rstrip(b"\r").decode("utf-8", "replace"))

    def _line(self, line: str) -> Iterator[Mapping[str, Any]]:
        if line:
            name, _, value = line.partition(":")
            if name == "data":
                self._data.append(value.removeprefix(" "))
            return
        if self._data:
            text, self._data = "\n".join(self._data), []
            yield _event(text)


def _event(text: str) -> Mapping[str, Any]:
    try:
        value = json.loads(text)
    except ValueError as error:
        raise MalformedReplyError(f"an event's data is not JSON: {text[:80]!r}") from error
    if not isinstance(value, dict) or not isinstance(value.get("type"), str):
        raise MalformedReplyError(f"an event's data has no type: {text[:80]!r}")
    return value


@dataclass
class _OpenBlock:
    block: dict[str, Any]
    partial_input: list[str] = field(default_factory=list)


class MessageAssembler:
    """Assembles the events of one Anthropic Messages stream; events of an unknown type are passed over."""

    def __init__(self) -> None:
        self.begun = False
        self.complete = False
        self._model = ""
        self._usage: dict[str, Any] = {}
        self._stop_reason: str | None = None
        self._open: dict[int, _OpenBlock] = {}
        self._blocks: list[Mapping[str, Any]] = []
        self._broken: set[int] = set()

    def take(self, event: Mapping[str, Any]) -> None:
        """Take the next event.

        Raises:
            MalformedReplyError: The event does not fit what came before, or lacks a field.
            ProviderErrorEvent: It is an error event.
        """
        try:
            self._take(event)
        except (KeyError, TypeError, AttributeError) as error:
            raise MalformedReplyError(f"event {event.get('type')!r} is not as documented: {error!r}") from error

    def _take(self, event: Mapping[str, Any]) -> None:
        match event["type"]:
            case "message_start":
                message = event["message"]
                self.begun, self._model = True, str(message["model"])
                self._usage.update(message.get("usage") or {})
            case "content_block_start":
                self._require_begun()
                self._open[event["index"]] = _OpenBlock(dict(event["content_block"]))
            case "content_block_delta":
                self._delta(self._open[event["index"]], event["delta"])
            case "content_block_stop":
                self._close(self._open.pop(event["index"]))
            case "message_delta":
                self._require_begun()
                self._stop_reason = event["delta"].get("stop_reason") or self._stop_reason
                self._usage.update({k: v for k, v in (event.get("usage") or {}).items() if v is not None})
            case "message_stop":
                self._finish()
            case "error":
                error = event["error"]
                raise ProviderErrorEvent(str(error.get("type", "")), str(error.get("message", "")))

    def _require_begun(self) -> None:
        if not self.begun:
            raise MalformedReplyError("the stream does not begin with message_start")

    def _delta(self, target: _OpenBlock, delta: Mapping[str, Any]) -> None:
        match delta["type"]:
            case "text_delta":
                target.block["text"] = target.block.get("text", "") + delta["text"]
            case "thinking_delta":
                target.block["thinking"] = target.block.get("thinking", "") + delta["thinking"]
            case "signature_delta":
                target.block["signature"] = target.block.get("signature", "") + delta["signature"]
            case "input_json_delta":
                target.partial_input.append(delta["partial_json"])

    def _close(self, target: _OpenBlock) -> None:
        block = target.block
        if block["type"] == "tool_use":
            parsed = _tool_input("".join(target.partial_input), block.get("input"))
            block["input"] = parsed if parsed is not None else {}
            if parsed is None:
                self._broken.add(len(self._blocks))
        self._blocks.append(block)

    def _finish(self) -> None:
        self._require_begun()
        if self._open or self._stop_reason is None:
            raise MalformedReplyError("the stream stops with an open block or without a stop reason")
        self.complete = True

    def reply(self) -> Reply:
        """The complete message; only to be called when `complete`."""
        reply = Reply(self._model, self._stop_reason or "", tuple(self._blocks), self._usage, frozenset(self._broken))
        return _checked(reply)


def _tool_input(streamed: str, given: object) -> dict[str, Any] | None:
    if not streamed.strip():
        return given if isinstance(given, dict) else {}
    try:
        value = json.loads(streamed)
    except ValueError:
        return None
    return value if isinstance(value, dict) else None


def reply_of_body(body: bytes) -> Reply:
    """The message of a reply that was not streamed.

    Raises:
        MalformedReplyError: The body is not a message object.
    """
    try:
        value = json.loads(body)
        blocks = tuple(dict(block) for block in value["content"])
        broken = frozenset(
            i for i, b in enumerate(blocks) if b["type"] == "tool_use" and not isinstance(b.get("input"), dict)
        )
        for index in broken:
            blocks[index]["input"] = {}
        reply = Reply(str(value["model"]), str(value["stop_reason"] or ""), blocks, value.get("usage") or {}, broken)
    except (ValueError, KeyError, TypeError) as error:
        raise MalformedReplyError(f"the body is not a message: {body[:80]!r}") from error
    return _checked(reply)


_REQUIRED_FIELDS = {"text": ("text",), "thinking": ("thinking",), "tool_use": ("id", "name")}


def _checked(reply: Reply) -> Reply:
    if not reply.stop_reason:
        raise MalformedReplyError("the message has no stop reason")
    for block in reply.blocks:
        for name in _REQUIRED_FIELDS.get(block.get("type", ""), ()):
            if not isinstance(block.get(name), str):
                raise MalformedReplyError(f"a {block['type']} block has no {name}")
    return reply
