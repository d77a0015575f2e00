"""The official Gemini client reads every reply kind of the dialect, and raises its typed error for every status."""

from __future__ import annotations

import base64
import importlib
import json
from collections.abc import Iterable, Sequence
from types import ModuleType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fake_provider.dialects import DIALECTS, Served
from fake_provider.dialects.gemini import FINISH_REASONS
from fake_provider.dialects.gemini_errors import STATUS_WORDS
from fake_provider.dialects.gemini_requests import GeminiBody
from fake_provider.dialects.gemini_rules import thought_signature
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

DIALECT = DIALECTS["gemini"]
WAYS = ("whole", "streamed", "whole async", "streamed async")
FEW_WAYS = ("streamed", "whole async")
ASKED = "gemini-3-pro-preview"
SERVED = Served("resp-1", "req-1", ASKED, 5, 9)


@pytest.fixture(scope="session")
def genai() -> ModuleType:
    """The official client library."""
    return importlib.import_module("google.genai")


def answering(*answers: Any, limits: Limits = LIMITS) -> DirectAnswers:
    return DirectAnswers("gemini", *answers, limits=limits)


def client_of(genai: ModuleType, answers: DirectAnswers) -> Any:
    """The official client; it never asks again unless it is told to."""
    httpx = importlib.import_module("httpx")
    options = genai.types.HttpOptions(
        base_url="http://provider",
        api_version="v1beta",
        httpx_client=httpx.Client(transport=answers.transport(httpx)),
        httpx_async_client=httpx.AsyncClient(transport=answers.transport(httpx)),
    )
    return genai.Client(api_key="scripted", http_options=options)


async def asked(genai: ModuleType, answers: DirectAnswers, way: str = "whole", contents: Any = "hi") -> list[Any]:
    """Ask with the official client in one of its ways, and return its responses: one, or one for each chunk."""
    client = client_of(genai, answers)
    try:
        if way == "whole":
            return [client.models.generate_content(model=ASKED, contents=contents)]
        if way == "streamed":
            return list(client.models.generate_content_stream(model=ASKED, contents=contents))
        if way == "whole async":
            return [await client.aio.models.generate_content(model=ASKED, contents=contents)]
        stream = await client.aio.models.generate_content_stream(model=ASKED, contents=contents)
        return [chunk async for chunk in stream]
    finally:
        await client.aio.aclose()
        client.close()


def part_value(part: Any) -> dict[str, Any]:
    """A part of the client as it would be sent back."""
    return json.loads(part.model_dump_json(exclude_none=True, by_alias=True))  # type: ignore[no-any-return]


def accumulated(responses: Iterable[Any]) -> list[dict[str, Any]]:
    """The parts of all chunks, texts of one kind joined, as a client would keep them; an empty text says nothing."""
    kept: list[dict[str, Any]] = []
    for response in responses:
        candidates = response.candidates or []
        for part in (candidates[0].content.parts or []) if candidates else []:
            value = part_value(part)
            if value == {"text": ""}:
                continue
            joined = kept and {*value, *kept[-1]} <= {"text", "thought", "thoughtSignature"}
            if joined and "thoughtSignature" not in kept[-1] and value.get("thought") == kept[-1].get("thought"):
                kept[-1] = {**kept[-1], **value, "text": kept[-1]["text"] + value["text"]}
            else:
                kept.append(value)
    return kept


def standard(signature: str) -> str:
    """A signature in the alphabet in which the client writes bytes."""
    return signature.replace("+", "-").replace("/", "_")


SOURCE = {"startIndex": 0, "endIndex": 13, "uri": "http://w", "license": "mit"}
CODE = {"executableCode": {"language": "PYTHON", "code": "1"}}
RAN = {"codeExecutionResult": {"outcome": "OUTCOME_OK", "output": "1"}}
EVERY_KIND = Reply(
    (
        Thinking("I should look at the weather before I answer."),
        Opaque(CODE),
        Opaque(RAN),
        Text("Let me look at the weather.", (SOURCE,)),
        ToolUse("weather", {"cities": ["Kraków", "北京"], "unit": "c"}, "call-a"),
        ToolUse("clock", {}, "call-b"),
        RedactedThinking("gAAA"),
        Thinking("One more."),
        Text("And then."),
    ),
    "tool_use",
    Usage(11, 22, 33, 44),
    model="served",
)


