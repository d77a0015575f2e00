"""The official Anthropic client reads every reply kind of the dialect, and raises its typed error for every status."""

from __future__ import annotations

import importlib
from types import ModuleType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fake_provider.dialects import DIALECTS, Served
from fake_provider.dialects.anthropic_rules import sealed, signature_of
from fake_provider.limits import Limits, RateLimit
from fake_provider.replies import (
    ERROR_WORDS,
    STOP_REASONS,
    Block,
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
from fake_provider.requests import Received
from tests.fake_provider.direct_answers import LIMITS, DirectAnswers
from tests.fake_provider.property_settings import QUICK

DIALECT = DIALECTS["anthropic_messages"]
HELLO: dict[str, Any] = {"model": "asked", "max_tokens": 64, "messages": [{"role": "user", "content": "hi"}]}
WAYS = ("whole", "streamed", "whole async", "streamed async")
FEW_WAYS = ("streamed", "whole async")


def answering(*answers: Any, limits: Limits = LIMITS) -> DirectAnswers:
    return DirectAnswers("anthropic_messages", *answers, limits=limits)


async def asked(anthropic: ModuleType, answers: DirectAnswers, way: str = "whole", **request: Any) -> Any:
    """Ask with the official client in one of its ways, its retries off, and return the message that it makes."""
    httpx2 = importlib.import_module("httpx2")
    settings = {"base_url": "http://provider", "api_key": "sk-ant-scripted", "max_retries": 0}
    body = {**HELLO, **request}
    if way.endswith("async"):
        async with httpx2.AsyncClient(transport=answers.transport(httpx2)) as http:
            client = anthropic.AsyncAnthropic(http_client=http, **settings)
            if way.startswith("whole"):
                return await client.messages.create(**body)
            async with client.messages.stream(**body) as stream:
                return await stream.get_final_message()
    with httpx2.Client(transport=answers.transport(httpx2)) as http:
        client = anthropic.Anthropic(http_client=http, **settings)
        if way.startswith("whole"):
            return client.messages.create(**body)
        with client.messages.stream(**body) as stream:
            return stream.get_final_message()


def content_of(message: Any) -> list[dict[str, Any]]:
    """The content as it would be sent back."""
    return [block.model_dump(exclude_none=True) for block in message.content]


CITATION = {
    "type": "char_location",
    "cited_text": "Oslo is cold.",
    "document_index": 0,
    "start_char_index": 0,
    "end_char_index": 13,
}
SEARCH = {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "weather in Kraków"}}
FOUND = {
    "type": "web_search_tool_result",
    "tool_use_id": "srvtoolu_1",
    "content": [{"type": "web_search_result", "url": "http://w", "title": "W", "encrypted_content": "gAAA"}],
}
EVERY_KIND = Reply(
    (
        Thinking("I should look at the weather before I answer."),
        RedactedThinking("gAAA"),
        Opaque(SEARCH),
        Opaque(FOUND),
        Text("Let me look at the weather.", (CITATION, {**CITATION, "document_index": 1})),
        ToolUse("weather", {"cities": ["Kraków", "北京"], "unit": "c"}, "toolu_a"),
        ToolUse("clock", {}, "toolu_b"),
    ),
    "tool_use",
    Usage(11, 22, 33, 44),
    model="served",
)


@pytest.mark.parametrize("way", WAYS)
async def test_every_kind_of_block_arrives_as_written(anthropic: ModuleType, way: str) -> None:
    message = await asked(anthropic, answering(EVERY_KIND), way)
    thought = "I should look at the weather before I answer."
    assert content_of(message) == [
        {"type": "thinking", "thinking": thought, "signature": signature_of(thought, "served")},
        {"type": "redacted_thinking", "data": sealed("gAAA", "served", 1)},
        SEARCH,
        FOUND,
        {
            "type": "text",
            "text": "Let me look at the weather.",
            "citations": [CITATION, {**CITATION, "document_index": 1}],
        },
        {"type": "tool_use", "id": "toolu_a", "name": "weather", "input": {"cities": ["Kraków", "北京"], "unit": "c"}},
        {"type": "tool_use", "id": "toolu_b", "name": "clock", "input": {}},
    ]
    assert (message.id, message.model, message.stop_reason) == (DIALECT.message_id(1, 1), "served", "tool_use")
    usage = message.usage
    assert (usage.input_tokens, usage.output_tokens) == (11, 22)
    assert (usage.cache_read_input_tokens, usage.cache_creation_input_tokens) == (33, 44)
    assert usage.cache_creation.ephemeral_5m_input_tokens == 44


