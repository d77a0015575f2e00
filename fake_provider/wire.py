"""Frames and wire actions: what is to happen on a connection, as data. No sockets, no time.

A dialect makes frames, a fault turns frames into actions, and the server alone carries actions out.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from http import HTTPStatus
from typing import TypeAlias


@dataclass(frozen=True, slots=True)
class Frame:
    """One event of a stream, encoded.

    Attributes:
        name: The event's name, by which faults and holds find it.
        payload: Its bytes, without any HTTP framing.
        fixed: Whether its length is the same for every request, so that a byte position in it can be judged when the
            script is loaded.
    """

    name: str
    payload: bytes
    fixed: bool = True


@dataclass(frozen=True, slots=True)
class SendHead:
    """Send the status line and the headers of the reply."""


@dataclass(frozen=True, slots=True)
class Send:
    """Send bytes of one event; ``complete`` is false where the event is cut short."""

    event: str
    payload: bytes
    complete: bool = True


@dataclass(frozen=True, slots=True)
class SendEnd:
    """End the reply properly: the last chunk, after which the connection can be used again."""


@dataclass(frozen=True, slots=True)
class Fired:
    """Everything before this has left and been acknowledged by the peer's kernel: the fault strikes now."""

    kind: str
    detail: str


@dataclass(frozen=True, slots=True)
class Pause:
    """Send nothing for a time, in seconds; ``None`` is until the client leaves."""

    seconds: float | None


@dataclass(frozen=True, slots=True)
class Close:
    """Close the connection with a FIN, without ending the reply."""


@dataclass(frozen=True, slots=True)
class Reset:
    """Tear the connection down with a RST."""


@dataclass(frozen=True, slots=True)
class HoldHere:
    """Withhold the rest until the hold at this index of the server's list is released, or the client leaves."""

    hold: int


Action: TypeAlias = SendHead | Send | SendEnd | Fired | Pause | Close | Reset | HoldHere


@dataclass(frozen=True, slots=True)
class PlainReply:
    """A reply that is not streamed: status, headers in order, and a whole body."""

    status: int
    headers: tuple[tuple[str, str], ...]
    body: bytes


def plain_actions(frames: Iterable[Frame]) -> tuple[Action, ...]:
    """Return the actions of a reply that nothing disturbs."""
    return (SendHead(), *(Send(frame.name, frame.payload) for frame in frames), SendEnd())


def with_hold(actions: Sequence[Action], hold: int, event: str, nth: int) -> tuple[Action, ...] | None:
    """Return the actions with a hold right after the nth complete event of a name, or nothing if there is none."""
    seen = 0
    for index, action in enumerate(actions):
        if isinstance(action, Send) and action.event == event and action.complete:
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


def head(status: int, headers: Iterable[tuple[str, str]]) -> bytes:
    """Encode a status line and headers (RFC 9112, sections 4 and 5)."""
    try:
        reason = HTTPStatus(status).phrase
    except ValueError:
        reason = _EXTRA_REASONS.get(status, "")
    lines = [f"HTTP/1.1 {status} {reason}", *(f"{name}: {value}" for name, value in headers)]
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")
