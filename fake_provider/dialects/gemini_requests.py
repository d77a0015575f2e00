"""A Gemini request in neutral words: who says what, which calls were made and what came of them.

It reads bodies in canonical form and never judges them. A client may leave out the ids of calls and of responses; then
a call's id is made from its place, and a response belongs to the first open call of its name in the content before.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from fake_provider.dialects.gemini_rules import calls_of, parts_of
from fake_provider.dialects.gemini_shapes import DATA_FIELDS, Body
from fake_provider.replies import Text, Thinking, ToolUse
from fake_provider.requests import Message, OtherBlock, RequestBlock, ToolResult

_TEXT_KEYS = ("output", "result", "error", "content")


class GeminiBody(dict[str, Any]):
    """The decoded body of a request, which also remembers how its stream is to be written.

    Attributes:
        in_array: Whether a stream is one JSON array, written piece by piece, instead of events.
    """

    def __init__(self, body: Mapping[str, Any], *, in_array: bool) -> None:
        super().__init__(body)
        self.in_array = in_array


def system_text(body: Body) -> str:
    """Return the text of the system instruction."""
    return "\n".join(part["text"] for part in parts_of(body.get("systemInstruction", {})) if "text" in part)


def tool_names(body: Body) -> tuple[str, ...]:
    """Return the names of all declared functions."""
    return tuple(
        declaration.get("name", "")
        for tool in body.get("tools", [])
        for declaration in tool.get("functionDeclarations", [])
    )


def messages_of(body: Body) -> tuple[Message, ...]:
    """Return the conversation; the roles are ``assistant`` for the model, and ``user``."""
    found = []
    before: list[tuple[str, str]] = []
    for index, content in enumerate(body.get("contents", [])):
        calls = _call_ids(index, content)
        role = "assistant" if content.get("role", "user") == "model" else "user"
        found.append(Message(role, tuple(_blocks(parts_of(content), calls, before))))
        before = calls
    return tuple(found)


def _call_ids(index: int, content: Any) -> list[tuple[str, str]]:
    """Return name and id of each call of a content."""
    return [
        (call.get("name", ""), call.get("id") or f"call-{index}-{number}")
        for number, call in enumerate(calls_of(content))
    ]


def _blocks(
    parts: Sequence[Any], calls: Sequence[tuple[str, str]], asked: Sequence[tuple[str, str]]
) -> list[RequestBlock]:
    blocks: list[RequestBlock] = []
    ids = iter(calls)
    open_calls = list(asked)
    for part in parts:
        if "functionCall" in part:
            name, call_id = next(ids)
            blocks.append(ToolUse(name, part["functionCall"].get("args", {}), call_id))
        elif "functionResponse" in part:
            blocks.append(_tool_result(part["functionResponse"], open_calls))
        elif "text" in part:
            text = part["text"]
            blocks.append(Thinking(text, part.get("thoughtSignature")) if part.get("thought") else Text(text))
        else:
            blocks.append(OtherBlock(next((name for name in DATA_FIELDS if name in part), "unknown")))
    return blocks


def _tool_result(response: Mapping[str, Any], open_calls: list[tuple[str, str]]) -> ToolResult:
    name = response.get("name", "")
    call_id = response.get("id") or next((found for asked, found in open_calls if asked == name), name)
    if (name, call_id) in open_calls:
        open_calls.remove((name, call_id))
    value = response.get("response", {})
    said = next((value[key] for key in _TEXT_KEYS if key in value), value)
    text = said if isinstance(said, str) else json.dumps(said, ensure_ascii=False)
    return ToolResult(call_id, "error" in value, text)
