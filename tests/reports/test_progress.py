"""Results are shown as they come: in the order of the cells on plain output, as a table that fills on a terminal."""

from __future__ import annotations

import json
from io import StringIO

import pytest
from rich.console import Console

from reports import progress
from tests.reports.results import results


def names() -> list[progress.CellName]:
    return [(result.probe, result.runtime) for result in results()]


def test_lines_wait_for_the_lines_before_them() -> None:
    first, second, *_ = results()
    written = StringIO()
    show = progress.lines_in_order(Console(file=written, width=200, markup=False), names())
    show([second])
    assert written.getvalue() == ""
    show([second, first])
    assert [line.split()[1] for line in written.getvalue().splitlines()] == [first.probe, second.probe]
    show([second, first])
    assert len(written.getvalue().splitlines()) == 2


def test_json_lines_come_at_once_and_hold_the_whole_cell(capsys: pytest.CaptureFixture[str]) -> None:
    result = results()[0]
    with progress.shown(Console(file=StringIO()), names(), as_json=True) as show:
        show([result])
    cell = json.loads(capsys.readouterr().out)
    assert (cell["probe"], cell["runtime"], cell["outcome"]) == (result.probe, result.runtime, result.outcome)
    assert cell["runs"] == [evidence.run for evidence in result.evidences]


def test_a_terminal_gets_a_table_that_fills_and_loses_its_bar() -> None:
    found = results()
    written = StringIO()
    console = Console(file=written, width=160, height=60, force_terminal=True, color_system=None)
    with progress.shown(console, names(), as_json=False) as show:
        show(found[:1])
        show(found)
    frames = written.getvalue()
    assert f"0/{len(found)}" in frames
    last = frames[frames.rindex("probe  ") :] if "probe  " in frames else frames
    assert all(result.probe in last for result in found)
    assert f"{len(found)}/{len(found)}" not in last
