"""``cut``: the reply ends at a place with a FIN, without an end of the body."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from fake_provider.document import Node
from fake_provider.faults.point import POINT_KEYS, Point
from fake_provider.wire import Action, Close, Draft, Fired

if TYPE_CHECKING:
    from fake_provider.dialects import Dialect


@dataclass(frozen=True, slots=True)
class CutFault:
    """Close the connection after or inside an event.

    A client may wrongly conclude that the reply is complete, because the connection closed without an error and every
    event that came was well formed: it keeps a truncated text as the answer, or runs a tool from half an input.
    """

    kind: ClassVar[str] = "cut"
    point: Point

    @classmethod
    def read(cls, node: Node) -> CutFault:
        """Read ``{event, nth: 1, byte, inside}``."""
        return cls(Point.read(node.fields("cut", POINT_KEYS, ["event"])))

    def unreachable(self, draft: Draft) -> str | None:
        """Return why the place does not exist, or nothing if it does."""
        return self.point.unreachable(draft)

    def strike(self, draft: Draft, dialect: Dialect) -> tuple[Action, ...]:
        """Send up to the place, then close."""
        return (*self.point.actions_before(draft), Fired(self.kind, str(self.point)), Close())
