"""The order in which outcomes speak, enumerated: what one result says, what two say together, and what none says."""

from __future__ import annotations

from itertools import combinations_with_replacement, product

import pytest

from harness.model.outcome import PRECEDENCE, CheckResult, Outcome, Role, merged, worst

KINDS = tuple(product(Role, Outcome))

# From what speaks first to what speaks last; written out once more, by hand.
ORDER: tuple[tuple[tuple[Role, Outcome], ...], ...] = (
    ((Role.PRECONDITION, Outcome.HARNESS_ERROR), (Role.CLAIM, Outcome.HARNESS_ERROR)),
    ((Role.PRECONDITION, Outcome.UNSUPPORTED),),
    ((Role.PRECONDITION, Outcome.INCONCLUSIVE),),
    ((Role.PRECONDITION, Outcome.FAIL), (Role.CLAIM, Outcome.FAIL)),
    ((Role.CLAIM, Outcome.INCONCLUSIVE),),
    ((Role.PRECONDITION, Outcome.WARN), (Role.CLAIM, Outcome.WARN)),
    ((Role.CLAIM, Outcome.UNSUPPORTED),),
    ((Role.PRECONDITION, Outcome.PASS), (Role.CLAIM, Outcome.PASS)),
)
RANK = {kind: rank for rank, kinds in enumerate(ORDER) for kind in kinds}


def result(kind: tuple[Role, Outcome]) -> CheckResult:
    role, outcome = kind
    return CheckResult("c", outcome, None, None, role)


def test_every_kind_of_result_has_a_rank() -> None:
    assert set(RANK) == set(KINDS)


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_one_result_speaks_for_itself(kind: tuple[Role, Outcome]) -> None:
    assert merged([result(kind)]) is kind[1]


@pytest.mark.parametrize(("first", "second"), tuple(combinations_with_replacement(KINDS, 2)), ids=str)
def test_of_two_results_the_one_that_ranks_first_speaks(
    first: tuple[Role, Outcome], second: tuple[Role, Outcome]
) -> None:
    expected = min((first, second), key=lambda kind: RANK[kind])[1]
    assert merged([result(first), result(second)]) is expected
    assert merged([result(second), result(first)]) is expected


def test_of_all_results_the_harness_error_speaks() -> None:
    assert merged(map(result, KINDS)) is Outcome.HARNESS_ERROR


def test_no_result_proves_nothing() -> None:
    assert merged([]) is Outcome.INCONCLUSIVE
    assert worst([]) is Outcome.INCONCLUSIVE


def test_a_fault_that_did_not_fire_outweighs_a_red_claim() -> None:
    kinds = ((Role.PRECONDITION, Outcome.INCONCLUSIVE), (Role.CLAIM, Outcome.FAIL))
    assert merged(map(result, kinds)) is Outcome.INCONCLUSIVE


WORST = {
    (Outcome.PASS, Outcome.FAIL): Outcome.FAIL,
    (Outcome.PASS, Outcome.INCONCLUSIVE): Outcome.INCONCLUSIVE,
    (Outcome.FAIL, Outcome.INCONCLUSIVE): Outcome.FAIL,
    (Outcome.PASS, Outcome.UNSUPPORTED): Outcome.UNSUPPORTED,
    (Outcome.PASS, Outcome.WARN): Outcome.WARN,
    (Outcome.FAIL, Outcome.HARNESS_ERROR): Outcome.HARNESS_ERROR,
}


@pytest.mark.parametrize("pair", WORST, ids=str)
def test_the_worst_of_several_runs(pair: tuple[Outcome, Outcome]) -> None:
    assert worst(pair) is WORST[pair]


def test_every_row_says_why_and_no_row_is_there_twice() -> None:
    assert all(because for _, _, because in PRECEDENCE)
    keys = [(role, outcome) for role, outcome, _ in PRECEDENCE]
    assert len(keys) == len(set(keys))