@pytest.mark.parametrize("way", FEW_WAYS)
@pytest.mark.parametrize("stop_reason", STOP_REASONS)
async def test_every_stop_reason_arrives(anthropic: ModuleType, stop_reason: str, way: str) -> None:
    sequence = "END" if stop_reason == "stop_sequence" else None
    message = await asked(anthropic, answering(Reply((Text("x"),), stop_reason, stop_sequence=sequence)), way)
    assert (message.stop_reason, message.stop_sequence) == (stop_reason, sequence)
    assert (message.stop_details is not None) == (stop_reason == "refusal")


async def test_a_message_without_blocks_arrives(anthropic: ModuleType) -> None:
    for way in ("whole", "streamed"):
        assert (await asked(anthropic, answering(Reply((), "end_turn")), way)).content == []


async def test_a_reply_goes_back_as_the_client_holds_it_and_is_accepted(anthropic: ModuleType) -> None:
    answers = answering(EVERY_KIND, Reply((Text("Cold."),), "end_turn"))
    first = await asked(anthropic, answers, "streamed")
    results = [{"type": "tool_result", "tool_use_id": call, "content": "-3"} for call in ("toolu_a", "toolu_b")]
    history = [*HELLO["messages"], {"role": "assistant", "content": content_of(first)}]
    asked_again = [*history, {"role": "user", "content": results}]
    assert content_of(await asked(anthropic, answers, "streamed", messages=asked_again)) == [
        {"type": "text", "text": "Cold."}
    ]
    history[1]["content"][0]["thinking"] = "changed"
    with pytest.raises(anthropic.BadRequestError, match="in the latest assistant message cannot be modified"):
        await asked(anthropic, answers, messages=asked_again)
    history[1]["content"][1]["data"] = "gAAA"
    with pytest.raises(anthropic.BadRequestError, match="Invalid `data` in `redacted_thinking` block"):
        await asked(anthropic, answers, messages=asked_again)


STATUSES = [
    (400, "BadRequestError"),
    (401, "AuthenticationError"),
    (402, "PaymentRequiredError"),
    (403, "PermissionDeniedError"),
    (404, "NotFoundError"),
    (408, "RequestTimeoutError"),
    (409, "ConflictError"),
    (413, "ContentTooLargeError"),
    (422, "UnprocessableEntityError"),
    (429, "RateLimitError"),
    (500, "InternalServerError"),
    (502, "InternalServerError"),
    (503, "ServiceUnavailableError"),
    (504, "GatewayTimeoutError"),
    (529, "OverloadedError"),
]


@pytest.mark.parametrize("way", FEW_WAYS)
@pytest.mark.parametrize(("status", "name"), STATUSES)
async def test_every_status_is_raised_as_its_type(anthropic: ModuleType, status: int, name: str, way: str) -> None:
    with pytest.raises(anthropic.APIStatusError) as raised:
        await asked(anthropic, answering(ErrorReply(status, error_type(status), "no")), way)
    assert type(raised.value).__name__ == name
    assert raised.value.body["error"] == {"type": error_type(status), "message": "no"}
    assert raised.value.request_id == DIALECT.request_id(1)
    retried = status >= 500 or status in (408, 409, 429)
    assert raised.value.response.headers["x-should-retry"] == ("true" if retried else "false")


@pytest.mark.parametrize("word", ERROR_WORDS)
async def test_every_error_word_is_the_services_own(anthropic: ModuleType, word: str) -> None:
    with pytest.raises(anthropic.APIStatusError) as raised:
        await asked(anthropic, answering(ERROR_WORDS[word]))
    assert (raised.value.status_code, raised.value.type) == (ERROR_WORDS[word].status, ERROR_WORDS[word].type)
    assert "{" not in raised.value.api_message
    if word == "prompt_too_long":
        assert raised.value.api_message == "prompt is too long: 1000001 tokens > 1000000 maximum"


