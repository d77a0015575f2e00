"""``error_event``: an error arrives inside a stream that began with status 200."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from fake_provider.document import Node
from fake_provider.faults.point import Point
from fake_provider.wire import Action, Fired, Frame, Send, SendEnd

if TYPE_CHECKING:
    from fake_provider.faults import ErrorFrame

_MESSAGES = {"overloaded_error": "Overloaded", "api_error": "Internal server error"}


@dataclass(frozen=True, slots=True)
class ErrorEventFault:
    """Send an error event after an event, then end the body properly.

    A client may wrongly conclude that the request succeeded, because the status was 200 and the body ended cleanly; or
    that the error is final, because the status that says "try again" never came (SPEC B6).
    """

    kind: ClassVar[str] = "error_event"
    needs_stream: ClassVar[bool] = True
    point: Point
    error_type: str = "overloaded_error"
    message: str = "Overloaded"

    @classmethod
    def read(cls, node: Node) -> ErrorEventFault:
        """Read ``{event, nth: 1, type: overloaded_error, message}``."""
        fields = node.fields("error_event", ("event", "nth", "type", "message"), ["event"])
        error_type = fields["type"].text() if "type" in fields else "overloaded_error"
        message = fields["message"].text() if "message" in fields else _MESSAGES.get(error_type, error_type)
        return cls(Point.read(fields), error_type, message)

    def unreachable(self, frames: Sequence[Frame]) -> str | None:
        """Return why the place does not exist, or nothing if it does."""
        return self.point.unreachable(frames)

    def rewrite(self, frames: Sequence[Frame], error_frame: ErrorFrame) -> tuple[Action, ...]:
        """Send up to the place, then the error event and the end of the body."""
        frame = error_frame(self.error_type, self.message)
        return (
            *self.point.actions_before(frames),
            Fired(self.kind, f"{self.error_type} {self.point}"),
            Send(frame.name, frame.payload),
            SendEnd(),
        )
