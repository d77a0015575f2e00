"""The outward stream: one JSON object a line, or only the last word, as the caller asked.

It writes what it is given and never decides what the user may see.
"""

import json
import os
import sys
from collections.abc import Mapping
from enum import StrEnum
from typing import Any, Protocol, TextIO

Frame = Mapping[str, Any]


class OutputFormat(StrEnum):
    """How a run reports on standard output."""

    TEXT = "text"
    JSON = "json"
    STREAM_JSON = "stream-json"


class FrameSink(Protocol):
    """Whoever wants the frames of a run."""

    def emit(self, frame: Frame) -> None:
        """Take one frame, in the order in which things happened."""


class FrameWriter:
    """Writes frames to a text stream in one of the three formats, flushed after each line."""

    def __init__(self, output_format: OutputFormat, stream: TextIO | None = None) -> None:
        self._format = output_format
        self._stream = stream if stream is not None else sys.stdout
        self._gone = False

    def emit(self, frame: Frame) -> None:
        """Write the frame if this format shows it."""
        if self._format is OutputFormat.STREAM_JSON:
            self._line(json.dumps(frame, ensure_ascii=True))
        elif frame["type"] == "result":
            self._line(json.dumps(frame, ensure_ascii=True) if self._format is OutputFormat.JSON else frame["result"])

    def _line(self, text: str) -> None:
        if self._gone:
            return
        try:
            self._stream.write(text + "\n")
            self._stream.flush()
        except BrokenPipeError:
            # The reader left. The run goes on: what its tools do is worth more than its report. What is still in the
            # buffer goes nowhere, or the interpreter would fail on it at its end.
            self._gone = True
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, self._stream.fileno())
            os.close(nowhere)


def system_frame(subtype: str, **fields: Any) -> dict[str, Any]:
    """A frame about the run itself."""
    return {"type": "system", "subtype": subtype, **fields}
