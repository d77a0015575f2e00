"""Checks on what the provider received: how many requests, for which model, with which conversation."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from harness.checks.check import Check, Judgement, equal, holds, unknown
from harness.model.history import History, blocks_of
from harness.model.outcome import Role


def count(expected: int, lane: str = "main") -> Check:
    """The lane got exactly this many model requests (A2)."""
    return Check("requests.count", lambda history: equal(expected, len(history.requests(lane))))


def models(expected: Sequence[str], lane: str = "main") -> Check:
    """The models asked for, request by request (C1)."""
    return Check(
        "requests.models",
        lambda history: equal(list(expected), [request.model for request in history.requests(lane)]),
    )


def contain(texts: Mapping[int, str], lane: str = "main") -> Check:
    """Each numbered request of the lane holds its text somewhere in the conversation."""

    def judge(history: History) -> Judgement:
        requests = history.requests(lane)
        missing = {}
        for number, text in texts.items():
            if number > len(requests):
                missing[number] = f"there is no request {number}; the lane got {len(requests)}"
                continue
            if not any(text in held for held in texts_in(requests[number - 1].messages)):
                missing[number] = f"{text!r} is not in its messages"
        return holds(condition=not missing, expected=dict(texts), actual=missing or "all found")

    return Check("requests.contain", judge)


def carry_earlier_turns(first_phase: int = 1) -> Check:
    """After a resume, the first request holds the user's texts of the last request before it, in their order (J1)."""

    def judge(history: History) -> Judgement:
        before = [request for request in history.requests() if request.phase == first_phase]
        after = [request for request in history.requests() if request.phase > first_phase]
        if not before or not after:
            return unknown("requests before and after the resume", "one of the two phases sent no request")
        old, new = user_texts(before[-1].messages), user_texts(after[0].messages)
        if not old:
            return unknown("a user's text before the resume", "the last request before it holds none")
        remaining = iter(new)
        return holds(
            condition=all(text in remaining for text in old),  # each search goes on where the last one ended
            expected={"user texts of the last request before": old},
            actual={"user texts of the first request after": new},
        )

    return Check("requests.carry-earlier-turns", judge)


def accepted() -> Check:
    """The strict provider refused nothing: every request would have been valid at the real API (F2)."""

    def judge(history: History) -> Judgement:
        refused = {
            f"request {request.number}": list(request.refused) for request in history.requests(None) if request.refused
        }
        return holds(condition=not refused, expected="no refused request", actual=refused or "no refused request")

    return Check("requests.accepted", judge)


def readable() -> Check:
    """Everything that reached the provider was HTTP; a runtime that was killed may have left half a request."""

    def judge(history: History) -> Judgement:
        crashed = {number for number, end in enumerate(history.ends, start=1) if end.crashed}
        garbage = [str(event.data["reason"]) for event in history.of("garbage.received") if event.phase not in crashed]
        good = "requests that are HTTP"
        return holds(condition=not garbage, expected=good, actual=garbage or good)

    return Check("requests.readable", judge)


def scripted() -> Check:
    """The script had an answer for every request; otherwise the run left the scenario."""

    def judge(history: History) -> Judgement:
        unexpected = [
            f"request {event.data['request']}: {event.data['reason']}" for event in history.of("request.unexpected")
        ]
        if unexpected:
            return unknown("only requests that the script answers", "; ".join(unexpected))
        return equal("only requests that the script answers", "only requests that the script answers")

    return Check("requests.scripted", judge, Role.PRECONDITION)


def as_expected() -> Check:
    """Every request is as the step that answered it expects."""

    def judge(history: History) -> Judgement:
        good = "requests that are as their steps expect"
        found = {
            f"request {event.data['request']} ({event.data['step']})": list(event.data["differences"])
            for event in history.of("request.mismatch")
        }
        return holds(condition=not found, expected=good, actual=found or good)

    return Check("requests.expectation", judge)


def user_texts(messages: Sequence[Mapping[str, object]]) -> list[str]:
    """Return the text blocks of the user's messages."""
    return [
        str(block["text"])
        for message in messages
        if message.get("role") == "user"
        for block in blocks_of(message)
        if "text" in block
    ]


def texts_in(value: object) -> Iterator[str]:
    """Yield every text value at any depth; keys are none."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for item in value.values():
            yield from texts_in(item)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from texts_in(item)
