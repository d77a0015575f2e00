"""Canonical digests: blind to the order of keys, and to nothing else."""

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from reference_runtime.digests import arguments_digest, idempotency_key
from tests.reference_runtime.property_settings import QUICK

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
ARGUMENTS = st.dictionaries(st.text(max_size=5), VALUES, max_size=4)


def reversed_keys(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: reversed_keys(value[key]) for key in reversed(value)}
    return [reversed_keys(item) for item in value] if isinstance(value, list) else value


@QUICK
@given(ARGUMENTS)
def test_the_order_of_keys_does_not_count(arguments: dict[str, Any]) -> None:
    assert arguments_digest(arguments) == arguments_digest(reversed_keys(arguments))


@QUICK
@given(ARGUMENTS)
def test_a_round_trip_over_the_wire_does_not_count(arguments: dict[str, Any]) -> None:
    assert arguments_digest(arguments) == arguments_digest(json.loads(json.dumps(arguments)))


@QUICK
@given(ARGUMENTS, ARGUMENTS)
def test_other_arguments_have_another_digest(one: dict[str, Any], other: dict[str, Any]) -> None:
    differ = json.dumps(one, sort_keys=True) != json.dumps(other, sort_keys=True)
    assert (arguments_digest(one) != arguments_digest(other)) == differ


def test_order_in_lists_and_types_count() -> None:
    assert len({arguments_digest({"a": value}) for value in ([1, 2], [2, 1], 1, "1", True, None)}) == 6


def test_half_a_character_has_a_digest() -> None:
    assert arguments_digest({"a": "\ud800"}) != arguments_digest({"a": "\ud801"})


@QUICK
@given(st.lists(st.text("ab", max_size=3), min_size=4, max_size=4, unique=True))
def test_the_key_is_stable_and_names_one_call(words: list[str]) -> None:
    session, call, tool, digest = words
    assert idempotency_key(session, call, tool, digest) == idempotency_key(session, call, tool, digest)
    assert idempotency_key(session, call, tool, digest) != idempotency_key(session, tool, call, digest)
