"""Frames and wire actions: what is to happen on a connection, as data. No sockets, no time.

A dialect makes frames, a fault turns frames into actions, and the server alone carries actions out.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from http import HTTPStatus
from typing import TYPE_CHECKING, Literal, TypeAlias

if TYPE_CHECKING:
    from fake_provider.requests import Received

Headers: TypeAlias = tuple[tuple[str, str], ...]

PLACES: Mapping[str, str] = {
    "start": "the first event of a streamed reply",
    "content": "an event that carries text, thinking or a part of a tool call",
    "text": "a piece of visible text",
    "thinking": "a piece of reasoning",
    "tool_start": "the event that names the tool",
    "tool_arguments": "a piece of a tool call's arguments",
    "tool_end": "the event after which a tool call is complete",
    "ping": "an event that only says that the stream is alive",
    "stop": "the event that holds the stop reason",
    "usage": "the event that holds the final token counts",
    "terminal": "the event after which the protocol says that the stream is over",
    "body": "the whole body of a reply that is not streamed",
}
"""Places in a reply that every dialect has in some form, so that one fault can be said for all of them."""


@dataclass(frozen=True, slots=True)
class Frame:
    """One event of a stream, or the body of a reply that is not streamed, encoded.

    Attributes:
        name: The event's name in its dialect, by which faults and holds find it.
        payload: Its bytes, without any HTTP framing.
        fixed: Whether its length is the same for every request, so that a byte position in it can be judged when the
            script is loaded.
        places: The words of ``PLACES`` that apply to it; faults and holds find it by these too.
    """

    name: str
    payload: bytes
    fixed: bool = True
    places: tuple[str, ...] = ()

    def is_at(self, event: str) -> bool:
        """Whether the word names this frame, by its name or by a place."""
        return event == self.name or event in self.places


Transfer: TypeAlias = Literal["chunked", "length", "until_close"]
"""How the end of a body is known: chunks, a content-length, or the end of the connection (RFC 9112, section 6)."""


@dataclass(frozen=True, slots=True)
class Drip:
    """Send only ``bytes_each`` bytes, then nothing for ``seconds``, and so on."""

    bytes_each: int
    seconds: float


@dataclass(frozen=True, slots=True)
class SendHead:
    """Send the status line and the headers of the reply.

    Attributes:
        status: HTTP status code.
        headers: Names and values in order, without those of the transfer.
        transfer: How the body's end is known.
        length: The content-length stated, for ``transfer`` ``length`` only.
        version: The HTTP version of the status line.
        close: Say ``connection: close`` even to a client that would keep the connection.
        drip: Send it in small pieces.
    """

    status: int
    headers: Headers
    transfer: Transfer
    length: int | None = None
    version: str = "1.1"
    close: bool = False
    drip: Drip | None = None


@dataclass(frozen=True, slots=True)
class Send:
    """Send bytes of one event, framed as the head said.

    Attributes:
        event: The frame's name.
        payload: The bytes.
        complete: False where the event is cut short.
        places: The frame's places.
        drip: Send it in small pieces.
    """

    event: str
    payload: bytes
    complete: bool = True
    places: tuple[str, ...] = ()
    drip: Drip | None = None

    @classmethod
    def whole(cls, frame: Frame) -> Send:
        """Return the sending of a whole frame."""
        return cls(frame.name, frame.payload, places=frame.places)


@dataclass(frozen=True, slots=True)
class SendRaw:
    """Send bytes as they are, outside of any framing."""

    payload: bytes


@dataclass(frozen=True, slots=True)
class Numbering:
    """Where each piece of a fill holds a number of its own: ``first`` at byte ``offset``, then one more each time."""

    offset: int
    first: int


@dataclass(frozen=True, slots=True)
class SendFill:
    """Send ``pieces`` times the same bytes, each framed as the head said, never more than a few of them in memory.

    Attributes:
        event: The name of the frame that each piece is or belongs to.
        payload: The bytes of a piece, without its number.
        pieces: How many.
        numbering: The number that makes each piece another one, where they have any.
    """

    event: str
    payload: bytes
    pieces: int
    numbering: Numbering | None = None

    def piece(self, index: int) -> bytes:
        """Return the bytes of a piece, counted from 0."""
        if self.numbering is None:
            return self.payload
        offset = self.numbering.offset
        return b"%b%d%b" % (self.payload[:offset], self.numbering.first + index, self.payload[offset:])


@dataclass(frozen=True, slots=True)
class SendEnd:
    """End the reply properly: the last chunk, after which the connection can be used again."""


@dataclass(frozen=True, slots=True)
class Fired:
    """Everything before this has left and been acknowledged by the peer's kernel: the fault strikes now.

    Attributes:
        kind: The fault's kind.
        detail: Where it struck, for the journal.
        abrupt: Do not wait for the acknowledgement: what the peer has not read yet may be lost.
        delivered: The fault lies in the bytes before this, so it struck a client that closed its side after them too.
    """

    kind: str
    detail: str
    abrupt: bool = False
    delivered: bool = False


@dataclass(frozen=True, slots=True)
class Pause:
    """Send nothing for a time, in seconds; ``None`` is until the client leaves.

    Where ``every_seconds`` is given, ``ping`` is sent each time so many seconds have passed.
    """

    seconds: float | None
    every_seconds: float | None = None
    ping: Send | None = None


@dataclass(frozen=True, slots=True)
class Close:
    """Close the connection with a FIN, without ending the reply."""


@dataclass(frozen=True, slots=True)
class Reset:
    """Tear the connection down with a RST."""


@dataclass(frozen=True, slots=True)
class Refuse:
    """Take no new connection for a time, in seconds.

    Attributes:
        seconds: How long.
        how: ``refused``: the listening socket is closed, so that a new connection is refused. ``full``: it stays open
            with a full queue, so that a new connection is neither taken nor refused.
    """

    seconds: float
    how: Literal["refused", "full"]


@dataclass(frozen=True, slots=True)
class HoldHere:
    """Withhold the rest until the hold at this index of the exchange's list is released, or the client leaves."""

    hold: int


