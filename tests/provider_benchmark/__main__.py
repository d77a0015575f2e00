"""Measures everything in one run and writes the page: ``make bench-provider``.

All servers are up at once and are measured one after the other in several rounds, so that a slow moment of the machine
meets each of them; a cell is the median of its rounds.
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import sys
import tempfile
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from itertools import product
from pathlib import Path

from tests.provider_benchmark import page, stalled
from tests.provider_benchmark.exchange import DIFFERING, QUESTIONS, Question
from tests.provider_benchmark.load import LoadError, Measured, with_asyncio, with_wrk
from tests.provider_benchmark.page import Cell, Memory, Results
from tests.provider_benchmark.servers import Running, Server, running, servers

CONNECTIONS = (1, 64)
ROUNDS = 5
ASYNCIO_ROUNDS = 3
STARTS = 5
SOAK_REQUESTS = 1_000_000
SOAK_SECONDS = 5

Load = Callable[[Running, Question, int], Measured]


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, write the page, and return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.provider_benchmark")
    parser.add_argument("--aimock", type=Path, required=True, help="aimock's command line program, a JavaScript file")
    parser.add_argument("--output", type=Path, required=True, help="the page to write")
    parser.add_argument("--seconds", type=int, default=1, help="how long one round of one cell lasts")
    parser.add_argument("--soak", type=int, default=SOAK_REQUESTS, help="requests of the memory measurement")
    options = parser.parse_args(arguments)
    try:
        with tempfile.TemporaryDirectory(prefix="crashcart-bench-") as name:
            results = _measured(Path(name), options.aimock, options.seconds, options.soak)
    except LoadError as error:
        print(f"bench-provider: {error}", file=sys.stderr)
        return 2
    options.output.write_text(page.rendered(results))
    print(page.table(results.cells))
    print(f"wrote {options.output}")
    return 0


def _measured(folder: Path, aimock: Path, seconds: int, soak: int) -> Results:
    chosen = servers(folder, aimock)
    starts = {server.name: _start_seconds(server) for server in chosen if not server.only_streams}
    with ExitStack() as stack:
        up = [stack.enter_context(running(server)) for server in chosen]

        def wrk(server: Running, question: Question, connections: int) -> Measured:
            return with_wrk(server, question, connections, seconds, folder)

        def ours(server: Running, question: Question, connections: int) -> Measured:
            return asyncio.run(with_asyncio(server, question, connections, seconds))

        cells = {
            "wrk": [*_cells(up, wrk, ROUNDS, QUESTIONS, CONNECTIONS), *_cells(up, wrk, ROUNDS, (DIFFERING,), (64,))],
            "asyncio": _cells(up, ours, ASYNCIO_ROUNDS, QUESTIONS, CONNECTIONS),
        }
        memory = [_soaked(server, soak, folder) for server in up if not server.server.only_streams]
    script = folder / "stalled.yaml"
    script.write_text(stalled.SCRIPT)
    command = (sys.executable, "-m", "tests.provider_benchmark.provider_server", str(script))
    with running(Server("stalled", command)) as server:
        streams = asyncio.run(stalled.stalled(server))
    return Results(cells, starts, memory, streams, seconds)


def _start_seconds(server: Server) -> float:
    times = []
    for _ in range(STARTS):
        with running(server) as started:
            times.append(started.start_seconds)
    return statistics.median(times)


def _cells(
    up: Sequence[Running], load: Load, rounds: int, questions: Sequence[Question], connections: Sequence[int]
) -> Sequence[Cell]:
    found: Mapping[tuple[str, str, int], list[Measured]] = defaultdict(list)
    for _ in range(rounds):
        for question, count in product(questions, connections):
            for server in up:
                if question.stream or not server.server.only_streams:
                    measured = load(server, question, count)
                    found[server.server.name, question.name, count].append(measured)
    return [Cell(*key, _median(measured)) for key, measured in found.items()]


def _median(measured: Sequence[Measured]) -> Measured:
    return Measured(
        rate=statistics.median(one.rate for one in measured),
        p50_ms=statistics.median(one.p50_ms for one in measured),
        p99_ms=statistics.median(one.p99_ms for one in measured),
        cpu_us=statistics.median(one.cpu_us for one in measured),
    )


def _soaked(server: Running, requests: int, folder: Path) -> Memory:
    """Send streamed requests over 64 connections until so many are answered, and watch the memory.

    Only the provider is asked for all of them; the others, which are slower, for a few rounds.
    """
    question = QUESTIONS[1]
    full = server.server.name == "crashcart"
    sizes = [server.memory_mib()]
    answered = 0
    while answered < requests:
        measured = with_wrk(server, question, 64, SOAK_SECONDS, folder)
        answered += int(measured.rate * SOAK_SECONDS)
        sizes.append(server.memory_mib())
        if not full and len(sizes) > 4:
            break
    middle = sizes[len(sizes) // 2]
    return Memory(server.server.name, answered, sizes[0], middle, sizes[-1])


if __name__ == "__main__":
    sys.exit(main())
