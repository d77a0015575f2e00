"""Which conversations the Messages API refuses, as a table of pure rules; no I/O, no replies.

Each rule reads the decoded JSON body and returns the messages of what it found, in the wording that the real API uses
as far as it is publicly known (platform documentation, "Messages" and "Errors"; public bug reports that quote a 400).
By analogy: ``block-roles``, ``tool-choice-offered`` without tools, and the place that ``tool-results-first`` names.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from fake_provider.dialects.anthropic_shapes import (
    SHAPE_RULES,
    TOOL_NAME,
    TOOL_NAME_PATTERN,
    Body,
    Judged,
    Rule,
    blocks_of,
    is_custom,
    judge,
    messages_of,
)
from fake_provider.dialects.anthropic_thinking import THINKING_RULES, sealed, signature_of
from fake_provider.replies import PROMPT_TOO_LONG

__all__ = [
    "CONVERSATION_RULES",
    "SHAPE_RULES",
    "Judged",
    "blocks_of",
    "estimated_tokens",
    "judge",
    "sealed",
    "signature_of",
]

CACHE_CONTROLS_MAX = 4
TOOL_USE_ID_PATTERN = "^[a-zA-Z0-9_-]+$"
_TOOL_USE_ID = re.compile(TOOL_USE_ID_PATTERN)


def estimated_tokens(body: Body) -> int:
    """Count a request in tokens by rule: the compact UTF-8 JSON of system, tools and messages, four bytes a token.

    The result is rounded up. The rule is a stand-in for the real tokenizer, which is not public; a script that sets
    ``window_tokens`` counts with it.
    """
    counted = [body[key] for key in ("system", "tools", "messages") if key in body]
    return -(-sum(len(msgspec.json.encode(part)) for part in counted) // 4)


def _blocks(judged: Judged, role: str | None = None, kind: str | None = None) -> Iterator[tuple[int, int, Any]]:
    """Yield message index, block index and block, of one role and one type where they are given."""
    for index, message in enumerate(messages_of(judged)):
        if role is not None and message["role"] != role:
            continue
        for position, block in enumerate(blocks_of(message["content"])):
            if kind is None or block["type"] == kind:
                yield index, position, block


def _at_least_one_message(judged: Judged) -> list[str]:
    return [] if messages_of(judged) else ["messages: at least one message is required"]


def _first_role(judged: Judged) -> list[str]:
    messages = messages_of(judged)
    if messages and messages[0]["role"] != "user":
        return ['messages: first message must use the "user" role']
    return []


def _empty_content(judged: Judged) -> list[str]:
    messages = messages_of(judged)
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
    for index, message in enumerate(messages_of(judged)):
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


def _empty_system_text(judged: Judged) -> list[str]:
    system = judged.body.get("system")
    blocks = system if isinstance(system, list) else []
    empty = any(isinstance(block, Mapping) and block.get("text") == "" for block in blocks)
    return ["system: text content blocks must be non-empty"] if empty else []


def _block_roles(judged: Judged) -> list[str]:
    owners = {
        "tool_use": "assistant",
        "thinking": "assistant",
        "redacted_thinking": "assistant",
        "tool_result": "user",
    }
    messages = messages_of(judged)
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
    messages = messages_of(judged)
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
    messages = messages_of(judged)
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


def _tool_use_ids(judged: Judged) -> list[str]:
    return [
        f"messages.{index}.content.{position}.tool_use.id: String should match pattern '{TOOL_USE_ID_PATTERN}'"
        for index, position, block in _blocks(judged, "assistant", "tool_use")
        if not _TOOL_USE_ID.fullmatch(block["id"])
    ]


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
    for index, message in enumerate(messages_of(judged)):
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
    for index, message in enumerate(messages_of(judged)):
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
        if "name" in tool and not TOOL_NAME.fullmatch(tool["name"])
    ]
    found += [
        f"messages.{index}.content.{position}.tool_use.name: {wording}"
        for index, position, block in _blocks(judged, "assistant", "tool_use")
        if not TOOL_NAME.fullmatch(block["name"])
    ]
    return found


def _tool_names_unique(judged: Judged) -> list[str]:
    names = [tool["name"] for tool in judged.body.get("tools") or [] if "name" in tool]
    return ["tools: Tool names must be unique."] if len(names) != len(set(names)) else []


def _tool_input_schemas(judged: Judged) -> list[str]:
    found = []
    for index, tool in enumerate(judged.body.get("tools") or []):
        if not is_custom(tool):
            continue
        where = f"tools.{index}.custom.input_schema"
        schema = tool.get("input_schema")
        if "input_schema" not in tool:
            found.append(f"{where}: Field required")
        elif not isinstance(schema, Mapping):
            found.append(f"{where}: Input should be a valid dictionary")
        elif "type" not in schema:
            found.append(f"{where}.type: Field required")
        elif schema["type"] != "object":
            found.append(f"{where}.type: Input should be 'object'")
    return found


def _tool_choice_offered(judged: Judged) -> list[str]:
    choice = judged.body.get("tool_choice")
    if choice is None:
        return []
    tools = judged.body.get("tools") or []
    if not tools:
        return ["tool_choice: tool_choice may only be specified while providing tools."]
    # What a toolset without a name offers is known to the service alone.
    if choice["type"] == "tool" and all("name" in tool and tool["name"] != choice["name"] for tool in tools):
        return [f"Tool '{choice['name']}' not found in provided tools"]
    return []


def _cache_controls(judged: Judged) -> list[str]:
    system = judged.body.get("system")
    places = [*blocks_of(system), *(judged.body.get("tools") or []), *(block for _, _, block in _blocks(judged))]
    places += [
        inner for _, _, block in _blocks(judged, kind="tool_result") for inner in blocks_of(block.get("content"))
    ]
    count = sum(isinstance(place, Mapping) and place.get("cache_control") is not None for place in places)
    if count <= CACHE_CONTROLS_MAX:
        return []
    return [f"A maximum of {CACHE_CONTROLS_MAX} blocks with cache_control may be provided. Found {count}."]


def _final_whitespace(judged: Judged) -> list[str]:
    messages = messages_of(judged)
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


CONVERSATION_RULES: Mapping[str, Rule] = {
    "at-least-one-message": _at_least_one_message,
    "first-role": _first_role,
    "empty-content": _empty_content,
    "empty-text": _empty_text,
    "empty-system-text": _empty_system_text,
    "block-roles": _block_roles,
    "tool-results-first": _tool_results_first,
    "tool-use-answered": _tool_use_answered,
    "tool-result-asked": _tool_result_asked,
    "tool-use-ids": _tool_use_ids,
    "tool-use-ids-unique": _tool_use_ids_unique,
    "tool-result-once": _tool_result_once,
    "tool-names": _tool_names,
    "tool-names-unique": _tool_names_unique,
    "tool-input-schemas": _tool_input_schemas,
    "tool-choice-offered": _tool_choice_offered,
    "cache-controls": _cache_controls,
    **THINKING_RULES,
    "final-whitespace": _final_whitespace,
    "window": _window,
}
"""Rules about the conversation, in the order in which they speak; they rely on every shape rule having passed."""
