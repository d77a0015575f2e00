"""``empty_body``: the status and the headers of the reply, and no body."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar

from fake_provider.document import Node
from fake_provider.faults.rewriting import struck_at_end, without_body
from fake_provider.wire import Action, Draft

if TYPE_CHECKING:
    from fake_provider.dialects import Dialect


@dataclass(frozen=True, slots=True)
class EmptyBodyFault:
    """Send the head as it is and end the body properly before its first byte.

    A client may wrongly conclude that the model said nothing, because the status is 200 and nothing was malformed.
    """

    kind: ClassVar[str] = "empty_body"

    @classmethod
    def read(cls, node: Node) -> EmptyBodyFault:
        """Read ``{}``: there is nothing to set."""
        node.fields("empty_body", ())
        return cls()

    def unreachable(self, draft: Draft) -> str | None:
        """Return that there is no body or that it is empty as it is, or nothing if it is not."""
        return without_body(draft) or (None if draft.body_bytes else "the body of this reply is empty as it is")

    def strike(self, draft: Draft, dialect: Dialect) -> tuple[Action, ...]:
        """Send the head, then end."""
        return struck_at_end(replace(draft, frames=()), self.kind, "instead of the body")
