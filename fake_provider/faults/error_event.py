"""``error_event``: an error arrives inside a stream that began with status 200."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from fake_provider.document import Node
from fake_provider.faults.point import NOTHING, Point
from fake_provider.faults.rewriting import without_events
from fake_provider.wire import Action, Draft, Fired, Send, SendEnd

if TYPE_CHECKING:
    from fake_provider.dialects import Dialect

_MESSAGES: Mapping[str, str] = {"overloaded_error": "Overloaded", "api_error": "Internal server error"}


@dataclass(frozen=True, slots=True)
class ErrorEventFault:
    """Send an error event after an event, then end the body properly.

    ``error_type`` is a type of the dialect; where it is nothing, the dialect's own for an overload.

    A client may wrongly conclude that the request succeeded, because the status was 200 and the body ended cleanly; or
    that the error is final, because the status that says "try again" never came (SPEC B6).
    """

    kind: ClassVar[str] = "error_event"
    point: Point
    error_type: str | None = None
    message: str | None = None

    @classmethod
    def read(cls, node: Node) -> ErrorEventFault:
        """Read ``{event, nth: 1, type, message}``.

        Raises:
            DocumentError: The place is before the headers, where nothing is a stream yet.
        """
        fields = node.fields("error_event", ("event", "nth", "type", "message"), ["event"])
        point = Point.read(fields)
        if point.event == NOTHING:
            raise fields["event"].error("an error before the headers is a status; write a 'status' step")
        error_type = fields["type"].text() if "type" in fields else None
        message = fields["message"].text() if "message" in fields else None
        return cls(point, error_type, message)

    def unreachable(self, draft: Draft) -> str | None:
        """Return why the place does not exist, or nothing if it does."""
        return without_events(draft) or self.point.unreachable(draft)

    def strike(self, draft: Draft, dialect: Dialect) -> tuple[Action, ...]:
        """Send up to the place, then the error event and the end of the body."""
        error_type = self.error_type or dialect.error_types[0]
        message = self.message or _MESSAGES.get(error_type, error_type)
        frame = dialect.error_frame(error_type, message, self.point.frames_before(draft))
        return (
            *self.point.actions_before(draft),
            Fired(self.kind, f"{error_type} {self.point}"),
            Send.whole(frame),
            SendEnd(),
        )
