"""One admitted request and its reply: holding, and carrying out what is to happen on the wire.

It knows the order of things and records each of them; the bytes leave through a ``Peer``, which is the server's. It
never opens, reads or closes a socket itself, and it never decides what to answer.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, Protocol

from fake_provider.desk import Admitted, Desk, Understood
from fake_provider.dialects import Problem, Served
from fake_provider.faults import Fault, ReplyFault, WireFault
from fake_provider.hold import Hold, HoldPosition
from fake_provider.inbound import Garbage
from fake_provider.journal import (
    ClientLeft,
    FaultFired,
    FaultSkipped,
    HoldReached,
    HoldReleased,
    HoldSkipped,
    ReplyEnded,
    ReplyStarted,
    RequestRefused,
    UnexpectedRequest,
)
from fake_provider.playback import NothingToPlay, Played
from fake_provider.replies import ErrorReply, Reply
from fake_provider.wire import (
    Action,
    Close,
    Draft,
    Fired,
    Framing,
    HoldHere,
    Pause,
    PlainReply,
    Refuse,
    Reset,
    Send,
    SendEnd,
    SendFill,
    SendHead,
    SendRaw,
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

    def cut(self) -> None:
        """Send a FIN after what the peer's kernel has acknowledged, with nothing that says that the stream is over."""

    def reset(self) -> None:
        """Send a RST."""

    def refuse(self, seconds: float, how: Literal["refused", "full"]) -> str | None:
        """Take no new connection for a time; return why that cannot be done, or nothing where it is."""

    async def drained(self) -> None:
        """Wait until the kernel takes more bytes, or the connection is gone."""

    async def acknowledged(self) -> None:
        """Wait until the peer's kernel has acknowledged every byte, or the connection is gone."""


_FILL_BYTES = 64 * 1024
"""How much of a fill is handed over before the kernel is waited for."""


@dataclass(slots=True)
class Sent:
    """What has been sent of one reply; ``bytes`` counts HTTP framing too."""

    status: int | None = None
    frames: dict[str, int] = field(default_factory=dict)
    bytes: int = 0
    complete: bool = False

    def count(self, event: str, times: int = 1) -> None:
        """Count complete events; a body that is not streamed is none."""
        if event != "body":
            self.frames[event] = self.frames.get(event, 0) + times


