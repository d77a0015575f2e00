"""The delay before an attempt: bounds over any header and any random source, and the three ways to ask for one."""

import random
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reference_runtime.recovery.backoff import (
    JITTER,
    LONGEST_ASKED_DELAY_SECONDS,
    LONGEST_DELAY_SECONDS,
    asked_delay_seconds,
    delay_seconds,
)
from tests.reference_runtime.property_settings import QUICK

NOW = datetime(2026, 1, 1, tzinfo=UTC)


@QUICK
@given(retry=st.integers(1, 10_000), seed=st.integers())
def test_without_a_wish_the_delay_doubles_up_to_its_cap(retry: int, seed: int) -> None:
    longest = min(0.5 * 2 ** min(retry - 1, 16), LONGEST_DELAY_SECONDS)
    delay = delay_seconds(retry, {}, NOW, random.Random(seed))
    assert longest * (1 - JITTER) <= delay <= longest


@QUICK
@given(
    headers=st.dictionaries(st.sampled_from(["retry-after", "retry-after-ms", "x"]), st.text(max_size=40)),
    seed=st.integers(),
)
def test_no_header_makes_the_delay_negative_or_endless(headers: dict[str, str], seed: int) -> None:
    assert 0 <= delay_seconds(3, headers, NOW, random.Random(seed)) <= LONGEST_ASKED_DELAY_SECONDS


@QUICK
@given(seed=st.integers())
def test_the_same_source_gives_the_same_delay(seed: int) -> None:
    first, second = (delay_seconds(2, {}, NOW, random.Random(seed)) for _ in range(2))
    assert first == second


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry-after": "7"}, 7.0),
        ({"retry-after": "0"}, 0.0),
        ({"retry-after-ms": "250"}, 0.25),
        ({"retry-after-ms": "250", "retry-after": "9"}, 0.25),
        ({"retry-after": format_datetime(NOW + timedelta(seconds=12), usegmt=True)}, 12.0),
        ({"retry-after": format_datetime(NOW - timedelta(seconds=12), usegmt=True)}, 0.0),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "-3"}, None),
        ({"retry-after": "nan"}, None),
        ({"retry-after-ms": "inf"}, None),
        ({}, None),
    ],
)
def test_a_wish_is_read_in_each_of_its_forms(headers: dict[str, str], seconds: float | None) -> None:
    assert asked_delay_seconds(headers, NOW) == seconds


def test_a_wish_is_kept_up_to_its_cap() -> None:
    assert delay_seconds(1, {"retry-after": "7"}, NOW, random.Random(0)) == 7
    assert delay_seconds(1, {"retry-after": "86400"}, NOW, random.Random(0)) == LONGEST_ASKED_DELAY_SECONDS
