"""The evidence of one run: one JSON value from which any check can be judged again, and its published schema.

Evidence is written once. Paths, ids and ports in it are placeholders, so that two runs of one behaviour give one text
but for the fields in :data:`VARYING`.
"""

from __future__ import annotations

from typing import Any

import msgspec

from harness.model.event import Event
from harness.model.history import History
from harness.model.outcome import CheckResult, Outcome

FORMAT_VERSION = 1

VARYING = ("captured_at", "timings_seconds", "run")
"""Fields that differ between two runs of one behaviour; the behaviour text leaves them out."""


class Target(msgspec.Struct, frozen=True):
    """The runtime under test: its adapter's name, version, and the sha256 of what was executed."""

    runtime: str
    version: str
    sha256: str


class Input(msgspec.Struct, frozen=True):
    """What was run: the scenario as written, its sha256, and the seed of anything drawn."""

    scenario: str
    digest: str
    source: str
    seed: int


class FileChange(msgspec.Struct, frozen=True):
    """One file of a watched root before and after: permission bits, size in bytes and sha256, or ``None`` if absent."""

    path: str
    before: dict[str, Any] | None
    after: dict[str, Any] | None


class Evidence(msgspec.Struct, frozen=True):
    """One run, whole.

    Attributes:
        format: The version of this shape.
        run: The run's id in the store.
        target: What was tested.
        captured_at: RFC 3339 time in UTC.
        environment: Isolation, operating system and the environment the runtime was given.
        commands: The argument vector of each phase.
        input: The scenario.
        history: The events without their times.
        timings_seconds: The times of the events, in the same order.
        literal_output: Standard output and error output of each phase, whole up to a bound.
        observed: The figures that people compare: models, turns, terminal, exit, effects.
        before_after: What changed in the workspace.
        exit_status: How each phase's process ended.
        checks: What each check said.
        outcome: The merged verdict.
        reproduce: One command.
    """

    format: int
    run: str
    target: Target
    captured_at: str
    environment: dict[str, Any]
    commands: list[list[str]]
    input: Input
    history: History
    timings_seconds: list[float]
    literal_output: list[dict[str, str]]
    observed: dict[str, Any]
    before_after: list[FileChange]
    exit_status: list[dict[str, Any]]
    checks: list[CheckResult]
    outcome: Outcome
    reproduce: str


def encode(evidence: Evidence) -> bytes:
    """Return evidence as indented JSON, keys in a fixed order, ending in a newline."""
    return msgspec.json.format(msgspec.json.encode(evidence, order="deterministic"), indent=1) + b"\n"


def decode(data: bytes) -> Evidence:
    """Read evidence back.

    Raises:
        ValueError: The bytes are not evidence, or of a newer format than this program knows.
    """
    try:
        value = msgspec.json.decode(data, type=dict[str, Any])
        found = value.get("format")
        if type(found) is int and 1 <= found <= FORMAT_VERSION:
            return msgspec.convert(value, Evidence)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise ValueError(f"not evidence: {error}") from error
    raise ValueError(f"evidence of format {found!r}; this program reads up to format {FORMAT_VERSION}")


def behaviour_text(evidence: Evidence) -> str:
    """Return the evidence as JSON text without the fields that vary: equal texts, equal behaviour."""
    value = msgspec.to_builtins(evidence)
    for field in VARYING:
        del value[field]
    return msgspec.json.format(msgspec.json.encode(value, order="deterministic"), indent=1).decode()


def timed_history(evidence: Evidence) -> History:
    """Return the history with the times put back, so that a check can judge stored evidence again."""
    events = tuple(
        msgspec.structs.replace(event, at_seconds=at)
        for event, at in zip(evidence.history.events, evidence.timings_seconds, strict=True)
    )
    return msgspec.structs.replace(evidence.history, events=events)


def without_times(history: History) -> tuple[History, list[float]]:
    """Split a history into its events at time 0 and the list of their times."""
    times = [event.at_seconds for event in history.events]
    events = tuple(_at_zero(event) for event in history.events)
    return msgspec.structs.replace(history, events=events), times


def _at_zero(event: Event) -> Event:
    return msgspec.structs.replace(event, at_seconds=0.0)


def schema() -> dict[str, Any]:
    """Return the JSON Schema (draft 2020-12) of evidence."""
    described = msgspec.json.schema(Evidence)
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "crashcart evidence",
        "description": "The evidence of one run of one scenario against one runtime under test.",
        **described,
    }
