"""``early_end``: the reply ends at a place as if it were over."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar

from fake_provider.document import Node
from fake_provider.faults.point import NOTHING, POINT_KEYS, Point
from fake_provider.wire import Action, Draft, Fired, Send, SendEnd, SendHead

if TYPE_CHECKING:
    from fake_provider.dialects import Dialect


@dataclass(frozen=True, slots=True)
class EarlyEndFault:
    """End the body properly at a place: the last chunk, or a content-length that fits what was sent.

    A client may wrongly conclude that the reply is complete, because by HTTP's rules it is: only the protocol above
    knows that its terminal event is missing.
    """

    kind: ClassVar[str] = "early_end"
    point: Point

    @classmethod
    def read(cls, node: Node) -> EarlyEndFault:
        """Read ``{event, nth: 1, byte, inside: utf8}``.

        Raises:
            DocumentError: The place is none at which a body can end properly.
        """
        fields = node.fields("early_end", POINT_KEYS, ["event"])
        point = Point.read(fields)
        if point.event == NOTHING:
            raise fields["event"].error("a reply that ends before its headers is none; write 'close'")
        if point.inside == "chunk_header":
            raise fields["inside"].error("a body cannot end properly inside a chunk header; write 'cut'")
        return cls(point)

    def unreachable(self, draft: Draft) -> str | None:
        """Return why the place does not exist or leaves nothing out, or nothing if it does."""
        reason = self.point.unreachable(draft)
        if reason is None and not any(isinstance(action, Send) for action in self.point.actions_after(draft)):
            return f"nothing is left of the reply {self.point}, so nothing would be missing"
        return reason

    def strike(self, draft: Draft, dialect: Dialect) -> tuple[Action, ...]:
        """Send up to the place, then end."""
        before = self.point.actions_before(draft)
        size = sum(len(action.payload) for action in before if isinstance(action, Send))
        fitting = tuple(
            replace(action, length=size) if isinstance(action, SendHead) and draft.transfer == "length" else action
            for action in before
        )
        # A body of a stated length is over for the client as soon as its last byte is there.
        return (*fitting, Fired(self.kind, str(self.point), delivered=draft.transfer == "length"), SendEnd())
