"""``repeated_tool_id``: a tool call has the id of another one."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import ClassVar

from fake_provider.document import Node
from fake_provider.replies import Block, Reply, ToolUse

OF = ("reply", "conversation")
_COUNTER = re.compile(r"\d{18}$")


@dataclass(frozen=True, slots=True)
class RepeatedToolIdFault:
    """Give every tool call of the reply one and the same id.

    ``of``: ``reply`` takes that of the first call, so it needs two; ``conversation`` takes the id that the provider
    gave to the lane's call before this reply, or the ``id`` that is given.

    A client may wrongly conclude that the two calls are one: it runs one of them and answers both with its result, or
    takes the second for done because the first was.
    """

    kind: ClassVar[str] = "repeated_tool_id"
    of: str = "reply"
    id: str | None = None

    @classmethod
    def read(cls, node: Node) -> RepeatedToolIdFault:
        """Read ``{of: reply}`` or ``{id}``.

        Raises:
            DocumentError: Both are there.
        """
        fields = node.fields("repeated_tool_id", ("of", "id"))
        if "of" in fields and "id" in fields:
            raise fields["id"].error("expected 'of' or 'id', found both")
        if "id" in fields:
            return cls("conversation", fields["id"].text())
        return cls(fields["of"].choice("owner of the id", OF) if "of" in fields else "reply")

    def unsayable(self, reply: Reply) -> str | None:
        """Return that there is no call, or no id to repeat, or nothing if there is; an unknown id is not judged."""
        calls = [block for block in reply.blocks if isinstance(block, ToolUse)]
        if self.of == "reply":
            return None if len(calls) > 1 else f"the reply has {len(calls)} tool calls, and two are needed"
        if not calls:
            return "the reply has no tool call"
        if self.id is None and calls[0].id is not None and _before(calls[0].id) is None:
            return f"no call of this lane came before {calls[0].id}"
        return None

    def reshape(self, reply: Reply) -> Reply:
        """Give every call the id."""
        first = next(block.id for block in reply.blocks if isinstance(block, ToolUse))
        call_id = first if self.of == "reply" or first is None else self.id or _before(first)
        blocks: tuple[Block, ...] = tuple(
            replace(block, id=call_id) if isinstance(block, ToolUse) else block for block in reply.blocks
        )
        return replace(reply, blocks=blocks)


def _before(call_id: str) -> str | None:
    """Return the id that was given out before one; every dialect's end in a number of fixed length."""
    found = _COUNTER.search(call_id)
    if found is None or int(found.group()) <= 1:
        return None
    return f"{call_id[: found.start()]}{int(found.group()) - 1:018d}"
