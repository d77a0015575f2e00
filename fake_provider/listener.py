"""The listening socket: takes connections, refuses them for a while, and speaks TLS where the script says so.

It never reads a request and never knows a script. Only it, ``fake_provider.connection`` and ``fake_provider.server``
know sockets.
"""

from __future__ import annotations

import asyncio
import select
import socket
import ssl
from collections.abc import Callable
from typing import TYPE_CHECKING, Literal

from fake_provider.clock import Clock
from fake_provider.journal import ConnectionsRefused, ConnectionsTaken, HandshakeFailed, Journal

if TYPE_CHECKING:
    from fake_provider.certificates import Certified

BACKLOG = 1024
_FILLERS_MAX = 64
_TAKEN_AT_ONCE = 64
"""How many connections are taken before those that were taken have their turn."""


def bound_socket(host: str, port: int) -> socket.socket:
    """Return a TCP socket bound to an address; port 0 takes a free one.

    A socket whose port the kernel chose gives it back when it stops listening, so a free port is first found with one
    socket and then asked for by name with another.

    Raises:
        OSError: The address cannot be bound.
        OverflowError: The port is no port number.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    if port:
        return _bound(family, host, port)
    with _bound(family, host, 0) as finder:
        return _bound(family, host, finder.getsockname()[1])


def _bound(family: socket.AddressFamily, host: str, port: int) -> socket.socket:
    sock = socket.socket(family, socket.SOCK_STREAM)
    try:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.bind((host, port))
    except BaseException:
        sock.close()
        raise
    return sock


class Listener:
    """Takes the connections of one listening socket.

    Args:
        sock: Bound; it is closed when the listener is.
        own: Whether this process's network namespace is the socket's.
        factory: Makes the protocol of a connection.
        journal: Where to record.
        clock: The provider's.
        certificate: The word of the certificate and its settings, for TLS.
    """

    def __init__(
        self,
        sock: socket.socket,
        *,
        own: bool,
        factory: Callable[[], asyncio.Protocol],
        journal: Journal,
        clock: Clock,
        certificate: tuple[str, Certified] | None,
    ) -> None:
        self._socket = sock
        self._own = own
        self._factory = factory
        self._journal = journal
        self._clock = clock
        self._certificate = certificate
        self._fillers: dict[tuple[str, int], socket.socket] = {}
        self._taken: set[socket.socket] = set()
        self._adopting: set[asyncio.Task[None]] = set()
        self._window: asyncio.Task[None] | None = None
        self._retrying: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Listen, and take connections from now on."""
        self._socket.setblocking(False)
        self._socket.listen(BACKLOG)
        asyncio.get_running_loop().add_reader(self._socket, self._accept)

    async def close(self) -> None:
        """Stop listening; connections that were taken stay."""
        self._stop()
        tasks = [task for task in (self._retrying, self._window, *self._adopting) if task is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        # A task that is cancelled before it began has not even looked at its connection.
        for connected in self._taken:
            connected.close()
        self._close_fillers()
        self._socket.close()

    def _stop(self) -> None:
        if self._retrying is not None:
            self._retrying.cancel()
        asyncio.get_running_loop().remove_reader(self._socket)

    def refuse(self, seconds: float, how: Literal["refused", "full"]) -> str | None:
        """Take no new connection for a time, in scripted seconds.

        A listening socket that is shut down for reading goes back to being closed, and stays bound, so that it can
        listen again later (tcp_disconnect in Linux); closing it would lose the port to whoever asks first. For ``full``
        the queue is made as short as it gets and filled with connections of our own; Linux then drops a client's SYN.

        Returns:
            Why it cannot be done, or nothing where it is.
        """
        if self._window is not None and not self._window.done():
            return "connections are being refused already"
        if how == "full" and not self._own:
            return "the socket belongs to another network namespace, where its queue cannot be filled from here"
        self._stop()
        if how == "refused":
            self._socket.shutdown(socket.SHUT_RD)
        elif not self._fill():
            self._close_fillers()
            self.start()
            return "the queue of the listening socket could not be filled"
        self._journal.append(ConnectionsRefused(at_seconds=self._journal.now(), how=how, seconds=seconds))
        self._window = asyncio.get_running_loop().create_task(self._reopen(seconds))
        return None

    async def _reopen(self, seconds: float) -> None:
        await self._clock.wait(seconds)
        self._close_fillers()
        self.start()
        self._journal.append(ConnectionsTaken(at_seconds=self._journal.now()))

    def _fill(self) -> bool:
        """Fill the queue with connections, and return whether one more was left waiting."""
        self._socket.listen(0)
        for _ in range(_FILLERS_MAX):
            filler = socket.socket(self._socket.family, socket.SOCK_STREAM)
            filler.setblocking(False)
            filler.connect_ex(self._socket.getsockname())
            # A handshake on loopback is over before connect returns, unless the queue has no room for it.
            _, connected, _ = select.select([], [filler], [], 0)
            self._fillers[filler.getsockname()[:2]] = filler
            if not connected:
                return True
        return False

    def _close_fillers(self) -> None:
        for filler in self._fillers.values():
            filler.close()

    def _accept(self) -> None:
        """Take connections that wait; called whenever there is one.

        An error of accept is the network's or the machine's (accept(2)): no file is left, say. It is tried again.
        """
        loop = asyncio.get_running_loop()
        for _ in range(_TAKEN_AT_ONCE):
            try:
                connected, address = self._socket.accept()
            except (BlockingIOError, ConnectionAbortedError):
                return
            except OSError:
                loop.remove_reader(self._socket)
                self._retrying = loop.create_task(self._retry())
                return
            connected.setblocking(False)
            if self._fillers.pop(address[:2], None) is not None:
                connected.close()
                continue
            self._taken.add(connected)
            task = loop.create_task(self._adopt(connected))
            self._adopting.add(task)
            task.add_done_callback(self._adopting.discard)

    async def _retry(self) -> None:
        await self._clock.poll()
        asyncio.get_running_loop().add_reader(self._socket, self._accept)

    async def _adopt(self, connected: socket.socket) -> None:
        self._taken.discard(connected)
        certificate = self._certificate
        context = None if certificate is None else certificate[1].context
        try:
            connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            await asyncio.get_running_loop().connect_accepted_socket(self._factory, connected, ssl=context)
        except (ssl.SSLError, OSError) as error:
            connected.close()
            if certificate is not None:
                self._journal.append(
                    HandshakeFailed(
                        at_seconds=self._journal.now(),
                        certificate=certificate[0],
                        reason=getattr(error, "reason", None) or str(error) or type(error).__name__,
                    )
                )
