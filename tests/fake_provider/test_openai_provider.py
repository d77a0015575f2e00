"""The official OpenAI client against the whole provider: on a real connection, in both dialects, with faults."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import openai
import pytest

from fake_provider.journal import RequestReceived, RequestRefused
from fake_provider.server import Provider
from tests.fake_provider.raw_client import serving

CHAT: dict[str, Any] = {"model": "asked", "messages": [{"role": "user", "content": "hi"}]}
RESPONSES: dict[str, Any] = {"model": "asked", "input": "hi"}


@asynccontextmanager
async def client_of(provider: Provider, prefix: str = "/v1", **options: Any) -> AsyncIterator[openai.AsyncOpenAI]:
    """The official client, pointed at a provider and with its own retries off."""
    settings = {"base_url": f"{provider.url}{prefix}", "api_key": "sk-scripted", "max_retries": 0, **options}
    async with openai.AsyncOpenAI(**settings) as client:
        yield client


async def completion(client: openai.AsyncOpenAI, **request: Any) -> Any:
    """The completion that the client put together from a stream."""
    async with client.chat.completions.stream(**{**CHAT, **request}) as stream:
        return await stream.get_final_completion()


async def response(client: openai.AsyncOpenAI, **request: Any) -> Any:
    """The response that the client put together from a stream."""
    async with client.responses.stream(**{**RESPONSES, **request}) as stream:
        return await stream.get_final_response()


@pytest.mark.parametrize("prefix", ["/v1", ""])
async def test_one_script_answers_both_dialects(prefix: str) -> None:
    lanes = "main: [{say: Hello from the script., forever: true}]"
    async with serving(lanes) as provider, client_of(provider, prefix) as client:
        streamed = await completion(client)
        whole = await client.chat.completions.create(**CHAT)
        made = await response(client)
        created = await client.responses.create(**RESPONSES)
        models = [model.id async for model in client.models.list()]
    assert streamed.choices[0].message.content == whole.choices[0].message.content == "Hello from the script."
    assert made.output_text == created.output_text == "Hello from the script."
    assert len({streamed.id, whole.id, made.id, created.id}) == 4
    assert "gpt-5" in models


async def test_a_chat_tool_round_trip() -> None:
    lanes = "main: [{say: Looking., call: weather, with: {city: Oslo}}, {say: Cold.}]"
    async with serving(lanes) as provider, client_of(provider) as client:
        first = await completion(client)
        message = first.choices[0].message
        [call] = message.tool_calls
        assert (call.function.name, call.function.arguments) == ("weather", '{"city": "Oslo"}')
        asked = message.model_dump(exclude_none=True)
        history = [*CHAT["messages"], asked, {"role": "tool", "tool_call_id": call.id, "content": "-3"}]
        second = await completion(client, messages=history)
        with pytest.raises(openai.BadRequestError, match="did not have response messages: " + call.id):
            await completion(client, messages=history[:2])
    assert second.choices[0].message.content == "Cold."
    assert [entry.rules for entry in provider.journal.of(RequestRefused)] == [("tool-calls-answered",)]


async def test_a_responses_tool_round_trip_with_reasoning() -> None:
    lanes = "main: [{think: hm, call: weather, with: {city: Oslo}}, {say: Cold.}]"
    async with serving(lanes) as provider, client_of(provider) as client:
        first = await client.responses.create(**RESPONSES)
        thought, call = (item.model_dump(exclude_none=True) for item in first.output)
        result = {"type": "function_call_output", "call_id": call["call_id"], "output": "-3"}
        history = [{"role": "user", "content": "hi"}, thought, call, result]
        assert (await response(client, input=history)).output_text == "Cold."
        with pytest.raises(openai.BadRequestError, match="without its required 'reasoning' item"):
            await response(client, input=[history[0], call, result])
        history[1] = {**thought, "summary": [{"type": "summary_text", "text": "changed"}]}
        with pytest.raises(openai.BadRequestError, match="could not be verified"):
            await response(client, input=history)
    refused = [entry.rules for entry in provider.journal.of(RequestRefused)]
    assert refused == [("reasoning-kept",), ("reasoning-unchanged",)]


@pytest.mark.parametrize("ask", [completion, response])
async def test_a_request_without_a_key_is_refused(ask: Any) -> None:
    without_key = {"Authorization": openai.Omit()}
    async with serving("main: []") as provider, client_of(provider) as client:
        with pytest.raises(openai.AuthenticationError):
            await ask(client, extra_headers=without_key)


@pytest.mark.parametrize("ask", [completion, response])
async def test_the_clients_own_retries_end_an_overload(ask: Any) -> None:
    lanes = "main: [overloaded, rate_limited, {say: hi}]"
    async with serving(lanes) as provider, client_of(provider, max_retries=2) as client:
        await ask(client)
    assert len(provider.journal.of(RequestReceived)) == 3


@pytest.mark.parametrize("ask", [completion, response])
@pytest.mark.parametrize("place", ["start", "text", "tool_arguments"])
async def test_one_fault_by_place_strikes_in_both_dialects(ask: Any, place: str) -> None:
    step = f"{{say: hi there, call: weather, with: {{city: Oslo}}, fault: {{error_event: {{event: {place}}}}}}}"
    async with serving(f"main: [{step}]") as provider, client_of(provider) as client:
        with pytest.raises(openai.APIError, match="Our servers are currently overloaded"):
            await ask(client)


@pytest.mark.parametrize("ask", [completion, response])
async def test_a_cut_connection_is_an_error(ask: Any) -> None:
    step = "{say: hi, call: weather, fault: {cut: {event: tool_start}}}"
    async with serving(f"main: [{step}]") as provider, client_of(provider) as client:
        with pytest.raises(openai.APIConnectionError):
            await ask(client)
