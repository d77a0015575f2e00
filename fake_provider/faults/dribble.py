"""``dribble``: the reply comes in small pieces with time between them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar

from fake_provider.document import Node
from fake_provider.faults.point import NOTHING, Point
from fake_provider.faults.rewriting import head_bytes
from fake_provider.wire import Action, Draft, Drip, Fired, Send, SendEnd, SendHead

if TYPE_CHECKING:
    from fake_provider.dialects import Dialect

_EVERYTHING = Point(NOTHING)


@dataclass(frozen=True, slots=True)
class DribbleFault:
    """Send ``bytes_each`` bytes every ``seconds``, from a place on; the whole reply with its headers by default.

    Where the body is chunked, each piece is a chunk.

    A client may wrongly conclude that the stream is healthy, because bytes keep coming and no idle timer runs out, and
    wait for hours; or that a piece of an event, which came alone, is a whole one.
    """

    kind: ClassVar[str] = "dribble"
    point: Point = _EVERYTHING
    bytes_each: int = 1
    seconds: float = 0.05

    @classmethod
    def read(cls, node: Node) -> DribbleFault:
        """Read ``{event: nothing, nth: 1, byte, bytes: 1, seconds: 0.05}``."""
        fields = node.fields("dribble", ("event", "nth", "byte", "bytes", "seconds"))
        return cls(
            Point.read_optional(fields) or _EVERYTHING,
            fields["bytes"].integer(minimum=1) if "bytes" in fields else 1,
            fields["seconds"].number(minimum=0.001) if "seconds" in fields else 0.05,
        )

    def unreachable(self, draft: Draft) -> str | None:
        """Return why the place does not exist or has nothing behind it, or nothing if it has."""
        reason = self.point.unreachable(draft)
        if reason is not None:
            return reason
        rest = self.point.actions_after(draft)
        if not rest:
            return f"nothing is left of the reply {self.point}, so nothing can come in pieces"
        known = all(frame.fixed for frame in draft.frames)
        if known and not any(self._splits(action, draft) for action in rest):
            return f"nothing that is left of the reply {self.point} has more than {self.bytes_each} bytes in one piece"
        return None

    def _splits(self, action: Action, draft: Draft) -> bool:
        match action:
            case SendHead():
                return head_bytes(draft) > self.bytes_each
            case Send(payload=payload):
                return len(payload) > self.bytes_each
            case _:
                return False

    def strike(self, draft: Draft, dialect: Dialect) -> tuple[Action, ...]:
        """Send up to the place, then the rest in pieces."""
        drip = Drip(self.bytes_each, self.seconds)
        rest = tuple(
            replace(action, drip=drip) if isinstance(action, SendHead | Send) else action
            for action in self.point.actions_after(draft)
        )
        detail = f"{self.point}, {self.bytes_each} bytes every {self.seconds:g} s"
        return (*self.point.actions_before(draft), Fired(self.kind, detail), *rest, SendEnd())