Action: TypeAlias = SendHead | Send | SendRaw | SendFill | SendEnd | Fired | Pause | Close | Reset | Refuse | HoldHere


@dataclass(frozen=True, slots=True)
class PlainReply:
    """A reply that is not streamed: status, headers in order, and a whole body."""

    status: int
    headers: Headers
    body: bytes


BODILESS_STATUSES = (204, 304)
"""Replies that end with their headers, whatever those say (RFC 9112, section 6.3)."""


@dataclass(frozen=True, slots=True)
class Draft:
    """A reply as it would leave undisturbed: what a wire fault rewrites into actions.

    Attributes:
        status: HTTP status code.
        headers: Names and values in order, without those of the transfer.
        frames: Its events; a reply that is not streamed is one frame ``body``.
        streamed: Whether the frames are events.
        transfer: How the body's end is known to this client: never ``chunked`` for HTTP/1.0.
        chunks: Whether the client understands chunks, and so speaks HTTP/1.1.
        request: The request that it answers; nothing where a script is judged before there is one.
    """

    status: int
    headers: Headers
    frames: tuple[Frame, ...]
    streamed: bool
    transfer: Transfer
    chunks: bool = True
    request: Received | None = None

    @property
    def has_body(self) -> bool:
        """Whether a reply of this status can have a body at all."""
        return self.status not in BODILESS_STATUSES

    @property
    def body_bytes(self) -> int:
        """The size of the body without its framing."""
        return sum(len(frame.payload) for frame in self.frames)

    def head(self) -> SendHead:
        """Return the sending of the head."""
        length = self.body_bytes if self.transfer == "length" else None
        return SendHead(self.status, self.headers, self.transfer, length)

    def actions(self) -> tuple[Action, ...]:
        """Return the actions of this reply when nothing disturbs it."""
        return (self.head(), *(Send.whole(frame) for frame in self.frames), SendEnd())

    @classmethod
    def of_plain(cls, plain: PlainReply, *, chunks: bool = True, request: Received | None = None) -> Draft:
        """Return the draft of a reply that is not streamed."""
        body = Frame("body", plain.body, fixed=False, places=("body",))
        return cls(
            plain.status, plain.headers, (body,), streamed=False, transfer="length", chunks=chunks, request=request
        )


def with_hold(actions: Sequence[Action], hold: int, event: str, nth: int) -> tuple[Action, ...] | None:
    """Return the actions with a hold right after the nth complete event of a name, or nothing if there is none."""
    seen = 0
    for index, action in enumerate(actions):
        if isinstance(action, Send) and action.complete and (action.event == event or event in action.places):
            seen += 1
            if seen == nth:
                return (*actions[: index + 1], HoldHere(hold), *actions[index + 1 :])
    return None


def settled(frames: Iterable[Frame]) -> tuple[Frame, ...]:
    """Return frames of one actual reply: from now on every length is known."""
    return tuple(frame if frame.fixed else replace(frame, fixed=True) for frame in frames)


def chunk(payload: bytes) -> bytes:
    """Wrap bytes as one chunk of a chunked body (RFC 9112, section 7.1)."""
    return b"%x\r\n%b\r\n" % (len(payload), payload)


LAST_CHUNK = b"0\r\n\r\n"

_EXTRA_REASONS = {529: "Overloaded"}


def head(status: int, headers: Iterable[tuple[str, str]], version: str = "1.1") -> bytes:
    """Encode a status line and headers (RFC 9112, sections 4 and 5)."""
    try:
        reason = HTTPStatus(status).phrase
    except ValueError:
        reason = _EXTRA_REASONS.get(status, "")
    lines = [f"HTTP/{version} {status} {reason}", *(f"{name}: {value}" for name, value in headers)]
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")


class Framing:
    """Turns the sending actions of one reply into bytes; it remembers what the head said.

    Args:
        keep_alive: Whether the connection may be used again; false once the head says that it will not.
        with_body: False for the reply to a HEAD request.
        chunked: Whether the body is chunked; the head decides it.
    """

    def __init__(self, *, keep_alive: bool, with_body: bool, chunked: bool) -> None:
        self.keep_alive = keep_alive
        self._with_body = with_body
        self._chunked = chunked

    def encode(self, action: Action) -> bytes:
        """Return the bytes of a sending action, and nothing for any other."""
        match action:
            case SendHead():
                return self._head(action)
            case Send(payload=payload):
                return self.body(payload)
            case SendRaw(payload):
                return payload
            case SendEnd():
                return LAST_CHUNK if self._chunked and self._with_body else b""
            case _:
                return b""

    def body(self, payload: bytes) -> bytes:
        """Return bytes of the body, as one chunk where it is chunked."""
        if not self._with_body or not payload:
            return b""
        return chunk(payload) if self._chunked else payload

    def _head(self, send: SendHead) -> bytes:
        bodiless = send.status in BODILESS_STATUSES
        self._chunked = send.transfer == "chunked" and not bodiless
        self._with_body = self._with_body and not bodiless
        self.keep_alive = self.keep_alive and not send.close and send.transfer != "until_close"
        transfer: Headers = ()
        if self._chunked:
            transfer = (("transfer-encoding", "chunked"),)
        elif send.transfer == "length" and not bodiless:
            transfer = (("content-length", str(send.length or 0)),)
        connection = () if self.keep_alive else (("connection", "close"),)
        return head(send.status, (*send.headers, *transfer, *connection), send.version)
