"""YAML documents that remember their lines, read by typed readers that name what they expected.

A script and a scenario are data that people write by hand, so every mistake in them is answered with one sentence: the
file and line, what was found, what was allowed, and the nearest valid word. This module reads; it never guesses a
default, never coerces a type, and never starts anything.
"""

from __future__ import annotations

import difflib
import math
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError, YAMLError

INTEGER_MIN, INTEGER_MAX = -(2**63), 2**64 - 1
NESTING_LEVELS_MAX = 200
VALUES_MAX = 200_000
"""How many values a document may hold, counted as they are read: one under an alias counts each time."""


@dataclass(frozen=True)
class Place:
    """Where a value stands in a file; lines count from 1."""

    file: str
    line: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"


class DocumentError(Exception):
    """A mistake in a document, as one sentence that begins with ``file:line:``.

    Attributes:
        place: Where the mistake stands.
        message: What was found and what was allowed, without the place.
    """

    def __init__(self, place: Place, message: str) -> None:
        # What is quoted may hold any character, and a message is one line all the same.
        self.message = _LINE_BREAK.sub(lambda found: repr(found.group())[1:-1], message)
        self.place = place
        super().__init__(f"{place}: {self.message}")


_LINE_BREAK = re.compile("[\n\r\v\f\x1c-\x1e\x85\u2028\u2029]")


def nearest(word: str, allowed: Collection[str]) -> str:
    """Return the end of a message about an unknown word: the nearest allowed one, if any, and all that are allowed."""
    close = difflib.get_close_matches(word, sorted(allowed), n=1, cutoff=0.6)
    hint = f"; did you mean '{close[0]}'?" if close else "."
    return f"{hint} Allowed: {listed(allowed)}"


def listed(words: Collection[str]) -> str:
    """Return words sorted and joined by commas, for the "allowed" part of a message."""
    return ", ".join(sorted(words))


