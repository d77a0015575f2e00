"""One thing that was observed, by whom, and when.

An event is what an outside witness saw: the provider, the effect ledger, the hook log, the process table or the
runtime's own output. It holds plain data and no behaviour.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Any

import msgspec


class Source(StrEnum):
    """Who observed an event."""

    PROVIDER = "provider"
    TOOL = "tool"
    HOOK = "hook"
    PROCESS = "process"
    RUNTIME = "runtime"
    HARNESS = "harness"


class Event(msgspec.Struct, frozen=True):
    """One observation.

    Attributes:
        at_seconds: Monotonic seconds since the run began.
        source: The witness.
        kind: What happened, as a dotted word: ``request.received``, ``tool.committed``, ``process.exited`` …
        phase: The number of the scenario's phase in which it happened, from 1; 0 before the first.
        data: Plain data whose keys depend on the kind.
    """

    at_seconds: float
    source: Source
    kind: str
    phase: int
    data: dict[str, Any]
