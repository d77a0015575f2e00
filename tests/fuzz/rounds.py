"""One round of a part: so many cases from one seed. The same seed gives the same cases."""

from __future__ import annotations

import functools
from typing import Any

from hypothesis import HealthCheck, Phase, given, seed, settings

from tests.fuzz.parts import Part


def run_round(part: Part, round_seed: int, cases: int, *, shrink: bool = True) -> int:
    """Run the cases and return how many there were; what fails is made as small as it gets where ``shrink`` says so.

    Raises:
        Exception: What the part raised, with the smallest case that was found in its notes.
    """
    count = 0

    @functools.wraps(part.check)
    def counted(**drawn: Any) -> None:
        nonlocal count
        count += 1
        part.check(**drawn)

    run = seed(round_seed)(given(**part.strategies)(counted))
    settings(
        max_examples=cases,
        database=None,
        deadline=None,
        phases=(Phase.generate, Phase.shrink) if shrink else (Phase.generate,),
        print_blob=True,
        suppress_health_check=list(HealthCheck),
    )(run)()
    return count
