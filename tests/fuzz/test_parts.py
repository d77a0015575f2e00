"""A few cases of each part, so that what broke is seen before ``make fuzz`` runs; and that a part can turn red."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import h11
import pytest

from fake_provider.dialects.gemini import Gemini
from fake_provider.dialects.openai_chat import OpenAIChat
from fake_provider.faults import FAULTS
from fake_provider.inbound import RequestReader
from fake_provider.playback import Playback
from fake_provider.recall import Recall
from fake_provider.script import Script
from fake_provider.wire import Framing
from tests.fuzz.byte_streams import HOT_REQUEST
from tests.fuzz.conversation import converse
from tests.fuzz.faulty_replies import KEYS
from tests.fuzz.parts import PARTS, TALKING
from tests.fuzz.rounds import run_round

CASES = 20
CASES_UNTIL_RED = 400


@pytest.mark.parametrize("name", PARTS)
def test_some_cases_of_each_part(name: str) -> None:
    assert run_round(PARTS[name], 0, CASES) >= CASES


def test_a_whole_run_has_100_000_cases() -> None:
    assert sum(part.cases for part in PARTS.values()) >= 100_000


def test_every_kind_of_fault_is_invented() -> None:
    assert set(KEYS) == set(FAULTS)


def test_the_memory_part_enters_the_memory() -> None:
    heard = converse(TALKING["steady"], [HOT_REQUEST] * 5)
    assert (heard.count("RequestReceived"), heard.at_once) == (5, 3)


def _failing(*arguments: Any, **named: Any) -> Any:
    raise LookupError("broken on purpose")


def _unframed(framing: Framing, payload: bytes) -> bytes:
    """Leave the chunks out."""
    return payload


def _first_known(recall: Recall[Any], data: bytes) -> Any:
    """Take every request for the first that was remembered."""
    return next(iter(recall._wholes.values()), None)


RED: dict[str, tuple[type, str, Callable[..., Any]]] = {
    "parser": (RequestReader, "_complete", _failing),
    "connection": (Framing, "body", _unframed),
    "bodies": (OpenAIChat, "problems", _failing),
    "texts": (Script, "__init__", _failing),
    "scripts": (Playback, "play", _failing),
    "faults": (Gemini, "whole", _failing),
    "memory": (Recall, "find", _first_known),
}
"""What is broken in the provider so that a part must see it."""


@pytest.mark.parametrize("name", PARTS)
def test_each_part_turns_red_when_what_it_watches_is_broken(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    owner, attribute, broken = RED[name]
    monkeypatch.setattr(owner, attribute, broken)
    with pytest.raises((LookupError, AssertionError, h11.RemoteProtocolError, BaseExceptionGroup)):
        run_round(PARTS[name], 0, CASES_UNTIL_RED, shrink=False)
