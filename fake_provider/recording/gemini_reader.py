"""Replies of the Gemini API as neutral data, whole or streamed; of several candidates the first.

Thought signatures are left out, because a replay signs anew; reasoning that stands behind a signature alone is lost.
"""

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
)
from fake_provider.replies import Block, Opaque, Reply, Text, Thinking, ToolUse, Usage

_STOP_REASONS: Mapping[str, str] = {"STOP": "end_turn", "MAX_TOKENS": "max_tokens"}
_REFUSALS = frozenset({"SAFETY", "RECITATION", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII", "LANGUAGE", "IMAGE_SAFETY"})


def read_whole(body: bytes, asked: Asked) -> Reading:
    """Read a response.

    Raises:
        UnreadableError: It is none.
    """
    response = json_object(body)
    if not response.keys() & {"candidates", "promptFeedback"}:
        raise UnreadableError("a response has candidates or a feedback on the prompt")
    return read_chunks([response], asked)


def read_stream(events: Iterable[str], asked: Asked) -> Reading:
    """Read the chunks of a stream of events.

    Raises:
        UnreadableError: One is no JSON object.
    """
    return read_chunks([json_object(data) for data in events], asked)


def read_chunks(chunks: Iterable[Any], asked: Asked) -> Reading:
    """Read the chunks of a stream, however they came."""
    blocks: list[Block] = []
    last: dict[str, Any] = {}
    finish: str | None = None
    reached: Reached = "head"
    error = None
    for chunk in chunks:
        if not isinstance(chunk, dict):
            raise UnreadableError("a chunk is an object")
        if isinstance(chunk.get("error"), Mapping):
            found = chunk["error"]
            error = (str(found.get("status", "INTERNAL")), str(found.get("message", "")))
            break
        last = {**last, **chunk}
        if (chunk.get("promptFeedback") or {}).get("blockReason"):
            finish = "PROHIBITED_CONTENT"
        candidate: Mapping[str, Any] = next(iter(chunk.get("candidates") or ()), {})
        new = [_block(part) for part in (candidate.get("content") or {}).get("parts") or ()]
        blocks += _cited(new, candidate)
        finish = candidate.get("finishReason") or finish
        reached = "terminal" if finish else "content" if new else "start"
    said = merged(blocks)
    usage = last.get("usageMetadata")
    reply = Reply(
        said,
        _stop_reason(said, finish),
        _usage(usage) if isinstance(usage, Mapping) else None,
        served_model(last.get("modelVersion"), asked),
    )
    return Reading(reply, reached, error)


def _block(part: Mapping[str, Any]) -> Block:
    if "functionCall" in part:
        call = part["functionCall"] or {}
        return ToolUse(call.get("name", ""), call.get("args") or {}, call.get("id"))
    if isinstance(part.get("text"), str):
        return Thinking(part["text"]) if part.get("thought") else Text(part["text"])
    return Opaque(part)


def _cited(blocks: list[Block], candidate: Mapping[str, Any]) -> list[Block]:
    sources = tuple((candidate.get("citationMetadata") or {}).get("citationSources") or ())
    if sources and blocks and isinstance(blocks[-1], Text):
        return [*blocks[:-1], replace(blocks[-1], citations=sources)]
    return blocks


def _stop_reason(blocks: tuple[Block, ...], finish: str | None) -> str:
    if finish in _REFUSALS:
        return "refusal"
    if finish in (None, "STOP") and any(isinstance(block, ToolUse) for block in blocks):
        return "tool_use"
    return _STOP_REASONS.get(finish or "", "end_turn")


def _usage(usage: Mapping[str, Any]) -> Usage:
    output = (usage.get("candidatesTokenCount") or 0) + (usage.get("thoughtsTokenCount") or 0)
    return counted(usage.get("promptTokenCount"), read=usage.get("cachedContentTokenCount"), output=output)
