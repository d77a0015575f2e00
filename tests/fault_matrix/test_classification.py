"""The rules that tell a misreading: one example of each, and its opposite."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.fault_matrix.cases import CALL, FAULTY, GOOD, Case, good_of
from tests.fault_matrix.classification import MISREADINGS, judge
from tests.fault_matrix.observation import CELLS, Cell, Observed, Said

CELL = Cell("anthropic", "events")
SAID = Observed(text="All is green.", stop="end_turn")
CALLED = Observed(calls=(("deploy", '{"release": 7}'),), stop="tool_use")
CASE = Case("case", "Anything.", "close")
CALLING = replace(CASE, step=CALL)
CUT = replace(CALLING, said_by_model=True, arguments='{"rel')


def given(arguments: str) -> Observed:
    return replace(CALLED, calls=(("deploy", arguments),))


EXAMPLES: list[tuple[Case, Observed, Observed, str, tuple[str, ...]]] = [
    (CASE, SAID, SAID, "returned the whole text", ()),
    (CALLING, CALLED, CALLED, "returned the whole tool call", ()),
    (CASE, SAID, Observed("All", stop=None), "returned truncated text, no stop reason", ("truncated",)),
    (
        CASE,
        SAID,
        replace(SAID, text="All is All is green."),
        "returned altered text: “All is All is green.”",
        ("altered",),
    ),
    (CASE, SAID, Observed(), "returned no text, no stop reason", ("nothing",)),
    (CALLING, CALLED, Observed(), "returned no tool call, no stop reason", ("nothing",)),
    (CALLING, CALLED, given('{"rel'), 'returned a tool call with arguments `{"rel`', ("call",)),
    (CALLING, CALLED, given(""), "returned a tool call with arguments `(empty)`", ("call",)),
    (CASE, SAID, replace(SAID, stop="max_tokens"), "returned the whole text, stop reason `max_tokens`", ()),
    (CASE, SAID, Observed("<html>", other_type="str"), "returned a `str` with the body in it", ("foreign",)),
    (
        CASE,
        SAID,
        replace(SAID, text="Hm.", key_went_elsewhere=True),
        "returned altered text: “Hm.”; sent the key to the stranger",
        ("stranger",),
    ),
    (replace(CASE, longer=True), SAID, replace(SAID, text="All " * 9), "returned the long text", ()),
    (replace(CASE, counts=True), SAID, SAID, "returned the whole text, no counts", ()),
    (
        replace(CASE, counts=True),
        SAID,
        replace(SAID, usage=(1, None)),
        "returned the whole text, counts 1 and None",
        (),
    ),
    (CUT, CALLED, given('{"rel'), 'returned a tool call with arguments `{"rel`', ()),
    (CUT, CALLED, given("{}"), "returned a tool call with arguments `{}`", ("call",)),
    (replace(CASE, said_by_model=True), SAID, Observed(stop="end_turn"), "returned no text", ()),
    (CASE, SAID, Observed(error="anthropic.APIError"), "raised `anthropic.APIError`", ()),
    (CASE, SAID, Observed("All", error="anthropic.APIError"), "raised `anthropic.APIError` after truncated text", ()),
    (CASE, SAID, replace(SAID, error="anthropic.APIError"), "raised `anthropic.APIError` after the whole text", ()),
    (
        CALLING,
        CALLED,
        replace(CALLED, error="anthropic.APIError"),
        "raised `anthropic.APIError` after the whole tool call",
        (),
    ),
    (
        CASE,
        SAID,
        Observed(error="anthropic.APITimeoutError"),
        "hung until its timeout (`anthropic.APITimeoutError`)",
        (),
    ),
    (CASE, SAID, Observed(error="httpx2.ReadTimeout"), "hung until its timeout (`httpx2.ReadTimeout`)", ("untyped",)),
    (CASE, SAID, Observed(error="json.JSONDecodeError"), "raised `json.JSONDecodeError`", ("untyped",)),
    (
        replace(CASE, harmless=True),
        SAID,
        Observed(error="anthropic.APIError"),
        "raised `anthropic.APIError`",
        ("gave_up",),
    ),
    (
        CASE,
        SAID,
        Observed(error="anthropic.APIError", key_went_elsewhere=True),
        "raised `anthropic.APIError`",
        ("stranger",),
    ),
]


@pytest.mark.parametrize(("case", "good", "observed", "words", "misreadings"), EXAMPLES)
def test_an_observation_is_told_by_rules(
    case: Case, good: Observed, observed: Observed, words: str, misreadings: tuple[str, ...]
) -> None:
    verdict = judge(case, CELL, good, observed)
    assert (verdict.words, verdict.misreadings, verdict.error) == (words, misreadings, observed.error)


def test_every_misreading_is_one_of_the_examples() -> None:
    assert {word for example in EXAMPLES for word in example[4]} == set(MISREADINGS)


def test_an_error_is_named_with_its_outermost_module() -> None:
    assert Observed.of(Said("x"), UnicodeDecodeError("utf-8", b"", 0, 1, "")).error == "builtins.UnicodeDecodeError"
    assert Observed.of(Said("x"), None) == Observed("x")


def test_every_case_and_every_cell_has_a_name_of_its_own() -> None:
    assert len({case.id for case in (*GOOD, *FAULTY)}) == len(GOOD) + len(FAULTY)
    assert len({cell.id for cell in CELLS}) == len(CELLS)
    assert {good_of(case) for case in FAULTY} == set(GOOD)
