"""Memory of requests seen before, so that the same bytes are parsed and judged once. It never changes an answer.

Clients repeat the head of a request on one connection nearly always, and load generators the whole of it. What is
remembered is bounded by bytes, and all of it is forgotten at once when the bound is reached: that keeps the common
case, one hot request, free of bookkeeping.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Generic, TypeVar

from fake_provider.inbound import Parsed

REQUEST_BYTES_MAX = 64 * 1024
TOTAL_BYTES_MAX = 2 * 1024 * 1024

_HEAD_END = b"\r\n\r\n"

MeaningT = TypeVar("MeaningT")


@dataclass(frozen=True, slots=True)
class _Head:
    """A head seen before; ``body_bytes`` is its content-length."""

    parsed: Parsed
    body_bytes: int


class Recall(Generic[MeaningT]):
    """What the bytes of whole requests meant.

    Args:
        understand: Called once for each request that is not remembered; must depend on nothing but its argument.
        total_bytes_max: How many bytes of requests are remembered at most.
    """

    def __init__(self, understand: Callable[[Parsed], MeaningT], total_bytes_max: int = TOTAL_BYTES_MAX) -> None:
        self._understand = understand
        self._total_bytes_max = total_bytes_max
        self._bytes = 0
        self._wholes: dict[bytes, MeaningT] = {}
        self._heads: dict[bytes, _Head] = {}

    @property
    def size_bytes(self) -> int:
        """How many bytes of requests are remembered, counting a body's request twice for what it was decoded to."""
        return self._bytes

    def find(self, data: bytes) -> MeaningT | None:
        """Return what these bytes mean, if they are exactly one request whose head was seen before."""
        known = self._wholes.get(data)
        if known is not None:
            return known
        head_end = data.find(_HEAD_END)
        if head_end < 0 or not self._heads:
            return None
        head = self._heads.get(data[: head_end + 4])
        if head is None or len(data) - head_end - 4 != head.body_bytes:
            return None
        received = replace(head.parsed.received, body=data[head_end + 4 :])
        meaning = self._understand(replace(head.parsed, received=received))
        self._remember(data, meaning)
        return meaning

    def keep(self, data: bytes, parsed: Parsed, meaning: MeaningT) -> None:
        """Remember a request; ``data`` is all of its bytes and nothing more."""
        if len(data) > REQUEST_BYTES_MAX:
            return
        self._remember(data, meaning)
        headers = parsed.received.headers
        if "transfer-encoding" not in headers and "expect" not in headers:
            head_end = data.find(_HEAD_END) + 4
            if len(data) - head_end == len(parsed.received.body):
                self._heads[data[:head_end]] = _Head(parsed, len(data) - head_end)

    def _remember(self, data: bytes, meaning: MeaningT) -> None:
        if len(data) > REQUEST_BYTES_MAX:
            return
        self._bytes += 2 * len(data)
        if self._bytes > self._total_bytes_max:
            self._wholes.clear()
            self._heads.clear()
            self._bytes = 2 * len(data)
        self._wholes[data] = meaning
