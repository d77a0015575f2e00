"""Replies of the Responses API as neutral data, whole or streamed. Sealed reasoning is sealed anew by a replay."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from fake_provider.dialects.openai_reasoning import REDACTED, unseal
from fake_provider.dialects.openai_tools import joined_name
from fake_provider.recording.answer import (
    Asked,
    Reached,
    Reading,
    UnreadableError,
    counted,
    json_object,
    served_model,
    tool_use,
)
from fake_provider.replies import Block, Opaque, RedactedThinking, Reply, Text, Thinking, ToolUse, Usage

_DELTAS: Mapping[str, str] = {
    "response.output_text.delta": "text",
    "response.refusal.delta": "text",
    "response.reasoning_summary_text.delta": "text",
    "response.function_call_arguments.delta": "arguments",
    "response.custom_tool_call_input.delta": "arguments",
}
_ENDS = ("response.completed", "response.incomplete")


def read_whole(body: bytes, asked: Asked) -> Reading:
    """Read a response.

    Raises:
        UnreadableError: It is none.
    """
    response = json_object(body)
    output = response.get("output")
    if response.get("object") != "response" or not isinstance(output, list):
        raise UnreadableError("not a response")
    return Reading(_reply([block for item in output for block in _item_blocks(item)], response, asked), "terminal")


def read_stream(events: Iterable[str], asked: Asked) -> Reading:
    """Read the events of a stream.

    Raises:
        UnreadableError: One is no JSON object.
    """
    response: Mapping[str, Any] = {}
    items: dict[int, dict[str, Any]] = {}
    reached: Reached = "head"
    error = None
    for data in events:
        event = json_object(data)
        kind, index = str(event.get("type", "")), event.get("output_index", 0)
        if kind in ("error", "response.failed"):
            error = _error(event)
            break
        if kind == "response.created":
            response, reached = event.get("response") or {}, "start"
        elif kind == "response.output_item.added":
            items[index] = {"item": event.get("item") or {}, "pieces": []}
            reached = "content" if str(items[index]["item"].get("type")).endswith("_call") else reached
        elif kind in _DELTAS and index in items:
            items[index]["pieces"].append(event.get("delta") or "")
            reached = "content"
        elif kind == "response.output_item.done":
            items[index] = {"item": event.get("item") or {}, "pieces": None}
            reached = _after_item(items[index]["item"], reached)
        elif kind in _ENDS:
            response, reached = event.get("response") or {}, "terminal"
    if reached == "terminal" and isinstance(response.get("output"), list):
        blocks = [block for item in response["output"] for block in _item_blocks(item)]
    else:
        blocks = [block for index in sorted(items) for block in _unfinished_blocks(items[index])]
    return Reading(_reply(blocks, response, asked), reached, error)


def _after_item(item: Mapping[str, Any], before: Reached) -> Reached:
    kind = item.get("type")
    if kind in ("function_call", "custom_tool_call"):
        return "tool_end"
    return before if kind in ("message", "reasoning") else "content"


def _error(event: Mapping[str, Any]) -> tuple[str, str]:
    found = event.get("error") or (event.get("response") or {}).get("error") or event
    return (str(found.get("code") or found.get("type") or "server_error"), str(found.get("message") or ""))


def _unfinished_blocks(begun: Mapping[str, Any]) -> list[Block]:
    item, pieces = begun["item"], begun["pieces"]
    if pieces is None:
        return _item_blocks(item)
    said = "".join(pieces)
    match item.get("type"):
        case "message":
            return [Text(said)] if said else []
        case "reasoning":
            return [Thinking(said)] if said else []
        case "function_call" | "custom_tool_call":
            return [_call(item, said)]
        case _:
            return [Opaque(item)]


def _item_blocks(item: Mapping[str, Any]) -> list[Block]:
    match item.get("type"):
        case "message":
            return [_part(part) for part in item.get("content") or ()]
        case "reasoning":
            return [_reasoning(item)]
        case "function_call":
            return [_call(item, item.get("arguments", ""))]
        case "custom_tool_call":
            return [_call(item, item.get("input", ""))]
        case _:
            return [Opaque(item)]


def _part(part: Mapping[str, Any]) -> Block:
    if part.get("type") == "refusal":
        return Text(part.get("refusal", ""))
    return Text(part.get("text", ""), tuple(part.get("annotations") or ()))


def _reasoning(item: Mapping[str, Any]) -> Block:
    sealed = unseal(item.get("encrypted_content") or "")
    if sealed is not None and sealed.kind == REDACTED:
        return RedactedThinking(sealed.data)
    return Thinking("".join(part.get("text", "") for part in item.get("summary") or ()))


def _call(item: Mapping[str, Any], text: str) -> ToolUse:
    name, namespace = item.get("name", ""), item.get("namespace")
    name = joined_name(namespace, name) if isinstance(namespace, str) else name
    if item.get("type") == "custom_tool_call":
        return ToolUse(name, {"input": text}, item.get("call_id"))
    return tool_use(name, text, item.get("call_id"))


def _reply(blocks: list[Block], response: Mapping[str, Any], asked: Asked) -> Reply:
    usage = response.get("usage")
    return Reply(
        tuple(blocks),
        _stop_reason(blocks, response),
        _usage(usage) if isinstance(usage, Mapping) else None,
        served_model(response.get("model"), asked),
    )


def _stop_reason(blocks: list[Block], response: Mapping[str, Any]) -> str:
    if response.get("status") == "incomplete":
        reason = (response.get("incomplete_details") or {}).get("reason")
        return "refusal" if reason == "content_filter" else "max_tokens"
    parts = [part for item in response.get("output") or () for part in item.get("content") or ()]
    if any(part.get("type") == "refusal" for part in parts):
        return "refusal"
    return "tool_use" if any(isinstance(block, ToolUse) for block in blocks) else "end_turn"


def _usage(usage: Mapping[str, Any]) -> Usage:
    details = usage.get("input_tokens_details") or {}
    return counted(
        usage.get("input_tokens"),
        read=details.get("cached_tokens"),
        written=details.get("cache_write_tokens"),
        output=usage.get("output_tokens"),
    )
