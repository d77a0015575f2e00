"""``refuse_connections``: for a time nobody can connect."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar, Literal

from fake_provider.document import Node
from fake_provider.wire import Action, Close, Draft, Fired, Refuse

if TYPE_CHECKING:
    from fake_provider.dialects import Dialect


@dataclass(frozen=True, slots=True)
class RefuseConnectionsFault:
    """Take no new connection for ``seconds``, and leave this request without an answer.

    ``how``: ``refused``, so that a connection is refused at once, or ``full``, so that the queue of the listening
    socket is full and a connection is neither taken nor refused. With ``answer`` this request gets its reply all the
    same, after which its connection is closed.

    A client may wrongly conclude that the provider is down for good, or spend all its attempts within the window; with
    a full queue, that the provider is slow, where it was never reached.
    """

    kind: ClassVar[str] = "refuse_connections"
    seconds: float
    how: Literal["refused", "full"] = "refused"
    answer: bool = False

    @classmethod
    def read(cls, node: Node) -> RefuseConnectionsFault:
        """Read ``{seconds, how: refused, answer: false}``."""
        fields = node.fields("refuse_connections", ("seconds", "how", "answer"), ["seconds"])
        full = "how" in fields and fields["how"].choice("way to take no connection", ("refused", "full")) == "full"
        return cls(
            fields["seconds"].number(minimum=0.001),
            "full" if full else "refused",
            fields["answer"].flag() if "answer" in fields else False,
        )

    def unreachable(self, draft: Draft) -> str | None:
        """Return nothing: whether the queue can be filled shows when it is tried."""
        return None

    def strike(self, draft: Draft, dialect: Dialect) -> tuple[Action, ...]:
        """Begin the window, then close, or answer and close."""
        # The window is open before the client can know that this exchange is over.
        begun = (Refuse(self.seconds, self.how), Fired(self.kind, f"{self.how} for {self.seconds:g} s"))
        if not self.answer:
            return (*begun, Close())
        _, *rest = draft.actions()
        return (*begun, replace(draft.head(), close=True), *rest)
