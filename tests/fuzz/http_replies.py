"""Takes what a provider wrote apart into replies, with a parser of HTTP that the provider does not write with."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import h11


@dataclass(frozen=True)
class Said:
    """One reply: its status and its body; ``whole`` where its end was reached."""

    status: int
    body: bytes
    whole: bool


def replies(data: bytes, methods: Sequence[str]) -> list[Said]:
    """Read the replies to requests of these methods, and to one more where that is no request.

    Raises:
        h11.RemoteProtocolError: The bytes are no HTTP.
    """
    said = []
    for method in [*methods, "GET"]:
        if not data:
            break
        reply, data = _reply(data, method)
        said.append(reply)
    assert not data, f"bytes after the last reply: {data[:80]!r}"
    return said


def _reply(data: bytes, method: str) -> tuple[Said, bytes]:
    parser = h11.Connection(h11.CLIENT, max_incomplete_event_size=2**30)
    # Any method but HEAD and CONNECT says the same about a body's end.
    parser.send(h11.Request(method="HEAD" if method == "HEAD" else "GET", target="/", headers=[("host", "p")]))
    parser.send(h11.EndOfMessage())
    parser.receive_data(data)
    status, body = 0, bytearray()
    while True:
        event = parser.next_event()
        if isinstance(event, h11.Response):
            status = event.status_code
        elif isinstance(event, h11.Data):
            body += event.data
        elif isinstance(event, h11.EndOfMessage):
            return Said(status, bytes(body), whole=True), parser.trailing_data[0]
        elif event is h11.NEED_DATA:
            parser.receive_data(b"")
            return Said(status, bytes(body), whole=_end(parser)), b""


def _end(parser: h11.Connection) -> bool:
    """Whether the end of the connection is the end of the body."""
    try:
        while True:
            event = parser.next_event()
            if isinstance(event, h11.EndOfMessage):
                return True
            if not isinstance(event, h11.Data):
                return False
    except h11.RemoteProtocolError:
        return False
