"""``unknown_event``: a well-formed event of a type that no client knows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from fake_provider.document import Node
from fake_provider.faults.point import EVENT_KEYS, NOTHING, Point
from fake_provider.faults.rewriting import without_events
from fake_provider.wire import Action, Draft, Fired, Send, SendEnd

if TYPE_CHECKING:
    from fake_provider.dialects import Dialect


@dataclass(frozen=True, slots=True)
class UnknownEventFault:
    """Send an event of an unknown type after an event, or right after the headers.

    Every one of these protocols may gain events at any time, so that a client has to pass over what it does not know.

    A client may wrongly conclude that the stream is broken and give up a good reply.
    """

    kind: ClassVar[str] = "unknown_event"
    point: Point

    @classmethod
    def read(cls, node: Node) -> UnknownEventFault:
        """Read ``{event, nth: 1}``.

        Raises:
            DocumentError: The place is before the headers.
        """
        fields = node.fields("unknown_event", EVENT_KEYS, ["event"])
        point = Point.read(fields)
        if point.event == NOTHING:
            raise fields["event"].error("an event cannot come before the headers; write 'head'")
        return cls(point)

    def unreachable(self, draft: Draft) -> str | None:
        """Return why there is no such event, or nothing if there is."""
        return without_events(draft) or self.point.unreachable(draft)

    def strike(self, draft: Draft, dialect: Dialect) -> tuple[Action, ...]:
        """Send up to the place, the unknown event, and the rest."""
        before = self.point.actions_before(draft)
        unknown = dialect.unknown_frame(self.point.frames_before(draft))
        fired = Fired(self.kind, str(self.point), delivered=True)
        return (*before, Send.whole(unknown), fired, *self.point.actions_after(draft), SendEnd())
