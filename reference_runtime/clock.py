"""The one clock of the program: every wait goes through it and is divided by the time scale.

Delays that are reported stay unscaled. It never decides how long to wait.
"""

import asyncio
import time
from dataclasses import dataclass
from datetime import UTC, datetime

REAL_WORK_FLOOR_SECONDS = 10.0


@dataclass(frozen=True)
class Clock:
    """Waits divided by `scale`; a scale of 1 is real time."""

    scale: float = 1.0

    async def sleep(self, seconds: float) -> None:
        """Wait; `seconds` is unscaled."""
        await asyncio.sleep(seconds / self.scale)

    def limit(self, seconds: float) -> float:
        """The real seconds to give a wait on the provider; `seconds` is unscaled."""
        return seconds / self.scale

    def limit_for_work(self, seconds: float) -> float:
        """The real seconds to give a process that does real work (a tool, a hook); `seconds` is unscaled.

        A process does not become faster because the clock is scaled, so the limit never shrinks below 10 s by scaling.
        """
        return min(seconds, max(seconds / self.scale, REAL_WORK_FLOOR_SECONDS))

    def monotonic_seconds(self) -> float:
        """Unscaled seconds of a monotonic clock, for durations only."""
        return time.monotonic()

    def now(self) -> datetime:
        """The present time, aware, in UTC."""
        return datetime.now(UTC)  # noqa: TID251 - this is the edge at which the program reads the time
