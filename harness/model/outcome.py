"""What a check can say, and how several sayings become one.

Nothing here runs a check. The order of precedence is a table, and the one idea in it is that a precondition speaks
first: when the fault did not fire, neither a green nor a red result about the claim has any ground.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum
from typing import Any

import msgspec


class Outcome(StrEnum):
    """The verdict of one check, one run or one probe. It is never rewritten afterwards."""

    PASS = "pass"  # noqa: S105 - the word is the outcome, not a password
    WARN = "warn"
    FAIL = "fail"
    INCONCLUSIVE = "inconclusive"
    UNSUPPORTED = "unsupported"
    HARNESS_ERROR = "harness_error"


class Role(StrEnum):
    """What a check is for: whether the run is about the claim at all, or whether the claim holds."""

    PRECONDITION = "precondition"
    CLAIM = "claim"


class CheckResult(msgspec.Struct, frozen=True):
    """What one check found.

    Attributes:
        check: The check's id, the same for every outcome.
        outcome: The verdict.
        expected: What was allowed, as plain data.
        actual: What was found, as plain data.
        role: Precondition or claim.
        detail: One sentence for a person; empty when expected and actual say it all.
    """

    check: str
    outcome: Outcome
    expected: Any
    actual: Any
    role: Role = Role.CLAIM
    detail: str = ""


PRECEDENCE: tuple[tuple[Role | None, Outcome, str], ...] = (
    (None, Outcome.HARNESS_ERROR, "the harness itself failed; nothing else it says can be trusted"),
    (Role.PRECONDITION, Outcome.UNSUPPORTED, "the runtime declared beforehand that it cannot do this"),
    (Role.PRECONDITION, Outcome.INCONCLUSIVE, "the fault or the end of the run was not reached"),
    (None, Outcome.FAIL, "a claim was contradicted by the evidence"),
    (None, Outcome.INCONCLUSIVE, "a claim could not be judged"),
    (None, Outcome.WARN, "a claim that should hold does not"),
    (None, Outcome.UNSUPPORTED, "a part of the claim does not apply to this runtime"),
    (None, Outcome.PASS, "every claim held"),
)
"""Rows in order; the first row that some result matches decides. ``None`` stands for either role."""


def merged(results: Iterable[CheckResult]) -> Outcome:
    """Return the outcome of several results; no result at all is inconclusive, since nothing was judged."""
    held = list(results)
    for role, outcome, _because in PRECEDENCE:
        if any(result.outcome is outcome and role in (None, result.role) for result in held):
            return outcome
    return Outcome.INCONCLUSIVE


def worst(outcomes: Iterable[Outcome]) -> Outcome:
    """Return the outcome of several runs that together make one claim."""
    return merged(CheckResult("run", outcome, None, None) for outcome in outcomes)