@pytest.mark.parametrize("way", WAYS)
async def test_every_kind_of_block_arrives_as_written(genai: ModuleType, way: str) -> None:
    responses = await asked(genai, answering(EVERY_KIND), way)
    thought = "I should look at the weather before I answer."
    assert accumulated(responses) == [
        {"text": thought, "thought": True},
        CODE,
        RAN,
        {"text": "Let me look at the weather."},
        {
            "functionCall": {"id": "call-a", "name": "weather", "args": {"cities": ["Kraków", "北京"], "unit": "c"}},
            "thoughtSignature": standard(thought_signature("served", 0, thought)),
        },
        {"functionCall": {"id": "call-b", "name": "clock", "args": {}}},
        {"text": "", "thoughtSignature": standard(thought_signature("served", 1, "", "gAAA"))},
        {"text": "One more.", "thought": True},
        {"text": "And then.", "thoughtSignature": standard(thought_signature("served", 2, "One more."))},
    ]
    last = responses[-1]
    assert (last.candidates[0].finish_reason.name, last.model_version) == ("STOP", "served")
    assert {response.response_id for response in responses} == {DIALECT.message_id(1, 1)}
    usage = last.usage_metadata
    assert usage.prompt_token_count == 11 + 33 + 44
    assert usage.cached_content_token_count == 33
    assert usage.candidates_token_count + usage.thoughts_token_count == 22
    assert usage.total_token_count == 11 + 33 + 44 + 22
    cited = [r.candidates[0].citation_metadata for r in responses if r.candidates[0].citation_metadata]
    assert [part_value(source) for metadata in cited for source in metadata.citations] == [SOURCE]


@pytest.mark.parametrize("way", FEW_WAYS)
@pytest.mark.parametrize("stop_reason", FINISH_REASONS)
async def test_every_stop_reason_arrives(genai: ModuleType, stop_reason: str, way: str) -> None:
    responses = await asked(genai, answering(Reply((Text("x"),), stop_reason)), way)
    candidate = responses[-1].candidates[0]
    assert candidate.finish_reason.name == FINISH_REASONS[stop_reason]
    assert (candidate.safety_ratings is not None) == (stop_reason == "refusal")


def test_what_has_no_counterpart_is_unsayable() -> None:
    unsayable = {reason for reason in STOP_REASONS if DIALECT.unsayable(Reply((Text("x"),), reason)) is not None}
    assert unsayable == {"pause_turn"}
    for content in ({"type": "server_tool_use"}, {**CODE, **RAN}):
        assert DIALECT.unsayable(Reply((Opaque(content),), "end_turn")) is not None
    assert DIALECT.unsayable(EVERY_KIND) is None


@pytest.mark.parametrize("way", WAYS)
async def test_a_blocked_prompt_has_a_reason_and_no_candidate(genai: ModuleType, way: str) -> None:
    [response] = await asked(genai, answering(Reply((), "refusal")), way)
    assert (response.candidates, response.text) == (None, None)
    assert response.prompt_feedback.block_reason.name == "PROHIBITED_CONTENT"


@pytest.mark.parametrize("way", WAYS)
async def test_a_reply_without_blocks_arrives(genai: ModuleType, way: str) -> None:
    [response] = await asked(genai, answering(Reply((), "end_turn")), way)
    assert accumulated([response]) == []
    assert response.candidates[0].finish_reason.name == "STOP"


@pytest.mark.parametrize("way", WAYS)
async def test_counts_can_be_left_out(genai: ModuleType, way: str) -> None:
    responses = await asked(genai, answering(Reply((Text("x"),), "end_turn", usage=None)), way)
    assert [response.usage_metadata for response in responses] == [None] * len(responses)


