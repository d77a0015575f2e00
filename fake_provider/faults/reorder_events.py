"""``reorder_events``: two neighbouring events of a stream change places."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar

from fake_provider.document import Node
from fake_provider.faults.point import EVENT_KEYS, Point
from fake_provider.faults.rewriting import struck_after, without_events
from fake_provider.wire import Action, Draft, Fired

if TYPE_CHECKING:
    from fake_provider.dialects import Dialect


@dataclass(frozen=True, slots=True)
class ReorderEventsFault:
    """Send the event that follows before the one that is named.

    A client may wrongly conclude that the order of arrival is the order of the content: a text with its words
    exchanged, arguments that no longer parse, a delta for a block that has not begun.
    """

    kind: ClassVar[str] = "reorder_events"
    point: Point

    @classmethod
    def read(cls, node: Node) -> ReorderEventsFault:
        """Read ``{event, nth: 1}``."""
        return cls(Point.read_event(node.fields("reorder_events", EVENT_KEYS, ["event"])))

    def unreachable(self, draft: Draft) -> str | None:
        """Return why there are no such two events, or nothing if there are."""
        reason = without_events(draft) or self.point.unreachable(draft)
        if reason is not None:
            return reason
        index = self.point.index_of(draft)
        if index + 1 == len(draft.frames):
            return f"{self.point.named} is the last event, so it has none to change places with"
        if draft.frames[index].payload == draft.frames[index + 1].payload:
            return f"{self.point.named} and the event after it are the same, so their order cannot be seen"
        return None

    def strike(self, draft: Draft, dialect: Dialect) -> tuple[Action, ...]:
        """Send the two events the other way round."""
        index = self.point.index_of(draft)
        first, second = draft.frames[index : index + 2]
        frames = (*draft.frames[:index], second, first, *draft.frames[index + 2 :])
        fired = Fired(self.kind, f"{self.point.named} and the next", delivered=True)
        return struck_after(replace(draft, frames=frames), index + 2, fired)
