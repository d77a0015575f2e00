"""Which single fields the Gemini API refuses, and the one form in which the other rules read a request; no I/O.

The service reads JSON into protocol buffers. So a field may be written in camel case or in snake case, one object may
stand where a list belongs, a name that no message has is refused, and the place of what is refused is told in snake
case. ``canonical`` gives the form that all rules rely on: camel case, lists as lists, nothing under two names.

The wordings of unknown names and of wrong values are known from public bug reports that quote a 400; that of a body
that is no JSON is by analogy. Fields are those of the official client's types for the developer API.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from fake_provider.dialects.problems import Problem

Body: TypeAlias = Mapping[str, Any]

_PACKAGE = "type.googleapis.com/google.ai.generativelanguage.v1beta"


@dataclass(frozen=True, slots=True)
class Field:
    """One field of a message.

    Attributes:
        kind: The name of its message in ``MESSAGES``, a scalar type (``TYPE_STRING`` …), ``struct`` for an object of
            any content, ``map:NAME`` for an object whose values are such messages, or ``any``.
        repeated: Whether it is a list.
    """

    kind: str
    repeated: bool = False


def _any(*names: str) -> dict[str, Field]:
    return dict.fromkeys(names, Field("any"))


MESSAGES: Mapping[str, Mapping[str, Field]] = {
    "GenerateContentRequest": {
        "contents": Field("Content", repeated=True),
        "systemInstruction": Field("Content"),
        "tools": Field("Tool", repeated=True),
        "toolConfig": Field("ToolConfig"),
        "generationConfig": Field("GenerationConfig"),
        "cachedContent": Field("TYPE_STRING"),
        "model": Field("TYPE_STRING"),
        **_any("safetySettings", "serviceTier", "store", "labels"),
    },
    "CountTokensRequest": {
        "contents": Field("Content", repeated=True),
        "generateContentRequest": Field("GenerateContentRequest"),
        "model": Field("TYPE_STRING"),
    },
    "Content": {"parts": Field("Part", repeated=True), "role": Field("TYPE_STRING")},
    "Part": {
        "text": Field("TYPE_STRING"),
        "thought": Field("TYPE_BOOL"),
        "thoughtSignature": Field("TYPE_BYTES"),
        "functionCall": Field("FunctionCall"),
        "functionResponse": Field("FunctionResponse"),
        **_any("inlineData", "fileData", "executableCode", "codeExecutionResult", "toolCall", "toolResponse"),
        **_any("videoMetadata", "mediaResolution", "partMetadata", "audioTranscription", "mediaProcessing"),
        **_any("speechMetadata", "documentMetadata", "spreadsheetMetadata", "audioMetadata"),
    },
    "FunctionCall": {"id": Field("TYPE_STRING"), "name": Field("TYPE_STRING"), "args": Field("struct")},
    "FunctionResponse": {
        "id": Field("TYPE_STRING"),
        "name": Field("TYPE_STRING"),
        "response": Field("struct"),
        **_any("willContinue", "scheduling", "parts"),
    },
    "Tool": {
        "functionDeclarations": Field("FunctionDeclaration", repeated=True),
        **_any("googleSearch", "googleSearchRetrieval", "codeExecution", "urlContext", "computerUse", "fileSearch"),
        **_any("googleMaps", "mcpServers"),
    },
    "FunctionDeclaration": {
        "name": Field("TYPE_STRING"),
        "description": Field("TYPE_STRING"),
        "parameters": Field("Schema"),
        "response": Field("Schema"),
        **_any("parametersJsonSchema", "responseJsonSchema", "behavior"),
    },
    "Schema": {
        "items": Field("Schema"),
        "anyOf": Field("Schema", repeated=True),
        "properties": Field("map:Schema"),
        **_any("type", "format", "title", "description", "nullable", "default", "enum", "example", "pattern"),
        **_any("maxItems", "minItems", "maxLength", "minLength", "maxProperties", "minProperties"),
        **_any("maximum", "minimum", "propertyOrdering", "required"),
    },
    "ToolConfig": {
        "functionCallingConfig": Field("FunctionCallingConfig"),
        **_any("retrievalConfig", "includeServerSideToolInvocations"),
    },
    "FunctionCallingConfig": _any("mode", "allowedFunctionNames"),
    "GenerationConfig": {
        "maxOutputTokens": Field("TYPE_INT32"),
        "temperature": Field("TYPE_FLOAT"),
        "topP": Field("TYPE_FLOAT"),
        "topK": Field("TYPE_FLOAT"),
        "thinkingConfig": Field("ThinkingConfig"),
        **_any("candidateCount", "stopSequences", "responseLogprobs", "logprobs", "presencePenalty", "seed"),
        **_any("frequencyPenalty", "responseMimeType", "responseSchema", "responseJsonSchema", "responseModalities"),
        **_any("mediaResolution", "speechConfig", "imageConfig", "enableEnhancedCivicAnswers", "continuationToken"),
        **_any("audioTranscriptionConfig"),
    },
    "ThinkingConfig": _any("includeThoughts", "thinkingBudget", "thinkingLevel"),
}
"""The messages of a request, field by field, in camel case."""

_SCALARS: Mapping[str, tuple[type, ...]] = {
    "TYPE_STRING": (str,),
    "TYPE_BYTES": (str,),
    "TYPE_BOOL": (bool,),
    "TYPE_INT32": (int,),
    "TYPE_FLOAT": (int, float),
}

DATA_FIELDS = (
    "text",
    "inlineData",
    "fileData",
    "functionCall",
    "functionResponse",
    "executableCode",
    "codeExecutionResult",
    "toolCall",
    "toolResponse",
)
"""The fields of a part of which exactly one is set."""


@dataclass(frozen=True, slots=True)
class Judged:
    """A request under judgement.

    Attributes:
        body: The decoded JSON in canonical form.
        model: The model of the path, without ``models/``.
        tokens: Its size by the dialect's counting rule.
        window_tokens: The context window.
    """

    body: Body
    model: str
    tokens: int
    window_tokens: int


Rule: TypeAlias = Callable[[Judged], list[str]]


def judge(rules: Mapping[str, Rule], judged: Judged) -> tuple[Problem, ...]:
    """Apply a table of rules and return everything found, in the table's order."""
    return tuple(Problem(name, message) for name, rule in rules.items() for message in rule(judged))


