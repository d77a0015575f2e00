"""The run: every case and every cell against a real provider, all of them at once, and what was observed."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, nullcontext
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

from fake_provider.document import Node, Place, parse_document
from fake_provider.journal import ConnectionClosed, FaultFired, FaultSkipped, RequestReceived
from fake_provider.script import parse_script
from tests.fake_provider.raw_client import WatchedProvider
from tests.fault_matrix.cases import GOOD, Case
from tests.fault_matrix.clients import Address, Clients, ask, import_clients
from tests.fault_matrix.observation import Cell, Observed

AT_ONCE = 24
STRANGER = "A stranger's words."


class NothingHappenedError(Exception):
    """A fault neither struck nor said why not, or a client fails without one: what was observed says nothing."""


@dataclass(frozen=True)
class Seen:
    """What one cell did in one case; ``skipped`` says why the fault could not strike there, where it could not."""

    case: Case
    cell: Cell
    observed: Observed
    skipped: str | None = None


def lane_of(case: Case, cell: Cell) -> str:
    """The lane of one cell in one case, which is also the model that it asks for."""
    return f"{case.id}.{cell.id}"


@cache
def _steps_of(case: Case, port: int) -> Any:
    return parse_document("".join(f"- {{{step}}}\n" for step in case.steps).replace("PORT", str(port)), case.id).value


def provider_of(lanes: Mapping[str, Any], tls: str | None = None) -> WatchedProvider:
    """A provider with these lanes."""
    listen = {} if tls is None else {"listen": {"tls": tls}}
    return WatchedProvider(parse_script(Node({**listen, "lanes": lanes}, Place("matrix", 1), "")))


def lanes_of(cases: Sequence[Case], cell: Cell, port: int) -> dict[str, Any]:
    """A lane of its own for each case."""
    names = {case: lane_of(case, cell) for case in cases}
    return {name: {"match": {"model": name}, "steps": _steps_of(case, port)} for case, name in names.items()}


async def run_all(cases: Sequence[Case], cells: Sequence[Cell]) -> list[Seen]:
    """Run every case in every cell, case by case in the result."""
    import_clients()
    stranger = provider_of({"main": [{"say": STRANGER, "forever": True}]})
    turns = asyncio.Semaphore(AT_ONCE)
    async with stranger.listening(), Clients().open() as clients:
        columns = await asyncio.gather(*(_run_cell(cases, cell, stranger.port, clients, turns) for cell in cells))
    for seen in (one for column in columns for one in column):
        if seen.case in GOOD and seen.observed.error is not None:
            raise NothingHappenedError(f"{lane_of(seen.case, seen.cell)}: raised {seen.observed.error}, undisturbed")
    return [_with_key(column[index], stranger) for index in range(len(cases)) for column in columns]


async def _run_cell(
    cases: Sequence[Case], cell: Cell, port: int, clients: Clients, turns: asyncio.Semaphore
) -> list[Seen]:
    """Run every case in one cell, most of them against one provider."""
    provider = provider_of(lanes_of([case for case in cases if not case.alone], cell, port))

    async def run(case: Case) -> Seen:
        # Who waits in vain keeps nobody else from working.
        async with nullcontext() if case.in_vain else turns:
            if not case.alone:
                return await run_one(provider, clients, case, cell)
            async with _own_provider(case, cell) as own:
                return await run_one(own, clients, case, cell)

    async with provider.listening():
        return await asyncio.gather(*(run(case) for case in cases))


@asynccontextmanager
async def _own_provider(case: Case, cell: Cell) -> AsyncIterator[WatchedProvider]:
    provider = provider_of(lanes_of([case], cell, 9), case.tls)
    async with provider.listening():
        yield provider


async def run_one(provider: WatchedProvider, clients: Clients, case: Case, cell: Cell) -> Seen:
    """Run one case in one cell."""
    trust: ssl.SSLContext | bool = False
    if provider.authority_pem is not None:
        trust = ssl.create_default_context(cadata=provider.authority_pem.decode("ascii"))
    keeps = case.requests > 1 and not case.alone
    address = Address(provider.url, case.timeout_seconds, trust, keeps)
    lane = lane_of(case, cell)
    async with clients.lent(cell.client, address) as client:
        for number in range(case.requests):
            if number and case.first and not case.alone:
                await _closed(provider, lane)
            observed = await ask(client, cell, lane)
    return Seen(case, cell, observed, _skipped(provider, case, lane))


async def _closed(provider: WatchedProvider, lane: str) -> None:
    """Wait until the connection of the lane's first request is gone, where the fault has struck."""
    [first, *_] = [entry for entry in provider.journal.of(RequestReceived) if entry.lane == lane]
    if any(entry.request == first.request for entry in provider.journal.of(FaultSkipped)):
        return
    count = 0
    while not any(entry.connection == first.connection for entry in provider.journal.of(ConnectionClosed)):
        await provider.seen(ConnectionClosed, count)
        count = len(provider.journal.of(ConnectionClosed)) + 1


def _skipped(provider: WatchedProvider, case: Case, lane: str) -> str | None:
    if not case.fault:
        return None
    numbers = {entry.request for entry in provider.journal.of(RequestReceived) if entry.lane == lane}
    if any(entry.request in numbers for entry in provider.journal.of(FaultFired)):
        return None
    for entry in provider.journal.of(FaultSkipped):
        if entry.request in numbers:
            return entry.reason
    raise NothingHappenedError(f"{lane}: the fault neither fired nor was skipped")


def _with_key(seen: Seen, stranger: WatchedProvider) -> Seen:
    """Note whether the key of this cell came to the stranger's address."""
    lane = lane_of(seen.case, seen.cell)
    for entry in stranger.journal.of(RequestReceived):
        if entry.model == lane and {"x-api-key", "authorization", "x-goog-api-key"} & entry.headers.keys():
            return replace(seen, observed=replace(seen.observed, key_went_elsewhere=True))
    return seen
