"""A place in a reply: an event by name and number, and a byte in it. Shared by the faults that strike at a place.

It only finds the place; what happens there is the fault's.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

from fake_provider.document import Node
from fake_provider.faults.rewriting import without_body
from fake_provider.wire import Action, Draft, Frame, Send, SendRaw

POINT_KEYS = ("event", "nth", "byte", "inside")
EVENT_KEYS = ("event", "nth")

Inside: TypeAlias = Literal["utf8", "chunk_header"]

NOTHING = "nothing"
HEAD = "head"


@dataclass(frozen=True, slots=True)
class Point:
    """How far a reply gets.

    Attributes:
        event: An event's name in its dialect, a word of ``wire.PLACES``, ``nothing`` for the place before the first
            byte of the reply, or ``head`` for the place right after its headers.
        nth: Which event of that name, from 1.
        byte: How many bytes of it leave; the whole event where it is nothing.
        inside: ``utf8``: it ends after the first byte of the event's first character that has several.
            ``chunk_header``: it ends inside the size line of the chunk that would carry the event (RFC 9112, 7.1).
    """

    event: str
    nth: int = 1
    byte: int | None = None
    inside: Inside | None = None

    @classmethod
    def read(cls, fields: Mapping[str, Node]) -> Point:
        """Read ``event``, ``nth``, ``byte`` and ``inside`` from a fault's settings; ``event`` is required.

        Raises:
            DocumentError: Settings that mean nothing together.
        """
        event = fields["event"].text()
        inside = fields.get("inside")
        if inside is not None:
            inside.choice("place inside an event", get_args(Inside))
        exact = [key for key in ("nth", "byte", "inside") if key in fields]
        if event in (NOTHING, HEAD) and exact:
            raise fields[exact[0]].error(f"'{exact[0]}' means nothing beside event '{event}', which is no event")
        if "byte" in fields and inside is not None:
            raise inside.error("expected 'byte' or 'inside', found both")
        return cls(
            event=event,
            nth=fields["nth"].integer(minimum=1) if "nth" in fields else 1,
            byte=fields["byte"].integer(minimum=0) if "byte" in fields else None,
            inside=None if inside is None else _INSIDE[inside.text()],
        )

    @classmethod
    def read_optional(cls, fields: Mapping[str, Node]) -> Point | None:
        """Read a place that may be left out.

        Raises:
            DocumentError: There is a number, a byte or a place inside an event, and no event.
        """
        if "event" in fields:
            return cls.read(fields)
        for key in POINT_KEYS:
            if key in fields:
                raise fields[key].error(f"'{key}' says where in an event, and there is no 'event'")
        return None

    @classmethod
    def read_event(cls, fields: Mapping[str, Node]) -> Point:
        """Read a place that is a whole event, from ``event`` and ``nth``.

        Raises:
            DocumentError: The place is before every event.
        """
        point = cls.read(fields)
        if point.event in (NOTHING, HEAD):
            raise fields["event"].error(f"'{point.event}' is no event, and an event is needed here")
        return point

    def index_in(self, frames: Sequence[Frame]) -> int | None:
        """Return the index of the frame, or nothing if there is no such frame."""
        indices = [index for index, frame in enumerate(frames) if frame.is_at(self.event)]
        return indices[self.nth - 1] if len(indices) >= self.nth else None

    def unreachable(self, draft: Draft) -> str | None:
        """Return why the place does not exist in this draft, or nothing if it does or cannot be judged yet."""
        if self.event == NOTHING:
            return None
        if not draft.has_body:
            return without_body(draft)
        if self.event == HEAD:
            return None
        index = self.index_in(draft.frames)
        if index is None:
            return self._missing(draft)
        frame = draft.frames[index]
        size = len(frame.payload)
        if self.byte is not None and self.byte > size and frame.fixed:
            return f"'{self.event}' number {self.nth} is {size} bytes long, so there is no byte {self.byte}"
        if self.inside == "utf8" and _first_wide(frame.payload) is None and frame.fixed:
            return f"'{self.event}' number {self.nth} has no character of several bytes"
        if self.inside == "chunk_header" and draft.transfer != "chunked":
            return "the reply is not chunked, so it has no chunk header"
        return None

    def _missing(self, draft: Draft) -> str:
        frames = draft.frames
        if not draft.streamed:
            return f"the reply is not streamed, so its only event is 'body' and '{self.event}' is none"
        count = sum(frame.is_at(self.event) for frame in frames)
        if count:
            return f"the reply has {count} '{self.event}' events, so there is no number {self.nth}"
        names = dict.fromkeys(frame.name for frame in frames)
        places = dict.fromkeys(place for frame in frames for place in frame.places)
        return (
            f"the reply has no event '{self.event}'. Its events: {', '.join(names)}. "
            f"Its places: {', '.join([NOTHING, HEAD, *places])}"
        )

    def actions_before(self, draft: Draft) -> tuple[Action, ...]:
        """Return the actions that lead up to the place: the head, whole frames, and the part of the last one."""
        if self.event == NOTHING:
            return ()
        if self.event == HEAD:
            return (draft.head(),)
        index = self.index_of(draft)
        cut = self._bytes_of(draft.frames[index])
        whole = draft.frames[: index + 1] if cut is None and self.inside is None else draft.frames[:index]
        actions: list[Action] = [draft.head(), *(Send.whole(frame) for frame in whole)]
        frame = draft.frames[index]
        if self.inside == "chunk_header":
            actions.append(SendRaw(b"%x" % len(frame.payload)))
        elif cut:
            complete = cut == len(frame.payload)
            actions.append(Send(frame.name, frame.payload[:cut], complete=complete, places=frame.places))
        return tuple(actions)

    def actions_after(self, draft: Draft) -> tuple[Action, ...]:
        """Return the sending of everything that ``actions_before`` leaves out, without the end of the reply."""
        if self.event == NOTHING:
            return (draft.head(), *(Send.whole(frame) for frame in draft.frames))
        if self.event == HEAD:
            return tuple(Send.whole(frame) for frame in draft.frames)
        index = self.index_of(draft)
        frame = draft.frames[index]
        following = tuple(Send.whole(later) for later in draft.frames[index + 1 :])
        if self.inside == "chunk_header":
            return (SendRaw(b"\r\n" + frame.payload + b"\r\n"), *following)
        cut = self._bytes_of(frame)
        if cut is None or cut == len(frame.payload):
            return following
        # The event is complete only now, so it counts as sent here and not before the place.
        return (Send(frame.name, frame.payload[cut:], places=frame.places), *following)

    def frames_before(self, draft: Draft) -> tuple[Frame, ...]:
        """Return the frames that have begun when the place is reached."""
        return () if self.event in (NOTHING, HEAD) else draft.frames[: self.index_of(draft) + 1]

    def index_of(self, draft: Draft) -> int:
        """Return the index of the frame; only for a place that exists.

        Raises:
            ValueError: There is no such frame.
        """
        index = self.index_in(draft.frames)
        if index is None:
            raise ValueError(f"no '{self.event}' number {self.nth} in the frames")
        return index

    def _bytes_of(self, frame: Frame) -> int | None:
        if self.inside == "utf8":
            return _first_wide(frame.payload)
        return self.byte

    @property
    def named(self) -> str:
        """The event in words, without what is at it."""
        return f"{self.event} number {self.nth}"

    def __str__(self) -> str:
        if self.event == NOTHING:
            return "before the first byte"
        if self.event == HEAD:
            return "after the headers"
        where = "after" if self.byte is None else f"at byte {self.byte} of"
        if self.inside is not None:
            where = f"inside {_INSIDE_WORDS[self.inside]} of"
        return f"{where} {self.named}"


_INSIDE: Mapping[str, Inside] = {"utf8": "utf8", "chunk_header": "chunk_header"}
_INSIDE_WORDS: Mapping[Inside, str] = {"utf8": "the first wide character", "chunk_header": "the chunk header"}


def _first_wide(payload: bytes) -> int | None:
    """Return how many bytes end inside the first character of several bytes, or nothing if there is none."""
    return next((index + 1 for index, byte in enumerate(payload) if byte >= 0xC0), None)
