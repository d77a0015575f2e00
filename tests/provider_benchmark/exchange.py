"""What every server under measurement is asked, and the one reply that they all give."""

from __future__ import annotations

import json
from dataclasses import dataclass

from fake_provider.dialects import DIALECTS, Served
from fake_provider.replies import Reply, Text

TEXT = "All of this text is sent in pieces, so that a streamed reply is twenty events. " * 3
TEXT = TEXT[:224]
AIMOCK_CHUNK_CHARACTERS = 15
"""The size of piece at which aimock sends as many events as the provider does."""

MODEL = "claude-sonnet-4-5"
REPLY = Reply((Text(TEXT),), "end_turn")
SCRIPT = (
    "dialect: anthropic_messages\nflush: {flush}\n"
    f"lanes: {{{{main: [{{{{say: {json.dumps(TEXT)}, forever: true}}}}]}}}}\n"
)
HEADERS = {"content-type": "application/json", "x-api-key": "sk-fake", "anthropic-version": "2023-06-01"}
_SERVED = Served("msg_" + "0" * 24, "req_" + "0" * 24, MODEL, 10, 200_000)


@dataclass(frozen=True)
class Question:
    """One kind of request: streamed or not, all equal or no two equal (they differ in ``max_tokens``)."""

    name: str
    stream: bool
    differing: bool = False

    @property
    def body(self) -> bytes:
        """The request's body; the last value in it is the one that differs."""
        messages = [{"role": "user", "content": "hi"}]
        return json.dumps(
            {"model": MODEL, "stream": self.stream, "messages": messages, "max_tokens": FIRST_MAX_TOKENS}
        ).encode()


FIRST_MAX_TOKENS = 1_000_000
QUESTIONS = (Question("JSON", stream=False), Question("20 events", stream=True))
DIFFERING = Question("20 events, no two requests equal", stream=True, differing=True)


def events() -> tuple[bytes, ...]:
    """The reply's events as the provider encodes them."""
    return tuple(frame.payload for frame in DIALECTS["anthropic_messages"].frames(REPLY, _SERVED))


def whole() -> bytes:
    """The reply's body as the provider encodes it."""
    return DIALECTS["anthropic_messages"].whole(REPLY, _SERVED).body
