"""``no_terminal``: everything of a stream but the event that says that it is over."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar

from fake_provider.document import Node
from fake_provider.faults.rewriting import struck_after
from fake_provider.wire import Action, Draft, Fired

if TYPE_CHECKING:
    from fake_provider.dialects import Dialect


@dataclass(frozen=True, slots=True)
class NoTerminalFault:
    """Leave out the terminal event and end the body properly.

    What the terminal event is depends on the dialect: ``message_stop``, ``[DONE]``, ``response.completed``, or Gemini's
    chunk with the finish reason.

    A client may wrongly conclude nothing at all: the stop reason came, so it takes the reply for complete and never
    learns that a proxy ended it; or, waiting for the terminal event, that a reply which it has in full is lost.
    """

    kind: ClassVar[str] = "no_terminal"

    @classmethod
    def read(cls, node: Node) -> NoTerminalFault:
        """Read ``{}``: there is nothing to set."""
        node.fields("no_terminal", ())
        return cls()

    def unreachable(self, draft: Draft) -> str | None:
        """Return that there is no such event, or nothing if there is."""
        if not draft.streamed:
            return "the reply is not streamed, so it has no terminal event"
        if not any(frame.is_at("terminal") for frame in draft.frames):
            return "the reply has no terminal event"
        return None

    def strike(self, draft: Draft, dialect: Dialect) -> tuple[Action, ...]:
        """Send every other event, then end."""
        frames = tuple(frame for frame in draft.frames if not frame.is_at("terminal"))
        return struck_after(replace(draft, frames=frames), len(frames), Fired(self.kind, "instead of the last event"))
