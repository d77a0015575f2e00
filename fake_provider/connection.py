"""One client connection, byte by byte: reads requests one after the other and carries out their replies.

Requests are parsed by h11 the first time their bytes are seen; replies are written here without a library, so that any
of them can break at any byte. It never decides what to answer. Whatever a client sends, the worst that happens is an
error reply and the end of its own connection, and the journal says so.
"""

from __future__ import annotations

import asyncio
import fcntl
import socket
import struct
import termios
from contextlib import suppress
from typing import TYPE_CHECKING, Literal, cast

from fake_provider.desk import Admitted, Desk, Understood
from fake_provider.exchange import Exchange, garbage_reply
from fake_provider.inbound import Garbage, Parsed, RequestReader, Signal
from fake_provider.journal import ConnectionClosed, GarbageReceived
from fake_provider.steady import remember, steady_writes
from fake_provider.wire import Draft, Framing, head

if TYPE_CHECKING:
    from fake_provider.server import Provider

AHEAD_BYTES_MAX = 1024 * 1024
"""How much a client may send before what it asked earlier is answered; more is dropped, and ends the connection."""

READ_BYTES = 64 * 1024
"""How much is parsed at once, so that a client that sends much does not keep the others waiting."""

LINGER_SECONDS = 2.0
"""How long, in scripted seconds, a client that sent garbage is listened to after its error reply was sent."""


