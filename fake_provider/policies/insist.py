"""``insist``: ask for one tool call until the request shows that it succeeded.

It never takes an error, silence, or a result that says its outcome is unknown for a success, and never asks more often
than it is allowed to.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import ClassVar

from fake_provider.document import Node
from fake_provider.policies.policy import UNKNOWN_OUTCOME, Decision, Occasion, Wraps
from fake_provider.renaming import Rename, renamed_call
from fake_provider.replies import Reply, Text, ToolUse
from fake_provider.reply_words import read_call
from fake_provider.requests import ModelRequest, canonical_arguments

AT_MOST_DEFAULT = 4
_WITHOUT_ERROR_MARK = ("openai_chat", "openai_responses")


@dataclass(frozen=True, slots=True)
class Insist:
    """Ask for one tool call, with a fresh id each time, until the request shows that it succeeded.

    Attributes:
        call: The tool and its arguments.
        at_most: How many times it asks each time the step is entered, across restarts of the client too; a step that
            is played twice may ask twice as often.
        then: What it says once it saw a success.
    """

    word: ClassVar[str] = "insist"
    wraps: ClassVar[Wraps] = "never"
    takes_fault: ClassVar[bool] = True
    keys: ClassVar[tuple[str, ...]] = ("call", "with", "until", "at_most", "then")
    required: ClassVar[tuple[str, ...]] = ("call",)
    one_of: ClassVar[tuple[str, ...]] = ()

    call: ToolUse
    at_most: int = AT_MOST_DEFAULT
    then: str = "Done."

    @classmethod
    def read(cls, fields: Mapping[str, Node]) -> Insist:
        """Read ``{call, with, until: success, at_most: 4, then: Done.}``."""
        if "until" in fields:
            fields["until"].choice("end of insist", ["success"])
        return cls(
            call=read_call(fields["call"], {"with": fields["with"]} if "with" in fields else {}),
            at_most=fields["at_most"].integer(minimum=1) if "at_most" in fields else AT_MOST_DEFAULT,
            then=fields["then"].text() if "then" in fields else "Done.",
        )

    @property
    def label(self) -> str:
        """The policy and its tool."""
        return f"insist {self.call.name}"

    @property
    def endless(self) -> bool:
        """Never: its asks are counted."""
        return False

    def start(self) -> tuple[str, ...]:
        """No id asked with so far."""
        return ()

    def decide(self, occasion: Occasion, state: tuple[str, ...]) -> Decision:
        """Ask, or say what came of it; the state is the ids asked with."""
        if succeeded(self.call, state, occasion.request):
            return Decision(Reply((Text(self.then),), "end_turn"), state, done=True)
        if len(state) >= self.at_most:
            return Decision(self._exhausted(), state, done=True)
        asking = replace(self.call, id=occasion.call_id)
        return Decision(Reply((asking,), "tool_use"), (*state, occasion.call_id), first_ask=not state)

    def _exhausted(self) -> Reply:
        """The reply after the last ask went without a success; never the same text as ``then``."""
        return Reply((Text(f"I could not get {self.call.name} done; I asked {self.at_most} times."),), "end_turn")

    def sample(self) -> Reply:
        """The first ask."""
        return Reply((self.call,), "tool_use")

    def renamed(self, rename: Rename) -> Insist:
        """Return it with its tool renamed."""
        return replace(self, call=renamed_call(self.call, rename))


def succeeded(call: ToolUse, asked: tuple[str, ...], request: ModelRequest) -> bool:
    """Whether the request shows a success for one of the ids, or for an equal call.

    A success is a result that is no error and does not say that its outcome is unknown. The protocols of OpenAI cannot
    mark a result as an error, so that one which begins with "Error" is one there.
    """
    wanted = (call.name, canonical_arguments(call.input))
    for result in request.tool_results:
        if result.is_error or UNKNOWN_OUTCOME.search(result.text):
            continue
        if request.dialect in _WITHOUT_ERROR_MARK and result.text.lstrip().startswith("Error"):
            continue
        held = request.tool_calls.get(result.tool_use_id)
        if result.tool_use_id in asked or (held and (held.name, canonical_arguments(held.input)) == wanted):
            return True
    return False
