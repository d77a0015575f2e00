"""The server against clients of every kind: polite, impatient, wrong and hostile."""

from __future__ import annotations

import asyncio
import socket
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fake_provider.journal import (
    ClientLeft,
    ConnectionClosed,
    ConnectionOpened,
    GarbageReceived,
    Journal,
    ReplyEnded,
    RequestReceived,
    RequestRefused,
    UnexpectedRequest,
)
from fake_provider.replies import Reply, Text
from fake_provider.script import Lane, Script
from fake_provider.server import Provider, ProviderError
from fake_provider.steps import Step
from tests.fake_provider.property_settings import QUICK
from tests.fake_provider.raw_client import (
    HELLO,
    STREAMED,
    RawReply,
    WatchedProvider,
    ask,
    connected,
    parse_reply,
    post,
    script,
    serving,
)

HI = "main: [{say: hi, times: 9}]"


async def get(provider: Provider, target: str, method: str = "GET") -> RawReply:
    async with connected(provider) as connection:
        headers = "host: p\r\nx-api-key: k\r\nanthropic-version: 2023-06-01\r\nconnection: close"
        await connection.send(f"{method} {target} HTTP/1.1\r\n{headers}\r\n\r\n".encode())
        return parse_reply(await connection.until_end())


async def test_side_endpoints_are_answered_outside_any_lane() -> None:
    async with serving(HI) as provider:
        hello = await get(provider, "/api/hello?x=1")
        head = await get(provider, "/api/hello", "HEAD")
        models = await get(provider, "/v1/models")
        async with connected(provider) as connection:
            await connection.send(post(HELLO, "/v1/messages/count_tokens?beta=true"))
            counted = await connection.reply()
        await ask(provider)
    assert hello.json == {"message": "hello"}
    assert (head.status, head.body, head.headers["content-length"]) == (200, b"", "19")
    assert [model["type"] for model in models.json["data"]] == ["model"] * 3
    assert counted.json == {"input_tokens": 8}
    received = provider.journal.of(RequestReceived)
    assert [(entry.side, entry.lane, entry.step) for entry in received] == [(True, None, None)] * 4 + [
        (False, "main", "say")
    ]


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"{", "The request body is not valid JSON: Input data was truncated"),
        ({"model": "m"}, "messages: Field required"),
        ({**HELLO, "messages": [7]}, "messages.0: Input should be a valid dictionary"),
    ],
)
async def test_count_tokens_refuses_what_has_no_shape(body: Any, message: str) -> None:
    async with serving(HI) as provider, connected(provider) as connection:
        await connection.send(post(body, "/v1/messages/count_tokens"))
        reply = await connection.reply()
    assert (reply.status, reply.json["error"]["message"]) == (400, message)


@pytest.mark.parametrize(
    ("method", "target", "status", "error"),
    [
        ("GET", "/v1/messages", 405, "invalid_request_error"),
        ("DELETE", "/v1/models", 405, "invalid_request_error"),
        ("GET", "/v1/none", 404, "not_found_error"),
        ("POST", "/", 404, "not_found_error"),
    ],
)
async def test_a_wrong_path_or_verb_is_an_error_and_a_side_request(
    method: str, target: str, status: int, error: str
) -> None:
    async with serving(HI) as provider:
        reply = await get(provider, target, method)
    assert (reply.status, reply.json["error"]["type"]) == (status, error)
    assert [entry.side for entry in provider.journal.of(RequestReceived)] == [True]


async def test_an_error_has_the_real_body_and_headers() -> None:
    lanes = """
        main:
          - overloaded
          - status: {code: 429, type: rate_limit_error, message: slow, headers: {Retry-After: "3"}}
          - status: {code: 502, body: "<html>", content_type: text/html}
          - status: {code: 200, body: ""}
          - model_not_found
          - prompt_too_long
    """
    async with serving(lanes) as provider:
        replies = [await ask(provider) for _ in range(6)]
    assert replies[0].status == 529
    assert replies[0].headers["request-id"] == "req_000000000000000000000001"
    assert replies[0].json == {
        "type": "error",
        "error": {"type": "overloaded_error", "message": "Overloaded"},
        "request_id": "req_000000000000000000000001",
    }
    assert (replies[1].status, replies[1].headers["retry-after"]) == (429, "3")
    assert (replies[2].headers["content-type"], replies[2].body) == ("text/html", b"<html>")
    assert (replies[3].status, replies[3].body, replies[3].headers["content-length"]) == (200, b"", "0")
    assert replies[4].json["error"] == {"type": "not_found_error", "message": "model: asked"}
    assert replies[5].json["error"]["message"] == "prompt is too long: 200001 tokens > 200000 maximum"


