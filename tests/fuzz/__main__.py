"""Runs every part, or those named, and prints how many cases each ran and how long that took: ``make fuzz``.

A part runs in rounds of some thousand cases, each with a seed of its own, on as many processes as there are cores. A
failure ends its round, and the line that runs the same round again is printed.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
import traceback
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass

from tests.fuzz.parts import PARTS
from tests.fuzz.rounds import run_round

ROUND_CASES = 1_000


@dataclass(frozen=True)
class Ran:
    """One round: how many cases were asked for and run, how long, and what was found, where something was."""

    part: str
    seed: int
    asked: int
    cases: int
    seconds: float
    failure: str | None


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the rounds and return 1 where something was found."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz")
    parser.add_argument("parts", nargs="*", choices=[[], *PARTS], metavar="PART", help=f"any of {', '.join(PARTS)}")
    parser.add_argument("--cases", type=int, help="how many cases of each part, instead of its own number")
    parser.add_argument("--seed", type=int, default=0, help="the seed of each part's first round")
    options = parser.parse_args(arguments)
    began = time.monotonic()
    rounds = {name: _rounds(options.cases or PARTS[name].cases) for name in options.parts or PARTS}
    with ProcessPoolExecutor(os.cpu_count()) as pool:
        pending = [
            pool.submit(_ran, name, options.seed + number, cases)
            for name, sizes in rounds.items()
            for number, cases in enumerate(sizes)
        ]
        done: list[Ran] = []
        for future in as_completed(pending):
            done.append(future.result())
            _show(done[-1], [ran for ran in done if ran.part == done[-1].part], len(rounds[done[-1].part]))
    print(f"{sum(ran.cases for ran in done):>8} cases in {time.monotonic() - began:.0f} s")
    return 1 if any(ran.failure is not None for ran in done) else 0


def _rounds(cases: int) -> list[int]:
    whole, rest = divmod(cases, ROUND_CASES)
    return [ROUND_CASES] * whole + ([rest] if rest else [])


def _ran(name: str, seed: int, cases: int) -> Ran:
    began = time.monotonic()
    counted, failure = 0, None
    try:
        counted = run_round(PARTS[name], seed, cases)
    except Exception:  # noqa: BLE001 - whatever a part raises is what was looked for
        failure = traceback.format_exc()
    return Ran(name, seed, cases, counted, time.monotonic() - began, failure)


def _show(ran: Ran, of_its_part: Sequence[Ran], rounds: int) -> None:
    """Print what a round found, and after the last round of a part what the part ran."""
    if ran.failure is not None:
        print(f"\n{ran.failure}")
        print(f"The same again: python -m tests.fuzz {ran.part} --seed {ran.seed} --cases {ran.asked}\n", flush=True)
    if len(of_its_part) == rounds:
        cases, seconds = sum(ran.cases for ran in of_its_part), sum(ran.seconds for ran in of_its_part)
        print(f"{cases:>8} {ran.part:<11} {seconds:>5.0f} s  {PARTS[ran.part].claim}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
