"""The table, the failure in full, the timeline and JUnit, on evidence made by hand.

Method: golden files for what a person reads, and JUnit parsed back by the standard library. What a runtime printed must
never reach a terminal or a parser as anything but text.
"""

from __future__ import annotations

import io
from xml.etree import ElementTree as ET

import pytest
from rich.console import Console, RenderableType

from harness.model.outcome import CheckResult, Outcome
from reports import junit, table, timeline
from reports.timeline import WORDS
from tests.harness.histories import evidence, made, request, user
from tests.reports.conftest import GOLDEN, Golden
from tests.reports.results import HOSTILE, crash, result, results, single


def drawn(*parts: RenderableType, width: int = 110) -> str:
    """Return what a plain terminal would show."""
    stream = io.StringIO()
    console = Console(file=stream, width=width, color_system=None, highlight=False)
    for part in parts:
        console.print(part, soft_wrap=True)
    return stream.getvalue()


PROBES = list(dict.fromkeys(one.probe for one in results()))


def test_the_table(golden: Golden) -> None:
    golden(drawn(table.table(results(), [*PROBES, "tool.pending"], ["fake@1.0", "reference"]), width=160))


def test_plain_lines(golden: Golden) -> None:
    golden("\n".join(table.line(one) for one in results()) + "\n")


def test_the_failures_in_full(golden: Golden) -> None:
    stream = io.StringIO()
    table.print_results(Console(file=stream, width=110, color_system=None), results())
    golden(stream.getvalue())


def test_the_timeline(golden: Golden) -> None:
    golden("\n".join(timeline.lines(crash())) + "\n")


def test_the_junit_document(golden: Golden) -> None:
    golden(junit.document(results()).decode())


def test_every_golden_file_has_its_test() -> None:
    assert {f"test_{path.stem}" for path in GOLDEN.iterdir()} <= set(globals())


def test_every_event_that_a_timeline_tells_is_in_the_golden_file() -> None:
    told = {event.kind for event in crash().history.events}
    assert set(WORDS) <= told


def test_a_green_result_is_not_told_in_full() -> None:
    stream = io.StringIO()
    table.print_results(Console(file=stream), [one for one in results() if one.outcome is Outcome.PASS])
    assert stream.getvalue() == ""


def test_every_outcome_has_a_colour_and_is_a_word() -> None:
    assert set(table.STYLES) == set(Outcome)
    for one in results():
        assert table.cell(one).plain.startswith(one.outcome.value)


TOTALS = {
    (): " in 2.0 s",
    (Outcome.PASS, Outcome.PASS): "2 pass in 2.0 s",
    (Outcome.FAIL, Outcome.PASS, Outcome.HARNESS_ERROR): "1 pass, 1 fail, 1 harness_error in 2.0 s",
}


@pytest.mark.parametrize("outcomes", TOTALS, ids=str)
def test_totals(outcomes: tuple[Outcome, ...]) -> None:
    assert table.totals([result("a.b", outcome) for outcome in outcomes], 2.0).plain == TOTALS[outcomes]


# --- nothing but text


def test_nothing_that_a_runtime_printed_reaches_the_terminal_as_a_command() -> None:
    stream = io.StringIO()
    table.print_results(Console(file=stream, width=110, color_system=None), results())
    shown = stream.getvalue()
    assert "[bold]x[/bold]" in shown, "markup is shown, not obeyed"
    assert [character for character in shown if not character.isprintable() and character != "\n"] == []
    assert "\\x1b[2J" in shown


BODIES = ["hello", 5, [], {"messages": "hello"}, {"messages": ["hello", None]}, {"messages": [{"content": 5}]}]


@pytest.mark.parametrize("body", BODIES, ids=str)
def test_a_request_that_is_none_has_its_line_all_the_same(body: object) -> None:
    [line] = [words for words in timeline.lines(evidence(made(request(1, body=body)))) if "request 1" in words]
    assert "empty" in line


def test_a_conversation_ends_in_its_last_words() -> None:
    [_, line] = timeline.lines(evidence(made(request(1, user("Hello  \n there.")))))
    assert line == "     0.000   provider ← request 1 for m, 1 messages, user: Hello there."


SHORT: dict[str, tuple[object, str]] = {
    "text": ("a", "a"),
    "text of two lines": ("a\nb", "a\\nb"),
    "number": (5, "5"),
    "mapping": ({"a": "b\n"}, "{'a': 'b\\n'}"),
    "nothing": (None, "None"),
    "long": ("x" * 401, "x" * 399 + "…"),
    "just fits": ("x" * 400, "x" * 400),
}


@pytest.mark.parametrize("name", SHORT)
def test_a_value_on_one_line(name: str) -> None:
    value, words = SHORT[name]
    assert table.short(value) == words


# --- JUnit


def parsed(data: bytes) -> ET.Element:
    return ET.fromstring(data)


def test_every_outcome_is_a_case_of_its_kind() -> None:
    root = parsed(junit.document(results()))
    assert [suite.get("name") for suite in root] == ["fake@1.0", "reference"]
    first, second = root
    counts = {name: first.get(name) for name in ("tests", "failures", "errors", "skipped", "time")}
    assert counts == {"tests": "6", "failures": "1", "errors": "2", "skipped": "1", "time": "7.500"}
    assert (second.get("tests"), second.get("failures"), second.get("errors")) == ("1", "0", "0")
    kinds = {case.get("name"): [child.tag for child in case] for case in first}
    assert kinds == {
        "tool.crash": ["failure"],
        "request.fine": [],
        "request.nearly": [],
        "request.unsure": ["error"],
        "session.absent": ["skipped"],
        "session.broken": ["error"],
    }
    assert [case.get("classname") for case in first][:2] == ["fake@1.0.tool", "fake@1.0.request"]


@pytest.mark.parametrize("outcome", Outcome)
def test_no_text_breaks_the_document(outcome: Outcome) -> None:
    hostile = "".join(map(chr, range(0x20))) + HOSTILE + "\udfff\uffff]]>\x7f"
    judged = evidence(
        made(request(1, user(hostile))),
        (CheckResult(hostile, outcome, hostile, hostile, detail=hostile),),
        reproduce=hostile,
    )
    data = junit.document([result(hostile, outcome, judged, runtime=hostile, claim=hostile)])
    [[case]] = parsed(data)
    assert case.get("name")
    for child in case:
        assert "reproduce: " in (child.text or "")


def test_a_failure_holds_the_checks_the_timeline_and_the_command() -> None:
    [suite] = parsed(junit.document([result("tool.crash", Outcome.FAIL, crash())]))
    failure = suite[0][0]
    assert failure.get("message") == "fail: It is fail."
    text = failure.text or ""
    assert "fail: effects.exactly-once.deploy\n    expected 1\n    actual   2\n" in text
    assert "FAULT phase 1: SIGTERM at tool.committed" in text
    assert "reproduce: crashcart run scenarios/tool/one.yaml --runtime reference" in text


def test_no_results_are_a_document_too() -> None:
    assert len(parsed(junit.document([]))) == 0


def test_a_result_without_evidence_is_a_case() -> None:
    [[case]] = parsed(junit.document([result("a.b", Outcome.INCONCLUSIVE)]))
    assert [child.tag for child in case] == ["error"]
    assert table.line(result("a.b", Outcome.INCONCLUSIVE)).startswith("inconclusive")
    assert single(Outcome.PASS).outcome is Outcome.PASS
