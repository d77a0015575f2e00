"""Checks on the harness' own faults: one that did not fire makes the run inconclusive, never green."""

from __future__ import annotations

from collections import Counter

from harness.checks.check import Check, Judgement, equal, unknown
from harness.model.history import History
from harness.model.outcome import Role


def all_fired() -> Check:
    """Every declared fault, hold and crash was seen to fire; two of one name have to fire twice."""

    def judge(history: History) -> Judgement:
        declared = list(history.faults_declared)
        fired = Counter(str(event.data["fault"]) for event in history.of("fault.fired"))
        skipped = [
            f"{event.data['fault']}: {event.data['reason']}"
            for kind in ("fault.skipped", "hold.skipped")
            for event in history.of(kind)
        ]
        missing = list((Counter(declared) - fired).elements())
        if not missing:
            return equal(declared, declared)
        because = f"; {'; '.join(skipped)}" if skipped else ""
        return unknown(declared, f"did not fire: {', '.join(missing)}{because}")

    return Check("faults.all-fired", judge, Role.PRECONDITION)
