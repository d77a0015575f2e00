"""Which conversations the Responses API refuses, as a table of pure rules; no I/O, no replies.

The wordings are those of the real service as far as public bug reports quote them. By analogy: a call id that two
calls or two outputs share, an unknown conversation, and that a changed summary is refused like a changed encrypted
content. What reasoning says is judged in the latest turn only, that is behind the last user message. Nothing is stored
here: a ``previous_response_id`` or an item reference is known when it has the form of this provider's own ids, and
what it stands for is not seen, so that an output's call is then not looked for.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from fake_provider.dialects.openai_errors import CONTEXT_CODE, STREAM_ERRORS
from fake_provider.dialects.openai_fields import Body, Finding, Judged, Rule
from fake_provider.dialects.openai_reasoning import Sealed, excerpt, unseal
from fake_provider.dialects.openai_responses_shapes import CALLS, ID_PREFIXES, items_judged, items_of, type_of

CONTEXT_TOO_LONG = STREAM_ERRORS[CONTEXT_CODE].message

_OWN_RESPONSE = re.compile(r"resp_\d{24}")
_OWN_ITEM = re.compile(r"(?:msg|rs|fc|ctc)_\d{27}[ab]")
_AFTER_REASONING = re.compile(r"(?:msg|fc|ctc)_(\w*)(\d{3})b", re.ASCII)


def item_suffix(message_suffix: str, index: int, *, after_reasoning: bool) -> str:
    """Return what an output item's id is behind its prefix.

    Its last letter says whether reasoning stands right before the item, which the real service knows from its store.
    """
    return f"{message_suffix}{index:03d}{'b' if after_reasoning else 'a'}"


def latest_turn(body: Body) -> list[Mapping[str, Any]]:
    """Return the items behind the last message of the user."""
    items = items_of(body)
    starts = [at for at, item in enumerate(items, start=1) if type_of(item) == "message" and item["role"] == "user"]
    return items[starts[-1] :] if starts else items


def summary_text(item: Mapping[str, Any]) -> str:
    """Return the text of a reasoning item."""
    return "".join(str(part.get("text")) for part in item["summary"])


def sealed_reasoning(items: list[Mapping[str, Any]]) -> Iterator[tuple[Mapping[str, Any], str, Sealed | None]]:
    """Yield each reasoning item that carries its content, the content, and what it says of itself."""
    for item in items:
        if type_of(item) == "reasoning" and isinstance(item.get("encrypted_content"), str):
            yield item, item["encrypted_content"], unseal(item["encrypted_content"])


def _previous_response(judged: Judged) -> list[Finding]:
    given = judged.body.get("previous_response_id")
    if given is None or _OWN_RESPONSE.fullmatch(given):
        return []
    text = f"Previous response with id '{given}' not found."
    return [Finding(text, "previous_response_id", "previous_response_not_found")]


def _conversation(judged: Judged) -> list[Finding]:
    given = judged.body.get("conversation")
    if given is None:
        return []
    name = given.get("id") if isinstance(given, Mapping) else given
    return [Finding(f"Conversation with id '{name}' not found.", "conversation", status=404)]


def _stored_items(judged: Judged) -> list[Finding]:
    stored = judged.body.get("store") is not False
    found = []
    for _, item in items_judged(judged):
        given = item.get("id")
        by_id_only = type_of(item) == "item_reference" or (
            type_of(item) == "reasoning" and given is not None and item.get("encrypted_content") is None
        )
        if not by_id_only or (stored and _OWN_ITEM.fullmatch(str(given))):
            continue
        text = f"Item with id '{given}' not found."
        if not stored:
            text += (
                " Items are not persisted when `store` is set to false. Try again with `store` set to true, or remove "
                "this item from your input."
            )
        found.append(Finding(text, "input", status=404))
    return found


def _items_once(judged: Judged) -> list[Finding]:
    seen: set[str] = set()
    found = []
    for _, item in items_judged(judged):
        given = item.get("id")
        if isinstance(given, str) and given in seen:
            found.append(_duplicate("id", given))
        elif isinstance(given, str):
            seen.add(given)
    return found


def _calls_once(judged: Judged) -> list[Finding]:
    seen: set[tuple[str, str]] = set()
    found = []
    for _, item in items_judged(judged):
        kind = type_of(item)
        if kind in CALLS or kind in _OUTPUT_TYPES:
            key = (kind, item["call_id"])
            if key in seen:
                found.append(_duplicate("call_id", item["call_id"]))
            seen.add(key)
    return found


def _duplicate(field: str, value: str) -> Finding:
    text = f"Duplicate item found with {field} {value}. Remove duplicate items from your input and try again."
    return Finding(text, "input")


_OUTPUT_TYPES: Mapping[str, str] = {output: call for call, (output, _) in CALLS.items()}


def _remembers(judged: Judged) -> bool:
    """Whether a part of the conversation stands elsewhere, so that a call's other half may be there."""
    return judged.body.get("previous_response_id") is not None or any(
        type_of(item) == "item_reference" for _, item in items_judged(judged)
    )