async def test_a_refused_request_uses_up_no_step() -> None:
    body = {**STREAMED, "messages": [{"role": "assistant", "content": "x "}]}
    async with serving("main: [{say: hi}]") as provider:
        refused = await ask(provider, body)
        shapeless = await ask(provider, b"{")
        accepted = await ask(provider)
    assert refused.json["error"]["message"] == 'messages: first message must use the "user" role'
    assert (shapeless.status, accepted.status) == (400, 200)
    first, second = provider.journal.of(RequestRefused)
    assert first.rules == ("first-role", "final-whitespace")
    assert len(first.problems) == 2
    assert second.rules == ("json",)
    received = provider.journal.of(RequestReceived)
    assert [(entry.lane, entry.step) for entry in received] == [("main", None), (None, None), ("main", "say")]
    assert received[1].body == "{"


async def test_a_request_beyond_the_script_is_an_error_that_says_not_to_retry() -> None:
    async with serving("main: []") as provider:
        reply = await ask(provider)
    assert (reply.status, reply.headers["x-should-retry"]) == (400, "false")
    assert reply.json["error"] == {
        "type": "invalid_request_error",
        "message": "unexpected request 1: the script of lane 'main' is used up (steps: 0)",
    }
    assert [entry.lane for entry in provider.journal.of(UnexpectedRequest)] == ["main"]


async def test_keys_are_kept_out_of_the_journal() -> None:
    async with serving(HI) as provider:
        await ask(provider, STREAMED, **{"x-api-key": "sk-1", "Authorization": "Bearer sk-2", "x-app": "cli"})
    [received] = provider.journal.of(RequestReceived)
    assert (received.headers["x-api-key"], received.headers["authorization"]) == ("[redacted]", "[redacted]")
    assert received.headers["x-app"] == "cli"
    assert not [line for line in provider.journal.lines() if b"sk-" in line]
    assert received.body == STREAMED


async def test_the_same_script_and_requests_give_the_same_bytes() -> None:
    lanes = "main: [{think: hm, say: hi}, {call: a, with: {b: 1}}, overloaded, {insist: {call: c}}, {say: x}]"

    async def run() -> list[bytes]:
        async with serving(lanes) as provider:
            answers = []
            for body in (STREAMED, HELLO, STREAMED, STREAMED, b"["):
                async with connected(provider) as connection:
                    await connection.send(post(body, headers={"connection": "close"}))
                    answers.append(await connection.until_end())
            return answers

    assert await run() == await run()


async def test_requests_sent_ahead_are_answered_in_order() -> None:
    async with serving("main: [{say: a}, {say: b}, {say: c}]") as provider, connected(provider) as connection:
        await connection.send(post(HELLO) * 2 + post(HELLO, headers={"connection": "close"}))
        whole = await connection.until_end()
    texts = [part.split(b'"')[0] for part in whole.split(b'"text":"')[1:]]
    assert texts == [b"a", b"b", b"c"]
    assert len(provider.journal.of(ConnectionOpened)) == 1


async def test_a_client_that_only_ends_its_side_still_gets_its_reply() -> None:
    async with serving(HI) as provider, connected(provider) as connection:
        await connection.send(post(STREAMED))
        connection.writer.write_eof()
        assert parse_reply(await connection.until_end()).events[-1] == "message_stop"


