"""The provider on a real connection against everything that is no proper request, and clients that leave at any byte.

Method: while the bad client is at work, a good one keeps asking; at the end nothing failed inside the provider (its
block would raise), every bad connection is in the journal, and none of its tasks is left.
"""

from __future__ import annotations

import asyncio
import errno
import json
import socket
import ssl
import struct
import tracemalloc
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import Any

import pytest

from fake_provider.connection import AHEAD_BYTES_MAX
from fake_provider.document import parse_document
from fake_provider.inbound import BODY_BYTES_MAX, HEAD_BYTES_MAX, PIECES_AT_ONCE, Garbage, Parsed, RequestReader, Signal
from fake_provider.journal import (
    ClientLeft,
    ConnectionClosed,
    ConnectionOpened,
    GarbageReceived,
    HandshakeFailed,
    ReplyEnded,
    ReplyStarted,
    RequestReceived,
)
from fake_provider.replies import Reply, Text
from fake_provider.script import Lane, Script, parse_script
from fake_provider.server import Provider
from fake_provider.steps import Step
from tests.fake_provider.dialect_requests import NAMES, asking
from tests.fake_provider.raw_client import (
    HELLO,
    STREAMED,
    Connection,
    WatchedProvider,
    connected,
    parse_reply,
    post,
    serving,
)

FOREVER = "main: [{say: hi, forever: true}]"
OTHER = {**HELLO, "model": "neighbour"}
HEADERS = (b"host: p", b"x-api-key: k", b"anthropic-version: 2023-06-01")
BODY = json.dumps(HELLO).encode()


def request(line: bytes, *headers: bytes, body: bytes = b"") -> bytes:
    """Encode a request whose line, headers and body need not fit each other."""
    return b"\r\n".join([line, *HEADERS, *headers]) + b"\r\n\r\n" + body


def chunked(body: bytes) -> bytes:
    """Encode a request with a chunked body that is given raw."""
    return request(b"POST /v1/messages HTTP/1.1", b"transfer-encoding: chunked", body=body)


def with_header(line: bytes) -> bytes:
    """Encode a good request with one more header line."""
    return post(HELLO).replace(b"host:", line + b"\r\nhost:", 1)


def with_text(text: bytes) -> bytes:
    """Encode a good request but for these bytes in its JSON, where a string was."""
    return post(BODY.replace(b'"hi"', text))


def with_number(number: bytes) -> bytes:
    """Encode a good request but for its ``max_tokens``."""
    return post(BODY.replace(b"64", number))


@asynccontextmanager
async def neighbour(provider: Provider) -> AsyncIterator[None]:
    """Keep asking on a connection of its own, and see every reply be right, one of them at least after the block."""
    answered = asyncio.Event()

    async def ask_on() -> None:
        async with connected(provider) as connection:
            while True:
                await connection.send(post(OTHER))
                reply = await connection.reply()
                assert (reply.status, reply.json["model"]) == (200, "neighbour")
                answered.set()

    task = asyncio.create_task(ask_on())
    try:
        await answered.wait()
        yield
        answered.clear()
        await asyncio.wait([task, waiting := asyncio.create_task(answered.wait())], return_when="FIRST_COMPLETED")
        waiting.cancel()
    finally:
        task.cancel()
        [failure] = await asyncio.gather(task, return_exceptions=True)
    assert isinstance(failure, asyncio.CancelledError), failure


@dataclass(frozen=True)
class Bad:
    """What a client sends, the status it gets, and why it is no request, where it is none."""

    sent: bytes
    status: int
    garbage: str | None = None


