"""The small endpoints around both OpenAI dialects, whose requests they take, and what an error says beside its text."""

from __future__ import annotations

import json
from typing import Any

import openai
import pytest

from fake_provider.dialects import DIALECTS
from fake_provider.dialects.openai_errors import duration_text
from fake_provider.dialects.openai_models import MODELS
from fake_provider.replies import ErrorReply, Reply, Text, error_type
from fake_provider.requests import Received
from fake_provider.wire import PlainReply
from tests.fake_provider.openai_service import Service

CHAT, RESPONSES = "openai_chat", "openai_responses"
BOTH = (CHAT, RESPONSES)


def received(method: str, path: str, query: str = "", body: Any = None, **headers: str) -> Received:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return Received(method, path, query, named, b"" if body is None else json.dumps(body).encode())


@pytest.mark.parametrize(
    ("path", "query", "headers", "chat", "responses"),
    [
        ("/v1/chat/completions", "", {}, True, False),
        ("/chat/completions", "", {}, True, False),
        ("/v1/chat/completions/chatcmpl-1", "", {}, True, False),
        ("/v1/responses", "", {}, False, True),
        ("/responses", "", {}, False, True),
        ("/v1/responses/resp_1", "", {}, False, True),
        ("/v1/models", "", {}, True, True),
        ("/models", "", {}, True, True),
        ("/v1/models/gpt-5", "", {}, True, True),
        ("/v1/models/ft:gpt-4.1:me::id", "", {}, True, True),
        ("/v1/models", "", {"anthropic_version": "2023-06-01"}, False, False),
        ("/v1/models", "", {"x_goog_api_key": "k"}, False, False),
        ("/v1/models", "pageSize=5&key=k", {}, False, False),
        ("/v1/models/m:generateContent", "", {}, False, False),
        ("/v1/models/m:streamGenerateContent", "alt=sse", {}, False, False),
        ("/v1/messages", "", {}, False, False),
        ("/v1/responsesx", "", {}, False, False),
        ("/", "", {}, False, False),
    ],
)
def test_each_dialect_takes_its_own_requests(
    path: str, query: str, headers: dict[str, str], chat: bool, responses: bool
) -> None:
    for method in ("GET", "POST"):
        request = received(method, path, query, **headers)
        assert (DIALECTS[CHAT].claims(request), DIALECTS[RESPONSES].claims(request)) == (chat, responses)


@pytest.mark.parametrize(
    ("name", "method", "path", "asks"),
    [
        (CHAT, "POST", "/v1/chat/completions", True),
        (CHAT, "POST", "/chat/completions", True),
        (CHAT, "GET", "/v1/chat/completions", False),
        (CHAT, "GET", "/v1/models", False),
        (RESPONSES, "POST", "/v1/responses", True),
        (RESPONSES, "POST", "/v1/responses/input_tokens", False),
        (RESPONSES, "GET", "/v1/responses/resp_1", False),
    ],
)
def test_a_request_for_the_model_is_told_from_a_side_request(name: str, method: str, path: str, asks: bool) -> None:
    assert DIALECTS[name].is_model_request(received(method, path)) is asks


@pytest.mark.parametrize("name", BOTH)
def test_the_models_are_listed_and_found(name: str) -> None:
    with Service.of(name).client() as client:
        assert [model.id for model in client.models.list()] == list(MODELS)
        assert client.models.retrieve("gpt-5").id == "gpt-5"
        with pytest.raises(openai.NotFoundError, match="The model 'gpt-0' does not exist") as raised:
            client.models.retrieve("gpt-0")
    assert (raised.value.code, raised.value.param) == ("model_not_found", "model")


def test_no_completion_is_stored() -> None:
    with Service.of(CHAT).client() as client:
        assert list(client.chat.completions.list()) == []
        with pytest.raises(openai.NotFoundError, match="'chatcmpl-1' not found"):
            client.chat.completions.retrieve("chatcmpl-1")


