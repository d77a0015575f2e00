"""Which requests belong to a lane: conditions as data, each a pure question about one request.

All conditions of a matcher must hold. A matcher never changes anything and never remembers a request.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from fake_provider.document import Node
from fake_provider.requests import ModelRequest


@dataclass(frozen=True, slots=True)
class Pattern:
    """A text to be equal to, or, written between slashes, a regular expression to be found in it."""

    text: str

    @classmethod
    def read(cls, node: Node) -> Pattern:
        """Read a pattern; a regular expression that does not compile is a mistake in the document."""
        pattern = cls(node.text())
        if pattern.is_expression:
            try:
                re.compile(pattern.text[1:-1])
            except re.error as error:
                raise node.error(f"not a valid regular expression: {error}") from error
        return pattern

    @property
    def is_expression(self) -> bool:
        """Whether the text stands between slashes and is no path such as ``/v1/``."""
        return len(self.text) > 2 and self.text.startswith("/") and self.text.endswith("/")

    def matches(self, value: str) -> bool:
        """Whether a value fits."""
        if self.is_expression:
            return re.search(self.text[1:-1], value) is not None
        return value == self.text


@dataclass(frozen=True, slots=True)
class Condition:
    """One condition: a key of ``CONDITIONS``, what is wanted, and the header's name where it is about one."""

    key: str
    wanted: Pattern | bool | str
    header: str | None = None

    def holds(self, request: ModelRequest) -> bool:
        """Whether the request fulfils it."""
        return CONDITIONS[self.key](request, self)


def _pattern(value: Callable[[ModelRequest], str]) -> Callable[[ModelRequest, Condition], bool]:
    return lambda request, condition: isinstance(condition.wanted, Pattern) and condition.wanted.matches(value(request))


def _flag(value: Callable[[ModelRequest], bool]) -> Callable[[ModelRequest, Condition], bool]:
    return lambda request, condition: value(request) is condition.wanted


def _contains(value: Callable[[ModelRequest], str]) -> Callable[[ModelRequest, Condition], bool]:
    return lambda request, condition: str(condition.wanted) in value(request)


def _header(request: ModelRequest, condition: Condition) -> bool:
    value = request.headers.get(condition.header or "")
    return value is not None and isinstance(condition.wanted, Pattern) and condition.wanted.matches(value)


CONDITIONS: Mapping[str, Callable[[ModelRequest, Condition], bool]] = {
    "model": _pattern(lambda request: request.model),
    "path": _pattern(lambda request: request.path),
    "header": _header,
    "has_tools": _flag(lambda request: bool(request.tools)),
    "stream": _flag(lambda request: request.stream),
    "system_contains": _contains(lambda request: request.system),
    "text_contains": _contains(lambda request: request.last_user_text),
    "has_tool_results": _flag(lambda request: request.brings_tool_results),
}
"""Every condition that a ``match:`` may hold."""


def read_matcher(node: Node) -> tuple[Condition, ...]:
    """Read a ``match:`` mapping.

    Raises:
        DocumentError: A condition is unknown, empty or of the wrong type.
    """
    conditions: list[Condition] = []
    for key, child in node.fields("match", CONDITIONS).items():
        if key == "header":
            conditions += [
                Condition(key, Pattern.read(value), name.lower()) for name, value in child.entries("header").items()
            ]
        elif key in ("model", "path"):
            conditions.append(Condition(key, Pattern.read(child)))
        elif key in ("has_tools", "stream", "has_tool_results"):
            conditions.append(Condition(key, child.flag()))
        else:
            conditions.append(Condition(key, child.text()))
    if not conditions:
        raise node.error("match has no condition; leave it out to make this the default lane")
    return tuple(conditions)
