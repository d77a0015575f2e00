"""A client without a socket: bytes go into the provider's own connection in process, and what it writes comes out.

The connection, its task, the journal and the playback are the real ones; only the transport is not. It never waits for
time to pass: scripted waits last a billionth, and the client leaves when it has sent everything.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from fake_provider.connection import Connection
from fake_provider.desk import Desk, Understood
from fake_provider.inbound import Parsed
from fake_provider.journal import AnyEntry, Journal, decode_entry, encode_entry
from fake_provider.recall import Recall
from fake_provider.script import Script
from fake_provider.server import Provider

TIME_SCALE = 1e9
LEAVINGS = ("eof", "lost", "reset")
TURNS_MAX = 100_000
HEARD_BYTES_MAX = 1_000_000
"""A client that hears more than this has enough, and resets the connection."""


@dataclass(frozen=True)
class Heard:
    """What came of a conversation.

    Attributes:
        data: Every byte that the provider wrote.
        entries: Its journal, each entry without its time.
        at_once: How many replies left from bytes encoded before.
    """

    data: bytes
    entries: tuple[dict[str, Any], ...]
    at_once: int

    def count(self, kind: str) -> int:
        """How many entries there are of a kind."""
        return sum(entry["entry"] == kind for entry in self.entries)


class _Transport(asyncio.Transport):
    """Keeps what is written; the kernel behind it takes everything at once."""

    def __init__(self, loop: asyncio.AbstractEventLoop, protocol: asyncio.Protocol) -> None:
        super().__init__()
        self.written = bytearray()
        self._loop = loop
        self._protocol = protocol
        self._closing = False

    def write(self, data: bytes | bytearray | memoryview) -> None:
        if self._closing:
            raise AssertionError("bytes were written after the end")
        self.written += data
        if len(self.written) > HEARD_BYTES_MAX:
            self.lose(ConnectionResetError())

    def can_write_eof(self) -> bool:
        return True

    def write_eof(self) -> None:
        """Nothing follows; what was written is there already."""

    def get_write_buffer_size(self) -> int:
        return 0

    def pause_reading(self) -> None:
        """The client of these tests waits for its turn anyway."""

    def resume_reading(self) -> None:
        """See ``pause_reading``."""

    def is_closing(self) -> bool:
        return self._closing

    def close(self) -> None:
        self.lose(None)

    def abort(self) -> None:
        self.lose(None)

    def lose(self, error: Exception | None) -> None:
        """Tell the protocol that the connection is gone, once, and not before this turn of the loop is over."""
        if not self._closing:
            self._closing = True
            self._loop.call_soon(self._protocol.connection_lost, error)


class _Connection(Connection):
    """A connection whose peer has no kernel to ask."""

    async def acknowledged(self) -> None:
        """Everything that was written has arrived."""

    def reset(self) -> None:
        """Drop the connection."""
        self.transport.abort()


class _Forgetful(Recall[Understood]):
    """Remembers nothing, so that every request is parsed and played."""

    def find(self, data: bytes) -> Understood | None:
        return None

    def keep(self, data: bytes, parsed: Parsed, meaning: Understood) -> None:
        """Forget it."""


def converse(
    script: Script, pieces: Sequence[bytes], *, leaving: str = "eof", recall: bool = True, reads_apart: bool = True
) -> Heard:
    """Send pieces on one connection and leave, and return what was heard.

    Args:
        script: What the provider answers.
        pieces: What is sent, in order.
        leaving: How the client goes, a word of ``LEAVINGS``.
        recall: Whether the provider may answer from memory.
        reads_apart: Whether the provider gets its turn after each piece, and not only at the end.

    Raises:
        AssertionError: Something failed inside the provider, or its end was never reached.
    """
    heard: list[Heard] = []

    # A task with a large result is slow, because asyncio describes it.
    async def conversed() -> None:
        heard.append(await _conversed(script, pieces, leaving, recall=recall, reads_apart=reads_apart))

    with asyncio.Runner() as runner:
        runner.run(conversed())
    return heard[0]


async def _conversed(
    script: Script, pieces: Sequence[bytes], leaving: str, *, recall: bool, reads_apart: bool
) -> Heard:
    provider = Provider(script, journal=Journal(), time_scale=TIME_SCALE)
    desk: Desk = provider._desk
    if not recall:
        desk.recall = _Forgetful(desk.understand)
    connection = _Connection(provider, desk)
    transport = _Transport(asyncio.get_running_loop(), connection)
    connection.connection_made(transport)
    for piece in pieces:
        if transport.is_closing():
            break
        connection.data_received(piece)
        if reads_apart:
            await _quiet(desk)
    await _leave(connection, transport, desk, leaving)
    for _ in range(TURNS_MAX):
        if connection.ended.is_set():
            break
        await asyncio.sleep(0)
    assert connection.ended.is_set(), "the connection never ended"
    failures = provider._failures
    assert not failures, repr(failures[0])
    entries = tuple(_told(entry) for entry in provider.journal.entries)
    return Heard(bytes(transport.written), entries, provider.answered_at_once)


async def _quiet(desk: Desk) -> None:
    """Let the provider do what it can do now; a reply that waits for the client's leaving goes on waiting."""
    before = -1
    while before != (before := len(desk.journal.entries)):
        for _ in range(8):
            await asyncio.sleep(0)


async def _leave(connection: Connection, transport: _Transport, desk: Desk, leaving: str) -> None:
    if transport.is_closing():
        return
    if leaving == "reset":
        transport.lose(ConnectionResetError())
        return
    if leaving == "eof":
        connection.eof_received()
        await _quiet(desk)
    transport.lose(None)


def _told(entry: AnyEntry) -> dict[str, Any]:
    """Return an entry as data, and see that it is written and read back unchanged."""
    line = encode_entry(entry)
    assert encode_entry(decode_entry(line)) == line
    told: dict[str, Any] = msgspec.json.decode(line)
    del told["at_seconds"]
    return told
