"""``windowed``: refuse what is over a context window, and let the inner steps answer the rest.

It counts by the dialect's documented rule and never by a real tokenizer, which no provider publishes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from fake_provider.document import Node
from fake_provider.policies.policy import Decision, Occasion, Wraps
from fake_provider.renaming import Rename
from fake_provider.replies import ERROR_WORDS


@dataclass(frozen=True, slots=True)
class Windowed:
    """Answer "prompt too long", in the dialect's own wording, whenever the request is over so many tokens.

    Such a request uses up no inner step. The whole script's ``window_tokens`` is judged before any lane; this window
    belongs to its steps alone, so that it can be smaller here and gone afterwards.

    Attributes:
        tokens: The window, in tokens by the dialect's counting rule.
    """

    word: ClassVar[str] = "windowed"
    wraps: ClassVar[Wraps] = "always"
    takes_fault: ClassVar[bool] = False
    keys: ClassVar[tuple[str, ...]] = ("tokens",)
    required: ClassVar[tuple[str, ...]] = ("tokens",)
    one_of: ClassVar[tuple[str, ...]] = ()

    tokens: int

    @classmethod
    def read(cls, fields: Mapping[str, Node]) -> Windowed:
        """Read ``{tokens}``."""
        return cls(fields["tokens"].integer(minimum=1))

    @property
    def label(self) -> str:
        """The policy."""
        return "windowed"

    @property
    def endless(self) -> bool:
        """Never: it ends with its inner steps."""
        return False

    def start(self) -> None:
        """No state."""
        return

    def decide(self, occasion: Occasion, state: None) -> Decision:
        """Refuse, or let pass."""
        if occasion.request.estimated_tokens <= self.tokens:
            return Decision(None, None)
        return Decision(ERROR_WORDS["prompt_too_long"], None, window_tokens=self.tokens)

    def sample(self) -> None:
        """Nothing: its own answer is an error."""
        return

    def renamed(self, rename: Rename) -> Windowed:
        """Return itself: it names no tool."""
        return self
