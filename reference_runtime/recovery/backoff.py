"""How long to wait before the next attempt (A3): a pure computation over headers, a number and a random source.

Never waits and never reads a clock: the present time is an argument.
"""

import random
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

FIRST_DELAY_SECONDS = 0.5
LONGEST_DELAY_SECONDS = 32.0
LONGEST_ASKED_DELAY_SECONDS = 120.0
JITTER = 0.25


def delay_seconds(retry: int, headers: Mapping[str, str], now: datetime, source: random.Random) -> float:
    """Seconds to wait before retry number `retry` (the first retry is 1).

    A provider's wish (`retry-after-ms`, or `retry-after` as seconds or as an HTTP date, RFC 9110 section 10.2.3) is
    kept as it is, up to 120 s. Otherwise the delay doubles from 0.5 s up to 32 s and up to a quarter of it is taken
    away at random, so that many clients do not come back at the same moment.

    Args:
        retry: Number of the retry, from 1.
        headers: Response headers with lower-case names; empty when there was no response.
        now: Present time, aware.
        source: The run's own random source.
    """
    asked = asked_delay_seconds(headers, now)
    if asked is not None:
        return min(asked, LONGEST_ASKED_DELAY_SECONDS)
    doublings = min(retry - 1, 16)
    grown: float = min(FIRST_DELAY_SECONDS * 2**doublings, LONGEST_DELAY_SECONDS)
    return grown * (1 - JITTER * source.uniform(0, 1))


def asked_delay_seconds(headers: Mapping[str, str], now: datetime) -> float | None:
    """The delay that the provider asks for, in seconds, or None when it names none that can be read."""
    milliseconds = _number(headers.get("retry-after-ms"))
    if milliseconds is not None:
        return milliseconds / 1000
    value = headers.get("retry-after")
    if value is None:
        return None
    seconds = _number(value)
    return seconds if seconds is not None else _until(value, now)


def _number(value: str | None) -> float | None:
    try:
        number = float(value) if value is not None else None
    except ValueError:
        return None
    # Negative, infinite and not-a-number values are no wish that could be kept.
    return number if number is not None and 0 <= number < float("inf") else None


def _until(value: str, now: datetime) -> float | None:
    try:
        moment = parsedate_to_datetime(value)
    except (TypeError, ValueError, IndexError, OverflowError):
        return None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return max(0.0, (moment - now).total_seconds())
