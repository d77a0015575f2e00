"""``drop_event``: one event of a stream never comes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from fake_provider.document import Node
from fake_provider.faults.point import EVENT_KEYS, Point
from fake_provider.faults.rewriting import struck_after, with_frame, without_events
from fake_provider.wire import Action, Draft, Fired

if TYPE_CHECKING:
    from fake_provider.dialects import Dialect


@dataclass(frozen=True, slots=True)
class DropEventFault:
    """Leave an event out and send everything else.

    A client may wrongly conclude that nothing is missing, because every event that came is well formed: a text lacks
    its middle, a tool runs with arguments that lack a piece, a block that never began is added to.
    """

    kind: ClassVar[str] = "drop_event"
    point: Point

    @classmethod
    def read(cls, node: Node) -> DropEventFault:
        """Read ``{event, nth: 1}``."""
        return cls(Point.read_event(node.fields("drop_event", EVENT_KEYS, ["event"])))

    def unreachable(self, draft: Draft) -> str | None:
        """Return why there is no such event, or nothing if there is."""
        return without_events(draft) or self.point.unreachable(draft)

    def strike(self, draft: Draft, dialect: Dialect) -> tuple[Action, ...]:
        """Send everything but the event."""
        index = self.point.index_of(draft)
        return struck_after(with_frame(draft, index), index, Fired(self.kind, f"instead of {self.point.named}"))
