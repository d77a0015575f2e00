"""A steady reply, encoded once: its bytes with gaps where the identifiers of one reply and one request go.

Only an undisturbed reply is precoded. It holds bytes and counts; it never sends them.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass

REPLIES_MAX = 512


@dataclass(frozen=True, slots=True)
class Precoded:
    """The bytes of one reply.

    Attributes:
        lane: The lane that gives it.
        step: The label of the step that gives it.
        moves: What ``Playback.moves`` was; once it is another number the lane may give another reply.
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
    moves: int
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


class SteadyReplies:
    """Precoded replies by everything that their bytes depend on but identifiers; bounded, and forgotten all at once.

    A reply is encoded when its key comes for the second time: most never come again.
    """

    def __init__(self) -> None:
        self._replies: dict[Hashable, Precoded | None] = {}

    def find(self, key: Hashable) -> Precoded | None:
        """Return the reply, or nothing where it is not encoded."""
        return self._replies.get(key)

    def is_due(self, key: Hashable) -> bool:
        """Note that a reply was given, and return whether it is time to encode it."""
        if key in self._replies:
            return True
        if len(self._replies) >= REPLIES_MAX:
            self._replies.clear()
        self._replies[key] = None
        return False

    def keep(self, key: Hashable, precoded: Precoded) -> None:
        """Remember an encoded reply."""
        self._replies[key] = precoded


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
