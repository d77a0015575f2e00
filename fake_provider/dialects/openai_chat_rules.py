"""Which requests the Chat Completions API refuses, as two tables of pure rules; no I/O, no replies.

Shape rules look at single fields and come first, because the conversation rules rely on what they establish. The
wordings are those of the real service as far as public bug reports quote them. By analogy: a call id repeated within
one message, an empty content array, and which types the service lists for a content part. More lenient than the real
service, because agents speak this protocol to many servers: the fields of ``COMPATIBLE_FIELDS``, and any extra field
inside a message.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from fake_provider.dialects.openai_errors import CONTEXT_CODE
from fake_provider.dialects.openai_fields import (
    CALL_ID_CHARACTERS_MAX,
    Body,
    Field,
    Finding,
    Judged,
    Rule,
    empty_array,
    estimated_tokens,
    fields_found,
    is_kind,
    missing,
    name_found,
    string_length_found,
    wrong_type,
    wrong_value,
)

COUNTED = ("tools", "functions", "messages")
"""The fields that count as input."""

_TEXT_OR_PARTS = "one of a string or array of objects"
ROLES = ("system", "assistant", "user", "function", "tool", "developer")
PART_TYPES = ("text", "image_url", "input_audio", "refusal", "audio", "file")

FIELDS = (
    Field("messages", "an array of objects", required=True),
    Field("stream", "a boolean"),
    Field("stream_options", "an object"),
    Field("max_tokens", "an integer", minimum=1),
    Field("max_completion_tokens", "an integer", minimum=1),
    Field("temperature", "a decimal", minimum=0, maximum=2),
    Field("top_p", "a decimal", minimum=0, maximum=1),
    Field("presence_penalty", "a decimal", minimum=-2, maximum=2),
    Field("frequency_penalty", "a decimal", minimum=-2, maximum=2),
    Field("n", "an integer", minimum=1, maximum=128),
    Field("seed", "an integer"),
    Field("stop", "one of a string or array of strings"),
    Field("tools", "an array of objects"),
    Field("tool_choice", "one of a string or object"),
    Field("parallel_tool_calls", "a boolean"),
    Field("response_format", "an object"),
    Field("reasoning_effort", "a string"),
    Field("service_tier", "a string"),
    Field("metadata", "an object"),
    Field("store", "a boolean"),
    Field("user", "a string"),
)

OTHER_FIELDS = frozenset({
    "model", "audio", "function_call", "functions", "logit_bias", "logprobs", "modalities", "moderation", "prediction",
    "prompt_cache_key", "prompt_cache_options", "prompt_cache_retention", "safety_identifier", "top_logprobs",
    "verbosity", "web_search_options",
})  # fmt: skip
"""The API's fields whose values no rule looks at."""

COMPATIBLE_FIELDS = frozenset({
    "cache_control", "chat_template_kwargs", "enable_thinking", "include_reasoning", "min_p", "provider", "reasoning",
    "repetition_penalty", "thinking", "thinking_budget", "top_k", "transforms", "usage",
})  # fmt: skip
"""Fields that OpenAI refuses and that servers of the same protocol take; an agent pointed here may send them."""

_KNOWN = frozenset(field.name for field in FIELDS) | OTHER_FIELDS | COMPATIBLE_FIELDS

_COMPLETION_TOKENS_ONLY = re.compile(r"(?:o\d|gpt-[5-9])(?:[-.]|$)")
"""Models that take ``max_completion_tokens`` only: the reasoning models (platform documentation, "Reasoning")."""

_TOOL_MESSAGE = (Field("tool_call_id", "a string", required=True),)
_CALL = (Field("id", "a string", required=True), Field("type", "a string", required=True))
_FUNCTION = (Field("name", "a string", required=True), Field("arguments", "a string", required=True))


def _messages(judged: Judged) -> Iterator[tuple[int, Mapping[str, Any]]]:
    messages = judged.body.get("messages")
    for index, message in enumerate(messages if isinstance(messages, list) else []):
        if isinstance(message, Mapping):
            yield index, message


def _objects(value: Any) -> Iterator[tuple[int, Mapping[str, Any]]]:
    for index, item in enumerate(value if isinstance(value, list) else []):
        if isinstance(item, Mapping):
            yield index, item


def _model_given(judged: Judged) -> list[Finding]:
    model = judged.body.get("model")
    if model is None:
        return [Finding("you must provide a model parameter")]
    return [] if isinstance(model, str) else [wrong_type("model", "a string", model)]


def _known_fields(judged: Judged) -> list[Finding]:
    unknown = [name for name in judged.body if name not in _KNOWN]
    if not unknown:
        return []
    plural = "s" if len(unknown) > 1 else ""
    return [Finding(f"Unrecognized request argument{plural} supplied: {', '.join(unknown)}")]


def _field_values(judged: Judged) -> list[Finding]:
    return fields_found(judged.body, FIELDS)


def _arrays_filled(judged: Judged) -> list[Finding]:
    return [empty_array(name) for name in ("messages", "tools") if judged.body.get(name) == []]