class Exchange:
    """One admitted request and its reply on a connection."""

    def __init__(self, desk: Desk, peer: Peer, admitted: Admitted) -> None:
        self._desk = desk
        self._peer = peer
        self._admitted = admitted
        self._parsed = admitted.understood.parsed
        self._dialect = admitted.understood.dialect
        self._journal = desk.journal
        self._sent = Sent()
        self._framing = Framing(
            keep_alive=self._parsed.keep_alive, with_body=self._parsed.received.method != "HEAD", chunked=False
        )
        self.number = admitted.number
        self._holds: list[Hold] = []
        self._fault_told = False

    async def run(self) -> bool:
        """Answer the request, and return whether the connection can be used again."""
        try:
            await self._answer()
        finally:
            self._record_ended()
        return self._sent.complete and self._framing.keep_alive

    def _record_ended(self) -> None:
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

    async def _answer(self) -> None:
        understood, played = self._admitted.understood, self._admitted.played
        served = self._desk.served(self._admitted)
        if understood.unauthenticated is not None:
            self._record_refused((Problem("authentication", understood.unauthenticated.message),))
            await self._send_plain(self._dialect.error(understood.unauthenticated, served))
        elif understood.side:
            await self._send_plain(self._dialect.side_reply(self._parsed.received, self._admitted.request_id))
        elif self._admitted.lane is not None and not await self._hold_received(self._admitted.lane):
            return
        elif understood.problems:
            await self._refuse(understood.problems)
        elif isinstance(played, NothingToPlay):
            await self._unexpected(played)
        elif played is not None:
            await self._perform(played)

    async def _refuse(self, problems: Sequence[Problem]) -> None:
        self._record_refused(problems)
        await self._send_plain(self._dialect.refusal(problems[0], self._desk.served(self._admitted)))

    def _record_refused(self, problems: Sequence[Problem]) -> None:
        self._journal.append(
            RequestRefused(
                at_seconds=self._journal.now(),
                request=self.number,
                rules=tuple(problem.rule for problem in problems),
                problems=tuple(problem.message for problem in problems),
            )
        )

    async def _unexpected(self, nothing: NothingToPlay) -> None:
        self._journal.append(
            UnexpectedRequest(
                at_seconds=self._journal.now(), request=self.number, lane=nothing.lane, reason=nothing.reason
            )
        )
        message = f"unexpected request {self.number}: {nothing.reason}"
        error = ErrorReply(400, "invalid_request_error", message, headers=(("x-should-retry", "false"),))
        await self._send_plain(self._dialect.error(error, self._desk.served(self._admitted)))

    async def _perform(self, played: Played) -> None:
        served = self._desk.served(self._admitted, played.message_id)
        answer, fault = played.answer, played.fault
        hold = self._named_hold(played)
        if hold is not None and hold.position == "request.received" and not await self._hold(hold):
            return
        draft = drafted(self._admitted.understood, answer, served)
        draft = replace(draft, frames=settled(draft.frames))
        if isinstance(fault, ReplyFault):
            draft, actions = self._reshaped(draft, answer, fault, served)
        else:
            actions = self._struck(draft, fault)
        actions = self._with_holds(draft, actions, played.lane)
        if hold is not None and hold.position == "reply.streaming":
            actions = self._with_hold(actions, hold)
        await self._carry_out(actions, fault)

    def _struck(self, draft: Draft, fault: WireFault | None) -> tuple[Action, ...]:
        if fault is None:
            return draft.actions()
        reason = fault.unreachable(draft)
        if reason is None:
            return fault.strike(draft, self._dialect)
        self._skip_fault(fault.kind, reason)
        return draft.actions()

    def _reshaped(
        self, draft: Draft, answer: Reply | ErrorReply, fault: ReplyFault, served: Served
    ) -> tuple[Draft, tuple[Action, ...]]:
        """Return the draft and the actions of a reply with a fault in what it says."""
        reason = self._unsayable(answer, fault)
        if reason is None and isinstance(answer, Reply):
            said = drafted(self._admitted.understood, fault.reshape(answer), served)
            if [frame.payload for frame in said.frames] != [frame.payload for frame in draft.frames]:
                *before, end = said.actions()
                return said, (*before, Fired(fault.kind, "in the whole reply", delivered=True), end)
            reason = f"it makes no difference to this reply in {self._dialect.name}"
        self._skip_fault(fault.kind, reason or "it does not fit the reply")
        return draft, draft.actions()

    def _unsayable(self, answer: Reply | ErrorReply, fault: ReplyFault) -> str | None:
        if isinstance(answer, ErrorReply):
            return "it answers with a status"
        return fault.unsayable(answer) or self._dialect.unsayable(fault.reshape(answer))

    def _with_holds(self, draft: Draft, actions: tuple[Action, ...], lane: str) -> tuple[Action, ...]:
        if not any(isinstance(action, SendHead) for action in actions) or draft.status >= 400:
            return actions
        for hold in self._desk.holds:
            if hold.position != "reply.streaming" or not hold.counts(lane):
                continue
            if not draft.streamed:
                self._skip_hold(hold, "the request asked for a reply that is not streamed")
                continue
            actions = self._with_hold(actions, hold)
        return actions

    def _with_hold(self, actions: tuple[Action, ...], hold: Hold) -> tuple[Action, ...]:
        held = with_hold(actions, len(self._holds), hold.event, hold.event_nth)
        if held is None:
            self._skip_hold(hold, f"the reply sends no complete {hold.event} number {hold.event_nth}")
            return actions
        self._holds.append(hold)
        return held

    def _named_hold(self, played: Played) -> Hold | None:
        step = played.hold
        if step is None:
            return None
        position: HoldPosition = "request.received" if step.event is None else "reply.streaming"
        return Hold(position, lane=played.lane, event=step.event, event_nth=step.nth, name=step.name)

    def _skip_fault(self, kind: str, reason: str) -> None:
        self._fault_told = True
        self._journal.append(
            FaultSkipped(at_seconds=self._journal.now(), request=self.number, kind=kind, reason=reason)
        )

    def _skip_hold(self, hold: Hold, reason: str) -> None:
        self._journal.append(
            HoldSkipped(at_seconds=self._journal.now(), request=self.number, position=hold.position, reason=reason)
        )

    async def _hold_received(self, lane: str) -> bool:
        """Hold at ``request.received`` where a hold says so, and return whether the client is still there."""
        for hold in tuple(self._desk.holds):
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
        if hold.name is not None:
            self._desk.named_holds.arrive(hold)
        await self._wait(None, hold.released)
        if hold.name is not None:
            self._desk.named_holds.leave(hold)
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
        await self._carry_out(Draft.of_plain(plain).actions(), None)

    async def _finish(self) -> None:
        """Wait until the kernel has taken the reply; a client that is gone by then did not get it."""
        await self._peer.drained()
        if self._peer.lost:
            self._record_left()
        else:
            self._sent.complete = True

    async def _carry_out(self, actions: Sequence[Action], fault: Fault | None) -> None:
        """Carry out the actions of a reply, in order, until one of them ends it or the client leaves."""
        pending: list[bytes] = []
        by_event = self._desk.script.flush == "event"
        for action in actions:
            if isinstance(action, SendHead):
                self._start(action.status)
            if isinstance(action, SendRaw) or (isinstance(action, SendHead | Send) and action.drip is None):
                pending.append(self._framing.encode(action))
                if isinstance(action, Send) and action.complete:
                    self._sent.count(action.event)
                if by_event:
                    self._flush(pending)
                continue
            if isinstance(action, SendEnd):
                pending.append(self._framing.encode(action))
                self._flush(pending)
                await self._finish()
                continue
            self._flush(pending)
            if not await self._interrupt(action):
                break
        if fault is not None and not self._fault_told:
            self._skip_fault(fault.kind, "the client left before the fault's place was reached")

    def _flush(self, pending: list[bytes]) -> None:
        if pending:
            self._write(b"".join(pending))
            pending.clear()

    async def _interrupt(self, action: Action) -> bool:
        """Carry out an action that is not plain sending, and return whether the reply goes on."""
        match action:
            case Close():
                self._framing.keep_alive = False
                self._peer.cut()
                return False
            case Reset():
                self._framing.keep_alive = False
                self._peer.reset()
                return False
            case Pause():
                return await self._pause(action)
            case SendHead() | Send():
                return await self._drip(action)
            case SendFill():
                return await self._fill(action)
            case Refuse(seconds, how):
                return self._refuse_connections(seconds, how)
            case HoldHere(hold):
                await self._peer.acknowledged()
                return self._still_here() and await self._hold(self._holds[hold])
            case Fired():
                return await self._fire(action)
            case _:
                raise TypeError(f"not an interruption: {action}")

    async def _fire(self, fired: Fired) -> bool:
        if not fired.abrupt:
            await self._peer.acknowledged()
            gone = self._peer.lost or self._desk.stopping.is_set()
            if gone or not (fired.delivered or self._still_here()):
                if self._peer.lost:
                    self._record_left()
                return False
        self._fault_told = True
        self._journal.append(
            FaultFired(at_seconds=self._journal.now(), request=self.number, kind=fired.kind, detail=fired.detail)
        )
        return True

    async def _pause(self, pause: Pause) -> bool:
        if pause.every_seconds is None or pause.ping is None:
            await self._wait(pause.seconds)
            return self._still_here()
        left = math.inf if pause.seconds is None else pause.seconds
        while left > 0:
            await self._wait(min(left, pause.every_seconds))
            if not self._still_here():
                return False
            left -= pause.every_seconds
            if left > 0:
                self._sent.count(pause.ping.event)
                self._write(self._framing.encode(pause.ping))
        return True

    async def _drip(self, action: SendHead | Send) -> bool:
        """Send one head or event in small pieces, as chunks of their own where the body is chunked."""
        drip = action.drip
        if drip is None:
            raise TypeError(f"nothing drips in {action}")
        if isinstance(action, SendHead):
            data, framed = self._framing.encode(action), False
        else:
            data, framed = action.payload, True
        for start in range(0, len(data), drip.bytes_each):
            if start:
                await self._wait(drip.seconds)
                if not self._still_here():
                    return False
            piece = data[start : start + drip.bytes_each]
            self._write(self._framing.body(piece) if framed else piece)
        if isinstance(action, Send) and action.complete:
            self._sent.count(action.event)
        return True

    async def _fill(self, fill: SendFill) -> bool:
        at_once = max(1, _FILL_BYTES // len(fill.payload))
        for first in range(0, fill.pieces, at_once):
            indices = range(first, min(first + at_once, fill.pieces))
            self._write(b"".join(self._framing.body(fill.piece(index)) for index in indices))
            self._sent.count(fill.event, len(indices))
            await self._peer.drained()
            if not self._still_here():
                return False
        return True

    def _refuse_connections(self, seconds: float, how: Literal["refused", "full"]) -> bool:
        reason = self._peer.refuse(seconds, how)
        if reason is None:
            return True
        self._skip_fault("refuse_connections", reason)
        return False

    def _still_here(self) -> bool:
        if self._peer.left.is_set():
            self._record_left()
            return False
        return not self._desk.stopping.is_set()


def drafted(understood: Understood, answer: Reply | ErrorReply, served: Served) -> Draft:
    """Return the reply to a request as it leaves undisturbed."""
    dialect, request = understood.dialect, understood.request
    chunks, received = understood.parsed.chunked, understood.parsed.received
    if isinstance(answer, ErrorReply):
        return Draft.of_plain(dialect.error(answer, served), chunks=chunks, request=received)
    if request is None or not request.stream:
        return Draft.of_plain(dialect.whole(answer, served), chunks=chunks, request=received)
    return Draft(
        status=200,
        headers=dialect.stream_headers(served),
        frames=dialect.frames(answer, served),
        streamed=True,
        transfer="chunked" if chunks else "until_close",
        chunks=chunks,
        request=received,
    )


def garbage_reply(desk: Desk, garbage: Garbage) -> bytes:
    """Encode the answer to something that is no request; the connection ends with it."""
    error = ErrorReply(garbage.status, "invalid_request_error", garbage.reason)
    dialect = desk.dialects[0]
    plain = dialect.error(error, Served("", dialect.request_id(0), "", 0, 0))
    framing = Framing(keep_alive=False, with_body=True, chunked=False)
    return b"".join(framing.encode(action) for action in Draft.of_plain(plain).actions())
