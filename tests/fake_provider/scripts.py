"""Scripts and requests for tests without a connection: lanes from YAML text, requests decoded as a provider would."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from fake_provider.dialects import DIALECTS
from fake_provider.document import parse_document
from fake_provider.requests import ModelRequest, Received
from fake_provider.script import Script, parse_lanes

HELLO: dict[str, Any] = {"model": "asked", "max_tokens": 64, "messages": [{"role": "user", "content": "hi"}]}
MESSAGES = ("anthropic_messages",)


def script(text: str, dialects: Sequence[str] | None = MESSAGES) -> Script:
    """Read lanes from YAML text."""
    return parse_lanes(parse_document(text, "script.yaml"), dialects=dialects)


def asked(*messages: Any, headers: dict[str, str] | None = None, **fields: Any) -> ModelRequest:
    """Decode a request of the Messages API."""
    body = {**HELLO, **({"messages": list(messages)} if messages else {}), **fields}
    given = {"anthropic-version": "2023-06-01", "x-api-key": "k", **(headers or {})}
    received = Received("POST", "/v1/messages", "", given, json.dumps(body).encode())
    return DIALECTS["anthropic_messages"].decode(received)


def user(*content: Any) -> dict[str, Any]:
    """A user's message of these blocks."""
    return {"role": "user", "content": list(content)}


def assistant(*content: Any) -> dict[str, Any]:
    """A message of the model."""
    return {"role": "assistant", "content": list(content)}


def text(words: str = "words") -> dict[str, Any]:
    """A text block."""
    return {"type": "text", "text": words}


def use(call_id: str = "toolu_1", name: str = "deploy", arguments: Any = None) -> dict[str, Any]:
    """A tool call."""
    return {"type": "tool_use", "id": call_id, "name": name, "input": {} if arguments is None else arguments}


def result(call_id: str = "toolu_1", **extra: Any) -> dict[str, Any]:
    """A tool's result."""
    return {"type": "tool_result", "tool_use_id": call_id, "content": "ok", **extra}