def _roles(judged: Judged) -> list[Finding]:
    found = []
    for index, message in _messages(judged):
        place = f"messages[{index}].role"
        role = message.get("role")
        if role is None:
            found.append(missing(place))
        elif not isinstance(role, str):
            found.append(wrong_type(place, "a string", role))
        elif role not in ROLES:
            found.append(wrong_value(place, role, ROLES))
    return found


def _content(judged: Judged) -> list[Finding]:
    found = []
    for index, message in _messages(judged):
        place = f"messages[{index}].content"
        content = message.get("content")
        if content is None:
            excused = message.get("role") == "assistant" and (
                message.get("tool_calls")
                or message.get("function_call")
                or message.get("audio")
                or message.get("refusal") is not None
            )
            if "content" not in message and message.get("role") not in ("assistant", "function"):
                found.append(missing(place))
            elif not excused:
                found.append(
                    Finding("Invalid value for 'content': expected a string, got null.", f"messages.[{index}].content")
                )
        elif not is_kind(content, _TEXT_OR_PARTS):
            found.append(wrong_type(place, _TEXT_OR_PARTS, content))
        elif content == []:
            found.append(empty_array(place))
    return found


def _parts(judged: Judged) -> list[Finding]:
    found = []
    for index, message in _messages(judged):
        content = message.get("content")
        for position, part in enumerate(content if isinstance(content, list) else []):
            place = f"messages[{index}].content[{position}]"
            if not isinstance(part, Mapping):
                continue
            kind = part.get("type")
            if kind is None:
                found.append(missing(f"{place}.type"))
            elif kind not in PART_TYPES:
                found.append(wrong_value(f"{place}.type", str(kind), PART_TYPES))
            elif kind in ("text", "refusal"):
                found += fields_found(part, (Field(kind, "a string", required=True),), place)
    return found


def _calls_shape(judged: Judged) -> list[Finding]:
    found = []
    for index, message in _messages(judged):
        calls = message.get("tool_calls")
        place = f"messages[{index}].tool_calls"
        if calls is None:
            continue
        if not is_kind(calls, "an array of objects"):
            found.append(wrong_type(place, "an array of objects", calls))
        elif not calls:
            found.append(empty_array(place))
        for position, call in _objects(calls):
            found += _call_found(f"{place}[{position}]", call)
    return found


def _call_found(place: str, call: Mapping[str, Any]) -> list[Finding]:
    found = fields_found(call, _CALL, place)
    if isinstance(call.get("id"), str):
        found += string_length_found(f"{place}.id", call["id"], CALL_ID_CHARACTERS_MAX)
    kind = call.get("type")
    if isinstance(kind, str) and kind not in ("function", "custom"):
        found.append(wrong_value(f"{place}.type", kind, ("function", "custom")))
    if kind != "function":
        return found
    function = call.get("function")
    if function is None:
        return [*found, missing(f"{place}.function")]
    if not isinstance(function, Mapping):
        return [*found, wrong_type(f"{place}.function", "an object", function)]
    found += fields_found(function, _FUNCTION, f"{place}.function")
    if isinstance(function.get("name"), str):
        found += name_found(f"{place}.function.name", function["name"])
    return found


def _tool_messages_shape(judged: Judged) -> list[Finding]:
    return [
        finding
        for index, message in _messages(judged)
        if message.get("role") == "tool"
        for finding in fields_found(message, _TOOL_MESSAGE, f"messages[{index}]")
    ]


def _tools_shape(judged: Judged) -> list[Finding]:
    found = []
    for index, tool in _objects(judged.body.get("tools")):
        place = f"tools[{index}]"
        kind = tool.get("type")
        if kind is None:
            found.append(missing(f"{place}.type"))
        elif kind not in ("function", "custom"):
            found.append(wrong_value(f"{place}.type", str(kind), ("function", "custom")))
        else:
            found += _named_found(f"{place}.{kind}", tool.get(kind))
    return found


def _named_found(place: str, named: Any) -> list[Finding]:
    if named is None:
        return [missing(place)]
    if not isinstance(named, Mapping):
        return [wrong_type(place, "an object", named)]
    name = named.get("name")
    if name is None:
        return [missing(f"{place}.name")]
    if not isinstance(name, str):
        return [wrong_type(f"{place}.name", "a string", name)]
    return name_found(f"{place}.name", name)


def _stream_options_streamed(judged: Judged) -> list[Finding]:
    if judged.body.get("stream_options") is None or judged.body.get("stream"):
        return []
    return [Finding("The 'stream_options' parameter is only allowed when 'stream' is enabled.", "stream_options")]


def _tool_settings_with_tools(judged: Judged) -> list[Finding]:
    if judged.body.get("tools"):
        return []
    return [
        Finding(f"Invalid value for '{name}': '{name}' is only allowed when 'tools' are specified.", name)
        for name in ("tool_choice", "parallel_tool_calls")
        if judged.body.get(name) is not None
    ]


def _token_limits(judged: Judged) -> list[Finding]:
    if judged.body.get("max_tokens") is None:
        return []
    if judged.body.get("max_completion_tokens") is not None:
        message = "Setting 'max_tokens' and 'max_completion_tokens' at the same time is not supported."
        return [Finding(message, "max_tokens", "invalid_parameter_combination")]
    if _COMPLETION_TOKENS_ONLY.match(str(judged.body.get("model"))):
        message = (
            "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead."
        )
        return [Finding(message, "max_tokens", "unsupported_parameter")]
    return []