@pytest.mark.parametrize("way", ["whole", "streamed"])
async def test_a_reply_goes_back_as_the_client_holds_it_and_is_accepted(genai: ModuleType, way: str) -> None:
    call = Reply((Thinking("hm"), ToolUse("a", {}, "call-a"), ToolUse("b", {}, "call-b")), "tool_use")
    answers = answering(call, Reply((Text("Done."),), "end_turn"))
    responses = await asked(genai, answers, way)
    parts = [part for response in responses for part in response.candidates[0].content.parts]
    results = [
        genai.types.Part(function_response=genai.types.FunctionResponse(id=f"call-{name}", name=name, response={}))
        for name in "ab"
    ]
    history = [
        genai.types.UserContent("hi"),
        genai.types.ModelContent(parts),
        genai.types.UserContent(results),
    ]
    assert accumulated(await asked(genai, answers, way, history)) == [{"text": "Done."}]
    assert [result.tool_use_id for result in answers.requests[-1].tool_results] == ["call-a", "call-b"]
    for part in parts:
        part.thought_signature = None
    with pytest.raises(genai.errors.ClientError, match="missing a thought_signature"):
        await asked(genai, answers, way, history)
    assert answers.refused == ["signatures-present"]


STATUSES = [400, 401, 403, 404, 409, 413, 422, 429, 499, 500, 501, 502, 503, 504, 529]


@pytest.mark.parametrize("way", FEW_WAYS)
@pytest.mark.parametrize("status", STATUSES)
async def test_every_status_is_raised_as_its_type(genai: ModuleType, status: int, way: str) -> None:
    # The types of another dialect's words say nothing here.
    error = ErrorReply(status, error_type(status), "no")
    with pytest.raises(genai.errors.APIError) as raised:
        await asked(genai, answering(error), way)
    assert type(raised.value) is (genai.errors.ClientError if status < 500 else genai.errors.ServerError)
    word = STATUS_WORDS.get(status, "INVALID_ARGUMENT" if status < 500 else "INTERNAL")
    expected = "UNAVAILABLE" if status == 529 else word
    assert (raised.value.code, raised.value.status, raised.value.message) == (status, expected, "no")


WORDS = {
    "overloaded": (503, "UNAVAILABLE", "The model is overloaded. Please try again later."),
    "rate_limited": (429, "RESOURCE_EXHAUSTED", "You exceeded your current quota"),
    "insufficient_quota": (429, "RESOURCE_EXHAUSTED", "Your prepayment credits are depleted."),
    "server_error": (500, "INTERNAL", "An internal error has occurred."),
    "bad_request": (400, "INVALID_ARGUMENT", "Request contains an invalid argument."),
    "unauthorized": (400, "INVALID_ARGUMENT", "API key not valid. Please pass a valid API key."),
    "forbidden": (403, "PERMISSION_DENIED", "The caller does not have permission"),
    "model_not_found": (404, "NOT_FOUND", f"models/{ASKED} is not found for API version v1beta"),
    "prompt_too_long": (
        400,
        "INVALID_ARGUMENT",
        "The input token count (1000001) exceeds the maximum number of tokens allowed (1000000).",
    ),
    "request_too_large": (400, "INVALID_ARGUMENT", "Request payload size exceeds the limit"),
}


@pytest.mark.parametrize("word", WORDS)
async def test_every_error_word_is_the_services_own(genai: ModuleType, word: str) -> None:
    with pytest.raises(genai.errors.APIError) as raised:
        await asked(genai, answering(ERROR_WORDS[word]))
    status, expected, message = WORDS[word]
    assert (raised.value.code, raised.value.status) == (status, expected)
    assert raised.value.message.startswith(message)


def test_every_error_word_has_an_answer() -> None:
    assert WORDS.keys() == ERROR_WORDS.keys()


async def test_an_exhausted_quota_says_when_to_retry(genai: ModuleType) -> None:
    limits = Limits(RateLimit(50, 0, 12.2), RateLimit(1000, 990))
    with pytest.raises(genai.errors.ClientError) as raised:
        await asked(genai, answering(ERROR_WORDS["rate_limited"], limits=limits))
    details = {detail["@type"].rpartition(".")[2]: detail for detail in raised.value.details["error"]["details"]}
    assert details.keys() == {"QuotaFailure", "Help", "RetryInfo"}
    assert details["RetryInfo"]["retryDelay"] == "13s"
    assert details["QuotaFailure"]["violations"][0]["quotaValue"] == "50"


async def test_a_wrong_key_is_named_in_the_details(genai: ModuleType) -> None:
    with pytest.raises(genai.errors.ClientError) as raised:
        await asked(genai, answering(ERROR_WORDS["unauthorized"]))
    assert raised.value.details["error"]["details"][0]["reason"] == "API_KEY_INVALID"


