"""The live view: what it shows of each thing that can happen, one line a request at any width."""

from __future__ import annotations

from io import StringIO

import pytest
from rich.console import Console

from fake_provider.journal import (
    AnyEntry,
    ClientLeft,
    ConnectionsRefused,
    ConnectionsTaken,
    FaultFired,
    FaultSkipped,
    GarbageReceived,
    HandshakeFailed,
    HoldReached,
    HoldReleased,
    HoldSkipped,
    ReplyEnded,
    ReplyStarted,
    RequestMismatch,
    RequestReceived,
    RequestRefused,
    UnexpectedRequest,
)
from fake_provider.playback import LaneState
from fake_provider.request_rows import RequestRows, Row
from fake_provider.view import lane_words, screen

LONG = "a very long sentence that no terminal of a usual width has room for in a single column of a table, ever"


def received(request: int, lane: str | None = "main", step: str | None = "say") -> RequestReceived:
    return RequestReceived(
        at_seconds=0,
        request=request,
        connection=7,
        lane=lane,
        step=step,
        method="POST",
        path="/v1/messages",
        headers={"user-agent": "claude-cli/2.1.235 (external, cli)"},
        body={},
        model="claude-sonnet-4-5-20250929",
        stream=True,
        side=False,
        dialect="anthropic_messages",
    )


def ended(request: int, status: int | None = 200, size: int = 900) -> ReplyEnded:
    return ReplyEnded(at_seconds=1, request=request, status=status, frames={"a": 3, "b": 4}, bytes=size, complete=True)


ENTRIES: tuple[AnyEntry, ...] = (
    received(1),
    ReplyStarted(at_seconds=0, request=1, status=200),
    FaultFired(at_seconds=0, request=1, kind="cut", detail=LONG),
    ended(1, size=123_456),
    received(2, lane=None, step=None),
    RequestRefused(at_seconds=0, request=2, rules=("shape",), problems=(LONG,)),
    ended(2, 400),
    received(3),
    ReplyStarted(at_seconds=0, request=3, status=200),
    HoldReached(at_seconds=0, request=3, position="reply.streaming", detail="hold 'here'"),
    received(4),
    ClientLeft(at_seconds=0, request=4, connection=7, bytes_sent=5),
    ended(4, None),
)
LANES = (LaneState("main", 2, 5, LONG, 1), LaneState("titles", 2, 1, None, 1))


def shown(rows: RequestRows, width: int, height: int = 24) -> list[str]:
    written = StringIO()
    console = Console(file=written, width=width, height=height, no_color=True, highlight=False, markup=False)
    console.print(screen(rows, LANES, width, height))
    return written.getvalue().splitlines()


def rows_of(*entries: AnyEntry) -> RequestRows:
    rows = RequestRows()
    for entry in entries:
        rows(entry)
    return rows


@pytest.mark.parametrize("width", [40, 60, 80, 120])
def test_every_request_is_one_line_and_no_line_is_wider_than_the_terminal(width: int) -> None:
    lines = shown(rows_of(*ENTRIES), width)
    assert len(lines) == 1 + 4 + 1 + 2 + 1
    assert all(len(line) <= width for line in lines)
    assert [line.split()[0] for line in lines[:5]] == ["#", "1", "2", "3", "4"]
    assert "200" in lines[1]
    assert "main" in lines[1]
    assert "…" in lines[1]


def test_a_wide_terminal_shows_all_there_is() -> None:
    lines = shown(rows_of(*ENTRIES), 200)
    assert " ".join(lines[0].split()) == "# conn client dialect lane: step model stream status sent what happened"
    for words in ("7", "claude-cli/2.1.235", "anthropic_messages", "main: say", "claude-sonnet", "yes", "7 ev 123 kB"):
        assert words in lines[1]
    assert "POST /v1/messages" in lines[2]
    assert "refused: a very long" in lines[2]
    assert "waits at hold 'here'" in lines[3]
    assert "no answer" in lines[4]
    assert "client left after 5 bytes" in lines[4]
    assert lines[-1] == "4 requests, 1 refused, 0 unexpected, 1 faults"


def test_a_low_terminal_shows_the_newest_requests_and_those_that_run() -> None:
    rows = rows_of(received(1), *(entry for number in range(2, 40) for entry in (received(number), ended(number))))
    lines = shown(rows, 80, 12)
    assert len(lines) <= 12
    assert [line.split()[0] for line in lines[1:7]] == ["1", "35", "36", "37", "38", "39"]


@pytest.mark.parametrize(
    ("entry", "remark"),
    [
        (UnexpectedRequest(at_seconds=0, request=1, lane=None, reason="no lane"), "unexpected: no lane"),
        (RequestMismatch(at_seconds=0, request=1, step="s", differences=("a", "b")), "not as expected: a; b"),
        (FaultSkipped(at_seconds=0, request=1, kind="cut", reason="why"), "fault cut skipped: why"),
        (HoldSkipped(at_seconds=0, request=1, position="p", reason="why"), "hold skipped: why"),
    ],
)
def test_what_is_unusual_is_a_remark(entry: AnyEntry, remark: str) -> None:
    [row] = rows_of(received(1), entry).newest(5)
    assert row.remarks == [remark]


def test_a_hold_waits_until_it_is_released() -> None:
    reached = HoldReached(at_seconds=0, request=1, position="p", detail="hold 'h'")
    rows = rows_of(received(1), reached)
    assert rows.newest(1)[0].waiting == "hold 'h'"
    rows(HoldReleased(at_seconds=0, request=1, position="p"))
    assert (rows.newest(1)[0].waiting, rows.newest(1)[0].remarks) == (None, ["held: hold 'h'"])


def test_what_is_no_request_is_said_too() -> None:
    said: list[str] = []
    rows = RequestRows(remarked=said.append)
    for entry in (
        GarbageReceived(at_seconds=0, connection=2, reason="nonsense"),
        HandshakeFailed(at_seconds=0, certificate="expired", reason="bad"),
        ConnectionsRefused(at_seconds=0, how="full", seconds=2),
        ConnectionsTaken(at_seconds=0),
    ):
        rows(entry)
    assert said == [
        "connection 2: no request: nonsense",
        "no TLS handshake with the expired certificate: bad",
        "no new connections for 2 s (full)",
        "new connections are taken again",
    ]
    assert shown(rows, 80)[-1] == said[-1]


def test_a_finished_row_is_told_once() -> None:
    finished: list[Row] = []
    rows = RequestRows(finished.append)
    for entry in (received(1), ended(1)):
        rows(entry)
    assert [row.request for row in finished] == [1]


def test_a_lane_that_is_used_up_says_so() -> None:
    assert lane_words(LANES[1]) == "titles: used up after 1"
