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
    """Yield each line that is a JSON object; only a line feed ends a line, since JSON may hold other separators."""
    for line in output.split("\n"):
        if not line.startswith("{"):
            continue
        try:
            value = json.loads(line)
        except (ValueError, RecursionError):
            continue
        if isinstance(value, dict):
            yield value


def ending_of_result_frame(output: str) -> Ending:
    """Return what the last ``result`` frame says, and the session id of any frame when there is none."""
    found = Ending()
    for frame in frames(output):
        session = frame.get("session_id")
        if frame.get("type") != "result":
            if found == Ending():
                found = Ending(session=_text(session))
            continue
        is_error, counters = frame.get("is_error"), frame.get("counters")
        found = Ending(
            terminal=_text(frame.get("terminal_reason")),
            turns=_count(frame.get("num_turns")),
            subtype=_text(frame.get("subtype")),
            is_error=is_error if isinstance(is_error, bool) else None,
            text=_text(frame.get("result")),
            session=_text(session) or found.session,
            counters=_counts(counters) if isinstance(counters, dict) else {},
        )
    return found


def _text(value: object) -> str | None:
    """Return a text; half a surrogate pair, which JSON may hold and UTF-8 may not, becomes its escape."""
    return value.encode(errors="backslashreplace").decode() if isinstance(value, str) else None


def _count(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and abs(value) < 1 << 63 else None


def _counts(counters: dict[str, object]) -> dict[str, int]:
    counted = {_text(key) or "": _count(value) for key, value in counters.items()}
    return {key: value for key, value in counted.items() if value is not None}