async def test_scripted_headers_and_bodies_replace_the_dialects_own(genai: ModuleType) -> None:
    error = ErrorReply(503, "UNAVAILABLE", "no", (("retry-after", "3"),), "<p>", "text/html")
    with pytest.raises(genai.errors.ServerError) as raised:
        await asked(genai, answering(error))
    headers = raised.value.response.headers
    assert (headers["retry-after"], headers["content-type"], raised.value.message) == ("3", "text/html", "<p>")


async def test_raw_arguments_that_are_no_json_break_the_body(genai: ModuleType) -> None:
    broken = Reply((ToolUse("a", {}, "call-a", '{"city": Oslo}'),), "tool_use")
    with pytest.raises(genai.errors.UnknownApiResponseError):
        await asked(genai, answering(broken), "streamed")
    # Of a whole body the client lets the decoder's own error through.
    with pytest.raises(json.JSONDecodeError):
        await asked(genai, answering(broken), "whole")


@pytest.mark.parametrize("way", WAYS)
async def test_raw_arguments_that_are_json_arrive(genai: ModuleType, way: str) -> None:
    [first, *_] = await asked(genai, answering(Reply((ToolUse("a", {}, "c", '{"x":1}'),), "tool_use")), way)
    assert first.candidates[0].content.parts[0].function_call.args == {"x": 1}
    with pytest.raises(ValueError, match="dictionary"):
        await asked(genai, answering(Reply((ToolUse("a", {}, "c", "[1]"),), "tool_use")), way)


async def test_the_client_takes_an_empty_body_for_a_reply_that_says_nothing(genai: ModuleType) -> None:
    empty = ErrorReply(200, "OK", "", body="")
    [response] = await asked(genai, answering(empty), "whole")
    assert (response.candidates, response.text) == (None, None)
    assert await asked(genai, answering(empty), "streamed") == []


def frames_of(reply: Reply, served: Served = SERVED) -> Sequence[Any]:
    return DIALECT.frames(reply, served)


@pytest.mark.parametrize("error", DIALECT.error_types)
@pytest.mark.parametrize("way", ["streamed", "streamed async"])
async def test_an_error_in_a_stream_is_raised_as_its_type(genai: ModuleType, error: str, way: str) -> None:
    frames = frames_of(Reply((Text("x"),), "end_turn"))
    with pytest.raises(genai.errors.APIError) as raised:
        await asked(genai, answering((frames[0], DIALECT.error_frame(error, "no"))), way)
    assert (raised.value.status, raised.value.message) == (error, "no")
    assert STATUS_WORDS[raised.value.code] == error


async def test_the_client_takes_a_stream_without_its_end_for_a_reply(genai: ModuleType) -> None:
    frames = frames_of(Reply((Text("x" * 40),), "end_turn"))
    responses = await asked(genai, answering(frames[:2]), "streamed")
    assert "".join(response.text for response in responses) == "x" * 32
    assert responses[-1].candidates[0].finish_reason is None


async def test_the_client_cannot_read_a_comment_in_a_stream(genai: ModuleType) -> None:
    frames = frames_of(Reply((Text("x"),), "end_turn"))
    with pytest.raises(genai.errors.UnknownApiResponseError, match="ping"):
        await asked(genai, answering((frames[0], DIALECT.ping_frame(), *frames[1:])), "streamed")


async def test_an_unknown_chunk_is_passed_over(genai: ModuleType) -> None:
    frames = frames_of(Reply((Text("x"),), "end_turn"))
    responses = await asked(genai, answering((frames[0], DIALECT.unknown_frame(), *frames[1:])), "streamed")
    assert [response.text for response in responses] == ["x", None, ""]


async def test_side_endpoints_are_read(genai: ModuleType) -> None:
    client = client_of(genai, answering())
    assert client.models.count_tokens(model=ASKED, contents="hi").total_tokens == 11
    assert [model.name for model in client.models.list()] == [
        "models/gemini-2.5-pro",
        "models/gemini-2.5-flash",
        "models/gemini-3-pro-preview",
    ]
    assert client.models.get(model="gemini-2.5-pro").input_token_limit == 1_048_576
    with pytest.raises(genai.errors.ClientError, match="Model is not found: models/nobody for api version v1beta"):
        client.models.get(model="nobody")
    await client.aio.aclose()
    client.close()


