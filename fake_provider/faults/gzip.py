"""``gzip``: the body is compressed, or said to be."""

from __future__ import annotations

import re
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar

from fake_provider.document import Node
from fake_provider.faults.rewriting import struck_at_end, with_header, without_body
from fake_provider.wire import Action, Draft, Frame

if TYPE_CHECKING:
    from fake_provider.dialects import Dialect

HOW: Mapping[str, str] = {
    "fine": "compressed, for a client that asked for it",
    "unasked": "compressed, for a client that did not ask for it",
    "truncated": "the second half of the compressed body is missing",
    "corrupt": "the compressed body is damaged in its middle",
    "not_gzip": "the header says gzip and the body is not compressed",
}
"""Every form; all but ``fine`` and ``unasked`` are broken."""

_GZIP_WINDOW_BITS = 31
_RESERVED_BLOCK_TYPE = b"\xff"


@dataclass(frozen=True, slots=True)
class GzipFault:
    """Say ``content-encoding: gzip`` and send the body accordingly, or not; ``how`` is a word of ``HOW``.

    Every event is flushed into bytes of its own, as a compressing proxy does it for a stream that is to arrive event by
    event. Truncated: those of the second half of the events never come, while HTTP's framing is whole. Corrupt: they
    begin with a block of a type that does not exist (RFC 1951, 3.2.3), so that no reader takes them.

    A client may wrongly conclude that a body whose compressed form lacks its end is whole, because what it could read
    is well formed; or that a reply which it merely cannot read was never given.
    """

    kind: ClassVar[str] = "gzip"
    how: str = "fine"

    @classmethod
    def read(cls, node: Node) -> GzipFault:
        """Read ``{how: fine}``."""
        fields = node.fields("gzip", ("how",))
        return cls(fields["how"].choice("form of gzip", HOW) if "how" in fields else "fine")

    def unreachable(self, draft: Draft) -> str | None:
        """Return that the client asked otherwise, or that there is too little to damage, or nothing if there is."""
        if not draft.has_body:
            return without_body(draft)
        if draft.request is not None and self.how in ("fine", "unasked"):
            asked = _asks_for_gzip(draft.request.headers.get("accept-encoding", ""))
            if asked is not (self.how == "fine"):
                return f"the client {'asked' if asked else 'did not ask'} for gzip"
        if len(_pieces(draft)) < 2 and self.how in ("truncated", "corrupt"):
            return "the body is too short to be damaged in its middle"
        return None

    def strike(self, draft: Draft, dialect: Dialect) -> tuple[Action, ...]:
        """Send the reply in its compressed form."""
        headers = with_header(draft.headers, "content-encoding", "gzip")
        pieces = _pieces(draft)
        frames = pieces if self.how == "not_gzip" else _compressed(pieces)
        middle = len(frames) // 2
        if self.how == "truncated":
            frames = frames[:middle]
        elif self.how == "corrupt":
            damaged = replace(frames[middle], payload=_RESERVED_BLOCK_TYPE + frames[middle].payload[1:])
            frames = (*frames[:middle], damaged, *frames[middle + 1 :])
        return struck_at_end(replace(draft, headers=headers, frames=frames), self.kind, HOW[self.how])


def _pieces(draft: Draft) -> tuple[Frame, ...]:
    """Return the frames, or the two halves of a single one."""
    if len(draft.frames) != 1 or len(draft.frames[0].payload) < 2:
        return draft.frames
    [frame] = draft.frames
    middle = len(frame.payload) // 2
    return replace(frame, payload=frame.payload[:middle]), replace(frame, payload=frame.payload[middle:])


def _compressed(frames: tuple[Frame, ...]) -> tuple[Frame, ...]:
    compressor = zlib.compressobj(wbits=_GZIP_WINDOW_BITS)
    last = len(frames) - 1
    return tuple(
        replace(
            frame,
            payload=compressor.compress(frame.payload)
            + compressor.flush(zlib.Z_FINISH if index == last else zlib.Z_SYNC_FLUSH),
        )
        for index, frame in enumerate(frames)
    )


def _asks_for_gzip(accept_encoding: str) -> bool:
    """Whether the value of an ``accept-encoding`` header takes gzip; a weight of 0 refuses it (RFC 9110, 12.5.3)."""
    weights: dict[str, bool] = {}
    for item in accept_encoding.lower().split(","):
        coding, *parameters = (part.strip() for part in item.split(";"))
        weights[coding] = not any(_NO_WEIGHT.fullmatch(parameter) for parameter in parameters)
    return weights.get("gzip", weights.get("x-gzip", weights.get("*", False)))


_NO_WEIGHT = re.compile(r"q\s*=\s*0(?:\.0{0,3})?")
