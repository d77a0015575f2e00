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
        message_mark: Digits that stand in the bytes where those of the message's identifier go; as many.
        request_mark: Digits that stand in the bytes where those of the request's identifier go; as many.
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

    def filled(self, message: bytes, request: bytes) -> Sequence[bytes]:
        """Return the writes with the digits of one message's and one request's identifier."""
        return [write.replace(self.message_mark, message).replace(self.request_mark, request) for write in self.writes]
