"""``truncated_json``: the body of a reply that is not streamed lacks its end, and HTTP does not show it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from fake_provider.document import Node
from fake_provider.faults.rewriting import struck_at_end, with_body, without_body
from fake_provider.wire import Action, Draft

if TYPE_CHECKING:
    from fake_provider.dialects import Dialect


@dataclass(frozen=True, slots=True)
class TruncatedJsonFault:
    """Send the first ``bytes`` of the body, half of them by default, under a content-length that fits.

    A client may wrongly conclude that it understood the reply, where it reads JSON leniently and closes what is open:
    half a text becomes the answer, and half the arguments of a tool become all of them.
    """

    kind: ClassVar[str] = "truncated_json"
    bytes: int | None = None

    @classmethod
    def read(cls, node: Node) -> TruncatedJsonFault:
        """Read ``{bytes}``."""
        fields = node.fields("truncated_json", ("bytes",))
        return cls(fields["bytes"].integer(minimum=1) if "bytes" in fields else None)

    def unreachable(self, draft: Draft) -> str | None:
        """Return that there is no whole body to be cut at this byte, or nothing if there is."""
        if not draft.has_body:
            return without_body(draft)
        if draft.streamed:
            return "the reply is streamed; 'early_end' ends one early"
        size = draft.body_bytes
        if self.bytes is None:
            return None if size > 1 else "the body is too short to be cut"
        if self.bytes >= size and all(frame.fixed for frame in draft.frames):
            return f"the body is {size} bytes long, so {self.bytes} would be all of it"
        return None

    def strike(self, draft: Draft, dialect: Dialect) -> tuple[Action, ...]:
        """Send the beginning."""
        body = b"".join(frame.payload for frame in draft.frames)
        kept = len(body) // 2 if self.bytes is None else self.bytes
        detail = f"{kept} of {len(body)} bytes"
        return struck_at_end(with_body(draft, body[:kept], draft.headers), self.kind, detail)
