"""Probes of the request layer: which failures are asked again, and how often."""

from __future__ import annotations

from harness.checks import requests
from harness.probe import ProbeRun, probe


@probe(
    id="request.http-retry-classification",
    claim="An overload is retried exactly max_retries times beyond the first attempt; a 400 is never retried.",
    clauses=("A1", "A2", "A4"),
    scenarios=("request/overloaded-twice.yaml", "request/bad-request.yaml"),
    mutants=("request.retries-a-bad-request", "request.max-retries-counts-the-first"),
)
def http_retry_classification(run: ProbeRun) -> None:
    """529, 529, 200 with max_retries=2 is three requests; 400 is one."""
    overloaded = run.play("request/overloaded-twice.yaml")
    run.check(overloaded, requests.count(3))
    run.play("request/bad-request.yaml")


@probe(
    id="fallback.model-fallback-sequence",
    claim="When overloads have spent the primary's attempts, the next request goes to the fallback model.",
    clauses=("A2", "C1"),
    scenarios=("fallback/overload-then-fallback.yaml",),
    mutants=("fallback.never-falls-back",),
)
def model_fallback_sequence(run: ProbeRun) -> None:
    """Primary, primary, primary, fallback."""
    run.play("fallback/overload-then-fallback.yaml")
