"""The headers that the Messages API sends with its replies: who answers, what is left of the limits, when to retry.

Pure: no clock and no counting. Names follow the platform documentation ("Rate limits", "Errors"); ``x-should-retry``
and ``retry-after`` are known from public logs of 429 replies, and the former goes with other statuses by analogy. A
time of day is that of a clock that stands still at ``CLOCK``, so that the same script gives the same bytes.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

from fake_provider.limits import Limits, RateLimit
from fake_provider.wire import Headers

CLOCK = datetime(2025, 1, 1, tzinfo=UTC)
ORGANIZATION_ID = "00000000-0000-4000-8000-000000000000"
_RETRIED_BELOW_500 = (408, 409, 429)


def identity_headers(request_id: str) -> Headers:
    """Return the headers of every reply."""
    return (("request-id", request_id), ("anthropic-organization-id", ORGANIZATION_ID))


def limit_headers(limits: Limits) -> Headers:
    """Return what the limits say; a reset is in RFC 3339, in whole seconds."""
    return (*_window("requests", limits.requests), *_window("tokens", limits.tokens))


def error_headers(status: int, limits: Limits) -> Headers:
    """Return whether to retry an error, and of a 429 also when, in whole seconds, and why."""
    retried = status >= 500 or status in _RETRIED_BELOW_500
    advice = ("x-should-retry", "true" if retried else "false")
    if status != 429:
        return (advice,)
    seconds = max(1, *(math.ceil(window.reset_seconds) for window in (limits.requests, limits.tokens)))
    return (*limit_headers(limits), ("retry-after", str(seconds)), advice)


def _window(name: str, window: RateLimit) -> Iterator[tuple[str, str]]:
    reset = CLOCK + timedelta(seconds=math.ceil(window.reset_seconds))
    yield f"anthropic-ratelimit-{name}-limit", str(window.limit)
    yield f"anthropic-ratelimit-{name}-remaining", str(window.remaining)
    yield f"anthropic-ratelimit-{name}-reset", reset.strftime("%Y-%m-%dT%H:%M:%SZ")
