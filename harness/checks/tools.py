"""Checks on tool calls' answers, workspace files and hooks."""

from __future__ import annotations

from collections.abc import Sequence

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


def every_call_answered_once(lane: str = "main") -> Check:
    """In every request each tool_use has exactly one tool_result, in the message after it (F2)."""

    def judge(history: History) -> Judgement:
        wrong = []
        for request in history.requests(lane):
            asked: list[str] = []
            answered: list[str] = []
            for message in request.messages:
                for block in blocks_of(message):
                    if block.get("type") == "tool_use":
                        asked.append(str(block.get("id")))
                    if block.get("type") == "tool_result":
                        answered.append(str(block.get("tool_use_id")))
            if sorted(asked) != sorted(answered):
                wrong.append({"request": request.number, "asked": asked, "answered": answered})
        return holds(condition=not wrong, expected="each call answered once", actual=wrong or "each call answered once")

    return Check("tools.every-call-answered-once", judge)


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
            text = state.text if state is not None else None
            if wanted.absent and state is not None:
                wrong[wanted.path] = "it is there"
            elif not wanted.absent and state is None:
                wrong[wanted.path] = "it is not there"
            elif text != (wanted.equals or text) or (wanted.contains or "") not in (text or ""):
                wrong[wanted.path] = f"it holds {text!r}"
        shown = {w.path: "absent" if w.absent else w.equals or f"…{w.contains}…" for w in expected}
        return holds(condition=not wrong, expected=shown, actual=wrong or shown)

    return Check("tools.files", judge)


def hooks(event: str, expected: int) -> Check:
    """The runtime asked the hook of an event this often (G2, G3)."""
    return Check(
        f"tools.hooks.{event}",
        lambda history: equal(expected, sum(entry.data["event"] == event for entry in history.of("hook.asked"))),
    )
