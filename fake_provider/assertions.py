"""What a test asks of a journal: attempts, gaps, models, statuses, pairing, refusals, faults; and a table of it all.

Pure functions of entries, usable without any test runner. Where nothing else is said, a result is in the order in which
the requests arrived, and ``lane`` narrows it to the requests of one lane; side requests are never counted.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import pairwise, takewhile
from typing import TypeVar

from fake_provider.dialects import DIALECTS, RefusedRequestError
from fake_provider.journal import (
    AnyEntry,
    Entry,
    FaultFired,
    FaultSkipped,
    HoldSkipped,
    ReplyEnded,
    ReplyStarted,
    RequestMismatch,
    RequestReceived,
    RequestRefused,
    UnexpectedRequest,
)
from fake_provider.replies import ToolUse
from fake_provider.request_rows import RequestRows, Row
from fake_provider.requests import ModelRequest, Received, ToolResult
from fake_provider.script import Script
from fake_provider.steps import endless, in_order

ROUNDS_COUNTED_MAX = 1000

Entries = Sequence[AnyEntry]
EntryT = TypeVar("EntryT", bound=Entry)


def attempts(entries: Entries, lane: str | None = None) -> tuple[RequestReceived, ...]:
    """Return the requests for the model."""
    return tuple(
        entry
        for entry in entries
        if isinstance(entry, RequestReceived) and not entry.side and (lane is None or entry.lane == lane)
    )


def models(entries: Entries, lane: str | None = None) -> tuple[str | None, ...]:
    """Return the model that each attempt asked for; nothing for one that could not be decoded."""
    return tuple(attempt.model for attempt in attempts(entries, lane))


def statuses(entries: Entries, lane: str | None = None) -> tuple[int | None, ...]:
    """Return the status that answered each attempt; nothing where no byte was sent.

    It is the start of the reply that is asked for: that is in the journal before the client can see anything, and its
    end only after the client may have gone on.
    """
    started = {entry.request: entry.status for entry in _of(entries, ReplyStarted)}
    return tuple(started.get(attempt.request) for attempt in attempts(entries, lane))


def gaps(entries: Entries, lane: str | None = None, time_scale: float = 1.0) -> tuple[float, ...]:
    """Return how long the client waited before each attempt but the first, in scripted seconds.

    The wait begins when the answer to the attempt before is over, and is 0 where two attempts overlap.
    """
    ended = {entry.request: entry.at_seconds for entry in _of(entries, ReplyEnded)}
    made = attempts(entries, lane)
    return tuple(
        max(0.0, following.at_seconds - ended.get(before.request, following.at_seconds)) * time_scale
        for before, following in pairwise(made)
    )


def refusals(entries: Entries, lane: str | None = None) -> tuple[str, ...]:
    """Return the first problem of each attempt that was refused because the real API would refuse it."""
    asked = {attempt.request for attempt in attempts(entries, lane)}
    return tuple(entry.problems[0] for entry in _of(entries, RequestRefused) if entry.request in asked)


def faults(entries: Entries, lane: str | None = None) -> tuple[str, ...]:
    """Return the kind of each fault that struck."""
    asked = {attempt.request for attempt in attempts(entries, lane)}
    return tuple(entry.kind for entry in _of(entries, FaultFired) if entry.request in asked)


def pairing(entries: Entries, lane: str | None = None) -> tuple[str, ...]:
    """Return one sentence for each tool call without a result and each result without a call, request by request.

    A request whose body could not be decoded is left out: ``refusals`` says what is wrong with it.
    """
    return tuple(sentence for attempt in attempts(entries, lane) for sentence in _unpaired(attempt))


def unexpected(entries: Entries) -> tuple[str, ...]:
    """Return one sentence for each request that the script has no answer for, or that its step did not expect."""
    found = []
    for entry in entries:
        if isinstance(entry, UnexpectedRequest):
            found.append(f"request {entry.request} was unexpected: {entry.reason}")
        elif isinstance(entry, RequestMismatch):
            found.append(f"request {entry.request} is not as '{entry.step}' expects: {'; '.join(entry.differences)}")
    return tuple(found)


def skipped(entries: Entries) -> tuple[str, ...]:
    """Return one sentence for each fault that did not strike and each hold that kept nobody."""
    found = []
    for entry in entries:
        if isinstance(entry, FaultSkipped):
            found.append(f"fault '{entry.kind}' of request {entry.request} did not strike: {entry.reason}")
        elif isinstance(entry, HoldSkipped):
            found.append(f"the hold of request {entry.request} kept nobody: {entry.reason}")
    return tuple(found)


def unreached(entries: Entries, script: Script) -> tuple[str, ...]:
    """Return one sentence for each lane whose script has more faults than requests came for.

    Steps that go on for ever are not counted: nobody can be expected to reach their end.
    """
    lanes = {attempt.request: attempt.lane for attempt in attempts(entries)}
    met = Counter(lanes.get(entry.request) for entry in entries if isinstance(entry, FaultFired | FaultSkipped))
    found = []
    for lane in script.lanes:
        finite = list(takewhile(lambda entry: not endless(entry), lane.steps))
        kinds = [step.fault.kind for step in in_order(finite, ROUNDS_COUNTED_MAX) if step.fault is not None]
        missing = kinds[met[lane.name] :]
        if missing:
            found.append(f"lane '{lane.name}': no request came for {len(missing)} faults: {', '.join(missing)}")
    return tuple(found)


def table(entries: Entries) -> str:
    """Return the requests as a table in plain text, one line each, for a failure's message."""
    rows = RequestRows()
    for entry in entries:
        rows(entry)
    lines: list[tuple[str, ...]] = [("#", "dialect", "lane: step", "model", "status", "what happened")]
    lines += [_cells(row) for row in rows.newest(len(entries))]
    widths = [max(len(line[index]) for line in lines) for index in range(len(lines[0]))]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip() for line in lines
    )


def _cells(row: Row) -> tuple[str, ...]:
    waiting = [f"waits at {row.waiting}"] if row.waiting is not None else []
    happened = "; ".join([*waiting, *row.remarks])
    return (str(row.request), row.dialect, row.who, row.model, row.shown_status, happened)


def _of(entries: Entries, kind: type[EntryT]) -> Iterator[EntryT]:
    return (entry for entry in entries if isinstance(entry, kind))


def _unpaired(attempt: RequestReceived) -> Iterator[str]:
    request = decoded(attempt)
    if request is None:
        return
    calls = [block for message in request.messages for block in message.blocks if isinstance(block, ToolUse)]
    results = [block for message in request.messages for block in message.blocks if isinstance(block, ToolResult)]
    answered = {result.tool_use_id for result in results}
    called = {call.id for call in calls}
    for call in calls:
        if call.id not in answered:
            yield f"request {attempt.request}: call {call.id} of {call.name} has no result"
    for result in results:
        if result.tool_use_id not in called:
            yield f"request {attempt.request}: a result answers {result.tool_use_id}, and there is no such call"


def decoded(attempt: RequestReceived) -> ModelRequest | None:
    """Return an attempt as its dialect understands it, or nothing where it cannot be decoded."""
    if attempt.dialect is None:
        return None
    body = json.dumps(attempt.body).encode()
    received = Received(attempt.method, attempt.path, attempt.query, attempt.headers, body)
    try:
        return DIALECTS[attempt.dialect].decode(received)
    except RefusedRequestError:
        return None