ILLEGAL = "illegal request line"
CUT_SHORT = "peer closed connection without sending complete message body"
BAD: dict[str, Bad] = {
    "HTTP/0.9": Bad(b"GET /\r\n\r\n", 400, ILLEGAL),
    "HTTP/2 preface": Bad(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 505, "HTTP/2.0 is not spoken here"),
    "HTTP/3.0": Bad(request(b"GET /v1/models HTTP/3.0"), 505, "HTTP/3.0 is not spoken here"),
    "HTTP/1.9": Bad(request(b"GET /api/hello HTTP/1.9"), 200),
    "random bytes": Bad(bytes(range(256)), 400, ILLEGAL),
    "a space first": Bad(b" " + post(HELLO), 400, ILLEGAL),
    "CONNECT": Bad(request(b"CONNECT api.example:443 HTTP/1.1"), 404),
    "TRACE": Bad(request(b"TRACE /v1/messages HTTP/1.1"), 405),
    "a verb in small letters": Bad(request(b"post /v1/messages HTTP/1.1"), 405),
    "a verb of its own": Bad(request(b"BREW /v1/messages HTTP/1.1"), 405),
    "OPTIONS *": Bad(request(b"OPTIONS * HTTP/1.1"), 404),
    "absolute form": Bad(post(HELLO, "http://api.example/v1/messages"), 200),
    "absolute form without a path": Bad(request(b"GET HTTPS://api.example?x=/ HTTP/1.1"), 404),
    "bytes in the target": Bad(request(b"GET /\xff HTTP/1.1"), 400, ILLEGAL),
    "braces in the target": Bad(request(b"GET /{0}{model}%s%00 HTTP/1.1"), 404),
    "no host": Bad(b"GET / HTTP/1.1\r\n\r\n", 400, "Missing mandatory Host: header"),
    "two hosts": Bad(with_header(b"host: other"), 400, "Found multiple Host: headers"),
    "upgrade": Bad(with_header(b"connection: upgrade\r\nupgrade: websocket"), 200),
    "h2c": Bad(with_header(b"connection: upgrade, http2-settings\r\nupgrade: h2c\r\nhttp2-settings: AA"), 200),
    "an expectation of its own": Bad(with_header(b"expect: the unexpected"), 200),
    "folded header": Bad(with_header(b"x-a: 1\r\n 2"), 200),
    "fold first": Bad(b"GET / HTTP/1.1\r\n x: y\r\n\r\n", 400, "continuation line at start of headers"),
    "NUL in a header": Bad(with_header(b"x-a: \0"), 400, "illegal header line"),
    "bytes in a header's name": Bad(with_header(b"x-\xff: 1"), 400, "illegal header line"),
    "bytes in a header's value": Bad(with_header(b"anthropic-beta: \xff\xfe"), 200),
    "15,000 headers": Bad(request(b"GET /v1/models HTTP/1.1", *[b"a:"] * 15_000), 200),
    "only line feeds": Bad(post(HELLO).replace(b"\r\n", b"\n"), 200),
    "empty lines first": Bad(b"\r\n\r\n\n\r" + post(HELLO), 200),
    "two lengths": Bad(with_header(b"content-length: 1"), 400, "conflicting Content-Length headers"),
    "length below zero": Bad(request(b"POST / HTTP/1.1", b"content-length: -1"), 400, "bad Content-Length"),
    "absurd length": Bad(request(b"POST / HTTP/1.1", b"content-length: " + b"9" * 5000), 400, "bad Content-Length"),
    "huge length": Bad(request(b"POST / HTTP/1.1", b"content-length: " + b"9" * 19), 413, "the body is over"),
    "huge length, expecting": Bad(
        request(b"POST / HTTP/1.1", b"content-length: %d" % (BODY_BYTES_MAX + 1), b"expect: 100-continue"),
        413,
        "the body is over",
    ),
    "length and chunks": Bad(with_header(b"transfer-encoding: chunked"), 400, "peer unexpectedly closed connection"),
    "another coding": Bad(with_header(b"transfer-encoding: gzip"), 501, "Only Transfer-Encoding: chunked is supported"),
    "chunk of letters": Bad(chunked(b"zz\r\n"), 400, "illegal chunk header"),
    "chunk below zero": Bad(chunked(b"-2\r\nab\r\n0\r\n\r\n"), 400, "illegal chunk header"),
    "chunk beyond numbers": Bad(chunked(b"f" * 30 + b"\r\n"), 400, "illegal chunk header"),
    "chunk longer than said": Bad(chunked(b"2\r\nabc\r\n0\r\n\r\n"), 400, "malformed chunk footer"),
    "chunk shorter than said": Bad(chunked(b"ff\r\nabc\r\n"), 400, CUT_SHORT),
    "no last chunk": Bad(chunked(b"2\r\nab\r\n"), 400, CUT_SHORT),
    "chunk with extension and trailer": Bad(chunked(b"%x;a=b\r\n%b\r\n0\r\nx: y\r\n\r\n" % (len(BODY), BODY)), 200),
    "a line of a chunked body without end": Bad(chunked(b"1;" + b"x" * 70_000), 431, "the head, or a line"),
    "a target without end": Bad(request(b"GET /" + b"a" * 70_000 + b" HTTP/1.1"), 431, "the head, or a line"),
    "empty body": Bad(post(b""), 400),
    "null": Bad(post(b"null"), 400),
    "a list": Bad(post(b"[]"), 400),
    "deep": Bad(post(b"[" * 100_000 + b"]" * 100_000), 400),
    "deep and cut": Bad(post(b'{"a":' * 100_000), 400),
    "less deep": Bad(post(b'{"messages":' + b"[" * 190 + b"]" * 190 + b"}"), 400),
    "byte order mark": Bad(post(b"\xef\xbb\xbf" + BODY), 400),
    "UTF-16": Bad(post(BODY.decode().encode("utf-16")), 400),
    "invalid UTF-8": Bad(with_text(b'"\xff\xfe"'), 400),
    "overlong UTF-8": Bad(with_text(b'"\xc0\x80"'), 400),
    "half a surrogate pair": Bad(with_text(b'"\\ud800"'), 400),
    "NUL": Bad(with_text(b'"\0"'), 400),
    "escaped NUL": Bad(with_text(b'"\\u0000"'), 200),
    "line breaks in the model": Bad(post({**HELLO, "model": "a\r\nx: y"}), 200),
    "a model beyond Latin": Bad(post({**HELLO, "model": "☃"}), 200),
    "duplicate keys": Bad(post(BODY.replace(b'"model"', b'"model": "first", "model"')), 200),
    "a number of 400 digits": Bad(with_number(b"9" * 400), 200),
    "a number of 5,000 digits": Bad(with_number(b"9" * 5000), 400),
    "1e999": Bad(with_number(b"1e999"), 400),
    "NaN": Bad(with_number(b"NaN"), 400),
    "below zero": Bad(with_number(b"-1"), 400),
    "a fraction": Bad(with_number(b"6.5"), 400),
}


