"""What an error's text repeats of a request, and what its headers and body say about when to try again."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from fake_provider.dialects import DIALECTS, Served
from fake_provider.dialects.placeholders import filled
from fake_provider.limits import Limits, RateLimit
from fake_provider.replies import ERROR_WORDS, ErrorReply
from tests.fake_provider.dialect_requests import NAMES
from tests.fake_provider.raw_client import HELLO, connected, post, serving

SERVED = Served("m1", "r1", model="{tokens} {window_tokens}", input_tokens=7, window_tokens=10)


def text_of(body: bytes) -> str:
    message: str = json.loads(body)["error"]["message"]
    return message


@pytest.mark.parametrize("name", NAMES)
def test_a_model_named_like_a_placeholder_is_repeated_as_it_is(name: str) -> None:
    plain = DIALECTS[name].error(ERROR_WORDS["model_not_found"], SERVED)
    assert SERVED.model in text_of(plain.body)


@pytest.mark.parametrize("name", NAMES)
def test_a_text_that_is_verbatim_has_no_placeholder(name: str) -> None:
    said = ErrorReply(418, "odd", "{model} {tokens} {window_tokens}", verbatim=True)
    assert text_of(DIALECTS[name].error(said, SERVED).body) == said.message
    assert text_of(DIALECTS[name].error(replace(said, verbatim=False), SERVED).body) == f"{SERVED.model} 11 10"


def test_each_placeholder_is_filled_and_nothing_else() -> None:
    served = replace(SERVED, model="m", input_tokens=12)
    assert filled("{model}{tokens}{window_tokens}{}{x}{model", served) == "m1210{}{x}{model"


async def test_a_wrong_version_is_repeated_as_it_is() -> None:
    async with serving("main: [{say: hi}]") as provider, connected(provider) as connection:
        await connection.send(post(HELLO, headers={"anthropic-version": "{model}"}))
        reply = await connection.reply()
    assert reply.json["error"]["message"] == 'anthropic-version: "{model}" is not a valid version'


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ((), None),
        ((("retry-after", "7"),), 7.0),
        ((("Retry-After", " 0.5 "),), 0.5),
        ((("retry-after", "7"), ("Retry-After-Ms", "1500")), 1.5),
        ((("retry-after", "Wed, 21 Oct 2026 07:28:00 GMT"),), None),
        ((("retry-after", "-1"),), None),
        ((("retry-after", "nan"),), None),
    ],
)
def test_a_wait_is_read_from_the_headers(headers: Any, seconds: float | None) -> None:
    assert replace(ERROR_WORDS["rate_limited"], headers=headers).retry_seconds == seconds


@pytest.mark.parametrize(
    ("headers", "delay"), [((), "31s"), ((("retry-after", "7"),), "7s"), ((("retry-after", "soon"),), "31s")]
)
def test_gemini_says_when_to_retry_in_the_body(headers: Any, delay: str) -> None:
    served = replace(SERVED, limits=Limits(requests=RateLimit(1, 0, 30.5)))
    plain = DIALECTS["gemini"].error(replace(ERROR_WORDS["rate_limited"], headers=headers), served)
    assert json.loads(plain.body)["error"]["details"][-1]["retryDelay"] == delay
