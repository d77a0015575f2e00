"""Checks on what really happened outside: the effect ledger decides, never what the runtime says."""

from __future__ import annotations

from harness.checks.check import Check, Judgement, equal, holds, unknown
from harness.model.history import History


def count(tool: str, expected: int) -> Check:
    """The ledger holds exactly this many effects of a tool."""
    return Check(f"effects.count.{tool}", lambda history: equal(expected, len(history.effects(tool))))


def exactly_once(tool: str) -> Check:
    """The effect happened, and it happened once (N5, B5)."""
    return Check(f"effects.exactly-once.{tool}", lambda history: equal(1, len(history.effects(tool))))


def unknown_is_called_unknown(tool: str) -> Check:
    """A call whose answer was lost is reported to the model as unknown, never as failed or as not run (N4, N5).

    The call that the crash cut off has an effect in the ledger and no answer from the tool. What the next request says
    of it must not deny the effect.
    """

    def judge(history: History) -> Judgement:
        lost = lost_calls(history, tool)
        if not lost:
            return unknown("a call that was cut off after its effect", "no such call is in the ledger")
        first_after = min((r.phase for r in history.requests() if r.phase > 1), default=None)
        answers = [
            result
            for result in history.tool_results()
            if result.tool == tool and first_after is not None and phase_of(history, result.request) >= first_after
        ]
        if not answers:
            return unknown("an answer for the cut-off call", "the conversation holds no answer for it")
        said = answers[0].text
        return holds(
            condition="unknown" in said.lower(),
            expected="an answer that calls the outcome unknown",
            actual=said,
        )

    return Check(f"effects.unknown-is-called-unknown.{tool}", judge)


def lost_calls(history: History, tool: str) -> list[int]:
    """Return the numbers of the calls that the ledger holds as done and that were never answered."""
    answered = {event.data["call"] for event in history.of("tool.answered") if event.data["tool"] == tool}
    return [event.data["call"] for event in history.effects(tool) if event.data["call"] not in answered]


def phase_of(history: History, request: int) -> int:
    """Return the phase in which a request arrived."""
    return next((r.phase for r in history.requests(None) if r.number == request), 0)
