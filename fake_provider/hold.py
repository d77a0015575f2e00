"""Holds: keep a client waiting at an exact place, so that someone outside can act while it waits.

A hold only names a place and says when it was reached. It never acts on the client, and it ends by itself when the
client leaves.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Literal, TypeAlias, get_args

HoldPosition: TypeAlias = Literal["request.received", "reply.streaming"]

EVENT_DEFAULT = "content"


class Hold:
    """A place at which the provider keeps the client waiting, once.

    Args:
        position: ``request.received``: the nth request of the lane has been read completely and nothing is answered.
            ``reply.streaming``: the nth reply of the lane has left up to and including an event, the peer's kernel has
            acknowledged it, and the rest is withheld.
        lane: The lane whose requests or replies are counted; ``None`` counts those of every lane.
        nth: Which request or reply, from 1. A request that is refused, answered with an error status, or never
            answered counts as a request and not as a reply.
        event: The event's name in its dialect or a word of ``wire.PLACES``, for ``reply.streaming`` only; the first
            content where none is given.
        event_nth: Which event of that name, from 1.
        name: What a script's ``hold`` step is released by; nothing for a hold that somebody made by hand.

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
        name: str | None = None,
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
        self.name = name
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
        if self.name is not None:
            place = "" if self.position == "request.received" else f", after {self.event} number {self.event_nth}"
            return f"hold '{self.name}'{place}"
        where = self.lane or "any lane"
        if self.position == "request.received":
            return f"request {self.nth} of {where}"
        return f"reply {self.nth} of {where}, after {self.event} number {self.event_nth}"


class NamedHolds:
    """The clients that a script's ``hold`` steps keep waiting, by the name in the step.

    A name may stand in several steps and in a step that is repeated: each client that reaches it waits until the name
    is released after it came.
    """

    def __init__(self) -> None:
        self._waiting: dict[str, list[Hold]] = {}
        self._arrived = asyncio.Event()

    def arrive(self, hold: Hold) -> None:
        """A client has come to a hold and waits."""
        self._waiting.setdefault(hold.name or "", []).append(hold)
        self._arrived.set()

    def leave(self, hold: Hold) -> None:
        """A client waits no more, because it was released or because it is gone."""
        holds = self._waiting.get(hold.name or "", [])
        if hold in holds:
            holds.remove(hold)

    def release(self, name: str) -> int:
        """Let every client go on that waits at a name now, and return how many that were."""
        holds = self._waiting.pop(name, [])
        for hold in holds:
            hold.release()
        return len(holds)

    @property
    def waiting(self) -> Mapping[str, int]:
        """How many clients wait at each name."""
        return {name: len(holds) for name, holds in self._waiting.items() if holds}

    async def reached(self, name: str) -> None:
        """Wait until a client waits at a name."""
        while not self._waiting.get(name):
            self._arrived.clear()
            await self._arrived.wait()
