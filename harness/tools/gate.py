"""The harness' end of the effect server's line: lets it pass, or keeps it standing at a position.

One gate serves all effect servers of a run, one after the other or at once. It never acts on a runtime; it says that a
position was reached and withholds the leave to go on.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path


class ToolHold:
    """Keeps the effect server standing at the nth time that a tool reaches a position.

    Attributes:
        position: ``tool.called`` or ``tool.committed``.
        tool: The tool's neutral name.
        nth: Which time, from 1, over the whole run.
        reached: Set when the server stands there.
        released: Set when it may go on.
    """

    def __init__(self, position: str, tool: str, nth: int = 1) -> None:
        self.position = position
        self.tool = tool
        self.nth = nth
        self.reached = asyncio.Event()
        self.released = asyncio.Event()
        self._seen = 0

    def release(self) -> None:
        """Let the server go on."""
        self.released.set()

    def holds(self, position: str, tool: str) -> bool:
        """Count one arrival and return whether it is the one to keep."""
        if (position, tool) != (self.position, self.tool):
            return False
        self._seen += 1
        return self._seen == self.nth


class Gate:
    """Answers every position with leave to go on, but for those that a hold keeps."""

    def __init__(self, holds: Sequence[ToolHold]) -> None:
        self._holds = holds

    @asynccontextmanager
    async def open_at(self, path: Path) -> AsyncIterator[None]:
        """Listen on a Unix socket until the block is left."""
        server = await asyncio.start_unix_server(self._serve, path)
        try:
            yield
        finally:
            server.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while line := await reader.readline():
                message = json.loads(line)
                for hold in self._holds:
                    if hold.holds(message["position"], message["tool"]):
                        hold.reached.set()
                        await hold.released.wait()
                writer.write(b"go\n")
                await writer.drain()
        except ConnectionError:
            return  # the server died with its runtime, which the process table tells
        finally:
            writer.close()
