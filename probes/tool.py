"""Probes of tool execution: half a call never runs, and a lost answer is not a lost effect."""

from __future__ import annotations

from harness.checks import effects, tools
from harness.probe import ProbeRun, probe


@probe(
    id="stream.cut-inside-tool-json",
    claim="A tool call that was cut off inside its arguments, or before its block ended, does not run.",
    clauses=("B1",),
    scenarios=("stream/cut-inside-tool-json.yaml", "stream/cut-before-block-end.yaml"),
    mutants=("stream.runs-half-a-call", "stream.runs-an-open-block"),
)
def cut_inside_tool_json(run: ProbeRun) -> None:
    """The effect server is never asked."""
    inside = run.play("stream/cut-inside-tool-json.yaml")
    run.check(inside, tools.never_called("deploy"))
    before_end = run.play("stream/cut-before-block-end.yaml")
    run.check(before_end, tools.never_called("deploy"))


@probe(
    id="tool.crash-after-effect",
    claim="An effect that happened before a kill is not repeated after it, and its call is reported as unknown.",
    clauses=("N2", "N4", "N5"),
    scenarios=("tool/crash-after-effect.yaml",),
    mutants=("tool.started-not-recorded", "tool.barrier-open", "tool.unknown-called-failed"),
)
def crash_after_effect(run: ProbeRun) -> None:
    """The ledger has the line, the answer is withheld, SIGKILL; then a model that insists."""
    crashed = run.play("tool/crash-after-effect.yaml")
    run.check(crashed, effects.exactly_once("deploy"), effects.unknown_is_called_unknown("deploy"))
