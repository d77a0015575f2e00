"""The official clients, each called as its own documentation shows it, with retries off. It judges nothing.

A client asks on a connection of its own, unless it is to keep one.
"""

from __future__ import annotations

import json
import ssl
import traceback
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from tests.fault_matrix.observation import Cell, Observed, Said

KEY = "sk-scripted-key"
PROMPT = "Deploy release seven."


@dataclass(frozen=True)
class Address:
    """Where a client is pointed, and how patient it is."""

    url: str
    timeout_seconds: float
    trust: ssl.SSLContext | bool = False
    keeps_connections: bool = False


def import_clients() -> None:
    """Import every client, which takes seconds, before anybody waits for anything."""
    for module in ("anthropic", "openai", "google.genai"):
        import_module(module)


def transport(address: Address) -> Any:
    """An HTTP client that keeps connections or not."""
    httpx = import_module("httpx2")
    kept = None if address.keeps_connections else 0
    return httpx.AsyncClient(
        verify=address.trust,
        timeout=httpx.Timeout(address.timeout_seconds),
        limits=httpx.Limits(max_keepalive_connections=kept),
        follow_redirects=True,
        trust_env=False,
    )


class Clients:
    """Clients that are open. One that keeps no connection serves every request to its address."""

    def __init__(self) -> None:
        self._shared: dict[tuple[str, Address], Any] = {}
        self._stack = AsyncExitStack()

    @asynccontextmanager
    async def open(self) -> AsyncIterator[Clients]:
        """Close every shared client at the end of the block."""
        async with self._stack:
            yield self

    @asynccontextmanager
    async def lent(self, name: str, address: Address) -> AsyncIterator[Any]:
        """Yield the official client of a name, pointed at an address."""
        if address.keeps_connections or address.trust:
            client, close = OPENERS[name](address)
            try:
                yield client
            finally:
                await close()
            return
        if (name, address) not in self._shared:
            client, close = OPENERS[name](address)
            self._shared[name, address] = client
            self._stack.push_async_callback(close)
        yield self._shared[name, address]


async def ask(client: Any, cell: Cell, model: str) -> Observed:
    """Ask for a reply, and return what the call gave and raised."""
    said = Said()
    try:
        await CALLS[cell.id](client, model, said)
    except Exception as error:
        # What this module raises by itself is a mistake in it, and nothing that a client did.
        if traceback.extract_tb(error.__traceback__)[-1].filename == __file__:
            raise
        return Observed.of(said, error)
    return Observed.of(said, None)


def _anthropic(address: Address) -> Any:
    http = transport(address)
    client = import_module("anthropic").AsyncAnthropic(
        api_key=KEY, base_url=address.url, max_retries=0, http_client=http, timeout=address.timeout_seconds
    )
    return client, client.close


def _openai(address: Address) -> Any:
    http = transport(address)
    client = import_module("openai").AsyncOpenAI(
        api_key=KEY, base_url=f"{address.url}/v1", max_retries=0, http_client=http, timeout=address.timeout_seconds
    )
    return client, client.close


def _genai(address: Address) -> Any:
    genai = import_module("google.genai")
    options = genai.types.HttpOptions(
        base_url=address.url,
        timeout=int(address.timeout_seconds * 1000),
        client_args={"verify": False},
        async_client_args={"verify": False},
        httpx_client=import_module("httpx2").Client(verify=False, trust_env=False),
        httpx_async_client=transport(address),
    )
    client = genai.Client(api_key=KEY, http_options=options)

    async def close() -> None:
        await client.aio.aclose()
        client.close()

    return client, close


OPENERS: Mapping[str, Any] = {
    "anthropic": _anthropic,
    "openai chat": _openai,
    "openai responses": _openai,
    "google-genai": _genai,
}


def _text(arguments: Any) -> str:
    return arguments if isinstance(arguments, str) else json.dumps(arguments)


def _is_other(reply: Any, own: str, said: Said) -> bool:
    """Whether a call returned something that is not the client's type of a reply; then note what it is."""
    if own in type(reply).__name__:
        return False
    said.other_type = type(reply).__name__
    said.text = str(reply)
    return True


def _of_message(message: Any, said: Said) -> None:
    if _is_other(message, "Message", said):
        return
    blocks = getattr(message, "content", None) or []
    said.text = "".join(block.text for block in blocks if block.type == "text")
    said.calls = [(block.name, _text(block.input)) for block in blocks if block.type == "tool_use"]
    said.stop = getattr(message, "stop_reason", None)
    usage = getattr(message, "usage", None)
    said.usage = None if usage is None else (usage.input_tokens, usage.output_tokens)


def _messages(model: str) -> dict[str, Any]:
    return {"model": model, "max_tokens": 64, "messages": [{"role": "user", "content": PROMPT}]}


async def anthropic_whole(client: Any, model: str, said: Said) -> None:
    _of_message(await client.messages.create(**_messages(model)), said)


async def anthropic_events(client: Any, model: str, said: Said) -> None:
    async for event in await client.messages.create(**_messages(model), stream=True):
        match event.type:
            case "message_start":
                said.usage = None if event.message.usage is None else (event.message.usage.input_tokens, None)
            case "content_block_start" if event.content_block.type == "tool_use":
                said.calls.append((event.content_block.name, ""))
            case "content_block_delta" if event.delta.type == "text_delta":
                said.text += event.delta.text
            case "content_block_delta" if event.delta.type == "input_json_delta" and said.calls:
                name, arguments = said.calls[-1]
                said.calls[-1] = (name, arguments + event.delta.partial_json)
            case "message_delta":
                said.stop = event.delta.stop_reason
                if said.usage is not None and event.usage is not None:
                    said.usage = (said.usage[0], event.usage.output_tokens)


