"""How a command shows its results while they come: a live table, plain lines in order, or JSON lines.

Each is a context manager that is called with all results so far. It prints results and nothing else; what is not green
is told in full afterwards.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import msgspec
from rich.console import Console
from rich.live import Live
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from harness.model.result import ProbeResult
from reports import table

Show = Callable[[Sequence[ProbeResult]], None]
CellName = tuple[str, str]
"""A probe's id and a runtime as chosen on the command line."""


@contextmanager
def shown(console: Console, cells: Sequence[CellName], *, as_json: bool) -> Iterator[Show]:
    """Choose how to show: JSON lines when asked for, a live table on a terminal, plain lines otherwise."""
    if as_json:
        yield lambda results: print(json_line(results[-1]), flush=True)
    elif not console.is_terminal:
        yield lines_in_order(console, cells)
    else:
        with live_table(console, cells) as show:
            yield show


@contextmanager
def live_table(console: Console, cells: Sequence[CellName]) -> Iterator[Show]:
    """Show a table that fills, with a progress bar below it until it is full."""
    probes = list(dict.fromkeys(probe for probe, _ in cells))
    runtimes = list(dict.fromkeys(runtime for _, runtime in cells))
    progress = Progress(TextColumn("running"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), console=console)
    task = progress.add_task("running", total=len(cells))
    with Live(table.with_progress((), probes, runtimes, progress), console=console) as live:

        def show(results: Sequence[ProbeResult]) -> None:
            progress.update(task, completed=len(results))
            whole = len(results) == len(cells)
            live.update(
                table.table(results, probes, runtimes)
                if whole
                else table.with_progress(results, probes, runtimes, progress)
            )

        yield show


def lines_in_order(console: Console, cells: Sequence[CellName]) -> Show:
    """Print each line as soon as all lines before it are printed, so that two runs print the same rows."""
    waiting = list(cells)

    def show(results: Sequence[ProbeResult]) -> None:
        found = {(result.probe, result.runtime): result for result in results}
        while waiting and waiting[0] in found:
            console.print(table.line(found[waiting.pop(0)]), soft_wrap=True)

    return show


def json_line(result: ProbeResult) -> str:
    """Return a result as one JSON object: the cell and the names of its stored runs."""
    return msgspec.json.encode(
        {
            "probe": result.probe,
            "runtime": result.runtime,
            "version": result.evidences[0].target.version if result.evidences else None,
            "outcome": result.outcome,
            "behaviour": result.behaviour,
            "known_deviation": result.deviation is not None,
            "as_expected": result.as_expected is None,
            "unmet": [check.check for check in result.unmet],
            "duration_seconds": round(result.duration_seconds, 3),
            "runs": [evidence.run for evidence in result.evidences],
            "reproduce": [evidence.reproduce for evidence in result.evidences],
        }
    ).decode()
