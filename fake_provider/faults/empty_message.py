"""``empty_message``: a well-formed reply that says nothing."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

from fake_provider.document import Node
from fake_provider.replies import Reply


@dataclass(frozen=True, slots=True)
class EmptyMessageFault:
    """Leave out every block and end the turn.

    A client may wrongly conclude that the work is done, because the turn ended; or send the empty message back, which
    the provider refuses.
    """

    kind: ClassVar[str] = "empty_message"

    @classmethod
    def read(cls, node: Node) -> EmptyMessageFault:
        """Read ``{}``: there is nothing to set."""
        node.fields("empty_message", ())
        return cls()

    def unsayable(self, reply: Reply) -> str | None:
        """Return that the reply says nothing anyway, or nothing if it does."""
        return None if reply.blocks else "the reply says nothing as it is"

    def reshape(self, reply: Reply) -> Reply:
        """Leave out every block."""
        return replace(reply, blocks=(), stop_reason="end_turn")
