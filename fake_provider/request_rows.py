"""What a person wants to know of each request, gathered from the journal's entries: one row a request.

A row is what the journal said so far and nothing else. It prints nothing; ``fake_provider.plain_lines`` and
``fake_provider.view`` do.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

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

FINISHED_MAX = 200


@dataclass(slots=True)
class Row:
    """One request.

    Attributes:
        request: Its number.
        connection: The number of its connection.
        client: The product that the client calls itself by, or a dash.
        dialect: The dialect that claimed it, or a dash.
        who: The lane and the step, or the verb and the path.
        model: The model asked for, or a dash.
        stream: Whether a stream was asked for.
        status: The status sent so far.
        events: Complete events sent; counted at the end.
        size_bytes: Bytes sent; counted at the end.
        remarks: What was unusual, in order.
        waiting: The hold at which the client is kept waiting.
        over: Whether nothing more will be sent.
    """

    request: int
    connection: int
    client: str
    dialect: str
    who: str
    model: str
    stream: bool
    status: int | None = None
    events: int = 0
    size_bytes: int = 0
    remarks: list[str] = field(default_factory=list)
    waiting: str | None = None
    over: bool = False

    @property
    def shown_status(self) -> str:
        """The status, or why there is none."""
        if self.status is not None:
            return str(self.status)
        return "no answer" if self.over else "…"


class RequestRows:
    """A journal listener that keeps the rows of what runs, and of what ran last.

    Args:
        finished: Called with each row once its request is over.
        remarked: Called with a sentence about a connection that brought no request.
    """

    def __init__(
        self,
        finished: Callable[[Row], None] | None = None,
        remarked: Callable[[str], None] | None = None,
    ) -> None:
        self._finished_listener = finished
        self._remarked_listener = remarked
        self._running: dict[int, Row] = {}
        self._finished: deque[Row] = deque(maxlen=FINISHED_MAX)
        self.counts = {"requests": 0, "refused": 0, "unexpected": 0, "faults": 0}
        self.last_remark = ""

    def newest(self, count: int) -> list[Row]:
        """Return so many rows at most, oldest first; those that run push out those that are over."""
        running = list(self._running.values())[-count:] if count else []
        left = count - len(running)
        rows = [*list(self._finished)[-left:], *running] if left > 0 else running
        return sorted(rows, key=lambda row: row.request)

    def summary(self) -> str:
        """Return the totals as one line."""
        return ", ".join(f"{count} {name}" for name, count in self.counts.items())

    def __call__(self, entry: AnyEntry) -> None:
        """Take one entry."""
        match entry:
            case RequestReceived():
                self.counts["requests"] += 1
                self._running[entry.request] = _row(entry)
            case GarbageReceived():
                self._remark(f"connection {entry.connection}: no request: {entry.reason}")
            case HandshakeFailed():
                self._remark(f"no TLS handshake with the {entry.certificate} certificate: {entry.reason}")
            case ConnectionsRefused():
                self._remark(f"no new connections for {entry.seconds:g} s ({entry.how})")
            case ConnectionsTaken():
                self._remark("new connections are taken again")
            case _:
                row = self._running.get(getattr(entry, "request", 0))
                if row is not None:
                    self._extend(row, entry)

    def _remark(self, sentence: str) -> None:
        self.last_remark = sentence
        if self._remarked_listener is not None:
            self._remarked_listener(sentence)

    def _extend(self, row: Row, entry: AnyEntry) -> None:
        match entry:
            case RequestRefused():
                self.counts["refused"] += 1
                row.remarks.append(f"refused: {entry.problems[0]}")
            case UnexpectedRequest():
                self.counts["unexpected"] += 1
                row.remarks.append(f"unexpected: {entry.reason}")
            case RequestMismatch():
                row.remarks.append(f"not as expected: {'; '.join(entry.differences)}")
            case ReplyStarted():
                row.status = entry.status
            case FaultFired():
                self.counts["faults"] += 1
                row.remarks.append(f"fault {entry.kind} {entry.detail}")
            case FaultSkipped():
                row.remarks.append(f"fault {entry.kind} skipped: {entry.reason}")
            case HoldReached():
                row.waiting = entry.detail
            case HoldReleased():
                row.remarks.append(f"held: {row.waiting}")
                row.waiting = None
            case HoldSkipped():
                row.remarks.append(f"hold skipped: {entry.reason}")
            case ClientLeft():
                row.remarks.append(f"client left after {entry.bytes_sent} bytes")
            case ReplyEnded():
                self._end(row, entry)

    def _end(self, row: Row, ended: ReplyEnded) -> None:
        row.status = ended.status
        row.events = sum(ended.frames.values())
        row.size_bytes = ended.bytes
        row.waiting = None
        row.over = True
        del self._running[row.request]
        self._finished.append(row)
        if self._finished_listener is not None:
            self._finished_listener(row)


def _row(received: RequestReceived) -> Row:
    who = f"{received.method} {received.path}"
    if received.lane is not None:
        who = f"{received.lane}: {received.step or 'no step'}"
    return Row(
        request=received.request,
        connection=received.connection,
        client=received.headers.get("user-agent", "").partition(" ")[0] or "-",
        dialect=received.dialect or "-",
        who=who,
        model=received.model or "-",
        stream=received.stream,
    )
