"""Prints the kill matrix: every mutant by every probe that it is the negative control of. ``make mutants``."""

from __future__ import annotations

import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from harness.model.outcome import Outcome
from harness.probe import Probe, Session, all_probes
from harness.runtimes.register import chosen
from harness.store import Store
from tests.mutants.mutant import catalogue

JOBS = 2


def main() -> int:
    """Run all controls; return 1 when a mutant survives."""
    mutants = catalogue()
    with tempfile.TemporaryDirectory() as name, ThreadPoolExecutor(JOBS) as pool:
        folder = Path(name)
        trees = {mutant.id: mutant.build(folder) for mutant in mutants.values()}
        session = Session(Store(folder / "store"), folder / "cache")

        def killed(control: tuple[Probe, str]) -> Outcome:
            probe, mutant = control
            return session.run(probe, chosen(f"reference@{trees[mutant]}")).outcome

        controls = [(probe, mutant) for probe in all_probes() for mutant in probe.mutants]
        survivors = 0
        print(f"{'mutant':<38} {'probe':<34} outcome")
        for (probe, mutant), outcome in zip(controls, pool.map(killed, controls), strict=True):
            survivors += outcome is not Outcome.FAIL
            print(f"{mutant:<38} {probe.id:<34} {'killed' if outcome is Outcome.FAIL else f'SURVIVED: {outcome}'}")
        print(f"{len(controls) - survivors} of {len(controls)} mutants killed")
    return 1 if survivors else 0


if __name__ == "__main__":
    sys.exit(main())
