"""``duplicate_event``: one event of a stream comes twice."""

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
class DuplicateEventFault:
    """Send an event twice in a row, byte for byte the same.

    A client may wrongly conclude that the model said something twice: doubled text, arguments that no longer parse, or
    two calls of one tool.
    """

    kind: ClassVar[str] = "duplicate_event"
    point: Point

    @classmethod
    def read(cls, node: Node) -> DuplicateEventFault:
        """Read ``{event, nth: 1}``."""
        return cls(Point.read_event(node.fields("duplicate_event", EVENT_KEYS, ["event"])))

    def unreachable(self, draft: Draft) -> str | None:
        """Return why there is no such event, or nothing if there is."""
        return without_events(draft) or self.point.unreachable(draft)

    def strike(self, draft: Draft, dialect: Dialect) -> tuple[Action, ...]:
        """Send the event once more."""
        index = self.point.index_of(draft)
        frame = draft.frames[index]
        fired = Fired(self.kind, str(self.point), delivered=True)
        return struck_after(with_frame(draft, index, frame, frame), index + 2, fired)
