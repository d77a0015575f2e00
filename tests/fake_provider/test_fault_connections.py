"""Faults and connections: what survives on one, how one ends, when none is taken, and how much memory a reply needs."""

from __future__ import annotations

import asyncio
import json
import select
import socket
import tracemalloc

import pytest

from fake_provider.desk import Desk
from fake_provider.exchange import Exchange
from fake_provider.inbound import Parsed
from fake_provider.journal import (
    ConnectionClosed,
    ConnectionOpened,
    ConnectionsRefused,
    ConnectionsTaken,
    FaultFired,
    FaultSkipped,
    Journal,
    ReplyEnded,
)
from fake_provider.requests import Received
from tests.fake_provider.raw_client import STREAMED, WatchedProvider, ask, connected, post, script, serving
from tests.fake_provider.test_fault_table import ASKS_FOR_GZIP, ROWS
from tests.fake_provider.test_wire import narrow, read_on
from tests.fake_provider.wire_reader import request_bytes

REUSABLE = [
    row for row in ROWS if row.end == "open" and "anthropic_messages" in row.dialects and "unasked" not in row.fault
]


async def test_one_connection_outlives_every_fault_that_leaves_the_framing_whole() -> None:
    steps = [step for row in REUSABLE for step in (f"{{{row.step}, fault: {row.fault}}}", "{say: and a good one}")]
    async with serving(f"main: [{', '.join(steps)}]", time_scale=1000) as provider, connected(provider) as connection:
        for number, row in enumerate(REUSABLE):
            await connection.send(request_bytes("anthropic_messages", stream=row.stream, headers=ASKS_FOR_GZIP))
            await provider.seen(ReplyEnded, 2 * number + 1)
            await connection.reader.readexactly(provider.journal.of(ReplyEnded)[-1].bytes)
            # A good reply begins right behind the last byte of the faulty one.
            await connection.send(request_bytes("anthropic_messages", stream=False))
            assert b"and a good one" in (await connection.reply()).body
    assert [entry.complete for entry in provider.journal.of(ReplyEnded)] == [True] * 2 * len(REUSABLE)
    assert len(provider.journal.of(FaultFired)) == len(REUSABLE)
    assert len(provider.journal.of(ConnectionOpened)) == 1


async def test_the_second_request_on_a_connection_that_is_hung_up_on_is_not_read() -> None:
    lanes = "main: [{say: x, fault: {hang_up: {seconds: 1000}}}, {say: y}]"
    async with serving(lanes, time_scale=1000) as provider, connected(provider) as connection:
        await connection.send(post(STREAMED))
        first = await connection.reply()
        await connection.send(post(STREAMED))
        assert await connection.until_end() == b""
        assert (await ask(provider)).events[-1] == "message_stop"
    assert first.events[-1] == "message_stop"
    assert "connection" not in first.headers
    assert [entry.complete for entry in provider.journal.of(ReplyEnded)] == [True, True]


WIDE = "A wide text. " * 2_000


async def received_of_a_reset(settings: str) -> tuple[bytes, WatchedProvider]:
    """Read only after the provider has reset the connection, or while it waits to."""
    steps = f"main: [{{say: '{WIDE}', fault: {{reset: {{event: stop{settings}}}}}}}]"
    async with narrow(steps) as (provider, client):
        await asyncio.get_running_loop().sock_sendall(client, post(STREAMED))
        received = bytearray()
        if settings:
            await provider.seen(ConnectionClosed)
        with pytest.raises(ConnectionResetError):
            await read_on(client, received)
        return bytes(received), provider


async def test_a_waiting_reset_delivers_everything_and_an_abrupt_one_does_not() -> None:
    waited, waiting = await received_of_a_reset("")
    torn, abrupt = await received_of_a_reset(", abrupt: true")
    sizes = [provider.journal.of(ReplyEnded)[0].bytes for provider in (waiting, abrupt)]
    assert len(waited) == sizes[0] == sizes[1]
    assert b"message_delta" in waited
    assert len(torn) < sizes[1] // 2
    assert [entry.kind for entry in abrupt.journal.of(FaultFired)] == ["reset"]


async def test_slow_headers_leave_in_pieces_of_their_size() -> None:
    loop = asyncio.get_running_loop()
    async with serving("main: [{say: x, fault: {slow_headers: {bytes: 5, seconds: 1000}}}]") as provider:
        with socket.socket() as client:
            client.setblocking(False)
            await loop.sock_connect(client, ("127.0.0.1", provider.port))
            await loop.sock_sendall(client, post(STREAMED))
            assert await loop.sock_recv(client, 1_000) == b"HTTP/"
            with pytest.raises(BlockingIOError):
                client.recv(1)
    assert [entry.kind for entry in provider.journal.of(FaultFired)] == ["slow_headers"]


