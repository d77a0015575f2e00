"""What a dialect says about a request it refuses: named problems, never an HTTP reply."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Problem:
    """One reason to refuse a request.

    Attributes:
        rule: The rule's name in this project.
        message: The message the real API gives.
        status: The HTTP status it gives.
        code: The machine-readable code beside the message, in dialects that have one.
        param: The field that the message is about, in dialects that name it.
        wants_reasoning: It is that reasoning does not come back; a client was sent none by a script without any.
    """

    rule: str
    message: str
    status: int = 400
    code: str | None = None
    param: str | None = None
    wants_reasoning: bool = False


class RefusedRequestError(Exception):
    """A request that cannot be decoded; ``problems`` holds at least one."""

    def __init__(self, problems: tuple[Problem, ...]) -> None:
        super().__init__(problems[0].message)
        self.problems = problems
