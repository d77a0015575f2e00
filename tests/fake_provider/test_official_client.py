"""The official Anthropic client against the whole provider: on a real connection, with its retries and with faults."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from types import ModuleType
from typing import Any

import pytest

from fake_provider.dialects.anthropic_rules import signature_of
from fake_provider.journal import RequestReceived, RequestRefused
from fake_provider.replies import Block, Text, Thinking, ToolUse
from fake_provider.server import Provider
from tests.fake_provider.raw_client import HELLO, serving


@asynccontextmanager
async def client_of(anthropic: ModuleType, provider: Provider, **options: Any) -> AsyncIterator[Any]:
    """The official client, pointed at a provider and with its own retries off."""
    settings = {"base_url": provider.url, "api_key": "sk-ant-scripted", "max_retries": 0, **options}
    async with anthropic.AsyncAnthropic(**settings) as client:
        yield client


async def final_message(client: Any, **request: Any) -> Any:
    """Stream one reply and return the message that the client put together."""
    async with client.messages.stream(**{**HELLO, **request}) as stream:
        return await stream.get_final_message()


def blocks_read(message: Any) -> list[Block]:
    """The neutral blocks of a message of the client."""
    found: list[Block] = []
    for block in message.content:
        if block.type == "text":
            found.append(Text(block.text))
        elif block.type == "thinking":
            found.append(Thinking(block.thinking, block.signature))
        else:
            found.append(ToolUse(block.name, block.input, block.id))
    return found


EVERY_KIND = """
main:
  - &reply
    reply:
      blocks:
        - thinking: I should look at the weather before I answer.
        - text: Let me look at the weather in several cities.
        - tool_use: {name: weather, input: {cities: [Kraków, 北京], unit: c}, id: toolu_a}
        - tool_use: {name: clock, id: toolu_b}
      usage: {input_tokens: 11, output_tokens: 22, cache_read_input_tokens: 33, cache_creation_input_tokens: 44}
      model: served
  - *reply
"""


@pytest.mark.parametrize("streamed", [True, False])
async def test_every_kind_of_block_arrives_as_written(anthropic: ModuleType, streamed: bool) -> None:
    async with serving(EVERY_KIND) as provider, client_of(anthropic, provider) as client:
        message = await (final_message(client) if streamed else client.messages.create(**HELLO))
    thought = "I should look at the weather before I answer."
    assert blocks_read(message) == [
        Thinking(thought, signature_of(thought, "served")),
        Text("Let me look at the weather in several cities."),
        ToolUse("weather", {"cities": ["Kraków", "北京"], "unit": "c"}, "toolu_a"),
        ToolUse("clock", {}, "toolu_b"),
    ]
    assert (message.stop_reason, message.model, message.id) == ("tool_use", "served", "msg_010000000000000000000001")
    usage = message.usage
    assert (usage.input_tokens, usage.output_tokens) == (11, 22)
    assert (usage.cache_read_input_tokens, usage.cache_creation_input_tokens) == (33, 44)


async def test_a_tool_round_trip_and_returned_thinking_are_accepted(anthropic: ModuleType) -> None:
    lanes = "main: [{think: hm, say: Looking., call: weather, with: {city: Oslo}}, {say: Cold.}]"
    async with serving(lanes) as provider, client_of(anthropic, provider) as client:
        first = await final_message(client)
        answer = {"type": "tool_result", "tool_use_id": first.content[2].id, "content": "-3"}
        history = [
            *HELLO["messages"],
            {"role": "assistant", "content": [block.model_dump(exclude_none=True) for block in first.content]},
            {"role": "user", "content": [answer]},
        ]
        assert blocks_read(await final_message(client, messages=history)) == [Text("Cold.")]
        history[1]["content"][0]["thinking"] = "changed"
        with pytest.raises(anthropic.BadRequestError, match="cannot be modified"):
            await final_message(client, messages=history)
    assert [entry.rules for entry in provider.journal.of(RequestRefused)] == [("thinking-unmodified",)]


async def test_the_clients_own_retries_honour_retry_after(anthropic: ModuleType) -> None:
    step = 'status: {code: 529, headers: {retry-after-ms: "1"}}'
    lanes = f"main: [{{{step}, times: 2}}, {{say: hi}}]"
    async with serving(lanes) as provider, client_of(anthropic, provider, max_retries=2) as client:
        assert blocks_read(await final_message(client)) == [Text("hi")]
    counts = [entry.headers["x-stainless-retry-count"] for entry in provider.journal.of(RequestReceived)]
    assert counts == ["0", "1", "2"]


async def test_an_unexpected_request_is_not_retried_by_the_client(anthropic: ModuleType) -> None:
    async with serving("main: []") as provider, client_of(anthropic, provider, max_retries=2) as client:
        with pytest.raises(anthropic.BadRequestError, match="unexpected request 1"):
            await final_message(client)
    assert len(provider.journal.of(RequestReceived)) == 1


async def test_an_error_event_is_raised_as_its_type(anthropic: ModuleType) -> None:
    lanes = "main: [{say: hi, fault: {error_event: {event: content_block_delta}}}]"
    async with serving(lanes) as provider, client_of(anthropic, provider) as client:
        with pytest.raises(anthropic.APIStatusError) as raised:
            await final_message(client)
    assert raised.value.body["error"] == {"type": "overloaded_error", "message": "Overloaded"}


@pytest.mark.parametrize("fault", ["close", "cut: {event: content_block_stop}", "reset: {event: content_block_stop}"])
async def test_a_broken_connection_is_an_error_and_no_message(anthropic: ModuleType, fault: str) -> None:
    step = f"{{say: hi, fault: {'close' if fault == 'close' else '{' + fault + '}'}}}"
    async with serving(f"main: [{step}]") as provider, client_of(anthropic, provider) as client:
        # The client wraps a failure to begin in its own error, and lets one in the middle of a stream through.
        with pytest.raises(Exception, match=r"Connection error|peer closed connection|^$") as raised:
            await final_message(client)
    assert type(raised.value).__name__ in ("APIConnectionError", "RemoteProtocolError", "ReadError")
