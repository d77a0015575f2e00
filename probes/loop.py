"""Probes of the agent loop: turns, tool results, and how a run ends."""

from __future__ import annotations

from harness.probe import ProbeRun, probe


@probe(
    id="loop.max-turns-terminal",
    claim="At max_turns the tool has run, no further model request is made, and the end is typed and not a success.",
    clauses=("L1", "L2"),
    scenarios=("loop/max-turns.yaml",),
    mutants=("loop.max-turns-off-by-one",),
)
def max_turns_terminal(run: ProbeRun) -> None:
    """One request, one tool, exit 1."""
    run.play("loop/max-turns.yaml")


@probe(
    id="loop.agent-loop-tool-feedback",
    claim="A tool's failure is an observation for the model, paired with its call, and not the end of the run.",
    clauses=("F1", "F2", "L2"),
    scenarios=("loop/tool-feedback.yaml",),
    mutants=("loop.tool-error-hidden",),
)
def agent_loop_tool_feedback(run: ProbeRun) -> None:
    """A failing command, a corrected command, exit 0."""
    run.play("loop/tool-feedback.yaml")
