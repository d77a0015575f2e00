"""A steady reply, encoded once: its bytes with gaps where the identifiers of one reply and one request go.

Only an undisturbed reply is precoded. It holds bytes and counts; it never sends them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Precoded:
    """The bytes of one reply.

    Attributes:
        lane: The lane that gives it.
        step: The label of the step that gives it.
        moves: What ``Playback.moves`` was; once it is another number the lane may give another reply.
        status: HTTP status code.
        writes: What is handed to the kernel together: everything at once, or event by event. None at all where the
            reply cannot be precoded.
        message_mark: Digits that stand in the bytes where those of the message's identifier go; as many.
        request_mark: Digits that stand in the bytes where those of the request's identifier go; as many.
        frames: Complete events by name.
        size_bytes: The size of all of it.
    """

    lane: str
    step: str
    moves: int
    status: int
    writes: tuple[bytes, ...]
    message_mark: bytes
    request_mark: bytes
    frames: Mapping[str, int]
    size_bytes: int

    def filled(self, message_id: str, request_id: str) -> Sequence[bytes]:
        """Return the writes with the last digits of one message's and one request's identifier."""
        message = message_id[-len(self.message_mark) :].encode()
        request = request_id[-len(self.request_mark) :].encode()
        return [write.replace(self.message_mark, message).replace(self.request_mark, request) for write in self.writes]
