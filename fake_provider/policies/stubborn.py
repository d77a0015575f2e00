"""``stubborn``: ask for the same tool call again and again under one and the same id.

Real models do not do this, and gateways that replay a recorded reply do. It never changes the id or the arguments.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import ClassVar

from fake_provider.document import Node
from fake_provider.policies.insist import AT_MOST_DEFAULT, succeeded
from fake_provider.policies.policy import Decision, Occasion, Wraps
from fake_provider.renaming import Rename, renamed_call
from fake_provider.replies import Reply, Text, ToolUse
from fake_provider.reply_words import read_call


@dataclass(frozen=True, slots=True)
class Stubborn:
    """Ask for one tool call under the id of the first ask.

    Attributes:
        call: The tool, its arguments, and its id where the script gives one.
        at_most: How many times it asks.
        until_success: Whether a success that the request shows ends it early; else it asks all the same.
        then: What it says afterwards.
    """

    word: ClassVar[str] = "stubborn"
    wraps: ClassVar[Wraps] = "never"
    takes_fault: ClassVar[bool] = True
    keys: ClassVar[tuple[str, ...]] = ("call", "with", "id", "until", "at_most", "then")
    required: ClassVar[tuple[str, ...]] = ("call",)
    one_of: ClassVar[tuple[str, ...]] = ()

    call: ToolUse
    at_most: int = AT_MOST_DEFAULT
    until_success: bool = False
    then: str = "Done."

    @classmethod
    def read(cls, fields: Mapping[str, Node]) -> Stubborn:
        """Read ``{call, with, id, until: never, at_most: 4, then: Done.}``; ``until`` is ``never`` or ``success``."""
        until = fields["until"].choice("end of stubborn", ["never", "success"]) if "until" in fields else "never"
        return cls(
            call=read_call(fields["call"], {key: fields[key] for key in ("with", "id") if key in fields}),
            at_most=fields["at_most"].integer(minimum=1) if "at_most" in fields else AT_MOST_DEFAULT,
            until_success=until == "success",
            then=fields["then"].text() if "then" in fields else "Done.",
        )

    @property
    def label(self) -> str:
        """The policy and its tool."""
        return f"stubborn {self.call.name}"

    @property
    def endless(self) -> bool:
        """Never: its asks are counted."""
        return False

    def start(self) -> tuple[str, ...]:
        """Not asked so far."""
        return ()

    def decide(self, occasion: Occasion, state: tuple[str, ...]) -> Decision:
        """Ask with the first id, or say ``then``; the state is the id, once for each ask."""
        call_id = state[0] if state else self.call.id or occasion.call_id
        ends = self.until_success and succeeded(self.call, state, occasion.request)
        if ends or len(state) >= self.at_most:
            return Decision(Reply((Text(self.then),), "end_turn"), state, done=True)
        asking = replace(self.call, id=call_id)
        return Decision(Reply((asking,), "tool_use"), (*state, call_id), first_ask=not state)

    def sample(self) -> Reply:
        """The ask."""
        return Reply((self.call,), "tool_use")

    def renamed(self, rename: Rename) -> Stubborn:
        """Return it with its tool renamed."""
        return replace(self, call=renamed_call(self.call, rename))
