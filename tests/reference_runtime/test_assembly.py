"""Assembling a reply: the same message however its bytes are cut, and never a tool call from half of one (B1)."""

import json
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reference_runtime.assembly import (
    EventDecoder,
    MalformedReplyError,
    MessageAssembler,
    ProviderErrorEvent,
    Reply,
    reply_of_body,
)
from tests.reference_runtime.parts import message_events, sse, start_event, text_block, tool_block
from tests.reference_runtime.property_settings import QUICK

CALL = tool_block("t1", "Write", {"file_path": "é.txt", "content": "a\nb"})
WHOLE = sse(*message_events(text_block("Héllo"), CALL, stop_reason="tool_use"))


def assemble(*chunks: bytes) -> MessageAssembler:
    decoder, assembler = EventDecoder(), MessageAssembler()
    for chunk in chunks:
        for event in decoder.feed(chunk):
            assembler.take(event)
    return assembler


@QUICK
@given(cuts=st.lists(st.integers(0, len(WHOLE)), max_size=6))
def test_where_the_bytes_are_cut_does_not_matter(cuts: list[int]) -> None:
    places = [0, *sorted(cuts), len(WHOLE)]
    assembler = assemble(*(WHOLE[a:b] for a, b in pairwise(places)))
    assert assembler.complete
    reply = assembler.reply()
    assert reply.blocks == (text_block("Héllo"), CALL)
    assert (reply.text, reply.stop_reason, reply.broken) == ("Héllo", "tool_use", frozenset())
    assert reply.usage == {"input_tokens": 3, "output_tokens": 7}


def test_no_beginning_of_a_stream_is_a_message() -> None:
    last_event = WHOLE.rindex(b"\n\n") + 2
    for end in range(last_event):
        assert not assemble(WHOLE[:end]).complete, end


@pytest.mark.parametrize("text", ['{"command": "rm -rf /', '{"command"', "[1]", '"text"', "nonsense"])
def test_an_input_that_is_no_object_is_broken_and_empty(text: str) -> None:
    reply = assemble(sse(*message_events(tool_block("t1", "Bash", text)))).reply()
    assert reply.broken == {0}
    assert reply.blocks[0]["input"] == {}


def test_a_call_without_arguments_is_whole() -> None:
    reply = assemble(sse(*message_events(tool_block("t1", "status", "")))).reply()
    assert (reply.blocks[0]["input"], reply.broken) == ({}, frozenset())


def test_carriage_returns_comments_pings_and_unknown_events_are_passed_over() -> None:
    noise = b': hello\r\n\r\nevent: ping\r\ndata: {"type": "ping"}\r\n\r\ndata: {"type": "from_the_future"}\r\n\r\n'
    assert assemble(noise + WHOLE.replace(b"\n", b"\r\n") + noise).reply().text == "Héllo"


@pytest.mark.parametrize(
    "events",
    [
        [{"type": "content_block_start", "index": 0, "content_block": {"type": "text"}}],
        [{"type": "message_stop"}],
        [start_event(), {"type": "message_stop"}],
        [start_event(), {"type": "content_block_delta", "index": 4, "delta": {"type": "text_delta", "text": ""}}],
        [start_event(), {"type": "content_block_start", "index": 0}],
        [{"type": "message_start"}],
    ],
)
def test_events_out_of_place_are_malformed(events: list[dict[str, Any]]) -> None:
    with pytest.raises(MalformedReplyError):
        assemble(sse(*events))


@pytest.mark.parametrize("data", [b"data: {\n\n", b"data: [1]\n\n", b"data: {}\n\n", b'data: {"type": 1}\n\n'])
def test_data_that_is_no_event_is_malformed(data: bytes) -> None:
    with pytest.raises(MalformedReplyError):
        assemble(data)


def test_an_error_event_is_the_providers_word() -> None:
    error = {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}
    with pytest.raises(ProviderErrorEvent, match="Overloaded") as raised:
        assemble(sse(start_event(), error))
    assert raised.value.error_type == "overloaded_error"


@QUICK
@given(st.binary(max_size=200))
def test_random_bytes_are_never_a_message(noise: bytes) -> None:
    try:
        assert not assemble(noise, b"\n\n").complete
    except (MalformedReplyError, ProviderErrorEvent):
        return


def body(**changes: Any) -> bytes:
    message = {"type": "message", "model": "m", "content": [text_block("x")], "stop_reason": "end_turn", "usage": {}}
    return json.dumps({**message, **changes}).encode()


def test_a_body_is_a_message() -> None:
    reply = reply_of_body(body(content=[text_block("x"), {"type": "tool_use", "id": "a", "name": "B", "input": "x"}]))
    assert isinstance(reply, Reply)
    assert (reply.text, reply.broken, reply.blocks[1]["input"]) == ("x", frozenset({1}), {})


@pytest.mark.parametrize(
    "broken",
    [
        b"",
        b"<html>",
        b"[]",
        b"null",
        body(content=None),
        body(stop_reason=None),
        body(content=[{"type": "text"}]),
        body(content=[{"type": "tool_use", "input": {}}]),
        body(content=["x"]),
    ],
)
def test_a_body_that_is_no_message_is_malformed(broken: bytes) -> None:
    with pytest.raises(MalformedReplyError):
        reply_of_body(broken)
