"""Parsing of requests: bytes in, requests out, with h11 as the parser. No sockets and no replies.

Every message gets an h11 connection of its own, because the replies are written without h11's knowledge.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

import h11

from fake_provider.requests import Received, asks_to_close

BODY_BYTES_MAX = 64 * 1024 * 1024
"""The largest body accepted, in bytes."""

HEAD_BYTES_MAX = 64 * 1024
"""The largest head accepted, in bytes, and the largest line of a chunked body."""

PIECES_AT_ONCE = 256
"""How many pieces of a body are parsed before others have their turn; a chunk may be as small as a byte."""

_EMPTY_LINES = b"\r\n"
"""What is ignored between requests: old clients end a body with an empty line of their own (RFC 9112, section 2.2)."""


class Signal(Enum):
    """What the reader says when it has no request."""

    NEEDS_DATA = "needs data"
    HAS_MORE = "holds more than it parses at once; poll it again when others had their turn"
    WANTS_CONTINUE = "wants 100 Continue before it sends the body"
    ENDED = "the client ended the connection between requests"


@dataclass(frozen=True, slots=True)
class Parsed:
    """A complete request, and what the connection may do with its reply.

    Attributes:
        received: The request.
        chunked: Whether the client understands a chunked body (HTTP/1.1).
        keep_alive: Whether the connection may be used again.
    """

    received: Received
    chunked: bool
    keep_alive: bool


@dataclass(frozen=True, slots=True)
class Garbage:
    """What arrived is no request; ``status`` is the answer it deserves."""

    reason: str
    status: int


class RequestReader:
    """Collects bytes until a whole request is there.

    Args:
        body_bytes_max: The largest body accepted, in bytes.
    """

    def __init__(self, body_bytes_max: int = BODY_BYTES_MAX) -> None:
        self._body_bytes_max = body_bytes_max
        self._parser = _parser()
        self._request: h11.Request | None = None
        self._body = bytearray()
        self._continued = False
        self._ended = False
        self._fresh = True
        self._pending_bytes = 0

    @property
    def is_fresh(self) -> bool:
        """Whether it stands between two requests and holds no byte of the next one."""
        return self._fresh

    @property
    def pending_bytes(self) -> int:
        """How many bytes it was fed that were in no complete request so far."""
        return self._pending_bytes

    def feed(self, data: bytes) -> None:
        """Take bytes from the client; empty ones mean that no more will come."""
        if data or not self._ended:
            self._ended = not data
            self._pending_bytes += len(data)
            if self._fresh:
                data = data.lstrip(_EMPTY_LINES)
            self._fresh = self._fresh and not data and not self._ended
            if data or self._ended:
                self._parser.receive_data(data)

    def poll(self) -> Parsed | Garbage | Signal:
        """Return the next request if it is complete, what is wrong, or what is needed."""
        for _ in range(PIECES_AT_ONCE):
            try:
                event = self._parser.next_event()
            except h11.RemoteProtocolError as error:
                # The parser quotes what it could not read, and that may be a line with a key in it.
                reason = str(error).partition(": bytearray(")[0]
                return _HEAD_TOO_LARGE if error.error_status_hint == 431 else Garbage(reason, error.error_status_hint)
            match event:
                case h11.Request():
                    self._request = event
                    garbage = self._refused_head(event)
                    if garbage is not None:
                        return garbage
                case h11.Data():
                    self._body += event.data
                    if len(self._body) > self._body_bytes_max:
                        return _too_large(self._body_bytes_max)
                case h11.EndOfMessage():
                    return self._complete()
                case h11.ConnectionClosed():
                    return Signal.ENDED
                case _:
                    return self._waiting()
        return Signal.HAS_MORE

    def _waiting(self) -> Signal:
        if self._parser.they_are_waiting_for_100_continue and not self._continued:
            self._continued = True
            return Signal.WANTS_CONTINUE
        return Signal.NEEDS_DATA

    def _refused_head(self, request: h11.Request) -> Garbage | None:
        """Return why a request is not read on, though its head is a proper one."""
        if self._pending_bytes > HEAD_BYTES_MAX:
            # The parser takes a head of any length that comes at once, and how bytes come must not matter.
            head_bytes = self._pending_bytes - len(self._parser.trailing_data[0])
            if head_bytes > HEAD_BYTES_MAX:
                return _HEAD_TOO_LARGE
        if not request.http_version.startswith(b"1."):
            return Garbage(f"HTTP/{request.http_version.decode('ascii')} is not spoken here", 505)
        length = next((value for name, value in request.headers if name == b"content-length"), b"0")
        return _too_large(self._body_bytes_max) if int(length) > self._body_bytes_max else None

    def _complete(self) -> Parsed:
        request = self._request
        if request is None:
            raise RuntimeError("the parser ended a message that it never began")
        path, _, query = _origin_form(request.target.decode("ascii")).partition("?")
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in request.headers}
        received = Received(request.method.decode("latin-1"), path, query, headers, bytes(self._body))
        recent = request.http_version >= b"1.1"
        closing = any(
            name == b"connection" and asks_to_close(value.decode("latin-1")) for name, value in request.headers
        )
        rest, ended = self._parser.trailing_data
        self._pending_bytes = len(rest)
        rest = rest.lstrip(_EMPTY_LINES)
        self._parser = _parser()
        self._request = None
        self._body = bytearray()
        self._continued = False
        self._ended = ended
        self._fresh = not rest and not ended
        if rest:
            self._parser.receive_data(rest)
        if ended:
            self._parser.receive_data(b"")
        return Parsed(received, chunked=recent, keep_alive=recent and not closing)


def _parser() -> h11.Connection:
    return h11.Connection(h11.SERVER, max_incomplete_event_size=HEAD_BYTES_MAX)


_HEAD_TOO_LARGE = Garbage(f"the head, or a line in a chunked body, is over {HEAD_BYTES_MAX} bytes", 431)


def _too_large(body_bytes_max: int) -> Garbage:
    return Garbage(f"the body is over {body_bytes_max} bytes", 413)


def _origin_form(target: str) -> str:
    """Return a target without scheme and authority, which a client that believes to speak to a proxy puts there.

    RFC 9112, section 3.2.2, says that every server takes both forms.
    """
    scheme, separator, rest = target.partition("://")
    if not separator or scheme.lower() not in ("http", "https"):
        return target
    at = min((index for index in (rest.find("/"), rest.find("?")) if index >= 0), default=len(rest))
    return rest[at:] if rest[at:].startswith("/") else f"/{rest[at:]}"
