"""``close``: the request is read and the connection is closed without a byte of an answer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from fake_provider.document import Node
from fake_provider.wire import Action, Close, Draft, Fired

if TYPE_CHECKING:
    from fake_provider.dialects import Dialect


@dataclass(frozen=True, slots=True)
class CloseFault:
    """Close before the first byte of the reply, streamed or not.

    A client may wrongly conclude that the request was never received, because that is what a stale kept-alive
    connection looks like too, and send it again without counting an attempt.
    """

    kind: ClassVar[str] = "close"

    @classmethod
    def read(cls, node: Node) -> CloseFault:
        """Read ``{}``: there is nothing to set."""
        node.fields("close", ())
        return cls()

    def unreachable(self, draft: Draft) -> str | None:
        """Return nothing: every request can be left without an answer."""
        return None

    def strike(self, draft: Draft, dialect: Dialect) -> tuple[Action, ...]:
        """Close at once."""
        return (Fired(self.kind, "before the first byte"), Close())
