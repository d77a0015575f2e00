"""``stall``: the stream falls silent at a place while the connection stays open."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from fake_provider.document import Node
from fake_provider.faults.point import POINT_KEYS, Point
from fake_provider.wire import Action, Close, Fired, Frame, Pause, SendEnd

if TYPE_CHECKING:
    from fake_provider.faults import ErrorFrame


@dataclass(frozen=True, slots=True)
class StallFault:
    """Send nothing for ``seconds``, then go on; without ``seconds``, send nothing until the client leaves.

    A client may wrongly conclude that the model is still thinking, because the connection is up and nothing failed, and
    wait for ever; or, having given up, that the request was never taken.
    """

    kind: ClassVar[str] = "stall"
    needs_stream: ClassVar[bool] = True
    point: Point
    seconds: float | None = None

    @classmethod
    def read(cls, node: Node) -> StallFault:
        """Read ``{event, nth: 1, byte, seconds}``."""
        fields = node.fields("stall", (*POINT_KEYS, "seconds"), ["event"])
        seconds = fields["seconds"].number(minimum=0) if "seconds" in fields else None
        return cls(Point.read(fields), seconds)

    def unreachable(self, frames: Sequence[Frame]) -> str | None:
        """Return why the place does not exist, or nothing if it does."""
        return self.point.unreachable(frames)

    def rewrite(self, frames: Sequence[Frame], error_frame: ErrorFrame) -> tuple[Action, ...]:
        """Send up to the place, wait, and send the rest where the wait has an end."""
        length = "until the client leaves" if self.seconds is None else f"for {self.seconds:g} s"
        before = (*self.point.actions_before(frames), Fired(self.kind, f"{self.point}, {length}"), Pause(self.seconds))
        if self.seconds is None:
            return (*before, Close())
        return (*before, *self.point.actions_after(frames), SendEnd())
