"""The server: connections, byte by byte. Together with ``fake_provider.listener`` the only file with sockets.

Requests are parsed by h11 the first time their bytes are seen; replies are written here without a library, so that any
of them can break at any byte. It never decides what to answer and never measures time except by the journal's clock. It
listens on loopback only.
"""

from __future__ import annotations

import asyncio
import errno
import fcntl
import ipaddress
import socket
import struct
import termios
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import datetime
from typing import TYPE_CHECKING, Literal, cast

from fake_provider.clock import Clock
from fake_provider.desk import Admitted, Desk, Understood
from fake_provider.exchange import Exchange, garbage_reply
from fake_provider.hold import Hold, NamedHolds
from fake_provider.inbound import Garbage, Parsed, RequestReader, Signal
from fake_provider.journal import ConnectionClosed, ConnectionOpened, GarbageReceived, Journal
from fake_provider.listener import BACKLOG, Listener, bound_socket
from fake_provider.playback import Playback
from fake_provider.script import Script
from fake_provider.steady import remember, steady_writes
from fake_provider.wire import Draft, Framing, head

if TYPE_CHECKING:
    from fake_provider.certificates import Certified
    from fake_provider.control import Control

PIPELINED_BYTES_MAX = 1024 * 1024
CONTROL_PREFIX = "/__crashcart__/"


class ProviderError(Exception):
    """The provider cannot listen where it was told to; the message says what to do."""


