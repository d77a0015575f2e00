"""Which requests the Messages API refuses, as two tables of pure rules; no I/O, no replies.

Shape rules look at single fields and come first, because the conversation rules rely on what they establish. Each rule
reads the decoded JSON body and returns the messages of what it found, in the wording that the real API uses as far as
it is publicly known (platform documentation, "Messages" and "Errors"; public bug reports that quote a 400).
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import msgspec

from fake_provider.dialects.problems import Problem
from fake_provider.replies import PROMPT_TOO_LONG

TOOL_NAME_PATTERN = "^[a-zA-Z0-9_-]{1,128}$"
_TOOL_NAME = re.compile(TOOL_NAME_PATTERN)
_SIGNATURE_KEY = b"crashcart scripted provider"

Body: TypeAlias = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Judged:
    """A request under judgement; ``tokens`` follows ``estimated_tokens``."""

    body: Body
    tokens: int
    window_tokens: int


Rule: TypeAlias = Callable[[Judged], list[str]]


def estimated_tokens(body: Body) -> int:
    """Count a request in tokens by rule: the compact UTF-8 JSON of system, tools and messages, four bytes a token.

    The result is rounded up. The rule is a stand-in for the real tokenizer, which is not public; a script that sets
    ``window_tokens`` counts with it.
    """
    counted = [body[key] for key in ("system", "tools", "messages") if key in body]
    return -(-sum(len(msgspec.json.encode(part)) for part in counted) // 4)


def signature_of(thinking: str) -> str:
    """Return the provider's MAC over a thinking text: HMAC-SHA256 under a fixed key, in base64."""
    mac = hmac.new(_SIGNATURE_KEY, thinking.encode("utf-8", "surrogatepass"), hashlib.sha256)
    return base64.b64encode(mac.digest()).decode("ascii")


def blocks_of(content: Any) -> list[Any]:
    """Return a message's content as a list of blocks; plain text is one text block."""
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    return content if isinstance(content, list) else []


def _messages(judged: Judged) -> list[Any]:
    messages = judged.body.get("messages")
    return messages if isinstance(messages, list) else []


def _blocks(judged: Judged, role: str | None = None, kind: str | None = None) -> Iterator[tuple[int, int, Any]]:
    """Yield message index, block index and block, of one role and one type where they are given."""
    for index, message in enumerate(_messages(judged)):
        if role is not None and message["role"] != role:
            continue
        for position, block in enumerate(blocks_of(message["content"])):
            if kind is None or block["type"] == kind:
                yield index, position, block


def _required_fields(judged: Judged) -> list[str]:
    return [f"{key}: Field required" for key in ("model", "messages", "max_tokens") if key not in judged.body]


def _field_types(judged: Judged) -> list[str]:
    expected: tuple[tuple[str, type, str], ...] = (
        ("model", str, "Input should be a valid string"),
        ("messages", list, "Input should be a valid list"),
        ("max_tokens", int, "Input should be a valid integer"),
        ("stream", bool, "Input should be a valid boolean"),
        ("tools", list, "Input should be a valid list"),
    )
    found = []
    for key, kind, wording in expected:
        value = judged.body.get(key)
        if key in judged.body and (not isinstance(value, kind) or (kind is int and isinstance(value, bool))):
            found.append(f"{key}: {wording}")
    if "system" in judged.body and not isinstance(judged.body["system"], str | list):
        found.append("system: Input should be a valid list")
    return found


def _max_tokens_positive(judged: Judged) -> list[str]:
    value = judged.body.get("max_tokens")
    if isinstance(value, int) and not isinstance(value, bool) and value < 1:
        return ["max_tokens: Input should be greater than or equal to 1"]
    return []


def _message_shape(judged: Judged) -> list[str]:
    found = []
    for index, message in enumerate(_messages(judged)):
        if not isinstance(message, Mapping):
            found.append(f"messages.{index}: Input should be a valid dictionary")
            continue
        found += [f"messages.{index}.{key}: Field required" for key in ("role", "content") if key not in message]
        if "content" in message and not isinstance(message["content"], str | list):
            found.append(f"messages.{index}.content: Input should be a valid list")
    return found


def _roles(judged: Judged) -> list[str]:
    return [
        f"messages.{index}.role: Input should be 'user', 'assistant' or 'system'"
        for index, message in enumerate(_messages(judged))
        if isinstance(message, Mapping) and message.get("role", "user") not in ("user", "assistant", "system")
    ]