async def test_a_client_that_waits_for_continue_gets_it() -> None:
    request = post(HELLO, headers={"expect": "100-continue"})
    top, _, body = request.partition(b"\r\n\r\n")
    async with serving(HI) as provider, connected(provider) as connection:
        await connection.send(top + b"\r\n\r\n")
        assert await connection.until(b"\r\n\r\n") == b"HTTP/1.1 100 Continue\r\n\r\n"
        assert provider.journal.of(RequestReceived) == ()
        await connection.send(body)
        assert (await connection.reply()).status == 200


async def test_a_client_of_http_1_0_gets_a_body_that_ends_with_the_connection() -> None:
    async with serving(HI) as provider, connected(provider) as connection:
        await connection.send(post(STREAMED).replace(b"HTTP/1.1", b"HTTP/1.0"))
        reply = parse_reply(await connection.until_end())
    assert "transfer-encoding" not in reply.headers
    assert reply.headers["connection"] == "close"
    assert reply.events[-1] == "message_stop"


GARBAGE = [
    (b"\x16\x03\x01\x02\x00", "illegal request line"),
    (b"POST /v1/messages HTTP/1.1\r\nhost: p\r\ncontent-length: x\r\n\r\n", "bad Content-Length"),
    (b"POST / HTTP/1.1\r\nhost: p\r\nx-api-key sk-1\r\n\r\n", "illegal header line"),
    (b"GET / HTTP/1.1\r\n\r\n", "Missing mandatory Host: header"),
    (b"GET / HTTP/1.1\r\nx: " + b"y" * 70_000, "the head, or a line in a chunked body, is over"),
    (b"POST / HTTP/1.1\r\nhost: p\r\ncontent-length: 70000000\r\n\r\n" + b"x" * 68_000_000, "the body is over"),
]


@pytest.mark.parametrize(("data", "reason"), GARBAGE, ids=[reason for _, reason in GARBAGE])
async def test_garbage_is_answered_journalled_and_ends_only_its_own_connection(data: bytes, reason: str) -> None:
    async with serving(HI) as provider, connected(provider) as other:
        await other.send(post(HELLO)[:-1])
        async with connected(provider) as connection:
            connection.writer.write(data)
            await provider.seen(GarbageReceived)
        [garbage] = provider.journal.of(GarbageReceived)
        assert garbage.reason.startswith(reason)
        assert "sk-1" not in garbage.reason
        await other.send(post(HELLO)[-1:])
        assert (await other.reply()).status == 200


async def test_half_a_request_is_journalled_as_garbage() -> None:
    async with serving(HI) as provider:
        for part in (post(HELLO)[:40], post(HELLO)[:-1]):
            async with connected(provider) as connection:
                await connection.send(part)
                connection.writer.write_eof()
                assert (await connection.until_end()).startswith(b"HTTP/1.1 400 ")
        async with connected(provider) as connection:
            connection.writer.write_eof()
            assert await connection.until_end() == b""
        await provider.seen(ConnectionClosed, 3)
    assert [entry.connection for entry in provider.journal.of(GarbageReceived)] == [1, 2]


async def test_a_client_that_leaves_a_large_reply_unread_is_noticed() -> None:
    large = Step("large", Reply((Text("x" * 20_000_000),), "end_turn"))
    steps = (large, *script("main: [{say: hi}]").lanes[0].steps)
    provider = WatchedProvider(Script(("anthropic_messages",), 200_000, (Lane("main", (), steps),)))
    async with provider.listening():
        async with connected(provider) as connection:
            await connection.send(post(HELLO))
            await connection.until(b"\r\n\r\n")
        await provider.seen(ReplyEnded)
        assert (await ask(provider)).status == 200
    [left] = provider.journal.of(ClientLeft)
    assert left.request == 1
    assert [entry.complete for entry in provider.journal.of(ReplyEnded)] == [False, True]


SCRIPT = script("main: [{say: hi, times: 100000}]")


@QUICK
@given(st.lists(st.binary(max_size=60) | st.sampled_from([post(STREAMED), post(HELLO)[:70], b"GET / HTTP/1.1\r\n"])))
def test_no_bytes_end_the_server(pieces: list[bytes]) -> None:
    async def run() -> RawReply:
        async with Provider(SCRIPT).listening() as provider:
            async with connected(provider) as connection:
                for piece in pieces:
                    connection.writer.write(piece)
                    await asyncio.sleep(0)
            async with connected(provider) as connection:
                for piece in pieces:
                    connection.writer.write(piece)
                connection.writer.write_eof()
                await connection.until_end()
            return await ask(provider)

    assert asyncio.run(run()).events[-1] == "message_stop"


