"""The page docs/faults.md: the same observations give the same text."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from importlib.metadata import version

from tests.fault_matrix.cases import GOOD, SECTIONS, TEXT, Case, good_of
from tests.fault_matrix.classification import MISREADINGS, Verdict, judge
from tests.fault_matrix.observation import CELLS, WAYS, Cell
from tests.fault_matrix.run import Seen

PACKAGES: Mapping[str, str] = {
    "anthropic": "anthropic",
    "openai chat": "openai",
    "openai responses": "openai",
    "google-genai": "google-genai",
}

CANNOT = "—"

HEAD = """\
# How the official clients take each fault

`make faults` writes this page from a run: every fault strikes a real reply of the provider, and each official client
asks for it on a real connection, with its retries off. What a client did is told by rules from what it returned and
raised, and not by hand; a test runs all of it again and compares.

Versions: {versions}. google-genai is read over its httpx transport.

Each client is called in up to three ways:

{ways}

The reply is the text “{said}”, or the call of a tool with the arguments
`{arguments}`. A cell says what the caller was given; what is bold is a misreading.
{cannot} stands where the fault cannot strike: the reply is not streamed, or has no such event in that dialect.
“No stop reason” is the one sign by which a caller can tell a stream that ended early where the client raises nothing.
An event that was lost, repeated or misplaced can be told by its number alone, and only the
Responses API numbers its events. What the model says is no misreading, unless the client makes another thing of it.
"""


def verdicts_of(seen: Sequence[Seen]) -> dict[tuple[str, Cell], Verdict | None]:
    """Judge every observation; nothing where the fault could not strike."""
    observed = {(one.case.id, one.cell): one for one in seen}
    goods = {case.id for case in GOOD}
    return {
        (case_id, cell): None
        if one.skipped
        else judge(one.case, cell, observed[good_of(one.case).id, cell].observed, one.observed)
        for (case_id, cell), one in observed.items()
        if case_id not in goods
    }


def render(seen: Sequence[Seen]) -> str:
    """Return the page."""
    verdicts = verdicts_of(seen)
    return "\n".join([_head(), *_misreadings(verdicts), *_sections(verdicts)])


def _head() -> str:
    named = dict.fromkeys([*PACKAGES.values(), "httpx2"])
    return HEAD.format(
        versions=", ".join(f"{name} {version(name)}" for name in named),
        ways="\n".join(f"* `{way}`: {meaning};" for way, meaning in WAYS.items()).removesuffix(";") + ".",
        said=TEXT,
        arguments='{"target": "production", "release": 7000}',
        cannot=CANNOT,
    )


def _misreadings(verdicts: Mapping[tuple[str, Cell], Verdict | None]) -> list[str]:
    lines = ["## Misreadings", ""]
    for word, meaning in MISREADINGS.items():
        lines += [f"### A client {meaning}", ""]
        for cell in CELLS:
            cases = {
                case_id: verdict
                for (case_id, seen), verdict in verdicts.items()
                if seen == cell and verdict and word in verdict.misreadings
            }
            if cases:
                found = _errors(cases) if word == "untyped" else ", ".join(f"[{name}](#{name})" for name in cases)
                lines.append(f"* {cell.client}, `{cell.way}`: {found}")
        lines.append("" if lines[-1].startswith("*") else "None.\n")
    return lines


def _errors(cases: Mapping[str, Verdict]) -> str:
    """Name each type of error once, with how many faults raise it."""
    counted = Counter(verdict.error for verdict in cases.values())
    return ", ".join(f"`{error}` ({count})" for error, count in sorted(counted.items(), key=str))


def _sections(verdicts: Mapping[tuple[str, Cell], Verdict | None]) -> list[str]:
    lines = []
    for title, cases in SECTIONS.items():
        lines += [f"## {title}", ""]
        for case in cases:
            lines += _table(case, verdicts)
    return lines


def _table(case: Case, verdicts: Mapping[tuple[str, Cell], Verdict | None]) -> list[str]:
    sent = f"`{case.fault}`" if case.fault else f"`listen: {{tls: {case.tls}}}`"
    lines = [f"### {case.id}", "", f"{case.sent} {sent}", "", f"| | {' | '.join(f'`{way}`' for way in WAYS)} |"]
    lines.append("|---" * (len(WAYS) + 1) + "|")
    for client in PACKAGES:
        cells = [_words(verdicts, case, Cell(client, way)) for way in WAYS]
        if any(words not in (CANNOT, "") for words in cells):
            lines.append(f"| {client} | {' | '.join(cells)} |")
    return [*lines, ""]


def _words(verdicts: Mapping[tuple[str, Cell], Verdict | None], case: Case, cell: Cell) -> str:
    if cell not in CELLS:
        return ""
    verdict = verdicts[case.id, cell]
    if verdict is None:
        return CANNOT
    words = verdict.words.replace("|", "\\|")
    wrong = [word for word in verdict.misreadings if word != "untyped"]
    return f"**{words}**" if wrong else words
