"""``usage``: the token counts of the reply are missing or make no sense."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import ClassVar

from fake_provider.document import Node
from fake_provider.replies import Reply, Usage

ABSURD_TOKENS = 2**53 + 1
"""More than any window holds, and the first whole number that a double cannot hold."""

HOW: Mapping[str, Usage | None] = {
    "missing": None,
    "absurd": Usage(ABSURD_TOKENS, ABSURD_TOKENS),
    "negative": Usage(-1, -1),
    "zero": Usage(0, 0),
}
"""The counts of each form; nothing where they are left out."""


@dataclass(frozen=True, slots=True)
class UsageFault:
    """Exchange the token counts, or leave them out; ``how`` is a word of ``HOW``.

    A stream of Chat Completions has counts only where the client asks for them.

    A client may wrongly conclude that the window is full and compact what fits, that it is empty and never compact, or
    that the run cost nothing; or end, because it computes with a count that is not there.
    """

    kind: ClassVar[str] = "usage"
    how: str = "missing"

    @classmethod
    def read(cls, node: Node) -> UsageFault:
        """Read ``{how: missing}``."""
        fields = node.fields("usage", ("how",))
        return cls(fields["how"].choice("form of usage", HOW) if "how" in fields else "missing")

    def unsayable(self, reply: Reply) -> str | None:
        """Return that the reply has these counts anyway, or nothing if it has others."""
        return f"the usage of the reply is {self.how} as it is" if reply.usage == HOW[self.how] else None

    def reshape(self, reply: Reply) -> Reply:
        """Exchange the counts."""
        return replace(reply, usage=HOW[self.how])