def test_no_response_is_stored() -> None:
    service = Service.of(RESPONSES, Reply((Text("Hi."),), "end_turn"))
    with service.client() as client:
        made = client.responses.create(model="m", input="hi")
        for ask in (client.responses.retrieve, client.responses.delete, client.responses.cancel):
            with pytest.raises(openai.NotFoundError, match=f"Response with id '{made.id}' not found."):
                ask(made.id)
        with pytest.raises(openai.NotFoundError, match="not found"):
            client.responses.input_items.list(made.id)


def test_input_tokens_are_counted_by_the_rule_that_judges_the_window() -> None:
    service = Service.of(RESPONSES, Reply((Text("Hi."),), "end_turn"))
    with service.client() as client:
        counted = client.responses.input_tokens.count(model="m", input="x" * 38, instructions="be brief")
        made = client.responses.create(model="m", input="x" * 38, instructions="be brief")
        assert made.usage is not None
        assert counted.input_tokens == made.usage.input_tokens == 13
        item: Any = {"type": "function_call", "id": "x", "call_id": "c", "name": "n", "arguments": ""}
        with pytest.raises(openai.BadRequestError, match="Expected an ID that begins with 'fc'"):
            client.responses.input_tokens.count(input=[item])


@pytest.mark.parametrize(
    ("name", "method", "path", "status", "message", "code"),
    [
        (CHAT, "DELETE", "/v1/chat/completions", 405, "Not allowed to DELETE on /v1/chat/completions.", True),
        (CHAT, "POST", "/v1/models", 405, "Not allowed to POST on /v1/models.", True),
        (CHAT, "POST", "/v1/chat/completions/x", 404, "Invalid URL (POST /v1/chat/completions/x)", False),
        (RESPONSES, "GET", "/v1/responses", 405, "Not allowed to GET on /v1/responses.", True),
        (RESPONSES, "GET", "/v1/responses/input_tokens", 405, "Not allowed to GET on", True),
        (RESPONSES, "POST", "/v1/responses/compact", 404, "Invalid URL (POST /v1/responses/compact)", False),
        (RESPONSES, "POST", "/v1/responses/x/y", 404, "Invalid URL (POST /v1/responses/x/y)", False),
        (RESPONSES, "POST", "/v1/models", 405, "Not allowed to POST on /v1/models.", True),
    ],
)
def test_what_does_not_exist_is_refused(
    name: str, method: str, path: str, status: int, message: str, code: bool
) -> None:
    reply = DIALECTS[name].side_reply(received(method, path), "req_1")
    error = json.loads(reply.body)["error"]
    assert (reply.status, error["type"]) == (status, "invalid_request_error")
    assert error["message"].startswith(message)
    assert error["code"] == ("method_not_supported" if code else None)


def test_a_body_that_is_no_json_is_no_reason_to_count() -> None:
    request = Received("POST", "/v1/responses/input_tokens", "", {}, b"{")
    assert DIALECTS[RESPONSES].side_reply(request, "req_1").status == 400


@pytest.mark.parametrize(
    ("name", "message"),
    [(CHAT, "You didn't provide an API key."), (RESPONSES, "Missing bearer or basic authentication in header")],
)
def test_a_request_without_a_key_is_refused_in_each_dialects_words(name: str, message: str) -> None:
    dialect = DIALECTS[name]
    assert dialect.unauthenticated(received("POST", "/", authorization="Bearer x")) is None
    assert dialect.unauthenticated(received("POST", "/", api_key="x")) is None
    error = dialect.unauthenticated(received("POST", "/"))
    assert error is not None
    reply = dialect.error(error, Service.of(name).served({}))
    said = json.loads(reply.body)["error"]
    assert (reply.status, said["type"], said["code"]) == (401, "invalid_request_error", None)
    assert said["message"].startswith(message)


def headers_of(reply: PlainReply) -> dict[str, str]:
    assert len(dict(reply.headers)) == len(reply.headers)
    return dict(reply.headers)


