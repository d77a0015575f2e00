"""Evidence is written once, read back exactly, refused when newer, and described by a schema that it keeps."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import msgspec
import pytest

from harness.checks import ending, expectation
from harness.checks.check import results
from harness.model.evidence import (
    VARYING,
    Evidence,
    FileChange,
    behaviour_text,
    decode,
    encode,
    schema,
    timed_history,
    without_times,
)
from harness.model.history import Ending, History
from harness.model.outcome import CheckResult, Outcome
from harness.model.result import Deviation, ProbeResult, summary
from reports.schema import document
from tests.harness.histories import (
    BY_ITSELF,
    CRASHED,
    called_and_done,
    evidence,
    file,
    fired,
    hook,
    made,
    printed,
    reply,
    request,
    user,
)

PUBLISHED = Path(__file__).parents[2] / "reports" / "evidence.schema.json"


def history() -> History:
    return made(
        request(1, user("Größe?")),
        *reply(1),
        *called_and_done("deploy", 1),
        fired("phase 1: SIGKILL at tool.committed"),
        hook("stop", "Once more."),
        printed("\u2028 \x1b[31m\n"),
        ends=(CRASHED, BY_ITSELF),
        endings=(Ending(), Ending("completed", 1, "success", False, "Done.", "s", {"http_attempts": 1})),
        files_before={"a": file("a", "one")},
        files_after={"a": file("a", None)},
        left_running=("sleep 9",),
        faults_declared=("phase 1: SIGKILL at tool.committed",),
        tool_names={"deploy": "mcp__effects__deploy"},
    )


def whole() -> Evidence:
    judged = results((*expectation.UNIVERSAL, ending.exit_code(3)), history())
    return evidence(
        history(), judged, before_after=[FileChange("a", {"mode": "0o644", "size_bytes": 3, "sha256": "x"}, None)]
    )


def test_evidence_is_read_back_exactly() -> None:
    data = encode(whole())
    assert decode(data) == whole()
    assert encode(decode(data)) == data
    assert data.endswith(b"}\n")


def test_times_are_apart_and_come_back() -> None:
    timeless, times = without_times(history())
    assert {event.at_seconds for event in timeless.events} == {0.0}
    assert times == [float(second) for second in range(len(times))]
    assert timed_history(whole()) == history()


def test_stored_evidence_is_judged_again_with_the_same_result() -> None:
    again = results((*expectation.UNIVERSAL, ending.exit_code(3)), timed_history(decode(encode(whole()))))
    assert [check.outcome for check in again] == [check.outcome for check in whole().checks]


REFUSED: dict[str, tuple[bytes, str]] = {
    "newer": (b'{"format": 2}', "evidence of format 2; this program reads up to format 1"),
    "no format": (b"{}", "evidence of format None; this program reads up to format 1"),
    "format as text": (b'{"format": "1"}', "evidence of format '1'; this program reads up to format 1"),
    "format as a flag": (b'{"format": true}', "evidence of format True; this program reads up to format 1"),
    "format zero": (b'{"format": 0}', "evidence of format 0; this program reads up to format 1"),
    "no JSON": (b"{", "not evidence: "),
    "no object": (b"[]", "not evidence: "),
    "empty": (b"", "not evidence: "),
    "not UTF-8": (b'{"a": "\xff"}', "not evidence: "),
    "no evidence": (b'{"format": 1}', "not evidence: Object missing required field `run`"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_no_evidence_is_refused(name: str) -> None:
    data, words = REFUSED[name]
    with pytest.raises(ValueError, match=r".") as caught:
        decode(data)
    assert str(caught.value).startswith(words)


# --- the behaviour text


@pytest.mark.parametrize("field", Evidence.__struct_fields__)
def test_only_the_varying_fields_are_left_out_of_the_behaviour(field: str) -> None:
    value: Any = getattr(whole(), field)
    others: dict[type, Any] = {
        int: lambda: value + 1,
        str: lambda: value + "x",
        Outcome: lambda: Outcome.WARN,
        list: lambda: [*value, *value, *([1.0] if not value else [])],
        dict: lambda: {**value, "more": 1},
    }
    if field == "history":
        other: Any = made()
    elif isinstance(value, msgspec.Struct):
        first = value.__struct_fields__[0]
        other = msgspec.structs.replace(value, **{first: "other"})
    else:
        other = others[type(value)]()
    changed = msgspec.structs.replace(whole(), **{field: other})
    assert (behaviour_text(changed) == behaviour_text(whole())) is (field in VARYING)


def test_the_behaviour_text_is_json_with_a_fixed_order() -> None:
    text = behaviour_text(whole())
    assert list(json.loads(text)) == sorted(set(Evidence.__struct_fields__) - set(VARYING))


# --- the schema


def test_the_published_schema_is_up_to_date() -> None:
    assert PUBLISHED.read_text(encoding="utf-8") == document(), "run: make docs"


def validator() -> jsonschema.Draft202012Validator:
    published = json.loads(PUBLISHED.read_text(encoding="utf-8"))
    jsonschema.Draft202012Validator.check_schema(published)
    return jsonschema.Draft202012Validator(published)


def test_evidence_keeps_the_schema() -> None:
    validator().validate(json.loads(encode(whole())))
    validator().validate(json.loads(encode(evidence(made(ends=())))))


BROKEN: dict[str, Any] = {
    "run": 7,
    "outcome": "green",
    "history": {"events": "none"},
    "commands": [[1]],
    "timings_seconds": ["now"],
    "checks": [{"check": "a"}],
}


@pytest.mark.parametrize("field", BROKEN)
def test_what_is_no_evidence_breaks_the_schema(field: str) -> None:
    broken = {**json.loads(encode(whole())), field: BROKEN[field]}
    assert not validator().is_valid(broken)
    with pytest.raises(ValueError, match="not evidence: "):
        decode(json.dumps(broken).encode())


@pytest.mark.parametrize("field", Evidence.__struct_fields__)
def test_every_field_is_required_and_described(field: str) -> None:
    missing = json.loads(encode(whole()))
    del missing[field]
    assert not validator().is_valid(missing)
    described = schema()["$defs"]["Evidence"]["properties"]
    assert field in described


# --- the cell of the table


def cell(outcome: Outcome, *unmet: str, deviation: Deviation | None = None) -> ProbeResult:
    checks = (CheckResult("fine", Outcome.PASS, 1, 1), *(CheckResult(name, outcome, 1, 2) for name in unmet))
    judged = evidence(made(), checks)
    return ProbeResult("tool.one", "It works.", ("N4",), "fake@1", outcome, (judged,), 0.5, deviation)


KNOWN = Deviation("tool.one", Outcome.FAIL, frozenset({"a", "b"}), "It forgets.")

CELLS: dict[str, tuple[ProbeResult, str | None]] = {
    "green and nothing known": (cell(Outcome.PASS), None),
    "red as known": (cell(Outcome.FAIL, "a", "b", deviation=KNOWN), None),
    "red and nothing known": (cell(Outcome.FAIL, "a"), "new: fail, not in the expectation file"),
    "unsupported and nothing known": (cell(Outcome.UNSUPPORTED, "a"), "new: unsupported, not in the expectation file"),
    "green and known red": (
        cell(Outcome.PASS, deviation=KNOWN),
        "stale: it passes now; remove it from the expectation file",
    ),
    "red by another check": (
        cell(Outcome.FAIL, "a", "c", deviation=KNOWN),
        "changed: fail by a, c; the expectation file says fail by a, b",
    ),
    "another outcome": (
        cell(Outcome.INCONCLUSIVE, "a", "b", deviation=KNOWN),
        "changed: inconclusive by a, b; the expectation file says fail by a, b",
    ),
}


@pytest.mark.parametrize("name", CELLS)
def test_a_cell_against_its_expectation(name: str) -> None:
    result, words = CELLS[name]
    assert result.as_expected == words


SUMMARIES: dict[str, dict[str, Any]] = {
    "1 request, exit 0": {"requests": 1, "effects": {}, "exit": 0},
    "0 requests, exit SIGSEGV": {"requests": 0, "effects": {}, "exit": "SIGSEGV"},
    "3 requests, deploy ×2, refund ×1": {"requests": 3, "effects": {"refund": 1, "deploy": 2}, "exit": None},
}


@pytest.mark.parametrize("words", SUMMARIES)
def test_a_run_in_a_few_words(words: str) -> None:
    assert summary(evidence(made(), observed=SUMMARIES[words])) == words
