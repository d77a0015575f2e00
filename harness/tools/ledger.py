"""The effect ledger: what really happened outside the runtime, line by line, on disk.

Only the effect server appends; a line of kind ``tool.committed`` *is* the effect. Each line is one JSON object, written
by one call and fsynced before anything else happens. Nothing here decides whether an effect was right.
"""

from __future__ import annotations

import json
import os
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

CALLED = "tool.called"
COMMITTED = "tool.committed"
ANSWERED = "tool.answered"

LOST = "ledger.lost"
"""Never a line: announced by a server that cannot write one."""


@dataclass(frozen=True)
class LedgerLine:
    """One thing that the effect server did.

    Attributes:
        kind: ``tool.called``, ``tool.committed`` or ``tool.answered``.
        tool: The tool's neutral name.
        call: The number of the call of this tool, from 1, counted over all servers that shared the ledger.
        request: The JSON-RPC request id, as text.
        meta: What the client sent as the request's ``_meta``.
        arguments: The arguments, as received.
        mode: The effect mode of this call.
        pid: The effect server's process.
        at_seconds: ``time.monotonic()``, which all processes of one machine share.
    """

    kind: str
    tool: str
    call: int
    request: str
    meta: dict[str, Any]
    arguments: dict[str, Any]
    mode: str
    pid: int
    at_seconds: float


class Ledger:
    """An append-only file of ledger lines."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def append(self, line: LedgerLine) -> None:
        """Write one line and fsync it.

        Raises:
            OSError: The line is not safely on disk.
        """
        data = json.dumps(asdict(line), sort_keys=True).encode() + b"\n"
        descriptor = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
        try:
            if os.write(descriptor, data) != len(data):
                raise OSError(f"{self.path}: the ledger line was cut short")
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

    def lines(self) -> list[LedgerLine]:
        """Return all lines; a ledger that was never written is empty.

        Raises:
            ValueError: A line is damaged, which would make the witness worthless.
        """
        try:
            data = self.path.read_bytes()
        except FileNotFoundError:
            return []
        found = []
        for number, raw in enumerate(data.splitlines(), start=1):
            try:
                found.append(LedgerLine(**json.loads(raw)))
            except (ValueError, TypeError) as error:
                raise ValueError(f"{self.path}:{number}: damaged ledger line: {error}") from error
        return found

    def calls(self, tool: str) -> int:
        """Return how often a tool was called so far."""
        return sum(line.kind == CALLED and line.tool == tool for line in self.lines())


def monotonic_seconds() -> float:
    """Return the clock that ledger lines carry."""
    return time.monotonic()