def _outputs_asked(judged: Judged) -> list[Finding]:
    if _remembers(judged):
        return []
    asked: set[tuple[str, str]] = set()
    found = []
    for _, item in items_judged(judged):
        kind = type_of(item)
        if kind in CALLS:
            asked.add((kind, item["call_id"]))
        elif kind in _OUTPUT_TYPES and (_OUTPUT_TYPES[kind], item["call_id"]) not in asked:
            words = CALLS[_OUTPUT_TYPES[kind]][1]
            found.append(Finding(f"No tool call found for {words} output with call_id {item['call_id']}.", "input"))
    return found


def _calls_answered(judged: Judged) -> list[Finding]:
    answered = {(type_of(item), item.get("call_id")) for _, item in items_judged(judged)}
    return [
        Finding(f"No tool output found for {CALLS[kind][1]} {item['call_id']}.", "input")
        for _, item in items_judged(judged)
        for kind in [type_of(item)]
        if kind in CALLS and (CALLS[kind][0], item["call_id"]) not in answered
    ]


def _reasoning_unchanged(judged: Judged) -> list[Finding]:
    found = []
    for item, content, sealed in sealed_reasoning(latest_turn(judged.body)):
        named = item.get("id")
        if sealed is None or not sealed.covers(summary_text(item)):
            text = (
                f"The encrypted content {excerpt(content)} could not be verified. Reason: Encrypted content could not "
                "be decrypted or parsed."
            )
            found.append(Finding(text, code="invalid_encrypted_content"))
        elif named is not None and named != f"rs_{sealed.suffix}":
            text = f"The encrypted content for item {named} could not be verified."
            found.append(Finding(text, code="invalid_encrypted_content"))
    return found


def _reasoning_in_order(judged: Judged) -> list[Finding]:
    latest: dict[str, str] = {}
    found = []
    for _, _, sealed in sealed_reasoning(latest_turn(judged.body)):
        if sealed is None:
            continue
        # Ids of one lane rise with time; between two lanes they say nothing.
        lane = sealed.suffix[:2]
        if sealed.suffix <= latest.get(lane, ""):
            text = f"The encrypted content for item rs_{sealed.suffix} could not be verified."
            found.append(Finding(text, code="invalid_encrypted_content"))
        latest[lane] = sealed.suffix
    return found


def _reasoning_followed(judged: Judged) -> list[Finding]:
    items = items_of(judged.body)
    found = []
    for position, item in enumerate(items, start=1):
        after = items[position] if position < len(items) else None
        if type_of(item) != "reasoning" or item.get("id") is None:
            continue
        if after is None or _is_prompt(after) or type_of(after) in _OUTPUT_TYPES:
            text = f"Item '{item['id']}' of type 'reasoning' was provided without its required following item."
            found.append(Finding(text, "input"))
    return found


def _is_prompt(item: Mapping[str, Any]) -> bool:
    return type_of(item) == "message" and item["role"] != "assistant"


def _reasoning_kept(judged: Judged) -> list[Finding]:
    found = []
    before: Mapping[str, Any] = {}
    for item in latest_turn(judged.body):
        match = _AFTER_REASONING.fullmatch(str(item.get("id")))
        if match and type_of(item) in ID_PREFIXES:
            required = f"rs_{item_suffix(match[1], int(match[2]) - 1, after_reasoning=False)}"
            kept = type_of(before) == "reasoning" or type_of(before) == "item_reference"
            if not kept or before.get("id", required) != required:
                text = (
                    f"Item '{item['id']}' of type '{type_of(item)}' was provided without its required 'reasoning' "
                    f"item: '{required}'."
                )
                found.append(Finding(text, "input"))
        before = item
    return found


def _window(judged: Judged) -> list[Finding]:
    if judged.tokens <= judged.window_tokens or judged.body.get("truncation") == "auto":
        return []
    return [Finding(CONTEXT_TOO_LONG, "input", CONTEXT_CODE)]


CONVERSATION_RULES: Mapping[str, Rule] = {
    "previous-response": _previous_response,
    "conversation": _conversation,
    "stored-items": _stored_items,
    "items-once": _items_once,
    "calls-once": _calls_once,
    "outputs-asked": _outputs_asked,
    "calls-answered": _calls_answered,
    "reasoning-unchanged": _reasoning_unchanged,
    "reasoning-in-order": _reasoning_in_order,
    "reasoning-followed": _reasoning_followed,
    "reasoning-kept": _reasoning_kept,
    "window": _window,
}
"""Rules about the conversation, in the order in which they speak; they rely on every shape rule having passed."""