class Provider:
    """A scripted model provider.

    Args:
        script: What to answer.
        journal: Where to record; a new one where none is given.
        holds: Places at which to keep clients waiting.
        time_scale: Scripted waits are divided by this.
        control: Whether it has the control API (``fake_provider.control``).
    """

    def __init__(
        self,
        script: Script,
        *,
        journal: Journal | None = None,
        holds: Sequence[Hold] = (),
        time_scale: float = 1.0,
        control: bool = False,
    ) -> None:
        self.journal = Journal() if journal is None else journal
        self._desk = Desk(script, self.journal, holds, time_scale)
        self._address: tuple[str, int] | None = None
        self._connections: set[_Connection] = set()
        self._failures: list[BaseException] = []
        self._connection_count = 0
        self.answered_at_once = 0
        """How many replies left from bytes encoded before; a number for tests and for people, nothing depends on it."""
        self._certified: Certified | None = None
        self._listener: Listener | None = None
        self.control: Control | None = None
        if control:
            # Imported here because it imports this module, and because most providers have none.
            from fake_provider.control import Control

            self.control = Control(self)

    @property
    def script(self) -> Script:
        """What it answers."""
        return self._desk.script

    @property
    def playback(self) -> Playback:
        """Where its script stands."""
        return self._desk.playback

    @property
    def time_scale(self) -> float:
        """Scripted waits are divided by this; a wait that has begun keeps its length."""
        return self._desk.clock.time_scale

    @time_scale.setter
    def time_scale(self, scale: float) -> None:
        self._desk.clock.time_scale = Clock(scale).time_scale

    def load(self, script: Script) -> None:
        """Play another script from its beginning, for every request read from now on.

        Raises:
            ProviderError: The script asks for another way to listen.
        """
        if script.listen != self._desk.script.listen:
            raise ProviderError("the script asks for another 'listen', which needs a provider of its own")
        self._desk.load(script)

    def hold(self, hold: Hold) -> Hold:
        """Keep a client waiting at one more place; counts from now on."""
        self._desk.holds.append(hold)
        return hold

    @property
    def holds(self) -> tuple[Hold, ...]:
        """Every hold, reached or not."""
        return tuple(self._desk.holds)

    @property
    def named_holds(self) -> NamedHolds:
        """The clients that ``hold`` steps keep waiting."""
        return self._desk.named_holds

    @property
    def authority_pem(self) -> bytes | None:
        """The authority that a client of a TLS provider has to trust, in PEM; nothing without TLS."""
        return None if self._certified is None else self._certified.authority_pem

    def refuse(self, seconds: float, how: Literal["refused", "full"]) -> str | None:
        """Take no new connection for a time, in scripted seconds; return why it cannot be done, if it cannot."""
        return "the provider is not listening" if self._listener is None else self._listener.refuse(seconds, how)

    @property
    def port(self) -> int:
        """The port it listens on.

        Raises:
            ProviderError: It is not listening.
        """
        return self._listening_address()[1]

    @property
    def url(self) -> str:
        """The base URL for clients, without a path.

        Raises:
            ProviderError: It is not listening.
        """
        host, port = self._listening_address()
        scheme = "http" if self._certified is None else "https"
        return f"{scheme}://[{host}]:{port}" if ":" in host else f"{scheme}://{host}:{port}"

    def _listening_address(self) -> tuple[str, int]:
        if self._address is None:
            raise ProviderError("the provider is not listening; use 'async with provider.listening()'")
        return self._address

    @asynccontextmanager
    async def listening(self, host: str = "127.0.0.1", port: int = 0) -> AsyncIterator[Provider]:
        """Listen on a loopback address until the block ends; port 0 takes a free one.

        Raises:
            ProviderError: The host is not loopback, or the port cannot be opened.
        """
        address = "127.0.0.1" if host == "localhost" else host
        if not _is_loopback(address):
            raise ProviderError(f"host {host} is not loopback; choose 127.0.0.1 or ::1, because anyone could use it")
        try:
            listener = bound_socket(address, port)
        except (OSError, OverflowError) as error:
            raise ProviderError(_cannot_open(host, port, error)) from error
        try:
            listener.listen(BACKLOG)
        except OSError as error:
            listener.close()
            raise ProviderError(_cannot_open(host, port, error)) from error
        async with self._served(listener, own=True):
            yield self

    @asynccontextmanager
    async def serving(self, sock: socket.socket) -> AsyncIterator[Provider]:
        """Serve on a listening socket that the caller made, until the block ends; the socket is closed then.

        The socket may belong to another network namespace.

        Raises:
            ProviderError: The socket is not bound to loopback.
        """
        async with self._served(sock, own=False):
            yield self

    @asynccontextmanager
    async def _served(self, sock: socket.socket, *, own: bool) -> AsyncIterator[None]:
        host, port = sock.getsockname()[:2]
        if not _is_loopback(host):
            raise ProviderError(f"host {host} is not loopback; bind the socket to 127.0.0.1 or ::1")
        self._desk.stopping.clear()
        kind = self._desk.script.listen.tls
        self._certified = None if kind is None else _certified(kind, self._desk.clock.today())
        self._listener = Listener(
            sock,
            own=own,
            factory=lambda: _Connection(self, self._desk),
            journal=self.journal,
            clock=self._desk.clock,
            certificate=None if kind is None or self._certified is None else (kind, self._certified),
        )
        self._listener.start()
        self._address = (host, port)
        try:
            yield
        finally:
            self._address = None
            await self._listener.close()
            self._listener = None
            self._desk.stopping.set()
            await self._end_connections()
        if self._failures:
            raise self._failures[0]

    async def _end_connections(self) -> None:
        tasks = []
        for connection in tuple(self._connections):
            connection.abort()
            tasks.append(connection.task)
        await asyncio.gather(*tasks, return_exceptions=True)

    def connection_opened(self, connection: _Connection) -> int:
        """Register a connection and return its number."""
        self._connections.add(connection)
        self._connection_count += 1
        self.journal.append(ConnectionOpened(at_seconds=self.journal.now(), connection=self._connection_count))
        return self._connection_count

    def connection_closed(self, connection: _Connection, failure: BaseException | None) -> None:
        """Forget a connection; a failure is raised to whoever runs the provider when it ends."""
        self._connections.discard(connection)
        if failure is not None:
            self._failures.append(failure)


def _certified(kind: str, now: datetime) -> Certified:
    # Cryptography takes longer to import than all else together, and most scripts listen without TLS.
    from fake_provider.certificates import certified

    return certified(kind, now)


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _cannot_open(host: str, port: int, error: Exception) -> str:
    advice = "choose another with --port, or 0 for a free one"
    if isinstance(error, OSError) and error.errno == errno.EADDRINUSE:
        return f"port {port} on {host} is taken; {advice}"
    reason = error.strerror if isinstance(error, OSError) else "it is not a port number"
    return f"port {port} on {host} cannot be opened: {reason}; {advice}"


