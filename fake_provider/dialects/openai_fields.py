"""What both OpenAI dialects say about single fields: findings, types in the service's words, and the counting rule.

Pure; it never knows which endpoint is judged. The wordings of a missing parameter, a wrong type, an empty array, a
number below its minimum, a string too long and a pattern not matched are those of the real service (public bug reports
that quote a 400); which of them a field gets is each dialect's own table.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, TypeAlias

import msgspec

from fake_provider.dialects.problems import Problem, RefusedRequestError
from fake_provider.replies import ToolUse
from fake_provider.requests import NotJsonError, decode_json

TEXT_PIECE_CHARACTERS = 16
JSON_PIECE_CHARACTERS = 8
CREATED_SECONDS = 1_735_689_600
"""What every ``created`` says, in seconds since 1970 (the first moment of 2025), so that a script's bytes stay the
same."""

TOOL_NAME_PATTERN = "^[a-zA-Z0-9_-]+$"
TOOL_NAME_CHARACTERS_MAX = 64
CALL_ID_CHARACTERS_MAX = 64
_TOOL_NAME = re.compile(r"[a-zA-Z0-9_-]+")

_NOT_JSON = (
    "We could not parse the JSON body of your request. (HINT: This likely means you aren't using your HTTP library "
    "correctly. The OpenAI API expects a JSON payload, but what was sent was not valid JSON. If you have trouble "
    "figuring out how to fix this, please contact us through our help center at help.openai.com.)"
)

Body: TypeAlias = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing a rule found: the service's message, the field it is about, its code and the HTTP status."""

    message: str
    param: str | None = None
    code: str | None = None
    status: int = 400


@dataclass(frozen=True, slots=True)
class Judged:
    """A request under judgement; ``tokens`` follows ``estimated_tokens``."""

    body: Body
    tokens: int = 0
    window_tokens: int = 0


Rule: TypeAlias = Callable[[Judged], list[Finding]]


def judge(rules: Mapping[str, Rule], judged: Judged) -> tuple[Problem, ...]:
    """Apply a table of rules and return everything found, in the table's order."""
    return tuple(
        Problem(name, found.message, found.status, found.code, found.param)
        for name, rule in rules.items()
        for found in rule(judged)
    )


def json_object(data: bytes) -> dict[str, Any]:
    """Decode a request's body.

    Raises:
        RefusedRequestError: It is no JSON object.
    """
    try:
        body = decode_json(data)
    except NotJsonError as error:
        raise RefusedRequestError((Problem("json", _NOT_JSON),)) from error
    if not isinstance(body, dict):
        # By analogy with the wording for a field of the wrong type.
        message = f"Invalid type: expected an object, but got {type_words(body)} instead."
        raise RefusedRequestError((Problem("json", message, code="invalid_type"),))
    return body


def encode(value: Any) -> bytes:
    """Encode JSON, compact."""
    return msgspec.json.encode(value)


