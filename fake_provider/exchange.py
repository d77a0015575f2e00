"""One request and its reply: decoding, routing, holding, and carrying out what is to happen on the wire.

It knows the order of things and records each of them; the bytes leave through a ``Peer``, which is the server's. It
never opens, reads or closes a socket itself.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from fake_provider.clock import Clock
from fake_provider.dialects import DIALECTS, Dialect, Problem, RefusedRequestError, Served
from fake_provider.faults import Fault
from fake_provider.hold import Hold
from fake_provider.inbound import Garbage, Parsed
from fake_provider.journal import (
    ClientLeft,
    FaultFired,
    FaultSkipped,
    HoldReached,
    HoldReleased,
    HoldSkipped,
    Journal,
    ReplyEnded,
    ReplyStarted,
    RequestReceived,
    RequestRefused,
    UnexpectedRequest,
    redacted,
)
from fake_provider.playback import NothingToPlay, Playback, Played
from fake_provider.replies import ErrorReply, Reply
from fake_provider.requests import ModelRequest, NotJsonError, Received, decode_json
from fake_provider.script import Script
from fake_provider.wire import (
    LAST_CHUNK,
    Action,
    Close,
    Fired,
    HoldHere,
    Pause,
    PlainReply,
    Reset,
    Send,
    SendEnd,
    SendHead,
    chunk,
    head,
    plain_actions,
    settled,
    with_hold,
)


class Peer(Protocol):
    """The other end of a connection, as far as a reply needs it."""

    @property
    def number(self) -> int:
        """The connection's number in the journal."""

    @property
    def lost(self) -> bool:
        """Whether nothing can be sent any more."""

    @property
    def left(self) -> asyncio.Event:
        """Set once the client has closed its side, or the connection is gone."""

    def write(self, data: bytes) -> None:
        """Hand bytes over for sending."""

    def close(self) -> None:
        """Send what was handed over, then a FIN."""

    def reset(self) -> None:
        """Send a RST."""

    async def drained(self) -> None:
        """Wait until the kernel takes more bytes, or the connection is gone."""

    async def acknowledged(self) -> None:
        """Wait until the peer's kernel has acknowledged every byte, or the connection is gone."""


class Desk:
    """What all connections of a provider share: the played script, the holds, the journal, the clock.

    Args:
        script: What to answer.
        journal: Where to record.
        holds: Places at which to keep clients waiting.
        time_scale: Scripted waits are divided by this.
    """

    def __init__(self, script: Script, journal: Journal, holds: Sequence[Hold], time_scale: float) -> None:
        self.script = script
        self.journal = journal
        self.holds = tuple(holds)
        self.clock = Clock(time_scale)
        self.dialect: Dialect = DIALECTS[script.dialect]
        self.playback = Playback(script)
        self.stopping = asyncio.Event()
        self._request_count = 0

    def next_request(self) -> int:
        """Return the number of a request that has just been read."""
        self._request_count += 1
        return self._request_count


@dataclass(slots=True)
class Sent:
    """What has been sent of one reply; ``bytes`` counts HTTP framing too."""

    status: int | None = None
    frames: dict[str, int] = field(default_factory=dict)
    bytes: int = 0
    complete: bool = False


