"""The results of a command for a terminal: a table of probes by runtimes, then each failure in full.

Colour is never the only sign: the outcome stands there as a word.
"""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from harness.model.evidence import Evidence
from harness.model.outcome import CheckResult, Outcome
from harness.model.result import ProbeResult
from reports import timeline

STYLES = {
    Outcome.PASS: "green",
    Outcome.WARN: "yellow",
    Outcome.FAIL: "bold red",
    Outcome.INCONCLUSIVE: "yellow",
    Outcome.UNSUPPORTED: "dim",
    Outcome.HARNESS_ERROR: "magenta",
}
VALUE_CHARACTERS_MAX = 400


def table(results: Sequence[ProbeResult], probes: Sequence[str], runtimes: Sequence[str]) -> RenderableType:
    """Return the table; a cell without a result yet is a dot."""
    found = {(result.probe, result.runtime): result for result in results}
    drawn = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    drawn.add_column("probe", no_wrap=True)
    for runtime in runtimes:
        drawn.add_column(runtime)
    for probe in probes:
        drawn.add_row(probe, *(cell(found.get((probe, runtime))) for runtime in runtimes))
    return drawn


def with_progress(
    results: Sequence[ProbeResult], probes: Sequence[str], runtimes: Sequence[str], progress: RenderableType
) -> RenderableType:
    """Return the table as it stands, with a progress bar below."""
    return Group(table(results, probes, runtimes), progress)


def cell(result: ProbeResult | None) -> Text:
    """Return one cell: outcome, what was seen, and how long it took."""
    if result is None:
        return Text("·", style="dim")
    words = Text(f"{result.outcome:<12} ", style=STYLES[result.outcome])
    words.append(result.behaviour, style="default")
    words.append(f"  {result.duration_seconds:.1f} s", style="dim")
    return words


def line(result: ProbeResult) -> str:
    """Return one result as a plain line, for output that is no terminal."""
    return (
        f"{result.outcome:<12} {result.probe:<33} {result.runtime:<20} "
        f"{result.behaviour}  {result.duration_seconds:.1f} s"
    )


def totals(results: Sequence[ProbeResult], duration_seconds: float) -> Text:
    """Return how many cells had which outcome."""
    counts = [(outcome, sum(result.outcome is outcome for result in results)) for outcome in Outcome]
    words = Text()
    for outcome, count in counts:
        if count:
            words.append(f"{', ' if words else ''}{count} {outcome}", style=STYLES[outcome])
    words.append(f" in {duration_seconds:.1f} s")
    return words


def failure(result: ProbeResult) -> RenderableType:
    """Return a result that is not green in full: claim, checks, timeline, and the command that reproduces it."""
    parts: list[RenderableType] = [
        Text(),
        Text.assemble((f"{result.outcome} ", STYLES[result.outcome]), f"{result.probe} on {result.runtime}"),
        Text(f"  claim: {result.claim} ({', '.join(result.clauses)})"),
    ]
    parts += [run_in_full(evidence) for evidence in result.evidences if evidence.outcome is not Outcome.PASS]
    if result.deviation is not None:
        parts.append(Text(f"  known deviation: {result.deviation.reason}"))
    return Group(*parts)


def run_in_full(evidence: Evidence) -> RenderableType:
    """Return one run: its checks that did not pass, its timeline, and the two commands for more."""
    unmet = [words for check in evidence.checks if check.outcome is not Outcome.PASS for words in check_words(check)]
    return Text("\n").join(
        [
            *(Text(words) for words in unmet),
            *(Text(words) for words in timeline.lines(evidence)),
            Text(f"  reproduce: {evidence.reproduce}"),
            Text(f"  more:      crashcart show {evidence.run}"),
        ]
    )


def check_words(check: CheckResult) -> list[str]:
    """Return a check that did not pass in two or three lines."""
    words = [f"  {check.outcome}: {timeline.visible(check.check)}"]
    if check.detail:
        words.append(f"    {timeline.visible(check.detail)}")
    if check.outcome is Outcome.FAIL:
        words += [f"    expected {short(check.expected)}", f"    actual   {short(check.actual)}"]
    return words


def short(value: object) -> str:
    """Return a value on one line and not too long."""
    text = timeline.visible(value if isinstance(value, str) else repr(value))
    return text if len(text) <= VALUE_CHARACTERS_MAX else text[: VALUE_CHARACTERS_MAX - 1] + "…"


def print_results(console: Console, results: Sequence[ProbeResult]) -> None:
    """Print each result that is not green in full."""
    for result in results:
        if result.outcome is not Outcome.PASS:
            console.print(failure(result), soft_wrap=True, highlight=False)
