"""The provider: a script on a port, its connections, its holds and its journal. It listens on loopback only.

It never decides what to answer, never reads a request, and never measures time except by the journal's clock. With
``fake_provider.connection`` and ``fake_provider.listener`` it is all there is with sockets.
"""

from __future__ import annotations

import errno
import ipaddress
import socket
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import datetime
from typing import TYPE_CHECKING, Literal

from fake_provider.clock import Clock
from fake_provider.connection import Connection
from fake_provider.desk import Desk
from fake_provider.hold import Hold, NamedHolds
from fake_provider.journal import ConnectionOpened, Journal
from fake_provider.listener import BACKLOG, Listener, bound_socket
from fake_provider.playback import Playback
from fake_provider.script import Script

if TYPE_CHECKING:
    from fake_provider.certificates import Certified
    from fake_provider.control import Control
    from fake_provider.requests import Received

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
        self._connections: set[Connection] = set()
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
            factory=lambda: Connection(self, self._desk),
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
            self._desk.stopping.set()
            await self._listener.close()
            self._listener = None
            await self._end_connections()
        if self._failures:
            raise self._failures[0]

    async def _end_connections(self) -> None:
        while self._connections:
            connections = tuple(self._connections)
            for connection in connections:
                connection.abort()
            for connection in connections:
                await connection.ended.wait()

    def connection_opened(self, connection: Connection) -> int:
        """Register a connection and return its number."""
        self._connections.add(connection)
        self._connection_count += 1
        self.journal.append(ConnectionOpened(at_seconds=self.journal.now(), connection=self._connection_count))
        return self._connection_count

    def connection_closed(self, connection: Connection, failure: BaseException | None) -> None:
        """Forget a connection; a failure is raised to whoever runs the provider when it ends."""
        self._connections.discard(connection)
        if failure is not None:
            self._failures.append(failure)

    def controls(self, received: Received) -> bool:
        """Whether a request is for the control API, which this provider has."""
        return self.control is not None and received.path.startswith(CONTROL_PREFIX)


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