async def test_scripted_headers_and_bodies_replace_the_dialects_own(anthropic: ModuleType) -> None:
    error = ErrorReply(529, "overloaded_error", "no", (("X-Should-Retry", "false"),), "<p>", "text/html")
    with pytest.raises(anthropic.OverloadedError) as raised:
        await asked(anthropic, answering(error))
    headers = raised.value.response.headers
    assert (headers.get_list("x-should-retry"), headers["content-type"]) == (["false"], "text/html")
    assert raised.value.response.text == "<p>"


async def test_limits_stand_in_the_headers_of_successes_and_of_a_429(anthropic: ModuleType) -> None:
    limits = Limits(RateLimit(50, 0, 12.2), RateLimit(1000, 990))
    with pytest.raises(anthropic.RateLimitError) as raised:
        await asked(anthropic, answering(ERROR_WORDS["rate_limited"], limits=limits))
    expected = {
        "anthropic-ratelimit-requests-limit": "50",
        "anthropic-ratelimit-requests-remaining": "0",
        "anthropic-ratelimit-requests-reset": "2025-01-01T00:00:13Z",
        "anthropic-ratelimit-tokens-limit": "1000",
        "anthropic-ratelimit-tokens-remaining": "990",
        "anthropic-ratelimit-tokens-reset": "2025-01-01T00:00:00Z",
    }
    headers = dict(raised.value.response.headers)
    assert headers["retry-after"] == "13"
    assert expected.items() <= headers.items()
    served = Served("m", "r", "asked", 1, 9, limits=limits)
    reply = Reply((Text("x"),), "end_turn")
    for sent in (DIALECT.stream_headers(served), DIALECT.whole(reply, served).headers):
        assert expected.items() <= dict(sent).items()
        assert "anthropic-organization-id" in dict(sent)


async def test_counts_that_are_left_out_are_missed_by_the_client_in_a_stream_alone(anthropic: ModuleType) -> None:
    reply = Reply((Text("x"),), "end_turn", usage=None)
    whole = await asked(anthropic, answering(reply), "whole")
    assert getattr(whole, "usage", None) is None
    with pytest.raises(AttributeError, match="output_tokens"):
        await asked(anthropic, answering(reply), "streamed")


@pytest.mark.parametrize(
    ("arguments", "read"),
    [
        ('{"city": "Oslo"}', {"city": "Oslo"}),
        # The client takes arguments that were cut for arguments that are whole.
        ('{"city": "Oslo", "unit": "c', {"city": "Oslo"}),
        ('{"city"', {}),
        ("[1]", [1]),
    ],
)
async def test_raw_arguments_are_streamed_as_they_are(anthropic: ModuleType, arguments: str, read: Any) -> None:
    reply = Reply((ToolUse("weather", {}, "toolu_a", arguments),), "tool_use")
    message = await asked(anthropic, answering(reply), "streamed")
    assert message.content[0].input == read


async def test_arguments_that_are_no_json_are_an_error_of_the_client(anthropic: ModuleType) -> None:
    reply = Reply((ToolUse("weather", {}, "toolu_a", '{"city": Oslo}'),), "tool_use")
    with pytest.raises(ValueError, match="Unable to parse tool parameter JSON"):
        await asked(anthropic, answering(reply), "streamed")
    with pytest.raises(ValueError, match=r"Expecting value|expected value"):
        await asked(anthropic, answering(reply), "whole")


async def test_a_stream_splits_arguments_where_the_script_says(anthropic: ModuleType) -> None:
    call = ToolUse("weather", {"city": "Kraków"}, "toolu_a", split_at=(1, 14, 14, 99))
    frames = DIALECT.frames(Reply((call,), "tool_use"), Served("m", "r", "asked", 1, 9))
    pieces = [frame.payload for frame in frames if "tool_arguments" in frame.places]
    written = (b'""', b'"{"', rb'"\"city\": \"Krak"', "ów".encode())
    assert [text in piece for text, piece in zip(written, pieces, strict=True)] == [True] * 4
    message = await asked(anthropic, answering(Reply((call,), "tool_use")), "streamed")
    assert message.content[0].input == {"city": "Kraków"}


