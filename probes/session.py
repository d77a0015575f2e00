"""Probes of sessions: what a new process knows of the conversation before it."""

from __future__ import annotations

from harness.checks import requests
from harness.probe import ProbeRun, probe


@probe(
    id="session.resume-history",
    claim="A resumed session sends the conversation that the process before it had.",
    clauses=("J1",),
    scenarios=("session/resume-history.yaml",),
    mutants=("session.resume-forgets",),
)
def resume_history(run: ProbeRun) -> None:
    """The second request begins with what the first one held."""
    resumed = run.play("session/resume-history.yaml")
    run.check(resumed, requests.carry_earlier_turns())


@probe(
    id="session.resume-unknown-session",
    claim="An unknown session id ends the run at once with a clear message, exit 1, and no model request.",
    clauses=("J3",),
    scenarios=("session/resume-unknown.yaml",),
    mutants=("session.unknown-becomes-new",),
)
def resume_unknown_session(run: ProbeRun) -> None:
    """No conversation found."""
    run.play("session/resume-unknown.yaml")
