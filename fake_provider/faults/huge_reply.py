"""``huge_reply``: a well-formed reply that is far larger than any client expects."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

from fake_provider.document import Node
from fake_provider.faults.point import Point
from fake_provider.faults.rewriting import without_body, without_events
from fake_provider.requests import NotJsonError, decode_json
from fake_provider.wire import Action, Draft, Fired, Frame, Numbering, Send, SendEnd, SendFill

if TYPE_CHECKING:
    from fake_provider.dialects import Dialect

BYTES_DEFAULT = 100_000_000

_FILLER = b"More of the same. " * 512
_TOKEN = re.compile(rb'(?P<string>"(?:[^"\\]|\\.)*")\s*(?P<key>:)?|(?P<open>[\[{])|(?P<close>[\]}])|(?P<comma>,)')
_NUMBER = re.compile(rb'(?<!\\)"sequence_number":(\d+)')
_TEXT = Point("text")


@dataclass(frozen=True, slots=True)
class HugeReplyFault:
    """Say ``bytes`` more: a stream repeats its first piece of text, a body that is not streamed gets a long text.

    It is sent a little at a time, so that the provider needs no more memory for it. Numbered events go on being so.
    Events that repeat the whole text, as those of the Responses API do, still hold what the script says.

    A client may wrongly conclude that it can hold any reply in memory, and end for lack of it; or that the reply is
    damaged because it is long.
    """

    kind: ClassVar[str] = "huge_reply"
    bytes: int = BYTES_DEFAULT

    @classmethod
    def read(cls, node: Node) -> HugeReplyFault:
        """Read ``{bytes: 100000000}``."""
        fields = node.fields("huge_reply", ("bytes",))
        return cls(fields["bytes"].integer(minimum=1) if "bytes" in fields else BYTES_DEFAULT)

    def unreachable(self, draft: Draft) -> str | None:
        """Return that the reply has no text to be made longer, or nothing if it has."""
        if draft.streamed:
            return without_events(draft) or _TEXT.unreachable(draft)
        if not draft.has_body:
            return without_body(draft)
        return "the body holds no text to be made longer" if _text_begins(draft) is None else None

    def strike(self, draft: Draft, dialect: Dialect) -> tuple[Action, ...]:
        """Send the beginning, the filling, and the rest."""
        fired = Fired(self.kind, f"{self.bytes} bytes of text more")
        return self._stream(draft, fired) if draft.streamed else self._body(draft, fired)

    def _body(self, draft: Draft, fired: Fired) -> tuple[Action, ...]:
        [body] = draft.frames
        begins = _text_begins(draft)
        if begins is None:
            raise ValueError("the body holds no text to be made longer")
        fill = SendFill(body.name, _FILLER, -(-self.bytes // len(_FILLER)))
        head = replace(draft.head(), length=draft.body_bytes + fill.pieces * len(_FILLER))
        begun = Send(body.name, body.payload[:begins], complete=False, places=body.places)
        rest = Send(body.name, body.payload[begins:], places=body.places)
        return (head, begun, fired, fill, rest, SendEnd())

    def _stream(self, draft: Draft, fired: Fired) -> tuple[Action, ...]:
        index = _TEXT.index_of(draft)
        text = draft.frames[index]
        pieces = -(-self.bytes // len(text.payload))
        numbered = _NUMBER.search(text.payload)
        fill = SendFill(text.name, text.payload, pieces)
        if numbered is not None:
            start, end = numbered.span(1)
            payload = text.payload[:start] + text.payload[end:]
            fill = SendFill(text.name, payload, pieces, Numbering(start, int(numbered[1]) + 1))
        before = (Send.whole(frame) for frame in draft.frames[: index + 1])
        after = (Send.whole(frame) for frame in _renumbered(draft.frames[index + 1 :], pieces))
        return (draft.head(), *before, fired, fill, *after, SendEnd())


def _is_visible(path: tuple[str | int, ...], body: Any) -> bool:
    """Whether the string at a path of a body is what the model says, or the message of an error."""
    match path:
        case ("error", "message") | ("choices", int(), "message", "content"):
            return True
        case ("content", int(index), "text"):
            return bool(body["content"][index].get("type") == "text")
        case ("output", int(index), "content", int(position), "text"):
            return bool(body["output"][index]["content"][position].get("type") == "output_text")
        case ("candidates", int(index), "content", "parts", int(position), "text"):
            return not body["candidates"][index]["content"]["parts"][position].get("thought", False)
        case _:
            return False


def _text_begins(draft: Draft) -> int | None:
    """Return the byte at which the first visible text of a body begins, or nothing if it has none."""
    payload = draft.frames[0].payload
    try:
        body = decode_json(payload)
    except NotJsonError:
        return None
    return next((begins for path, begins in _strings(payload) if _is_visible(path, body)), None)


def _strings(payload: bytes) -> Iterator[tuple[tuple[str | int, ...], int]]:
    """Yield the path and the first byte of every string value in well-formed JSON."""
    path: list[str | int] = []
    for token in _TOKEN.finditer(payload):
        if token["key"]:
            path[-1] = str(decode_json(token["string"]))
        elif token["string"]:
            yield tuple(path), token.start() + 1
        elif token["open"]:
            path.append(0 if token["open"] == b"[" else "")
        elif token["close"]:
            path.pop()
        elif isinstance(path[-1], int):
            path[-1] += 1


def _renumbered(frames: tuple[Frame, ...], by: int) -> Iterator[Frame]:
    for frame in frames:
        found = _NUMBER.search(frame.payload)
        if found is None:
            yield frame
            continue
        start, end = found.span(1)
        yield replace(frame, payload=b"%b%d%b" % (frame.payload[:start], int(found[1]) + by, frame.payload[end:]))
