"""Checks on how the runtime ended: its process, and what it said about its own end (L1, L2)."""

from __future__ import annotations

from itertools import takewhile

from harness.checks.check import Check, Judgement, equal, holds, unknown
from harness.model.event import Event
from harness.model.history import History
from harness.model.outcome import Role


def exit_code(expected: int | str) -> Check:
    """The last phase's exit code is this number, or any number but 0 for ``"nonzero"``; after a caught signal too."""

    def judge(history: History) -> Judgement:
        end = history.last_end
        if end is None or not (end.ended or end.crashed):
            return unknown(expected, "the process did not end")
        actual: object = end.exit_code if end.signal is None else end.signal
        if expected == "nonzero":
            return holds(condition=isinstance(actual, int) and actual != 0, expected="nonzero", actual=actual)
        return equal(expected, actual)

    return Check("ending.exit", judge)


def terminal(expected: str) -> Check:
    """The runtime gave this typed terminal reason (L1)."""
    return Check("ending.terminal", lambda history: equal(expected, history.last_ending.terminal))


def subtype(expected: str) -> Check:
    """The structured result has this subtype (L2)."""
    return Check("ending.subtype", lambda history: equal(expected, history.last_ending.subtype))


def turns(expected: int) -> Check:
    """The runtime counted this many turns (A4)."""
    return Check("ending.turns", lambda history: equal(expected, history.last_ending.turns))


def answer_contains(text: str) -> Check:
    """The final answer holds a text."""

    def judge(history: History) -> Judgement:
        answer = history.last_ending.text
        return holds(condition=text in (answer or ""), expected=f"an answer with {text!r}", actual=answer)

    return Check("ending.answer", judge)


def output_contains(text: str) -> Check:
    """The last phase printed a text on either output."""

    def judge(history: History) -> Judgement:
        printed = "".join(event.data["text"] for event in history.of("output.line") if event.phase == len(history.ends))
        return holds(condition=text in printed, expected=f"output with {text!r}", actual=printed[-400:])

    return Check("ending.output", judge)


def within_bound() -> Check:
    """Every phase ended by itself or at its crash point; a run that had to be stopped proves nothing."""

    def judge(history: History) -> Judgement:
        if history.ended:
            return equal("every phase ended", "every phase ended")
        # What follows the limit is the harness ending the run, not the runtime doing something.
        before = list(takewhile(lambda event: event.kind != "process.overdue", history.events))
        last = before[-1] if before else None
        seen = f"last seen: {last.source} {last.kind} at {last.at_seconds:.1f} s" if last else "nothing was seen"
        return unknown("every phase ended", f"the wall limit passed; {seen}")

    return Check("ending.within-bound", judge, Role.PRECONDITION)


def nothing_after_exit() -> Check:
    """No model request, tool call or effect came after the runtime's process had ended (L1).

    The exit is the answer to whoever started the run; what is done behind it is reported to nobody.
    """

    def judge(history: History) -> Judgement:
        late = [f"{event.source} {event.kind} in phase {event.phase}" for event in history.events if after_exit(event)]
        return holds(condition=not late, expected="no work after the exit", actual=late or "no work after the exit")

    return Check("ending.nothing-after-exit", judge)


def after_exit(event: Event) -> bool:
    """Whether the driver saw this event after the process of its phase had ended by itself."""
    return bool(event.data.get("after_exit"))


def nothing_left_running() -> Check:
    """No process outlived the runtime."""
    return Check(
        "ending.nothing-left-running",
        lambda history: equal([], list(history.left_running)),
    )
