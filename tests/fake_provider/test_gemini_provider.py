"""The official Gemini client against the whole provider: on a real connection, as it usually asks, and with faults."""

from __future__ import annotations

import importlib
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from types import ModuleType
from typing import Any

import pytest

from fake_provider.journal import RequestReceived, RequestRefused
from fake_provider.server import Provider
from tests.fake_provider.raw_client import connected, parse_reply, post, serving

# The client derives its session from a class whose authors warn of that.
pytestmark = pytest.mark.filterwarnings("ignore:Inheritance class AiohttpClientSession:DeprecationWarning")

HELLO = {"contents": [{"parts": [{"text": "hi"}]}]}
STREAM = "/v1beta/models/asked:streamGenerateContent"


@pytest.fixture(scope="session")
def genai() -> ModuleType:
    """The official client library."""
    return importlib.import_module("google.genai")


@asynccontextmanager
async def client_of(genai: ModuleType, provider: Provider) -> AsyncIterator[Any]:
    """The official client in its asynchronous form, which speaks through aiohttp."""
    options = genai.types.HttpOptions(base_url=provider.url)
    client = genai.Client(api_key="scripted-key", http_options=options)
    try:
        yield client.aio
    finally:
        await client.aio.aclose()
        client.close()


async def streamed(client: Any, contents: Any = "hi") -> list[Any]:
    """Every chunk of one streamed reply."""
    stream = await client.models.generate_content_stream(model="gemini-3-pro-preview", contents=contents)
    return [chunk async for chunk in stream]


async def test_a_tool_round_trip(genai: ModuleType) -> None:
    lanes = "main: [{think: hm, call: weather, with: {city: Oslo}}, {say: Cold.}]"
    async with serving(lanes) as provider, client_of(genai, provider) as client:
        chunks = await streamed(client)
        parts = [part for chunk in chunks for part in chunk.candidates[0].content.parts]
        [call] = [part.function_call for part in parts if part.function_call]
        answer = genai.types.FunctionResponse(id=call.id, name=call.name, response={"output": "-3"})
        history = [
            genai.types.UserContent("hi"),
            genai.types.ModelContent(parts),
            genai.types.UserContent([genai.types.Part(function_response=answer)]),
        ]
        said = await streamed(client, history)
        del history[1].parts[0]
        history[1].parts[0].thought_signature = b"changed"
        with pytest.raises(genai.errors.ClientError, match="Corrupted thought signature"):
            await streamed(client, history)
    assert "".join(chunk.text or "" for chunk in said) == "Cold."
    assert [entry.rules for entry in provider.journal.of(RequestRefused)] == [("signatures-issued",)]


@pytest.mark.parametrize("alt", ["alt=sse", ""])
async def test_the_key_may_stand_in_the_query_and_is_never_kept(alt: str) -> None:
    async with serving("main: [{say: A text of more than sixteen characters.}]") as provider:
        async with connected(provider) as connection:
            path = f"{STREAM}?key=scripted-key&{alt}"
            await connection.send(post(HELLO, path=path, headers={"connection": "close"}))
            reply = parse_reply(await connection.until_end())
        [received] = provider.journal.of(RequestReceived)
    if alt:
        assert reply.headers["content-type"] == "text/event-stream"
        assert [line[:6] for line in reply.body.split(b"\r\n\r\n")] == [b"data: "] * 4 + [b""]
    else:
        assert reply.headers["content-type"] == "application/json; charset=UTF-8"
        assert len(json.loads(reply.body)) == 4
    assert (received.dialect, received.stream) == ("gemini", True)
    assert "scripted-key" not in received.query + json.dumps(dict(received.headers))


async def test_a_stream_that_is_cut_is_an_error_of_the_client(genai: ModuleType) -> None:
    lanes = "main: [{say: A text of more than sixteen characters., fault: {cut: {event: text, nth: 2}}}]"
    async with serving(lanes) as provider, client_of(genai, provider) as client:
        aiohttp = importlib.import_module("aiohttp")
        with pytest.raises(aiohttp.ClientPayloadError):
            await streamed(client)


async def test_an_error_event_is_raised_as_its_type(genai: ModuleType) -> None:
    lanes = "main: [{say: A text of more than sixteen characters., fault: {error_event: {event: text}}}]"
    async with serving(lanes) as provider, client_of(genai, provider) as client:
        with pytest.raises(genai.errors.ServerError) as raised:
            await streamed(client)
    assert (raised.value.code, raised.value.status) == (503, "UNAVAILABLE")
