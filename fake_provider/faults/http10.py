"""``http10``: an answer of HTTP/1.0, whose body ends where the connection does."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar

from fake_provider.document import Node
from fake_provider.faults.point import NOTHING, Point
from fake_provider.wire import Action, Close, Draft, Fired

if TYPE_CHECKING:
    from fake_provider.dialects import Dialect


@dataclass(frozen=True, slots=True)
class Http10Fault:
    """Answer with an HTTP/1.0 status line and a body that the end of the connection ends; with a place, end there.

    A client may wrongly conclude that a body which ended at the place is whole, because in HTTP/1.0 a cut and an end
    are the same (RFC 9112, section 6.3); or keep the connection for its next request.
    """

    kind: ClassVar[str] = "http10"
    point: Point | None = None

    @classmethod
    def read(cls, node: Node) -> Http10Fault:
        """Read ``{event, nth: 1, byte}``, all of which may be left out.

        Raises:
            DocumentError: The place is before the headers, which are what makes the difference.
        """
        fields = node.fields("http10", ("event", "nth", "byte"))
        point = Point.read_optional(fields)
        if point is not None and point.event == NOTHING:
            raise fields["event"].error("an answer that ends before its headers has no version; write 'close'")
        return cls(point)

    def unreachable(self, draft: Draft) -> str | None:
        """Return why the place does not exist, or nothing if it does."""
        return None if self.point is None else self.point.unreachable(draft)

    def strike(self, draft: Draft, dialect: Dialect) -> tuple[Action, ...]:
        """Send the old status line and the body, then close."""
        old = replace(draft, transfer="until_close")
        head = replace(old.head(), version="1.0")
        if self.point is None:
            _, *rest, end = old.actions()
            return (head, *rest, Fired(self.kind, "the whole reply"), end)
        _, *before = self.point.actions_before(old)
        return (head, *before, Fired(self.kind, str(self.point)), Close())
