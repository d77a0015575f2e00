"""Which requests belong to a lane: conditions as data, each a pure question about one request.

All conditions of a matcher must hold. A matcher never changes anything and never remembers a request.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TypeAlias

from fake_provider.dialects import DIALECTS
from fake_provider.document import Node
from fake_provider.renaming import Rename, renamed_tool
from fake_provider.replies import Text
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
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                try:
                    re.compile(pattern.text[1:-1])
                except (re.error, OverflowError, RecursionError, Warning) as error:
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

    def is_in(self, value: str) -> bool:
        """Whether a value holds the text, or something that the regular expression finds."""
        return self.matches(value) if self.is_expression else self.text in value

    def renamed(self, rename: Rename) -> Pattern:
        """Return the pattern of a tool's name as the runtime under test calls it; an expression stays as it is."""
        return self if self.is_expression else Pattern(renamed_tool(self.text, rename))


@dataclass(frozen=True, slots=True)
class Span:
    """A whole number's bounds, both included; one that is not given is open."""

    minimum: int | None = None
    maximum: int | None = None

    @classmethod
    def read(cls, node: Node) -> Span:
        """Read a number, which it then has to be, or ``{min, max}``."""
        if not isinstance(node.value, Mapping):
            number = node.integer(minimum=0)
            return cls(number, number)
        fields = node.fields("bounds", ("min", "max"))
        span = cls(*(fields[key].integer(minimum=0) if key in fields else None for key in ("min", "max")))
        if span.minimum is None and span.maximum is None:
            raise node.error("bounds have a 'min', a 'max', or both")
        if span.minimum is not None and span.maximum is not None and span.minimum > span.maximum:
            raise node.error(f"nothing lies between min {span.minimum} and max {span.maximum}")
        return span

    def holds(self, number: int) -> bool:
        """Whether a number lies within."""
        above = self.minimum is None or number >= self.minimum
        return above and (self.maximum is None or number <= self.maximum)

    def __str__(self) -> str:
        if self.minimum == self.maximum:
            return str(self.minimum)
        bounds = [f"at least {self.minimum}"] if self.minimum is not None else []
        bounds += [f"at most {self.maximum}"] if self.maximum is not None else []
        return " and ".join(bounds)


Wanted: TypeAlias = Pattern | Span | bool | str


@dataclass(frozen=True, slots=True)
class Condition:
    """One condition: a key of ``CONDITIONS``, what is wanted, and the header's name where it is about one."""

    key: str
    wanted: Wanted
    header: str | None = None

    def holds(self, request: ModelRequest) -> bool:
        """Whether the request fulfils it."""
        return CONDITIONS[self.key].holds(request, self)

    def renamed(self, rename: Rename) -> Condition:
        """Return the condition with a tool's name as the runtime under test calls it."""
        if self.key == "tool" and isinstance(self.wanted, Pattern):
            return replace(self, wanted=self.wanted.renamed(rename))
        return self


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of condition: how what is wanted is read, and whether it holds."""

    read: Callable[[Node], Wanted]
    holds: Callable[[ModelRequest, Condition], bool]


def _pattern(value: Callable[[ModelRequest], str]) -> Kind:
    return Kind(Pattern.read, lambda request, at: isinstance(at.wanted, Pattern) and at.wanted.matches(value(request)))


def _some(values: Callable[[ModelRequest], Iterator[str]]) -> Kind:
    def holds(request: ModelRequest, at: Condition) -> bool:
        wanted = at.wanted
        return isinstance(wanted, Pattern) and any(wanted.is_in(value) for value in values(request))

    return Kind(Pattern.read, holds)


def _flag(value: Callable[[ModelRequest], bool]) -> Kind:
    return Kind(lambda node: node.flag(), lambda request, at: value(request) is at.wanted)


def _contains(value: Callable[[ModelRequest], str]) -> Kind:
    return Kind(lambda node: node.text(), lambda request, at: str(at.wanted) in value(request))


def _span(value: Callable[[ModelRequest], int]) -> Kind:
    return Kind(Span.read, lambda request, at: isinstance(at.wanted, Span) and at.wanted.holds(value(request)))


def _header(request: ModelRequest, at: Condition) -> bool:
    value = request.headers.get(at.header or "")
    return value is not None and isinstance(at.wanted, Pattern) and at.wanted.matches(value)


def _offers(request: ModelRequest, at: Condition) -> bool:
    return isinstance(at.wanted, Pattern) and any(at.wanted.matches(tool) for tool in request.tools)


def texts_of(request: ModelRequest) -> Iterator[str]:
    """Yield every text block of the conversation, oldest first."""
    for message in request.messages:
        yield from (block.text for block in message.blocks if isinstance(block, Text))


CONDITIONS: Mapping[str, Kind] = {
    "model": _pattern(lambda request: request.model),
    "path": _pattern(lambda request: request.path),
    "header": Kind(Pattern.read, _header),
    "dialect": Kind(lambda node: node.choice("dialect", DIALECTS), lambda request, at: request.dialect == at.wanted),
    "stream": _flag(lambda request: request.stream),
    "has_tools": _flag(lambda request: bool(request.tools)),
    "tool": Kind(Pattern.read, _offers),
    "system": _pattern(lambda request: request.system),
    "system_contains": _contains(lambda request: request.system),
    "text": _pattern(lambda request: request.last_user_text),
    "text_contains": _contains(lambda request: request.last_user_text),
    "any_text": _some(texts_of),
    "message_count": _span(lambda request: len(request.messages)),
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
        read = CONDITIONS[key].read
        if key == "header":
            conditions += [Condition(key, read(value), name.lower()) for name, value in child.entries("header").items()]
        else:
            conditions.append(Condition(key, read(child)))
    if not conditions:
        raise node.error("match has no condition; leave it out to make this the default lane")
    return tuple(conditions)