async def test_dribbled_events_leave_in_pieces_of_their_size() -> None:
    loop = asyncio.get_running_loop()
    async with serving("main: [{say: x, fault: {dribble: {event: head, bytes: 6, seconds: 1000}}}]") as provider:
        with socket.socket() as client:
            client.setblocking(False)
            await loop.sock_connect(client, ("127.0.0.1", provider.port))
            await loop.sock_sendall(client, post(STREAMED))
            received = b""
            while not received.endswith(b"6\r\nevent:\r\n"):
                received += await loop.sock_recv(client, 1_000)
            with pytest.raises(BlockingIOError):
                client.recv(1)


async def test_a_window_of_refused_connections_is_seen_and_over_afterwards() -> None:
    lanes = "main: [{fault: {refuse_connections: {seconds: 1000000}}}, {say: x}]"
    async with serving(lanes, time_scale=1_000_000) as provider:
        async with connected(provider) as connection:
            await connection.send(post(STREAMED))
            assert await connection.until_end() == b""
            with socket.socket() as client, pytest.raises(ConnectionRefusedError):
                client.connect(("127.0.0.1", provider.port))
        await provider.seen(ConnectionsTaken)
        assert (await ask(provider)).status == 200
    [refused] = provider.journal.of(ConnectionsRefused)
    assert (refused.how, refused.seconds) == ("refused", 1_000_000)


async def test_a_window_with_a_full_queue_neither_takes_nor_refuses() -> None:
    lanes = "main: [{say: answered, fault: {refuse_connections: {seconds: 1000, how: full, answer: true}}}, {say: x}]"
    async with serving(lanes, time_scale=1_000) as provider:
        async with connected(provider) as connection:
            await connection.send(post(STREAMED))
            assert b"answered" in await connection.until_end()
            with socket.socket() as client:
                client.setblocking(False)
                client.connect_ex(("127.0.0.1", provider.port))
                # On loopback a connection that is taken or refused is so before connect returns.
                assert select.select([], [client], [client], 0) == ([], [], [])
        await provider.seen(ConnectionsTaken)
        assert (await ask(provider)).status == 200


async def test_a_window_inside_a_window_is_skipped_and_said() -> None:
    window = "{say: x, fault: {refuse_connections: {seconds: 1000000}}}"
    async with serving(f"main: [{window}, {window}]") as provider:
        async with connected(provider) as first, connected(provider) as second:
            for connection in (first, second):
                await connection.send(post(STREAMED))
                assert await connection.until_end() == b""
        [skipped] = provider.journal.of(FaultSkipped)
    assert (skipped.request, skipped.reason) == (2, "connections are being refused already")
    assert len(provider.journal.of(FaultFired)) == 1


async def peak_bytes(megabytes: int, *, stream: bool) -> tuple[int, int]:
    """How much memory the provider needed for a reply at the most, and how large the reply was."""
    size = 0
    loop = asyncio.get_running_loop()
    buffer = bytearray(256 * 1024)
    lanes = f"main: [{{say: x, fault: {{huge_reply: {{bytes: {megabytes * 1_000_000}}}}}}}]"
    async with serving(lanes) as provider:
        with socket.socket() as client:
            client.setblocking(False)
            await loop.sock_connect(client, ("127.0.0.1", provider.port))
            await loop.sock_sendall(client, request_bytes("openai_responses", stream=stream, last=True))
            tracemalloc.start()
            try:
                while received := await loop.sock_recv_into(client, buffer):
                    size += received
                return tracemalloc.get_traced_memory()[1], size
            finally:
                tracemalloc.stop()


@pytest.mark.parametrize("stream", [True, False])
async def test_a_reply_ten_times_as_large_needs_no_more_memory(stream: bool) -> None:
    small, small_size = await peak_bytes(2, stream=stream)
    large, large_size = await peak_bytes(20, stream=stream)
    assert (small_size > 2_000_000, large_size > 20_000_000) == (True, True)
    assert large < small + 500_000


class GonePeer:
    """A client that closed its side before the reply began, and whose kernel takes everything all the same."""

    number = 1
    lost = False

    def __init__(self) -> None:
        self.left = asyncio.Event()
        self.left.set()
        self.written = b""

    def write(self, data: bytes) -> None:
        self.written += data

    def cut(self) -> None:
        self.written += b"FIN"

    def reset(self) -> None:
        self.written += b"RST"

    def refuse(self, seconds: float, how: str) -> str | None:
        return None

    async def drained(self) -> None:
        return None

    async def acknowledged(self) -> None:
        return None


