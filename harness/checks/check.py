"""What a check is, and how one is run so that its own mistake is never taken for the runtime's.

A check is a pure function of the history. An exception in it is a harness error, not a pass and not a fail.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from harness.model.history import History
from harness.model.outcome import CheckResult, Outcome, Role

Judgement = tuple[Outcome, object, object, str]
"""Outcome, expected, actual and one sentence (or nothing) for a person."""


@dataclass(frozen=True)
class Check:
    """One question to a history.

    Attributes:
        id: A dotted slug, the same whatever the outcome.
        judge: The pure function that answers.
        role: Whether it asks if the run is about the claim, or if the claim holds.
    """

    id: str
    judge: Callable[[History], Judgement]
    role: Role = Role.CLAIM

    def result(self, history: History) -> CheckResult:
        """Ask, and return what was found; an exception becomes ``harness_error``."""
        try:
            outcome, expected, actual, detail = self.judge(history)
        except Exception as error:  # noqa: BLE001 - a check's own mistake must not end the run or look like a verdict
            outcome, expected, actual = Outcome.HARNESS_ERROR, None, None
            detail = f"the check itself failed: {type(error).__name__}: {error}"
        return CheckResult(self.id, outcome, expected, actual, self.role, detail)


def equal(expected: object, actual: object, detail: str = "") -> Judgement:
    """Judge by equality."""
    return (Outcome.PASS if expected == actual else Outcome.FAIL), expected, actual, detail


def holds(*, condition: bool, expected: object, actual: object, detail: str = "") -> Judgement:
    """Judge by a condition that was already computed."""
    return (Outcome.PASS if condition else Outcome.FAIL), expected, actual, detail


def unknown(expected: object, detail: str) -> Judgement:
    """Say that the history does not hold the answer."""
    return Outcome.INCONCLUSIVE, expected, None, detail


def results(checks: Iterable[Check], history: History) -> tuple[CheckResult, ...]:
    """Ask all checks; one that fails does not keep the others from being asked."""
    return tuple(check.result(history) for check in checks)
