"""Runs many cells at once, each in a thread with an event loop of its own, and ends them all when one cannot go on.

It shows nothing and judges nothing; whoever wants to see the results is told of each as it comes.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass

from harness.model.result import ProbeResult
from harness.probe import Probe, Session
from harness.runtimes.register import RuntimeChoice

Tell = Callable[[Sequence[ProbeResult]], None]
"""Called with all results so far, the newest last, whenever there is a new one."""


@dataclass(frozen=True)
class Cell:
    """One probe to run on one runtime."""

    probe: Probe
    choice: RuntimeChoice


def run_cells(session: Session, cells: Sequence[Cell], jobs: int, tell: Tell) -> list[ProbeResult]:
    """Run cells, several at once, and return their results in the order of the cells.

    Raises:
        KeyboardInterrupt: The command was interrupted; every drive has ended what it started.
        Exception: What one cell could not go on from; the others were ended first.
    """
    results: list[ProbeResult] = []
    with ThreadPoolExecutor(max_workers=jobs) as pool:
        waiting: set[Future[ProbeResult]] = {pool.submit(session.run, cell.probe, cell.choice) for cell in cells}
        try:
            while waiting:
                done, waiting = wait(waiting, return_when=FIRST_COMPLETED)
                for future in done:
                    results.append(future.result())
                    tell(results)
        except (KeyboardInterrupt, asyncio.CancelledError):
            session.cancellation.cancel_all()
            raise KeyboardInterrupt from None
        except BaseException:
            session.cancellation.cancel_all()
            raise
        finally:
            for future in waiting:
                future.cancel()
    order = {(cell.probe.id, str(cell.choice)): number for number, cell in enumerate(cells)}
    return sorted(results, key=lambda result: order[result.probe, result.runtime])
