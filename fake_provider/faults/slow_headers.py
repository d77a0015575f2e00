"""``slow_headers``: the status line and the headers come in small pieces."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar

from fake_provider.document import Node
from fake_provider.faults.rewriting import head_bytes
from fake_provider.wire import Action, Draft, Drip, Fired

if TYPE_CHECKING:
    from fake_provider.dialects import Dialect


@dataclass(frozen=True, slots=True)
class SlowHeadersFault:
    """Send the head, ``bytes_each`` bytes every ``seconds``, and the body as always.

    A client may wrongly conclude that the request was taken and is being worked on, because a timer for the time
    between two reads never runs out; or that it failed, though its answer has begun.
    """

    kind: ClassVar[str] = "slow_headers"
    bytes_each: int = 1
    seconds: float = 0.05

    @classmethod
    def read(cls, node: Node) -> SlowHeadersFault:
        """Read ``{bytes: 1, seconds: 0.05}``."""
        fields = node.fields("slow_headers", ("bytes", "seconds"))
        return cls(
            fields["bytes"].integer(minimum=1) if "bytes" in fields else 1,
            fields["seconds"].number(minimum=0.001) if "seconds" in fields else 0.05,
        )

    def unreachable(self, draft: Draft) -> str | None:
        """Return that the head is one piece anyway, or nothing if it is not."""
        size = head_bytes(draft)
        if self.bytes_each >= size:
            return f"the headers are {size} bytes long, so {self.bytes_each} would be all of them"
        return None

    def strike(self, draft: Draft, dialect: Dialect) -> tuple[Action, ...]:
        """Send the head in pieces, then the rest."""
        _, *rest = draft.actions()
        slow = replace(draft.head(), drip=Drip(self.bytes_each, self.seconds))
        return (Fired(self.kind, f"{self.bytes_each} bytes every {self.seconds:g} s"), slow, *rest)
