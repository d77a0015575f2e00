"""Rate limits as a reply states them: neutral numbers, which each dialect writes as headers. It counts nothing."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class RateLimit:
    """What one window allows, what is left of it, and when it is full again."""

    limit: int
    remaining: int
    reset_seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits of an account: requests a minute and tokens a minute."""

    requests: RateLimit = RateLimit(4000, 3999, 0.015)
    tokens: RateLimit = RateLimit(400_000, 399_000, 0.15)
