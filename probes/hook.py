"""Probes of hooks: programs that may stop a tool or ask the model once more."""

from __future__ import annotations

from harness.probe import ProbeRun, probe


@probe(
    id="hook.stop-hook-reentry",
    claim="A Stop hook's feedback reaches the model in one more turn.",
    clauses=("G3",),
    scenarios=("hook/stop-blocked-once.yaml",),
    mutants=("hook.stop-feedback-lost", "hook.stop-block-ignored"),
)
def stop_hook_reentry(run: ProbeRun) -> None:
    """Blocked once, asked twice."""
    run.play("hook/stop-blocked-once.yaml")


@probe(
    id="hook.hook-deny-feedback",
    claim="A tool that a hook denies does not run, and the model is told why.",
    clauses=("G2", "F1"),
    scenarios=("hook/pre-tool-deny.yaml",),
    mutants=("hook.deny-ignored",),
)
def hook_deny_feedback(run: ProbeRun) -> None:
    """The file that the tool would have written is not there."""
    run.play("hook/pre-tool-deny.yaml")
