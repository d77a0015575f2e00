"""``wrong_stop_reason``: the stop reason contradicts what the reply holds."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

from fake_provider.document import Node
from fake_provider.replies import STOP_REASONS, Reply, ToolUse


@dataclass(frozen=True, slots=True)
class WrongStopReasonFault:
    """Give another stop reason: ``reason``, or ``end_turn`` for a reply with tool calls and ``tool_use`` for others.

    Where a dialect has one word for both, as Gemini and the Responses API have for those two, it makes no difference
    there; ``max_tokens`` does in every dialect.

    A client may wrongly conclude from the stop reason alone that there is no call to run, or that there is one; or,
    from the blocks alone, that a call is whole though the reply says that it was cut.
    """

    kind: ClassVar[str] = "wrong_stop_reason"
    reason: str | None = None

    @classmethod
    def read(cls, node: Node) -> WrongStopReasonFault:
        """Read ``{reason}``."""
        fields = node.fields("wrong_stop_reason", ("reason",))
        return cls(fields["reason"].choice("stop reason", STOP_REASONS) if "reason" in fields else None)

    def unsayable(self, reply: Reply) -> str | None:
        """Return that the reply has this stop reason anyway, or nothing if it has another."""
        reason = self._reason(reply)
        return f"the reply's stop reason is '{reason}' as it is" if reason == reply.stop_reason else None

    def reshape(self, reply: Reply) -> Reply:
        """Exchange the stop reason."""
        return replace(reply, stop_reason=self._reason(reply))

    def _reason(self, reply: Reply) -> str:
        if self.reason is not None:
            return self.reason
        return "end_turn" if any(isinstance(block, ToolUse) for block in reply.blocks) else "tool_use"
