"""A client that shows bytes as they are: raw requests over asyncio streams, and the pieces of raw replies."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from fake_provider.document import parse_document
from fake_provider.hold import Hold
from fake_provider.journal import AnyEntry, Entry, Journal
from fake_provider.script import Script, parse_lanes
from fake_provider.server import Provider

HELLO: dict[str, Any] = {"model": "asked", "max_tokens": 64, "messages": [{"role": "user", "content": "hi"}]}
STREAMED = {**HELLO, "stream": True}


def script(text: str, window_tokens: int = 200_000) -> Script:
    """Read lanes from YAML text."""
    return parse_lanes(parse_document(text, "script.yaml"), window_tokens=window_tokens)


class WatchedJournal(Journal):
    """A journal that a test can wait on."""

    def __init__(self) -> None:
        self._changed = asyncio.Condition()
        self._notices: set[asyncio.Task[None]] = set()
        super().__init__(self._notice)

    def _notice(self, entry: AnyEntry) -> None:
        task = asyncio.get_running_loop().create_task(self._wake())
        self._notices.add(task)
        task.add_done_callback(self._notices.discard)

    async def _wake(self) -> None:
        async with self._changed:
            self._changed.notify_all()

    async def seen(self, kind: type[Entry], count: int = 1) -> None:
        """Wait until there are so many entries of a kind."""
        async with self._changed:
            await self._changed.wait_for(lambda: len(self.of(kind)) >= count)

    async def settled(self) -> None:
        """Wait until nothing more is being told to those who wait."""
        await asyncio.gather(*self._notices)


@asynccontextmanager
async def serving(text: str, *holds: Hold, time_scale: float = 1.0) -> AsyncIterator[WatchedProvider]:
    """Serve lanes given as YAML text on a free port."""
    provider = WatchedProvider(script(text), holds, time_scale)
    async with provider.listening():
        yield provider


class WatchedProvider(Provider):
    """A provider with a journal that a test can wait on."""

    def __init__(self, script: Script, holds: Sequence[Hold] = (), time_scale: float = 1.0) -> None:
        self.watched = WatchedJournal()
        super().__init__(script, journal=self.watched, holds=holds, time_scale=time_scale)

    async def seen(self, kind: type[Entry], count: int = 1) -> None:
        """Wait until the journal has so many entries of a kind."""
        await self.watched.seen(kind, count)


CLIENT_HEADERS = {"x-api-key": "sk-ant-fake", "anthropic-version": "2023-06-01"}
"""What every client of the Messages API sends; without it a request is refused."""


def post(body: Any, path: str = "/v1/messages", headers: Mapping[str, str] | None = None) -> bytes:
    """Encode a POST request; bytes are sent as they are, anything else as JSON."""
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    lines = [f"POST {path} HTTP/1.1", "host: provider", f"content-length: {len(data)}"]
    lines += [f"{name}: {value}" for name, value in {**CLIENT_HEADERS, **(headers or {})}.items()]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + data


@dataclass(frozen=True)
class RawReply:
    """A reply's parts: status, headers with names in lower case, and the body de-chunked as far as it came.

    ``ended`` says whether the body ended by HTTP's own rules; ``rest`` is what came after that end.
    """

    status: int
    headers: dict[str, str]
    body: bytes
    ended: bool
    rest: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def events(self) -> list[str]:
        """The names of all events whose last byte came."""
        blocks = self.body.split(b"\n\n")[:-1]
        return [block.split(b"\n")[0].removeprefix(b"event: ").decode() for block in blocks]


def parse_reply(data: bytes) -> RawReply:
    """Take a reply apart."""
    top, _, body = data.partition(b"\r\n\r\n")
    lines = top.decode("latin-1").split("\r\n")
    headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in lines[1:])}
    status = int(lines[0].split(" ")[1])
    if headers.get("transfer-encoding") != "chunked":
        length = int(headers.get("content-length", len(body)))
        return RawReply(status, headers, body[:length], len(body) >= length, body[length:])
    whole = b""
    while body:
        size, _, following = body.partition(b"\r\n")
        count = int(size, 16)
        if count == 0:
            return RawReply(status, headers, whole, ended=True, rest=following[2:])
        whole += following[:count]
        body = following[count + 2 :]
    return RawReply(status, headers, whole, ended=False, rest=b"")


class Connection:
    """One connection to a provider."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer

    async def send(self, data: bytes) -> None:
        self.writer.write(data)
        await self.writer.drain()

    async def until(self, mark: bytes) -> bytes:
        """Read up to and including some bytes."""
        return await self.reader.readuntil(mark)

    async def until_end(self) -> bytes:
        """Read until the provider closes."""
        return await self.reader.read()

    async def reply(self) -> RawReply:
        """Read one reply that ends properly, and leave the connection open."""
        data = await self.reader.readuntil(b"\r\n\r\n")
        if b"transfer-encoding: chunked" in data:
            return parse_reply(data + await self.reader.readuntil(b"\r\n0\r\n\r\n"))
        length = int(parse_reply(data).headers.get("content-length", "0"))
        return parse_reply(data + await self.reader.readexactly(length))


@asynccontextmanager
async def connected(provider: Provider) -> AsyncIterator[Connection]:
    """Open a connection and close it at the end of the block."""
    reader, writer = await asyncio.open_connection("127.0.0.1", provider.port)
    try:
        yield Connection(reader, writer)
    finally:
        writer.transport.abort()


async def ask(provider: Provider, body: Any = None, **headers: str) -> RawReply:
    """Send one request on a connection of its own, and read until the provider closes."""
    async with connected(provider) as connection:
        await connection.send(post(STREAMED if body is None else body, headers={"connection": "close", **headers}))
        return parse_reply(await connection.until_end())
