"""The one place where the provider waits for time to pass. It never measures anything and never waits in the open."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime

POLL_SECONDS = 0.0005


class Clock:
    """Waits that end at once when something else happens.

    Args:
        time_scale: Every wait is divided by this: 20 makes a stall of 10 s last 0.5 s.

    Raises:
        ValueError: The scale is not above 0.
    """

    def __init__(self, time_scale: float = 1.0) -> None:
        if time_scale <= 0:
            raise ValueError(f"time_scale is a number above 0, found {time_scale}")
        self.time_scale = time_scale

    def scripted(self, seconds: float) -> float:
        """Return how many scripted seconds a real time is."""
        return seconds * self.time_scale

    def today(self) -> datetime:
        """Return the real time, which a certificate needs; nothing else here depends on it."""
        return datetime.now(UTC)  # noqa: TID251 - this is the edge at which the provider reads the time

    async def wait(self, seconds: float | None, *until: asyncio.Event) -> None:
        """Wait for a time in scripted seconds, or for ever where it is ``None``, or until one of the events is set."""
        if any(event.is_set() for event in until):
            return
        waiters = [asyncio.ensure_future(event.wait()) for event in until]
        timeout = None if seconds is None else seconds / self.time_scale
        try:
            if waiters:
                await asyncio.wait(waiters, timeout=timeout, return_when=asyncio.FIRST_COMPLETED)
            elif timeout is not None:
                await asyncio.sleep(timeout)
        finally:
            for waiter in waiters:
                waiter.cancel()

    async def poll(self) -> None:
        """Wait a moment before asking the kernel again; real time, because the kernel's is not scaled."""
        await asyncio.sleep(POLL_SECONDS)
