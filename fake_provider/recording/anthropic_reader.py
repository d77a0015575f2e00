"""Replies of the Messages API as neutral data, whole or streamed. Signatures are left out: a replay signs anew."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from fake_provider.recording.answer import Asked, Reached, Reading, UnreadableError, json_object, served_model, tool_use
from fake_provider.replies import STOP_REASONS, Block, Opaque, RedactedThinking, Reply, Text, Thinking, ToolUse, Usage


def read_whole(body: bytes, asked: Asked) -> Reading:
    """Read a message.

    Raises:
        UnreadableError: It is none.
    """
    message = json_object(body)
    content = message.get("content")
    if message.get("type") != "message" or not isinstance(content, list):
        raise UnreadableError("not a message")
    return Reading(_reply(tuple(_whole_block(block) for block in content), message, message, asked), "terminal")


def read_stream(events: Iterable[str], asked: Asked) -> Reading:
    """Read the events of a stream.

    Raises:
        UnreadableError: One is no JSON object.
    """
    message: dict[str, Any] = {}
    ending: Mapping[str, Any] = {}
    begun: dict[int, dict[str, Any]] = {}
    reached: Reached = "head"
    error = None
    for data in events:
        event = json_object(data)
        match event.get("type"):
            case "message_start":
                message, reached = dict(event.get("message") or {}), "start"
            case "content_block_start":
                block = begun[event.get("index", 0)] = {**event.get("content_block", {}), "pieces": [], "sources": []}
                reached = "content" if block.get("type") not in ("text", "thinking") else reached
            case "content_block_delta":
                _add(begun.get(event.get("index", 0), {}), event.get("delta", {}))
                reached = "content"
            case "content_block_stop":
                if begun.get(event.get("index", 0), {}).get("type") == "tool_use":
                    reached = "tool_end"
            case "message_delta":
                ending, reached = event.get("delta") or {}, "stop"
                if isinstance(event.get("usage"), dict) and isinstance(message.get("usage"), dict):
                    message["usage"] = {**message["usage"], **event["usage"]}
            case "message_stop":
                reached = "terminal"
            case "error":
                found = event.get("error") or {}
                error = (str(found.get("type", "api_error")), str(found.get("message", "")))
    blocks = tuple(_streamed_block(begun[index]) for index in sorted(begun))
    return Reading(_reply(blocks, message, ending, asked), reached, error)


def _reply(blocks: tuple[Block, ...], message: Mapping[str, Any], ending: Mapping[str, Any], asked: Asked) -> Reply:
    stop = ending.get("stop_reason")
    return Reply(
        blocks=blocks,
        stop_reason=stop if stop in STOP_REASONS else "end_turn",
        usage=_usage(message.get("usage")),
        model=served_model(message.get("model"), asked),
        stop_sequence=ending.get("stop_sequence"),
    )


def _usage(usage: object) -> Usage | None:
    if not isinstance(usage, Mapping):
        return None
    return Usage(
        usage.get("input_tokens"),
        usage.get("output_tokens"),
        usage.get("cache_read_input_tokens") or 0,
        usage.get("cache_creation_input_tokens") or 0,
    )


def _add(block: dict[str, Any], delta: Mapping[str, Any]) -> None:
    for key in ("text", "thinking", "partial_json"):
        if key in delta and "pieces" in block:
            block["pieces"].append(delta[key])
    if "citation" in delta and "sources" in block:
        block["sources"].append(delta["citation"])


def _streamed_block(block: Mapping[str, Any]) -> Block:
    said = "".join(block["pieces"])
    match block.get("type"):
        case "text":
            return Text(block.get("text", "") + said, tuple(block["sources"]))
        case "thinking":
            return Thinking(block.get("thinking", "") + said)
        case "tool_use":
            return tool_use(block.get("name", ""), said, block.get("id")) if said else _call(block)
        case _:
            content = {key: value for key, value in block.items() if key not in ("pieces", "sources")}
            return _whole_block({**content, "input": json_object(said)} if said else content)


def _whole_block(block: Mapping[str, Any]) -> Block:
    match block.get("type"):
        case "text":
            return Text(block.get("text", ""), tuple(block.get("citations") or ()))
        case "thinking":
            return Thinking(block.get("thinking", ""))
        case "redacted_thinking":
            return RedactedThinking(block.get("data", ""))
        case "tool_use":
            return _call(block)
        case _:
            return Opaque(block)


def _call(block: Mapping[str, Any]) -> ToolUse:
    return ToolUse(block.get("name", ""), block.get("input") or {}, block.get("id"))
