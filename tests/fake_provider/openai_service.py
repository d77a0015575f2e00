"""A dialect as a service inside this process: what the official client sends is answered without a socket."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

import httpx2
import openai

from fake_provider.dialects import DIALECTS, Dialect, RefusedRequestError, Served
from fake_provider.limits import Limits
from fake_provider.replies import ErrorReply, Reply
from fake_provider.requests import ModelRequest, Received
from fake_provider.wire import Frame, PlainReply


def received_from(request: httpx2.Request) -> Received:
    """What a request of the client is to a dialect."""
    parts = urlsplit(str(request.url))
    headers = {name.lower(): value for name, value in request.headers.items()}
    return Received(request.method, parts.path, parts.query, headers, request.content)


@dataclass
class Service:
    """Answers each request of the model with the next answer; frames are sent as they are."""

    dialect: Dialect
    answers: list[Reply | ErrorReply | tuple[Frame, ...]]
    window_tokens: int = 1_000_000
    limits: Limits = field(default_factory=Limits)
    requests: list[ModelRequest] = field(default_factory=list)

    @classmethod
    def of(cls, name: str, *answers: Reply | ErrorReply | tuple[Frame, ...], **settings: Any) -> Service:
        return cls(DIALECTS[name], list(answers), **settings)

    def answer(self, request: httpx2.Request) -> httpx2.Response:
        received = received_from(request)
        assert self.dialect.claims(received), received.path
        if not self.dialect.is_model_request(received):
            return _response(self.dialect.side_reply(received, self.dialect.request_id(1)))
        served = self.served({})
        try:
            decoded = self.dialect.decode(received)
            served = self.served(decoded.body, decoded.model, decoded.estimated_tokens)
            problems = self.dialect.problems(decoded, self.window_tokens)
        except RefusedRequestError as refused:
            problems = refused.problems
        if problems:
            return _response(self.dialect.refusal(problems[0], served))
        self.requests.append(decoded)
        answer = self.answers.pop(0)
        if isinstance(answer, ErrorReply):
            return _response(self.dialect.error(answer, served))
        if isinstance(answer, Reply) and not decoded.stream:
            return _response(self.dialect.whole(answer, served))
        frames = self.dialect.frames(answer, served) if isinstance(answer, Reply) else answer
        content = b"".join(frame.payload for frame in frames)
        return httpx2.Response(200, headers=list(self.dialect.stream_headers(served)), content=content)

    def served(self, body: Any, model: str = "", tokens: int = 0) -> Served:
        number = len(self.requests) + 1
        return Served(
            self.dialect.message_id(1, number),
            self.dialect.request_id(number),
            model,
            tokens,
            self.window_tokens,
            body,
            self.limits,
        )

    def client(self, **options: Any) -> openai.OpenAI:
        transport = httpx2.MockTransport(self.answer)
        return openai.OpenAI(http_client=httpx2.Client(transport=transport), **{**SETTINGS, **options})

    def async_client(self, **options: Any) -> openai.AsyncOpenAI:
        transport = httpx2.MockTransport(self.answer)
        return openai.AsyncOpenAI(http_client=httpx2.AsyncClient(transport=transport), **{**SETTINGS, **options})


SETTINGS: dict[str, Any] = {"api_key": "sk-scripted", "base_url": "http://provider/v1", "max_retries": 0}


def _response(plain: PlainReply) -> httpx2.Response:
    return httpx2.Response(plain.status, headers=list(plain.headers), content=plain.body)
