"""A place in a stream: an event by name and number, and a byte in it. Shared by the faults that strike at a place.

It only finds the place; what happens there is the fault's.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from fake_provider.document import Node
from fake_provider.wire import Action, Frame, Send, SendHead

POINT_KEYS = ("event", "nth", "byte")


@dataclass(frozen=True, slots=True)
class Point:
    """After ``byte`` bytes of the nth event of a name; after the whole event where ``byte`` is nothing."""

    event: str
    nth: int = 1
    byte: int | None = None

    @classmethod
    def read(cls, fields: Mapping[str, Node]) -> Point:
        """Read ``event``, ``nth`` and ``byte`` from a fault's settings; ``event`` is required."""
        return cls(
            event=fields["event"].text(),
            nth=fields["nth"].integer(minimum=1) if "nth" in fields else 1,
            byte=fields["byte"].integer(minimum=0) if "byte" in fields else None,
        )

    def index_in(self, frames: Sequence[Frame]) -> int | None:
        """Return the index of the frame, or nothing if there is no such frame."""
        indices = [index for index, frame in enumerate(frames) if frame.name == self.event]
        return indices[self.nth - 1] if len(indices) >= self.nth else None

    def unreachable(self, frames: Sequence[Frame]) -> str | None:
        """Return why the place does not exist in these frames, or nothing if it does or cannot be judged yet."""
        index = self.index_in(frames)
        if index is None:
            count = sum(frame.name == self.event for frame in frames)
            if count:
                return f"the reply has {count} '{self.event}' events, so there is no number {self.nth}"
            names = ", ".join(dict.fromkeys(frame.name for frame in frames))
            return f"the reply has no event '{self.event}'. Its events: {names}"
        size = len(frames[index].payload)
        if self.byte is not None and self.byte > size and frames[index].fixed:
            return f"'{self.event}' number {self.nth} is {size} bytes long, so there is no byte {self.byte}"
        return None

    def actions_before(self, frames: Sequence[Frame]) -> tuple[Action, ...]:
        """Return the actions that lead up to the place: the head, whole frames, and the part of the last one."""
        index = self.index_in(frames)
        if index is None:
            raise ValueError(f"no '{self.event}' number {self.nth} in the frames")
        whole = frames[: index + 1] if self.byte is None else frames[:index]
        actions: list[Action] = [SendHead(), *(Send(frame.name, frame.payload) for frame in whole)]
        if self.byte:
            frame = frames[index]
            actions.append(Send(frame.name, frame.payload[: self.byte], complete=self.byte == len(frame.payload)))
        return tuple(actions)

    def actions_after(self, frames: Sequence[Frame]) -> tuple[Action, ...]:
        """Return the sending of everything that ``actions_before`` leaves out, without the end of the reply."""
        index = self.index_in(frames)
        if index is None:
            raise ValueError(f"no '{self.event}' number {self.nth} in the frames")
        following = tuple(Send(frame.name, frame.payload) for frame in frames[index + 1 :])
        if self.byte is None or self.byte == len(frames[index].payload):
            return following
        # The event is complete only now, so it counts as sent here and not before the place.
        return (Send(self.event, frames[index].payload[self.byte :]), *following)

    def __str__(self) -> str:
        inside = "after" if self.byte is None else f"at byte {self.byte} of"
        return f"{inside} {self.event} number {self.nth}"
