"""Bodies of every dialect: rich ones that are accepted, and strategies that damage them.

A damaged body stays near a valid one, so that the rules behind the first are reached too.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Mapping
from typing import Any

from hypothesis import strategies as st

from fake_provider.dialects import DIALECTS
from fake_provider.requests import Received

_SCHEMA = {"type": "object", "properties": {"release": {"type": "integer"}}, "required": ["release"]}
_IMAGE = "iVBORw0KGgo="

MESSAGES: Mapping[str, Any] = {
    "model": "claude-sonnet-4-5",
    "max_tokens": 4096,
    "stream": True,
    "system": [{"type": "text", "text": "Be brief.", "cache_control": {"type": "ephemeral"}}],
    "temperature": 1.0,
    "thinking": {"type": "enabled", "budget_tokens": 1024},
    "tools": [{"name": "deploy", "description": "Deploys.", "input_schema": _SCHEMA}],
    "tool_choice": {"type": "auto"},
    "metadata": {"user_id": "u"},
    "stop_sequences": ["END"],
    "messages": [
        {"role": "user", "content": "Deploy release 7."},
        {
            "role": "assistant",
            "content": [
                {"type": "text", "text": "I will."},
                {"type": "tool_use", "id": "toolu_1", "name": "deploy", "input": {"release": 7}},
            ],
        },
        {
            "role": "user",
            "content": [
                {"type": "tool_result", "tool_use_id": "toolu_1", "content": [{"type": "text", "text": "Done."}]},
                {
                    "type": "image",
                    "source": {"type": "base64", "media_type": "image/png", "data": _IMAGE},
                },
                {"type": "text", "text": "And now?"},
            ],
        },
    ],
}
CHAT: Mapping[str, Any] = {
    "model": "gpt-5",
    "stream": True,
    "stream_options": {"include_usage": True},
    "max_completion_tokens": 4096,
    "tools": [{"type": "function", "function": {"name": "deploy", "description": "Deploys.", "parameters": _SCHEMA}}],
    "tool_choice": "auto",
    "parallel_tool_calls": True,
    "response_format": {"type": "text"},
    "messages": [
        {"role": "system", "content": "Be brief."},
        {
            "role": "user",
            "content": [
                {"type": "text", "text": "Deploy release 7."},
                {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{_IMAGE}"}},
            ],
        },
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [
                {"id": "call_1", "type": "function", "function": {"name": "deploy", "arguments": '{"release": 7}'}}
            ],
        },
        {"role": "tool", "tool_call_id": "call_1", "content": "Done."},
        {"role": "user", "content": "And now?"},
    ],
}
RESPONSES: Mapping[str, Any] = {
    "model": "gpt-5",
    "stream": True,
    "store": False,
    "instructions": "Be brief.",
    "max_output_tokens": 4096,
    "reasoning": {"effort": "low", "summary": "auto"},
    "include": ["reasoning.encrypted_content"],
    "tools": [
        {"type": "function", "name": "deploy", "description": "Deploys.", "parameters": _SCHEMA, "strict": False}
    ],
    "tool_choice": "auto",
    "input": [
        {"role": "user", "content": [{"type": "input_text", "text": "Deploy release 7."}]},
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "I will."}]},
        {"type": "function_call", "call_id": "call_1", "name": "deploy", "arguments": '{"release": 7}'},
        {"type": "function_call_output", "call_id": "call_1", "output": "Done."},
        {"role": "user", "content": "And now?"},
    ],
}
GEMINI: Mapping[str, Any] = {
    "systemInstruction": {"parts": [{"text": "Be brief."}]},
    "generationConfig": {"maxOutputTokens": 4096, "thinkingConfig": {"includeThoughts": True, "thinkingBudget": 1024}},
    "tools": [
        {"functionDeclarations": [{"name": "deploy", "description": "Deploys.", "parameters": {"type": "OBJECT"}}]}
    ],
    "toolConfig": {"functionCallingConfig": {"mode": "AUTO"}},
    "safetySettings": [{"category": "HARM_CATEGORY_HARASSMENT", "threshold": "BLOCK_NONE"}],
    "contents": [
        {"role": "user", "parts": [{"text": "Deploy."}, {"inlineData": {"mimeType": "image/png", "data": _IMAGE}}]},
        {"role": "model", "parts": [{"functionCall": {"name": "deploy", "args": {"release": 7}}}]},
        {"role": "user", "parts": [{"functionResponse": {"name": "deploy", "response": {"output": "Done."}}}]},
    ],
}
VALID: Mapping[str, Mapping[str, Any]] = {
    "anthropic_messages": MESSAGES,
    "openai_chat": CHAT,
    "openai_responses": RESPONSES,
    "gemini": GEMINI,
}
PATHS: Mapping[str, tuple[str, ...]] = {
    "anthropic_messages": ("/v1/messages", "/v1/messages?beta=true"),
    "openai_chat": ("/v1/chat/completions",),
    "openai_responses": ("/v1/responses",),
    "gemini": (
        "/v1beta/models/gemini-pro:streamGenerateContent?alt=sse",
        "/v1beta/models/gemini-pro:streamGenerateContent",
        "/v1/models/gemini-pro:generateContent",
    ),
}
SIDE_PATHS = (
    "/v1/messages/count_tokens",
    "/v1/models",
    "/v1/models/gpt-5",
    "/api/hello",
    "/v1beta/models",
    "/v1beta/models/gemini-pro:countTokens",
    "/v1beta/models/gemini-pro:embedContent",
    "/v1/responses/resp_1",
    "/v1/responses/input_tokens",
    "/v1/files",
    "/",
)
HEADERS: Mapping[str, Mapping[str, str]] = {
    "anthropic_messages": {"x-api-key": "k", "anthropic-version": "2023-06-01"},
    "openai_chat": {"authorization": "Bearer k"},
    "openai_responses": {"authorization": "Bearer k"},
    "gemini": {"x-goog-api-key": "k"},
}


def _keys(value: Any) -> set[str]:
    if isinstance(value, Mapping):
        return set(value) | {key for child in value.values() for key in _keys(child)}
    return {key for child in value for key in _keys(child)} if isinstance(value, list) else set()


def _leaves(value: Any) -> list[Any]:
    if isinstance(value, Mapping):
        return [leaf for child in value.values() for leaf in _leaves(child)]
    return [leaf for child in value for leaf in _leaves(child)] if isinstance(value, list) else [value]


KNOWN_KEYS = sorted(
    {key for body in VALID.values() for key in _keys(body)}
    | {"signature", "thinking", "is_error", "file_data", "fileData", "encrypted_content", "summary", "thoughtSignature"}
    | {"previous_response_id", "prompt", "n", "functions", "function_call", "candidateCount", "cachedContent", "id"}
)
KNOWN_WORDS = sorted(
    {str(leaf) for body in VALID.values() for leaf in _leaves(body)}
    | {"thinking", "redacted_thinking", "server_tool_use", "reasoning", "developer", "function", "model", "none", "any"}
    | {
        "image",
        "document",
        "file",
        "input_image",
        "refusal",
        "item_reference",
        "custom_tool_call",
        "",
        "☃",
        "\0",
        "{model}",
    }
)
SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-2, 3)
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.sampled_from(KNOWN_WORDS)
    | st.text(max_size=4)
)
JSON = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KNOWN_KEYS), inner, max_size=3),
    max_leaves=6,
)


@st.composite
def damaged(draw: st.DrawFn, body: Mapping[str, Any], most: int = 4) -> Any:
    """A body with up to so many changes, each at a place of its own choice."""
    whole: list[Any] = [copy.deepcopy(dict(body))]
    for _ in range(draw(st.integers(0, most))):
        _damage(draw, whole)
    return whole[0]


def _damage(draw: st.DrawFn, whole: list[Any]) -> None:
    """Walk down to a place, and change what is there."""
    holder: Any = whole
    key: Any = 0
    while isinstance(holder[key], dict | list) and holder[key] and draw(st.integers(0, 4)):
        holder = holder[key]
        key = draw(st.sampled_from(sorted(holder)) if isinstance(holder, dict) else st.integers(0, len(holder) - 1))
    match draw(st.integers(0, 5)):
        case 0:
            holder[key] = draw(JSON)
        case 1 if holder is not whole:
            del holder[key]
        case 2 if isinstance(holder, dict):
            holder[draw(st.sampled_from(KNOWN_KEYS))] = copy.deepcopy(holder[key])
        case 3 if isinstance(holder, list) and holder is not whole:
            holder.insert(draw(st.integers(0, len(holder))), copy.deepcopy(holder[key]))
        case 4 if isinstance(holder[key], dict):
            holder[key][draw(st.sampled_from(KNOWN_KEYS))] = draw(JSON)
        case 5 if isinstance(holder[key], list):
            holder[key].append(draw(JSON))
        case _:
            holder[key] = draw(SCALARS)


@st.composite
def encoded(draw: st.DrawFn, value: Any) -> bytes:
    """JSON, now and then with a few bytes of it changed."""
    data = bytearray(json.dumps(value, ensure_ascii=draw(st.booleans())).encode("utf-8", "surrogatepass"))
    if draw(st.integers(0, 3)) == 0:
        for _ in range(draw(st.integers(1, 3))):
            at = draw(st.integers(0, len(data)))
            data[at : at + draw(st.integers(0, 3))] = draw(
                st.binary(max_size=3) | st.sampled_from([b'"', b"{", b"1e999"])
            )
    return bytes(data)


@st.composite
def received(draw: st.DrawFn) -> tuple[str, Received]:
    """A dialect and a request that it claims, or would but for its body."""
    name = draw(st.sampled_from(sorted(DIALECTS)))
    target = draw(st.sampled_from(PATHS[name]))
    path, _, query = target.partition("?")
    body = draw(damaged(VALID[name]).flatmap(encoded))
    headers = dict(HEADERS[name])
    if draw(st.integers(0, 3)) == 0:
        # A version header would make some paths those of another dialect.
        header = draw(st.sampled_from(["accept-encoding", "anthropic-beta", "openai-beta", *headers]))
        headers[header] = draw(st.text(st.characters(max_codepoint=255, exclude_categories=["Cc"]), max_size=8))
    return name, Received("POST", path, query, headers, body)
