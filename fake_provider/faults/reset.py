"""``reset``: the connection is torn down with a RST at a place in the reply."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from fake_provider.document import Node
from fake_provider.faults.point import POINT_KEYS, Point
from fake_provider.wire import Action, Draft, Fired, Reset

if TYPE_CHECKING:
    from fake_provider.dialects import Dialect


@dataclass(frozen=True, slots=True)
class ResetFault:
    """Reset the connection after or inside an event.

    The reset waits until the peer's kernel has acknowledged every byte (SIOCOUTQ is 0), because a reset drops what is
    still queued on our side and "after the tool block" would become "before it". Acknowledged is not yet read by the
    program: Linux hands what is in the receive queue out before it reports the reset. ``abrupt`` does not wait.

    A client may wrongly conclude that nothing it was shown counts, because the error came from the transport, and ask
    again for an action whose tool block was complete and already ran.
    """

    kind: ClassVar[str] = "reset"
    point: Point
    abrupt: bool = False

    @classmethod
    def read(cls, node: Node) -> ResetFault:
        """Read ``{event, nth: 1, byte, inside, abrupt: false}``."""
        fields = node.fields("reset", (*POINT_KEYS, "abrupt"), ["event"])
        return cls(Point.read(fields), fields["abrupt"].flag() if "abrupt" in fields else False)

    def unreachable(self, draft: Draft) -> str | None:
        """Return why the place does not exist, or nothing if it does."""
        return self.point.unreachable(draft)

    def strike(self, draft: Draft, dialect: Dialect) -> tuple[Action, ...]:
        """Send up to the place, then reset."""
        detail = f"{self.point}, abruptly" if self.abrupt else str(self.point)
        return (*self.point.actions_before(draft), Fired(self.kind, detail, abrupt=self.abrupt), Reset())
