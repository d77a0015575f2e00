"""The request runner over a scripted transport: attempts, their identity, delays, stream fallback, model chain."""

import json
import random
from collections.abc import Sequence

import pytest

from reference_runtime.counters import Counters
from reference_runtime.recovery.errors import FailureKind, ModelDecision
from reference_runtime.requests import (
    LogicalRequest,
    ModelChain,
    RequestFailedError,
    RequestLimits,
    RequestRunner,
)
from tests.reference_runtime.parts import (
    Cut,
    InstantClock,
    NoConnection,
    RememberingSink,
    Scripted,
    ScriptedTransport,
    Silence,
    failed,
    message_events,
    said,
    sse,
    start_event,
    text_block,
    tool_block,
)

REQUEST = LogicalRequest("r1", "s1", 3, {"messages": [], "max_tokens": 9})
OVERLOADED = failed(529, "overloaded_error")
BEGUN = sse(*message_events(tool_block("t", "Bash", {"command": "x"}))[:3])


class Bench:
    """A runner with everything around it."""

    def __init__(
        self,
        *answers: Scripted | NoConnection,
        max_retries: int = 2,
        stream_fallback: bool = True,
        models: Sequence[str] = ("primary",),
        idle_seconds: float = 50.0,
        show_partial: bool = False,
    ) -> None:
        self.transport = ScriptedTransport(*answers)
        self.clock = InstantClock(scale=1000)
        self.sink = RememberingSink()
        self.counters = Counters()
        self.discarded: list[str] = []
        self.chain = ModelChain(tuple(models))
        limits = RequestLimits(max_retries, idle_seconds, 600, stream_fallback, show_partial)
        self.runner = RequestRunner(
            self.transport, limits, self.clock, random.Random(7), self.sink, self.counters, self.discarded.append
        )

    async def text(self) -> str:
        return (await self.runner.run(REQUEST, self.chain)).text

    async def failure(self) -> RequestFailedError:
        with pytest.raises(RequestFailedError) as raised:
            await self.runner.run(REQUEST, self.chain)
        return raised.value

    @property
    def models(self) -> list[str]:
        return [body["model"] for body in self.transport.bodies]

    @property
    def streamed(self) -> list[bool]:
        return [body["stream"] for body in self.transport.bodies]


def whole(text: str) -> Scripted:
    """A reply that is not streamed."""
    message = {"model": "m", "content": [text_block(text)], "stop_reason": "end_turn", "usage": {}}
    return Scripted([json.dumps(message).encode()], headers={"content-type": "application/json"})


async def test_two_retries_are_three_attempts_of_one_request() -> None:
    bench = Bench(OVERLOADED, OVERLOADED, said("Done."))
    assert await bench.text() == "Done."
    assert [h["x-crashcart-attempt"] for h in bench.transport.headers] == ["1", "2", "3"]
    assert {h["x-crashcart-request"] for h in bench.transport.headers} == {"r1"}
    assert {h["x-crashcart-turn"] for h in bench.transport.headers} == {"3"}
    assert {h["x-crashcart-session"] for h in bench.transport.headers} == {"s1"}
    assert bench.counters.http_attempts == 3
    assert [frame["attempt"] for frame in bench.sink.of("api_retry")] == [1, 2]


async def test_the_delays_grow_and_are_reported_as_they_were_waited() -> None:
    bench = Bench(OVERLOADED, NoConnection(), OVERLOADED, said("Done."), max_retries=3)
    await bench.text()
    first, second, third = bench.clock.slept_seconds
    assert first <= 0.5 < second * 1.34 <= 1.34 < third * 1.34 <= 2.68
    assert [frame["delay_seconds"] for frame in bench.sink.of("api_retry")] == [first, second, third]


async def test_a_wish_for_a_delay_is_kept() -> None:
    bench = Bench(failed(429, "rate_limit_error", retry_after="11"), failed(503, retry_after_ms="1500"), said("x"))
    await bench.text()
    assert bench.clock.slept_seconds == [11, 1.5]


@pytest.mark.parametrize("status", [400, 401, 402, 403, 404, 413, 422])
async def test_a_lasting_error_is_asked_once(status: int) -> None:
    bench = Bench(failed(status, "x"))
    failure = await bench.failure()
    assert failure.failure.status == status
    assert len(bench.transport.bodies) == 1
    assert bench.clock.slept_seconds == []


async def test_the_providers_word_wins_over_its_status() -> None:
    assert await Bench(failed(400, x_should_retry="true"), said("x")).text() == "x"
    bench = Bench(failed(529, x_should_retry="false"))
    assert (await bench.failure()).decision is ModelDecision.END_API_ERROR
    assert len(bench.transport.bodies) == 1


async def test_the_chain_gives_each_model_its_own_attempts() -> None:
    bench = Bench(*[OVERLOADED] * 3, said("Done."), models=("primary", "secondary", "third"))
    assert await bench.text() == "Done."
    assert bench.models == ["primary", "primary", "primary", "secondary"]
    assert bench.chain.current == "secondary"
    assert bench.counters.model_fallbacks == 1
    assert [(frame["from"], frame["to"]) for frame in bench.sink.of("model_fallback")] == [("primary", "secondary")]


async def test_a_fallback_has_as_many_attempts_as_the_first_model() -> None:
    bench = Bench(*[OVERLOADED] * 3, said("Done."), max_retries=1, models=("a", "b"))
    assert await bench.text() == "Done."
    assert bench.models == ["a", "a", "b", "b"]
    assert [h["x-crashcart-attempt"] for h in bench.transport.headers] == ["1", "2", "3", "4"]


