"""Which single fields the Messages API refuses: a table of pure rules over the decoded body; no I/O, no replies.

These rules come before those about the conversation, which rely on what they establish. Each returns the messages of
what it found. The wordings of missing, mistyped and extra fields are those of the API's own schema check, known from
public bug reports that quote a 400; the wording about a tool that was not offered is by analogy.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from fake_provider.dialects.problems import Problem

TOOL_NAME_PATTERN = "^[a-zA-Z0-9_-]{1,128}$"
TOOL_NAME = re.compile(TOOL_NAME_PATTERN)

Body: TypeAlias = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Judged:
    """A request under judgement.

    Attributes:
        body: The decoded JSON.
        tokens: Its size by the dialect's counting rule.
        window_tokens: The context window.
        betas: The words of the ``anthropic-beta`` header.
    """

    body: Body
    tokens: int
    window_tokens: int
    betas: tuple[str, ...] = ()


Rule: TypeAlias = Callable[[Judged], list[str]]


def judge(rules: Mapping[str, Rule], judged: Judged) -> tuple[Problem, ...]:
    """Apply a table of rules and return everything found, in the table's order."""
    return tuple(Problem(name, message) for name, rule in rules.items() for message in rule(judged))


def blocks_of(content: Any) -> list[Any]:
    """Return a message's content as a list of blocks; plain text is one text block."""
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    return content if isinstance(content, list) else []


def messages_of(judged: Judged) -> list[Any]:
    """Return the messages, or none where the field is not a list."""
    messages = judged.body.get("messages")
    return messages if isinstance(messages, list) else []


def is_custom(tool: Mapping[str, Any]) -> bool:
    """Whether a tool is the client's own; the service's are known by their type, and its toolsets have no name."""
    return tool.get("type") in (None, "custom")


_STRING = "Input should be a valid string"
_DICTIONARY = "Input should be a valid dictionary"
_LIST = "Input should be a valid list"
_INTEGER = "Input should be a valid integer"
_BOOLEAN = "Input should be a valid boolean"

_FIELDS: Mapping[str, tuple[type, str]] = {
    "model": (str, _STRING),
    "messages": (list, _LIST),
    "max_tokens": (int, _INTEGER),
    "stream": (bool, _BOOLEAN),
    "tools": (list, _LIST),
    "stop_sequences": (list, _LIST),
}

_OTHER_FIELDS = frozenset(
    {
        "billing_policy",
        "cache_control",
        "compaction",
        "container",
        "context_management",
        "diagnostics",
        "fallback_credit_token",
        "fallbacks",
        "inference_geo",
        "mcp_servers",
        "metadata",
        "output_config",
        "output_format",
        "service_tier",
        "speed",
        "system",
        "temperature",
        "thinking",
        "thread",
        "tool_choice",
        "top_k",
        "top_p",
        "user_profile_id",
        "workspace_id",
    }
)

_MESSAGE_FIELDS = frozenset({"content", "role"})
_SYSTEM_MESSAGE_FIELDS = _MESSAGE_FIELDS | {"clear_at", "output_config"}

_BLOCK_FIELDS: Mapping[str, Mapping[str, tuple[type, str]]] = {
    "text": {"text": (str, _STRING)},
    "thinking": {"thinking": (str, _STRING), "signature": (str, _STRING)},
    "redacted_thinking": {"data": (str, _STRING)},
    "tool_use": {"id": (str, _STRING), "name": (str, _STRING), "input": (dict, _DICTIONARY)},
    "tool_result": {"tool_use_id": (str, _STRING)},
}

_BLOCK_OPTIONAL_FIELDS: Mapping[str, frozenset[str]] = {
    "text": frozenset({"cache_control", "citations"}),
    "thinking": frozenset(),
    "redacted_thinking": frozenset(),
    "tool_use": frozenset({"cache_control", "caller", "toolset_name"}),
    "tool_result": frozenset({"cache_control", "content", "is_error", "toolset_name"}),
}


def _is_a(value: Any, kind: type) -> bool:
    return isinstance(value, kind) and not (kind is int and isinstance(value, bool))


def _required_fields(judged: Judged) -> list[str]:
    return [f"{key}: Field required" for key in ("model", "messages", "max_tokens") if key not in judged.body]


def _field_types(judged: Judged) -> list[str]:
    body = judged.body
    found = [
        f"{key}: {wording}" for key, (kind, wording) in _FIELDS.items() if key in body and not _is_a(body[key], kind)
    ]
    if "system" in body and not isinstance(body["system"], str | list):
        found.append(f"system: {_LIST}")
    return found


def _extra_fields(judged: Judged) -> list[str]:
    known = _FIELDS.keys() | _OTHER_FIELDS
    return [f"{key}: Extra inputs are not permitted" for key in judged.body if key not in known]


def _max_tokens_range(judged: Judged) -> list[str]:
    value = judged.body.get("max_tokens")
    # Nothing to generate is a request too: it fills the prompt cache.
    if _is_a(value, int) and value < 0:  # type: ignore[operator]
        return ["max_tokens: Input should be greater than or equal to 0"]
    return []


def _temperature_range(judged: Judged) -> list[str]:
    value = judged.body.get("temperature")
    if value is None:
        return []
    if not isinstance(value, int | float) or isinstance(value, bool):
        return ["temperature: Input should be a valid number"]
    if value < 0:
        return ["temperature: Input should be greater than or equal to 0"]
    return ["temperature: Input should be less than or equal to 1"] if value > 1 else []


def _message_shape(judged: Judged) -> list[str]:
    found = []
    for index, message in enumerate(messages_of(judged)):
        if not isinstance(message, Mapping):
            found.append(f"messages.{index}: {_DICTIONARY}")
            continue
        found += [f"messages.{index}.{key}: Field required" for key in ("role", "content") if key not in message]
        if "content" in message and not isinstance(message["content"], str | list):
            found.append(f"messages.{index}.content: {_LIST}")
    return found