@pytest.mark.parametrize("name", BOTH)
def test_every_reply_says_who_made_it_and_what_is_left(name: str) -> None:
    dialect, served = DIALECTS[name], Service.of(name).served({}, "asked")
    reply = Reply((Text("Hi."),), "end_turn")
    whole = headers_of(dialect.whole(reply, served))
    streamed = dict(dialect.stream_headers(served))
    assert (whole["content-type"], streamed["content-type"]) == ("application/json", "text/event-stream; charset=utf-8")
    for headers in (whole, streamed):
        assert headers["x-request-id"] == dialect.request_id(1)
        assert headers["openai-version"] == "2020-10-01"
        assert headers["openai-processing-ms"].isdigit()
        assert headers["x-ratelimit-limit-requests"] == "4000"
        assert headers["x-ratelimit-remaining-tokens"] == "399000"
        assert headers["x-ratelimit-reset-requests"] == "15ms"


@pytest.mark.parametrize("name", BOTH)
def test_an_error_is_filled_in_from_the_request(name: str) -> None:
    dialect, served = DIALECTS[name], Service.of(name, window_tokens=100).served({}, "asked", 7)
    neutral = ErrorReply(400, error_type(400), "{model}: {tokens} > {window_tokens}")
    assert json.loads(dialect.error(neutral, served).body)["error"]["message"] == "asked: 101 > 100"
    named = ErrorReply(400, "peculiar_error", "x")
    assert json.loads(dialect.error(named, served).body)["error"]["type"] == "peculiar_error"


@pytest.mark.parametrize("name", BOTH)
def test_identifiers_have_one_length(name: str) -> None:
    dialect = DIALECTS[name]
    for ids in (
        [dialect.message_id(1, 1), dialect.message_id(12, 999_999)],
        [dialect.call_id(1, 1), dialect.call_id(12, 999_999)],
        [dialect.request_id(1), dialect.request_id(999_999)],
    ):
        assert len({len(identifier) for identifier in ids}) == 1
        assert len(set(ids)) == 2


@pytest.mark.parametrize("name", BOTH)
def test_a_frame_that_is_called_fixed_has_the_same_length_for_every_request(name: str) -> None:
    from tests.fake_provider.test_openai_client import every_kind

    dialect = DIALECTS[name]
    reply = every_kind(name)
    grouped = {"type": "namespace", "name": "group", "tools": [{"type": "function", "name": "clock"}]}
    body = {"model": "a longer name", "stream_options": {"include_usage": True}, "tools": [grouped], "user": "u"}
    short = dialect.frames(reply, Service.of(name).served({}, "m"))
    long = [frame for frame in dialect.frames(reply, Service.of(name).served(body, "a longer name")) if frame.fixed]
    assert [len(frame.payload) for frame in short if frame.fixed] == [len(frame.payload) for frame in long]
    assert not all(frame.fixed for frame in short)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.0, "0ms"),
        (0.015, "15ms"),
        (0.9996, "1s"),
        (1.5, "1.5s"),
        (60, "1m0s"),
        (86.4, "1m26.4s"),
        (3600, "1h0m0s"),
        (5025.25, "1h23m45.25s"),
    ],
)
def test_a_duration_is_written_as_the_service_does(seconds: float, text: str) -> None:
    assert duration_text(seconds) == text


@pytest.mark.parametrize(
    ("error", "status", "kind", "code"),
    [
        (ErrorReply(418, error_type(418), "x"), 418, "invalid_request_error", None),
        (ErrorReply(599, error_type(599), "x"), 599, "server_error", None),
        (ErrorReply(503, error_type(503), "x", word="new_word"), 503, "server_error", "server_is_overloaded"),
        (ErrorReply(429, error_type(429), "x", word="insufficient_quota"), 429, *["insufficient_quota"] * 2),
    ],
)
def test_an_error_that_has_no_word_has_the_type_of_its_status(
    error: ErrorReply, status: int, kind: str, code: str | None
) -> None:
    reply = DIALECTS[CHAT].error(error, Service.of(CHAT).served({}, "asked"))
    said = json.loads(reply.body)["error"]
    assert (reply.status, said["type"], said["code"]) == (status, kind, code)
    # Waiting helps against none of these.
    assert "retry-after" not in headers_of(reply)
