"""``reset``: the connection is torn down with a RST at a place in the stream."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from fake_provider.document import Node
from fake_provider.faults.point import POINT_KEYS, Point
from fake_provider.wire import Action, Fired, Frame, Reset

if TYPE_CHECKING:
    from fake_provider.faults import ErrorFrame


@dataclass(frozen=True, slots=True)
class ResetFault:
    """Reset the connection after or inside an event.

    The reset waits until the peer's kernel has acknowledged every byte (SIOCOUTQ is 0), because a reset drops what is
    still queued on our side and "after the tool block" would become "before it". Acknowledged is not yet read by the
    program: Linux hands what is in the receive queue out before it reports the reset.

    A client may wrongly conclude that nothing it was shown counts, because the error came from the transport, and ask
    again for an action whose tool block was complete and already ran.
    """

    kind: ClassVar[str] = "reset"
    needs_stream: ClassVar[bool] = True
    point: Point

    @classmethod
    def read(cls, node: Node) -> ResetFault:
        """Read ``{event, nth: 1, byte}``."""
        return cls(Point.read(node.fields("reset", POINT_KEYS, ["event"])))

    def unreachable(self, frames: Sequence[Frame]) -> str | None:
        """Return why the place does not exist, or nothing if it does."""
        return self.point.unreachable(frames)

    def rewrite(self, frames: Sequence[Frame], error_frame: ErrorFrame) -> tuple[Action, ...]:
        """Send up to the place, then reset."""
        return (*self.point.actions_before(frames), Fired(self.kind, str(self.point)), Reset())
