"""Steady replies: answered at once from bytes that were encoded once, without a task and without waiting.

A reply is steady when the same step answers every equal request the same way and nothing can disturb it. What leaves
and what the journal holds are the same as for any other reply. It never touches a socket: the connection writes what it
is given.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from fake_provider.desk import Admitted, Desk
from fake_provider.exchange import drafted
from fake_provider.journal import ReplyEnded, ReplyStarted
from fake_provider.playback import Played
from fake_provider.precoded import Precoded
from fake_provider.wire import Draft, Framing

MESSAGE_MARK_NUMBER = 99_999_999_999_999_999
REQUEST_MARK_NUMBER = 88_888_888_888_888_888
"""Numbers that no reply will ever have; in identifiers they mark where those of a reply go in precoded bytes."""

_MARK_LANE = 99
_LAST_DIGITS = re.compile(r"[0-9]+$")


def steady_writes(desk: Desk, admitted: Admitted) -> Sequence[bytes] | None:
    """Return what to hand to the kernel for a steady reply, and record it; nothing where the reply is not steady.

    The caller has made sure that nothing is queued for the client, and writes all of it at once.
    """
    played, understood = admitted.played, admitted.understood
    if not isinstance(played, Played) or not played.steady or desk.holds or not understood.parsed.keep_alive:
        return None
    precoded = understood.precoded
    if precoded is None or precoded.answer is not played.answer:
        precoded = understood.precoded = _precoded(desk, admitted, played)
    if not precoded.writes:
        return None
    now, number = admitted.received.at_seconds, admitted.number
    desk.journal.extend(
        (
            admitted.received,
            ReplyStarted(at_seconds=now, request=number, status=precoded.status),
            ReplyEnded(
                at_seconds=now,
                request=number,
                status=precoded.status,
                frames=precoded.frames,
                bytes=precoded.size_bytes,
                complete=True,
            ),
        )
    )
    return precoded.filled(_digits(played.message_id), _digits(admitted.request_id))


def _precoded(desk: Desk, admitted: Admitted, played: Played) -> Precoded:
    """Encode the reply with marks for its identifiers.

    There are no writes in it where a mark does not do: a dialect may make more of an identifier than its digits.
    """
    dialect = admitted.understood.dialect
    message_mark = dialect.message_id(_MARK_LANE, MESSAGE_MARK_NUMBER)
    request_mark = dialect.request_id(REQUEST_MARK_NUMBER)
    draft, writes = _encoded(desk, admitted, played, message_mark, request_mark)
    precoded = Precoded(
        answer=played.answer,
        status=draft.status,
        writes=writes,
        message_mark=_digits(message_mark),
        request_mark=_digits(request_mark),
        frames=Counter(frame.name for frame in draft.frames) if draft.streamed else {},
        size_bytes=sum(map(len, writes)),
    )
    _, plainly = _encoded(desk, admitted, played, played.message_id, admitted.request_id)
    filled = precoded.filled(_digits(played.message_id), _digits(admitted.request_id))
    return precoded if tuple(filled) == plainly else replace(precoded, writes=())


def _encoded(
    desk: Desk, admitted: Admitted, played: Played, message_id: str, request_id: str
) -> tuple[Draft, tuple[bytes, ...]]:
    served = replace(desk.served(admitted, message_id), request_id=request_id)
    draft = drafted(admitted.understood, played.answer, served)
    framing = Framing(keep_alive=True, with_body=True, chunked=False)
    writes = tuple(written for action in draft.actions() if (written := framing.encode(action)))
    return draft, (b"".join(writes),) if desk.script.flush == "whole" else writes


def _digits(identifier: str) -> bytes:
    match = _LAST_DIGITS.search(identifier)
    return match.group().encode("ascii") if match else identifier.encode("utf-8")