def _message_extras(judged: Judged) -> list[str]:
    return [
        f"messages.{index}.{key}: Extra inputs are not permitted"
        for index, message in enumerate(messages_of(judged))
        if isinstance(message, Mapping)
        for key in message
        if key not in (_SYSTEM_MESSAGE_FIELDS if message.get("role") == "system" else _MESSAGE_FIELDS)
    ]


def _roles(judged: Judged) -> list[str]:
    return [
        f"messages.{index}.role: Input should be 'user', 'assistant' or 'system'"
        for index, message in enumerate(messages_of(judged))
        if isinstance(message, Mapping) and message.get("role", "user") not in ("user", "assistant", "system")
    ]


def _placed_blocks(judged: Judged) -> Iterator[tuple[str, Any]]:
    for index, message in enumerate(messages_of(judged)):
        content = message.get("content") if isinstance(message, Mapping) else None
        for position, block in enumerate(blocks_of(content)):
            yield f"messages.{index}.content.{position}", block


def _block_shape(judged: Judged) -> list[str]:
    found = []
    for where, block in _placed_blocks(judged):
        if not isinstance(block, Mapping):
            found.append(f"{where}: {_DICTIONARY}")
        elif not isinstance(block.get("type"), str):
            found.append(f"{where}.type: Field required")
        else:
            kind = block["type"]
            for key, (expected, wording) in _BLOCK_FIELDS.get(kind, {}).items():
                if key not in block:
                    found.append(f"{where}.{kind}.{key}: Field required")
                elif not isinstance(block[key], expected):
                    found.append(f"{where}.{kind}.{key}: {wording}")
    return found


def _block_extras(judged: Judged) -> list[str]:
    found = []
    for where, block in _placed_blocks(judged):
        kind = block.get("type") if isinstance(block, Mapping) else None
        if isinstance(kind, str) and kind in _BLOCK_FIELDS:
            known = {"type"} | _BLOCK_FIELDS[kind].keys() | _BLOCK_OPTIONAL_FIELDS[kind]
            found += [f"{where}.{kind}.{key}: Extra inputs are not permitted" for key in block if key not in known]
    return found


def _tool_shape(judged: Judged) -> list[str]:
    tools = judged.body.get("tools")
    found = []
    for index, tool in enumerate(tools if isinstance(tools, list) else []):
        if not isinstance(tool, Mapping):
            found.append(f"tools.{index}: {_DICTIONARY}")
        elif is_custom(tool) and "name" not in tool:
            found.append(f"tools.{index}.custom.name: Field required")
        elif not isinstance(tool.get("name", ""), str):
            found.append(f"tools.{index}.{'custom' if is_custom(tool) else tool['type']}.name: {_STRING}")
    return found


def _tagged(judged: Judged, key: str, tags: tuple[str, ...]) -> list[str]:
    """Judge a field whose ``type`` says which of several forms it has."""
    value = judged.body.get(key)
    if value is None:
        return []
    if not isinstance(value, Mapping):
        return [f"{key}: {_DICTIONARY}"]
    if "type" not in value:
        return [f"{key}: Unable to extract tag using discriminator 'type'"]
    if value["type"] not in tags:
        expected = ", ".join(f"'{tag}'" for tag in tags)
        return [
            f"{key}: Input tag '{value['type']}' found using 'type' does not match any of the expected tags: {expected}"
        ]
    return []


def _thinking_shape(judged: Judged) -> list[str]:
    found = _tagged(judged, "thinking", ("adaptive", "between_tools", "disabled", "enabled"))
    thinking = judged.body.get("thinking")
    if found or thinking is None or thinking["type"] != "enabled":
        return found
    where = "thinking.enabled.budget_tokens"
    if "budget_tokens" not in thinking:
        return [f"{where}: Field required"]
    if not _is_a(thinking["budget_tokens"], int):
        return [f"{where}: {_INTEGER}"]
    return [f"{where}: Input should be greater than or equal to 1024"] if thinking["budget_tokens"] < 1024 else []


def _tool_choice_shape(judged: Judged) -> list[str]:
    found = _tagged(judged, "tool_choice", ("any", "auto", "none", "tool"))
    choice = judged.body.get("tool_choice")
    if found or choice is None or choice["type"] != "tool":
        return found
    if "name" not in choice:
        return ["tool_choice.tool.name: Field required"]
    return [] if isinstance(choice["name"], str) else [f"tool_choice.tool.name: {_STRING}"]


def _stop_sequences(judged: Judged) -> list[str]:
    sequences = judged.body.get("stop_sequences")
    found = []
    for index, sequence in enumerate(sequences if isinstance(sequences, list) else []):
        if not isinstance(sequence, str):
            found.append(f"stop_sequences.{index}: {_STRING}")
        elif not sequence.strip():
            found.append("stop_sequences: each stop sequence must contain non-whitespace")
    return found


SHAPE_RULES: Mapping[str, Rule] = {
    "required-fields": _required_fields,
    "field-types": _field_types,
    "extra-fields": _extra_fields,
    "max-tokens-range": _max_tokens_range,
    "temperature-range": _temperature_range,
    "message-shape": _message_shape,
    "message-extras": _message_extras,
    "roles": _roles,
    "block-shape": _block_shape,
    "block-extras": _block_extras,
    "tool-shape": _tool_shape,
    "thinking-shape": _thinking_shape,
    "tool-choice-shape": _tool_choice_shape,
    "stop-sequences": _stop_sequences,
}
"""Rules about single fields, in the order in which they speak."""
