"""``cut``: the stream ends at a place with a FIN, in the middle of a chunked body."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from fake_provider.document import Node
from fake_provider.faults.point import POINT_KEYS, Point
from fake_provider.wire import Action, Close, Fired, Frame

if TYPE_CHECKING:
    from fake_provider.faults import ErrorFrame


@dataclass(frozen=True, slots=True)
class CutFault:
    """Close the connection after or inside an event.

    A client may wrongly conclude that the reply is complete, because the connection closed without an error and every
    event that came was well formed: it keeps a truncated text as the answer, or runs a tool from half an input.
    """

    kind: ClassVar[str] = "cut"
    needs_stream: ClassVar[bool] = True
    point: Point

    @classmethod
    def read(cls, node: Node) -> CutFault:
        """Read ``{event, nth: 1, byte}``."""
        return cls(Point.read(node.fields("cut", POINT_KEYS, ["event"])))

    def unreachable(self, frames: Sequence[Frame]) -> str | None:
        """Return why the place does not exist, or nothing if it does."""
        return self.point.unreachable(frames)

    def rewrite(self, frames: Sequence[Frame], error_frame: ErrorFrame) -> tuple[Action, ...]:
        """Send up to the place, then close."""
        return (*self.point.actions_before(frames), Fired(self.kind, str(self.point)), Close())
