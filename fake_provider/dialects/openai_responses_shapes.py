"""Which Responses requests are out of shape, as a table of pure rules about single fields; no I/O, no replies.

It never looks at how the items of a conversation belong together; the rules that do rely on these having passed. The
wordings are those of the real service as far as public bug reports quote them; that of an empty input text is by
analogy.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from fake_provider.dialects.openai_fields import (
    CALL_ID_CHARACTERS_MAX,
    Body,
    Field,
    Finding,
    Judged,
    Rule,
    fields_found,
    missing,
    name_found,
    string_length_found,
    wrong_type,
    wrong_value,
)
from fake_provider.dialects.openai_tools import CALL_TYPES, offered_tools

COUNTED = ("instructions", "tools", "input")
"""The fields that count as input."""

_TEXT_OR_PARTS = "one of a string or array of objects"

FIELDS = (
    Field("model", "a string", required=True),
    Field("input", _TEXT_OR_PARTS),
    Field("instructions", "a string"),
    Field("stream", "a boolean"),
    Field("stream_options", "an object"),
    Field("store", "a boolean"),
    Field("background", "a boolean"),
    Field("max_output_tokens", "an integer", minimum=16),
    Field("max_tool_calls", "an integer", minimum=1),
    Field("temperature", "a decimal", minimum=0, maximum=2),
    Field("top_p", "a decimal", minimum=0, maximum=1),
    Field("tools", "an array of objects"),
    Field("tool_choice", "one of a string or object"),
    Field("parallel_tool_calls", "a boolean"),
    Field("previous_response_id", "a string"),
    Field("conversation", "one of a string or object"),
    Field("prompt", "an object"),
    Field("reasoning", "an object"),
    Field("text", "an object"),
    Field("include", "an array"),
    Field("metadata", "an object"),
    Field("truncation", "a string"),
    Field("service_tier", "a string"),
    Field("user", "a string"),
)

OTHER_FIELDS = frozenset({
    "access_programs", "background_options", "context_management", "image", "moderation", "prompt_cache_key",
    "prompt_cache_options", "prompt_cache_retention", "safety_identifier", "top_logprobs",
})  # fmt: skip
"""The API's fields whose values no rule looks at."""

COMPATIBLE_FIELDS = frozenset({"client_metadata"})
"""Fields beside the documented ones that the service's own agent sends."""

MOVED: Mapping[str, str] = {
    "messages": "input",
    "max_tokens": "max_output_tokens",
    "max_completion_tokens": "max_output_tokens",
    "response_format": "text.format",
    "reasoning_effort": "reasoning.effort",
}
"""Fields of Chat Completions, and where they are here."""

_KNOWN = frozenset(field.name for field in FIELDS) | OTHER_FIELDS | COMPATIBLE_FIELDS

ROLES = ("assistant", "system", "developer", "user")
OUTPUT_PARTS = ("output_text", "refusal")
INPUT_PARTS = (
    "input_text", "input_image", "output_text", "refusal", "input_file", "computer_screenshot", "summary_text",
)  # fmt: skip

_CALL_ID = Field("call_id", "a string", required=True)
_OUTPUT = Field("output", _TEXT_OR_PARTS, required=True)

ITEM_FIELDS: Mapping[str, tuple[Field, ...]] = {
    "message": (Field("role", "a string", required=True), Field("content", _TEXT_OR_PARTS, required=True)),
    "function_call": (
        Field("id", "a string"),
        _CALL_ID,
        Field("name", "a string", required=True),
        Field("arguments", "a string", required=True),
    ),
    "function_call_output": (_CALL_ID, _OUTPUT),
    "custom_tool_call": (
        Field("id", "a string"),
        _CALL_ID,
        Field("name", "a string", required=True),
        Field("input", "a string", required=True),
    ),
    "custom_tool_call_output": (_CALL_ID, _OUTPUT),
    "reasoning": (
        Field("id", "a string"),
        Field("summary", "an array of objects", required=True),
        Field("encrypted_content", "a string"),
    ),
    "item_reference": (Field("id", "a string", required=True),),
}
"""What the items have to be that a rule looks into."""

