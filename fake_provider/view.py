"""The live view: a table of the requests that run and ran last, and where each lane stands.

It is redrawn when something happened. It shows rows that others gather and never decides anything. Rows are one line
each at any width: a narrow terminal gets fewer columns, and a long text ends in an ellipsis.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from fake_provider.clock import Clock
from fake_provider.playback import LaneState
from fake_provider.request_rows import RequestRows, Row

REDRAW_SECONDS = 0.1


@dataclass(frozen=True, slots=True)
class Column:
    """A column of the table.

    Attributes:
        title: Its heading.
        width_min: It is shown from this width of the terminal on, in characters.
        value: What it shows of a row.
        share: How much of what is left it takes; nothing for as much as its text needs.
        justify: How its text is set.
    """

    title: str
    width_min: int
    value: Callable[[Row], str]
    share: int | None = None
    justify: Literal["left", "right"] = "left"


def sent(row: Row) -> str:
    """Return how much was sent, once that is known."""
    if not row.over:
        return ""
    size = f"{row.size_bytes} B" if row.size_bytes < 10_000 else f"{row.size_bytes // 1000} kB"
    return f"{row.events} ev {size}" if row.events else size


def what_happened(row: Row) -> str:
    """Return what is unusual about a request."""
    waiting = [f"waits at {row.waiting}"] if row.waiting is not None else []
    return "; ".join([*waiting, *row.remarks])


COLUMNS: tuple[Column, ...] = (
    Column("#", 0, lambda row: str(row.request), justify="right"),
    Column("conn", 100, lambda row: str(row.connection), justify="right"),
    Column("client", 80, lambda row: row.client, share=2),
    Column("dialect", 100, lambda row: row.dialect, share=2),
    Column("lane: step", 0, lambda row: row.who, share=3),
    Column("model", 110, lambda row: row.model, share=2),
    Column("stream", 110, lambda row: "yes" if row.stream else "no"),
    Column("status", 0, lambda row: row.shown_status),
    Column("sent", 70, sent, justify="right"),
    Column("what happened", 0, what_happened, share=4),
)


def style_of(row: Row) -> str:
    """Return the style of a row: what waits, what went wrong and what still runs stand out."""
    if row.waiting is not None:
        return "yellow"
    if not row.over:
        return "bold"
    return "red" if row.remarks or row.status is None or row.status >= 400 else ""


def table(rows: Sequence[Row], width: int) -> Table:
    """Return the table of some rows for a terminal of a width, in characters."""
    columns = [column for column in COLUMNS if width >= column.width_min]
    made = Table(box=None, expand=True, padding=(0, 1), pad_edge=False, width=width)
    for column in columns:
        made.add_column(
            column.title,
            ratio=column.share,
            justify=column.justify,
            no_wrap=True,
            overflow="ellipsis",
            min_width=len(column.title) if column.share is None else None,
        )
    for row in rows:
        made.add_row(*(Text(column.value(row)) for column in columns), style=style_of(row))
    return made


def lane_words(state: LaneState) -> str:
    """Return where a lane stands."""
    if state.label is None:
        return f"{state.lane}: used up after {state.answered}"
    return f"{state.lane}: {state.step}/{state.steps} next '{state.label}', {state.answered} answered"


def screen(rows: RequestRows, lanes: Sequence[LaneState], width: int, height: int) -> Group:
    """Return everything that is shown, for a terminal of a width in characters and a height in lines."""
    below = [rows.summary(), *([rows.last_remark] if rows.last_remark else [])]
    space = max(1, height - 3 - len(below) - len(lanes))
    lines = [*(lane_words(state) for state in lanes), *below]
    texts = [Text(line, style="dim", no_wrap=True, overflow="ellipsis") for line in lines]
    return Group(table(rows.newest(space), width), Text(""), *texts)


class View:
    """The live view on a console, from a provider's start to its end.

    Args:
        rows: What is shown.
        lanes: Asked for where the lanes stand, each time it is drawn.
        console: Where it is drawn.
    """

    def __init__(self, rows: RequestRows, lanes: Callable[[], Sequence[LaneState]], console: Console) -> None:
        self._rows = rows
        self._lanes = lanes
        self._console = console
        self._changed = asyncio.Event()
        self._clock = Clock()

    def changed(self) -> None:
        """Note that something happened; it is drawn soon."""
        self._changed.set()

    async def run(self) -> None:
        """Draw until cancelled, and leave the last state on the screen."""
        with Live(self._drawn(), console=self._console, auto_refresh=False) as live:
            try:
                while True:
                    await self._changed.wait()
                    self._changed.clear()
                    live.update(self._drawn(), refresh=True)
                    await self._clock.wait(REDRAW_SECONDS)
            finally:
                live.update(self._drawn(), refresh=True)

    def _drawn(self) -> Group:
        size = self._console.size
        return screen(self._rows, self._lanes(), size.width, size.height)
