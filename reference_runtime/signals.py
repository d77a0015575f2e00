"""SIGINT and SIGTERM as an abort of the run: the first one cancels the agent's task, later ones change nothing.

It never ends the process; the command line does that once the abort is recorded and reported.
"""

import asyncio
import signal
from typing import Any

from reference_runtime.recovery.terminals import Signal

_SIGNALS = {signal.SIGINT: Signal.INTERRUPT, signal.SIGTERM: Signal.TERMINATE}


class SignalAbort:
    """Watches for signals while a task runs; `signal` tells which one came first."""

    def __init__(self) -> None:
        self.signal = Signal.NONE

    async def run(self, task: asyncio.Task[Any]) -> None:
        """Wait for the task, cancelling it at the first signal; returns when it is done, however it ended."""
        loop = asyncio.get_running_loop()
        for number in _SIGNALS:
            loop.add_signal_handler(number, self._on, number, task)
        try:
            await asyncio.wait([task])
        finally:
            for number in _SIGNALS:
                loop.remove_signal_handler(number)
                # What is left to do is bounded; a late signal must not cut it short with a child process alive.
                signal.signal(number, signal.SIG_IGN)

    def _on(self, number: signal.Signals, task: asyncio.Task[Any]) -> None:
        if self.signal is Signal.NONE:
            self.signal = _SIGNALS[number]
            task.cancel()