def test_every_frame_names_its_places() -> None:
    frames = DIALECT.frames(EVERY_KIND, Served("m", "r", "asked", 1, 9))
    assert (frames[0].places, frames[-2].places, frames[-1].places) == (("start",), ("stop", "usage"), ("terminal",))
    count = {
        place: sum(place in frame.places for frame in frames) for place in ("text", "tool_start", "tool_end", "ping")
    }
    assert count == {"text": 2, "tool_start": 2, "tool_end": 2, "ping": 1}
    assert [frame.fixed for frame in frames] == [False] + [True] * (len(frames) - 1)
    # A call that the provider answers itself is no call of the client.
    assert [frame.places for frame in frames if b"weather in" in frame.payload] == []
    assert DIALECT.ping_frame().places == ("ping",)


def test_an_opaque_block_needs_a_type() -> None:
    assert DIALECT.unsayable(Reply((Opaque({"executableCode": {}}),), "end_turn")) is not None
    assert DIALECT.unsayable(EVERY_KIND) is None


@pytest.mark.parametrize("error", DIALECT.error_types)
async def test_an_error_event_is_raised_as_its_type(anthropic: ModuleType, error: str) -> None:
    frames = DIALECT.frames(Reply((Text("x"),), "end_turn"), Served("m", "r", "asked", 1, 9))
    with pytest.raises(anthropic.APIStatusError) as raised:
        await asked(anthropic, answering((*frames[:3], DIALECT.error_frame(error, "no"))), "streamed")
    assert raised.value.body["error"] == {"type": error, "message": "no"}


async def test_what_no_client_knows_is_passed_over(anthropic: ModuleType) -> None:
    frames = DIALECT.frames(Reply((Text("x"),), "end_turn"), Served("m", "r", "asked", 1, 9))
    message = await asked(
        anthropic, answering((*frames[:3], DIALECT.ping_frame(), DIALECT.unknown_frame(), *frames[3:])), "streamed"
    )
    assert content_of(message) == [{"type": "text", "text": "x"}]


async def test_the_client_takes_a_stream_without_its_end_for_a_message(anthropic: ModuleType) -> None:
    frames = DIALECT.frames(Reply((Text("x"), Text("y")), "end_turn"), Served("m", "r", "asked", 1, 9))
    message = await asked(anthropic, answering(frames[:4]), "streamed")
    assert (content_of(message), message.stop_reason) == ([{"type": "text", "text": "x"}], None)


async def test_side_endpoints_are_read(anthropic: ModuleType) -> None:
    httpx2 = importlib.import_module("httpx2")
    answers = answering()
    with httpx2.Client(transport=answers.transport(httpx2)) as http:
        client = anthropic.Anthropic(http_client=http, base_url="http://provider", api_key="x", max_retries=0)
        assert client.messages.count_tokens(model="m", messages=HELLO["messages"]).input_tokens == 8
        assert [model.id for model in client.models.list()] == [
            "claude-opus-4-1",
            "claude-sonnet-4-5",
            "claude-haiku-4-5",
        ]
        assert client.models.retrieve("claude-opus-4-1").display_name == "Claude Opus 4.1"
        with pytest.raises(anthropic.NotFoundError, match="model: nobody"):
            client.models.retrieve("nobody")
        with pytest.raises(anthropic.BadRequestError, match="messages: Field required"):
            client.messages.count_tokens(model="m", messages=anthropic.omit)


KEYED = {"x-api-key": "k", "anthropic-version": "2023-06-01"}


