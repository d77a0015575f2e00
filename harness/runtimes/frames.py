"""Reads runtimes' output of one JSON object a line.

Two adapters share the shape of a final ``result`` frame, which Claude Code documents for ``--output-format
stream-json`` and the reference runtime follows. A line that is no JSON object is passed over: what a runtime prints is
evidence, not input to be trusted.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from harness.model.history import Ending


def frames(output: str) -> Iterator[dict[str, Any]]:
    """Yield each line that is a JSON object."""
    for line in output.splitlines():
        if not line.startswith("{"):
            continue
        try:
            value = json.loads(line)
        except ValueError:
            continue
        if isinstance(value, dict):
            yield value


def ending_of_result_frame(output: str) -> Ending:
    """Return what the last ``result`` frame says, and the session id of any frame when there is none."""
    found = Ending()
    for frame in frames(output):
        session = frame.get("session_id")
        if frame.get("type") != "result":
            if isinstance(session, str) and found.session is None:
                found = Ending(session=session)
            continue
        counters = frame.get("counters")
        found = Ending(
            terminal=_text(frame.get("terminal_reason")),
            turns=frame["num_turns"] if isinstance(frame.get("num_turns"), int) else None,
            subtype=_text(frame.get("subtype")),
            is_error=bool(frame["is_error"]) if "is_error" in frame else None,
            text=_text(frame.get("result")),
            session=_text(session) or found.session,
            counters={str(key): int(value) for key, value in counters.items()} if isinstance(counters, dict) else {},
        )
    return found


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None
