"""Which conversations the Gemini API refuses, as a table of pure rules; no I/O, no replies.

The rules read a body in canonical form (``gemini_shapes``) whose shape was found right. Wordings are those of public
bug reports that quote a 400, and of the documentation ("Thought signatures", "Function calling"). By analogy: which of
its two wordings the service uses for a damaged signature. Known from older versions only: ``last-turn``.

Thought signatures follow the documentation and those reports: one that was never issued is refused wherever it stands;
in the current turn (since the user last said something) the first function call of each step has to carry one, for
models from Gemini 3 on; and in the latest model content of that turn, a thought that comes back has to be the one that
was signed, and the signatures have to stand in order. A function call of an older turn may lack its signature. The two
words with which the documentation lets a client without a signature pass are accepted.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from fake_provider.dialects.gemini_shapes import DATA_FIELDS, Body, Judged, Rule, at
from fake_provider.dialects.signatures import SIGNATURE_CHARACTERS, Signed, read_signature, sign

TOO_LONG = "The input token count ({tokens}) exceeds the maximum number of tokens allowed ({window_tokens})."

_CALL_TURN = (
    "Please ensure that function call turn comes immediately after a user turn or after a function response turn."
)
_RESPONSE_COUNT = (
    "Please ensure that the number of function response parts is equal to the number of function call parts "
    "of the function call turn."
)
_UNSIGNED = (
    "Function call is missing a thought_signature in functionCall parts. This is required for tools to work correctly, "
    "and missing thought_signature may lead to degraded model performance. Additional data, function call "
    "`default_api:{name}` , position {position}. Please refer to "
    "https://ai.google.dev/gemini-api/docs/thought-signatures for more details."
)
_ROLES = ("user", "model", "function")
_FUNCTION_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.:-]{0,63}")
_PASSWORDS = ("context_engineering_is_the_way_to_go", "skip_thought_signature_validator")
_GENERATION = re.compile(r"gemini-(\d+)")
_SIGNED_FROM_GENERATION = 3


def estimated_tokens(body: Body) -> int:
    """Count a request in tokens by rule: the compact UTF-8 JSON of instruction, tools and contents, four bytes a token.

    The result is rounded up. The rule is a stand-in for the real tokenizer; a script that sets ``window_tokens`` counts
    with it.
    """
    counted = [body[key] for key in ("systemInstruction", "tools", "contents") if key in body]
    return -(-sum(len(msgspec.json.encode(part)) for part in counted) // 4)


def thought_signature(model: str, ordinal: int, thought: str, data: str = "") -> str:
    """Return the ``thoughtSignature`` of a part: the provider's signature, and behind it what only it can read."""
    return sign(model, ordinal, data or thought) + base64.b64encode(data.encode("utf-8", "surrogatepass")).decode(
        "ascii"
    )


def parts_of(content: Any) -> list[Any]:
    """Return the parts of a content in canonical form."""
    parts = content.get("parts", [])
    return parts if isinstance(parts, list) else []


def calls_of(content: Any) -> list[Any]:
    """Return the function calls of a content, in order."""
    return [part["functionCall"] for part in parts_of(content) if "functionCall" in part]


def responses_of(content: Any) -> list[Any]:
    """Return the function responses of a content, in order."""
    return [part["functionResponse"] for part in parts_of(content) if "functionResponse" in part]


def _contents(judged: Judged) -> list[Any]:
    return list(judged.body.get("contents", []))


def _placed_parts(judged: Judged) -> Iterator[tuple[str, Any]]:
    for index, content in enumerate(_contents(judged)):
        for position, part in enumerate(parts_of(content)):
            yield f"contents[{index}].parts[{position}]", part


def _declarations(judged: Judged) -> Iterator[tuple[str, Any]]:
    for index, tool in enumerate(judged.body.get("tools", [])):
        for position, declaration in enumerate(tool.get("functionDeclarations", [])):
            yield f"tools[{index}].function_declarations[{position}]", declaration


def _contents_present(judged: Judged) -> list[str]:
    return [] if _contents(judged) else [at("contents", "contents is not specified")]


def _roles(judged: Judged) -> list[str]:
    wrong = [content for content in _contents(judged) if content.get("role", "user") not in _ROLES]
    return ["Please use a valid role: user, model."] if wrong else []


def _parts_present(judged: Judged) -> list[str]:
    return [
        at(f"contents[{index}].parts", "contents.parts must not be empty.")
        for index, content in enumerate(_contents(judged))
        if not parts_of(content)
    ]


def _part_data(judged: Judged) -> list[str]:
    return [
        at(f"{where}.data", "required oneof field 'data' must have one initialized field")
        for where, part in _placed_parts(judged)
        if not any(name in part for name in DATA_FIELDS)
    ]


def _names_present(judged: Judged) -> list[str]:
    fields = {"functionCall": "function_call", "functionResponse": "function_response"}
    return [
        at(f"{where}.{written}.name", "Name cannot be empty.")
        for where, part in _placed_parts(judged)
        for field, written in fields.items()
        if field in part and not part[field].get("name")
    ]


def _declared_names(judged: Judged) -> list[str]:
    return [
        at(
            f"{where}.name",
            "[FIELD_INVALID] Invalid function name. Must start with a letter or an underscore. Must be alphameric "
            "(a-z, A-Z, 0-9), underscores (_), dots (.), colons (:), or dashes (-), with a maximum length of 64.",
        )
        for where, declaration in _declarations(judged)
        if not _FUNCTION_NAME.fullmatch(declaration.get("name", ""))
    ]


