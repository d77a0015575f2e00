"""The page of results: the method in words, the tables from one run. Pure text; it measures nothing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from tests.provider_benchmark.load import Measured
from tests.provider_benchmark.servers import AIMOCK_VERSION
from tests.provider_benchmark.stalled import STREAMS, Stalled


@dataclass(frozen=True)
class Cell:
    """The median of one server's rounds with one kind of request over so many connections."""

    server: str
    question: str
    connections: int
    measured: Measured


@dataclass(frozen=True)
class Memory:
    """Resident memory in MiB before, halfway through and after so many requests."""

    server: str
    requests: int
    before_mib: float
    middle_mib: float
    after_mib: float


@dataclass(frozen=True)
class Results:
    """Everything of one run; ``cells`` by load generator, ``start_seconds`` by server."""

    cells: Mapping[str, Sequence[Cell]]
    start_seconds: Mapping[str, float]
    memory: Sequence[Memory]
    stalled: Stalled
    round_seconds: float


BASELINE = "aiohttp, an event a write"

_METHOD = f"""\
# How fast the provider is

`make bench-provider` measured all of this in one run on one machine and wrote this page. Times on another machine
differ; the ratios are what to read.

Method. Every server gives the same reply: a text of 224 characters, as one JSON body or as 20 events, encoded before
the first request. *crashcart* is the provider with a script of one step that answers for ever, its journal keeping the
newest 10,000 entries; `flush: event` makes it hand over each event by itself. *aiohttp* is a bare server that reads the
request's JSON and writes the same bytes. *aimock* is npm's `@copilotkit/aimock` {AIMOCK_VERSION} with one fixture. All
are up at once, each in a process of its own, and take turns in rounds; a cell is the median of its rounds. The rate is
in requests a second; *ratio* is the rate over that of `{BASELINE}` in the same cell; *CPU* is the server's processor
time a request, which a busy neighbour changes least.

The requests of a cell are all equal, and the provider parses and judges equal bytes once (`fake_provider/recall.py`);
in the last cells of wrk's table no two are, and each is judged by all of its dialect's rules, which the other servers
have none of. Nothing else may lie between: a reply with a fault, a hold or an expectation takes the long way, as does
each tool call, because it needs an identifier of its own.
"""


def rendered(results: Results) -> str:
    """Return the page."""
    parts = [_METHOD]
    titles = {
        "wrk": "## wrk, one thread",
        "asyncio": "## A client in asyncio\n\nIt costs more than the provider does, so rates are mostly its own.",
    }
    for generator, cells in results.cells.items():
        parts.append(f"{titles[generator]}\n\n{_table(cells)}")
    starts = "\n".join(f"| {name} | {seconds:.2f} |" for name, seconds in results.start_seconds.items())
    parts.append(f"## Start, from the command to the first reply\n\n| server | seconds |\n|---|---:|\n{starts}")
    memory = "\n".join(
        f"| {one.server} | {one.requests:,} | {one.before_mib:.1f} | {one.middle_mib:.1f} | {one.after_mib:.1f} |"
        for one in results.memory
    )
    parts.append(
        "## Memory, in MiB\n\nAfter the rounds above, more streamed requests over 64 connections.\n\n"
        f"| server | requests | before | halfway | after |\n|---|---:|---:|---:|---:|\n{memory}"
    )
    seen = results.stalled
    parts.append(
        f"## {STREAMS:,} streams that stall in their middle\n\n"
        f"{seen.open_at_once:,} stood still at once and all of them were read to their end, {seen.seconds:.1f} s after "
        f"the first was opened; each cost {seen.stream_kib:.1f} KiB of the provider's memory."
    )
    return "\n\n".join(parts) + "\n"


def table(cells: Mapping[str, Sequence[Cell]]) -> str:
    """Return the tables alone, for a terminal."""
    return "\n\n".join(f"{name}\n{_table(found)}" for name, found in cells.items())


def _table(cells: Sequence[Cell]) -> str:
    return "\n".join(_lines(cells))


def _lines(cells: Sequence[Cell]) -> Iterator[str]:
    yield "| reply | connections | server | requests/s | ratio | p50 ms | p99 ms | CPU µs |"
    yield "|---|---:|---|---:|---:|---:|---:|---:|"
    baselines = {(cell.question, cell.connections): cell.measured for cell in cells if cell.server == BASELINE}
    for cell in cells:
        measured = cell.measured
        ratio = measured.rate / baselines[cell.question, cell.connections].rate
        yield (
            f"| {cell.question} | {cell.connections} | {cell.server} | {measured.rate:,.0f} | {ratio:.1f} "
            f"| {measured.p50_ms:.2f} | {measured.p99_ms:.2f} | {measured.cpu_us:.0f} |"
        )
