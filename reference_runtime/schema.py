"""Checks tool arguments against the part of JSON Schema that tools use (N1): type, required, properties, enum, items.

Keywords outside that part are left to the tool itself; a check here never accepts what the schema's part forbids.
"""

from collections.abc import Iterator, Mapping
from typing import Any

_TYPES: Mapping[str, tuple[type, ...]] = {
    "object": (dict,),
    "array": (list,),
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "null": (type(None),),
}


def problems(schema: Mapping[str, Any], value: object, place: str = "input") -> list[str]:
    """What is wrong with a value, one sentence each; an empty list when nothing is."""
    return list(_problems(schema, value, place))


def _problems(schema: Mapping[str, Any], value: object, place: str) -> Iterator[str]:
    wanted = schema.get("type")
    names = [wanted] if isinstance(wanted, str) else list(wanted or [])
    if names and not any(_is(value, name) for name in names):
        yield f"{place} is {type(value).__name__}; allowed is {' or '.join(names)}"
        return
    if "enum" in schema and value not in schema["enum"]:
        yield f"{place} is {value!r}; allowed is one of {schema['enum']}"
    if isinstance(value, dict):
        yield from _object_problems(schema, value, place)
    if isinstance(value, list) and isinstance(schema.get("items"), dict):
        for index, item in enumerate(value):
            yield from _problems(schema["items"], item, f"{place}[{index}]")


def _object_problems(schema: Mapping[str, Any], value: Mapping[str, Any], place: str) -> Iterator[str]:
    properties = schema.get("properties", {})
    for name in schema.get("required", ()):
        if name not in value:
            yield f"{place}.{name} is missing"
    for name, item in value.items():
        if name in properties:
            yield from _problems(properties[name], item, f"{place}.{name}")
        elif schema.get("additionalProperties") is False:
            yield f"{place}.{name} is not known; allowed are {', '.join(properties)}"


def _is(value: object, name: str) -> bool:
    # In Python a bool is an int; in JSON it is not.
    if isinstance(value, bool):
        return name == "boolean"
    return isinstance(value, _TYPES.get(name, (object,)))
