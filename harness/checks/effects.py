"""Checks on what really happened outside: the effect ledger decides, never what the runtime says."""

from __future__ import annotations

import re

from harness.checks.check import Check, Judgement, equal, holds, unknown
from harness.model.history import History

OUTCOME_UNKNOWN = re.compile(
    r"\bunknown\b(?! (?:error|failure|fault|exception|reason|cause|tool|function|method|command|argument)s?\b)",
    re.IGNORECASE,
)
"""The word, where it does not belong to a failure: "failed: unknown error" says that the call failed."""


def count(tool: str, expected: int) -> Check:
    """The ledger holds exactly this many effects of a tool."""
    return Check(f"effects.count.{tool}", lambda history: equal(expected, len(history.effects(tool))))


def exactly_once(tool: str) -> Check:
    """The effect happened, and it happened once (N5, B5)."""
    return Check(f"effects.exactly-once.{tool}", lambda history: equal(1, len(history.effects(tool))))


def unknown_is_called_unknown(tool: str) -> Check:
    """A call whose answer was lost is reported to the model as unknown, never as failed or as not run (N4, N5).

    The call that the crash cut off has an effect in the ledger and no answer from the tool. The first request of the
    next process has to speak of it; what the tool answers later belongs to other calls.
    """

    def judge(history: History) -> Judgement:
        expected = "the first request after the crash calls the outcome unknown"
        lost = lost_calls(history, tool)
        if not lost:
            return unknown(expected, "the ledger holds no call that was cut off after its effect")
        first_after = next((request for request in history.requests() if request.phase > 1), None)
        if first_after is None:
            return unknown(expected, "there was no request after the crash")
        said = [
            result.text
            for result in history.tool_results()
            if result.tool == tool and result.request == first_after.number
        ]
        called_unknown = sum(OUTCOME_UNKNOWN.search(text) is not None for text in said)
        return holds(
            condition=called_unknown >= len(lost),
            expected=expected,
            actual=said or "it does not speak of the call",
        )

    return Check(f"effects.unknown-is-called-unknown.{tool}", judge)


def lost_calls(history: History, tool: str) -> list[int]:
    """Return the numbers of the first phase's calls that the ledger holds as done and that were never answered."""
    answered = {event.data["call"] for event in history.of("tool.answered") if event.data["tool"] == tool}
    return [
        event.data["call"] for event in history.effects(tool) if event.phase == 1 and event.data["call"] not in answered
    ]