@pytest.mark.parametrize(
    ("headers", "status", "message"),
    [
        ({"anthropic-version": "2023-06-01"}, 401, "x-api-key header is required"),
        ({"x-api-key": "k"}, 400, "anthropic-version: header is required"),
        (
            {"authorization": "Bearer k", "anthropic-version": "2023-06-01, 2023-06-01"},
            400,
            'anthropic-version: "2023-06-01, 2023-06-01" is not a valid version',
        ),
    ],
)
def test_key_and_version_are_required(headers: dict[str, str], status: int, message: str) -> None:
    error = DIALECT.unauthenticated(Received("POST", "/v1/messages", "", headers, b""))
    assert error is not None
    assert (error.status, error.message) == (status, message)
    for allowed in (KEYED, {**KEYED, "x-api-key": ""}):
        assert DIALECT.unauthenticated(Received("POST", "/v1/messages", "", allowed, b"")) is None
    assert DIALECT.unauthenticated(Received("GET", "/api/hello", "", {}, b"")) is None


@pytest.mark.parametrize(
    ("method", "path", "headers", "claimed", "status"),
    [
        ("GET", "/v1/models", KEYED, True, 200),
        ("GET", "/v1/models", {"authorization": "Bearer k"}, False, None),
        ("GET", "/v1/models/claude-opus-4-1", KEYED, True, 200),
        ("POST", "/v1/models/claude-opus-4-1", KEYED, True, 405),
        ("GET", "/v1/messages", {}, True, 405),
        ("POST", "/v1/messages/count_tokens", {}, True, 400),
        ("GET", "/api/hello", {}, True, 200),
        ("GET", "/v1/complete", KEYED, False, 404),
    ],
)
def test_paths(method: str, path: str, headers: dict[str, str], claimed: bool, status: int | None) -> None:
    received = Received(method, path, "", headers, b"{}")
    assert DIALECT.claims(received) is claimed
    if status is not None:
        assert DIALECT.side_reply(received, "req_1").status == status


TEXTS = st.text(min_size=1, max_size=60)
ARGUMENTS = st.dictionaries(
    st.text(max_size=5),
    st.recursive(
        st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(max_size=20),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
        max_leaves=6,
    ),
    max_size=4,
)
POSITIONS = st.none() | st.lists(st.integers(0, 40), max_size=4).map(tuple)
BLOCKS: st.SearchStrategy[Block] = st.one_of(
    st.builds(Text, TEXTS, st.lists(st.just(CITATION), max_size=2).map(tuple)),
    st.builds(Thinking, TEXTS, st.none() | st.text(min_size=1, max_size=10)),
    st.builds(RedactedThinking, TEXTS),
    st.builds(
        ToolUse,
        st.from_regex(r"[a-zA-Z0-9_-]{1,20}", fullmatch=True),
        ARGUMENTS,
        st.just("toolu_x"),
        st.none(),
        POSITIONS,
    ),
    st.sampled_from([Opaque(SEARCH), Opaque(FOUND)]),
)
COUNTS = st.none() | st.integers(0, 999)
REPLIES = st.builds(
    Reply,
    st.lists(BLOCKS, max_size=5).map(tuple),
    st.sampled_from(STOP_REASONS),
    st.builds(Usage, COUNTS, st.none() | st.integers(1, 999), st.integers(0, 999), st.integers(0, 999)),
    st.none() | st.just("served"),
    st.none() | st.just("END"),
)


@QUICK
@given(REPLIES)
def test_any_streamed_reply_is_the_whole_one_for_the_client(anthropic: ModuleType, reply: Reply) -> None:
    from anthropic._streaming import SSEDecoder
    from anthropic.lib.streaming._messages import accumulate_event
    from anthropic.types import Message, RawMessageStreamEvent
    from pydantic import TypeAdapter

    served = Served("msg_1", "req_1", "asked", 5, 9)
    frames = DIALECT.frames(reply, served)
    snapshot: Any = None
    buffers: dict[int, bytes] = {}
    adapter: TypeAdapter[Any] = TypeAdapter(RawMessageStreamEvent)
    names = []
    for event in SSEDecoder().iter_bytes(iter([b"".join(frame.payload for frame in frames)])):
        names.append(event.event)
        if event.event != "ping":
            parsed = adapter.validate_python(event.json())
            snapshot = accumulate_event(event=parsed, current_snapshot=snapshot, json_bufs=buffers)
    assert names == [frame.name for frame in frames]
    whole = Message.model_validate_json(DIALECT.whole(reply, served).body)
    assert snapshot.model_dump(exclude_none=True, warnings=False) == whole.model_dump(exclude_none=True)
