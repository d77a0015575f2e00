"""Holds: keep a client waiting at an exact place, so that someone outside can act while it waits.

A hold only names a place and says when it was reached. It never acts on the client, and it ends by itself when the
client leaves.
"""

from __future__ import annotations

import asyncio
from typing import Literal, TypeAlias, get_args

HoldPosition: TypeAlias = Literal["request.received", "reply.streaming"]

EVENT_DEFAULT = "content_block_delta"


class Hold:
    """A place at which the provider keeps the client waiting, once.

    Args:
        position: ``request.received``: the nth request of the lane has been read completely and nothing is answered.
            ``reply.streaming``: the nth reply of the lane has left up to and including an event, the peer's kernel has
            acknowledged it, and the rest is withheld.
        lane: The lane whose requests or replies are counted; ``None`` counts those of every lane.
        nth: Which request or reply, from 1. A request that is refused, answered with an error status, or never
            answered counts as a request and not as a reply.
        event: The event's name, for ``reply.streaming`` only; the first delta where none is given.
        event_nth: Which event of that name, from 1.

    Raises:
        ValueError: The position is unknown, a number is below 1, or an event is given where none can be.
    """

    def __init__(
        self,
        position: HoldPosition,
        lane: str | None = "main",
        nth: int = 1,
        event: str | None = None,
        event_nth: int = 1,
    ) -> None:
        if position not in get_args(HoldPosition):
            raise ValueError(f"unknown hold position '{position}'. Allowed: {', '.join(get_args(HoldPosition))}")
        if nth < 1 or event_nth < 1:
            raise ValueError(f"a hold counts from 1, found nth={nth}, event_nth={event_nth}")
        if position == "request.received" and event is not None:
            raise ValueError("a hold at request.received has no event: nothing has been sent yet")
        self.position = position
        self.lane = lane
        self.nth = nth
        self.event = event or EVENT_DEFAULT
        self.event_nth = event_nth
        self.reached = asyncio.Event()
        self.released = asyncio.Event()
        self._seen = 0

    def release(self) -> None:
        """Let the client go on; before the place is reached, do not stop there at all."""
        self.released.set()

    def counts(self, lane: str) -> bool:
        """Count one request or reply of a lane, and return whether it is the one to hold."""
        if self.lane is not None and self.lane != lane:
            return False
        self._seen += 1
        return self._seen == self.nth

    @property
    def detail(self) -> str:
        """The place in words."""
        where = self.lane or "any lane"
        if self.position == "request.received":
            return f"request {self.nth} of {where}"
        return f"reply {self.nth} of {where}, after {self.event} number {self.event_nth}"
