"""What all connections of a provider share, and the admission of a request: its dialect, its problems, its step.

Admission knows no connection and sends nothing. What it decides about a request depends on the request's bytes and on
where the script stands, so the part that depends on the bytes alone is remembered (``fake_provider.recall``).
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from fake_provider.clock import Clock
from fake_provider.dialects import DIALECTS, Dialect, Problem, RefusedRequestError, Served
from fake_provider.hold import Hold, NamedHolds
from fake_provider.inbound import Parsed
from fake_provider.journal import Journal, RequestMismatch, RequestReceived, redacted, redacted_query
from fake_provider.limits import Limits
from fake_provider.playback import NothingToPlay, Playback, Played
from fake_provider.precoded import SteadyKey, SteadyReplies
from fake_provider.recall import Recall
from fake_provider.replies import ErrorReply
from fake_provider.requests import ModelRequest, NotJsonError, decode_json
from fake_provider.script import Script


@dataclass(slots=True)
class Understood:
    """A request as far as its bytes and the script's settings say it; the same bytes are understood the same way.

    Attributes:
        parsed: The request, and what its connection may do with the reply.
        dialect: The one that claims it; the script's first where none does.
        claimed: Whether any does.
        side: Whether it is a side request.
        unauthenticated: The error for a request without a key.
        request: The decoded request; nothing for a side request, one without a key and one of the wrong shape.
        problems: Why the real API refuses it, in order.
        headers: As the journal shows them.
        query: As the journal shows it.
        body: As the journal shows it.
        steady_key: Where the bytes of a steady reply to it are found; nothing while nobody looked.
    """

    parsed: Parsed
    dialect: Dialect
    claimed: bool
    side: bool
    unauthenticated: ErrorReply | None
    request: ModelRequest | None
    problems: tuple[Problem, ...]
    headers: Mapping[str, str]
    query: str
    body: Any
    steady_key: SteadyKey | None = None


@dataclass(slots=True)
class Admitted:
    """A request with its number and the script's answer.

    Attributes:
        number: Requests count from 1.
        request_id: As a header shows it.
        understood: What its bytes say.
        played: The script's answer; nothing for a request that no step may answer.
        lane: The lane it belongs to, where one takes it.
    """

    number: int
    request_id: str
    understood: Understood
    played: Played | NothingToPlay | None
    lane: str | None


class Desk:
    """What all connections of a provider share: the played script, the holds, the journal, the clock.

    Args:
        script: What to answer.
        journal: Where to record.
        holds: Places at which to keep clients waiting.
        time_scale: Scripted waits are divided by this.
    """

    def __init__(self, script: Script, journal: Journal, holds: Sequence[Hold], time_scale: float) -> None:
        self.journal = journal
        self.holds = list(holds)
        self.named_holds = NamedHolds()
        self.clock = Clock(time_scale)
        self.stopping = asyncio.Event()
        self._request_count = 0
        self.load(script)

    def load(self, script: Script) -> None:
        """Play another script from its beginning; the numbers of requests go on."""
        self.script = script
        self.dialects: tuple[Dialect, ...] = tuple(DIALECTS[name] for name in script.dialects)
        self._reasons = script.reasons
        self.playback = Playback(script)
        self.recall: Recall[Understood] = Recall(self.understand)
        self.steady_replies = SteadyReplies()

    def understand(self, parsed: Parsed) -> Understood:
        """Understand a request; pure but for the script's settings."""
        received = parsed.received
        dialect = next((dialect for dialect in self.dialects if dialect.claims(received)), None)
        claimed = dialect is not None
        dialect = dialect or self.dialects[0]
        side = not claimed or not dialect.is_model_request(received)
        unauthenticated = dialect.unauthenticated(received) if self.script.require_key and claimed else None
        request: ModelRequest | None = None
        problems: tuple[Problem, ...] = ()
        if not side and unauthenticated is None:
            try:
                request = dialect.decode(received)
                problems = self._held_to(dialect.problems(request, self.script.window_tokens))
            except RefusedRequestError as refused:
                problems = refused.problems
        return Understood(
            parsed=parsed,
            dialect=dialect,
            claimed=claimed,
            side=side,
            unauthenticated=unauthenticated,
            request=request,
            problems=problems,
            headers=redacted(received.headers),
            query=redacted_query(received.query),
            body=_body_for_journal(received.body) if request is None else request.body,
        )

    def _held_to(self, problems: tuple[Problem, ...]) -> tuple[Problem, ...]:
        """Return the problems that a client can help: the reasoning that it lacks, it may never have been sent.

        A real model reasons wherever it is told to. A script that never does would make every client fail.
        """
        if self._reasons or not problems:
            return problems
        return tuple(problem for problem in problems if not problem.wants_reasoning)

    def next_number(self) -> int:
        """Return the number of a request that has just been read completely."""
        self._request_count += 1
        return self._request_count

    def admit(self, understood: Understood, connection: int) -> Admitted:
        """Number a request, take its step and record both, all at one moment: the journal's order is the numbers'."""
        number = self.next_number()
        now = self.journal.now()
        request = understood.request
        played: Played | NothingToPlay | None = None
        lane: str | None = None
        if request is not None and understood.problems:
            taken = self.script.lane_for(request)
            lane = None if taken is None else taken.name
        elif request is not None:
            played = self.playback.play(request, self.clock.scripted(now))
            lane = played.lane
        received = RequestReceived(
            at_seconds=now,
            request=number,
            connection=connection,
            lane=lane,
            step=played.step if isinstance(played, Played) else None,
            method=understood.parsed.received.method,
            path=understood.parsed.received.path,
            query=understood.query,
            headers=understood.headers,
            body=understood.body,
            model=None if request is None else request.model,
            stream=request is not None and request.stream,
            side=understood.side,
            dialect=understood.dialect.name if understood.claimed else None,
        )
        self.journal.append(received)
        if isinstance(played, Played) and played.mismatches:
            self.journal.append(
                RequestMismatch(
                    at_seconds=self.journal.now(),
                    request=number,
                    step=played.step,
                    differences=tuple(str(mismatch) for mismatch in played.mismatches),
                )
            )
        return Admitted(number, understood.dialect.request_id(number), understood, played, lane)

    def served(self, admitted: Admitted, message_id: str = "") -> Served:
        """Return what a reply to this request is served to."""
        request, played = admitted.understood.request, admitted.played
        limits, window_tokens = None, None
        if isinstance(played, Played):
            limits, window_tokens = played.limits, played.window_tokens
        return Served(
            message_id=message_id,
            request_id=admitted.request_id,
            model="" if request is None else request.model,
            input_tokens=0 if request is None else request.estimated_tokens,
            window_tokens=window_tokens or self.script.window_tokens,
            body={} if request is None else request.body,
            limits=limits or Limits(),
        )


def _body_for_journal(body: bytes) -> Any:
    if not body:
        return None
    try:
        return decode_json(body)
    except NotJsonError:
        return body.decode("utf-8", "replace")
