"""A steady reply, encoded once: its bytes with gaps where the identifiers of one reply and one request go.

Only an undisturbed reply is precoded. It holds bytes and counts; it never sends them.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

KEYS_MAX = 4096
TOTAL_BYTES_MAX = 4 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Precoded:
    """The bytes of one reply.

    Attributes:
        lane: The lane that gives it.
        step: The label of the step that gives it.
        status: HTTP status code.
        writes: What is handed to the kernel together, each as its parts and gaps: everything at once, or event by
            event. None at all where the reply cannot be precoded.
        message_digits: How many last digits of the message's identifier stand in a gap.
        request_digits: How many last digits of the request's identifier stand in a gap.
        frames: Complete events by name.
        size_bytes: The size of all of it.
    """

    lane: str
    step: str
    status: int
    writes: tuple[tuple[bytes, ...], ...]
    message_digits: int
    request_digits: int
    frames: Mapping[str, int]
    size_bytes: int

    def filled(self, message_id: str, request_id: str) -> Sequence[bytes]:
        """Return the writes with the last digits of one message's and one request's identifier."""
        message = message_id[-self.message_digits :].encode()
        request = request_id[-self.request_digits :].encode()
        return [
            b"".join([message if part is MESSAGE else request if part is REQUEST else part for part in parts])
            for parts in self.writes
        ]


class SteadyKey(NamedTuple):
    """Everything that a steady reply's bytes depend on but its identifiers.

    Attributes:
        moves: What ``Playback.moves`` was; once it is another number the lane may give another reply.
        lane: The lane that gives it.
        dialect: Its dialect.
        model: The model asked for.
        stream: Whether a stream was asked for.
        input_tokens: The request's size.
        chunked: Whether the client understands a chunked body.
        repeated: What the reply repeats of the request beside these.
    """

    moves: int
    lane: str
    dialect: str
    model: str
    stream: bool
    input_tokens: int
    chunked: bool
    repeated: Hashable


class SteadyReplies:
    """Precoded replies by everything that their bytes depend on but identifiers; bounded, and forgotten all at once.

    A reply is encoded when its key comes for the second time: most never come again.

    Args:
        total_bytes_max: How many bytes of replies are held at most; a reply that alone is over a quarter of it is none.
    """

    def __init__(self, total_bytes_max: int = TOTAL_BYTES_MAX) -> None:
        self._total_bytes_max = total_bytes_max
        self._bytes = 0
        self._replies: dict[SteadyKey, Precoded | None] = {}

    @property
    def size_bytes(self) -> int:
        """How many bytes of replies are held."""
        return self._bytes

    def find(self, key: SteadyKey) -> Precoded | None:
        """Return the reply, or nothing where it is not encoded."""
        return self._replies.get(key)

    def is_due(self, key: SteadyKey) -> bool:
        """Note that a reply was given, and return whether it is time to encode it."""
        if key in self._replies:
            return self._replies[key] is None
        if len(self._replies) >= KEYS_MAX:
            self._forget()
        self._replies[key] = None
        return False

    def keep(self, key: SteadyKey, precoded: Precoded) -> Precoded:
        """Remember an encoded reply, and return it; without its bytes where they are too many."""
        if precoded.size_bytes > self._total_bytes_max // 4:
            precoded = replace(precoded, writes=())
        size_bytes = precoded.size_bytes if precoded.writes else 0
        if self._bytes + size_bytes > self._total_bytes_max:
            self._forget()
        self._bytes += size_bytes
        self._replies[key] = precoded
        return precoded

    def _forget(self) -> None:
        self._replies.clear()
        self._bytes = 0


MESSAGE = bytes(bytearray(b"message"))
REQUEST = bytes(bytearray(b"request"))
"""Stand in a write's parts for the digits of an identifier; they are found by identity, so that no text is mistaken."""


def parted(write: bytes, message_mark: bytes, request_mark: bytes) -> tuple[bytes, ...]:
    """Return a write as its parts, with ``MESSAGE`` and ``REQUEST`` where the marks stood."""
    parts: list[bytes] = []
    for index, by_message in enumerate(write.split(message_mark)):
        if index:
            parts.append(MESSAGE)
        for position, by_request in enumerate(by_message.split(request_mark)):
            if position:
                parts.append(REQUEST)
            parts.append(by_request)
    return tuple(parts)
