"""Reads a runtime's expectation file: its known deviations from the contract, each with a reason.

A deviation is a finding that was written down. It stays red in every table; what it changes is that a gate can tell a
known one from a new one, and a stale one from both.
"""

from __future__ import annotations

from pathlib import Path

from fake_provider.document import Node, load_document
from harness.model.outcome import Outcome
from harness.model.result import Deviation

RUNTIMES = Path(__file__).parent / "runtimes"


def deviations(runtime: str, version: str) -> dict[str, Deviation]:
    """Return the deviations recorded for a version of a runtime, by probe id; none when nothing is recorded.

    Raises:
        DocumentError: The file has a mistake.
    """
    path = RUNTIMES / runtime.replace("-", "_") / "expectations.yaml"
    if not path.is_file():
        return {}
    versions = load_document(path, shown_as=path.name).fields("expectations", {"versions"}, required=("versions",))
    recorded = versions["versions"].entries("versions")
    if version not in recorded:
        return {}
    fields = recorded[version].fields("version", {"deviations"}, required=("deviations",))
    return {probe: _deviation(probe, node) for probe, node in fields["deviations"].entries("deviations").items()}


def _deviation(probe: str, node: Node) -> Deviation:
    fields = node.fields("deviation", {"outcome", "checks", "reason"}, required=("outcome", "checks", "reason"))
    return Deviation(
        probe=probe,
        outcome=Outcome(fields["outcome"].choice("outcome", {outcome.value for outcome in Outcome})),
        checks=frozenset(item.text() for item in fields["checks"].items("checks")),
        reason=" ".join(fields["reason"].text().split()),
    )
