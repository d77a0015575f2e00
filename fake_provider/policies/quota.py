"""``quota``: an account with requests and tokens a minute, refilled continuously, in front of the inner steps.

Both are token buckets that begin full, hold one minute's worth, and refill evenly, as the providers describe their own
limits (platform documentation, "Rate limits": capacity is replenished continuously). It never sleeps and never reads a
clock: time comes with the occasion.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import ClassVar

from fake_provider.document import Node
from fake_provider.limits import Limits, RateLimit
from fake_provider.policies.policy import Decision, Occasion, Wraps
from fake_provider.renaming import Rename
from fake_provider.replies import ERROR_WORDS, ErrorReply

MINUTE_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class Bucket:
    """What is left of an allowance at a moment.

    Attributes:
        a_minute: What it holds when full, and what flows in within a minute.
        level: What is left.
        at_seconds: When that was.
    """

    a_minute: int
    level: float
    at_seconds: float

    def refilled(self, seconds: float) -> Bucket:
        """Return it at a later moment; a clock that went backwards refills nothing."""
        gained = max(0.0, seconds - self.at_seconds) * self.a_minute / MINUTE_SECONDS
        return replace(self, level=min(float(self.a_minute), self.level + gained), at_seconds=seconds)

    def wait_seconds(self, cost: int) -> float:
        """Return how long until so much is there; ``cost`` is at most what it can hold."""
        return max(0.0, cost - self.level) * MINUTE_SECONDS / self.a_minute

    def less(self, cost: int) -> Bucket:
        """Return it with so much taken out."""
        return replace(self, level=self.level - cost)

    @property
    def stated(self) -> RateLimit:
        """What the headers say: whole numbers left, and the seconds until it is full."""
        reset = (self.a_minute - self.level) * MINUTE_SECONDS / self.a_minute
        return RateLimit(self.a_minute, int(self.level), reset)


@dataclass(frozen=True, slots=True)
class Levels:
    """The two buckets of an account; one that the script does not limit is nothing."""

    requests: Bucket | None
    tokens: Bucket | None


@dataclass(frozen=True, slots=True)
class Quota:
    """Answer 429 with ``retry-after`` while an allowance is used up; a refused request takes nothing from it.

    A request larger than all that a minute holds is refused for that, and this policy names no time after which it
    would fit; what a dialect says with every 429 is the dialect's.

    The headers with the limits go with every answer, refused or not.

    Attributes:
        requests_per_minute: How many requests a minute, or nothing for no limit.
        tokens_per_minute: How many input tokens a minute by the dialect's counting rule, or nothing for no limit.
    """

    word: ClassVar[str] = "quota"
    wraps: ClassVar[Wraps] = "always"
    takes_fault: ClassVar[bool] = False
    keys: ClassVar[tuple[str, ...]] = ("requests_per_minute", "tokens_per_minute")
    required: ClassVar[tuple[str, ...]] = ()
    one_of: ClassVar[tuple[str, ...]] = keys

    requests_per_minute: int | None = None
    tokens_per_minute: int | None = None

    @classmethod
    def read(cls, fields: Mapping[str, Node]) -> Quota:
        """Read ``{requests_per_minute, tokens_per_minute}``; one of them at least."""
        return cls(**{key: child.integer(minimum=1) for key, child in fields.items()})

    @property
    def label(self) -> str:
        """The policy."""
        return "quota"

    @property
    def endless(self) -> bool:
        """Never: it ends with its inner steps."""
        return False

    def start(self) -> None:
        """No clock yet; the buckets are full at the first request."""
        return

    def decide(self, occasion: Occasion, state: Levels | None) -> Decision:
        """Refuse with the time to wait or for its size, or take what the request costs and let it pass."""
        levels = self._levels(state, occasion.seconds)
        if self.tokens_per_minute is not None and occasion.request.estimated_tokens > self.tokens_per_minute:
            return Decision(_too_large(self.tokens_per_minute), levels, limits=_limits(levels))
        costs = ((levels.requests, 1), (levels.tokens, occasion.request.estimated_tokens))
        wait = max(bucket.wait_seconds(cost) for bucket, cost in costs if bucket is not None)
        if wait > 0:
            return Decision(_refused(wait), levels, limits=_limits(levels))
        requests, tokens = (bucket.less(cost) if bucket is not None else None for bucket, cost in costs)
        left = Levels(requests, tokens)
        return Decision(None, left, limits=_limits(left))

    def _levels(self, state: Levels | None, seconds: float) -> Levels:
        if state is None:
            return Levels(_full(self.requests_per_minute, seconds), _full(self.tokens_per_minute, seconds))
        return Levels(
            state.requests.refilled(seconds) if state.requests is not None else None,
            state.tokens.refilled(seconds) if state.tokens is not None else None,
        )

    def sample(self) -> None:
        """Nothing: its own answer is an error."""
        return

    def renamed(self, rename: Rename) -> Quota:
        """Return itself: it names no tool."""
        return self


def _full(a_minute: int | None, seconds: float) -> Bucket | None:
    return Bucket(a_minute, float(a_minute), seconds) if a_minute is not None else None


def _refused(wait_seconds: float) -> ErrorReply:
    # Whole seconds, rounded up: a client that waits as long as it is told must then be served.
    return replace(ERROR_WORDS["rate_limited"], headers=(("retry-after", str(math.ceil(wait_seconds))),))


def _too_large(limit: int) -> ErrorReply:
    message = (
        f"This request would exceed your account's rate limit of {limit} input tokens per minute: it has {{tokens}}. "
        "Reduce the prompt."
    )
    return ErrorReply(429, "rate_limit_error", message)


def _limits(levels: Levels) -> Limits:
    stated = Limits()
    if levels.requests is not None:
        stated = replace(stated, requests=levels.requests.stated)
    if levels.tokens is not None:
        stated = replace(stated, tokens=levels.tokens.stated)
    return stated