def in_array() -> Served:
    return Served("resp-1", "req-1", ASKED, 5, 9, GeminiBody({}, in_array=True))


def test_without_events_a_stream_is_one_array() -> None:
    body = b"".join(frame.payload for frame in frames_of(EVERY_KIND, in_array()))
    events = b"".join(frame.payload for frame in frames_of(EVERY_KIND))
    chunks = [json.loads(event.removeprefix(b"data: ")) for event in events.split(b"\r\n\r\n")[:-1]]
    assert json.loads(body) == chunks
    assert json.loads(b"".join(frame.payload for frame in frames_of(Reply((), "refusal"), in_array())))
    assert dict(DIALECT.stream_headers(in_array()))["content-type"] == "application/json; charset=UTF-8"
    assert dict(DIALECT.stream_headers(SERVED))["content-type"] == "text/event-stream"
    [error] = json.loads(DIALECT.error(ERROR_WORDS["overloaded"], in_array()).body)
    assert error["error"]["code"] == 503


@pytest.mark.parametrize(
    ("method", "query", "stream", "array"),
    [
        ("generateContent", "", False, False),
        ("streamGenerateContent", "alt=sse", True, False),
        ("streamGenerateContent", "key=k&$alt=sse", True, False),
        ("streamGenerateContent", "alt=json", True, True),
        ("streamGenerateContent", "", True, True),
    ],
)
def test_path_and_query_say_how_to_stream(method: str, query: str, stream: bool, array: bool) -> None:
    body = b'{"contents": {"parts": {"text": "hi"}}}'
    request = DIALECT.decode(Received("POST", f"/v1/models/a%2Fb:{method}", query, {}, body))
    assert (request.model, request.stream) == ("a/b", stream)
    assert isinstance(request.body, GeminiBody)
    assert request.body.in_array is array


def test_every_chunk_names_its_places() -> None:
    frames = frames_of(Reply((Thinking("hm"), Text("x" * 20), ToolUse("a", {}, "c")), "tool_use"))
    assert [(frame.name, frame.places, frame.fixed) for frame in frames] == [
        ("chunk", places, False)
        for places in (
            ("start", "content", "thinking"),
            ("content", "text"),
            ("content", "text"),
            ("content", "tool_start", "tool_arguments", "tool_end"),
            ("stop", "usage", "terminal"),
        )
    ]
    assert frames_of(Reply((), "end_turn"))[0].places == ("start", "stop", "usage", "terminal")
    assert frames_of(Reply((), "refusal", usage=None))[0].places == ("start", "stop", "terminal")
    assert DIALECT.ping_frame().places == ("ping",)


KEY = {"x-goog-api-key": "k"}


@pytest.mark.parametrize(
    ("method", "path", "query", "headers", "claimed", "model_request"),
    [
        ("POST", "/v1beta/models/m:generateContent", "", {}, True, True),
        ("POST", "/v1/models/m:streamGenerateContent", "", {}, True, True),
        ("POST", "/v1beta/models/m:countTokens", "", {}, True, False),
        ("GET", "/v1beta/models/m:generateContent", "", {}, True, False),
        ("GET", "/v1beta/models", "", {}, True, False),
        ("GET", "/v1/models", "", KEY, True, False),
        ("GET", "/v1/models/m", "key=k", {}, True, False),
        ("GET", "/v1/models", "", {"authorization": "Bearer k"}, False, False),
        ("POST", "/v1/messages", "", KEY, False, False),
    ],
)
def test_paths(method: str, path: str, query: str, headers: dict[str, str], claimed: bool, model_request: bool) -> None:
    received = Received(method, path, query, headers, b"")
    assert (DIALECT.claims(received), DIALECT.is_model_request(received)) == (claimed, model_request)


@pytest.mark.parametrize(
    ("method", "path", "body", "status", "message"),
    [
        ("GET", "/v1beta/files", b"", 404, "Method not found."),
        ("POST", "/v1beta/models", b"", 404, "Method not found."),
        ("GET", "/v1beta/models/m:generateContent", b"", 404, "Method not found."),
        ("POST", "/v1beta/models/m:countTokens", b"{", 400, "Invalid JSON payload received. Input data was truncated"),
        (
            "POST",
            "/v1beta/models/m:countTokens",
            b'{"x":1}',
            400,
            'Invalid JSON payload received. Unknown name "x": Cannot find field.',
        ),
    ],
)
def test_refusals_of_side_requests(method: str, path: str, body: bytes, status: int, message: str) -> None:
    plain = DIALECT.side_reply(Received(method, path, "", KEY, body), "r")
    assert (plain.status, json.loads(plain.body)["error"]["message"]) == (status, message)