def _call_ids(message: Mapping[str, Any]) -> list[str]:
    return [call["id"] for call in message.get("tool_calls") or ()]


def _answers(messages: list[Mapping[str, Any]], index: int) -> list[tuple[int, str]]:
    """Return the tool messages right after a message, each with its index and the call that it answers."""
    found = []
    for position in range(index + 1, len(messages)):
        if messages[position]["role"] != "tool":
            break
        found.append((position, messages[position]["tool_call_id"]))
    return found


def _tool_calls_answered(judged: Judged) -> list[Finding]:
    messages = judged.body["messages"]
    found = []
    for index, message in enumerate(messages):
        answers = _answers(messages, index)
        answered = {call_id for _, call_id in answers}
        unanswered = [call_id for call_id in _call_ids(message) if call_id not in answered]
        if unanswered:
            following = index + len(answers) + 1
            text = (
                "An assistant message with 'tool_calls' must be followed by tool messages responding to each "
                f"'tool_call_id'. The following tool_call_ids did not have response messages: {', '.join(unanswered)}"
            )
            found.append(Finding(text, f"messages.[{following}].role" if following < len(messages) else "messages"))
    return found


def _tool_messages_asked(judged: Judged) -> list[Finding]:
    messages = judged.body["messages"]
    found = []
    asked: list[str] | None = None
    for index, message in enumerate(messages):
        if message["role"] != "tool":
            asked = _call_ids(message) or None
        elif asked is None:
            found.append(
                Finding(
                    "Invalid parameter: messages with role 'tool' must be a response to a preceeding message with "
                    "'tool_calls'.",
                    f"messages.[{index}].role",
                )
            )
        elif message["tool_call_id"] not in asked:
            found.append(
                Finding(
                    f"Invalid parameter: 'tool_call_id' of '{message['tool_call_id']}' not found in 'tool_calls' of "
                    "previous message.",
                    f"messages.[{index}].tool_call_id",
                )
            )
    return found


def _tool_messages_once(judged: Judged) -> list[Finding]:
    messages = judged.body["messages"]
    found = []
    for index, message in enumerate(messages):
        if not message.get("tool_calls"):
            continue
        seen: dict[str, int] = {}
        for position, call_id in _answers(messages, index):
            if call_id in seen:
                text = (
                    f"Invalid parameter: Duplicate value for 'tool_call_id' of '{call_id}', in "
                    f"messages[{seen[call_id]}] and messages[{position}]."
                )
                found.append(Finding(text, f"messages.[{position}].tool_call_id"))
            seen.setdefault(call_id, position)
    return found


def _call_ids_unique(judged: Judged) -> list[Finding]:
    found = []
    for index, message in _messages(judged):
        seen: dict[str, int] = {}
        for position, call_id in enumerate(_call_ids(message)):
            if call_id in seen:
                text = (
                    f"Invalid parameter: Duplicate value for 'id' of '{call_id}', in tool_calls[{seen[call_id]}] and "
                    f"tool_calls[{position}]."
                )
                found.append(Finding(text, f"messages.[{index}].tool_calls.[{position}].id"))
            seen.setdefault(call_id, position)
    return found


def _window(judged: Judged) -> list[Finding]:
    if judged.tokens <= judged.window_tokens:
        return []
    offered = tool_tokens(judged.body)
    shares = f" ({judged.tokens - offered} in the messages, {offered} in the functions)" if offered else ""
    shorten = "messages or functions" if offered else "messages"
    text = (
        f"This model's maximum context length is {judged.window_tokens} tokens. However, your messages resulted in "
        f"{judged.tokens} tokens{shares}. Please reduce the length of the {shorten}."
    )
    return [Finding(text, "messages", CONTEXT_CODE)]


def tool_tokens(body: Body) -> int:
    """Count the tools of a request by the counting rule."""
    return estimated_tokens(body, COUNTED[:2])


SHAPE_RULES: Mapping[str, Rule] = {
    "model-given": _model_given,
    "known-fields": _known_fields,
    "field-values": _field_values,
    "arrays-filled": _arrays_filled,
    "roles": _roles,
    "content": _content,
    "parts": _parts,
    "tool-calls-shape": _calls_shape,
    "tool-messages-shape": _tool_messages_shape,
    "tools-shape": _tools_shape,
    "stream-options-streamed": _stream_options_streamed,
    "tool-settings-with-tools": _tool_settings_with_tools,
    "token-limits": _token_limits,
}
"""Rules about single fields, in the order in which they speak."""

CONVERSATION_RULES: Mapping[str, Rule] = {
    "call-ids-unique": _call_ids_unique,
    "tool-messages-once": _tool_messages_once,
    "tool-messages-asked": _tool_messages_asked,
    "tool-calls-answered": _tool_calls_answered,
    "window": _window,
}
"""Rules about the conversation, in the order in which they speak; they rely on every shape rule having passed."""