_BLOCK_FIELDS: Mapping[str, tuple[tuple[str, type, str], ...]] = {
    "text": (("text", str, "Input should be a valid string"),),
    "thinking": (
        ("thinking", str, "Input should be a valid string"),
        ("signature", str, "Input should be a valid string"),
    ),
    "tool_use": (
        ("id", str, "Input should be a valid string"),
        ("name", str, "Input should be a valid string"),
        ("input", dict, "Input should be a valid dictionary"),
    ),
    "tool_result": (("tool_use_id", str, "Input should be a valid string"),),
}


def _block_shape(judged: Judged) -> list[str]:
    found = []
    for index, message in enumerate(_messages(judged)):
        content = message.get("content") if isinstance(message, Mapping) else None
        for position, block in enumerate(blocks_of(content)):
            where = f"messages.{index}.content.{position}"
            if not isinstance(block, Mapping):
                found.append(f"{where}: Input should be a valid dictionary")
            elif not isinstance(block.get("type"), str):
                found.append(f"{where}.type: Field required")
            else:
                kind = block["type"]
                for key, expected, wording in _BLOCK_FIELDS.get(kind, ()):
                    if key not in block:
                        found.append(f"{where}.{kind}.{key}: Field required")
                    elif not isinstance(block[key], expected):
                        found.append(f"{where}.{kind}.{key}: {wording}")
    return found


def _tool_shape(judged: Judged) -> list[str]:
    tools = judged.body.get("tools")
    found = []
    for index, tool in enumerate(tools if isinstance(tools, list) else []):
        if not isinstance(tool, Mapping):
            found.append(f"tools.{index}: Input should be a valid dictionary")
        elif not isinstance(tool.get("name"), str):
            found.append(f"tools.{index}.custom.name: Field required")
    return found


def _at_least_one_message(judged: Judged) -> list[str]:
    return [] if _messages(judged) else ["messages: at least one message is required"]


def _first_role(judged: Judged) -> list[str]:
    messages = _messages(judged)
    if messages and messages[0]["role"] != "user":
        return ['messages: first message must use the "user" role']
    return []


def _empty_content(judged: Judged) -> list[str]:
    messages = _messages(judged)
    found = []
    for index, message in enumerate(messages):
        optional = index == len(messages) - 1 and message["role"] == "assistant"
        if message["content"] in ("", []) and not optional:
            found.append(
                f"messages.{index}: all messages must have non-empty content "
                "except for the optional final assistant message"
            )
    return found


def _empty_text(judged: Judged) -> list[str]:
    found = []
    for index, message in enumerate(_messages(judged)):
        if isinstance(message["content"], str):
            texts = [message["content"]] if message["content"] else []
        else:
            texts = [block["text"] for block in message["content"] if block["type"] == "text"]
        for text in texts:
            if text == "":
                found.append(f"messages.{index}: text content blocks must be non-empty")
            elif not text.strip():
                found.append(f"messages.{index}: text content blocks must contain non-whitespace text")
    return found


def _block_roles(judged: Judged) -> list[str]:
    owners = {"tool_use": "assistant", "thinking": "assistant", "tool_result": "user"}
    messages = _messages(judged)
    found = []
    for index, position, block in _blocks(judged):
        kind = block["type"]
        if kind in owners and messages[index]["role"] != owners[kind]:
            found.append(
                f"messages.{index}.content.{position}: `{kind}` blocks can only be in `{owners[kind]}` messages"
            )
    return found


def _ids(message: Any, kind: str, key: str) -> list[str]:
    return [block[key] for block in blocks_of(message["content"]) if block["type"] == kind]


def _tool_use_answered(judged: Judged) -> list[str]:
    messages = _messages(judged)
    found = []
    for index, message in enumerate(messages):
        if message["role"] != "assistant":
            continue
        following = messages[index + 1] if index + 1 < len(messages) else None
        answered = _ids(following, "tool_result", "tool_use_id") if following and following["role"] == "user" else []
        missing = [call for call in _ids(message, "tool_use", "id") if call not in answered]
        if missing:
            found.append(
                f"messages.{index}: `tool_use` ids were found without `tool_result` blocks immediately after: "
                f"{', '.join(missing)}. Each `tool_use` block must have a corresponding `tool_result` block "
                "in the next message."
            )
    return found


def _tool_result_asked(judged: Judged) -> list[str]:
    messages = _messages(judged)
    found = []
    for index, position, block in _blocks(judged, "user", "tool_result"):
        before = messages[index - 1] if index else None
        asked = _ids(before, "tool_use", "id") if before and before["role"] == "assistant" else []
        if block["tool_use_id"] not in asked:
            found.append(
                f"messages.{index}.content.{position}: unexpected `tool_use_id` found in `tool_result` blocks: "
                f"{block['tool_use_id']}. Each `tool_result` block must have a corresponding `tool_use` block "
                "in the previous message."
            )
    return found


