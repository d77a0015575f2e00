"""Every preset gives in every dialect what its first line says."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass

import httpx
import pytest

from fake_provider.journal import FaultFired, FaultSkipped, UnexpectedRequest
from fake_provider.presets import UnknownPresetError, descriptions, load_preset
from fake_provider.server import Provider
from tests.fake_provider.dialect_requests import NAMES, asking


@dataclass(frozen=True)
class Got:
    """What a client saw of one reply; ``ended`` is False where the connection ended before the body did."""

    status: int | None
    headers: httpx.Headers
    body: str
    ended: bool


async def ask(provider: Provider, dialect: str, text: str = "hi", *, stream: bool = True) -> Got:
    """Send one request on a connection of its own, and leave when the first words of a stalled one are there."""
    request = asking(dialect, text, stream=stream)
    body = b""
    status, headers = None, httpx.Headers()
    async with httpx.AsyncClient(base_url=provider.url, timeout=30) as client:
        try:
            async with client.stream("POST", request.path, headers=request.headers, json=request.body) as reply:
                status, headers = reply.status_code, reply.headers
                async for piece in reply.aiter_bytes():
                    body += piece
                    if b"first" in body and any(one.kind == "stall" for one in provider.journal.of(FaultFired)):
                        return Got(status, headers, body.decode(), ended=False)
        except httpx.TransportError:
            return Got(status, headers, body.decode("utf-8", "replace"), ended=False)
    return Got(status, headers, body.decode(), ended=True)


async def asks(provider: Provider, dialect: str, count: int) -> list[Got]:
    return [await ask(provider, dialect) for _ in range(count)]


def statuses(got: list[Got]) -> list[int | None]:
    return [one.status for one in got]


OVERLOADED = {"anthropic_messages": 529, "openai_chat": 503, "openai_responses": 503, "gemini": 503}


async def overload(provider: Provider, dialect: str) -> None:
    assert statuses(await asks(provider, dialect, 3)) == [OVERLOADED[dialect]] * 3


async def overload_then_recover(provider: Provider, dialect: str) -> None:
    assert statuses(await asks(provider, dialect, 4)) == [OVERLOADED[dialect]] * 2 + [200, 200]


async def rate_limited(provider: Provider, dialect: str) -> None:
    got = await asks(provider, dialect, 4)
    assert statuses(got) == [200, 200, 200, 429]
    assert int(got[-1].headers["retry-after"]) >= 1


async def flaky(provider: Provider, dialect: str) -> None:
    got = await asks(provider, dialect, 34)
    good = [one.status == 200 and one.ended and "Good after" in one.body for one in got]
    round_of = [False, True] * 7 + [True] * 3
    assert good == round_of * 2
    kinds = [fault.kind for fault in provider.journal.of(FaultFired)]
    assert kinds == ["cut", "close", "error_event", "reset"] * 2


async def cut_stream(provider: Provider, dialect: str) -> None:
    for got in await asks(provider, dialect, 2):
        assert (got.status, got.ended) == (200, False)
        assert "The" in got.body
        assert "sentence is over" not in got.body


async def cut_inside_tool(provider: Provider, dialect: str) -> None:
    got = await ask(provider, dialect)
    assert (got.status, got.ended) == (200, False)
    assert "cut in half" not in got.body


async def stall(provider: Provider, dialect: str) -> None:
    got = await ask(provider, dialect)
    assert (got.status, got.ended) == (200, False)
    assert "nothing more" not in got.body


TOO_LONG = {
    "anthropic_messages": "tokens > 4000 maximum",
    "openai_chat": "maximum context length is 4000 tokens",
    "openai_responses": "exceeds the context window",
    "gemini": "exceeds the maximum number of tokens allowed (4000)",
}


async def prompt_too_long(provider: Provider, dialect: str) -> None:
    assert (await ask(provider, dialect)).status == 200
    long = await ask(provider, dialect, "word " * 8000)
    assert long.status == 400
    assert TOO_LONG[dialect] in long.body


async def insist(provider: Provider, dialect: str) -> None:
    got = [await ask(provider, dialect, stream=False) for _ in range(6)]
    assert statuses(got) == [200] * 6
    assert ["echo crashcart" in one.body for one in got] == [True] * 4 + [False] * 2
    assert "could not get Bash done" in got[4].body


async def echo(provider: Provider, dialect: str) -> None:
    assert "parrot" in (await ask(provider, dialect, "parrot", stream=False)).body
    assert "polly" in (await ask(provider, dialect, "say polly", stream=False)).body
    called = await ask(provider, dialect, 'call Bash {"command": "ls -la"}', stream=False)
    assert "Bash" in called.body
    assert "ls -la" in called.body


REFUSAL = {
    "anthropic_messages": '"refusal"',
    "openai_chat": '"refusal":"I cannot',
    "openai_responses": "refusal",
    "gemini": "SAFETY",
}


async def refusal(provider: Provider, dialect: str) -> None:
    whole = await ask(provider, dialect, stream=False)
    assert whole.status == 200
    assert REFUSAL[dialect] in whole.body


MAX_TOKENS = {
    "anthropic_messages": '"max_tokens"',
    "openai_chat": '"length"',
    "openai_responses": '"max_output_tokens"',
    "gemini": '"MAX_TOKENS"',
}


async def max_tokens(provider: Provider, dialect: str) -> None:
    got = [await ask(provider, dialect, stream=False) for _ in range(4)]
    stopped = [MAX_TOKENS[dialect] in one.body.replace("\n", "") and "as it may" in one.body for one in got]
    assert stopped == [True, True, True, False]


async def malformed_tool(provider: Provider, dialect: str) -> None:
    first, second = await asks(provider, dialect, 2)
    assert (first.status, second.status) == (200, 200)
    assert "Bash" in first.body
    assert "Bash" not in second.body


async def server_errors(provider: Provider, dialect: str) -> None:
    assert statuses(await asks(provider, dialect, 5)) == [500, 502, 503, 504, 500]


async def unauthorized(provider: Provider, dialect: str) -> None:
    assert statuses(await asks(provider, dialect, 2)) == [400 if dialect == "gemini" else 401] * 2


async def slow(provider: Provider, dialect: str) -> None:
    provider.time_scale = 1000
    got = await ask(provider, dialect)
    assert (got.status, got.ended) == (200, True)


TERMINAL = {
    "anthropic_messages": "message_stop",
    "openai_chat": "[DONE]",
    "openai_responses": "response.completed",
    "gemini": '"finishReason"',
}


async def no_end(provider: Provider, dialect: str) -> None:
    got = await ask(provider, dialect)
    assert (got.status, got.ended) == (200, True)
    assert TERMINAL[dialect] not in got.body


async def empty(provider: Provider, dialect: str) -> None:
    for got in await asks(provider, dialect, 2):
        assert (got.status, got.ended) == (200, True)
        assert "Never" not in got.body


async def ok(provider: Provider, dialect: str) -> None:
    got = await asks(provider, dialect, 2)
    assert [(one.status, one.ended) for one in got] == [(200, True)] * 2


SAYS: dict[str, Callable[[Provider, str], object]] = {
    "cut-inside-tool": cut_inside_tool,
    "cut-stream": cut_stream,
    "echo": echo,
    "empty": empty,
    "flaky": flaky,
    "insist": insist,
    "malformed-tool": malformed_tool,
    "max-tokens": max_tokens,
    "no-end": no_end,
    "ok": ok,
    "overload": overload,
    "overload-then-recover": overload_then_recover,
    "prompt-too-long": prompt_too_long,
    "rate-limited": rate_limited,
    "refusal": refusal,
    "server-errors": server_errors,
    "slow": slow,
    "stall": stall,
    "unauthorized": unauthorized,
}


@pytest.mark.parametrize("dialect", NAMES)
@pytest.mark.parametrize("name", SAYS)
async def test_a_preset_gives_what_it_says(name: str, dialect: str) -> None:
    provider = Provider(load_preset(name))
    async with provider.listening():
        judged = SAYS[name](provider, dialect)
        assert asyncio.iscoroutine(judged)
        await judged
    assert provider.journal.of(UnexpectedRequest) == ()
    assert provider.journal.of(FaultSkipped) == ()


def test_every_preset_is_judged_and_described() -> None:
    assert set(descriptions()) == set(SAYS)
    assert all(words.endswith(".") and len(words) < 120 for words in descriptions().values())


def test_an_unknown_preset_names_the_nearest() -> None:
    with pytest.raises(UnknownPresetError, match="no preset 'overlod'; did you mean 'overload'"):
        load_preset("overlod")
