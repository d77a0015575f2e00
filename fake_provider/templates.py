"""Values from the request in a script's texts: ``{{last_user_text}}`` and the like, filled in when a step is played.

Texts and tool arguments can hold them; labels, headers and names cannot. ``{{{{`` stands for two braces that are meant
as such. A name that does not exist is a mistake in the script, never an empty text.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from fake_provider.document import Node, nearest
from fake_provider.replies import Block, ErrorReply, Reply, Text, Thinking, ToolUse
from fake_provider.requests import ModelRequest

_MARK = re.compile(r"\{\{\{\{|\{\{([^{}\n]*)\}\}")
_HEADER = "header."


@dataclass(frozen=True, slots=True)
class Asked:
    """What values come from: the request, and its number in its lane, from 1."""

    request: ModelRequest
    number: int


def _last_result(asked: Asked) -> str:
    results = asked.request.tool_results
    return results[-1].text if results else ""


VALUES: Mapping[str, Callable[[Asked], str]] = {
    "last_user_text": lambda asked: asked.request.last_user_text,
    "message_count": lambda asked: str(len(asked.request.messages)),
    "model": lambda asked: asked.request.model,
    "request_number": lambda asked: str(asked.number),
    "tool_result": _last_result,
}
"""Every value by name; beside these, ``header.NAME``."""


def holds_values(value: Any) -> bool:
    """Whether a text, or any text inside data, holds a mark."""
    if isinstance(value, str):
        return _MARK.search(value) is not None
    if isinstance(value, Mapping):
        return any(holds_values(item) for item in value.values())
    return isinstance(value, list | tuple) and any(holds_values(item) for item in value)


def answer_holds_values(answer: Reply | ErrorReply) -> bool:
    """Whether any text of an answer holds a mark."""
    if isinstance(answer, ErrorReply):
        return holds_values(answer.message) or holds_values(answer.body)
    return any(_block_holds_values(block) for block in answer.blocks)


def _block_holds_values(block: Block) -> bool:
    match block:
        case Text(text=text):
            return holds_values(text)
        case Thinking(thinking=text):
            return holds_values(text)
        case ToolUse(input=arguments, arguments=raw):
            return holds_values(arguments) or holds_values(raw)
        case _:
            return False


def check_values(node: Node, value: Any) -> None:
    """Refuse a mark whose name does not exist.

    Raises:
        DocumentError: It names the nearest name.
    """
    if isinstance(value, str):
        for mark in _MARK.finditer(value):
            name = mark[1].strip() if mark[1] is not None else None
            if name is not None and name not in VALUES and not (name.startswith(_HEADER) and len(name) > len(_HEADER)):
                raise node.error(f"unknown value '{name}' between braces{nearest(name, [*VALUES, 'header.NAME'])}")
    elif isinstance(value, Mapping):
        for item in value.values():
            check_values(node, item)
    elif isinstance(value, list | tuple):
        for item in value:
            check_values(node, item)


def filled(answer: Reply | ErrorReply, asked: Asked) -> Reply | ErrorReply:
    """Return an answer with every mark replaced by its value; what a request does not have is an empty text."""
    if isinstance(answer, ErrorReply):
        body = None if answer.body is None else _filled_text(answer.body, asked)
        return replace(answer, message=_filled_text(answer.message, asked), body=body)
    return replace(answer, blocks=tuple(_filled_block(block, asked) for block in answer.blocks))


def _filled_block(block: Block, asked: Asked) -> Block:
    match block:
        case Text(text=text):
            return replace(block, text=_filled_text(text, asked))
        case Thinking(thinking=text):
            return replace(block, thinking=_filled_text(text, asked))
        case ToolUse(input=arguments, arguments=raw):
            raw = None if raw is None else _filled_text(raw, asked)
            return replace(block, input=_filled_data(arguments, asked), arguments=raw)
        case _:
            return block


def _filled_data(value: Any, asked: Asked) -> Any:
    if isinstance(value, str):
        return _filled_text(value, asked)
    if isinstance(value, Mapping):
        return {key: _filled_data(item, asked) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_filled_data(item, asked) for item in value]
    return value


def _filled_text(text: str, asked: Asked) -> str:
    def value(mark: re.Match[str]) -> str:
        if mark[1] is None:
            return "{{"
        name = mark[1].strip()
        if name.startswith(_HEADER):
            return asked.request.headers.get(name.removeprefix(_HEADER).lower(), "")
        return VALUES[name](asked)

    return _MARK.sub(value, text)
