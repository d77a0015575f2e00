"""The official OpenAI client reads every reply kind of both dialects and raises its typed error for every error."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import openai
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fake_provider.dialects import DIALECTS
from fake_provider.dialects.openai_errors import STREAM_ERRORS
from fake_provider.dialects.openai_responses import OpenAIResponses
from fake_provider.limits import Limits, RateLimit
from fake_provider.replies import (
    ERROR_WORDS,
    ErrorReply,
    Opaque,
    RedactedThinking,
    Reply,
    Text,
    Thinking,
    ToolUse,
    Usage,
    error_type,
)
from fake_provider.wire import Frame
from tests.fake_provider.openai_service import Service
from tests.fake_provider.property_settings import QUICK

CHAT, RESPONSES = "openai_chat", "openai_responses"
BOTH = (CHAT, RESPONSES)
WAYS = ("whole", "streamed", "helper", "async whole", "async streamed", "async helper")
HELLO: Mapping[str, dict[str, Any]] = {
    CHAT: {"model": "asked", "messages": [{"role": "user", "content": "hi"}]},
    RESPONSES: {"model": "asked", "input": "hi"},
}


async def ask(service: Service, way: str, **request: Any) -> dict[str, Any]:
    """Return what the client made of one reply, as plain data."""
    name = service.dialect.name
    request = {**HELLO[name], **request}
    if name == CHAT and way != "whole" and way != "async whole":
        request = {"stream_options": {"include_usage": True}, **request}
    if way.startswith("async"):
        return await _ask_async(service, name, way.removeprefix("async "), request)
    with service.client() as client:
        endpoint: Any = client.chat.completions if name == CHAT else client.responses
        if way == "whole":
            return dict(endpoint.create(**request).to_dict())
        if way == "streamed":
            with endpoint.create(**request, stream=True) as stream:
                return put_together(name, [event.to_dict() for event in stream])
        with endpoint.stream(**request) as helper:
            final = helper.get_final_completion() if name == CHAT else helper.get_final_response()
            return dict(final.to_dict())


async def _ask_async(service: Service, name: str, way: str, request: dict[str, Any]) -> dict[str, Any]:
    async with service.async_client() as client:
        endpoint: Any = client.chat.completions if name == CHAT else client.responses
        if way == "whole":
            return dict((await endpoint.create(**request)).to_dict())
        if way == "streamed":
            async with await endpoint.create(**request, stream=True) as stream:
                return put_together(name, [event.to_dict() async for event in stream])
        async with endpoint.stream(**request) as helper:
            final = await (helper.get_final_completion() if name == CHAT else helper.get_final_response())
            return dict(final.to_dict())


def put_together(name: str, events: list[dict[str, Any]]) -> dict[str, Any]:
    """Put a stream together from its deltas alone, as a client without a helper has to."""
    return _completion(events) if name == CHAT else _response(events)


def _completion(chunks: list[dict[str, Any]]) -> dict[str, Any]:
    message: dict[str, Any] = {"content": None, "refusal": None}
    finish = None
    for chunk in chunks:
        for choice in chunk["choices"]:
            finish = choice["finish_reason"] or finish
            for key, value in choice["delta"].items():
                if key == "tool_calls":
                    _add_call(message.setdefault(key, []), value[0])
                elif value is not None:
                    message[key] = (message.get(key) or type(value)()) + value
    choice = {"message": message, "finish_reason": finish}
    return {**chunks[0], "choices": [choice], "usage": chunks[-1].get("usage")}


def _add_call(calls: list[dict[str, Any]], delta: dict[str, Any]) -> None:
    if delta["index"] == len(calls):
        calls.append({**delta, "function": dict(delta["function"])})
    else:
        calls[delta["index"]]["function"]["arguments"] += delta["function"]["arguments"]


def _response(events: list[dict[str, Any]]) -> dict[str, Any]:
    items: list[dict[str, Any]] = []
    for number, event in enumerate(events):
        assert event["sequence_number"] == number
        match event["type"].removeprefix("response."):
            case "output_item.added":
                assert event["output_index"] == len(items)
                items.append(json.loads(json.dumps(event["item"])))
            case "content_part.added":
                items[-1]["content"].append(event["part"])
            case "reasoning_summary_part.added":
                items[-1]["summary"].append(event["part"])
            case "output_text.delta":
                items[-1]["content"][-1]["text"] += event["delta"]
            case "output_text.annotation.added":
                items[-1]["content"][-1]["annotations"].append(event["annotation"])
            case "refusal.delta":
                items[-1]["content"][-1]["refusal"] += event["delta"]
            case "reasoning_summary_text.delta":
                items[-1]["summary"][-1]["text"] += event["delta"]
            case "function_call_arguments.delta":
                items[-1]["arguments"] += event["delta"]
            case "custom_tool_call_input.delta":
                items[-1]["input"] += event["delta"]
            case "output_item.done":
                # Only the end of an item says its status and its encrypted content.
                late = {key: event["item"][key] for key in ("status", "encrypted_content") if key in event["item"]}
                items[-1].update(late)
                assert items[-1] == event["item"]
    final = dict(events[-1]["response"])
    assert final["output"] == items
    return final


@dataclass
class Read:
    """What a reply says, whatever protocol it came in."""

    text: list[str]
    refusal: list[str]
    thoughts: list[str]
    calls: list[tuple[str, str, str]]
    citations: list[Any]
    stop: tuple[str, str | None]
    usage: tuple[int, ...] | None


def read(name: str, reply: Mapping[str, Any]) -> Read:
    return _read_completion(reply) if name == CHAT else _read_response(reply)


def _read_completion(reply: Mapping[str, Any]) -> Read:
    [choice] = reply["choices"]
    message = choice["message"]
    usage = reply.get("usage")
    return Read(
        [message["content"]] if message.get("content") else [],
        [message["refusal"]] if message.get("refusal") else [],
        [message["reasoning_content"]] if message.get("reasoning_content") else [],
        [
            (call["id"], call["function"]["name"], call["function"]["arguments"])
            for call in message.get("tool_calls") or ()
        ],
        message.get("annotations") or [],
        (choice["finish_reason"], None),
        usage
        and (
            usage["prompt_tokens"],
            usage["completion_tokens"],
            usage["total_tokens"],
            usage["prompt_tokens_details"]["cached_tokens"],
            usage["prompt_tokens_details"]["cache_write_tokens"],
            usage["completion_tokens_details"]["reasoning_tokens"],
        ),
    )


def _read_response(reply: Mapping[str, Any]) -> Read:
    found = Read([], [], [], [], [], (reply["status"], (reply["incomplete_details"] or {}).get("reason")), None)
    for item in reply["output"]:
        if item["type"] == "message":
            for part in item["content"]:
                (found.text if part["type"] == "output_text" else found.refusal).append(
                    part.get("text", part.get("refusal"))
                )
                found.citations += part.get("annotations", [])
        elif item["type"] == "reasoning":
            found.thoughts += [part["text"] for part in item["summary"]]
        elif item["type"] == "function_call":
            found.calls.append((item["call_id"], item["name"], item["arguments"]))
    usage = reply["usage"]
    found.usage = usage and (
        usage["input_tokens"],
        usage["output_tokens"],
        usage["total_tokens"],
        usage["input_tokens_details"]["cached_tokens"],
        usage["input_tokens_details"]["cache_write_tokens"],
        usage["output_tokens_details"]["reasoning_tokens"],
    )
    return found


THOUGHT = "I should look at the weather before I answer."
CITATIONS: Mapping[str, Mapping[str, Any]] = {
    CHAT: {"type": "url_citation", "url_citation": {"start_index": 0, "end_index": 3, "title": "t", "url": "http://u"}},
    RESPONSES: {"type": "url_citation", "start_index": 0, "end_index": 3, "title": "t", "url": "http://u"},
}


def every_kind(name: str) -> Reply:
    return Reply(
        (
            Thinking(THOUGHT),
            Text("Let me look at the weather in several cities.", (CITATIONS[name],)),
            ToolUse("weather", {"cities": ["Kraków", "北京"], "unit": "c"}, "call_a"),
            ToolUse("clock", {}, "call_b"),
            ToolUse("broken", {}, "call_c", arguments='{"city": "Os', split_at=(1, 7)),
            ToolUse("empty", {}, "call_d", arguments=""),
        ),
        "tool_use",
        Usage(11, 22, 33, 44),
        model="served",
    )


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", BOTH)
async def test_every_kind_of_block_arrives_as_written(name: str, way: str) -> None:
    reply = await ask(Service.of(name, every_kind(name)), way)
    stop = ("tool_calls", None) if name == CHAT else ("completed", None)
    assert read(name, reply) == Read(
        ["Let me look at the weather in several cities."],
        [],
        [THOUGHT],
        [
            ("call_a", "weather", '{"cities": ["Kraków", "北京"], "unit": "c"}'),
            ("call_b", "clock", "{}"),
            ("call_c", "broken", '{"city": "Os'),
            ("call_d", "empty", ""),
        ],
        [CITATIONS[name]],
        stop,
        (88, 22, 110, 33, 44, 12),
    )
    assert (reply["model"], reply["id"]) == ("served", DIALECTS[name].message_id(1, 1))


HELPER_ERRORS: Mapping[str, type[Exception]] = {
    "length": openai.LengthFinishReasonError,
    "content_filter": openai.ContentFilterFinishReasonError,
    # The helper knows no end of a response but `response.completed`.
    "incomplete": RuntimeError,
}
"""What the stream helpers raise where the reply did not end by itself."""


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(
    ("name", "stop_reason", "said", "stop"),
    [
        (CHAT, "end_turn", "Hi.", ("stop", None)),
        (CHAT, "stop_sequence", "Hi.", ("stop", None)),
        (CHAT, "max_tokens", "Hi.", ("length", None)),
        (CHAT, "model_context_window_exceeded", "Hi.", ("length", None)),
        (CHAT, "refusal", "No.", ("stop", None)),
        (CHAT, "refusal", "", ("content_filter", None)),
        (RESPONSES, "end_turn", "Hi.", ("completed", None)),
        (RESPONSES, "refusal", "No.", ("completed", None)),
        (RESPONSES, "max_tokens", "Hi.", ("incomplete", "max_output_tokens")),
        (RESPONSES, "model_context_window_exceeded", "Hi.", ("incomplete", "max_output_tokens")),
        (RESPONSES, "refusal", "", ("incomplete", "content_filter")),
    ],
)
async def test_every_stop_reason_is_read(
    name: str, stop_reason: str, said: str, stop: tuple[str, str | None], way: str
) -> None:
    reply = Reply((Text(said),) if said else (), stop_reason)
    if stop[0] in HELPER_ERRORS and way.endswith("helper"):
        with pytest.raises(HELPER_ERRORS[stop[0]]):
            await ask(Service.of(name, reply), way)
        return
    found = read(name, await ask(Service.of(name, reply), way))
    assert found.stop == stop
    assert (found.refusal if stop_reason == "refusal" else found.text) == ([said] if said else [])
    assert (found.text if stop_reason == "refusal" else found.refusal) == []


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", BOTH)
async def test_a_reply_without_usage_leaves_the_counts_out(name: str, way: str) -> None:
    found = read(name, await ask(Service.of(name, Reply((Text("Hi."),), "end_turn", None)), way))
    assert (found.text, found.usage) == (["Hi."], None)


@pytest.mark.parametrize("way", WAYS)
async def test_reasoning_that_only_the_provider_can_read_and_its_own_items_pass_through(way: str) -> None:
    search = {
        "id": "ws_1",
        "type": "web_search_call",
        "status": "completed",
        "action": {"type": "search", "query": "q"},
    }
    blocks = (RedactedThinking("secret"), Opaque(search), Text("Found."))
    output = (await ask(Service.of(RESPONSES, Reply(blocks, "end_turn")), way))["output"]
    assert (output[0]["summary"], output[0]["encrypted_content"][-7:]) == ([], ".secret")
    assert output[1] == search
    assert output[2]["content"][0]["text"] == "Found."


@pytest.mark.parametrize("way", WAYS)
async def test_a_tool_is_called_as_the_request_offers_it(way: str) -> None:
    function = {"type": "function", "name": "deploy", "parameters": {"type": "object"}, "strict": False}
    group = {"type": "namespace", "name": "mcp__ship", "description": "Ships.", "tools": [function]}
    tools = [group, {"type": "custom", "name": "patch"}]
    calls = (
        ToolUse("mcp__ship__deploy", {"release": 7}, "call_a"),
        ToolUse("deploy", {}, "call_b"),
        ToolUse("patch", {"input": "*** Begin"}, "call_c"),
        ToolUse("elsewhere", {}, "call_d"),
    )
    service = Service.of(RESPONSES, Reply(calls, "tool_use"))
    output = (await ask(service, way, tools=tools))["output"]
    told = [(item["type"], item.get("namespace"), item["name"]) for item in output]
    assert told == [
        ("function_call", "mcp__ship", "deploy"),
        ("function_call", "mcp__ship", "deploy"),
        ("custom_tool_call", None, "patch"),
        ("function_call", None, "elsewhere"),
    ]
    assert output[2]["input"] == "*** Begin"
    assert service.requests[0].tools == ("mcp__ship__deploy", "patch")


async def test_a_chat_with_tools_comes_back_and_is_accepted() -> None:
    service = Service.of(CHAT, every_kind(CHAT), Reply((Text("Cold."),), "end_turn"))
    with service.client() as client:
        first = client.chat.completions.create(**HELLO[CHAT])
        message = first.choices[0].message.model_dump(exclude_none=True)
        results = [
            {"role": "tool", "tool_call_id": call["id"], "content": f"result of {call['id']}"}
            for call in message["tool_calls"]
        ]
        history = [*HELLO[CHAT]["messages"], message, *results]
        second = client.chat.completions.create(model="asked", messages=history)
    assert second.choices[0].message.content == "Cold."
    request = service.requests[1]
    assert [message.role for message in request.messages] == ["user", "assistant", "user"]
    assert request.brings_tool_results
    assert [result.text for result in request.tool_results] == [
        f"result of {call_id}" for call_id in ("call_a", "call_b", "call_c", "call_d")
    ]
    assert request.tool_calls["call_a"].input == {"cities": ["Kraków", "北京"], "unit": "c"}
    assert request.tool_calls["call_c"].arguments == '{"city": "Os'
    assert request.messages[1].blocks[0] == Thinking(THOUGHT)


def thoughtful() -> Reply:
    return Reply(
        (
            Thinking(THOUGHT),
            RedactedThinking("secret"),
            Text("Looking."),
            ToolUse("weather", {"city": "Oslo"}, "call_a"),
        ),
        "tool_use",
    )


def returned(service: Service, **changes: Any) -> Any:
    """Send a response's output back with the call's result, the way the official client does."""
    with service.client() as client:
        first = client.responses.create(**HELLO[RESPONSES])
        output = [item.model_dump(exclude_none=True) for item in first.output]
        for index, change in changes.items():
            output[int(index.removeprefix("item"))].update(change)
        answer = {"type": "function_call_output", "call_id": "call_a", "output": "-3"}
        prompt = {"role": "user", "content": "hi"}
        history: Any = [prompt, *output, answer]
        return client.responses.create(model="asked", input=history)


def test_a_response_with_reasoning_comes_back_and_is_accepted() -> None:
    service = Service.of(RESPONSES, thoughtful(), Reply((Text("Cold."),), "end_turn"))
    assert returned(service).output_text == "Cold."
    request = service.requests[1]
    assert [message.role for message in request.messages] == ["user", "assistant", "user"]
    thought, secret, text, call = request.messages[1].blocks
    assert isinstance(thought, Thinking)
    assert thought.thinking == THOUGHT
    assert (secret, text) == (RedactedThinking("secret"), Text("Looking."))
    assert call == ToolUse("weather", {"city": "Oslo"}, "call_a")
    assert (request.brings_tool_results, request.tool_results[0].text) == (True, "-3")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"item0": {"summary": [{"type": "summary_text", "text": "changed"}]}}, "could not be verified"),
        ({"item0": {"summary": []}}, "could not be verified"),
        ({"item0": {"encrypted_content": "gAAAAnothing"}}, "The encrypted content gAAA...hing could not be verified"),
        ({"item0": {"id": "rs_other"}}, "The encrypted content for item rs_other could not be verified"),
        ({"item1": {"encrypted_content": "gAAAAAr"}}, "could not be verified"),
    ],
)
def test_changed_reasoning_is_refused(changes: Any, message: str) -> None:
    with pytest.raises(openai.BadRequestError, match=message) as raised:
        returned(Service.of(RESPONSES, thoughtful()), **changes)
    assert raised.value.code == "invalid_encrypted_content"


def test_reasoning_of_another_model_is_taken_and_withheld() -> None:
    service = Service.of(RESPONSES, thoughtful(), Reply((Text("Cold."),), "end_turn"))
    service.answers[0] = Reply(thoughtful().blocks, "tool_use", model="another")
    transformations = returned(service).input_transformations
    assert [(change.action, change.reason) for change in transformations] == [("removed", "model_mismatch")] * 2


STATUSES: Mapping[int, type[openai.APIStatusError]] = {
    400: openai.BadRequestError,
    401: openai.AuthenticationError,
    403: openai.PermissionDeniedError,
    404: openai.NotFoundError,
    409: openai.ConflictError,
    413: openai.APIStatusError,
    418: openai.APIStatusError,
    422: openai.UnprocessableEntityError,
    429: openai.RateLimitError,
    500: openai.InternalServerError,
    502: openai.InternalServerError,
    503: openai.InternalServerError,
    504: openai.InternalServerError,
    529: openai.InternalServerError,
    599: openai.InternalServerError,
}


@pytest.mark.parametrize("way", ["whole", "async streamed"])
@pytest.mark.parametrize("status", STATUSES)
@pytest.mark.parametrize("name", BOTH)
async def test_every_status_is_raised_as_its_type(name: str, status: int, way: str) -> None:
    error = ErrorReply(status, error_type(status), "scripted")
    with pytest.raises(openai.APIStatusError) as raised:
        await ask(Service.of(name, error), way)
    assert type(raised.value) is STATUSES[status]
    assert raised.value.request_id == DIALECTS[name].request_id(1)
    assert (raised.value.body or {})["message"] == "scripted"  # type: ignore[index]


WORDS: Mapping[str, tuple[int, str, str | None]] = {
    "overloaded": (503, "server_error", "server_is_overloaded"),
    "rate_limited": (429, "requests", "rate_limit_exceeded"),
    "insufficient_quota": (429, "insufficient_quota", "insufficient_quota"),
    "server_error": (500, "server_error", None),
    "bad_request": (400, "invalid_request_error", None),
    "unauthorized": (401, "invalid_request_error", "invalid_api_key"),
    "forbidden": (403, "request_forbidden", "unsupported_country_region_territory"),
    "model_not_found": (404, "invalid_request_error", "model_not_found"),
    "prompt_too_long": (400, "invalid_request_error", "context_length_exceeded"),
    "request_too_large": (413, "invalid_request_error", None),
}


@pytest.mark.parametrize("word", WORDS)
@pytest.mark.parametrize("name", BOTH)
async def test_every_word_is_the_services_own_error(name: str, word: str) -> None:
    neutral = ERROR_WORDS.get(word, ErrorReply(429, "rate_limit_error", "", word=word))
    with pytest.raises(openai.APIStatusError) as raised:
        await ask(Service.of(name, neutral, window_tokens=1000), "whole")
    error = raised.value
    assert (error.status_code, error.type, error.code) == WORDS[word]
    assert "{" not in error.message.split(" - ", 1)[0]


def test_every_word_of_a_script_has_an_error() -> None:
    assert set(ERROR_WORDS) <= set(WORDS)


@pytest.mark.parametrize(
    ("limits", "window", "wait"),
    [
        (Limits(), ("requests", "4000", "0"), ("15", "1")),
        (
            Limits(tokens=RateLimit(100, 0, 90.5)),
            ("tokens", "100", "0"),
            ("90500", "91"),
        ),
    ],
)
async def test_a_rate_limit_says_how_long_to_wait(limits: Limits, window: Any, wait: Any) -> None:
    with pytest.raises(openai.RateLimitError) as raised:
        await ask(Service.of(CHAT, ERROR_WORDS["rate_limited"], limits=limits), "whole")
    headers = raised.value.response.headers
    name, limit, remaining = window
    assert raised.value.type == name
    assert (headers[f"x-ratelimit-limit-{name}"], headers[f"x-ratelimit-remaining-{name}"]) == (limit, remaining)
    assert (headers["retry-after-ms"], headers["retry-after"]) == wait
    assert f"try again in {headers[f'x-ratelimit-reset-{name}']}." in raised.value.message


@pytest.mark.parametrize(
    ("headers", "milliseconds", "seconds", "text"),
    [
        ({"retry-after": "29"}, "29000", "29", "29s"),
        ({"Retry-After-Ms": "1500"}, "1500", "2", "1.5s"),
        ({"retry-after-ms": "250", "retry-after": "9"}, "250", "9", "250ms"),
        ({"retry-after": "Wed, 21 Oct 2026 07:28:00 GMT"}, None, "Wed, 21 Oct 2026 07:28:00 GMT", "15ms"),
    ],
)
async def test_a_wait_that_the_script_names_is_the_only_one(
    headers: dict[str, str], milliseconds: str | None, seconds: str, text: str
) -> None:
    error = replace(ERROR_WORDS["rate_limited"], headers=tuple(headers.items()))
    with pytest.raises(openai.RateLimitError) as raised:
        await ask(Service.of(CHAT, error), "whole")
    got = raised.value.response.headers
    assert (got.get("retry-after-ms"), got.get_list("retry-after")) == (milliseconds, [seconds])
    assert f"try again in {text}." in raised.value.message


async def test_the_clients_own_retries_honour_the_wait() -> None:
    service = Service.of(CHAT, *[ERROR_WORDS["rate_limited"]] * 2, Reply((Text("Hi."),), "end_turn"))
    async with service.async_client(max_retries=2) as client:
        reply = await client.chat.completions.create(**HELLO[CHAT])
    assert reply.choices[0].message.content == "Hi."
    counts = [request.headers["x-stainless-retry-count"] for request in service.requests]
    assert counts == ["0", "1", "2"]


async def test_a_header_of_the_script_replaces_the_dialects_own() -> None:
    error = ErrorReply(
        429, "rate_limit_error", "slow", headers=(("retry-after", "7"),), body="", content_type="text/html"
    )
    with pytest.raises(openai.RateLimitError) as raised:
        await ask(Service.of(CHAT, error), "whole")
    response = raised.value.response
    assert response.headers.get_list("retry-after") == ["7"]
    assert (response.headers["content-type"], response.content) == ("text/html", b"")


def broken_off(name: str, error_word: str) -> tuple[Frame, ...]:
    """The beginning of a streamed reply, then an error."""
    service = Service.of(name)
    frames = service.dialect.frames(Reply((Text("Hello there."),), "end_turn"), service.served({}, "asked"))
    begun = frames[: next(index for index, frame in enumerate(frames) if "text" in frame.places) + 1]
    if isinstance(service.dialect, OpenAIResponses):
        return (*begun, service.dialect.error_frame(error_word, error_word, begun))
    return (*begun, service.dialect.error_frame(error_word, error_word))


@pytest.mark.parametrize("way", ["streamed", "helper", "async streamed", "async helper"])
@pytest.mark.parametrize("word", STREAM_ERRORS)
async def test_an_error_inside_a_chat_stream_is_raised(word: str, way: str) -> None:
    with pytest.raises(openai.APIError) as raised:
        await ask(Service.of(CHAT, broken_off(CHAT, word)), way)
    known = STREAM_ERRORS[word]
    assert (raised.value.message, raised.value.type, raised.value.code) == (known.message, known.type, known.code)


@pytest.mark.parametrize("word", STREAM_ERRORS)
def test_an_error_inside_a_responses_stream_is_raised_or_handed_over(word: str) -> None:
    service = Service.of(RESPONSES, broken_off(RESPONSES, word))
    known = STREAM_ERRORS[word]
    events: list[Any] = []
    with service.client() as client, client.responses.create(**HELLO[RESPONSES], stream=True) as stream:
        if known.carrier == "error":
            with pytest.raises(openai.APIError) as raised:
                events.extend(stream)
            assert (raised.value.message, raised.value.code) == (known.message, known.code)
            return
        events.extend(stream)
    last = events[-1]
    assert last.sequence_number == len(events) - 1
    # The client hands both over as ordinary events and raises nothing.
    if known.carrier == "flat":
        assert (last.type, last.message, last.code) == ("error", known.message, known.code)
    else:
        assert (last.type, last.response.status, last.response.id) == (
            "response.failed",
            "failed",
            events[0].response.id,
        )
        assert (last.response.error.code, last.response.error.message) == (known.code, known.message)


@pytest.mark.parametrize("word", STREAM_ERRORS)
async def test_the_responses_helper_never_returns_a_failed_response(word: str) -> None:
    expected = openai.APIError if STREAM_ERRORS[word].carrier == "error" else RuntimeError
    with pytest.raises(expected):
        await ask(Service.of(RESPONSES, broken_off(RESPONSES, word)), "helper")


def test_an_error_without_what_came_before_is_still_an_event() -> None:
    dialect = OpenAIResponses()
    data = json.loads(dialect.error_frame("server_error", "broken").payload.partition(b"\ndata: ")[2])
    assert (data["sequence_number"], data["response"]["error"]) == (0, {"code": "server_error", "message": "broken"})
    torn = Frame("response.created", b"event: response.created\ndata: {", places=("start",))
    assert b'"sequence_number":0' in dialect.error_frame("server_error", "broken", [torn]).payload
    unknown = json.loads(dialect.error_frame("peculiar", "broken").payload.partition(b"\ndata: ")[2])
    assert unknown["error"] == {"message": "broken", "type": "peculiar", "param": None, "code": None}


@pytest.mark.parametrize("way", ["streamed", "helper", "async streamed", "async helper"])
@pytest.mark.parametrize("name", BOTH)
async def test_a_comment_is_not_seen_by_the_client(name: str, way: str) -> None:
    service = Service.of(name)
    first, *rest = service.dialect.frames(Reply((Text("Hi."),), "end_turn"), service.served({}, "asked"))
    frames = (service.dialect.ping_frame(), first, service.dialect.ping_frame(), *rest)
    assert read(name, await ask(Service.of(name, frames), way)).text == ["Hi."]


@pytest.mark.parametrize("way", ["helper", "async helper"])
@pytest.mark.parametrize("name", BOTH)
async def test_an_event_of_an_unknown_type_is_passed_over(name: str, way: str) -> None:
    service = Service.of(name)
    first, *rest = service.dialect.frames(Reply((Text("Hi."),), "end_turn"), service.served({}, "asked"))
    frames = (first, service.dialect.unknown_frame(), *rest)
    assert read(name, await ask(Service.of(name, frames), way)).text == ["Hi."]


def test_chat_counts_are_sent_in_a_stream_only_when_asked_for() -> None:
    dialect = DIALECTS[CHAT]
    service = Service.of(CHAT)
    reply = Reply((Text("Hi."),), "end_turn")
    silent = dialect.frames(reply, service.served({}, "asked"))
    assert not any(b"usage" in frame.payload for frame in silent)
    asked = dialect.frames(reply, service.served({"stream_options": {"include_usage": True}}, "asked"))
    *chunks, last, done = (frame.payload for frame in asked)
    assert all(b'"usage":null' in chunk for chunk in chunks)
    assert b'"choices":[]' in last
    assert done == b"data: [DONE]\n\n"


def test_the_places_of_a_reply() -> None:
    reply = Reply((Thinking("hm"), Text("Hi."), ToolUse("clock", {"a": 1}, "call_a")), "tool_use")
    found = {}
    for name in BOTH:
        service = Service.of(name)
        frames = service.dialect.frames(reply, service.served({"stream_options": {"include_usage": True}}, "asked"))
        found[name] = [(frame.name, frame.places) for frame in frames if frame.places]
    assert found[CHAT] == [
        ("chunk", ("start",)),
        ("chunk", ("content", "thinking")),
        ("chunk", ("content", "text")),
        ("chunk", ("content", "tool_start")),
        ("chunk", ("content", "tool_arguments", "tool_end")),
        ("chunk", ("stop",)),
        ("chunk", ("usage",)),
        ("[DONE]", ("terminal",)),
    ]
    assert found[RESPONSES] == [
        ("response.created", ("start",)),
        ("response.reasoning_summary_text.delta", ("content", "thinking")),
        ("response.output_text.delta", ("content", "text")),
        ("response.output_item.added", ("content", "tool_start")),
        ("response.function_call_arguments.delta", ("content", "tool_arguments")),
        ("response.output_item.done", ("tool_end",)),
        ("response.completed", ("stop", "usage", "terminal")),
    ]


@pytest.mark.parametrize(
    ("name", "reply", "reason"),
    [
        (CHAT, Reply((), "pause_turn"), "stop reason 'pause_turn'"),
        (CHAT, Reply((RedactedThinking("x"),), "end_turn"), "redacted thinking"),
        (CHAT, Reply((Opaque({"type": "web_search_call"}),), "end_turn"), "no blocks beside"),
        (RESPONSES, Reply((), "pause_turn"), "stop reason 'pause_turn'"),
        (RESPONSES, Reply((), "stop_sequence"), "stop reason 'stop_sequence'"),
        (RESPONSES, Reply((Opaque({}),), "end_turn"), "needs a 'type'"),
    ],
)
def test_what_has_no_counterpart_cannot_be_said(name: str, reply: Reply, reason: str) -> None:
    assert reason in (DIALECTS[name].unsayable(reply) or "")
    assert DIALECTS[name].unsayable(Reply((Text("Hi."),), "end_turn")) is None


TEXTS = st.text(max_size=60)
ARGUMENTS = st.dictionaries(st.text(max_size=5), st.none() | st.booleans() | st.integers() | TEXTS, max_size=3)
CALLS = st.builds(
    ToolUse,
    st.from_regex(r"[a-zA-Z0-9_-]{1,20}", fullmatch=True),
    ARGUMENTS,
    st.just(None),
    st.none() | st.text(max_size=20),
    st.none() | st.lists(st.integers(0, 30), max_size=4).map(tuple),
)


def blocks_of(name: str) -> Any:
    citations = st.lists(st.just(CITATIONS[name]), max_size=2).map(tuple)
    common = [st.builds(Text, TEXTS, citations), st.builds(Thinking, TEXTS, st.none() | TEXTS), CALLS]
    own = [st.builds(RedactedThinking, TEXTS), st.just(Opaque({"type": "web_search_call", "status": "completed"}))]
    return st.lists(st.one_of(common if name == CHAT else common + own), max_size=5)


def replies(name: str) -> Any:
    stops = ["end_turn", "max_tokens", "refusal", "tool_use"]
    usage = st.none() | st.builds(Usage, st.none() | st.integers(0, 999), st.none() | st.integers(0, 999))
    return st.builds(Reply, blocks_of(name).map(numbered), st.sampled_from(stops), usage, st.none() | st.just("served"))


def numbered(blocks: list[Any]) -> tuple[Any, ...]:
    """Give every call and every opaque item an id of its own."""
    found: list[Any] = []
    for index, block in enumerate(blocks):
        if isinstance(block, ToolUse):
            found.append(ToolUse(block.name, block.input, f"call_{index}", block.arguments, block.split_at))
        else:
            found.append(Opaque({**block.content, "id": f"ws_{index}"}) if isinstance(block, Opaque) else block)
    return tuple(found)


@pytest.mark.parametrize("name", BOTH)
@QUICK
@given(data=st.data())
async def test_a_streamed_reply_put_together_is_the_whole_one(name: str, data: st.DataObject) -> None:
    reply = data.draw(replies(name))
    whole = await ask(Service.of(name, reply), "whole")
    streamed = await ask(Service.of(name, reply), "streamed")
    assert read(name, streamed) == read(name, whole)
    assert (streamed["id"], streamed["model"]) == (whole["id"], whole["model"])
    if name == RESPONSES:
        assert streamed["output"] == whole["output"]
    if read(name, whole).stop[0] not in HELPER_ERRORS:
        assert read(name, await ask(Service.of(name, reply), "helper")) == read(name, whole)


@pytest.mark.parametrize("kept", ["start", "text", "tool_arguments", "stop"])
@pytest.mark.parametrize("name", BOTH)
def test_the_client_takes_a_stream_that_ends_early_for_a_whole_one(name: str, kept: str) -> None:
    """A clean end of the body without the terminal event: neither client says that something is missing."""
    service = Service.of(name)
    reply = Reply((Text("Hello there."), ToolUse("deploy", {"release": 7}, "call_a")), "tool_use")
    frames = service.dialect.frames(reply, service.served({}, "asked"))
    end = next(index for index, frame in enumerate(frames) if kept in frame.places) + 1
    cut = frames[: min(end, len(frames) - 1)]
    with Service.of(name, cut, cut).client() as client:
        endpoint: Any = client.chat.completions if name == CHAT else client.responses
        with endpoint.create(**HELLO[name], stream=True) as stream:
            assert len(list(stream)) == len(cut)
        with endpoint.stream(**HELLO[name]) as helper:
            if name == CHAT:
                finish = "tool_calls" if kept == "stop" else None
                assert helper.get_final_completion().choices[0].finish_reason == finish
            else:
                with pytest.raises(RuntimeError, match=r"Didn't receive a `response.completed` event"):
                    helper.get_final_response()


def test_the_responses_helper_cannot_read_a_repeated_call_id() -> None:
    reply = Reply((ToolUse("clock", {}, "call_a"), ToolUse("clock", {}, "call_a")), "tool_use")
    with Service.of(RESPONSES, reply).client() as client:
        helper = client.responses.stream(**HELLO[RESPONSES])
        with helper as events, pytest.raises(RuntimeError, match="conflicting output identities"):
            events.get_final_response()
