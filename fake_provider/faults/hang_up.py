"""``hang_up``: a complete reply, and then the end of a connection that was to be kept."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from fake_provider.document import Node
from fake_provider.requests import asks_to_close
from fake_provider.wire import Action, Close, Draft, Fired, Pause, Reset

if TYPE_CHECKING:
    from fake_provider.dialects import Dialect


@dataclass(frozen=True, slots=True)
class HangUpFault:
    """End the connection after a complete reply without having said that it would be: the stale connection.

    ``how``: ``fin`` or ``rst``. ``seconds`` may pass in between, in which a request that comes on this connection is
    not read any more.

    A client may wrongly conclude that its next request was refused or lost on the way, because it was sent on a
    connection that was already gone; or that it was never received, and so may be sent again without being counted.
    """

    kind: ClassVar[str] = "hang_up"
    how: str = "fin"
    seconds: float = 0.0

    @classmethod
    def read(cls, node: Node) -> HangUpFault:
        """Read ``{how: fin, seconds: 0}``."""
        fields = node.fields("hang_up", ("how", "seconds"))
        return cls(
            fields["how"].choice("end of a connection", ("fin", "rst")) if "how" in fields else "fin",
            fields["seconds"].number(minimum=0) if "seconds" in fields else 0.0,
        )

    def unreachable(self, draft: Draft) -> str | None:
        """Return that the client asked for this end, or nothing if it did not."""
        connection = "" if draft.request is None else draft.request.headers.get("connection", "")
        if not draft.chunks or asks_to_close(connection):
            return "the client does not keep the connection, so its end after the reply is the rule"
        return None

    def strike(self, draft: Draft, dialect: Dialect) -> tuple[Action, ...]:
        """Send the whole reply, then end the connection."""
        waiting = (Pause(self.seconds),) if self.seconds else ()
        fired = Fired(self.kind, f"{self.how} after the whole reply", delivered=True)
        return (*draft.actions(), fired, *waiting, Reset() if self.how == "rst" else Close())
