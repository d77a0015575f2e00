"""The shape of a decision table: named facts with finite values, rows, and combinations declared impossible.

A table never orders its rows: exactly one row answers a combination of facts, so that no row hides another. It does
no I/O.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from itertools import product
from typing import Generic, TypeVar

DecisionT = TypeVar("DecisionT")

Facts = Mapping[str, str]
"""Fact name to fact value, one entry for every fact of a table."""


class Answer(StrEnum):
    """A fact that is either so or not so."""

    YES = "yes"
    NO = "no"


class Budget(StrEnum):
    """A bounded number of recoveries, seen as a fact."""

    LEFT = "left"
    SPENT = "spent"


class ImpossibleFactsError(Exception):
    """The facts contradict each other, so the state in memory cannot be trusted."""


@dataclass(frozen=True)
class Row(Generic[DecisionT]):
    """One decision: the values of each fact it answers (a fact not named may have any value)."""

    label: str
    decision: DecisionT
    because: str
    when: Mapping[str, tuple[str, ...]]

    def matches(self, facts: Facts) -> bool:
        """Whether every fact that this row names has one of the row's values."""
        return all(facts[name] in values for name, values in self.when.items())


@dataclass(frozen=True)
class Impossible:
    """A combination of facts that cannot arise, with the reason."""

    because: str
    when: Mapping[str, tuple[str, ...]]

    def matches(self, facts: Facts) -> bool:
        """Whether every fact that this entry names has one of the entry's values."""
        return all(facts[name] in values for name, values in self.when.items())


@dataclass(frozen=True)
class Table(Generic[DecisionT]):
    """A total map from facts to a decision."""

    name: str
    question: str
    clauses: tuple[str, ...]
    facts: Mapping[str, tuple[str, ...]]
    rows: tuple[Row[DecisionT], ...]
    impossible: tuple[Impossible, ...] = ()

    def decide(self, **facts: str) -> Row[DecisionT]:
        """The one row that answers these facts.

        Raises:
            ImpossibleFactsError: The combination is declared impossible, or a fact has a value outside the table.
        """
        for name, values in self.facts.items():
            if facts[name] not in values:
                raise ImpossibleFactsError(f"{self.name}: {name}={facts[name]!r} is none of {', '.join(values)}")
        for row in self.rows:
            if row.matches(facts):
                return row
        reasons = [entry.because for entry in self.impossible if entry.matches(facts)]
        raise ImpossibleFactsError(f"{self.name}: {dict(facts)}: {'; '.join(reasons) or 'no row answers this'}")

    def combinations(self) -> Iterator[dict[str, str]]:
        """Every combination of fact values, possible or not."""
        names = list(self.facts)
        for values in product(*self.facts.values()):
            yield dict(zip(names, values, strict=True))


def row(label: str, decision: DecisionT, because: str, **when: tuple[str, ...]) -> Row[DecisionT]:
    """Write one row: fact names as keywords, the values it answers as tuples."""
    return Row(label=label, decision=decision, because=because, when=when)


def impossible(because: str, **when: tuple[str, ...]) -> Impossible:
    """Write one impossible combination: fact names as keywords, values as tuples."""
    return Impossible(because=because, when=when)
