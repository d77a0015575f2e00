"""Bodies of streams taken apart: server-sent events, and a JSON array that grows. Only what came whole is returned."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

_BLANK_LINE = re.compile(rb"\r\n\r\n|\n\n|\r\r")
_LINE_END = re.compile(r"\r\n|\n|\r")
_SPACE_OR_COMMA = re.compile(r"[\s,\[]*")


def event_data(body: bytes) -> Iterator[str]:
    """Yield the data of each complete event; comments and events without data are left out."""
    blocks = _BLANK_LINE.split(body)
    for block in blocks[:-1]:
        # Only these end a line; a text may hold others that Python would split at.
        lines = _LINE_END.split(block.decode("utf-8", "replace"))
        data = [line[5:].removeprefix(" ") for line in lines if line.startswith("data:")]
        if data:
            yield "\n".join(data)


def array_elements(body: bytes) -> Iterator[Any]:
    """Yield each complete element of a JSON array."""
    text = body.decode("utf-8", "replace")
    decoder = json.JSONDecoder()
    position = 0
    while True:
        gap = _SPACE_OR_COMMA.match(text, position)
        position = gap.end() if gap else position
        try:
            value, position = decoder.raw_decode(text, position)
        except (ValueError, RecursionError):
            return
        yield value
