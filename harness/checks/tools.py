"""Checks on tool calls' answers, workspace files and hooks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any

from harness.checks.check import Check, Judgement, equal, holds
from harness.model.history import History, blocks_of
from harness.model.scenario import FileExpectation, ResultExpectation


def results(expected: Sequence[ResultExpectation], lane: str = "main") -> Check:
    """The answers that the model was given for its tool calls, in order (F1, G2)."""

    def judge(history: History) -> Judgement:
        found = history.tool_results(lane)
        matching = len(found) == len(expected) and all(
            wanted.tool == result.tool
            and wanted.error in (None, result.is_error)
            and (wanted.contains is None or wanted.contains in result.text)
            for wanted, result in zip(expected, found, strict=True)
        )
        return holds(
            condition=matching,
            expected=[{"tool": w.tool, "error": w.error, "contains": w.contains} for w in expected],
            actual=[{"tool": r.tool, "error": r.is_error, "text": r.text[:400]} for r in found],
        )

    return Check("tools.results", judge)


def every_call_answered_once(lane: str | None = None) -> Check:
    """In every request each tool_use has exactly one tool_result, in the message after it (F2)."""

    def judge(history: History) -> Judgement:
        wrong = [
            {"request": request.number, "asked": asked, "answered": answered}
            for request in history.requests(lane)
            for asked, answered in asked_and_answered(request.messages)
            if sorted(asked) != sorted(answered)
        ]
        return holds(condition=not wrong, expected="each call answered once", actual=wrong or "each call answered once")

    return Check("tools.every-call-answered-once", judge)


def asked_and_answered(messages: Sequence[Mapping[str, Any]]) -> Iterator[tuple[list[str], list[str]]]:
    """Yield the ids that each message asks with and those that the next one answers; first, those answered unasked.

    Neighbours of one role count as one message, as the providers read them.
    """
    asked: list[str] = []
    for _, neighbours in groupby(messages, key=lambda message: message.get("role")):
        blocks = [block for message in neighbours for block in blocks_of(message)]
        yield asked, [str(block.get("tool_use_id")) for block in blocks if block.get("type") == "tool_result"]
        asked = [str(block.get("id")) for block in blocks if block.get("type") == "tool_use"]
    yield asked, []


def never_called(tool: str) -> Check:
    """The effect server was never asked for this tool."""

    def judge(history: History) -> Judgement:
        calls = [event for event in history.of("tool.called") if event.data["tool"] == tool]
        return equal(0, len(calls))

    return Check(f"tools.never-called.{tool}", judge)


def files(expected: Sequence[FileExpectation]) -> Check:
    """Files of the workspace after the run."""

    def judge(history: History) -> Judgement:
        wrong = {}
        for wanted in expected:
            state = history.files_after.get(wanted.path)
            if wanted.absent or state is None:
                if wanted.absent != (state is None):
                    wrong[wanted.path] = "it is not there" if state is None else "it is there"
            elif (wanted.equals is not None and state.text != wanted.equals) or (
                wanted.contains is not None and wanted.contains not in (state.text or "")
            ):
                wrong[wanted.path] = f"it holds {state.text!r}"
        shown = {wanted.path: file_words(wanted) for wanted in expected}
        return holds(condition=not wrong, expected=shown, actual=wrong or shown)

    return Check("tools.files", judge)


def file_words(wanted: FileExpectation) -> str:
    """Return what is expected of a file."""
    if wanted.absent:
        return "absent"
    if wanted.equals is not None:
        return wanted.equals
    return "there" if wanted.contains is None else f"…{wanted.contains}…"


def hooks(event: str, expected: int) -> Check:
    """The runtime asked the hook of an event this often (G2, G3)."""
    return Check(
        f"tools.hooks.{event}",
        lambda history: equal(expected, sum(entry.data["event"] == event for entry in history.of("hook.asked"))),
    )
