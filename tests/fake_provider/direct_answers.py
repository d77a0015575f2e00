"""A dialect answering a client without a connection: the client's transport calls the dialect's methods."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fake_provider.dialects import DIALECTS, RefusedRequestError, Served
from fake_provider.limits import Limits
from fake_provider.replies import ErrorReply, Reply
from fake_provider.requests import ModelRequest, Received
from fake_provider.wire import Frame, PlainReply

LIMITS = Limits()


class DirectAnswers:
    """Answers each model request with the next of the given answers, and further ones with the last.

    A sequence of frames is streamed as it is; refusals are those of the dialect.
    """

    def __init__(self, dialect: str, *answers: Reply | ErrorReply | Sequence[Frame], limits: Limits = LIMITS) -> None:
        self.dialect = DIALECTS[dialect]
        self.window_tokens = 1_000_000
        self.received: list[Received] = []
        self.requests: list[ModelRequest] = []
        self.refused: list[str] = []
        self._answers = list(answers)
        self._limits = limits

    def transport(self, library: Any) -> Any:
        """The transport of an HTTP client of this library, which looks like httpx."""

        def handle(request: Any) -> Any:
            headers = {name.lower(): value for name, value in request.headers.items()}
            url = request.url
            received = Received(request.method, url.path, url.query.decode("ascii"), headers, request.content)
            answer = self.answer(received)
            return library.Response(answer.status, headers=list(answer.headers), content=answer.body)

        return library.MockTransport(handle)

    def answer(self, received: Received) -> PlainReply:
        """Answer one request; a stream comes back as one body."""
        self.received.append(received)
        dialect = self.dialect
        request_id = dialect.request_id(len(self.received))
        unserved = Served("", request_id, "", 0, self.window_tokens)
        assert dialect.claims(received)
        refusal = dialect.unauthenticated(received)
        if refusal is not None:
            return dialect.error(refusal, unserved)
        if not dialect.is_model_request(received):
            return dialect.side_reply(received, request_id)
        try:
            request = dialect.decode(received)
            problems = dialect.problems(request, self.window_tokens)
        except RefusedRequestError as refused:
            problems = refused.problems
        if problems:
            self.refused += [problem.rule for problem in problems]
            return dialect.refusal(problems[0], unserved)
        self.requests.append(request)
        served = self.served(request)
        answer = self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]
        if isinstance(answer, ErrorReply):
            return dialect.error(answer, served)
        if isinstance(answer, Reply) and not request.stream:
            return dialect.whole(answer, served)
        frames = dialect.frames(answer, served) if isinstance(answer, Reply) else answer
        return PlainReply(200, dialect.stream_headers(served), b"".join(frame.payload for frame in frames))

    def served(self, request: ModelRequest) -> Served:
        """What a reply to the latest request is served to."""
        return Served(
            self.dialect.message_id(1, len(self.requests)),
            self.dialect.request_id(len(self.received)),
            request.model,
            request.estimated_tokens,
            self.window_tokens,
            request.body,
            self._limits,
        )
