"""A steady reply is the reply that any other way gives: the same bytes and the same record."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fake_provider.inbound import Parsed, RequestReader
from fake_provider.journal import Journal, ReplyEnded, ReplyStarted, RequestReceived
from fake_provider.precoded import Precoded, SteadyKey, SteadyReplies
from fake_provider.recall import Recall
from fake_provider.server import Provider
from tests.fake_provider.property_settings import QUICK
from tests.fake_provider.raw_client import HELLO, STREAMED, Connection, connected, parse_reply, post, script, serving

FOREVER = "main: [{say: 'Grüße, and more than one piece of text.', forever: true}]"
CHAT: dict[str, Any] = {"model": "gpt", "messages": [{"role": "user", "content": "hi"}], "stream": True}
RESPONSES: dict[str, Any] = {"model": "gpt", "input": "hi", "stream": True}
GEMINI: dict[str, Any] = {"contents": [{"role": "user", "parts": [{"text": "hi"}]}]}
KEYS = {"authorization": "Bearer sk-fake", "x-goog-api-key": "fake"}
REQUESTS = {
    "anthropic": post(STREAMED),
    "anthropic whole": post(HELLO),
    "chat": post(CHAT, "/v1/chat/completions", KEYS),
    "chat whole": post({**CHAT, "stream": False}, "/v1/chat/completions", KEYS),
    "responses": post(RESPONSES, "/v1/responses", KEYS),
    "responses whole": post({**RESPONSES, "stream": False}, "/v1/responses", KEYS),
    "gemini": post(GEMINI, "/v1beta/models/gemini-pro:streamGenerateContent?alt=sse", KEYS),
    "gemini whole": post(GEMINI, "/v1beta/models/gemini-pro:generateContent", KEYS),
}


async def one_reply(connection: Connection) -> bytes:
    top = await connection.until(b"\r\n\r\n")
    if b"transfer-encoding: chunked" in top:
        return top + await connection.until(b"\r\n0\r\n\r\n")
    length = int(parse_reply(top).headers["content-length"])
    return top + await connection.reader.readexactly(length)


def comparable(entry: msgspec.Struct) -> dict[str, Any]:
    """An entry without what tells one request from the next."""
    fields = msgspec.to_builtins(entry)
    return {name: value for name, value in fields.items() if name not in ("at_seconds", "connection", "request")}


def numbered(reply: bytes, number: int) -> bytes:
    """A reply with the digits of its identifiers, which end in its number, put back to those of the first."""
    return reply.replace(b"%016d" % number, b"%016d" % 1)


@pytest.mark.parametrize("name", REQUESTS)
async def test_the_same_request_gets_the_same_bytes_and_record_however_it_is_answered(name: str) -> None:
    async with serving(FOREVER) as provider, connected(provider) as connection:
        replies = []
        for _ in range(4):
            await connection.send(REQUESTS[name])
            replies.append(await one_reply(connection))
        assert provider.answered_at_once == 2
        entries = provider.journal.entries[1:]
    assert replies[0].startswith(b"HTTP/1.1 200 ")
    for number, reply in enumerate(replies[1:], start=2):
        assert numbered(reply, number) == replies[0]
    for kind in (RequestReceived, ReplyStarted, ReplyEnded):
        first, *others = [comparable(entry) for entry in entries if isinstance(entry, kind)]
        assert others == [first] * 3
    received = [entry for entry in entries if isinstance(entry, RequestReceived)]
    assert [entry.request for entry in received] == [1, 2, 3, 4]


async def test_a_known_head_with_another_body_is_another_request() -> None:
    async with serving(FOREVER) as provider, connected(provider) as connection:
        for model in ("one", "two", "one", "six", "one"):
            await connection.send(post({**HELLO, "model": model}))
            assert json.loads(parse_reply(await one_reply(connection)).body)["model"] == model
        assert provider.answered_at_once == 1


async def test_requests_that_differ_get_the_bytes_that_each_of_them_would_get_alone() -> None:
    bodies = [{**STREAMED, "max_tokens": 64 + number} for number in range(6)]
    bodies += [{**STREAMED, "model": "another"}, {**STREAMED, "messages": [{"role": "user", "content": "longer"}]}]
    async with serving(FOREVER) as provider, connected(provider) as connection:
        together = []
        for body in bodies:
            await connection.send(post(body))
            together.append(await one_reply(connection))
        assert provider.answered_at_once == 4
    for number, (body, reply) in enumerate(zip(bodies, together, strict=True), start=1):
        async with serving(FOREVER) as provider, connected(provider) as connection:
            await connection.send(post(body))
            assert await one_reply(connection) == numbered(reply, number)


async def test_a_refused_request_is_refused_each_time() -> None:
    refused = post({**HELLO, "messages": []})
    async with serving(FOREVER) as provider, connected(provider) as connection:
        replies = []
        for _ in range(3):
            await connection.send(refused)
            replies.append(parse_reply(await one_reply(connection)))
        assert [reply.status for reply in replies] == [400] * 3
        assert provider.answered_at_once == 0


async def test_a_lane_that_is_not_steady_is_played_step_by_step() -> None:
    async with serving("main: [{say: a}, {say: b}, overloaded, {say: c, fault: close}]") as provider:
        said = []
        async with connected(provider) as connection:
            for _ in range(3):
                await connection.send(post(HELLO))
                said.append(parse_reply(await one_reply(connection)))
            await connection.send(post(HELLO))
            assert await connection.until_end() == b""
        assert [reply.json["content"][0]["text"] for reply in said[:2]] == ["a", "b"]
        assert said[2].status == 529
        assert provider.answered_at_once == 0


@QUICK
@given(st.lists(st.sampled_from([post(HELLO), post(STREAMED), post({**HELLO, "model": "x"})]), max_size=6), st.data())
async def test_pieces_and_pipelines_get_the_replies_that_single_requests_get(requests: list[bytes], data: Any) -> None:
    sent = b"".join(requests)
    cuts = sorted(data.draw(st.sets(st.integers(0, len(sent)), max_size=6)))
    pieces = [sent[start:end] for start, end in zip([0, *cuts], [*cuts, len(sent)], strict=True)]
    async with serving(FOREVER) as provider, connected(provider) as connection:
        await connection.send(post(HELLO))
        await one_reply(connection)
        for piece in pieces:
            await connection.send(piece)
        streamed = []
        for request in requests:
            reply = await one_reply(connection)
            streamed.append((b"transfer-encoding: chunked" in reply, request == post(STREAMED)))
        assert all(was == asked for was, asked in streamed)
        assert len(provider.journal.of(RequestReceived)) == len(requests) + 1


def parsed(data: bytes) -> Parsed:
    reader = RequestReader()
    reader.feed(data)
    outcome = reader.poll()
    assert isinstance(outcome, Parsed)
    return outcome


@QUICK
@given(st.lists(st.binary(max_size=20), min_size=1, max_size=20), st.integers(50, 2_000))
def test_what_is_recalled_is_what_would_be_understood_and_is_bounded(bodies: list[bytes], bound: int) -> None:
    recall: Recall[bytes] = Recall(lambda request: request.received.body, total_bytes_max=bound)
    for body in bodies:
        data = post(body)
        found = recall.find(data)
        assert found in (None, body)
        if found is None:
            recall.keep(data, parsed(data), body)
        assert recall.size_bytes <= max(bound, 2 * len(data))


def test_nothing_is_recalled_of_a_request_that_asks_for_more() -> None:
    recall: Recall[str] = Recall(lambda request: "understood")
    chunked = b"POST / HTTP/1.1\r\nhost: p\r\ntransfer-encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n\r\n"
    recall.keep(chunked, parsed(chunked), "first")
    assert recall.find(chunked) == "first"
    assert recall.find(chunked.replace(b"1\r\nx", b"1\r\ny")) is None


async def test_a_lane_that_is_moved_by_hand_does_not_go_on_as_before() -> None:
    lanes = "main: [{say: first, forever: true}]"
    async with serving(lanes) as provider, connected(provider) as connection:
        replies = []
        for number in range(9):
            if number == 4:
                provider.playback.reset()
            if number == 7:
                provider.playback.skip("main")
            await connection.send(post(HELLO))
            replies.append(parse_reply(await one_reply(connection)))
        assert provider.answered_at_once == 2 + 1
        ids = [reply.json["id"][-1] for reply in replies if reply.status == 200]
    assert ids == ["1", "2", "3", "4", "1", "2", "3"]
    assert [reply.status for reply in replies[7:]] == [400, 400]


async def test_a_journal_that_keeps_little_stays_little() -> None:
    provider = Provider(script(FOREVER), journal=Journal(keep=10))
    async with provider.listening(), connected(provider) as connection:
        for _ in range(50):
            await connection.send(post(HELLO))
            await one_reply(connection)
    assert len(provider.journal.entries) == 10
    assert provider.journal.dropped == 1 + 3 * 50 + 1 - 10
    assert provider.journal.since(provider.journal.dropped + 8) == provider.journal.entries[8:]


def test_steady_replies_are_bounded_by_bytes_and_a_large_one_is_none() -> None:
    replies = SteadyReplies(total_bytes_max=1_000)
    for number in range(40):
        key = SteadyKey(0, "main", "d", f"model {number}", False, 1, True, ())
        assert [replies.is_due(key), replies.is_due(key)] == [False, True]
        kept = replies.keep(key, Precoded("main", "say", 200, ((b"x",),), 3, 3, {}, size_bytes=10 * number))
        assert bool(kept.writes) is (number <= 25)
        assert replies.size_bytes <= 1_000


async def test_the_journal_is_in_the_order_of_the_numbers_whatever_way_a_reply_takes() -> None:
    lanes = "{long: {match: {model: long}, steps: [{say: x, times: 1000}]}, main: [{say: y, forever: true}]}"
    slow, fast = post({**HELLO, "model": "long"}), post(HELLO)
    async with serving(lanes) as provider, connected(provider) as one, connected(provider) as other:
        for _ in range(3):
            for connection, request in ((one, slow), (other, fast)):
                await connection.send(request)
                await one_reply(connection)
        for _ in range(20):
            one.writer.write(slow)
            other.writer.write(fast)
            await one_reply(one)
            await one_reply(other)
        entries = provider.journal.entries
    assert provider.answered_at_once > 10
    numbers = [entry.request for entry in entries if isinstance(entry, RequestReceived)]
    assert numbers == sorted(numbers)
    assert [entry.at_seconds for entry in entries] == sorted(entry.at_seconds for entry in entries)