async def journal_of_a_client_that_left(fault: str) -> tuple[Journal, bytes]:
    desk = Desk(script(f"main: [{{say: x, fault: {{{fault}}}}}]"), Journal(), (), 1.0)
    headers = {"x-api-key": "k", "anthropic-version": "2023-06-01"}
    received = Received("POST", "/v1/messages", "", headers, json.dumps(STREAMED).encode())
    understood = desk.understand(Parsed(received, chunked=True, keep_alive=True))
    peer = GonePeer()
    await Exchange(desk, peer, desk.admit(understood, 1)).run()
    return desk.journal, peer.written


@pytest.mark.parametrize("fault", ["gzip: {how: corrupt}", "drop_event: {event: text}", "cut: {event: text}"])
async def test_a_strike_that_is_still_to_come_misses_a_client_that_closed_its_side(fault: str) -> None:
    journal, _ = await journal_of_a_client_that_left(fault)
    delivered = fault.startswith("gzip")
    assert len(journal.of(FaultFired)) == delivered
    assert len(journal.of(FaultSkipped)) == (not delivered)


async def test_what_stands_behind_a_strike_in_the_bytes_is_sent_to_a_client_that_closed_its_side() -> None:
    journal, written = await journal_of_a_client_that_left("wrong_content_length: {under: 3}")
    assert [entry.kind for entry in journal.of(FaultFired)] == ["wrong_content_length"]
    assert written.endswith(b'{"type":"message_stop"}\n\nFIN')


@pytest.mark.parametrize("fault", ["no_last_chunk: {}", "informational: {}", "hang_up: {}"])
async def test_what_http_1_0_has_not_is_skipped_and_said(fault: str) -> None:
    async with serving(f"main: [{{say: x, fault: {{{fault}}}}}]") as provider, connected(provider) as connection:
        await connection.send(post(STREAMED).replace(b"HTTP/1.1", b"HTTP/1.0"))
        assert b"message_stop" in await connection.until_end()
    [skipped] = provider.journal.of(FaultSkipped)
    assert skipped.reason.startswith(("the client speaks HTTP/1.0", "the client does not keep the connection"))


@pytest.mark.parametrize(("how", "headers"), [("fine", {}), ("unasked", {"accept-encoding": "gzip, br"})])
async def test_a_coding_that_the_client_did_not_ask_for_in_this_way_is_skipped(
    how: str, headers: dict[str, str]
) -> None:
    async with serving(f"main: [{{say: x, fault: {{gzip: {{how: {how}}}}}}}]") as provider:
        reply = await ask(provider, **headers)
    assert "content-encoding" not in reply.headers
    assert len(provider.journal.of(FaultSkipped)) == 1


async def test_a_tool_id_is_repeated_from_the_call_before() -> None:
    lanes = """
        main:
            - {call: deploy}
            - {call: deploy, fault: {repeated_tool_id: {of: conversation}}}
    """
    async with serving(lanes) as provider:
        first, second = await ask(provider), await ask(provider)
    [call_id] = [line.split(b'"id":"')[1].split(b'"')[0] for line in first.body.split(b"\n") if b"toolu_" in line]
    assert call_id in second.body


async def test_the_first_call_of_a_lane_has_no_id_to_repeat() -> None:
    async with serving("main: [{call: deploy, fault: {repeated_tool_id: {of: conversation}}}]") as provider:
        await ask(provider)
    [skipped] = provider.journal.of(FaultSkipped)
    assert skipped.reason == "no call of this lane came before toolu_010000000000000000000001"


async def test_a_fault_whose_reply_the_dialect_cannot_say_is_skipped_and_said() -> None:
    lanes = "main: [{say: hi, fault: {wrong_stop_reason: {reason: pause_turn}}}]"
    async with serving(lanes) as provider, connected(provider) as connection:
        await connection.send(request_bytes("openai_chat", stream=True, last=True))
        assert b"hi" in await connection.until_end()
    [skipped] = provider.journal.of(FaultSkipped)
    assert skipped.reason == "stop reason 'pause_turn' has no finish reason in openai_chat"


async def test_a_stop_reason_that_makes_no_difference_in_the_dialect_is_skipped_and_said() -> None:
    lanes = "main: [{call: deploy, fault: {wrong_stop_reason: {}}}]"
    async with serving(lanes) as provider, connected(provider) as connection:
        await connection.send(request_bytes("gemini", stream=True, last=True))
        assert b"deploy" in await connection.until_end()
    [skipped] = provider.journal.of(FaultSkipped)
    assert skipped.reason == "it makes no difference to this reply in gemini"