ITEM_TYPES = (
    "additional_tools", "apply_patch_call", "apply_patch_call_output", "code_interpreter_call", "compaction",
    "compaction_trigger", "computer_call", "computer_call_output", "configuration_update", "custom_tool_call",
    "custom_tool_call_output", "file_search_call", "function_call", "function_call_output", "image_generation_call",
    "item_reference", "local_shell_call", "local_shell_call_output", "mcp_approval_request", "mcp_approval_response",
    "mcp_call", "mcp_list_tools", "message", "program", "program_output", "reasoning", "shell_call",
    "shell_call_output", "tool_search_call", "tool_search_output", "web_search_call",
)  # fmt: skip

CALLS: Mapping[str, tuple[str, str]] = {
    "function_call": ("function_call_output", "function call"),
    "custom_tool_call": ("custom_tool_call_output", "custom tool call"),
}
"""The output that answers a call, and what the service calls the call, by the call's type."""

ID_PREFIXES: Mapping[str, str] = {"message": "msg", "reasoning": "rs", "function_call": "fc", "custom_tool_call": "ctc"}


def items_of(body: Body) -> list[Any]:
    """Return the input as a list of items; plain text is one message of the user."""
    given = body.get("input")
    if isinstance(given, str):
        return [{"type": "message", "role": "user", "content": given}]
    return given if isinstance(given, list) else []


def type_of(item: Mapping[str, Any]) -> str:
    """Return an item's type, which a message and a reference may leave out; nothing where it cannot be told."""
    kind = item.get("type")
    if kind is not None:
        return str(kind)
    if "role" in item:
        return "message"
    return "item_reference" if set(item) == {"id"} else ""


def items_judged(judged: Judged) -> Iterator[tuple[int, Mapping[str, Any]]]:
    """Yield each item that is an object, with its index."""
    for index, item in enumerate(items_of(judged.body)):
        if isinstance(item, Mapping):
            yield index, item


def _known_fields(judged: Judged) -> list[Finding]:
    found = []
    for name in judged.body:
        if name in MOVED:
            text = (
                f"Unsupported parameter: '{name}'. In the Responses API, this parameter has moved to '{MOVED[name]}'. "
                "Try again with the new parameter. See the API documentation for more information: "
                "https://platform.openai.com/docs/api-reference/responses/create."
            )
            found.append(Finding(text, name, "unsupported_parameter"))
        elif name not in _KNOWN:
            found.append(Finding(f"Unknown parameter: '{name}'.", name, "unknown_parameter"))
    return found


def _field_values(judged: Judged) -> list[Finding]:
    return fields_found(judged.body, FIELDS)


def _input_given(judged: Judged) -> list[Finding]:
    body = judged.body
    if body.get("input") == "":
        return string_length_found("input", "", 1)
    if any(body.get(name) is not None for name in ("input", "previous_response_id", "prompt", "conversation")):
        return []
    text = "One of \"input\" or \"previous_response_id\" or 'prompt' or 'conversation_id' must be provided."
    return [Finding(text, "input", "missing_required_parameter")]


def _item_types(judged: Judged) -> list[Finding]:
    found = []
    for index, item in items_judged(judged):
        kind = type_of(item)
        if not kind:
            found.append(missing(f"input[{index}].type"))
        elif kind not in ITEM_TYPES:
            found.append(wrong_value(f"input[{index}]", str(kind), ITEM_TYPES))
    return found


def _item_fields(judged: Judged) -> list[Finding]:
    return [
        finding
        for index, item in items_judged(judged)
        for finding in fields_found(item, ITEM_FIELDS.get(type_of(item), ()), f"input[{index}]")
    ]


def _item_ids(judged: Judged) -> list[Finding]:
    found = []
    for index, item in items_judged(judged):
        prefix = ID_PREFIXES.get(type_of(item))
        given = item.get("id")
        if prefix and isinstance(given, str) and not given.startswith(prefix):
            text = f"Invalid 'input[{index}].id': '{given}'. Expected an ID that begins with '{prefix}'."
            found.append(Finding(text, f"input[{index}].id", "invalid_value"))
    return found


def _reasoning_status(judged: Judged) -> list[Finding]:
    return [
        Finding(f"Unknown parameter: 'input[{index}].status'.", f"input[{index}].status", "unknown_parameter")
        for index, item in items_judged(judged)
        # The official client writes a null that the service never sent.
        if type_of(item) == "reasoning" and item.get("status", "completed") is None
    ]


