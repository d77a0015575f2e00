"""The request runner: the HTTP attempts of one logical model request, until a reply or a typed failure (A, B, C1).

It owns attempts and nothing else: no turn, no tool, no message. What follows a failure is read from the tables in
`recovery/errors.py`.
"""

import asyncio
import json
import random
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, aclosing
from dataclasses import dataclass
from typing import Any, Protocol

from reference_runtime.assembly import (
    EventDecoder,
    MalformedReplyError,
    MessageAssembler,
    ProviderErrorEvent,
    Reply,
    reply_of_body,
)
from reference_runtime.clock import Clock
from reference_runtime.counters import Counters
from reference_runtime.frames import FrameSink, system_frame
from reference_runtime.recovery.backoff import delay_seconds
from reference_runtime.recovery.errors import (
    ATTEMPTS,
    MODELS,
    AttemptDecision,
    Directive,
    FailureKind,
    ModelDecision,
    StreamFallback,
    directive_of,
    kind_of_status,
    kind_of_stream_error,
)
from reference_runtime.recovery.turns import answer

ERROR_TEXT_CHARACTERS_MAX = 2000
CLOSING_SECONDS_MAX = 1.0


class TransportError(Exception):
    """The connection could not be made, or ended before what it had to carry."""


class Response(Protocol):
    """The head of a response and its body as it comes; header names in lower case."""

    @property
    def status(self) -> int:
        """HTTP status."""

    @property
    def headers(self) -> Mapping[str, str]:
        """Response headers."""

    def chunks(self) -> AsyncGenerator[bytes, None]:
        """The body as it arrives. Raises TransportError when it ends too early."""


class Transport(Protocol):
    """Sends one HTTP request; never repeats it."""

    def post(self, path: str, headers: Mapping[str, str], body: bytes) -> AbstractAsyncContextManager[Response]:
        """Send and enter with the response's head. Raises TransportError."""