class Connection(asyncio.Protocol):
    """The connection of one client.

    Reading goes on while a reply is being sent, because that is how a client's leaving is seen. A client that half
    closes counts as having left wherever the reply waits for something; a reply without waits is still sent to it.

    Attributes:
        ended: Set once it is closed, its task is over, and the journal says so.
    """

    transport: asyncio.Transport
    task: asyncio.Task[None]

    def __init__(self, provider: Provider, desk: Desk) -> None:
        self._provider = provider
        self._desk = desk
        self._journal = desk.journal
        self._reader = RequestReader()
        self._inbox = bytearray()
        self._dropped_bytes = 0
        self._reading = True
        self._flooded = False
        self._deaf = False
        self._between_requests = False
        self._handed: Admitted | None = None
        self._readable = asyncio.Event()
        self._writable = asyncio.Event()
        self._writable.set()
        self._left = asyncio.Event()
        self._lost = False
        self._finished = False
        self._failure: BaseException | None = None
        self._ended_by: Literal["client", "provider"] | None = None
        self._was_reset = False
        self._number = 0
        self.ended = asyncio.Event()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin to serve."""
        # A loop's own transport need not inherit from asyncio's.
        self.transport = cast("asyncio.Transport", transport)
        self._number = self._provider.connection_opened(self)
        self.task = asyncio.get_running_loop().create_task(self._run())
        self.task.add_done_callback(self._finish)

    def data_received(self, data: bytes) -> None:
        """Answer a request seen before at once; else keep bytes until they are asked for.

        A client that sends faster than it is read waits. One that sends far ahead of its replies cannot be made to
        wait, because its leaving would not be seen: what is too much is dropped.
        """
        if self._between_requests:
            understood = self._desk.recall.find(data)
            if understood is not None:
                self._answer_at_once(understood)
                return
        if self._deaf or self._flooded:
            self._dropped_bytes += len(data)
            return
        self._inbox += data
        self._readable.set()
        if len(self._inbox) > AHEAD_BYTES_MAX:
            if self._reading:
                self.transport.pause_reading()
            else:
                self._flooded = True

    def _answer_at_once(self, understood: Understood) -> None:
        """Answer a request seen before, or hand it to the task where it takes one."""
        writes = None
        if self.transport.get_write_buffer_size() == 0:
            writes = steady_writes(self._desk, understood, self._number)
        if writes is None:
            self._between_requests = False
            self._handed = self._admitted(understood)
            self._readable.set()
            return
        self._provider.answered_at_once += 1
        for data in writes:
            self.write(data)

    def _admitted(self, understood: Understood) -> Admitted:
        admitted = self._desk.admit(understood, self._number)
        remember(self._desk, admitted)
        return admitted

    def eof_received(self) -> bool:
        """Keep the sending side open: a reply without waits is still sent. TLS has no half-closed connection."""
        self._note_end("client")
        self._left.set()
        self._readable.set()
        return self.transport.get_extra_info("sslcontext") is None

    def connection_lost(self, exc: Exception | None) -> None:
        """Wake everything that waits."""
        self._note_end("provider" if exc is None else "client")
        self._was_reset = exc is not None
        if not isinstance(exc, OSError | None):
            self._failure = exc
        self._lost = True
        self._left.set()
        self._readable.set()
        self._writable.set()
        if self._finished:
            self._end()

    def _note_end(self, by: Literal["client", "provider"]) -> None:
        if self._ended_by is None:
            self._ended_by = by

    def pause_writing(self) -> None:
        """Note that the kernel takes no more for now."""
        self._writable.clear()

    def resume_writing(self) -> None:
        """Note that the kernel takes bytes again."""
        self._writable.set()

    def abort(self) -> None:
        """End at once, for the end of the provider."""
        self._note_end("provider")
        self.task.cancel()
        self.transport.abort()

    def _finish(self, task: asyncio.Task[None]) -> None:
        self._finished = True
        if not task.cancelled() and self._failure is None:
            self._failure = task.exception()
        self.close()
        if self._lost:
            self._end()

    def _end(self) -> None:
        self._journal.append(
            ConnectionClosed(
                at_seconds=self._journal.now(),
                connection=self._number,
                by=self._ended_by or "provider",
                reset=self._was_reset,
                unused_bytes=self._reader.pending_bytes + len(self._inbox) + self._dropped_bytes,
            )
        )
        self._provider.connection_closed(self, self._failure)
        self.ended.set()

    async def _run(self) -> None:
        while not self._lost:
            self._reading = True
            outcome = await self._next_request()
            self._reading = False
            if isinstance(outcome, Admitted):
                if not await Exchange(self._desk, self, outcome).run():
                    return
            elif isinstance(outcome, Parsed):
                if not await self._be_controlled(outcome):
                    return
            else:
                if isinstance(outcome, Garbage):
                    await self._refuse_garbage(outcome)
                return
            if self._inbox or not self._reader.is_fresh:
                # A client that sends many requests ahead takes turns with the others.
                await asyncio.sleep(0)

    async def _be_controlled(self, parsed: Parsed) -> bool:
        """Answer a request of the control API, and return whether the connection can be used again."""
        if self._provider.control is None:
            raise RuntimeError("a control request reached a provider without control")
        plain = await self._provider.control.answer(parsed.received, self._left)
        framing = Framing(keep_alive=parsed.keep_alive, with_body=parsed.received.method != "HEAD", chunked=False)
        self.write(b"".join(framing.encode(action) for action in Draft.of_plain(plain).actions()))
        return framing.keep_alive

    async def _next_request(self) -> Admitted | Parsed | Garbage | Signal:
        reader = self._reader
        first_piece, pieces = b"", 0
        fresh = reader.is_fresh
        while True:
            if self._handed is not None:
                admitted, self._handed = self._handed, None
                return admitted
            outcome = reader.poll()
            if outcome is Signal.WANTS_CONTINUE:
                self.write(head(100, ()))
            elif outcome is Signal.HAS_MORE:
                await asyncio.sleep(0)
            elif isinstance(outcome, Parsed) and self._provider.controls(outcome.received):
                return outcome
            elif isinstance(outcome, Parsed):
                understood = self._desk.understand(outcome)
                if fresh and pieces == 1 and reader.is_fresh:
                    self._desk.recall.keep(first_piece, outcome, understood)
                return self._admitted(understood)
            elif outcome is not Signal.NEEDS_DATA:
                return outcome
            elif self._inbox:
                piece = self._piece()
                first_piece, pieces = first_piece or piece, pieces + 1
                reader.feed(piece)
            elif self._flooded:
                return Garbage(f"more than {AHEAD_BYTES_MAX} bytes were sent ahead of the replies", 413)
            elif self._left.is_set():
                reader.feed(b"")
            else:
                self._readable.clear()
                self._between_requests = not pieces and reader.is_fresh
                await self._readable.wait()
                self._between_requests = False

    def _piece(self) -> bytes:
        piece = bytes(self._inbox[:READ_BYTES])
        del self._inbox[:READ_BYTES]
        if not self._inbox:
            self.transport.resume_reading()
        return piece

    async def _refuse_garbage(self, garbage: Garbage) -> None:
        """Say what is wrong, and go on listening for a while (RFC 9112, section 9.6).

        A connection that is closed while bytes keep coming is reset by the kernel, and the client never reads why.
        """
        self._journal.append(
            GarbageReceived(at_seconds=self._journal.now(), connection=self._number, reason=garbage.reason)
        )
        self.write(garbage_reply(self._desk, garbage))
        if self.transport.is_closing() or self._left.is_set():
            return
        self._note_end("provider")
        self._deaf = True
        self._dropped_bytes += len(self._inbox)
        self._inbox.clear()
        self.transport.resume_reading()
        if self.transport.can_write_eof() and self.transport.get_write_buffer_size() == 0:
            # A client that has just gone makes this fail before the loop has noticed.
            with suppress(OSError):
                self.transport.write_eof()
        await self._desk.clock.wait(LINGER_SECONDS, self._left, self._desk.stopping)

    @property
    def number(self) -> int:
        """The connection's number in the journal."""
        return self._number

    @property
    def lost(self) -> bool:
        """Whether nothing can be sent any more."""
        return self._lost

    def refuse(self, seconds: float, how: Literal["refused", "full"]) -> str | None:
        """Take no new connection for a time; return why that cannot be done, or nothing where it is."""
        return self._provider.refuse(seconds, how)

    @property
    def left(self) -> asyncio.Event:
        """Set once the client has closed its side, or the connection is gone."""
        return self._left

    def write(self, data: bytes) -> None:
        """Hand bytes over for sending; they go nowhere once the connection is gone."""
        if not self.transport.is_closing():
            self.transport.write(data)

    def close(self) -> None:
        """Send what was handed over, then a FIN; once is enough."""
        self._note_end("provider")
        # Closing a TLS transport twice makes it deaf to abort, and then nothing can end it before its own time is over.
        if not self.transport.is_closing():
            self.transport.close()

    def cut(self) -> None:
        """Send a FIN after what the peer's kernel has acknowledged; under TLS without saying that the stream is over.

        TLS ends a stream with a message of its own (RFC 8446, section 6.1); a connection that breaks sends none.
        """
        self._note_end("provider")
        if self.transport.get_extra_info("sslcontext") is None:
            self.close()
            return
        with suppress(OSError):
            self.transport.get_extra_info("socket").shutdown(socket.SHUT_WR)
        self.transport.abort()

    async def drained(self) -> None:
        """Wait until the kernel takes more bytes, or the connection is gone."""
        await self._writable.wait()

    async def acknowledged(self) -> None:
        """Wait until the peer's kernel has acknowledged every byte, or the connection is gone.

        SIOCOUTQ counts what was sent and not acknowledged together with what was not sent (tcp(7)). Nothing notifies
        of its reaching 0, so it is asked again and again; on loopback that is a matter of microseconds.
        """
        connection_socket = self.transport.get_extra_info("socket")
        while not self._lost:
            if self.transport.get_write_buffer_size() == 0 and _unacknowledged_bytes(connection_socket.fileno()) == 0:
                return
            await self._desk.clock.poll()

    def reset(self) -> None:
        """Send a RST: closing with a zero linger time drops the connection without a FIN (socket(7))."""
        self._note_end("provider")
        connection_socket = self.transport.get_extra_info("socket")
        connection_socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.transport.abort()


def _unacknowledged_bytes(descriptor: int) -> int:
    answer = fcntl.ioctl(descriptor, termios.TIOCOUTQ, b"\0\0\0\0")
    return int.from_bytes(answer, "little")
