"""Steady replies: answered at once from bytes that were encoded once, without a task and without waiting.

A reply is steady when the same step answers every equal request the same way and nothing can disturb it. What leaves
and what the journal holds are the same as for any other reply. It never touches a socket: the connection writes what it
is given.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from fake_provider.desk import Admitted, Desk, Understood
from fake_provider.exchange import drafted
from fake_provider.journal import ReplyEnded, ReplyStarted, RequestReceived
from fake_provider.playback import Played
from fake_provider.precoded import Precoded, SteadyKey, parted
from fake_provider.requests import ModelRequest
from fake_provider.wire import Draft, Framing

MESSAGE_MARK_NUMBER = 99_999_999_999_999_999
REQUEST_MARK_NUMBER = 88_888_888_888_888_888
"""Numbers that no reply will ever have; in identifiers they mark where those of a reply go in precoded bytes."""

_MARK_LANE = 99
_LAST_DIGITS = re.compile(r"[0-9]+$")


def steady_writes(desk: Desk, understood: Understood, connection: int) -> Sequence[bytes] | None:
    """Answer a request as the one like it before: return what to hand to the kernel, and record it.

    Nothing is returned, and nothing done, where its reply is not known to be steady; then ``Desk.admit`` it, and
    ``remember`` what it was answered with. The caller has made sure that nothing is queued for the client, and writes
    all of it at once.
    """
    request, moves = understood.request, desk.playback.moves
    if request is None or understood.problems or desk.holds:
        return None
    key = understood.steady_key
    if key is None or key.moves != moves:
        key = understood.steady_key = _key(desk, understood, request)
    precoded = None if key is None else desk.steady_replies.find(key)
    if precoded is None or not precoded.writes:
        return None
    number, now, dialect = desk.next_number(), desk.journal.now(), understood.dialect
    received = understood.parsed.received
    desk.journal.extend(
        (
            RequestReceived(
                at_seconds=now,
                request=number,
                connection=connection,
                lane=precoded.lane,
                step=precoded.step,
                method=received.method,
                path=received.path,
                query=understood.query,
                headers=understood.headers,
                body=understood.body,
                model=request.model,
                stream=request.stream,
                side=False,
                dialect=dialect.name,
            ),
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
    return precoded.filled(desk.playback.again(precoded.lane, dialect), dialect.request_id(number))


def remember(desk: Desk, admitted: Admitted) -> None:
    """Encode the reply to a request that was played, if it is a steady one and not the first of its kind."""
    played, understood = admitted.played, admitted.understood
    request = understood.request
    if request is None or not isinstance(played, Played) or not played.steady or not understood.parsed.keep_alive:
        return
    key = _key(desk, understood, request)
    if key is not None and desk.steady_replies.is_due(key):
        desk.steady_replies.keep(key, _precoded(desk, admitted, played))


def _key(desk: Desk, understood: Understood, request: ModelRequest) -> SteadyKey | None:
    lane = desk.script.lane_for(request)
    if lane is None or not understood.parsed.keep_alive:
        return None
    repeated = understood.dialect.repeated(request)
    return SteadyKey(
        moves=desk.playback.moves,
        lane=lane.name,
        dialect=understood.dialect.name,
        model=request.model,
        stream=request.stream,
        input_tokens=request.estimated_tokens,
        chunked=understood.parsed.chunked,
        repeated=hashlib.sha256(understood.parsed.received.body).digest() if repeated is None else repeated,
    )


def _precoded(desk: Desk, admitted: Admitted, played: Played) -> Precoded:
    """Encode the reply with marks for its identifiers.

    There are no writes in it where a mark does not do: a dialect may make more of an identifier than its digits.
    """
    dialect = admitted.understood.dialect
    message_mark = dialect.message_id(_MARK_LANE, MESSAGE_MARK_NUMBER)
    request_mark = dialect.request_id(REQUEST_MARK_NUMBER)
    draft, writes = _encoded(desk, admitted, played, message_mark, request_mark)
    precoded = Precoded(
        lane=played.lane,
        step=played.step,
        status=draft.status,
        writes=tuple(parted(write, _last_digits(message_mark), _last_digits(request_mark)) for write in writes),
        message_digits=len(_last_digits(message_mark)),
        request_digits=len(_last_digits(request_mark)),
        frames=Counter(frame.name for frame in draft.frames) if draft.streamed else {},
        size_bytes=sum(map(len, writes)),
    )
    _, plainly = _encoded(desk, admitted, played, played.message_id, admitted.request_id)
    same = tuple(precoded.filled(played.message_id, admitted.request_id)) == plainly
    return precoded if same else replace(precoded, writes=())


def _encoded(
    desk: Desk, admitted: Admitted, played: Played, message_id: str, request_id: str
) -> tuple[Draft, tuple[bytes, ...]]:
    served = replace(desk.served(admitted, message_id), request_id=request_id)
    draft = drafted(admitted.understood, played.answer, served)
    framing = Framing(keep_alive=True, with_body=True, chunked=False)
    writes = tuple(written for action in draft.actions() if (written := framing.encode(action)))
    return draft, (b"".join(writes),) if desk.script.flush == "whole" else writes


def _last_digits(identifier: str) -> bytes:
    match = _LAST_DIGITS.search(identifier)
    return (match.group() if match else identifier).encode("ascii")
