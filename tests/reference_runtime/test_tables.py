"""Every decision table answers every combination of its facts exactly once, or says why it cannot arise."""

from typing import Any

import pytest

from reference_runtime.recovery.page import TABLES
from reference_runtime.recovery.table import Impossible, ImpossibleFactsError, Row, Table, impossible, row

BY_NAME = {table.name: table for table in TABLES}


def gaps_and_overlaps(table: Table[Any]) -> list[str]:
    found = []
    for facts in table.combinations():
        labels = [entry.label for entry in table.rows if entry.matches(facts)]
        excluded = any(entry.matches(facts) for entry in table.impossible)
        if len(labels) + excluded != 1:
            found.append(f"{facts}: rows {labels}, impossible {excluded}")
    return found


def entries_of(table: Table[Any]) -> list[Row[Any] | Impossible]:
    return [*table.rows, *table.impossible]


def dead_entries(table: Table[Any]) -> list[Row[Any] | Impossible]:
    return [entry for entry in entries_of(table) if not any(entry.matches(facts) for facts in table.combinations())]


@pytest.mark.parametrize("name", BY_NAME)
def test_each_combination_has_exactly_one_answer(name: str) -> None:
    assert gaps_and_overlaps(BY_NAME[name]) == []


@pytest.mark.parametrize("name", BY_NAME)
def test_each_entry_is_reached_and_explained(name: str) -> None:
    table = BY_NAME[name]
    assert dead_entries(table) == []
    assert len({entry.label for entry in table.rows}) == len(table.rows)
    assert all(entry.because.endswith(".") for entry in entries_of(table))


@pytest.mark.parametrize("name", BY_NAME)
def test_conditions_name_facts_and_values_of_the_table(name: str) -> None:
    table = BY_NAME[name]
    for entry in entries_of(table):
        for fact, values in entry.when.items():
            assert set(values) <= set(table.facts[fact]), (entry, fact)


@pytest.mark.parametrize("name", BY_NAME)
def test_deciding_agrees_with_the_rows(name: str) -> None:
    table = BY_NAME[name]
    for facts in table.combinations():
        if any(entry.matches(facts) for entry in table.impossible):
            with pytest.raises(ImpossibleFactsError, match=table.name):
                table.decide(**facts)
        else:
            assert table.decide(**facts).matches(facts)


def test_the_enumeration_finds_a_gap_an_overlap_and_a_dead_row() -> None:
    facts = {"a": ("x", "y"), "b": ("x", "y")}
    gap = Table("t", "?", (), facts, (row("one", 1, "So.", a=("x",)),))
    overlap = Table("t", "?", (), facts, (row("one", 1, "So."), row("two", 2, "So.", a=("x",), b=("y",))))
    doubled = Table("t", "?", (), facts, (row("one", 1, "So."),), (impossible("No.", a=("x",)),))
    dead = Table("t", "?", (), facts, (row("one", 1, "So."), row("two", 2, "So.", a=("z",))))
    assert len(gaps_and_overlaps(gap)) == 2
    assert len(gaps_and_overlaps(overlap)) == 1
    assert len(gaps_and_overlaps(doubled)) == 2
    assert [entry.when for entry in dead_entries(dead)] == [{"a": ("z",)}]


def test_a_value_outside_the_table_is_not_guessed_at() -> None:
    with pytest.raises(ImpossibleFactsError, match="stop='never'"):
        BY_NAME["after_reply"].decide(
            stop="never", content="text", continuations="left", corrections="left", nudges="left"
        )