async def anthropic_helper(client: Any, model: str, said: Said) -> None:
    async with client.messages.stream(**_messages(model)) as stream:
        async for text in stream.text_stream:
            said.text += text
        _of_message(await stream.get_final_message(), said)


def _of_completion(completion: Any, said: Said) -> None:
    if _is_other(completion, "ChatCompletion", said):
        return
    usage = getattr(completion, "usage", None)
    said.usage = None if usage is None else (usage.prompt_tokens, usage.completion_tokens)
    for choice in getattr(completion, "choices", None) or []:
        said.text = choice.message.content or ""
        said.stop = choice.finish_reason
        said.calls = [(call.function.name, call.function.arguments) for call in choice.message.tool_calls or []]


def _completions(model: str) -> dict[str, Any]:
    return {"model": model, "messages": [{"role": "user", "content": PROMPT}]}


async def chat_whole(client: Any, model: str, said: Said) -> None:
    _of_completion(await client.chat.completions.create(**_completions(model)), said)


async def chat_events(client: Any, model: str, said: Said) -> None:
    options = {"stream": True, "stream_options": {"include_usage": True}}
    async for chunk in await client.chat.completions.create(**_completions(model), **options):
        if chunk.usage is not None:
            said.usage = (chunk.usage.prompt_tokens, chunk.usage.completion_tokens)
        for choice in chunk.choices or []:
            said.text += choice.delta.content or ""
            said.stop = choice.finish_reason or said.stop
            for call in choice.delta.tool_calls or []:
                if call.index >= len(said.calls):
                    said.calls.append(("", ""))
                name, arguments = said.calls[call.index]
                function = call.function
                said.calls[call.index] = (function.name or name, arguments + (function.arguments or ""))


async def chat_helper(client: Any, model: str, said: Said) -> None:
    options = {"stream_options": {"include_usage": True}}
    async with client.chat.completions.stream(**_completions(model), **options) as stream:
        async for event in stream:
            if event.type == "content.delta":
                said.text += event.delta
        _of_completion(await stream.get_final_completion(), said)


def _of_response(response: Any, said: Said) -> None:
    if _is_other(response, "Response", said):
        return
    said.text, said.calls = "", []
    for item in getattr(response, "output", None) or []:
        if item.type == "message":
            said.text += "".join(part.text for part in item.content or [] if part.type == "output_text")
        if item.type == "function_call":
            said.calls.append((item.name, item.arguments))
    said.stop = getattr(response, "status", None)
    usage = getattr(response, "usage", None)
    said.usage = None if usage is None else (usage.input_tokens, usage.output_tokens)


async def responses_whole(client: Any, model: str, said: Said) -> None:
    _of_response(await client.responses.create(model=model, input=PROMPT), said)


async def responses_events(client: Any, model: str, said: Said) -> None:
    async for event in await client.responses.create(model=model, input=PROMPT, stream=True):
        match event.type:
            case "response.output_text.delta":
                said.text += event.delta
            case "response.output_item.added" if event.item.type == "function_call":
                said.calls.append((event.item.name, ""))
            case "response.function_call_arguments.delta" if said.calls:
                name, arguments = said.calls[-1]
                said.calls[-1] = (name, arguments + event.delta)
            case "response.completed" | "response.incomplete" | "response.failed":
                usage = event.response.usage
                said.stop = event.response.status
                said.usage = None if usage is None else (usage.input_tokens, usage.output_tokens)


async def responses_helper(client: Any, model: str, said: Said) -> None:
    async with client.responses.stream(model=model, input=PROMPT) as stream:
        async for event in stream:
            if event.type == "response.output_text.delta":
                said.text += event.delta
        _of_response(await stream.get_final_response(), said)


def _of_generated(reply: Any, said: Said) -> None:
    usage = reply.usage_metadata
    if usage is not None:
        said.usage = (usage.prompt_token_count, usage.candidates_token_count)
    for candidate in reply.candidates or []:
        said.stop = candidate.finish_reason.value if candidate.finish_reason else said.stop
        for part in (candidate.content.parts or []) if candidate.content else []:
            said.text += part.text or "" if not part.thought else ""
            if part.function_call:
                said.calls.append((part.function_call.name, _text(part.function_call.args)))


async def genai_whole(client: Any, model: str, said: Said) -> None:
    _of_generated(await client.aio.models.generate_content(model=model, contents=PROMPT), said)


async def genai_events(client: Any, model: str, said: Said) -> None:
    async for chunk in await client.aio.models.generate_content_stream(model=model, contents=PROMPT):
        _of_generated(chunk, said)


CALLS: Mapping[str, Any] = {
    "anthropic-whole": anthropic_whole,
    "anthropic-events": anthropic_events,
    "anthropic-helper": anthropic_helper,
    "openai-chat-whole": chat_whole,
    "openai-chat-events": chat_events,
    "openai-chat-helper": chat_helper,
    "openai-responses-whole": responses_whole,
    "openai-responses-events": responses_events,
    "openai-responses-helper": responses_helper,
    "google-genai-whole": genai_whole,
    "google-genai-events": genai_events,
}
"""How each cell of the matrix calls its client."""
