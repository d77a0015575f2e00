"""The harness' end of the effect server's line: lets it pass, or keeps it standing at a position.

One gate serves all effect servers of a run, one after the other or at once. It never acts on a runtime; it says that a
position was reached and withholds the leave to go on.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec

from harness.tools.ledger import LOST, LedgerLine


class Announcement(msgspec.Struct, frozen=True):
    """What an effect server says when it stands at a position: that of the ledger line which it has just written."""

    position: str
    tool: str
    call: int


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
    """Answers every position with leave to go on, but for those that a hold keeps.

    It remembers what was announced, in the harness' own memory: the runtime under test can reach the ledger's file and
    this socket, and what the two say has to agree.
    """

    def __init__(self, holds: Sequence[ToolHold]) -> None:
        self._holds = holds
        self._announced: set[tuple[str, str, int]] = set()
        self._foreign = 0
        self._lines: dict[asyncio.Task[None], asyncio.StreamWriter] = {}
        self._closed = False

    def contradictions(self, ledger: Iterable[LedgerLine]) -> list[str]:
        """Return what the ledger does not bear out; a line comes before its announcement, so none may lack one."""
        written = {(line.kind, line.tool, line.call) for line in ledger}
        found = [
            "a line that a server could not write" if kind == LOST else f"{kind} {tool} #{call}"
            for kind, tool, call in sorted(self._announced - written)
        ]
        return found + ["what no effect server says"] * (self._foreign > 0)

    @asynccontextmanager
    async def open_at(self, path: Path) -> AsyncIterator[None]:
        """Listen on a Unix socket until the block is left."""

        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            task = asyncio.create_task(self._serve(reader, writer))
            self._lines[task] = writer
            task.add_done_callback(self._lines.pop)

        server = await asyncio.start_unix_server(serve, path)
        try:
            yield
        finally:
            # Whoever still stands at a hold is sent away without leave to go on.
            self._closed = True
            server.close()
            lines = dict(self._lines)
            for writer in lines.values():
                writer.close()
            for hold in self._holds:
                hold.release()
            await asyncio.gather(*lines)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while line := await reader.readline():
                message = msgspec.json.decode(line, type=Announcement)
                self._announced.add((message.position, message.tool, message.call))
                for hold in self._holds:
                    if hold.holds(message.position, message.tool):
                        hold.reached.set()
                        await hold.released.wait()
                if self._closed:
                    return
                writer.write(b"go\n")
                await writer.drain()
        except ValueError:  # no announcement, or no line at all
            self._foreign += 1
        except ConnectionError:
            return  # the server died with its runtime, which the process table tells
        finally:
            writer.close()