class _Connection(asyncio.Protocol):
    """One client connection: reads requests one after the other and carries out their replies.

    Reading goes on while a reply is being sent, because that is how a client's leaving is seen. A client that half
    closes counts as having left wherever the reply waits for something; a reply without waits is still sent to it.
    """

    transport: asyncio.Transport
    task: asyncio.Task[None]

    def __init__(self, provider: Provider, desk: Desk) -> None:
        self._provider = provider
        self._desk = desk
        self._journal = desk.journal
        self._inbox = bytearray()
        self._between_requests = False
        self._handed: Admitted | None = None
        self._readable = asyncio.Event()
        self._writable = asyncio.Event()
        self._writable.set()
        self._left = asyncio.Event()
        self._lost = False
        self._number = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin to serve."""
        # A loop's own transport need not inherit from asyncio's.
        self.transport = cast("asyncio.Transport", transport)
        self._number = self._provider.connection_opened(self)
        self.task = asyncio.get_running_loop().create_task(self._run())
        self.task.add_done_callback(self._finished)

    def data_received(self, data: bytes) -> None:
        """Answer a request seen before at once; else keep bytes until they are asked for.

        A client that sends too far ahead is not read for a while.
        """
        if self._between_requests:
            understood = self._desk.recall.find(data)
            if understood is not None:
                self._answer_at_once(understood)
                return
        self._inbox += data
        self._readable.set()
        if len(self._inbox) > PIPELINED_BYTES_MAX:
            self.transport.pause_reading()

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
        self._left.set()
        self._readable.set()
        return self.transport.get_extra_info("sslcontext") is None

    def connection_lost(self, exc: Exception | None) -> None:
        """Wake everything that waits."""
        self._lost = True
        self._left.set()
        self._readable.set()
        self._writable.set()
        self._journal.append(ConnectionClosed(at_seconds=self._journal.now(), connection=self._number))

    def pause_writing(self) -> None:
        """Note that the kernel takes no more for now."""
        self._writable.clear()

    def resume_writing(self) -> None:
        """Note that the kernel takes bytes again."""
        self._writable.set()

    def abort(self) -> None:
        """End at once, for the end of the provider."""
        self.task.cancel()
        self.transport.abort()

    def _finished(self, task: asyncio.Task[None]) -> None:
        self.transport.close()
        self._provider.connection_closed(self, None if task.cancelled() else task.exception())

    async def _run(self) -> None:
        reader = RequestReader()
        while not self._lost:
            outcome = await self._next_request(reader)
            if isinstance(outcome, Admitted):
                if not await Exchange(self._desk, self, outcome).run():
                    return
            elif isinstance(outcome, Parsed):
                if not await self._be_controlled(outcome):
                    return
            else:
                if isinstance(outcome, Garbage):
                    self._refuse_garbage(outcome)
                return

    async def _be_controlled(self, parsed: Parsed) -> bool:
        """Answer a request of the control API, and return whether the connection can be used again."""
        if self._provider.control is None:
            raise RuntimeError("a control request reached a provider without control")
        plain = await self._provider.control.answer(parsed.received, self._left)
        framing = Framing(keep_alive=parsed.keep_alive, with_body=parsed.received.method != "HEAD", chunked=False)
        self.write(b"".join(framing.encode(action) for action in Draft.of_plain(plain).actions()))
        return framing.keep_alive

    async def _next_request(self, reader: RequestReader) -> Admitted | Parsed | Garbage | Signal:
        fed: list[bytes] = []
        fresh = reader.is_fresh
        while True:
            if self._handed is not None:
                admitted, self._handed = self._handed, None
                return admitted
            outcome = reader.poll()
            if outcome is Signal.WANTS_CONTINUE:
                self.transport.write(head(100, ()))
            elif isinstance(outcome, Parsed) and self._controls(outcome):
                return outcome
            elif isinstance(outcome, Parsed):
                understood = self._desk.understand(outcome)
                if fresh and len(fed) == 1 and reader.is_fresh:
                    self._desk.recall.keep(fed[0], outcome, understood)
                return self._admitted(understood)
            elif outcome is not Signal.NEEDS_DATA:
                return outcome
            elif self._inbox:
                fed.append(bytes(self._inbox))
                reader.feed(fed[-1])
                self._inbox.clear()
                self.transport.resume_reading()
            elif self._left.is_set():
                reader.feed(b"")
            else:
                self._readable.clear()
                self._between_requests = not fed and reader.is_fresh
                await self._readable.wait()
                self._between_requests = False

    def _controls(self, parsed: Parsed) -> bool:
        return self._provider.control is not None and parsed.received.path.startswith(CONTROL_PREFIX)

    def _refuse_garbage(self, garbage: Garbage) -> None:
        self._journal.append(
            GarbageReceived(at_seconds=self._journal.now(), connection=self._number, reason=garbage.reason)
        )
        self.write(garbage_reply(self._desk, garbage))

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
        """Send what was handed over, then a FIN."""
        self.transport.close()

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
        connection_socket = self.transport.get_extra_info("socket")
        connection_socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.transport.abort()


def _unacknowledged_bytes(descriptor: int) -> int:
    answer = fcntl.ioctl(descriptor, termios.TIOCOUTQ, b"\0\0\0\0")
    return int.from_bytes(answer, "little")
