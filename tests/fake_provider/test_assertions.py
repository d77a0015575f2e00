"""What a test asks of a journal, over journals made by hand and by real requests."""

from __future__ import annotations

import httpx
import pytest

from fake_provider import assertions
from fake_provider.handle import ProviderHandle
from fake_provider.journal import ReplyEnded, ReplyStarted, RequestReceived
from tests.fake_provider.dialect_requests import NAMES, asking


def received(request: int, at_seconds: float, lane: str | None = "main", model: str = "m") -> RequestReceived:
    return RequestReceived(
        at_seconds=at_seconds,
        request=request,
        connection=1,
        lane=lane,
        step=None,
        method="POST",
        path="/v1/messages",
        headers={},
        body={},
        model=model,
        stream=False,
        side=lane is None,
    )


def ended(request: int, at_seconds: float, status: int | None) -> ReplyEnded:
    return ReplyEnded(at_seconds=at_seconds, request=request, status=status, frames={}, bytes=0, complete=True)


ENTRIES = (
    received(1, 1.0),
    ReplyStarted(at_seconds=1.1, request=1, status=529),
    ended(1, 1.5, 529),
    received(2, 2.5, model="other"),
    received(3, 2.6, lane=None),
    ended(2, 3.0, None),
    received(4, 2.9),
    received(5, 9.0, lane="titles"),
)


def test_attempts_models_and_statuses_leave_side_requests_out_and_know_lanes() -> None:
    assert [attempt.request for attempt in assertions.attempts(ENTRIES)] == [1, 2, 4, 5]
    assert assertions.models(ENTRIES, "main") == ("m", "other", "m")
    assert assertions.statuses(ENTRIES) == (529, None, None, None)
    assert len(assertions.attempts(ENTRIES, "titles")) == 1


def test_a_reply_has_its_status_as_soon_as_the_client_can_have_seen_it() -> None:
    begun = (received(1, 1.0), ReplyStarted(at_seconds=1.1, request=1, status=200))
    assert assertions.statuses(begun) == (200,)


def test_a_gap_lasts_from_the_end_of_one_answer_to_the_next_attempt() -> None:
    assert assertions.gaps(ENTRIES, "main") == (1.0, 0.0)
    assert assertions.gaps(ENTRIES, "main", time_scale=20) == (20.0, 0.0)


CALL = {"type": "tool_use", "id": "toolu_1", "name": "Bash", "input": {}}
RESULT = {"type": "tool_result", "tool_use_id": "toolu_1", "content": "ok"}


@pytest.mark.parametrize(
    ("messages", "found"),
    [
        ([{"role": "assistant", "content": [CALL]}, {"role": "user", "content": [RESULT]}], ()),
        (
            [{"role": "assistant", "content": [CALL]}, {"role": "user", "content": "no result"}],
            ("request 1: call toolu_1 of Bash has no result",),
        ),
        (
            [{"role": "user", "content": [RESULT]}],
            ("request 1: a result answers toolu_1, and there is no such call",),
        ),
    ],
)
def test_pairing_names_each_call_without_a_result_and_each_result_without_a_call(
    messages: list[object], found: tuple[str, ...]
) -> None:
    asked = asking("anthropic_messages")
    first = {"role": "user", "content": "go"}
    with ProviderHandle([{"say": "hi", "forever": True}]) as provider:
        httpx.post(
            provider.url + asked.path, headers=asked.headers, json={**asked.body, "messages": [first, *messages]}
        )
        assert provider.pairing() == found
        assert bool(provider.refusals()) is bool(found)


@pytest.mark.parametrize("dialect", NAMES)
def test_every_dialect_is_decoded_again(dialect: str) -> None:
    asked = asking(dialect)
    with ProviderHandle(["overloaded", {"say": "hi"}]) as provider:
        for _ in range(2):
            httpx.post(provider.url + asked.path, headers=asked.headers, json=asked.body)
        [first, _] = provider.attempts()
        request = assertions.decoded(first)
        assert request is not None
        assert request.last_user_text == "hi"
        assert provider.models() == ("m", "m")
        assert provider.statuses()[1] == 200
        assert provider.pairing() == ()


def test_a_failed_expectation_says_all_that_differs_and_shows_the_journal() -> None:
    asked = asking("openai_chat")
    with ProviderHandle(["server_error", {"say": "hi", "close": {}}]) as provider:
        httpx.post(provider.url + asked.path, headers=asked.headers, json=asked.body)
        with pytest.raises(httpx.TransportError):
            httpx.post(provider.url + asked.path, headers=asked.headers, json=asked.body)
        provider.expect(attempts=2, statuses=[500, None], models=["m", "m"], faults=["close"], refusals=[], pairing=[])
        with pytest.raises(AssertionError) as failure:
            provider.expect(attempts=3, statuses=[500, 200])
        with pytest.raises(TypeError, match="cannot expect 'status'; did you mean 'statuses'"):
            provider.expect(status=[500])
    assert str(failure.value).splitlines() == [
        "attempts: expected 3, found 2",
        "statuses: expected [500, 200], found [500, None]",
        "",
        "#  dialect      lane: step          model  status     what happened",
        "1  openai_chat  main: server_error  m      500",
        "2  openai_chat  main: say           m      no answer  fault close before the first byte",
    ]
