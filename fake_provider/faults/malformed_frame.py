"""``malformed_frame``: one event of a stream, or the body of a reply that is not streamed, is damaged."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar

from fake_provider.document import Node
from fake_provider.faults.point import EVENT_KEYS, Point
from fake_provider.faults.rewriting import struck_after, with_frame, without_events
from fake_provider.wire import Action, Draft, Fired

if TYPE_CHECKING:
    from fake_provider.dialects import Dialect

_DATA = re.compile(rb"^data: ?(?P<data>[^\r\n]*)(?P<end>\r?\n)", re.MULTILINE)
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_NOT_UTF8 = b"\xff"
_TEXT_BEGINS = b'":"'


def _json_of(payload: bytes) -> tuple[int, int] | None:
    """Return where the JSON of an event or a body begins and ends, or nothing if it holds none."""
    found = _DATA.search(payload)
    start, end = (0, len(payload)) if found is None else found.span("data")
    return (start, end) if payload[start : start + 1] in (b"{", b"[") and payload[start:end] != b"[DONE]" else None


def _without_last_character(payload: bytes) -> bytes | None:
    span = _json_of(payload)
    return None if span is None else payload[: span[1] - 1] + payload[span[1] :]


def _with_stray_byte(payload: bytes) -> bytes | None:
    span = _json_of(payload)
    index = -1 if span is None else payload.rfind(_TEXT_BEGINS, *span)
    if index < 0:
        return None
    index += len(_TEXT_BEGINS)
    return payload[:index] + _NOT_UTF8 + payload[index:]


def _with_mark(payload: bytes) -> bytes | None:
    return _BYTE_ORDER_MARK + payload


def _with_unknown_field(payload: bytes) -> bytes | None:
    found = _DATA.search(payload)
    return None if found is None else payload[: found.start()] + b"dato" + payload[found.start() + len(b"data") :]


def _with_stray_line(payload: bytes) -> bytes | None:
    found = _DATA.search(payload)
    if found is None:
        return None
    return payload[: found.start()] + b"a line without a colon" + found["end"] + payload[found.start() :]


def _without_blank_line(payload: bytes) -> bytes | None:
    found = _DATA.search(payload)
    return None if found is None else payload.removesuffix(found["end"])


DAMAGES: Mapping[str, tuple[str, Callable[[bytes], bytes | None]]] = {
    "json": ("its JSON lacks the last character", _without_last_character),
    "utf8": ("a text in its JSON holds a byte that is no UTF-8", _with_stray_byte),
    "bom": ("a byte order mark stands before it", _with_mark),
    "field": ("the field of its data is called 'dato'", _with_unknown_field),
    "line": ("a line without a colon stands before its data", _with_stray_line),
    "no_blank_line": ("the blank line at its end is missing", _without_blank_line),
}
"""Each damage with its meaning and the function that does it; nothing where the bytes have not what it damages."""

_OF_EVENTS = ("field", "line", "no_blank_line")


@dataclass(frozen=True, slots=True)
class MalformedFrameFault:
    """Damage one event and leave the others as they are; ``how`` is a word of ``DAMAGES``.

    By the rules of event streams (WHATWG HTML, 9.2.6) a reader passes over an unknown field, a line without a colon and
    an event without data; a byte order mark is allowed at the very beginning alone; an event that no blank line ends
    runs into the next, and the last one is dropped.

    A client may wrongly conclude that the damaged event was never sent, and go on without it: a text with a hole, or a
    tool that runs with arguments which lack a piece; or that the whole stream is lost, though the damage is harmless.
    """

    kind: ClassVar[str] = "malformed_frame"
    point: Point
    how: str = "json"

    @classmethod
    def read(cls, node: Node) -> MalformedFrameFault:
        """Read ``{event, nth: 1, how: json}``."""
        fields = node.fields("malformed_frame", (*EVENT_KEYS, "how"), ["event"])
        how = fields["how"].choice("damage", DAMAGES) if "how" in fields else "json"
        return cls(Point.read_event(fields), how)

    def unreachable(self, draft: Draft) -> str | None:
        """Return why there is no such event or nothing to damage in it, or nothing if there is."""
        reason = self.point.unreachable(draft)
        if reason is None and self.how in _OF_EVENTS:
            reason = without_events(draft)
        if reason is None and self._damaged(draft) is None:
            return f"{self.point.named} holds nothing that '{self.how}' could damage"
        return reason

    def strike(self, draft: Draft, dialect: Dialect) -> tuple[Action, ...]:
        """Send the reply with the damaged event."""
        index = self.point.index_of(draft)
        damaged = self._damaged(draft)
        if damaged is None:
            raise ValueError(f"{self.point.named} holds nothing that '{self.how}' could damage")
        frame = replace(draft.frames[index], payload=damaged)
        fired = Fired(self.kind, f"{self.point.named}: {DAMAGES[self.how][0]}", delivered=True)
        return struck_after(with_frame(draft, index, frame), index + 1, fired)

    def _damaged(self, draft: Draft) -> bytes | None:
        return DAMAGES[self.how][1](draft.frames[self.point.index_of(draft)].payload)
