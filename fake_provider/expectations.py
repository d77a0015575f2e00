"""``expect_request``: what a step expects of the request that it answers, and how a request differs from it.

A difference is data in readable text. It never changes the answer: the step is played all the same, and whoever
judges the run sees the difference.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from fake_provider.dialects import DIALECTS
from fake_provider.document import Node, listed
from fake_provider.matchers import Pattern, Span, texts_of
from fake_provider.renaming import Rename, renamed_tool
from fake_provider.requests import ModelRequest, ToolResult

SHOWN_CHARACTERS = 200


@dataclass(frozen=True, slots=True)
class Mismatch:
    """One difference: where in the request, what was expected there, and what was found."""

    path: str
    expected: str
    actual: str

    def __str__(self) -> str:
        return f"{self.path}: expected {self.expected}, found {self.actual}"


@dataclass(frozen=True, slots=True)
class WantedTools:
    """Tools that have to be offered: exactly these, or these among others."""

    names: tuple[str, ...]
    exactly: bool


@dataclass(frozen=True, slots=True)
class WantedResult:
    """A result that has to be in the conversation, found by the call's id or by the tool's name.

    Attributes:
        id: The call's id, or nothing.
        name: The tool's name, or nothing; one of the two is there.
        is_error: Whether it has to be an error, or nothing where either will do.
        contains: What its text has to hold, or nothing.
    """

    id: str | None
    name: str | None
    is_error: bool | None
    contains: Pattern | None

    @property
    def path(self) -> str:
        """Where it stands, in words."""
        return f"tool_result[{self.id or self.name}]"


Wanted: TypeAlias = Any
"""What one key wants, in the form that the key's reader makes and its judge takes."""

Judge: TypeAlias = Callable[[ModelRequest, Wanted], Iterator[Mismatch]]


def shown(value: object) -> str:
    """Return a value short enough for a line of text."""
    text = value if isinstance(value, str) else str(value)
    return text if len(text) <= SHOWN_CHARACTERS else f"{text[:SHOWN_CHARACTERS]}… ({len(text)} characters)"


def _read_texts(node: Node) -> tuple[Pattern, ...]:
    items = node.items("texts") if isinstance(node.value, list) else [node]
    return tuple(Pattern.read(item) for item in items)


def _read_tools(node: Node) -> WantedTools:
    if isinstance(node.value, list):
        return WantedTools(tuple(item.text() for item in node.items("tools")), exactly=True)
    fields = node.fields("tools", ("equals", "contains"))
    if len(fields) != 1:
        raise node.error("tools has one of 'equals' and 'contains'")
    [(how, listing)] = fields.items()
    return WantedTools(tuple(item.text() for item in listing.items("tools")), exactly=how == "equals")


def _read_results(node: Node) -> tuple[WantedResult, ...]:
    items = node.items("results") if isinstance(node.value, list) else [node]
    return tuple(_read_result(item) for item in items)


def _read_result(node: Node) -> WantedResult:
    fields = node.fields("tool_result", ("id", "name", "is_error", "contains"))
    if ("id" in fields) == ("name" in fields):
        raise node.error("a tool_result is found by its call's 'id' or by its tool's 'name'; give one of them")
    return WantedResult(
        id=fields["id"].text() if "id" in fields else None,
        name=fields["name"].text() if "name" in fields else None,
        is_error=fields["is_error"].flag() if "is_error" in fields else None,
        contains=Pattern.read(fields["contains"]) if "contains" in fields else None,
    )


def _read_headers(node: Node) -> Mapping[str, Pattern]:
    return {name.lower(): Pattern.read(child) for name, child in node.entries("header").items()}


def _text(path: str, value: Callable[[ModelRequest], str]) -> Judge:
    def judge(request: ModelRequest, wanted: Pattern) -> Iterator[Mismatch]:
        if not wanted.matches(value(request)):
            yield Mismatch(path, wanted.text, shown(value(request)))

    return judge


def _number(path: str, value: Callable[[ModelRequest], int | None]) -> Judge:
    def judge(request: ModelRequest, wanted: Span) -> Iterator[Mismatch]:
        number = value(request)
        if number is None or not wanted.holds(number):
            yield Mismatch(path, str(wanted), "nothing" if number is None else str(number))

    return judge


def _contained(path: str, texts: Callable[[ModelRequest], list[str]]) -> Judge:
    def judge(request: ModelRequest, wanted: tuple[Pattern, ...]) -> Iterator[Mismatch]:
        held = texts(request)
        for pattern in wanted:
            if not any(pattern.is_in(text) for text in held):
                yield Mismatch(path, f"contains {pattern.text}", shown(" / ".join(held)) or "no text")

    return judge


def _stream(request: ModelRequest, wanted: bool) -> Iterator[Mismatch]:
    if request.stream is not wanted:
        yield Mismatch("stream", str(wanted).lower(), str(request.stream).lower())


def _dialect(request: ModelRequest, wanted: str) -> Iterator[Mismatch]:
    if request.dialect != wanted:
        yield Mismatch("dialect", wanted, request.dialect)