def estimated_tokens(body: Body, keys: Iterable[str]) -> int:
    """Count a request in tokens by rule: the compact UTF-8 JSON of the given fields, four bytes a token, rounded up.

    The rule is a stand-in for the real tokenizer; a script that sets ``window_tokens`` counts with it.
    """
    return -(-sum(len(encode(body[key])) for key in keys if key in body) // 4)


def output_tokens(texts: Iterable[str]) -> int:
    """Count what the model said by the same rule: four UTF-8 bytes a token, rounded up."""
    return -(-sum(len(text.encode("utf-8", "surrogatepass")) for text in texts) // 4)


def pieces(text: str, size: int) -> list[str]:
    """Split a text into pieces of so many characters; no text is no piece."""
    return [text[start : start + size] for start in range(0, len(text), size)]


def argument_pieces(call: ToolUse) -> list[str]:
    """Split a call's arguments where it says so, else into pieces of ``JSON_PIECE_CHARACTERS``."""
    text = call.arguments_text
    if call.split_at is None:
        return pieces(text, JSON_PIECE_CHARACTERS)
    bounds = [0, *sorted({position for position in call.split_at if 0 < position < len(text)}), len(text)]
    return [text[start:end] for start, end in pairwise(bounds) if start < end]


def read_call(name: str, arguments: str, call_id: str) -> ToolUse:
    """Return a call that came back; arguments that are no JSON object stay text."""
    try:
        value = json.loads(arguments)
    except (ValueError, RecursionError):
        value = None
    return ToolUse(name, value, call_id) if isinstance(value, dict) else ToolUse(name, {}, call_id, arguments)


def type_words(value: Any) -> str:
    """Say a JSON value's type as the service does."""
    for kind, words in _TYPE_WORDS:
        if isinstance(value, kind):
            return words
    return "null"


_TYPE_WORDS: tuple[tuple[type, str], ...] = (
    # A boolean is an integer in Python, so it comes first.
    (bool, "a boolean"),
    (int, "an integer"),
    (float, "a decimal"),
    (str, "a string"),
    (list, "an array"),
    (dict, "an object"),
)

_KINDS: Mapping[str, tuple[type, ...]] = {
    "a string": (str,),
    "an integer": (int,),
    "a boolean": (bool,),
    "a decimal": (int, float),
    "an object": (dict,),
    "an array": (list,),
    "an array of objects": (list,),
    "one of a string or array of objects": (str, list),
    "one of a string or object": (str, dict),
    "one of a string or array of strings": (str, list),
}


@dataclass(frozen=True, slots=True)
class Field:
    """What a field has to be.

    Attributes:
        name: Its name in the object.
        kind: A key of the table of kinds, which is also how the service names it.
        required: Whether it has to be there; a field that need not be there may also be null.
        minimum: The smallest value of a number.
        maximum: The largest value of a number.
    """

    name: str
    kind: str
    required: bool = False
    minimum: int | None = None
    maximum: int | None = None


def fields_found(value: Mapping[str, Any], fields: Iterable[Field], where: str = "") -> list[Finding]:
    """Judge the fields of one object; ``where`` is its own place in the request, such as ``messages[0]``."""
    found = []
    for field in fields:
        place = f"{where}.{field.name}" if where else field.name
        if field.name not in value:
            if field.required:
                found.append(missing(place))
            continue
        given = value[field.name]
        if given is None and not field.required:
            continue
        if not is_kind(given, field.kind):
            found.append(wrong_type(place, field.kind, given))
        elif not isinstance(given, str | list | dict):
            found += _out_of_range(place, field, given)
    return found


def is_kind(value: Any, kind: str) -> bool:
    """Whether a value is of a kind; a boolean is no number."""
    if isinstance(value, bool):
        return kind == "a boolean"
    if isinstance(value, list) and kind.endswith("array of objects"):
        return all(isinstance(item, Mapping) for item in value)
    return isinstance(value, _KINDS[kind])


def missing(place: str) -> Finding:
    """A parameter that has to be there."""
    return Finding(f"Missing required parameter: '{place}'.", place, "missing_required_parameter")


def wrong_type(place: str, kind: str, given: Any) -> Finding:
    """A value of another type; in an array of objects, the first item that is none."""
    if kind.endswith("array of objects") and isinstance(given, list):
        index, item = next((index, item) for index, item in enumerate(given) if not isinstance(item, Mapping))
        return wrong_type(f"{place}[{index}]", "an object", item)
    message = f"Invalid type for '{place}': expected {kind}, but got {type_words(given)} instead."
    return Finding(message, place, "invalid_type")


def wrong_value(place: str, given: str, supported: Iterable[str]) -> Finding:
    """A word that is none of the supported ones."""
    quoted = [f"'{word}'" for word in supported]
    listed = f"{', '.join(quoted[:-1])}{',' if len(quoted) > 2 else ''} and {quoted[-1]}"
    return Finding(f"Invalid value: '{given}'. Supported values are: {listed}.", place, "invalid_value")


def empty_array(place: str) -> Finding:
    """An array without items where one is needed."""
    message = (
        f"Invalid '{place}': empty array. Expected an array with minimum length 1, but got an empty array instead."
    )
    return Finding(message, place, "empty_array")


def name_found(place: str, name: str) -> list[Finding]:
    """Judge the name of a tool."""
    found = string_length_found(place, name, TOOL_NAME_CHARACTERS_MAX)
    if name and not _TOOL_NAME.fullmatch(name):
        found.append(
            Finding(
                f"Invalid '{place}': string does not match pattern. Expected a string that matches the pattern "
                f"'{TOOL_NAME_PATTERN}'.",
                place,
                "invalid_value",
            )
        )
    return found


def string_length_found(place: str, text: str, maximum: int) -> list[Finding]:
    """Judge a string that has to have from one to so many characters."""
    if not text:
        expected = "Expected a string with minimum length 1, but got an empty string instead."
        return [Finding(f"Invalid '{place}': empty string. {expected}", place, "empty_string")]
    if len(text) > maximum:
        message = (
            f"Invalid '{place}': string too long. Expected a string with maximum length {maximum}, "
            f"but got a string with length {len(text)} instead."
        )
        return [Finding(message, place, "string_above_max_length")]
    return []


def _out_of_range(place: str, field: Field, given: float) -> Iterator[Finding]:
    noun = "decimal" if field.kind == "a decimal" else "integer"
    if field.minimum is not None and given < field.minimum:
        expected = f"Expected a value >= {field.minimum}, but got {given} instead."
        yield Finding(f"Invalid '{place}': {noun} below minimum value. {expected}", place, f"{noun}_below_min_value")
    if field.maximum is not None and given > field.maximum:
        expected = f"Expected a value <= {field.maximum}, but got {given} instead."
        yield Finding(f"Invalid '{place}': {noun} above maximum value. {expected}", place, f"{noun}_above_max_value")
