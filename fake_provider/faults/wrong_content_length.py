"""``wrong_content_length``: the head states a length that the body has not."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from fake_provider.document import Node
from fake_provider.faults.rewriting import split_at, without_body
from fake_provider.wire import Action, Close, Draft, Fired, Pause, Send, SendHead

if TYPE_CHECKING:
    from fake_provider.dialects import Dialect


@dataclass(frozen=True, slots=True)
class WrongContentLengthFault:
    """State a content-length that is ``over`` or ``under`` the body's by so many bytes; a stream states one too.

    Over: the whole body is sent, and then the connection is closed, or with ``wait`` kept open until the client
    leaves. Under: the whole body is sent as well, so that its last bytes stand where the next reply would begin. The
    connection is closed afterwards, though the head does not say so.

    A client may wrongly conclude that a whole reply was cut (over), or that a cut one is whole, and that the bytes
    behind it answer its next request (under).
    """

    kind: ClassVar[str] = "wrong_content_length"
    by: int
    wait: bool = False

    @classmethod
    def read(cls, node: Node) -> WrongContentLengthFault:
        """Read ``{over}`` or ``{under}``, in bytes, and ``wait: false`` beside ``over``.

        Raises:
            DocumentError: There is not exactly one of them, or ``wait`` where nothing is waited for.
        """
        fields = node.fields("wrong_content_length", ("over", "under", "wait"))
        if ("over" in fields) is ("under" in fields):
            raise node.error("wrong_content_length has exactly one of 'over' and 'under'")
        if "under" in fields:
            if "wait" in fields:
                raise fields["wait"].error("'wait' means nothing beside 'under': the client has all it waits for")
            return cls(-fields["under"].integer(minimum=1))
        return cls(fields["over"].integer(minimum=1), fields["wait"].flag() if "wait" in fields else False)

    def unreachable(self, draft: Draft) -> str | None:
        """Return that there is no body or that it is not so long, or nothing if it is."""
        if not draft.has_body:
            return without_body(draft)
        if draft.body_bytes + self.by < 0 and all(frame.fixed for frame in draft.frames):
            return f"the body is {draft.body_bytes} bytes long, so its length cannot be {-self.by} less"
        return None

    def strike(self, draft: Draft, dialect: Dialect) -> tuple[Action, ...]:
        """Send the wrong length and the whole body."""
        stated = draft.body_bytes + self.by
        head = SendHead(draft.status, draft.headers, "length", stated)
        detail = f"{stated} instead of {draft.body_bytes}"
        if self.by < 0:
            before, after = split_at(draft.frames, stated)
            return (head, *before, Fired(self.kind, detail, delivered=True), *after, Close())
        waiting = (Pause(None),) if self.wait else ()
        return (head, *(Send.whole(frame) for frame in draft.frames), Fired(self.kind, detail), *waiting, Close())