class AttemptFailure(Exception):  # noqa: N818 - a failure is a fact here, and the tables decide
    """One attempt failed: its kind, what was said, and the response it came with, if there was one."""

    def __init__(
        self, kind: FailureKind, message: str, status: int | None = None, headers: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(message)
        self.kind = kind
        self.message = message
        self.status = status
        self.headers = headers or {}

    @property
    def directive(self) -> Directive:
        """The provider's word on retrying."""
        return directive_of(self.headers)


class RequestFailedError(Exception):
    """The logical request is given up."""

    def __init__(self, failure: AttemptFailure, decision: ModelDecision) -> None:
        super().__init__(failure.message)
        self.failure = failure
        self.decision = decision


@dataclass
class ModelChain:
    """The model asked for and the fallbacks after it; a fallback stays in charge for the rest of the run."""

    models: tuple[str, ...]
    position: int = 0

    @property
    def current(self) -> str:
        """The model to ask now."""
        return self.models[self.position]

    @property
    def has_next(self) -> bool:
        """Whether a fallback is left."""
        return self.position + 1 < len(self.models)


@dataclass(frozen=True)
class LogicalRequest:
    """One request of the agent loop; `body` holds everything but the model and the streaming flag."""

    request_id: str
    session_id: str
    turn: int
    body: Mapping[str, Any]


@dataclass(frozen=True)
class RequestLimits:
    """Budgets of the request layer, seconds unscaled; and whether text is shown while it streams (B2)."""

    max_retries: int
    stream_idle_timeout_seconds: float
    reply_timeout_seconds: float
    stream_fallback_allowed: bool
    show_partial: bool = False


@dataclass
class _Progress:
    """Where one logical request stands: attempts in all and for the present model, and how it is sent."""

    attempt: int = 0
    model_attempts: int = 0
    streaming: bool = True
    fallback_used: bool = False


@dataclass
class _Trace:
    """What one attempt showed (A5); seconds since the run began, unscaled."""

    request_id: str
    attempt: int
    sent_seconds: float
    status: int | None = None
    server_request: str | None = None
    first_byte_seconds: float | None = None
    last_byte_seconds: float | None = None
    message_begun: bool = False


class RequestRunner:
    """Runs logical requests, one at a time."""

    def __init__(
        self,
        transport: Transport,
        limits: RequestLimits,
        clock: Clock,
        source: random.Random,
        sink: FrameSink,
        counters: Counters,
        discard: Callable[[str], None],
    ) -> None:
        """Make a runner.

        Args:
            transport: Where requests go.
            limits: Budgets and time limits.
            clock: All waiting goes through it.
            source: Random source of the jitter.
            sink: Takes the frames about attempts.
            counters: The run's recovery counters.
            discard: Called with a reason when an answer that had begun is thrown away (C2).
        """
        self._transport = transport
        self._limits = limits
        self._clock = clock
        self._source = source
        self._sink = sink
        self._counters = counters
        self._discard = discard
        self._began_seconds = clock.monotonic_seconds()

    async def run(self, request: LogicalRequest, chain: ModelChain) -> Reply:
        """Ask until there is a reply.

        Raises:
            RequestFailedError: Every budget that applies is spent, or the failure is one that lasts.
        """
        progress = _Progress(streaming=True)
        while True:
            progress.attempt += 1
            progress.model_attempts += 1
            try:
                return await self._attempt(request, chain.current, progress)
            except AttemptFailure as failure:
                await self._recover(request, chain, progress, failure)

    async def _recover(
        self, request: LogicalRequest, chain: ModelChain, progress: _Progress, failure: AttemptFailure
    ) -> None:
        fallback_open = self._limits.stream_fallback_allowed and progress.streaming and not progress.fallback_used
        row = ATTEMPTS.decide(
            kind=failure.kind,
            directive=failure.directive,
            attempts_left=answer(so=progress.model_attempts <= self._limits.max_retries),
            stream_fallback=StreamFallback.AVAILABLE if fallback_open else StreamFallback.UNAVAILABLE,
        )
        match row.decision:
            case AttemptDecision.RETRY:
                await self._wait_for_retry(request, progress, failure)
            case AttemptDecision.STREAM_FALLBACK:
                progress.streaming, progress.fallback_used = False, True
                # The budget of attempts is not touched: what is repeated is the way of asking.
                progress.model_attempts -= 1
                self._counters.stream_fallbacks += 1
                self._emit("stream_fallback", request, reason=failure.kind, detail=failure.message)
            case AttemptDecision.GIVE_UP:
                self._next_model(request, chain, progress, failure)

    async def _wait_for_retry(self, request: LogicalRequest, progress: _Progress, failure: AttemptFailure) -> None:
        delay = delay_seconds(progress.model_attempts, failure.headers, self._clock.now(), self._source)
        self._emit(
            "api_retry",
            request,
            attempt=progress.attempt,
            max_retries=self._limits.max_retries,
            delay_seconds=delay,
            status=failure.status,
            reason=failure.kind,
        )
        await self._clock.sleep(delay)

    def _next_model(
        self, request: LogicalRequest, chain: ModelChain, progress: _Progress, failure: AttemptFailure
    ) -> None:
        row = MODELS.decide(kind=failure.kind, fallback_left=answer(so=chain.has_next))
        if row.decision is not ModelDecision.FALL_BACK:
            raise RequestFailedError(failure, row.decision) from failure
        source = chain.current
        chain.position += 1
        progress.model_attempts = 0
        self._counters.model_fallbacks += 1
        self._sink.emit(
            {
                **system_frame("model_fallback", request=request.request_id, reason=failure.kind),
                "from": source,
                "to": chain.current,
            }
        )

    async def _attempt(self, request: LogicalRequest, model: str, progress: _Progress) -> Reply:
        self._counters.http_attempts += 1
        trace = _Trace(request.request_id, progress.attempt, sent_seconds=self._elapsed())
        reply: Reply | None = None
        failure: AttemptFailure | None = None
        try:
            reply = await self._exchange(request, model, progress, trace)
        except AttemptFailure as error:
            failure = error
            raise
        finally:
            self._report(request, model, progress, trace, reply, failure)
            if reply is None and trace.message_begun:
                self._discard(failure.kind if failure else "aborted")
        return reply

    async def _exchange(self, request: LogicalRequest, model: str, progress: _Progress, trace: _Trace) -> Reply:
        body = json.dumps({**request.body, "model": model, "stream": progress.streaming}).encode()
        headers = {
            "x-crashcart-session": request.session_id,
            "x-crashcart-request": request.request_id,
            "x-crashcart-attempt": str(progress.attempt),
            "x-crashcart-turn": str(request.turn),
        }
        try:
            async with asyncio.timeout(self._clock.limit(self._limits.reply_timeout_seconds)) as head_limit:
                async with self._transport.post("/v1/messages", headers, body) as response:
                    head_limit.reschedule(None)
                    trace.status = response.status
                    trace.server_request = response.headers.get("request-id")
                    return await self._read(response, trace)
        except TimeoutError as error:
            raise AttemptFailure(FailureKind.NO_REPLY, "no reply within the time limit") from error
        except TransportError as error:
            kind = FailureKind.STREAM_CUT if trace.message_begun else FailureKind.CONNECTION
            raise AttemptFailure(kind, str(error) or "the connection failed") from error

    async def _read(self, response: Response, trace: _Trace) -> Reply:
        if not 200 <= response.status < 300:
            raise _status_failure(response, await self._body(response, trace))
        content_type = response.headers.get("content-type", "").partition(";")[0].strip().lower()
        if content_type == "text/event-stream":
            return await self._stream(response, trace)
        body = await self._body(response, trace)
        try:
            return reply_of_body(body)
        except MalformedReplyError as error:
            raise AttemptFailure(
                FailureKind.MALFORMED_RESPONSE, str(error), response.status, response.headers
            ) from error

    async def _stream(self, response: Response, trace: _Trace) -> Reply:
        assembler = MessageAssembler()
        try:
            await self._assemble(response, trace, assembler)
        except (TimeoutError, MalformedReplyError, ProviderErrorEvent, TransportError) as error:
            # What comes after a complete message (a missing end of the body) takes nothing from it.
            if not assembler.complete:
                kind, message = _stream_failure(error, self._limits.stream_idle_timeout_seconds)
                raise AttemptFailure(kind, message, response.status, response.headers) from error
        if not assembler.complete:
            message = "the stream ended before its message did"
            raise AttemptFailure(FailureKind.STREAM_CUT, message, response.status, response.headers)
        try:
            return assembler.reply()
        except MalformedReplyError as error:
            kind = FailureKind.STREAM_MALFORMED
            raise AttemptFailure(kind, str(error), response.status, response.headers) from error

    async def _assemble(self, response: Response, trace: _Trace, assembler: MessageAssembler) -> None:
        decoder = EventDecoder()
        idle_seconds = self._clock.limit(self._limits.stream_idle_timeout_seconds)
        now = asyncio.get_running_loop().time
        async with asyncio.timeout(idle_seconds) as watchdog, aclosing(response.chunks()) as chunks:
            async for chunk in chunks:
                self._saw_byte(trace)
                for event in decoder.feed(chunk):
                    assembler.take(event)
                    trace.message_begun = assembler.begun
                    self._show(event, trace)
                    # The message is whole: the body's end is read so that the connection can be used again.
                    spare_seconds = min(idle_seconds, CLOSING_SECONDS_MAX) if assembler.complete else idle_seconds
                    watchdog.reschedule(now() + spare_seconds)

    async def _body(self, response: Response, trace: _Trace) -> bytes:
        body = bytearray()
        async with asyncio.timeout(self._clock.limit(self._limits.reply_timeout_seconds)):
            async with aclosing(response.chunks()) as chunks:
                async for chunk in chunks:
                    self._saw_byte(trace)
                    body += chunk
        return bytes(body)

    def _show(self, event: Mapping[str, Any], trace: _Trace) -> None:
        """Show a piece of text or thinking as it comes; it is part of nothing yet, and a tombstone may follow (B2)."""
        if not self._limits.show_partial or event["type"] != "content_block_delta":
            return
        delta = event["delta"]
        for kind in ("text", "thinking"):
            if kind in delta:
                self._sink.emit(
                    {
                        "type": "partial",
                        "request": trace.request_id,
                        "attempt": trace.attempt,
                        "kind": kind,
                        "text": delta[kind],
                    }
                )

    def _saw_byte(self, trace: _Trace) -> None:
        trace.last_byte_seconds = self._elapsed()
        if trace.first_byte_seconds is None:
            trace.first_byte_seconds = trace.last_byte_seconds

    def _elapsed(self) -> float:
        return round(self._clock.monotonic_seconds() - self._began_seconds, 6)

    def _emit(self, subtype: str, request: LogicalRequest, **fields: Any) -> None:
        self._sink.emit(system_frame(subtype, request=request.request_id, **fields))

    def _report(
        self,
        request: LogicalRequest,
        model: str,
        progress: _Progress,
        trace: _Trace,
        reply: Reply | None,
        failure: AttemptFailure | None,
    ) -> None:
        self._emit(
            "request",
            request,
            server_request=trace.server_request,
            session_id=request.session_id,
            turn=request.turn,
            attempt=progress.attempt,
            provider="anthropic",
            model=model,
            served_model=reply.model if reply else None,
            stream=progress.streaming,
            status=trace.status,
            stop_reason=reply.stop_reason if reply else None,
            failure=failure.kind if failure else None,
            sent_seconds=trace.sent_seconds,
            first_byte_seconds=trace.first_byte_seconds,
            last_byte_seconds=trace.last_byte_seconds,
        )


def _stream_failure(error: Exception, idle_seconds: float) -> tuple[FailureKind, str]:
    if isinstance(error, ProviderErrorEvent):
        return kind_of_stream_error(error.error_type, error.message), error.message
    if isinstance(error, MalformedReplyError):
        return FailureKind.STREAM_MALFORMED, str(error)
    if isinstance(error, TimeoutError):
        return FailureKind.STREAM_STALL, f"no event for {idle_seconds:g} s"
    return FailureKind.STREAM_CUT, str(error) or "the stream was cut"


def _status_failure(response: Response, body: bytes) -> AttemptFailure:
    text = body.decode("utf-8", "replace").strip()[:ERROR_TEXT_CHARACTERS_MAX]
    error_type, message = "", text or f"HTTP {response.status} without a body"
    try:
        value = json.loads(body)
        error_type, message = str(value["error"]["type"]), str(value["error"]["message"])
    except (ValueError, KeyError, TypeError):
        # Gateways answer with pages of their own; the status alone then names the kind.
        error_type = ""
    kind = kind_of_status(response.status, error_type, message)
    return AttemptFailure(kind, message, response.status, response.headers)