def test_a_whole_request_can_be_counted() -> None:
    inner = {"model": "models/m", "contents": [{"parts": [{"text": "hi"}]}]}
    body = json.dumps({"generateContentRequest": inner}).encode()
    plain = DIALECT.side_reply(Received("POST", "/v1beta/models/m:countTokens", "", KEY, body), "r")
    assert json.loads(plain.body)["totalTokens"] == 7


def test_a_key_is_required() -> None:
    path = "/v1beta/models/m:generateContent"
    for query, headers in (("", KEY), ("key=k", {}), ("", {"authorization": "Bearer k"})):
        assert DIALECT.unauthenticated(Received("POST", path, query, headers, b"")) is None
    error = DIALECT.unauthenticated(Received("POST", path, "alt=sse", {}, b""))
    assert error is not None
    plain = DIALECT.error(error, SERVED)
    assert (plain.status, json.loads(plain.body)["error"]["status"]) == (403, "PERMISSION_DENIED")


def test_identifiers_have_one_length() -> None:
    for make in (DIALECT.message_id, DIALECT.call_id):
        assert len({len(make(lane, number)) for lane, number in ((1, 1), (99, 10**9))}) == 1
    assert len(DIALECT.request_id(1)) == len(DIALECT.request_id(10**9))


TEXTS = st.text(min_size=1, max_size=60)
ARGUMENTS = st.dictionaries(
    st.text(max_size=5),
    st.recursive(
        st.booleans() | st.integers(-(2**53), 2**53) | st.text(max_size=20),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
        max_leaves=6,
    ),
    max_size=4,
)
SIGNATURES = st.none() | st.binary(min_size=1, max_size=9).map(lambda data: base64.b64encode(data).decode())
BLOCKS: st.SearchStrategy[Block] = st.one_of(
    st.builds(Text, TEXTS, st.lists(st.just(SOURCE), max_size=2).map(tuple)),
    st.builds(Thinking, TEXTS, SIGNATURES),
    st.builds(RedactedThinking, TEXTS),
    st.builds(ToolUse, st.from_regex(r"[a-z_]{1,20}", fullmatch=True), ARGUMENTS, st.just("call-x")),
    st.sampled_from([Opaque(CODE), Opaque(RAN)]),
)
COUNTS = st.none() | st.integers(0, 999)
REPLIES = st.builds(
    Reply,
    st.lists(BLOCKS, max_size=6).map(tuple),
    st.sampled_from(sorted(FINISH_REASONS)),
    st.none() | st.builds(Usage, COUNTS, st.none() | st.integers(1, 999), st.integers(0, 999), st.integers(0, 999)),
    st.none() | st.just("served"),
)


def parsed(genai: ModuleType, data: bytes) -> Any:
    """A body as the client's own conversion reads it."""
    models = importlib.import_module("google.genai.models")
    value = models._GenerateContentResponse_from_mldev(json.loads(data))
    return genai.types.GenerateContentResponse._from_response(response=value, kwargs={})


@QUICK
@given(REPLIES)
def test_any_streamed_reply_is_the_whole_one_for_the_client(genai: ModuleType, reply: Reply) -> None:
    chunks = [parsed(genai, frame.payload.removeprefix(b"data: ")) for frame in frames_of(reply)]
    whole = parsed(genai, DIALECT.whole(reply, SERVED).body)
    assert accumulated(chunks) == accumulated([whole])
    last = chunks[-1]
    assert (last.usage_metadata, last.model_version, last.response_id, last.prompt_feedback) == (
        whole.usage_metadata,
        whole.model_version,
        whole.response_id,
        whole.prompt_feedback,
    )
    if whole.candidates:
        assert last.candidates[0].finish_reason == whole.candidates[0].finish_reason
    assert sources_of(chunks) == sources_of([whole])


def sources_of(responses: Iterable[Any]) -> list[Any]:
    found = [candidate.citation_metadata for response in responses for candidate in response.candidates or []]
    return [source for metadata in found if metadata for source in metadata.citations]
