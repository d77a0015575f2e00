"""Steady replies: answered at once from bytes that were encoded once, without a task and without waiting.

A reply is steady when the same step answers every equal request the same way and nothing can disturb it. What leaves
and what the journal holds are the same as for any other reply. It never touches a socket: the connection writes what it
is given.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from fake_provider.desk import Admitted, Desk
from fake_provider.exchange import drafted
from fake_provider.journal import ReplyEnded, ReplyStarted
from fake_provider.playback import Played
from fake_provider.precoded import Precoded
from fake_provider.wire import Framing

MARK_NUMBER = 9_999_999_999_999_999_999_999
"""The number in an identifier that no reply will ever have; it marks where identifiers stand in precoded bytes."""


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
    return precoded.filled(played.message_id, admitted.request_id)


def _precoded(desk: Desk, admitted: Admitted, played: Played) -> Precoded:
    dialect = admitted.understood.dialect
    message_mark = dialect.message_id(99, MARK_NUMBER)
    request_mark = dialect.request_id(MARK_NUMBER)
    served = replace(desk.served(admitted, message_mark), request_id=request_mark)
    draft = drafted(admitted.understood, played.answer, served)
    framing = Framing(keep_alive=True, with_body=True, chunked=False)
    writes = [written for action in draft.actions() if (written := framing.encode(action))]
    size_bytes = sum(map(len, writes))
    if desk.script.flush == "whole":
        writes = [b"".join(writes)]
    return Precoded(
        answer=played.answer,
        status=draft.status,
        writes=tuple(writes),
        message_mark=message_mark.encode("ascii"),
        request_mark=request_mark.encode("ascii"),
        frames=Counter(frame.name for frame in draft.frames) if draft.streamed else {},
        size_bytes=size_bytes,
    )
