"""Rewriting a draft: headers exchanged, frames replaced, the strike put at its place. Shared by the faults that do so.

Pure functions over drafts and actions. What is rewritten, and where the fault strikes, is the fault's.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from fake_provider.requests import asks_to_close
from fake_provider.wire import Action, Draft, Fired, Frame, Framing, Headers, PlainReply, Send

EVENT_STREAM = "text/event-stream"


def with_header(headers: Headers, name: str, value: str | None) -> Headers:
    """Return the headers with one replaced, added at the end, or left out where the value is nothing."""
    new = () if value is None else ((name, value),)
    index = next((index for index, (known, _) in enumerate(headers) if known == name), len(headers))
    return (*headers[:index], *new, *((known, old) for known, old in headers[index:] if known != name))


def without_events(draft: Draft) -> str | None:
    """Return why a draft has no events of their own, or nothing if it has."""
    if not draft.streamed:
        return "the reply is not streamed, so it has no events"
    if not dict(draft.headers).get("content-type", "").startswith(EVENT_STREAM):
        return "the reply streams the elements of one array, which are no events of their own"
    return None


def without_body(draft: Draft) -> str | None:
    """Return why a draft has no body that could be changed, or nothing if it has."""
    return None if draft.has_body else f"a reply of status {draft.status} has no body"


def head_bytes(draft: Draft) -> int:
    """Return the size of the head; before there is a request, that of the head which also closes the connection."""
    kept = draft.request is not None and draft.chunks and not asks_to_close(draft.request.headers.get("connection", ""))
    return len(Framing(keep_alive=kept, with_body=True, chunked=False).encode(draft.head()))


def with_body(draft: Draft, body: bytes, headers: Headers) -> Draft:
    """Return the draft of the same status with another body, whole and of a stated length."""
    plain = PlainReply(draft.status, headers, body)
    return Draft.of_plain(plain, chunks=draft.chunks, request=draft.request)


def struck_after(draft: Draft, frames: int, fired: Fired) -> tuple[Action, ...]:
    """Return the actions of a draft with the strike after so many of its frames."""
    actions = draft.actions()
    return (*actions[: frames + 1], fired, *actions[frames + 1 :])


def struck_at_end(draft: Draft, kind: str, detail: str) -> tuple[Action, ...]:
    """Return the actions of a draft whose fault lies in all of its bytes, with the strike right before the end."""
    return struck_after(draft, len(draft.frames), Fired(kind, detail, delivered=True))


def with_frame(draft: Draft, index: int, *frames: Frame) -> Draft:
    """Return the draft with other frames in place of one."""
    return replace(draft, frames=(*draft.frames[:index], *frames, *draft.frames[index + 1 :]))


def split_at(frames: Sequence[Frame], size: int) -> tuple[tuple[Send, ...], tuple[Send, ...]]:
    """Return the sending of the first ``size`` bytes of the frames, and that of the rest; a torn frame ends in it."""
    before: list[Send] = []
    after: list[Send] = []
    left = size
    for frame in frames:
        length = len(frame.payload)
        if left >= length:
            before.append(Send.whole(frame))
        elif left <= 0:
            after.append(Send.whole(frame))
        else:
            before.append(Send(frame.name, frame.payload[:left], complete=False, places=frame.places))
            after.append(Send(frame.name, frame.payload[left:], places=frame.places))
        left -= length
    return tuple(before), tuple(after)
