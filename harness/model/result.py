"""What one probe found on one runtime: the cell of the table."""

from __future__ import annotations

from dataclasses import dataclass

from harness.model.evidence import Evidence
from harness.model.outcome import CheckResult, Outcome


@dataclass(frozen=True)
class Deviation:
    """A known difference between a runtime and the contract, written down with its reason.

    Attributes:
        probe: The probe that shows it.
        outcome: The outcome that it gives.
        checks: The ids of the checks that do not pass.
        reason: What the runtime does instead, in a sentence or two.
    """

    probe: str
    outcome: Outcome
    checks: frozenset[str]
    reason: str


@dataclass(frozen=True)
class ProbeResult:
    """One cell: a probe, a runtime, the outcome, and the evidence of each scenario played.

    Attributes:
        probe: The probe's id.
        claim: Its claim.
        clauses: The clauses that it serves.
        runtime: The runtime as chosen on the command line.
        outcome: The worst of the evidences' outcomes.
        evidences: One for each scenario, in the order played.
        duration_seconds: Wall time of the probe.
        deviation: What the runtime's expectation file says of this probe, if anything.
    """

    probe: str
    claim: str
    clauses: tuple[str, ...]
    runtime: str
    outcome: Outcome
    evidences: tuple[Evidence, ...]
    duration_seconds: float
    deviation: Deviation | None = None

    @property
    def unmet(self) -> tuple[CheckResult, ...]:
        """The checks that did not pass, over all evidences."""
        return tuple(
            check for evidence in self.evidences for check in evidence.checks if check.outcome is not Outcome.PASS
        )

    @property
    def as_expected(self) -> str | None:
        """Return nothing when the cell is as the expectation file says, else what is new or stale about it."""
        unmet = frozenset(check.check for check in self.unmet)
        if self.deviation is None:
            return None if self.outcome is Outcome.PASS else f"new: {self.outcome}, not in the expectation file"
        if (self.outcome, unmet) == (self.deviation.outcome, self.deviation.checks):
            return None
        if self.outcome is Outcome.PASS:
            return "stale: it passes now; remove it from the expectation file"
        return (
            f"changed: {self.outcome} by {', '.join(sorted(unmet))}; the expectation file says "
            f"{self.deviation.outcome} by {', '.join(sorted(self.deviation.checks))}"
        )

    @property
    def behaviour(self) -> str:
        """What was seen, in a few words: requests, effects, exit."""
        return "; ".join(summary(evidence) for evidence in self.evidences)


def summary(evidence: Evidence) -> str:
    """Return what was seen in one run in a few words."""
    seen = evidence.observed
    parts = [f"{seen['requests']} request{'' if seen['requests'] == 1 else 's'}"]
    parts += [f"{tool} ×{count}" for tool, count in sorted(seen["effects"].items())]
    if seen["exit"] is not None:
        parts.append(f"exit {seen['exit']}")
    return ", ".join(parts)
