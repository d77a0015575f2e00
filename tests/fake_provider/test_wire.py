"""What arrives on the wire, byte for byte: undisturbed streams, each fault at its place, and holds."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from fake_provider.dialects import DIALECTS, Served
from fake_provider.hold import Hold
from fake_provider.journal import (
    ClientLeft,
    ConnectionClosed,
    FaultFired,
    FaultSkipped,
    HoldReached,
    HoldReleased,
    HoldSkipped,
    ReplyEnded,
    ReplyStarted,
    RequestReceived,
)
from fake_provider.replies import Reply, Text, ToolUse
from fake_provider.wire import Frame
from tests.fake_provider.raw_client import (
    HELLO,
    STREAMED,
    WatchedProvider,
    ask,
    connected,
    parse_reply,
    post,
    script,
    serving,
)

LONG = "A text of more than sixteen characters."
CALL_EVENTS = [
    "message_start",
    "content_block_start",
    "ping",
    *["content_block_delta"] * 4,
    "content_block_stop",
    "message_delta",
    "message_stop",
]


def frames_of(reply: Reply, tokens: int) -> tuple[Frame, ...]:
    """The frames of the first reply of lane 1 to the first request."""
    served = Served("msg_01" + "0" * 21 + "1", "req_" + "0" * 23 + "1", "asked", tokens, 200_000)
    return DIALECTS["anthropic_messages"].frames(reply, served)


def say_frames(text: str = LONG) -> tuple[Frame, ...]:
    # The messages of the hello request are 32 bytes of compact JSON, which count as 8 tokens.
    return frames_of(Reply((Text(text),), "end_turn"), 8)


async def test_an_undisturbed_stream_is_its_frames_and_the_connection_is_used_again() -> None:
    async with serving(f"main: [{{say: '{LONG}'}}, {{say: again}}]") as provider, connected(provider) as connection:
        await connection.send(post(STREAMED))
        first = await connection.reply()
        await connection.send(post(STREAMED))
        second = await connection.reply()
    assert first.body == b"".join(frame.payload for frame in say_frames())
    assert (
        first.headers.items()
        >= {
            "content-type": "text/event-stream; charset=utf-8",
            "cache-control": "no-cache",
            "request-id": "req_000000000000000000000001",
            "transfer-encoding": "chunked",
        }.items()
    )
    assert b'"text":"again"' in second.body
    assert [entry.complete for entry in provider.journal.of(ReplyEnded)] == [True, True]


async def test_a_missing_stream_field_means_a_whole_message() -> None:
    async with serving("main: [{call: deploy, with: {release: 7}, say: Let me.}]") as provider:
        reply = await ask(provider, HELLO)
    assert reply.headers["content-type"] == "application/json"
    assert reply.json["content"] == [
        {"type": "text", "text": "Let me."},
        {"type": "tool_use", "id": "toolu_010000000000000000000001", "name": "deploy", "input": {"release": 7}},
    ]
    assert reply.json["stop_reason"] == "tool_use"


async def test_a_tool_call_streams_its_input_in_pieces() -> None:
    async with serving("main: [{call: deploy, with: {release: 7000000}}]") as provider:
        reply = await ask(provider)
    assert reply.events == CALL_EVENTS
    assert [line for line in reply.body.split(b"\n") if b"partial_json" in line] == [
        b'data: {"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":"%b"}}'
        % piece
        for piece in (b"", b'{\\"releas', b'e\\": 7000', b"000}")
    ]


@pytest.mark.parametrize("byte", [None, 0, 1, 5, 131])
async def test_cut_ends_the_stream_with_a_fin_at_its_byte(byte: int | None) -> None:
    place = "" if byte is None else f", byte: {byte}"
    lanes = f"main: [{{say: '{LONG}', fault: {{cut: {{event: content_block_delta, nth: 2{place}}}}}}}]"
    async with serving(lanes) as provider, connected(provider) as connection:
        await connection.send(post(STREAMED))
        reply = parse_reply(await connection.until_end())
    frames = say_frames()
    part = frames[4].payload if byte is None else frames[4].payload[:byte]
    assert reply.body == b"".join(frame.payload for frame in frames[:4]) + part
    assert not reply.ended
    [fired] = provider.journal.of(FaultFired)
    assert fired.kind == "cut"
    [ended] = provider.journal.of(ReplyEnded)
    whole = byte is None or byte == len(frames[4].payload)
    assert ended.frames.get("content_block_delta") == (2 if whole else 1)
    assert not ended.complete


def test_the_last_byte_of_the_cut_event_is_one_of_the_cases() -> None:
    assert len(say_frames()[4].payload) == 131


async def test_reset_lets_the_client_read_everything_before_it() -> None:
    lanes = f"main: [{{say: '{LONG}', fault: {{reset: {{event: content_block_delta, nth: 1, byte: 40}}}}}}]"
    async with serving(lanes) as provider:
        loop = asyncio.get_running_loop()
        with socket.socket() as client:
            client.setblocking(False)
            await loop.sock_connect(client, ("127.0.0.1", provider.port))
            await loop.sock_sendall(client, post(STREAMED))
            # Nothing is read before the reset has been sent.
            await provider.seen(ConnectionClosed)
            received = await loop.sock_recv(client, 1_000_000)
            with pytest.raises(ConnectionResetError):
                await loop.sock_recv(client, 1)
    frames = say_frames()
    assert parse_reply(received).body == b"".join(f.payload for f in frames[:3]) + frames[3].payload[:40]
    assert [entry.kind for entry in provider.journal.of(FaultFired)] == ["reset"]


@asynccontextmanager
async def narrow(steps: str, *holds: Hold) -> AsyncIterator[tuple[WatchedProvider, socket.socket]]:
    """A provider and a connected client whose kernels keep only a few kilobytes for each other."""
    listener = socket.socket()
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)
    listener.bind(("127.0.0.1", 0))
    listener.listen()
    provider = WatchedProvider(script(steps), holds)
    async with provider.serving(listener):
        with socket.socket() as client:
            client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            client.setblocking(False)
            await asyncio.get_running_loop().sock_connect(client, ("127.0.0.1", provider.port))
            yield provider, client


async def read_on(client: socket.socket, received: bytearray) -> None:
    """Read until the provider ends the connection."""
    while data := await asyncio.get_running_loop().sock_recv(client, 65_536):
        received += data


def read_what_is_here(client: socket.socket, received: bytearray) -> None:
    """Read without letting anything else run."""
    while data := client.recv(65_536):
        received += data


WIDE = "A wide text. " * 2_000


async def test_reset_waits_until_the_clients_kernel_has_everything() -> None:
    steps = f"main: [{{say: '{WIDE}', fault: {{reset: {{event: message_delta}}}}}}]"
    async with narrow(steps) as (_, client):
        loop = asyncio.get_running_loop()
        await loop.sock_sendall(client, post(STREAMED))
        received = bytearray()
        with pytest.raises(ConnectionResetError):
            await read_on(client, received)
    assert parse_reply(bytes(received)).body == b"".join(frame.payload for frame in say_frames(WIDE)[:-1])


async def test_a_hold_is_reached_when_the_clients_kernel_has_everything() -> None:
    hold = Hold("reply.streaming", event="message_delta")
    async with narrow(f"main: [{{say: '{WIDE}'}}]", hold) as (_, client):
        loop = asyncio.get_running_loop()
        await loop.sock_sendall(client, post(STREAMED))
        received = bytearray()
        reading = asyncio.create_task(read_on(client, received))
        await hold.reached.wait()
        reading.cancel()
        # Nothing of the provider runs in this loop, so what is not here now had not left.
        with pytest.raises(BlockingIOError):
            read_what_is_here(client, received)
    assert parse_reply(bytes(received)).body == b"".join(frame.payload for frame in say_frames(WIDE)[:-1])


async def test_close_answers_nothing_streamed_or_not() -> None:
    async with serving("main: [{fault: close}, {say: x, fault: {close: {}}}]") as provider:
        for body in (STREAMED, HELLO):
            async with connected(provider) as connection:
                await connection.send(post(body))
                assert await connection.until_end() == b""
    assert [entry.kind for entry in provider.journal.of(FaultFired)] == ["close", "close"]
    assert provider.journal.of(ReplyStarted) == ()
    assert [(entry.status, entry.bytes) for entry in provider.journal.of(ReplyEnded)] == [(None, 0)] * 2


async def test_error_event_comes_inside_a_stream_that_ends_properly() -> None:
    lanes = f"main: [{{say: '{LONG}', fault: {{error_event: {{event: content_block_delta, type: api_error}}}}}}]"
    async with serving(lanes) as provider, connected(provider) as connection:
        await connection.send(post(STREAMED))
        reply = await connection.reply()
    error = b'event: error\ndata: {"type":"error","error":{"type":"api_error","message":"Internal server error"}}\n\n'
    assert reply.body == b"".join(frame.payload for frame in say_frames()[:4]) + error
    assert reply.ended
    [ended] = provider.journal.of(ReplyEnded)
    assert ended.complete
    assert "message_stop" not in ended.frames


async def test_a_stall_with_an_end_goes_on_with_the_rest() -> None:
    lanes = f"main: [{{say: '{LONG}', fault: {{stall: {{event: content_block_delta, byte: 9, seconds: 50}}}}}}]"
    async with serving(lanes, time_scale=1000) as provider, connected(provider) as connection:
        await connection.send(post(STREAMED))
        reply = await connection.reply()
    assert reply.body == b"".join(frame.payload for frame in say_frames())
    [fired] = provider.journal.of(FaultFired)
    assert fired.detail == "at byte 9 of content_block_delta number 1, for 50 s"
    assert [entry.complete for entry in provider.journal.of(ReplyEnded)] == [True]


async def test_a_stall_without_an_end_lasts_until_the_client_leaves() -> None:
    lanes = f"main: [{{say: '{LONG}', fault: {{stall: {{event: message_start}}}}}}, {{say: x}}]"
    async with serving(lanes) as provider:
        async with connected(provider) as connection:
            await connection.send(post(STREAMED))
            start = await connection.until(b"\n\n\r\n")
        assert parse_reply(start).events == ["message_start"]
        assert (await ask(provider)).status == 200
    [left] = provider.journal.of(ClientLeft)
    assert (left.request, left.bytes_sent) == (1, len(start))
    assert [entry.complete for entry in provider.journal.of(ReplyEnded)] == [False, True]


async def test_a_stream_fault_on_a_whole_reply_is_skipped_and_said() -> None:
    async with serving("main: [{say: x, fault: {cut: {event: ping}}}]") as provider:
        reply = await ask(provider, HELLO)
    assert reply.json["content"] == [{"type": "text", "text": "x"}]
    [skipped] = provider.journal.of(FaultSkipped)
    assert skipped.kind == "cut"
    assert skipped.reason == "the reply is not streamed, so its only event is 'body' and 'ping' is none"
    assert provider.journal.of(FaultFired) == ()


async def test_a_byte_beyond_an_event_of_unknown_length_is_skipped_when_it_is_known() -> None:
    async with serving("main: [{say: x, fault: {cut: {event: message_start, byte: 9999}}}]") as provider:
        reply = await ask(provider)
    assert reply.events[-1] == "message_stop"
    [skipped] = provider.journal.of(FaultSkipped)
    assert skipped.reason.endswith("so there is no byte 9999")


async def test_a_hold_at_request_received_answers_nothing_until_released() -> None:
    hold = Hold("request.received", nth=2)
    async with serving("main: [overloaded, {say: x}]", hold) as provider:
        assert (await ask(provider)).status == 529
        assert not hold.reached.is_set()
        async with connected(provider) as connection:
            await connection.send(post(STREAMED))
            await hold.reached.wait()
            assert [entry.request for entry in provider.journal.of(RequestReceived)] == [1, 2]
            assert [entry.request for entry in provider.journal.of(ReplyStarted)] == [1]
            hold.release()
            assert (await connection.reply()).status == 200
    assert [type(entry) for entry in provider.journal.entries if isinstance(entry, HoldReached | HoldReleased)] == [
        HoldReached,
        HoldReleased,
    ]


async def test_a_hold_while_streaming_has_sent_everything_up_to_its_event_and_nothing_more() -> None:
    hold = Hold("reply.streaming", event="content_block_delta", event_nth=2)
    async with serving(f"main: [{{say: '{LONG}'}}]", hold) as provider, connected(provider) as connection:
        await connection.send(post(STREAMED))
        await hold.reached.wait()
        # Acknowledged means that it is here already: one read that cannot wait for more sees all of it.
        held = await connection.reader.read(1_000_000)
        assert parse_reply(held).body == b"".join(frame.payload for frame in say_frames()[:5])
        hold.release()
        rest = await connection.until(b"\r\n0\r\n\r\n")
    assert parse_reply(held + rest).body == b"".join(frame.payload for frame in say_frames())


async def test_a_client_that_leaves_ends_a_hold() -> None:
    hold = Hold("reply.streaming")
    async with serving("main: [{say: x}, {say: y}]", hold) as provider:
        async with connected(provider) as connection:
            await connection.send(post(STREAMED))
            await hold.reached.wait()
        assert (await ask(provider)).status == 200
    [left] = provider.journal.of(ClientLeft)
    assert left.request == 1
    assert left.bytes_sent > 0
    assert provider.journal.of(HoldReleased) == ()


async def test_a_hold_counts_its_own_lane_and_begun_replies_only() -> None:
    lanes = """
        side: {match: {model: small}, steps: [{say: title}]}
        main: [overloaded, {fault: close}, {say: first}, {say: second}]
    """
    hold = Hold("reply.streaming", nth=2)
    async with serving(lanes, hold) as provider:
        await ask(provider, {**STREAMED, "model": "small"})
        await ask(provider)
        async with connected(provider) as connection:
            await connection.send(post(STREAMED))
            assert await connection.until_end() == b""
        assert "message_stop" in (await ask(provider)).events
        assert not hold.reached.is_set()
        async with connected(provider) as connection:
            await connection.send(post(STREAMED))
            await hold.reached.wait()
    assert [entry.request for entry in provider.journal.of(HoldReached)] == [5]


@pytest.mark.parametrize(
    ("hold", "body", "reason"),
    [
        (
            Hold("reply.streaming", event="content_block_delta", event_nth=9),
            STREAMED,
            "the reply sends no complete content_block_delta number 9",
        ),
        (Hold("reply.streaming"), HELLO, "the request asked for a reply that is not streamed"),
    ],
)
async def test_a_hold_whose_place_does_not_exist_is_skipped_and_said(hold: Hold, body: object, reason: str) -> None:
    async with serving("main: [{say: x}]", hold) as provider:
        assert (await ask(provider, body)).status == 200
    assert [entry.reason for entry in provider.journal.of(HoldSkipped)] == [reason]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("tool.called",), "unknown hold position 'tool.called'. Allowed: request.received, reply.streaming"),
        (("reply.streaming", "main", 0), "a hold counts from 1, found nth=0, event_nth=1"),
        (("request.received", "main", 1, "ping"), "a hold at request.received has no event: nothing has been sent yet"),
    ],
)
def test_a_hold_refuses_a_place_that_is_none(arguments: tuple[object, ...], message: str) -> None:
    with pytest.raises(ValueError, match="hold") as error:
        Hold(*arguments)  # type: ignore[arg-type]
    assert str(error.value) == message


async def test_the_provider_can_end_while_replies_are_under_way() -> None:
    lanes = "main: [{say: x, fault: {stall: {event: ping}}}, {say: x}]"
    hold = Hold("request.received", nth=2)
    async with serving(lanes, hold) as provider:
        reader, writer = await asyncio.open_connection("127.0.0.1", provider.port)
        writer.write(post(STREAMED))
        await reader.readuntil(b"event: ping")
        _, second = await asyncio.open_connection("127.0.0.1", provider.port)
        second.write(post(STREAMED))
        await hold.reached.wait()
    writer.transport.abort()
    second.transport.abort()
    assert provider.journal.of(ClientLeft) == ()
    assert [entry.complete for entry in provider.journal.of(ReplyEnded)] == [False, False]


def test_a_tool_call_of_a_reply_keeps_its_own_id() -> None:
    frames = frames_of(Reply((ToolUse("deploy", {}, "toolu_mine"),), "tool_use"), 8)
    assert b'"id":"toolu_mine"' in frames[1].payload
