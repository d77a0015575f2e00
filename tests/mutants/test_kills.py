"""Every probe has negative controls, and each of them turns its probe red.

A mutant that leaves its probe green, or only makes it inconclusive, means that the probe's checks cannot fail.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.model.outcome import Outcome
from harness.probe import PROBES, Session, all_probes
from harness.runtimes.register import chosen
from harness.store import Store
from reports.table import line
from tests.mutants.mutant import catalogue

MUTANTS = catalogue()
CONTROLS = [(probe.id, mutant) for probe in all_probes() for mutant in probe.mutants]


def test_every_probe_has_a_negative_control() -> None:
    assert [probe.id for probe in all_probes() if not probe.mutants] == []


def test_every_mutant_belongs_to_a_probe() -> None:
    assert sorted(MUTANTS) == sorted(mutant for _, mutant in CONTROLS)


@pytest.mark.parametrize(("probe", "mutant"), CONTROLS, ids=[mutant for _, mutant in CONTROLS])
def test_mutant_turns_its_probe_red(probe: str, mutant: str, tmp_path: Path) -> None:
    tree = MUTANTS[mutant].build(tmp_path)
    session = Session(Store(tmp_path / "store"), tmp_path / "cache")
    result = session.run(PROBES[probe], chosen(f"reference@{tree}"))
    assert result.outcome is Outcome.FAIL, line(result)


def test_an_edit_that_does_not_fit_is_refused(tmp_path: Path) -> None:
    stale = MUTANTS["tool.barrier-open"]
    twice = type(stale)(stale.id, stale.because, (*stale.edits, *stale.edits))
    with pytest.raises(ValueError, match="stands 0 times"):
        twice.build(tmp_path)
