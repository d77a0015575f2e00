"""``stall``: the reply falls silent at a place while the connection stays open."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from fake_provider.document import Node
from fake_provider.faults.point import NOTHING, POINT_KEYS, Point
from fake_provider.faults.rewriting import without_events
from fake_provider.wire import Action, Close, Draft, Fired, Pause, Send, SendEnd

if TYPE_CHECKING:
    from fake_provider.dialects import Dialect


@dataclass(frozen=True, slots=True)
class StallFault:
    """Send nothing for ``seconds``, then go on; without ``seconds``, send nothing until the client leaves.

    With ``ping_seconds`` the stream stays silent but for a ping every so many seconds, which keeps a client's idle
    timer from ever running out.

    A client may wrongly conclude that the model is still thinking, because the connection is up and nothing failed, and
    wait for ever; or, having given up, that the request was never taken.
    """

    kind: ClassVar[str] = "stall"
    point: Point
    seconds: float | None = None
    ping_seconds: float | None = None

    @classmethod
    def read(cls, node: Node) -> StallFault:
        """Read ``{event, nth: 1, byte, inside, seconds, ping_seconds}``.

        Raises:
            DocumentError: Pings where they would stand inside an event or before the headers, or too late for any.
        """
        fields = node.fields("stall", (*POINT_KEYS, "seconds", "ping_seconds"), ["event"])
        point = Point.read(fields)
        pings = fields.get("ping_seconds")
        if pings is not None and (point.event == NOTHING or point.byte is not None or point.inside is not None):
            raise pings.error(f"'ping_seconds' needs a place between two events, found {point}")
        seconds = fields["seconds"].number(minimum=0.001) if "seconds" in fields else None
        ping_seconds = pings.number(minimum=0.001) if pings is not None else None
        if pings is not None and ping_seconds is not None and seconds is not None and ping_seconds >= seconds:
            raise pings.error(f"no ping would come: the stall is over after {seconds:g} s")
        return cls(point, seconds, ping_seconds)

    def unreachable(self, draft: Draft) -> str | None:
        """Return why the place does not exist, or nothing if it does."""
        events = None if self.ping_seconds is None else without_events(draft)
        return self.point.unreachable(draft) if events is None else f"{events} and can have no pings"

    def strike(self, draft: Draft, dialect: Dialect) -> tuple[Action, ...]:
        """Send up to the place, wait, and send the rest where the wait has an end."""
        length = "until the client leaves" if self.seconds is None else f"for {self.seconds:g} s"
        pause = Pause(self.seconds)
        if self.ping_seconds is not None:
            length += f", a ping every {self.ping_seconds:g} s"
            pause = Pause(self.seconds, self.ping_seconds, Send.whole(dialect.ping_frame()))
        before = (*self.point.actions_before(draft), Fired(self.kind, f"{self.point}, {length}"), pause)
        if self.seconds is None:
            return (*before, Close())
        return (*before, *self.point.actions_after(draft), SendEnd())