@pytest.mark.parametrize("name", BAD)
async def test_bad_input_is_answered_and_journalled(name: str) -> None:
    bad = BAD[name]
    async with serving(FOREVER) as provider, neighbour(provider):
        async with connected(provider) as connection:
            await connection.send(bad.sent)
            connection.writer.write_eof()
            reply = parse_reply(await connection.until_end())
        await provider.seen(ConnectionClosed)
        entries = [entry for entry in provider.journal.entries if getattr(entry, "connection", None) != 1]
    assert reply.status == bad.status
    assert reply.ended
    garbage = [entry.reason for entry in entries if isinstance(entry, GarbageReceived)]
    if bad.garbage is None:
        assert garbage == []
        assert len([entry for entry in entries if isinstance(entry, RequestReceived)]) == 1
    else:
        assert [reason[: len(bad.garbage)] for reason in garbage] == [bad.garbage]
        assert "k\r\n" not in garbage[0]
    [closed] = [entry for entry in entries if isinstance(entry, ConnectionClosed)]
    assert (closed.unused_bytes > 0) == (bad.garbage is not None)
    assert list(provider.journal.lines())


async def test_every_kind_of_bad_input_leaves_one_connection_after_another_usable() -> None:
    async with serving(FOREVER) as provider, connected(provider) as connection:
        for bad in BAD.values():
            if bad.garbage is None and b"HTTP/1.1" in bad.sent:
                await connection.send(bad.sent)
                assert (await connection.reply()).status == bad.status
        await connection.send(post(HELLO))
        assert (await connection.reply()).status == 200
        assert len(provider.journal.of(ConnectionOpened)) == 1


async def closed_after(provider: WatchedProvider, sent: bytes, *, reset: bool) -> None:
    """Send bytes on a connection of its own and leave, by a FIN or by a RST."""
    count = len(provider.journal.of(ConnectionClosed))
    async with connected(provider) as connection:
        await connection.send(sent)
        leave(connection, reset=reset)
        await provider.seen(ConnectionClosed, count + 1)


