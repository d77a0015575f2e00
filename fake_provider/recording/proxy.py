"""The proxy: requests go on to the upstream and its bytes come back as they arrive; what was answered becomes steps.

It listens on loopback and talks to one upstream. Keys are passed on and never kept. It asks the upstream for bodies
without compression, so that what is passed on can be read too. A client that leaves does not end the upstream's reply.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Collection, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import parse_qsl

import httpx

from fake_provider.dialects import DIALECTS, Dialect, RefusedRequestError
from fake_provider.inbound import Garbage, Parsed, RequestReader, Signal
from fake_provider.journal import REDACTED, is_secret, redacted_query
from fake_provider.listener import bound_socket
from fake_provider.recording.answer import Answer, Asked
from fake_provider.recording.script_file import SECRET_CHARACTERS_MIN, without_secrets
from fake_provider.recording.steps import step_of
from fake_provider.requests import ModelRequest, Received
from fake_provider.wire import Framing, SendEnd, SendHead, Transfer, head

HOP_BY_HOP = frozenset(
    {
        "connection",
        "content-length",
        "keep-alive",
        "proxy-connection",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
    }
)
"""Headers that belong to one connection (RFC 9110, section 7.6.1), and the length, which the framing states."""

_NOT_PASSED_ON = HOP_BY_HOP | {"host", "accept-encoding", "expect"}
_READ_BYTES = 64 * 1024
_CONNECT_SECONDS = 30.0


@dataclass(frozen=True, slots=True)
class Recorded:
    """One reply: its dialect, its step, and whether its request offered tools."""

    dialect: str
    step: Any
    has_tools: bool


class Recording:
    """The proxy and what it recorded.

    Args:
        upstream: The upstream's address; a path in it is put before that of each request.
        dialects: Words of ``DIALECTS``; requests of any other are passed on and not recorded.
        tell: Called with a line for people about each recorded reply.
    """

    def __init__(self, upstream: str, dialects: tuple[str, ...], tell: Callable[[str], None]) -> None:
        self._upstream = upstream.rstrip("/")
        self._dialects = tuple(DIALECTS[name] for name in dialects)
        self._tell = tell
        self._count = 0
        self._recorded: dict[int, Recorded] = {}
        self._connections: set[asyncio.Task[None]] = set()

    @property
    def steps(self) -> list[Any]:
        """The steps, in the order in which their requests arrived; a reply that is not over is left out."""
        return [recorded.step for recorded in self._in_order()]

    @property
    def lanes(self) -> dict[str, Any]:
        """The lanes of a script, as data.

        Requests without tools get a lane of their own beside requests with tools: an agent's titles and summaries come
        whenever they come, and would else shift the conversation.
        """
        with_tools = [recorded.step for recorded in self._in_order() if recorded.has_tools]
        without = [recorded.step for recorded in self._in_order() if not recorded.has_tools]
        if not with_tools or not without:
            return {"main": with_tools or without}
        return {"main": with_tools, "without-tools": {"match": {"has_tools": False}, "steps": without}}

    @property
    def dialects(self) -> tuple[str, ...]:
        """The dialects that were recorded, in that order."""
        return tuple(dict.fromkeys(recorded.dialect for recorded in self._in_order()))

    def _in_order(self) -> list[Recorded]:
        return [self._recorded[number] for number in sorted(self._recorded)]

    @property
    def unfinished(self) -> int:
        """How many replies were not over."""
        return self._count - len(self._recorded)

    @asynccontextmanager
    async def listening(self, port: int) -> AsyncIterator[str]:
        """Listen on loopback until the block ends, and give the proxy's address.

        Raises:
            OSError: The port cannot be opened.
            OverflowError: It is no port number.
        """
        timeout = httpx.Timeout(None, connect=_CONNECT_SECONDS)
        async with httpx.AsyncClient(timeout=timeout) as self._client:
            server = await asyncio.start_server(self._connected, sock=bound_socket("127.0.0.1", port))
            async with server:
                yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
                server.close()
                for task in tuple(self._connections):
                    task.cancel()
                await asyncio.gather(*self._connections, return_exceptions=True)

    def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.get_running_loop().create_task(self._serve(reader, writer))
        self._connections.add(task)
        task.add_done_callback(self._connections.discard)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        requests = RequestReader()
        try:
            while True:
                outcome = requests.poll()
                if isinstance(outcome, Parsed):
                    if not await self._pass_on(outcome, _Client(writer, outcome)):
                        return
                elif isinstance(outcome, Garbage):
                    writer.write(head(outcome.status, (("connection", "close"), ("content-length", "0"))))
                    return
                elif outcome is Signal.ENDED:
                    return
                else:
                    if outcome is Signal.WANTS_CONTINUE:
                        writer.write(head(100, ()))
                    requests.feed(await reader.read(_READ_BYTES))
        except ConnectionError:
            # The client is gone, and there is nobody to answer.
            return
        finally:
            writer.close()

    async def _pass_on(self, parsed: Parsed, client: _Client) -> bool:
        """Pass one request on and its reply back; return whether the connection can be used again."""
        received = parsed.received
        dialect = next((one for one in self._dialects if one.claims(received) and one.is_model_request(received)), None)
        if dialect is None:
            return (await self._answered(received, client)).ended and client.reusable
        self._count += 1
        number = self._count
        answer = await self._answered(received, client)
        asked, streamed, has_tools = _asked(dialect, received)
        secrets = _secrets(received)
        # A cut's byte is counted in what is written, so keys go first; again after, for one that came in pieces.
        shown = _without_secrets(answer, secrets)
        step = without_secrets(step_of(shown, dialect.name, asked, streamed=streamed), secrets)
        self._recorded[number] = Recorded(dialect.name, step, has_tools)
        whole = "" if answer.ended else ", broken off"
        self._tell(f"#{number}  {dialect.name}  {answer.status or 'no answer'}  {len(answer.body)} bytes{whole}")
        return answer.ended and client.reusable

    async def _answered(self, received: Received, client: _Client) -> Answer:
        query = f"?{received.query}" if received.query else ""
        headers = {name: value for name, value in received.headers.items() if name not in _NOT_PASSED_ON}
        request = self._client.build_request(
            received.method,
            f"{self._upstream}{received.path}{query}",
            headers={**headers, "accept-encoding": "identity"},
            content=received.body,
        )
        body = bytearray()
        status: int | None = None
        answered: Mapping[str, str] = {}
        try:
            response = await self._client.send(request, stream=True)
            try:
                status, answered = response.status_code, response.headers
                client.begin(response)
                async for piece in response.aiter_raw():
                    body += piece
                    await client.write(piece)
                await client.end()
            finally:
                await response.aclose()
        except httpx.TransportError as error:
            self._tell(f"the upstream broke off: {str(error) or type(error).__name__}")
            return Answer(status, answered, _plain(answered, bytes(body)), ended=False)
        return Answer(status, answered, _plain(answered, bytes(body)))


class _Client:
    """The client's side of one reply; what is written after it left goes nowhere."""

    def __init__(self, writer: asyncio.StreamWriter, parsed: Parsed) -> None:
        self._writer = writer
        self._chunked = parsed.chunked
        self._framing = Framing(keep_alive=parsed.keep_alive, with_body=parsed.received.method != "HEAD", chunked=False)

    @property
    def reusable(self) -> bool:
        """Whether another request may come on this connection."""
        return self._framing.keep_alive

    def begin(self, response: httpx.Response) -> None:
        """Write the head."""
        length = response.headers.get("content-length")
        transfer: Transfer = "length" if length is not None else "chunked" if self._chunked else "until_close"
        headers = tuple((name, value) for name, value in response.headers.multi_items() if name not in HOP_BY_HOP)
        size = None if length is None else int(length)
        self._writer.write(self._framing.encode(SendHead(response.status_code, headers, transfer, size)))

    async def write(self, piece: bytes) -> None:
        """Write a part of the body, and wait until the client takes more."""
        self._writer.write(self._framing.body(piece))
        await self._drained()

    async def end(self) -> None:
        """Write the end of the body."""
        self._writer.write(self._framing.encode(SendEnd()))
        await self._drained()

    async def _drained(self) -> None:
        try:
            await self._writer.drain()
        except ConnectionError:
            # The upstream's reply is still read to its end, so that what is recorded is whole.
            return