async def test_the_end_of_the_chain_is_an_api_error() -> None:
    bench = Bench(*[OVERLOADED] * 2, max_retries=0, models=("a", "b"))
    assert (await bench.failure()).decision is ModelDecision.END_API_ERROR
    assert bench.models == ["a", "b"]


async def test_a_missing_model_falls_back_at_once_and_a_missing_connection_never() -> None:
    assert await Bench(failed(404, "not_found_error"), said("x"), models=("a", "b")).text() == "x"
    bench = Bench(NoConnection(), max_retries=0, models=("a", "b"))
    assert (await bench.failure()).failure.kind is FailureKind.CONNECTION
    assert bench.models == ["a"]


@pytest.mark.parametrize(
    ("tail", "reason"),
    [
        (Cut(), FailureKind.STREAM_CUT),
        (Silence(), FailureKind.STREAM_STALL),
        (b"data: {garbage\n\n", FailureKind.STREAM_MALFORMED),
        (b"", FailureKind.STREAM_CUT),
    ],
)
async def test_a_broken_stream_is_asked_again_without_streaming_once(
    tail: bytes | Cut | Silence, reason: FailureKind
) -> None:
    bench = Bench(Scripted([BEGUN, tail]), whole("Done."), max_retries=0)
    assert await bench.text() == "Done."
    assert bench.streamed == [True, False]
    assert [frame["reason"] for frame in bench.sink.of("stream_fallback")] == [reason]
    assert bench.discarded == [reason]
    assert (bench.counters.stream_fallbacks, bench.counters.http_attempts) == (1, 2)
    assert bench.clock.slept_seconds == []


async def test_the_stream_fallback_is_spent_after_one_use() -> None:
    bench = Bench(Scripted([BEGUN, Cut()]), failed(500), failed(500), max_retries=1)
    assert (await bench.failure()).failure.kind is FailureKind.SERVER_ERROR
    assert bench.streamed == [True, False, False]
    assert bench.counters.stream_fallbacks == 1


async def test_with_the_fallback_off_a_broken_stream_is_a_retry() -> None:
    bench = Bench(Scripted([BEGUN, Cut()]), said("Done."), stream_fallback=False)
    assert await bench.text() == "Done."
    assert bench.streamed == [True, True]
    assert bench.counters.stream_fallbacks == 0


async def test_an_error_event_is_treated_as_its_class() -> None:
    error = {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}
    bench = Bench(Scripted([sse(start_event(), error)]), said("Done."))
    assert await bench.text() == "Done."
    assert bench.streamed == [True, True]
    assert bench.discarded == [FailureKind.OVERLOADED]
    denied = {"type": "error", "error": {"type": "permission_error", "message": "no"}}
    assert (await Bench(Scripted([sse(start_event(), denied)])).failure()).failure.kind is FailureKind.PERMISSION


async def test_a_stream_that_never_ends_its_body_still_gives_its_message() -> None:
    bench = Bench(Scripted([sse(*message_events(text_block("Done."))), Silence()]))
    assert await bench.text() == "Done."
    assert Bench(Scripted([sse(*message_events(text_block("x"))), Cut()])).discarded == []


@pytest.mark.parametrize(
    "answer",
    [
        Scripted([b""], headers={"content-type": "application/json"}),
        Scripted([b"<html>"], headers={"content-type": "text/html"}),
        Scripted([b"hello"], headers={}),
    ],
)
async def test_what_is_no_message_is_retried_and_then_ends_typed(answer: Scripted) -> None:
    assert await Bench(answer, said("x"), max_retries=1).text() == "x"
    bench = Bench(answer, answer, max_retries=1)
    assert (await bench.failure()).decision is ModelDecision.END_MODEL_ERROR
    assert len(bench.transport.bodies) == 2


async def test_over_length_has_one_kind_whatever_its_form() -> None:
    for answer in (failed(413), failed(400, message="prompt is too long: 9 tokens > 8 maximum")):
        assert (await Bench(answer).failure()).decision is ModelDecision.END_PROMPT_TOO_LONG


async def test_each_attempt_leaves_its_correlation() -> None:
    bench = Bench(failed(529, "overloaded_error", request_id="req_1"), said("x", model="served"))
    await bench.text()
    first, second = bench.sink.of("request")
    assert (first["server_request"], first["status"], first["failure"]) == ("req_1", 529, "overloaded")
    assert (second["model"], second["served_model"], second["stop_reason"]) == ("primary", "served", "end_turn")
    assert second["sent_seconds"] <= second["first_byte_seconds"] <= second["last_byte_seconds"]
    assert {first["request"], second["request"]} == {"r1"}


async def test_text_is_shown_while_it_streams_when_asked_for_and_belongs_to_nothing_yet() -> None:
    cut = Scripted([sse(*message_events(text_block("Half an answer"))[:3]), Cut()])
    bench = Bench(cut, whole("The answer."), show_partial=True)
    assert await bench.text() == "The answer."
    shown = [frame for frame in bench.sink.frames if frame["type"] == "partial"]
    assert "".join(frame["text"] for frame in shown).startswith("Half")
    assert {(frame["request"], frame["attempt"], frame["kind"]) for frame in shown} == {("r1", 1, "text")}
    assert bench.discarded == ["stream_cut"]


async def test_nothing_is_shown_while_it_streams_unless_asked_for() -> None:
    bench = Bench(said("Done."))
    await bench.text()
    assert [frame for frame in bench.sink.frames if frame["type"] == "partial"] == []