def snake(name: str) -> str:
    """Return a field's name as the service's messages write it."""
    return re.sub(r"[A-Z]", lambda match: "_" + match.group().lower(), name)


def _camel(name: str) -> str:
    return re.sub(r"_([a-z])", lambda match: match.group(1).upper(), name)


def canonical(value: Any, message: str = "GenerateContentRequest") -> Any:
    """Return a value as the rules read it; what does not fit a message is left as it is, for ``shape_problems``."""
    if not isinstance(value, Mapping):
        return value
    fields = MESSAGES[message]
    read: dict[str, Any] = {}
    for name, item in value.items():
        # A name that starts with a capital or an underscore is no field in either spelling.
        known = fields.get(_camel(name))
        if known is None or item is None:
            if item is not None:
                read[name] = item
            continue
        read[_camel(name)] = _canonical_field(item, known)
    return read


def _canonical_field(item: Any, known: Field) -> Any:
    if known.repeated and not isinstance(item, list):
        item = [item]
    if known.kind in MESSAGES:
        if known.repeated:
            return [canonical(entry, known.kind) for entry in item]
        return canonical(item, known.kind)
    if known.kind.startswith("map:") and isinstance(item, Mapping):
        return {key: canonical(entry, known.kind.removeprefix("map:")) for key, entry in item.items()}
    return item


def shape_problems(body: Any, message: str = "GenerateContentRequest") -> tuple[Problem, ...]:
    """Return what a body in canonical form has that its message has not: all unknown names together, then each value.

    The service names all the unknown fields in one error, line by line.
    """
    if not isinstance(body, Mapping):
        return (Problem("root", 'Invalid JSON payload received. Unknown name "": Root element must be a message.'),)
    unknown: list[str] = []
    wrong: list[str] = []
    for rule, text in _misfits(body, message, ""):
        (unknown if rule == "unknown-fields" else wrong).append(text)
    problems = [Problem("unknown-fields", "\n".join(unknown))] if unknown else []
    return (*problems, *(Problem("field-values", text) for text in wrong))


def _misfits(value: Mapping[str, Any], message: str, path: str) -> Iterator[tuple[str, str]]:
    fields = MESSAGES[message]
    if message == "Part":
        yield from _second_data(value, path)
    for name, item in value.items():
        known = fields.get(name)
        where = f"{path}.{snake(name)}" if path else snake(name)
        if known is None:
            at = f" at '{path}'" if path else ""
            yield "unknown-fields", f'Invalid JSON payload received. Unknown name "{name}"{at}: Cannot find field.'
        elif known.repeated:
            for index, entry in enumerate(item):
                yield from _misfit(entry, known.kind, f"{where}[{index}]")
        elif isinstance(item, list) and known.kind in MESSAGES:
            at = f" at '{path}'" if path else ""
            yield (
                "unknown-fields",
                (
                    f'Invalid JSON payload received. Unknown name "{name}"{at}: '
                    "Proto field is not repeating, cannot start list."
                ),
            )
        else:
            yield from _misfit(item, known.kind, where)


def _misfit(item: Any, kind: str, where: str) -> Iterator[tuple[str, str]]:
    if kind == "any":
        return
    if kind.startswith("map:") and isinstance(item, Mapping):
        for index, entry in enumerate(item.values()):
            yield from _misfit(entry, kind.removeprefix("map:"), f"{where}[{index}].value")
    elif kind in MESSAGES and isinstance(item, Mapping):
        yield from _misfits(item, kind, where)
    elif kind in _SCALARS:
        if not isinstance(item, _SCALARS[kind]) or (isinstance(item, bool) and kind != "TYPE_BOOL"):
            yield "field-values", f"Invalid value at '{where}' ({kind}), {json.dumps(item)}"
    elif not isinstance(item, Mapping):
        named = "type.googleapis.com/google.protobuf.Struct" if kind == "struct" else f"{_PACKAGE}.{kind}"
        yield "field-values", f"Invalid value at '{where}' ({named}), {json.dumps(item)}"


def _second_data(part: Mapping[str, Any], path: str) -> Iterator[tuple[str, str]]:
    present = [name for name in part if name in DATA_FIELDS]
    for name in present[1:]:
        yield (
            "field-values",
            f"Invalid value at '{path}' (oneof), oneof field 'data' is already set. Cannot set '{name}'",
        )


def at(path: str, text: str) -> str:
    """Return a finding of the service's own validator, which lists its findings and ends each line."""
    return f"* GenerateContentRequest.{path}: {text}\n"
