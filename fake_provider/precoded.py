"""A steady reply, encoded once: its bytes with gaps where the identifiers of one reply and one request go.

Only an undisturbed reply is precoded. It holds bytes and counts; it never sends them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from fake_provider.replies import ErrorReply, Reply


@dataclass(frozen=True, slots=True)
class Precoded:
    """The bytes of one reply.

    Attributes:
        answer: The answer it encodes; another answer needs another encoding.
        status: HTTP status code.
        writes: What is handed to the kernel together: everything at once, or event by event.
        message_mark: Stands in the bytes where the message's identifier goes; of the same length.
        request_mark: Stands in the bytes where the request's identifier goes; of the same length.
        frames: Complete events by name.
        size_bytes: The size of all of it.
    """

    answer: Reply | ErrorReply
    status: int
    writes: tuple[bytes, ...]
    message_mark: bytes
    request_mark: bytes
    frames: Mapping[str, int]
    size_bytes: int

    def filled(self, message_id: str, request_id: str) -> Sequence[bytes]:
        """Return the writes with the identifiers of one reply."""
        message, request = message_id.encode("ascii"), request_id.encode("ascii")
        return [write.replace(self.message_mark, message).replace(self.request_mark, request) for write in self.writes]