def _without_secrets(answer: Answer, secrets: Collection[str]) -> Answer:
    body = answer.body
    for secret in secrets:
        body = body.replace(secret.encode(), REDACTED.encode())
    return replace(answer, body=body)


def _plain(headers: Mapping[str, str], body: bytes) -> bytes:
    """Return a body without compression, which an upstream may use unasked."""
    if "content-encoding" not in headers:
        return body
    try:
        return httpx.Response(200, headers={"content-encoding": headers["content-encoding"]}, content=body).content
    except httpx.DecodingError:
        return body


def _asked(dialect: Dialect, received: Received) -> tuple[Asked, bool, bool]:
    """Return what a reader has to know of the request, whether it asks for a stream, and whether it offers tools."""
    try:
        request: ModelRequest = dialect.decode(received)
    except RefusedRequestError:
        return Asked(""), False, False
    options = request.body.get("stream_options")
    wants_usage = isinstance(options, Mapping) and bool(options.get("include_usage"))
    asked = Asked(request.model, wants_usage or dialect.name != "openai_chat")
    return asked, request.stream, bool(request.tools)


def _secrets(received: Received) -> set[str]:
    """Return the keys of a request, which no step may hold even where the upstream quotes them."""
    values = [value.split()[-1:] for name, value in received.headers.items() if is_secret(name)]
    found = {value for words in values for value in words}
    redacted = dict(parse_qsl(redacted_query(received.query)))
    found |= {value for name, value in parse_qsl(received.query) if redacted.get(name) != value}
    return {value for value in found if len(value) >= SECRET_CHARACTERS_MIN}