@dataclass(frozen=True)
class Node:
    """One value of a document together with its place and its dotted path from the root."""

    value: Any
    place: Place
    path: str

    def error(self, message: str) -> DocumentError:
        """Return an error at this node; the caller raises it."""
        where = f" (in {self.path})" if self.path else ""
        return DocumentError(self.place, f"{message}{where}")

    def expected(self, what: str) -> DocumentError:
        """Return the error for a value of the wrong type."""
        return self.error(f"expected {what}, found {describe(self.value)}")

    def fields(self, kind: str, allowed: Collection[str], required: Collection[str] = ()) -> dict[str, Node]:
        """Read a mapping whose keys are all known.

        Args:
            kind: What the mapping is, for messages: ``"step"``, ``"scenario"``.
            allowed: Every key that may stand here.
            required: The keys that must stand here.

        Returns:
            The child nodes by key, in the order of the file.

        Raises:
            DocumentError: The value is no mapping, a key is unknown, or a required key is missing.
        """
        children = self.entries(kind)
        for key, child in children.items():
            if key not in allowed:
                raise DocumentError(child.place, f"unknown key '{key}' in {kind}{nearest(key, allowed)}")
        for key in required:
            if key not in children:
                raise self.error(f"{kind} has no '{key}'. Required: {listed(required)}")
        return children

    def entries(self, kind: str) -> dict[str, Node]:
        """Read a mapping whose keys are free text, such as lane names or file paths."""
        if not isinstance(self.value, Mapping):
            raise self.expected(f"{kind} as a mapping")
        children = {}
        for key, value in self.value.items():
            line = _key_line(self.value, key, self.place.line)
            path = f"{self.path}.{key}" if self.path else str(key)
            if not isinstance(key, str):
                raise DocumentError(Place(self.place.file, line), f"expected a text key in {kind}, found {_shown(key)}")
            child = Node(value, Place(self.place.file, line), path)
            children[child.whole_characters(key)] = child
        return children

    def items(self, kind: str) -> list[Node]:
        """Read a list; each item keeps its own line."""
        if not isinstance(self.value, list):
            raise self.expected(f"{kind} as a list")
        return [
            Node(
                value,
                Place(self.place.file, _item_line(self.value, index, self.place.line)),
                f"{self.path}[{index}]",
            )
            for index, value in enumerate(self.value)
        ]

    def text(self) -> str:
        """Read a text value."""
        if not isinstance(self.value, str):
            raise self.expected("text")
        return self.whole_characters(self.value)

    def integer(self, minimum: int | None = None) -> int:
        """Read a whole number, at least ``minimum`` where one is given."""
        if isinstance(self.value, bool) or not isinstance(self.value, int):
            raise self.expected("a whole number")
        self._check_size(self.value)
        if minimum is not None and self.value < minimum:
            raise self.error(f"expected a whole number of at least {minimum}, found {self.value}")
        return int(self.value)

    def number(self, minimum: float | None = None) -> float:
        """Read a number, at least ``minimum`` where one is given."""
        if isinstance(self.value, bool) or not isinstance(self.value, int | float):
            raise self.expected("a number")
        self._check_size(self.value)
        if not math.isfinite(self.value):
            raise self.error(f"expected a finite number, found {self.value}")
        if minimum is not None and self.value < minimum:
            raise self.error(f"expected a number of at least {minimum}, found {self.value}")
        return float(self.value)

    def flag(self) -> bool:
        """Read ``true`` or ``false``."""
        if not isinstance(self.value, bool):
            raise self.expected("true or false")
        return self.value

    def choice(self, kind: str, allowed: Collection[str]) -> str:
        """Read one word out of a closed list."""
        word = self.text()
        if word not in allowed:
            raise self.error(f"unknown {kind} '{word}'{nearest(word, allowed)}")
        return word

    def data(self) -> Any:
        """Return the value as plain Python data: dict, list, str, int, float, bool or None.

        Raises:
            DocumentError: The value holds something that JSON has not, such as a date or a number that is none.
        """
        self._check_data(self.value, NESTING_LEVELS_MAX)
        return plain(self.value)

    def whole_characters(self, text: str) -> str:
        """Return text in which the two halves of a character, escaped as JSON does it, are that character.

        Raises:
            DocumentError: One half stands alone, which no wire can carry.
        """
        whole = _joined(text)
        lone = _HALF_CHARACTER.search(whole)
        if lone:
            raise self.error(f"text holds half a character, {lone.group()!r}; write the character itself")
        return whole

    def _check_size(self, value: float) -> None:
        """Refuse a whole number that JSON's readers do not take for one."""
        if _is_large(value):
            raise self.error(f"expected a whole number from {INTEGER_MIN} to {INTEGER_MAX}, found a larger one")

    def _check_data(self, value: Any, levels: int) -> None:
        if isinstance(value, str):
            self.whole_characters(value)
        elif levels == 0 and isinstance(value, Mapping | list):
            raise self.error(f"nested more than {NESTING_LEVELS_MAX} levels deep")
        elif isinstance(value, Mapping):
            for key, item in value.items():
                if not isinstance(key, str):
                    raise self.error(f"expected a text key, found {_shown(key)}")
                self.whole_characters(key)
                self._check_data(item, levels - 1)
        elif isinstance(value, list):
            for item in value:
                self._check_data(item, levels - 1)
        elif isinstance(value, int):
            self._check_size(value)
        elif isinstance(value, float) and not math.isfinite(value):
            raise self.error(f"expected a number, found {value}")
        elif not (value is None or isinstance(value, float)):
            raise self.error(f"expected data that JSON has, found {describe(value)}; quote it to make it text")


def _shown(key: object) -> str:
    return describe(key) if _is_large(key) else repr(key)


def _is_large(value: object) -> bool:
    """Whether a value is a whole number that may have too many digits to be written down."""
    return isinstance(value, int) and not INTEGER_MIN <= value <= INTEGER_MAX