class Exchange:
    """One request and its reply on a connection."""

    def __init__(self, desk: Desk, peer: Peer, parsed: Parsed) -> None:
        self._desk = desk
        self._peer = peer
        self._parsed = parsed
        self._journal = desk.journal
        self._sent = Sent()
        self.number = desk.next_request()
        self.request_id = f"req_{self.number:024d}"

    async def run(self) -> bool:
        """Answer the request, and return whether the connection can be used again."""
        try:
            await self._answer()
        finally:
            self._journal.append(
                ReplyEnded(
                    at_seconds=self._journal.now(),
                    request=self.number,
                    status=self._sent.status,
                    frames=self._sent.frames,
                    bytes=self._sent.bytes,
                    complete=self._sent.complete,
                )
            )
        return self._sent.complete and self._parsed.keep_alive

    async def _answer(self) -> None:
        received = self._parsed.received
        dialect = self._desk.dialect
        if not dialect.is_model_request(received):
            self._record_received(received, None, None, None, side=True)
            await self._send_plain(dialect.side_reply(received, self.request_id))
            return
        try:
            request = dialect.decode(received)
        except RefusedRequestError as refused:
            self._record_received(received, None, None, None)
            await self._refuse(refused.problems, None)
            return
        problems = dialect.problems(request, self._desk.script.window_tokens)
        if problems:
            lane = self._desk.script.lane_for(request)
            played = None
        else:
            played = self._desk.playback.play(request)
            lane = None
        lane_name = played.lane if played is not None else lane.name if lane is not None else None
        self._record_received(received, request, lane_name, played.step if isinstance(played, Played) else None)
        if lane_name is not None and not await self._hold_received(lane_name):
            return
        if played is None:
            await self._refuse(problems, request)
        elif isinstance(played, NothingToPlay):
            await self._unexpected(played, request)
        else:
            await self._perform(played, request)

    def _record_received(
        self,
        received: Received,
        request: ModelRequest | None,
        lane: str | None,
        step: str | None,
        *,
        side: bool = False,
    ) -> None:
        self._journal.append(
            RequestReceived(
                at_seconds=self._journal.now(),
                request=self.number,
                connection=self._peer.number,
                lane=lane,
                step=step,
                method=received.method,
                path=received.path,
                headers=redacted(received.headers),
                body=_body_for_journal(received.body) if request is None else request.body,
                model=None if request is None else request.model,
                stream=request is not None and request.stream,
                side=side,
            )
        )

    def _served(self, request: ModelRequest | None, message_id: str = "") -> Served:
        return Served(
            message_id=message_id,
            request_id=self.request_id,
            model="" if request is None else request.model,
            input_tokens=0 if request is None else request.estimated_tokens,
            window_tokens=self._desk.script.window_tokens,
        )

    async def _refuse(self, problems: Sequence[Problem], request: ModelRequest | None) -> None:
        self._journal.append(
            RequestRefused(
                at_seconds=self._journal.now(),
                request=self.number,
                rules=tuple(problem.rule for problem in problems),
                problems=tuple(problem.message for problem in problems),
            )
        )
        error = ErrorReply(400, "invalid_request_error", problems[0].message)
        await self._send_plain(self._desk.dialect.error(error, self._served(request)))

    async def _unexpected(self, nothing: NothingToPlay, request: ModelRequest) -> None:
        self._journal.append(
            UnexpectedRequest(
                at_seconds=self._journal.now(), request=self.number, lane=nothing.lane, reason=nothing.reason
            )
        )
        message = f"unexpected request {self.number}: {nothing.reason}"
        error = ErrorReply(400, "invalid_request_error", message, headers=(("x-should-retry", "false"),))
        await self._send_plain(self._desk.dialect.error(error, self._served(request)))

    async def _perform(self, played: Played, request: ModelRequest) -> None:
        dialect = self._desk.dialect
        served = self._served(request, played.message_id)
        answer = played.answer
        if isinstance(answer, ErrorReply):
            await self._send_plain(dialect.error(answer, served))
            return
        if not request.stream:
            await self._perform_whole(played, answer, served)
            return
        frames = dialect.frames(answer, served)
        actions = plain_actions(frames)
        if played.fault is not None:
            frames = settled(frames)
            reason = played.fault.unreachable(frames)
            if reason is None:
                actions = played.fault.rewrite(frames, dialect.error_frame)
            else:
                self._skip_fault(played.fault, reason)
        actions = self._with_holds(actions, played.lane)
        await self._carry_out(actions, dialect.stream_headers(served), played.fault)

    async def _perform_whole(self, played: Played, answer: Reply, served: Served) -> None:
        dialect = self._desk.dialect
        for hold in self._desk.holds:
            if hold.position == "reply.streaming" and hold.counts(played.lane):
                self._skip_hold(hold, "the request asked for a reply that is not streamed")
        if played.fault is not None and not played.fault.needs_stream:
            await self._carry_out(played.fault.rewrite((), dialect.error_frame), (), played.fault)
            return
        if played.fault is not None:
            self._skip_fault(played.fault, "the request asked for a reply that is not streamed")
        await self._send_plain(dialect.whole(answer, served))

    def _with_holds(self, actions: tuple[Action, ...], lane: str) -> tuple[Action, ...]:
        if not any(isinstance(action, SendHead) for action in actions):
            return actions
        for index, hold in enumerate(self._desk.holds):
            if hold.position != "reply.streaming" or not hold.counts(lane):
                continue
            held = with_hold(actions, index, hold.event, hold.event_nth)
            if held is None:
                self._skip_hold(hold, f"the reply sends no complete {hold.event} number {hold.event_nth}")
            else:
                actions = held
        return actions

    def _skip_fault(self, fault: Fault, reason: str) -> None:
        self._journal.append(
            FaultSkipped(at_seconds=self._journal.now(), request=self.number, kind=fault.kind, reason=reason)
        )

    def _skip_hold(self, hold: Hold, reason: str) -> None:
        self._journal.append(
            HoldSkipped(at_seconds=self._journal.now(), request=self.number, position=hold.position, reason=reason)
        )

    async def _hold_received(self, lane: str) -> bool:
        """Hold at ``request.received`` where a hold says so, and return whether the client is still there."""
        for hold in self._desk.holds:
            if hold.position == "request.received" and hold.counts(lane) and not await self._hold(hold):
                return False
        return True

    async def _hold(self, hold: Hold) -> bool:
        """Keep the client waiting, and return whether it is still there."""
        if hold.released.is_set():
            return True
        self._journal.append(
            HoldReached(at_seconds=self._journal.now(), request=self.number, position=hold.position, detail=hold.detail)
        )
        hold.reached.set()
        await self._wait(None, hold.released)
        if hold.released.is_set():
            self._journal.append(
                HoldReleased(at_seconds=self._journal.now(), request=self.number, position=hold.position)
            )
            return True
        self._record_left()
        return False

    async def _wait(self, seconds: float | None, *until: asyncio.Event) -> None:
        await self._desk.clock.wait(seconds, self._peer.left, self._desk.stopping, *until)

    def _record_left(self) -> None:
        if not self._desk.stopping.is_set():
            self._journal.append(
                ClientLeft(
                    at_seconds=self._journal.now(),
                    request=self.number,
                    connection=self._peer.number,
                    bytes_sent=self._sent.bytes,
                )
            )

    def _start(self, status: int) -> None:
        self._sent.status = status
        self._journal.append(ReplyStarted(at_seconds=self._journal.now(), request=self.number, status=status))

    def _write(self, data: bytes) -> None:
        self._sent.bytes += len(data)
        self._peer.write(data)

    async def _send_plain(self, plain: PlainReply) -> None:
        self._start(plain.status)
        with_body = self._parsed.received.method != "HEAD"
        self._write(_encode_plain(plain, with_body=with_body, keep_alive=self._parsed.keep_alive))
        await self._finish()

    async def _finish(self) -> None:
        """Wait until the kernel has taken the reply; a client that is gone by then did not get it."""
        await self._peer.drained()
        if self._peer.lost:
            self._record_left()
        else:
            self._sent.complete = True

    async def _carry_out(
        self, actions: Sequence[Action], headers: tuple[tuple[str, str], ...], fault: Fault | None
    ) -> None:
        """Carry out the actions of a reply, in order, until one of them ends it or the client leaves."""
        fired = False
        pending: list[bytes] = []
        for action in actions:
            match action:
                case SendHead():
                    pending.append(self._stream_head(headers))
                    continue
                case Send():
                    pending.append(self._framed(action))
                    continue
                case SendEnd():
                    if self._parsed.chunked:
                        pending.append(LAST_CHUNK)
                    self._flush(pending)
                    await self._finish()
                    return
            self._flush(pending)
            if not await self._interrupt(action):
                break
            fired = fired or isinstance(action, Fired)
        if fault is not None and not fired:
            self._skip_fault(fault, "the client left before the fault's place was reached")

    def _stream_head(self, headers: tuple[tuple[str, str], ...]) -> bytes:
        self._start(200)
        transfer = (("transfer-encoding", "chunked"),) if self._parsed.chunked else ()
        connection = () if self._parsed.keep_alive else (("connection", "close"),)
        return head(200, (*headers, *transfer, *connection))

    def _framed(self, send: Send) -> bytes:
        if send.complete:
            self._sent.frames[send.event] = self._sent.frames.get(send.event, 0) + 1
        return chunk(send.payload) if self._parsed.chunked else send.payload

    def _flush(self, pending: list[bytes]) -> None:
        if pending:
            self._write(b"".join(pending))
            pending.clear()

    async def _interrupt(self, action: Action) -> bool:
        """Carry out an action that is not plain sending, and return whether the reply goes on."""
        match action:
            case Close():
                self._peer.close()
                return False
            case Reset():
                self._peer.reset()
                return False
            case Pause(seconds):
                await self._wait(seconds)
                return self._still_here()
            case HoldHere(hold):
                await self._peer.acknowledged()
                return self._still_here() and await self._hold(self._desk.holds[hold])
            case Fired(kind, detail):
                await self._peer.acknowledged()
                if not self._still_here():
                    return False
                self._journal.append(
                    FaultFired(at_seconds=self._journal.now(), request=self.number, kind=kind, detail=detail)
                )
                return True
            case _:
                raise TypeError(f"not an interruption: {action}")

    def _still_here(self) -> bool:
        if self._peer.left.is_set():
            self._record_left()
            return False
        return not self._desk.stopping.is_set()


def _encode_plain(plain: PlainReply, *, with_body: bool, keep_alive: bool) -> bytes:
    connection = () if keep_alive else (("connection", "close"),)
    length = () if plain.status in (204, 304) else (("content-length", str(len(plain.body))),)
    encoded = head(plain.status, (*plain.headers, *length, *connection))
    return encoded + plain.body if with_body and length else encoded


def garbage_reply(desk: Desk, garbage: Garbage) -> bytes:
    """Encode the answer to something that is no request; the connection ends with it."""
    error = ErrorReply(garbage.status, "invalid_request_error", garbage.reason)
    plain = desk.dialect.error(error, Served("", "req_none", "", 0, 0))
    return _encode_plain(plain, with_body=True, keep_alive=False)


def _body_for_journal(body: bytes) -> Any:
    if not body:
        return None
    try:
        return decode_json(body)
    except NotJsonError:
        return body.decode("utf-8", "replace")