def _roles(judged: Judged) -> list[Finding]:
    return [
        wrong_value(f"input[{index}].role", item["role"], ROLES)
        for index, item in items_judged(judged)
        if type_of(item) == "message" and isinstance(item.get("role"), str) and item["role"] not in ROLES
    ]


def _parts(judged: Judged) -> list[Finding]:
    found = []
    for index, item in items_judged(judged):
        content = item.get("content")
        if type_of(item) != "message" or not isinstance(content, list):
            continue
        supported = OUTPUT_PARTS if item.get("role") == "assistant" else INPUT_PARTS
        for position, part in enumerate(content):
            if isinstance(part, Mapping):
                found += _part_found(f"input[{index}].content[{position}]", part, supported)
    return found


def _part_found(place: str, part: Mapping[str, Any], supported: tuple[str, ...]) -> list[Finding]:
    kind = part.get("type")
    if kind is None:
        return [missing(f"{place}.type")]
    if kind not in supported:
        return [wrong_value(f"{place}.type", str(kind), supported)]
    if kind in ("input_text", "output_text"):
        return fields_found(part, (Field("text", "a string", required=True),), place)
    if kind == "refusal":
        return fields_found(part, (Field("refusal", "a string", required=True),), place)
    return []


def _call_shape(judged: Judged) -> list[Finding]:
    found = []
    for index, item in items_judged(judged):
        place = f"input[{index}]"
        if type_of(item) in ITEM_FIELDS and isinstance(item.get("call_id"), str):
            found += string_length_found(f"{place}.call_id", item["call_id"], CALL_ID_CHARACTERS_MAX)
        if type_of(item) in CALLS and isinstance(item.get("name"), str):
            found += name_found(f"{place}.name", item["name"])
    return found


def _tools_shape(judged: Judged) -> list[Finding]:
    tools = judged.body.get("tools")
    return [
        finding
        for index, tool in enumerate(tools if isinstance(tools, list) else ())
        if isinstance(tool, Mapping)
        for finding in _tool_found(f"tools[{index}]", tool)
    ]


def _tool_found(place: str, tool: Mapping[str, Any]) -> list[Finding]:
    kind = tool.get("type")
    if kind is None:
        return [missing(f"{place}.type")]
    if not isinstance(kind, str):
        return [wrong_type(f"{place}.type", "a string", kind)]
    if kind not in (*CALL_TYPES, "namespace"):
        return []
    name = tool.get("name")
    if name is None:
        return [missing(f"{place}.name")]
    if not isinstance(name, str):
        return [wrong_type(f"{place}.name", "a string", name)]
    found = name_found(f"{place}.name", name)
    if kind == "namespace":
        found += fields_found(tool, (Field("tools", "an array of objects", required=True),), place)
        inner = tool.get("tools")
        for index, one in enumerate(inner if isinstance(inner, list) else ()):
            if isinstance(one, Mapping):
                found += _tool_found(f"{place}.tools[{index}]", one)
    return found


def _tool_choice(judged: Judged) -> list[Finding]:
    choice = judged.body.get("tool_choice")
    tools = judged.body.get("tools")
    if choice == "required" and not tools:
        return [Finding("Tool choice 'required' must be specified with 'tools' parameter.", "tool_choice")]
    if not isinstance(choice, Mapping) or choice.get("type") not in tuple(CALL_TYPES) or _tools_shape(judged):
        return []
    if any(choice.get("name") in (tool.name, tool.joined) for tool in offered_tools(tools)):
        return []
    return [Finding(f"Tool choice '{choice['type']}' not found in 'tools' parameter.", "tool_choice")]


SHAPE_RULES: Mapping[str, Rule] = {
    "known-fields": _known_fields,
    "field-values": _field_values,
    "input-given": _input_given,
    "item-types": _item_types,
    "item-fields": _item_fields,
    "item-ids": _item_ids,
    "reasoning-status": _reasoning_status,
    "roles": _roles,
    "parts": _parts,
    "call-shape": _call_shape,
    "tools-shape": _tools_shape,
    "tool-choice": _tool_choice,
}
"""Rules about single fields, in the order in which they speak."""
