"""``informational``: interim answers before the reply."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from fake_provider.document import Node
from fake_provider.wire import Action, Draft, Fired, SendRaw, head

if TYPE_CHECKING:
    from fake_provider.dialects import Dialect


STATUSES = (100, 102, 103)


@dataclass(frozen=True, slots=True)
class InformationalFault:
    """Send ``times`` interim answers (RFC 9110, section 15.2), then the reply as always.

    A client may wrongly conclude that the interim answer is the reply, and that it is empty.
    """

    kind: ClassVar[str] = "informational"
    status: int = 103
    times: int = 1

    @classmethod
    def read(cls, node: Node) -> InformationalFault:
        """Read ``{status: 103, times: 1}``.

        Raises:
            DocumentError: The status is no interim one.
        """
        fields = node.fields("informational", ("status", "times"))
        status = fields["status"].integer() if "status" in fields else 103
        if status not in STATUSES:
            raise fields["status"].error(f"{status} is no interim status. Allowed: {', '.join(map(str, STATUSES))}")
        return cls(status, fields["times"].integer(minimum=1) if "times" in fields else 1)

    def unreachable(self, draft: Draft) -> str | None:
        """Return that the client knows no interim answers, or nothing if it does."""
        return None if draft.chunks else "the client speaks HTTP/1.0, which has no interim answers"

    def strike(self, draft: Draft, dialect: Dialect) -> tuple[Action, ...]:
        """Send the interim answers, then the reply."""
        interim = SendRaw(head(self.status, ()))
        fired = Fired(self.kind, f"{self.times} times {self.status}")
        return (*(interim for _ in range(self.times)), fired, *draft.actions())
