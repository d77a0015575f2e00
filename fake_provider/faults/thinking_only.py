"""``thinking_only``: the reply is reasoning, and the turn ends without a word."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

from fake_provider.document import Node
from fake_provider.replies import RedactedThinking, Reply, Thinking

DEFAULT = "The user wants an answer. I have thought about it."


@dataclass(frozen=True, slots=True)
class ThinkingOnlyFault:
    """Leave the reasoning of the reply and nothing else, ``text`` where it has none, and end the turn.

    A client may wrongly conclude that the turn was answered, and show a person nothing (SPEC D5); or show the reasoning
    as the answer.
    """

    kind: ClassVar[str] = "thinking_only"
    text: str = DEFAULT

    @classmethod
    def read(cls, node: Node) -> ThinkingOnlyFault:
        """Read ``{text}``."""
        fields = node.fields("thinking_only", ("text",))
        return cls(fields["text"].text() if "text" in fields else DEFAULT)

    def unsayable(self, reply: Reply) -> str | None:
        """Return that the reply is reasoning alone anyway, or nothing if it says more."""
        if reply.blocks and all(_is_reasoning(block) for block in reply.blocks):
            return "the reply is reasoning and nothing else as it is"
        return None

    def reshape(self, reply: Reply) -> Reply:
        """Leave the reasoning."""
        thoughts = tuple(block for block in reply.blocks if _is_reasoning(block))
        return replace(reply, blocks=thoughts or (Thinking(self.text),), stop_reason="end_turn")


def _is_reasoning(block: object) -> bool:
    return isinstance(block, Thinking | RedactedThinking)