def _tools(request: ModelRequest, wanted: WantedTools) -> Iterator[Mismatch]:
    offered, names = set(request.tools), set(wanted.names)
    fits = offered == names if wanted.exactly else names <= offered
    if not fits:
        how = "exactly " if wanted.exactly else "among others "
        yield Mismatch("tools", how + (listed(names) or "none"), shown(listed(offered) or "none"))


def _header(request: ModelRequest, wanted: Mapping[str, Pattern]) -> Iterator[Mismatch]:
    for name, pattern in wanted.items():
        value = request.headers.get(name)
        if value is None or not pattern.matches(value):
            yield Mismatch(f"header.{name}", pattern.text, "no such header" if value is None else shown(value))


def _results(request: ModelRequest, wanted: tuple[WantedResult, ...]) -> Iterator[Mismatch]:
    for result in wanted:
        yield from _result(request, result)


def _result(request: ModelRequest, wanted: WantedResult) -> Iterator[Mismatch]:
    found = [result for result in request.tool_results if _fits(request, result, wanted)]
    if not found:
        have = sorted({_tool_of(request, result) or result.tool_use_id for result in request.tool_results})
        yield Mismatch(wanted.path, "a result", f"none; results are there of: {listed(have) or 'no call'}")
        return
    last = found[-1]
    if wanted.is_error is not None and last.is_error is not wanted.is_error:
        yield Mismatch(f"{wanted.path}.is_error", str(wanted.is_error).lower(), str(last.is_error).lower())
    if wanted.contains is not None and not wanted.contains.is_in(last.text):
        yield Mismatch(f"{wanted.path}.text", f"contains {wanted.contains.text}", shown(last.text) or "no text")


def _fits(request: ModelRequest, result: ToolResult, wanted: WantedResult) -> bool:
    return result.tool_use_id == wanted.id if wanted.id is not None else _tool_of(request, result) == wanted.name


def _tool_of(request: ModelRequest, result: ToolResult) -> str | None:
    call = request.tool_calls.get(result.tool_use_id)
    return call.name if call is not None else None


def _no_duplicates(request: ModelRequest, wanted: bool) -> Iterator[Mismatch]:
    counted = Counter(result.tool_use_id for result in request.tool_results)
    twice = [call_id for call_id, count in counted.items() if count > 1]
    if wanted and twice:
        yield Mismatch("tool_results", "one result for each call", f"several for {listed(twice)}")


@dataclass(frozen=True, slots=True)
class Kind:
    """One key of ``expect_request``: how it is read, and how a request is judged by it."""

    read: Callable[[Node], Wanted]
    judge: Judge


EXPECTATIONS: Mapping[str, Kind] = {
    "model": Kind(Pattern.read, _text("model", lambda request: request.model)),
    "path": Kind(Pattern.read, _text("path", lambda request: request.path)),
    "dialect": Kind(lambda node: node.choice("dialect", DIALECTS), _dialect),
    "stream": Kind(lambda node: node.flag(), _stream),
    "max_tokens": Kind(Span.read, _number("max_tokens", lambda request: request.max_tokens)),
    "messages": Kind(Span.read, _number("messages", lambda request: len(request.messages))),
    "system_contains": Kind(_read_texts, _contained("system", lambda request: [request.system])),
    "last_user_text": Kind(Pattern.read, _text("last_user_text", lambda request: request.last_user_text)),
    "any_text_contains": Kind(_read_texts, _contained("messages", lambda request: list(texts_of(request)))),
    "tools": Kind(_read_tools, _tools),
    "tool_result": Kind(_read_results, _results),
    "no_duplicate_results": Kind(lambda node: node.flag(), _no_duplicates),
    "header": Kind(_read_headers, _header),
}
"""Every key of ``expect_request``."""


@dataclass(frozen=True, slots=True)
class RequestExpectation:
    """What a step expects: keys of ``EXPECTATIONS`` with what each wants, in the order of the file."""

    wanted: tuple[tuple[str, Wanted], ...]

    @classmethod
    def read(cls, node: Node) -> RequestExpectation:
        """Read an ``expect_request:`` mapping.

        Raises:
            DocumentError: A key is unknown, a value has the wrong type, or nothing is expected.
        """
        fields = node.fields("expect_request", EXPECTATIONS)
        if not fields:
            raise node.error(f"expect_request expects nothing. Allowed: {listed(EXPECTATIONS)}")
        return cls(tuple((key, EXPECTATIONS[key].read(child)) for key, child in fields.items()))

    def mismatches(self, request: ModelRequest) -> tuple[Mismatch, ...]:
        """Return every difference, in the order of the file; none where the request is as expected."""
        return tuple(found for key, wanted in self.wanted for found in EXPECTATIONS[key].judge(request, wanted))

    def renamed(self, rename: Rename) -> RequestExpectation:
        """Return it with every tool called as the runtime under test calls it."""
        return RequestExpectation(tuple((key, _renamed(wanted, rename)) for key, wanted in self.wanted))


def _renamed(wanted: Wanted, rename: Rename) -> Wanted:
    if isinstance(wanted, WantedTools):
        return replace(wanted, names=tuple(renamed_tool(name, rename) for name in wanted.names))
    if isinstance(wanted, tuple):
        return tuple(_renamed(item, rename) for item in wanted)
    if isinstance(wanted, WantedResult) and wanted.name is not None:
        return replace(wanted, name=renamed_tool(wanted.name, rename))
    return wanted