def leave(connection: Connection, *, reset: bool) -> None:
    """Close a connection at once, by a FIN, or by a RST as socket(7) says."""
    if reset:
        sock = connection.writer.get_extra_info("socket")
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    connection.writer.transport.abort()


@pytest.mark.parametrize("reset", [False, True], ids=["closed", "reset"])
async def test_a_client_may_leave_at_every_byte_of_a_request(reset: bool) -> None:
    whole = post(STREAMED)
    async with serving(FOREVER) as provider, neighbour(provider):
        for count in range(len(whole)):
            await closed_after(provider, whole[:count], reset=reset)
        closed = provider.journal.of(ConnectionClosed)
        garbage = provider.journal.of(GarbageReceived)
        numbers = {entry.connection for entry in closed}
        received = [entry for entry in provider.journal.of(RequestReceived) if entry.connection in numbers]
    assert len(closed) == len(whole)
    assert {entry.by for entry in closed} == {"client"}
    assert [entry.connection for entry in garbage] == [entry.connection for entry in closed if entry.unused_bytes]
    assert received == []
    if not reset:
        # A RST may overtake what was sent before it.
        assert [entry.unused_bytes for entry in closed] == list(range(len(whole)))


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("reset", [False, True], ids=["closed", "reset"])
async def test_a_client_may_leave_at_every_place_of_a_reply(name: str, reset: bool) -> None:
    lanes = "main: [{say: Hello., fault: {dribble: {bytes: 16, seconds: 1}}, forever: true}]"
    ask = asking(name, stream=True)
    sent = post(ask.body, ask.path, {**ask.headers, "connection": "close"})
    async with serving(lanes, time_scale=100_000) as provider:
        async with connected(provider) as connection:
            await connection.send(sent)
            whole = await connection.until_end()
        places = range(0, len(whole), len(whole) // 24)
        for count, place in enumerate(places, start=1):
            async with connected(provider) as connection:
                await connection.send(sent)
                await connection.reader.readexactly(place)
                leave(connection, reset=reset)
                await provider.seen(ConnectionClosed, count + 1)
    ended = provider.journal.of(ReplyEnded)
    left = {entry.request for entry in provider.journal.of(ClientLeft)}
    assert len(ended) == len(provider.journal.of(RequestReceived)) == len(places) + 1
    # The last bytes may have left before the client did.
    assert left
    assert left == {entry.request for entry in ended if not entry.complete}


async def test_a_client_that_sends_far_ahead_is_seen_leaving_and_its_bytes_are_counted() -> None:
    lanes = "main: [{say: hi, fault: {stall: {event: start}}}, {say: hi, forever: true}]"
    ahead = post(HELLO) * (3 * AHEAD_BYTES_MAX // len(post(HELLO)))
    async with serving(lanes) as provider:
        async with connected(provider) as connection:
            await connection.send(post(STREAMED))
            await provider.seen(ReplyStarted)
            await connection.send(ahead)
        async with neighbour(provider):
            await provider.seen(ConnectionClosed)
    assert [entry.request for entry in provider.journal.of(ClientLeft)] == [1]
    [closed] = [entry for entry in provider.journal.of(ConnectionClosed) if entry.connection == 1]
    assert closed.unused_bytes == len(ahead)


async def test_a_client_that_sends_too_far_ahead_is_answered_as_far_as_was_kept() -> None:
    lanes = "main: [{say: hi, hold: here}, {say: hi, forever: true}]"
    ahead = post({**HELLO, "model": "x" * 100_000}) * 40
    async with serving(lanes) as provider, connected(provider) as connection:
        await connection.send(post(HELLO))
        await provider.named_holds.reached("here")
        await connection.send(ahead)
        provider.named_holds.release("here")
        statuses: list[int] = []
        while not statuses or statuses[-1] == 200:
            statuses.append((await connection.reply()).status)
        assert statuses[-1] == 413
        assert AHEAD_BYTES_MAX // 100_500 <= statuses.count(200) - 1 < 40
    [garbage] = provider.journal.of(GarbageReceived)
    assert garbage.reason == f"more than {AHEAD_BYTES_MAX} bytes were sent ahead of the replies"


async def test_10_megabytes_of_headers_are_refused_and_not_kept() -> None:
    line = b"x-a: " + b"y" * 10_000 + b"\r\n"
    async with serving(FOREVER) as provider, neighbour(provider), connected(provider) as connection:
        tracemalloc.start()
        try:
            await connection.send(b"GET / HTTP/1.1\r\nhost: p\r\n")
            for _ in range(1_000):
                await connection.send(line)
            _, peak_bytes = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
        assert (await connection.reply()).status == 431
        connection.writer.write_eof()
        assert await connection.until_end() == b""
        await provider.seen(ConnectionClosed)
    [closed] = [entry for entry in provider.journal.of(ConnectionClosed) if entry.connection == 2]
    assert closed.unused_bytes > 10_000_000
    assert peak_bytes < 4_000_000


def test_a_body_of_tiny_chunks_is_parsed_in_turns() -> None:
    reader = RequestReader()
    reader.feed(chunked(b"1\r\nx\r\n" * 3 * PIECES_AT_ONCE + b"0\r\n\r\n"))
    outcomes = [reader.poll() for _ in range(4)]
    assert outcomes[:3] == [Signal.HAS_MORE] * 3
    assert isinstance(outcomes[3], Parsed)
    assert outcomes[3].received.body == b"x" * 3 * PIECES_AT_ONCE


async def test_a_slow_body_of_tiny_chunks_comes_together() -> None:
    async with serving(FOREVER) as provider, neighbour(provider), connected(provider) as connection:
        await connection.send(chunked(b""))
        for byte in BODY:
            await connection.send(b"1\r\n%c\r\n" % byte)
        await connection.send(b"0\r\n\r\n")
        assert (await connection.reply()).status == 200


@pytest.mark.parametrize("extra_bytes", [0, 1])
@pytest.mark.parametrize("pieces", [1, 7])
def test_the_largest_head_is_the_same_in_whatever_pieces_it_comes(extra_bytes: int, pieces: int) -> None:
    head = request(b"GET / HTTP/1.1", b"x: ")
    head = head.replace(b"x: ", b"x: " + b"y" * (HEAD_BYTES_MAX + extra_bytes - len(head)))
    reader = RequestReader()
    size = len(head) // pieces + 1
    for start in range(0, len(head), size):
        assert reader.poll() is Signal.NEEDS_DATA
        reader.feed(head[start : start + size])
    outcome = reader.poll()
    if extra_bytes:
        assert isinstance(outcome, Garbage)
        assert outcome.status == 431
    else:
        assert isinstance(outcome, Parsed)


async def test_an_option_to_close_counts_in_any_of_several_headers() -> None:
    async with serving(FOREVER) as provider, connected(provider) as connection:
        await connection.send(with_header(b"connection: x, Close\r\nconnection: keep-alive"))
        assert parse_reply(await connection.until_end()).headers["connection"] == "close"
        async with connected(provider) as other:
            await other.send(with_header(b"connection: not-closed"))
            assert "connection" not in (await other.reply()).headers


def client_hello() -> bytes:
    """The first bytes of a TLS client."""
    outgoing = ssl.MemoryBIO()
    tls = ssl.create_default_context().wrap_bio(ssl.MemoryBIO(), outgoing, server_hostname="localhost")
    with pytest.raises(ssl.SSLWantReadError):
        tls.do_handshake()
    return outgoing.read()


async def test_tls_on_the_plain_port_is_garbage() -> None:
    async with serving(FOREVER) as provider, neighbour(provider), connected(provider) as connection:
        await connection.send(client_hello())
        assert (await connection.reply()).status == 400
        assert [entry.reason for entry in provider.journal.of(GarbageReceived)] == [ILLEGAL]


async def test_anything_but_tls_on_the_tls_port_is_a_failed_handshake() -> None:
    provider = WatchedProvider(loaded("listen: {tls: self_signed}\nlanes: {main: [{say: hi, forever: true}]}"))
    async with provider.listening():
        for count, sent in enumerate((post(HELLO), b"\x16\x03\x01", client_hello()[:-1], b""), start=1):
            async with connected(provider) as connection:
                await connection.send(sent)
                connection.writer.write_eof()
                assert b"HTTP/" not in await connection.until_end()
            await provider.seen(HandshakeFailed, count)
    assert provider.journal.of(ConnectionOpened) == ()


def loaded(text: str) -> Script:
    """Read a whole script from YAML text."""
    return parse_script(parse_document(text, "script.yaml"))


LARGE = {**HELLO, "model": "large"}
IN_THE_MIDDLE = (b"", post(HELLO)[:20], post(HELLO)[:-1], chunked(b"5\r\na"), b"\0", post(STREAMED), post(LARGE))
LANES = """
lanes:
  stalled: {match: {model: asked}, steps: [{say: hi, fault: {stall: {event: start}}, forever: true}]}
  large: [{say: hi}, {say: hi}]
"""


def stalled_or_large(listen: str) -> Script:
    """A script whose replies stall, or are too large for the kernel."""
    script = loaded(f"{listen}{LANES}")
    large = Step("large", Reply((Text("x" * 8_000_000),), "end_turn"))
    return replace(script, lanes=(script.lanes[0], Lane("large", (), (large,) * 20)))


async def test_140_half_open_clients_do_not_keep_the_provider_from_ending() -> None:
    provider = WatchedProvider(stalled_or_large(""))
    before = asyncio.all_tasks()
    connections = []
    async with provider.listening():
        for sent in IN_THE_MIDDLE * 20:
            connections.append(Connection(*await asyncio.open_connection("127.0.0.1", provider.port)))
            await connections[-1].send(sent)
        await provider.seen(ReplyStarted, 40)
        await provider.seen(GarbageReceived, 20)
    closed = provider.journal.of(ConnectionClosed)
    assert sorted(entry.connection for entry in closed) == list(range(1, 141))
    assert {entry.by for entry in closed} == {"provider"}
    assert [entry.complete for entry in provider.journal.of(ReplyEnded)] == [False] * 40
    for connection in connections:
        connection.writer.transport.abort()
    await provider.watched.settled()
    assert asyncio.all_tasks() == before


async def test_half_open_tls_clients_do_not_keep_the_provider_from_ending() -> None:
    provider = WatchedProvider(stalled_or_large("listen: {tls: self_signed}"))
    trusting = ssl.create_default_context()
    trusting.check_hostname, trusting.verify_mode = False, ssl.CERT_NONE
    connections = []
    async with provider.listening():
        for sent in IN_THE_MIDDLE:
            streams = await asyncio.open_connection("127.0.0.1", provider.port, ssl=trusting)
            connections.append(Connection(*streams))
            await connections[-1].send(sent)
        for sent in (b"", client_hello()[:9], client_hello()):
            connections.append(Connection(*await asyncio.open_connection("127.0.0.1", provider.port)))
            await connections[-1].send(sent)
        await provider.seen(ReplyStarted, 2)
    assert len(provider.journal.of(ConnectionClosed)) == len(IN_THE_MIDDLE)
    for connection in connections:
        connection.writer.transport.abort()


@pytest.mark.parametrize("turns", range(7))
async def test_clients_that_come_while_the_provider_ends_leave_nothing_behind(turns: int) -> None:
    provider = WatchedProvider(loaded(f"lanes: {{{FOREVER}}}"))
    before = asyncio.all_tasks()
    async with provider.listening():
        clients = [socket.create_connection(("127.0.0.1", provider.port)) for _ in range(10)]
        for _ in range(turns):
            await asyncio.sleep(0)
    count = len(provider.journal.of(ConnectionClosed))
    for client in clients:
        client.close()
    for _ in range(10):
        await asyncio.sleep(0)
    await provider.watched.settled()
    assert asyncio.all_tasks() == before
    assert len(provider.journal.of(ConnectionOpened)) == len(provider.journal.of(ConnectionClosed)) == count


class Exhausted(socket.socket):
    """A listening socket on a machine that has no file left for a while."""

    refusals = 3

    def accept(self) -> tuple[socket.socket, Any]:
        if self.refusals:
            self.refusals -= 1
            raise OSError(errno.EMFILE, "too many open files")
        return super().accept()


async def test_a_machine_without_files_makes_clients_wait_and_not_the_provider_deaf() -> None:
    listener = Exhausted()
    listener.bind(("127.0.0.1", 0))
    provider = Provider(loaded(f"lanes: {{{FOREVER}}}"))
    async with provider.serving(listener), connected(provider) as connection:
        await connection.send(post(HELLO))
        assert (await connection.reply()).status == 200
    assert listener.refusals == 0