def _declared_once(judged: Judged) -> list[str]:
    names = [declaration.get("name", "") for _, declaration in _declarations(judged)]
    repeated = dict.fromkeys(name for name in names if names.count(name) > 1)
    return [f"Duplicate function declaration found: {name}" for name in repeated]


def _call_turns(judged: Judged) -> list[str]:
    contents = _contents(judged)
    for index, content in enumerate(contents):
        if calls_of(content) and (index == 0 or contents[index - 1].get("role", "user") == "model"):
            return [_CALL_TURN]
    return []


def _response_turns(judged: Judged) -> list[str]:
    contents = _contents(judged)
    for index, content in enumerate(contents):
        if responses_of(content) and (index == 0 or not calls_of(contents[index - 1])):
            return ["Please ensure that function response turn comes immediately after a function call turn."]
    return []


def _response_counts(judged: Judged) -> list[str]:
    contents = _contents(judged)
    for index, content in enumerate(contents):
        calls = len(calls_of(content))
        answers = len(responses_of(contents[index + 1])) if index + 1 < len(contents) else 0
        if calls and calls != answers:
            return [_RESPONSE_COUNT]
    return []


def _last_turn(judged: Judged) -> list[str]:
    contents = _contents(judged)
    if not contents or contents[-1].get("role", "user") != "model":
        return []
    if len(contents) == 1:
        return ["Please ensure that single turn requests end with a user role or the role field is empty."]
    return ["Please ensure that multiturn requests ends with a user role or a function response."]


def _current_turn(judged: Judged) -> int:
    """Return the index at which the current turn begins: the last content in which the user says something."""
    contents = _contents(judged)
    for index in range(len(contents) - 1, -1, -1):
        if contents[index].get("role", "user") != "model" and not responses_of(contents[index]):
            return index
    return 0


def _signatures_present(judged: Judged) -> list[str]:
    generation = _GENERATION.match(judged.model)
    if generation is None or int(generation.group(1)) < _SIGNED_FROM_GENERATION:
        return []
    for index, content in enumerate(_contents(judged)):
        first = next((part for part in parts_of(content) if "functionCall" in part), None)
        if index > _current_turn(judged) and first is not None and not first.get("thoughtSignature"):
            name = first["functionCall"].get("name", "")
            return [_UNSIGNED.format(name=name, position=index + 1)]
    return []


def _is_password(signature: str) -> bool:
    return signature in _PASSWORDS or _bytes_of(signature) in _PASSWORDS


def _bytes_of(encoded: str) -> str | None:
    try:
        return base64.b64decode(encoded + "=" * (-len(encoded) % 4), altchars=b"-_", validate=True).decode("utf-8")
    except (binascii.Error, ValueError):
        return None


def read_thought_signature(signature: str) -> tuple[Signed, str] | None:
    """Return what a ``thoughtSignature`` says and the data behind it, or nothing if this provider never issued it."""
    # Clients hold it as bytes, and some write those back in the alphabet for addresses.
    standard = signature.replace("-", "+").replace("_", "/")
    signed = read_signature(standard[:SIGNATURE_CHARACTERS])
    data = _bytes_of(standard[SIGNATURE_CHARACTERS:])
    if signed is None or data is None or (data and not signed.covers(data)):
        return None
    return signed, data


def _signatures_issued(judged: Judged) -> list[str]:
    for _, part in _placed_parts(judged):
        signature = part.get("thoughtSignature")
        if signature and not _is_password(signature) and read_thought_signature(signature) is None:
            return ["Corrupted thought signature."]
    return []


def _signatures_unmodified(judged: Judged) -> list[str]:
    contents = _contents(judged)
    latest = max((index for index, content in enumerate(contents) if content.get("role") == "model"), default=-1)
    if latest <= _current_turn(judged) or _fits(parts_of(contents[latest])):
        return []
    return ["Invalid thought signature."]


def _fits(parts: list[Any]) -> bool:
    """Whether the signatures of one content stand in the order and behind the thoughts for which they were issued."""
    thought, before = "", -1
    for part in parts:
        if part.get("thought"):
            thought += part.get("text", "")
        read = read_thought_signature(part.get("thoughtSignature", ""))
        if read is None:
            continue
        signed, data = read
        if signed.ordinal not in (0, before + 1) or (thought and not data and not signed.covers(thought)):
            return False
        thought, before = "", signed.ordinal
    return True


def _window(judged: Judged) -> list[str]:
    if judged.tokens <= judged.window_tokens:
        return []
    return [TOO_LONG.format(tokens=judged.tokens, window_tokens=judged.window_tokens)]


CONVERSATION_RULES: Mapping[str, Rule] = {
    "contents-present": _contents_present,
    "roles": _roles,
    "parts-present": _parts_present,
    "part-data": _part_data,
    "names-present": _names_present,
    "declared-names": _declared_names,
    "declared-once": _declared_once,
    "call-turns": _call_turns,
    "response-turns": _response_turns,
    "response-counts": _response_counts,
    "last-turn": _last_turn,
    "signatures-present": _signatures_present,
    "signatures-issued": _signatures_issued,
    "signatures-unmodified": _signatures_unmodified,
    "window": _window,
}
"""Rules about the conversation, in the order in which they speak; they rely on the shape having been found right."""
