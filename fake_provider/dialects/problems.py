"""What a dialect says about a request it refuses: named problems, never an HTTP reply."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Problem:
    """One reason to refuse a request: the rule's name, and the message the real API gives."""

    rule: str
    message: str


class RefusedRequestError(Exception):
    """A request that cannot be decoded; ``problems`` holds at least one."""

    def __init__(self, problems: tuple[Problem, ...]) -> None:
        super().__init__(problems[0].message)
        self.problems = problems
