"""Replies of Chat Completions as neutral data, whole or streamed; of several choices the first."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from fake_provider.recording.answer import (
    Asked,
    Reached,
    Reading,
    UnreadableError,
    counted,
    json_object,
    merged,
    served_model,
    tool_use,
)
from fake_provider.replies import Block, Reply, Text, Thinking, Usage

STOP_REASONS: Mapping[str, str] = {
    "stop": "end_turn",
    "length": "max_tokens",
    "tool_calls": "tool_use",
    "function_call": "tool_use",
    "content_filter": "refusal",
}
"""Neutral stop reason by finish reason; a text that is a refusal makes ``stop`` one too."""


def read_whole(body: bytes, asked: Asked) -> Reading:
    """Read a completion.

    Raises:
        UnreadableError: It is none.
    """
    completion = json_object(body)
    choice = _first(completion)
    if choice is None:
        raise UnreadableError("a completion has choices")
    message = choice.get("message") or {}
    refusal = message.get("refusal")
    blocks: list[Block] = [Thinking(message.get("reasoning_content") or ""), Text(message.get("content") or "")]
    blocks.append(Text(refusal or ""))
    for call in message.get("tool_calls") or ():
        function = call.get("function") or {}
        blocks.append(tool_use(function.get("name", ""), function.get("arguments", ""), call.get("id")))
    cited = _cited(merged(blocks), tuple(message.get("annotations") or ()))
    counts = completion.get("usage")
    usage = _usage(counts) if isinstance(counts, Mapping) else None
    return Reading(_reply(cited, choice, completion, asked, usage=usage, refused=bool(refusal)), "terminal")


def read_stream(events: Iterable[str], asked: Asked) -> Reading:
    """Read the chunks of a stream.

    Raises:
        UnreadableError: One is no JSON object.
    """
    # A number stands for the call of that index, whose arguments come in pieces.
    spoken: list[Block | int] = []
    calls: dict[int, dict[str, Any]] = {}
    sources: list[Any] = []
    last: dict[str, Any] = {}
    finished: Mapping[str, Any] = {}
    usage = None if asked.wants_usage else Usage()
    refused, reached, error = False, "head", None
    for data in events:
        if data == "[DONE]":
            reached = "terminal"
            break
        chunk = json_object(data)
        if isinstance(chunk.get("error"), Mapping):
            error = (_error_type(chunk["error"]), str(chunk["error"].get("message", "")))
            break
        last = chunk
        usage = _usage(chunk["usage"]) if isinstance(chunk.get("usage"), Mapping) else usage
        choice = _first(chunk) or {}
        delta = choice.get("delta") or {}
        if choice.get("finish_reason"):
            finished = choice
        sources += delta.get("annotations") or ()
        refused = refused or bool(delta.get("refusal"))
        new = _spoken(delta)
        spoken += [*new, *_begin_calls(delta, calls)]
        reached = _reached(reached, choice, delta)
    blocks = merged([_call(calls[part]) if isinstance(part, int) else part for part in spoken])
    reply = _reply(_cited(blocks, tuple(sources)), finished, last, asked, usage=usage, refused=refused)
    return Reading(reply, _place(reached), error)


def _place(reached: str) -> Reached:
    places: tuple[Reached, ...] = ("head", "start", "content", "stop", "terminal")
    return next(place for place in places if place == reached)


def _reached(before: str, choice: Mapping[str, Any], delta: Mapping[str, Any]) -> str:
    if choice.get("finish_reason") or before == "stop":
        return "stop"
    if any(delta.get(key) for key in ("content", "reasoning_content", "refusal", "tool_calls", "annotations")):
        return "content"
    return "start" if before == "head" else before


def _spoken(delta: Mapping[str, Any]) -> list[Block]:
    blocks: list[Block] = []
    if delta.get("reasoning_content"):
        blocks.append(Thinking(delta["reasoning_content"]))
    blocks += [Text(delta[key]) for key in ("content", "refusal") if delta.get(key)]
    return blocks


def _call(begun: Mapping[str, Any]) -> Block:
    return tool_use(begun["name"], "".join(begun["pieces"]), begun["id"])


def _begin_calls(delta: Mapping[str, Any], calls: dict[int, dict[str, Any]]) -> list[int]:
    begun: list[int] = []
    for call in delta.get("tool_calls") or ():
        index, function = call.get("index", 0), call.get("function") or {}
        if index not in calls:
            calls[index] = {"name": function.get("name", ""), "id": call.get("id"), "pieces": []}
            begun.append(index)
        calls[index]["pieces"].append(function.get("arguments") or "")
    return begun


def _first(completion: Mapping[str, Any]) -> Mapping[str, Any] | None:
    choices = completion.get("choices")
    return choices[0] if isinstance(choices, list) and choices and isinstance(choices[0], Mapping) else None


def _error_type(error: Mapping[str, Any]) -> str:
    return str(error.get("code") or error.get("type") or "server_error")


def _cited(blocks: tuple[Block, ...], sources: tuple[Any, ...]) -> tuple[Block, ...]:
    """Give the message's sources to its last text: nothing says which text each belongs to."""
    for index in range(len(blocks) - 1, -1, -1):
        block = blocks[index]
        if sources and isinstance(block, Text):
            return (*blocks[:index], replace(block, citations=sources), *blocks[index + 1 :])
    return blocks


def _reply(
    blocks: tuple[Block, ...],
    choice: Mapping[str, Any],
    completion: Mapping[str, Any],
    asked: Asked,
    *,
    usage: Usage | None,
    refused: bool,
) -> Reply:
    stop = "refusal" if refused else STOP_REASONS.get(choice.get("finish_reason") or "", "end_turn")
    return Reply(blocks, stop, usage, served_model(completion.get("model"), asked))


def _usage(usage: Mapping[str, Any]) -> Usage:
    details = usage.get("prompt_tokens_details") or {}
    return counted(
        usage.get("prompt_tokens"),
        read=details.get("cached_tokens"),
        written=details.get("cache_write_tokens"),
        output=usage.get("completion_tokens"),
    )