def describe(value: Any) -> str:
    """Return a value's type and a short form of the value, for messages."""
    kinds = {
        bool: "true/false",
        int: "a whole number",
        float: "a number",
        str: "text",
        list: "a list",
        dict: "a mapping",
    }
    if value is None:
        return "nothing"
    if _is_large(value):
        return "a very large whole number"
    for kind, name in kinds.items():
        if isinstance(value, kind):
            return name if kind in (list, dict) else f"{name} {plain(value)!r}"
    return type(value).__name__


_HALF_CHARACTER = re.compile("[\ud800-\udfff]")
_TWO_HALVES = re.compile("[\ud800-\udbff][\udc00-\udfff]")


def _joined(text: str) -> str:
    """Join what JSON escapes as two halves; YAML reads each escape as a character of its own."""
    return _TWO_HALVES.sub(lambda pair: pair.group().encode("utf-16", "surrogatepass").decode("utf-16"), str(text))


def plain(value: Any) -> Any:
    """Copy a loaded value into plain Python data without the loader's own types."""
    if isinstance(value, Mapping):
        return {_joined(str(key)): plain(item) for key, item in value.items()}
    if isinstance(value, list):
        return [plain(item) for item in value]
    if isinstance(value, bool) or value is None:
        return value
    if isinstance(value, str):
        return _joined(value)
    for kind in (int, float):
        if isinstance(value, kind):
            return kind(value)
    return value


def load_document(path: Path, shown_as: str | None = None) -> Node:
    """Read one YAML file.

    Args:
        path: The file.
        shown_as: The name that messages give it; the path as given when absent.

    Raises:
        DocumentError: The file cannot be read, is not UTF-8, or is not one YAML document.
    """
    name = shown_as or str(path)
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise DocumentError(Place(name, 1), f"cannot read the file: {reason}") from error
    return parse_document(text, name)


def parse_document(text: str, name: str) -> Node:
    """Read one YAML document from text; ``name`` stands for the file in messages.

    Raises:
        DocumentError: The text is not one YAML document; duplicate keys are refused too.
    """
    try:
        value = YAML(typ="rt").load(text)
    except MarkedYAMLError as error:
        mark = error.problem_mark
        line = mark.line + 1 if mark is not None else 1
        problem = " ".join(str(error.problem or error).split())
        raise DocumentError(Place(name, line), f"not valid YAML: {problem}") from error
    except RecursionError as error:
        raise DocumentError(Place(name, 1), "nested too deeply") from error
    except (YAMLError, ValueError) as error:  # a date or a number that is none is the latter
        raise DocumentError(Place(name, 1), f"not valid YAML: {' '.join(str(error).split())}") from error
    node = Node(value, Place(name, _start_line(value)), "")
    if _values_in(value, {}) > VALUES_MAX:
        raise node.error(f"it holds more than {VALUES_MAX} values, or an alias that stands inside itself")
    return node


def _values_in(value: Any, known: dict[int, int]) -> int:
    """Count the values of a document without following an alias twice; one inside itself counts as too many."""
    if not isinstance(value, Mapping | list):
        return 1
    if id(value) not in known:
        known[id(value)] = VALUES_MAX + 1
        children = value.values() if isinstance(value, Mapping) else value
        known[id(value)] = 1 + sum(_values_in(child, known) for child in children)
    return known[id(value)]


def _start_line(value: Any) -> int:
    position = getattr(value, "lc", None)
    return int(position.line) + 1 if position is not None and position.line is not None else 1


def _key_line(mapping: Any, key: Any, otherwise: int) -> int:
    position = getattr(mapping, "lc", None)
    if position is None or not position.data or key not in position.data:
        return otherwise
    return int(position.data[key][0]) + 1


def _item_line(sequence: Any, index: int, otherwise: int) -> int:
    position = getattr(sequence, "lc", None)
    if position is None or not position.data or index not in position.data:
        return otherwise
    return int(position.data[index][0]) + 1
