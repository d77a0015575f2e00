"""``tool_arguments``: the arguments of a tool call are not what the tool takes."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from fake_provider.document import Node
from fake_provider.replies import Block, Reply, ToolUse


def _invalid(call: ToolUse) -> str:
    return f"{call.arguments_text[:-1]},}}"


def _cut(call: ToolUse) -> str:
    return call.arguments_text[: max(1, len(call.arguments_text) // 2)]


def _not_an_object(call: ToolUse) -> str:
    return _json(list(call.input.values()))


def _wrong_type(call: ToolUse) -> str | None:
    """Give the first argument another type: text for anything else, a list of it for text."""
    if not call.input:
        return None
    name, value = next(iter(call.input.items()))
    return _json({**call.input, name: [value] if isinstance(value, str) else _json(value)})


def _valid_by_accident(call: ToolUse) -> str | None:
    """Shorten the first text or number that has a second half, else leave out the last argument."""
    for name, value in call.input.items():
        if isinstance(value, str) and len(value) > 1:
            return _json({**call.input, name: value[: len(value) // 2]})
        if isinstance(value, int) and not isinstance(value, bool) and abs(value) > 9:
            return _json({**call.input, name: value // 10 if value > 0 else -(-value // 10)})
    return _json(dict(list(call.input.items())[:-1])) if call.input else None


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


HOW: Mapping[str, tuple[str, Callable[[ToolUse], str | None]]] = {
    "invalid": ("JSON with a comma too many", _invalid),
    "cut": ("the first half of the JSON", _cut),
    "empty": ("no text at all", lambda _: ""),
    "not_an_object": ("the values as a list", _not_an_object),
    "wrong_type": ("the first argument has another type", _wrong_type),
    "valid_by_accident": ("a piece is missing from the middle, and what is left parses", _valid_by_accident),
}
"""Each form with its meaning and the function that makes the text; nothing where the arguments are too few for it."""


@dataclass(frozen=True, slots=True)
class ToolArgumentsFault:
    """Exchange the arguments of the nth tool call; ``how`` is a word of ``HOW``.

    A dialect that carries arguments as a JSON object holds the text where the object belongs, so that its body or event
    is no JSON any more where the text is none.

    A client may wrongly conclude that half the arguments are all of them, that none are ``{}``, or that what parses was
    meant: the lost half of a path leaves another path, and the tool runs on it.
    """

    kind: ClassVar[str] = "tool_arguments"
    how: str
    nth: int = 1

    @classmethod
    def read(cls, node: Node) -> ToolArgumentsFault:
        """Read ``{how, nth: 1}``."""
        fields = node.fields("tool_arguments", ("how", "nth"), ["how"])
        how = fields["how"].choice("form of arguments", HOW)
        return cls(how, fields["nth"].integer(minimum=1) if "nth" in fields else 1)

    def unsayable(self, reply: Reply) -> str | None:
        """Return that there is no such call or too little in it, or nothing if there is."""
        calls = [block for block in reply.blocks if isinstance(block, ToolUse)]
        if len(calls) < self.nth:
            return f"the reply has {len(calls)} tool calls, so there is no number {self.nth}"
        if HOW[self.how][1](calls[self.nth - 1]) is None:
            return f"the call has no arguments that could be '{self.how}'"
        return None

    def reshape(self, reply: Reply) -> Reply:
        """Exchange the arguments of the call."""
        blocks: list[Block] = []
        seen = 0
        for block in reply.blocks:
            if isinstance(block, ToolUse):
                seen += 1
                if seen == self.nth:
                    block = replace(block, arguments=HOW[self.how][1](block))
            blocks.append(block)
        return replace(reply, blocks=tuple(blocks))