def _tool_use_ids_unique(judged: Judged) -> list[str]:
    seen: set[str] = set()
    found = []
    for index, position, block in _blocks(judged, "assistant", "tool_use"):
        if block["id"] in seen:
            found.append(f"messages.{index}.content.{position}: `tool_use` ids must be unique")
        seen.add(block["id"])
    return found


def _tool_result_once(judged: Judged) -> list[str]:
    found = []
    for index, message in enumerate(_messages(judged)):
        seen: set[str] = set()
        for position, block in enumerate(blocks_of(message["content"])):
            if block["type"] != "tool_result":
                continue
            if block["tool_use_id"] in seen:
                found.append(
                    f"messages.{index}.content.{position}: each tool_use must have a single result. "
                    f"Found multiple `tool_result` blocks with id: {block['tool_use_id']}"
                )
            seen.add(block["tool_use_id"])
    return found


def _tool_results_first(judged: Judged) -> list[str]:
    found = []
    for index, message in enumerate(_messages(judged)):
        kinds = [block["type"] for block in blocks_of(message["content"])]
        results = kinds.count("tool_result")
        leading = next((count for count, kind in enumerate(kinds) if kind != "tool_result"), len(kinds))
        if message["role"] == "user" and leading < results:
            found.append(
                f"messages.{index}: Did not find {results} `tool_result` block(s) at the beginning of this message. "
                "Messages following `tool_use` blocks must begin with a matching number of `tool_result` blocks."
            )
    return found


def _tool_names(judged: Judged) -> list[str]:
    wording = f"String should match pattern '{TOOL_NAME_PATTERN}'"
    found = [
        f"tools.{index}.custom.name: {wording}"
        for index, tool in enumerate(judged.body.get("tools") or [])
        if not _TOOL_NAME.fullmatch(tool["name"])
    ]
    found += [
        f"messages.{index}.content.{position}.tool_use.name: {wording}"
        for index, position, block in _blocks(judged, "assistant", "tool_use")
        if not _TOOL_NAME.fullmatch(block["name"])
    ]
    return found


def _tool_names_unique(judged: Judged) -> list[str]:
    names = [tool["name"] for tool in judged.body.get("tools") or []]
    return ["tools: Tool names must be unique."] if len(names) != len(set(names)) else []


def _thinking_signed(judged: Judged) -> list[str]:
    return [
        f"messages.{index}.content.{position}: Invalid `signature` in `thinking` block"
        for index, position, block in _blocks(judged, "assistant", "thinking")
        if not hmac.compare_digest(block["signature"].encode(), signature_of(block["thinking"]).encode())
    ]


def _final_whitespace(judged: Judged) -> list[str]:
    messages = _messages(judged)
    if not messages or messages[-1]["role"] != "assistant":
        return []
    blocks = blocks_of(messages[-1]["content"])
    if blocks and blocks[-1]["type"] == "text" and blocks[-1]["text"] != blocks[-1]["text"].rstrip():
        return ["messages: final assistant content cannot end with trailing whitespace"]
    return []


def _window(judged: Judged) -> list[str]:
    if judged.tokens <= judged.window_tokens:
        return []
    return [PROMPT_TOO_LONG.format(tokens=judged.tokens, window_tokens=judged.window_tokens)]


SHAPE_RULES: Mapping[str, Rule] = {
    "required-fields": _required_fields,
    "field-types": _field_types,
    "max-tokens-positive": _max_tokens_positive,
    "message-shape": _message_shape,
    "roles": _roles,
    "block-shape": _block_shape,
    "tool-shape": _tool_shape,
}
"""Rules about single fields, in the order in which they speak."""

CONVERSATION_RULES: Mapping[str, Rule] = {
    "at-least-one-message": _at_least_one_message,
    "first-role": _first_role,
    "empty-content": _empty_content,
    "empty-text": _empty_text,
    "block-roles": _block_roles,
    "tool-results-first": _tool_results_first,
    "tool-use-answered": _tool_use_answered,
    "tool-result-asked": _tool_result_asked,
    "tool-use-ids-unique": _tool_use_ids_unique,
    "tool-result-once": _tool_result_once,
    "tool-names": _tool_names,
    "tool-names-unique": _tool_names_unique,
    "thinking-signed": _thinking_signed,
    "final-whitespace": _final_whitespace,
    "window": _window,
}
"""Rules about the conversation, in the order in which they speak; they rely on every shape rule having passed."""


def judge(rules: Mapping[str, Rule], judged: Judged) -> tuple[Problem, ...]:
    """Apply a table of rules and return everything found, in the table's order."""
    return tuple(Problem(name, message) for name, rule in rules.items() for message in rule(judged))
