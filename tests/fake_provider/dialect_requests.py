"""The same request in each dialect, as plain data: its path, its headers and its body."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from fake_provider.dialects import DIALECTS

NAMES = tuple(DIALECTS)


@dataclass(frozen=True)
class Asking:
    """One request."""

    path: str
    headers: Mapping[str, str]
    body: Mapping[str, Any]


def asking(dialect: str, text: str = "hi", *, stream: bool = False) -> Asking:
    """Ask one dialect for a reply to a text."""
    match dialect:
        case "anthropic_messages":
            body = {"model": "m", "max_tokens": 64, "messages": [{"role": "user", "content": text}], "stream": stream}
            return Asking("/v1/messages", {"x-api-key": "k", "anthropic-version": "2023-06-01"}, body)
        case "openai_chat":
            body = {"model": "m", "messages": [{"role": "user", "content": text}], "stream": stream}
            return Asking("/v1/chat/completions", {"authorization": "Bearer k"}, body)
        case "openai_responses":
            return Asking(
                "/v1/responses", {"authorization": "Bearer k"}, {"model": "m", "input": text, "stream": stream}
            )
        case _:
            verb = "streamGenerateContent?alt=sse" if stream else "generateContent"
            contents = {"contents": [{"role": "user", "parts": [{"text": text}]}]}
            return Asking(f"/v1beta/models/m:{verb}", {"x-goog-api-key": "k"}, contents)
