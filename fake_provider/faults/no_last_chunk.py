"""``no_last_chunk``: the whole reply in chunks, without the one that says that the body is over."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar

from fake_provider.document import Node
from fake_provider.faults.rewriting import without_body
from fake_provider.wire import Action, Close, Draft, Fired

if TYPE_CHECKING:
    from fake_provider.dialects import Dialect


@dataclass(frozen=True, slots=True)
class NoLastChunkFault:
    """Send everything in chunks and close instead of sending the last chunk.

    A client may wrongly conclude that a reply whose terminal event came is lost, and ask for it again; or, where it
    does not look at the framing, that every body which ended this way is whole.
    """

    kind: ClassVar[str] = "no_last_chunk"

    @classmethod
    def read(cls, node: Node) -> NoLastChunkFault:
        """Read ``{}``: there is nothing to set."""
        node.fields("no_last_chunk", ())
        return cls()

    def unreachable(self, draft: Draft) -> str | None:
        """Return that there is no body or that the client has no chunks, or nothing if it has."""
        if not draft.has_body:
            return without_body(draft)
        return None if draft.chunks else "the client speaks HTTP/1.0, which has no chunks"

    def strike(self, draft: Draft, dialect: Dialect) -> tuple[Action, ...]:
        """Send everything but the last chunk, then close."""
        *everything, _ = replace(draft, transfer="chunked").actions()
        return (*everything, Fired(self.kind, "instead of the last chunk"), Close())