async def test_a_handed_over_socket_is_served_and_closed() -> None:
    listener = socket.create_server(("127.0.0.1", 0))
    provider = Provider(script(HI))
    async with provider.serving(listener):
        assert provider.port == listener.getsockname()[1]
        assert provider.url == f"http://127.0.0.1:{provider.port}"
        assert (await ask(provider)).status == 200
    assert listener.fileno() == -1
    with pytest.raises(ProviderError, match="the provider is not listening"):
        _ = provider.url


async def test_ipv6_loopback_has_a_url_with_brackets() -> None:
    async with Provider(script(HI)).listening("::1") as provider:
        assert provider.url == f"http://[::1]:{provider.port}"


@pytest.mark.parametrize(
    ("host", "port", "message"),
    [
        ("0.0.0.0", 0, "host 0.0.0.0 is not loopback; choose 127.0.0.1 or ::1, because anyone could use it"),
        ("example.org", 0, "host example.org is not loopback; choose 127.0.0.1 or ::1, because anyone could use it"),
        (
            "127.0.0.1",
            70000,
            (
                "port 70000 on 127.0.0.1 cannot be opened: it is not a port number; "
                "choose another with --port, or 0 for a free one"
            ),
        ),
    ],
)
async def test_an_address_that_cannot_be_used_is_said(host: str, port: int, message: str) -> None:
    with pytest.raises(ProviderError) as error:
        async with Provider(script(HI)).listening(host, port):
            pass
    assert str(error.value) == message


async def test_a_taken_port_is_said() -> None:
    async with serving(HI) as first:
        with pytest.raises(ProviderError) as error:
            async with Provider(script(HI)).listening(port=first.port):
                pass
        expected = f"port {first.port} on 127.0.0.1 is taken; choose another with --port, or 0 for a free one"
        assert str(error.value) == expected


async def test_a_socket_open_to_the_network_is_refused() -> None:
    with socket.create_server(("0.0.0.0", 0)) as listener, pytest.raises(ProviderError, match="is not loopback"):
        async with Provider(script(HI)).serving(listener):
            pass


async def test_a_failure_inside_the_server_is_raised_at_its_end() -> None:
    def failing(entry: object) -> None:
        if isinstance(entry, RequestReceived):
            raise OSError("the journal is full")

    async def run() -> None:
        provider = Provider(script(HI), journal=Journal(failing))
        async with provider.listening(), connected(provider) as connection:
            await connection.send(post(HELLO))
            assert await connection.until_end() == b""

    with pytest.raises(OSError, match="the journal is full"):
        await run()


def test_a_time_scale_below_zero_is_refused() -> None:
    with pytest.raises(ValueError, match="time_scale is a number above 0, found 0"):
        WatchedProvider(script(HI), time_scale=0)


THINKING = {"type": "enabled", "budget_tokens": 1024}


@pytest.mark.parametrize(
    ("lanes", "status"),
    [
        ("main: [{call: deploy}, {say: Done.}]", 200),
        ("main: [{repeat: {times: 1, steps: [{windowed: {tokens: 99999, steps: [{think: Hm., say: hi}]}}]}}]", 400),
        ("main: [{say: hi}]\nother: {match: {model: x}, steps: [{redacted_thinking: Hm., call: deploy}]}", 400),
    ],
)
async def test_reasoning_is_missed_only_by_a_script_that_reasons(lanes: str, status: int) -> None:
    messages = [
        *HELLO["messages"],
        {"role": "assistant", "content": [{"type": "tool_use", "id": "a", "name": "deploy", "input": {}}]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "a", "content": "ok"}]},
    ]
    async with serving(lanes) as provider:
        reply = await ask(provider, {**STREAMED, "max_tokens": 2048, "thinking": THINKING, "messages": messages})
    assert reply.status == status
    if status == 400:
        assert "must start with a thinking block" in reply.json["error"]["message"]
