"""The Gemini API: ``generateContent``, ``streamGenerateContent``, ``countTokens`` and ``models``, as v1beta and v1.

Bodies follow the API reference ("Generating content", "Counting tokens", "Models") and the official client's types. A
stream is events with ``?alt=sse``, and without it one JSON array that is written piece by piece. It never decides which
reply a request gets, and it never sees a connection.

Every chunk holds the token counts, the serving model and the reply's identifier, as the real one does; the last one
holds the finish reason and an empty text. A blocked prompt is a reply ``refusal`` without any block. JSON is written
compactly, where the service indents a whole reply.
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, unquote

import msgspec

from fake_provider.dialects.gemini_errors import (
    ERRORS,
    EVENTS_TYPE,
    FRONTEND_HEADERS,
    JSON_TYPE,
    NO_KEY,
    STATUS_WORDS,
    GeminiError,
    details_of,
    error_value,
    status_of,
    status_word,
)
from fake_provider.dialects.gemini_parts import Piece, streamed_pieces, whole_pieces
from fake_provider.dialects.gemini_requests import GeminiBody, messages_of, system_text, tool_names
from fake_provider.dialects.gemini_rules import CONVERSATION_RULES, estimated_tokens
from fake_provider.dialects.gemini_shapes import DATA_FIELDS, Judged, canonical, judge, shape_problems
from fake_provider.dialects.placeholders import filled
from fake_provider.dialects.problems import Problem, RefusedRequestError
from fake_provider.limits import Limits
from fake_provider.replies import ErrorReply, Opaque, Reply, Usage
from fake_provider.requests import ModelRequest, NotJsonError, Received, decode_json
from fake_provider.wire import Frame, Headers, PlainReply

if TYPE_CHECKING:
    from fake_provider.dialects import Served

MODELS: Mapping[str, str] = {
    "gemini-2.5-pro": "Gemini 2.5 Pro",
    "gemini-2.5-flash": "Gemini 2.5 Flash",
    "gemini-3-pro-preview": "Gemini 3 Pro Preview",
}
"""What ``GET /v1beta/models`` lists, with the names to show; a request may name any model."""

FINISH_REASONS: Mapping[str, str] = {
    "end_turn": "STOP",
    "tool_use": "STOP",
    "stop_sequence": "STOP",
    "max_tokens": "MAX_TOKENS",
    "model_context_window_exceeded": "MAX_TOKENS",
    "refusal": "SAFETY",
}
"""The finish reason of each stop reason; ``pause_turn`` has no counterpart (API reference, "FinishReason")."""

_GENERATE = "generateContent"
_STREAM = "streamGenerateContent"
_COUNT = "countTokens"
_METHOD_PATH = re.compile(r"/(?:v1|v1beta|v1alpha)/(?:models|tunedModels)/(?P<model>[^:]+):(?P<method>\w+)")
_MODEL_PATH = re.compile(r"/(?P<version>v1|v1beta|v1alpha)/models(?:/(?P<model>[^:]+))?")
_BETA_PATHS = ("/v1beta/", "/v1alpha/")
_SAFETY_RATINGS = [{"category": "HARM_CATEGORY_DANGEROUS_CONTENT", "probability": "HIGH", "blocked": True}]


class Gemini:
    """The dialect's register entry; see ``fake_provider.dialects.Dialect`` for each method's contract."""

    name = "gemini"
    error_types: tuple[str, ...] = (
        "UNAVAILABLE",
        "INTERNAL",
        "RESOURCE_EXHAUSTED",
        "DEADLINE_EXCEEDED",
        "INVALID_ARGUMENT",
    )

    def claims(self, received: Received) -> bool:
        """Whether the path is this API's; those of ``/v1/models`` are only with a key as this API takes it."""
        if received.path.startswith(_BETA_PATHS) or _METHOD_PATH.fullmatch(received.path):
            return True
        return _MODEL_PATH.fullmatch(received.path) is not None and _has_own_key(received)

    def is_model_request(self, received: Received) -> bool:
        """Whether this is a ``POST`` to generate content, streamed or not."""
        return received.method == "POST" and _method(received) in (_GENERATE, _STREAM)

    def unauthenticated(self, received: Received) -> ErrorReply | None:
        """Ask for ``x-goog-api-key``, ``?key=`` or a bearer token."""
        if _has_own_key(received) or "authorization" in received.headers:
            return None
        return ErrorReply(403, "PERMISSION_DENIED", NO_KEY)

    def message_id(self, lane: int, number: int) -> str:
        """Return ``resp-`` and 20 digits."""
        return f"resp-{lane:02d}{number:018d}"

    def call_id(self, lane: int, number: int) -> str:
        """Return ``call-`` and 20 digits."""
        return f"call-{lane:02d}{number:018d}"

    def request_id(self, number: int) -> str:
        """Return ``req-`` and 20 digits; this API has no header for it."""
        return f"req-{number:020d}"

    def side_reply(self, received: Received, request_id: str) -> PlainReply:
        """Answer ``countTokens`` and ``models``; anything else is 404."""
        if received.method == "POST" and _method(received) == _COUNT:
            return _counted(received)
        found = _MODEL_PATH.fullmatch(received.path)
        if found is None or received.method not in ("GET", "HEAD"):
            return _refused(404, "Method not found.")
        name = found.group("model")
        if name is None:
            return _plain(200, {"models": [_model_info(model) for model in MODELS]})
        name = unquote(name)
        if name not in MODELS:
            return _refused(404, f"Model is not found: models/{name} for api version {found.group('version')}")
        return _plain(200, _model_info(name))

    def decode(self, received: Received) -> ModelRequest:
        """Decode and check the shape.

        Raises:
            RefusedRequestError: The body is no JSON object, or has a field that the API does not know.
        """
        raw = _json(received.body)
        body = canonical(raw)
        problems = shape_problems(body)
        if problems:
            raise RefusedRequestError(problems)
        streamed = _method(received) == _STREAM
        limit = body.get("generationConfig", {}).get("maxOutputTokens")
        return ModelRequest(
            dialect=self.name,
            path=received.path,
            headers=received.headers,
            model=_model(received),
            stream=streamed,
            max_tokens=limit,
            system=system_text(body),
            messages=messages_of(body),
            tools=tool_names(body),
            estimated_tokens=estimated_tokens(body),
            body=GeminiBody(raw, in_array=streamed and not _as_events(received)),
        )

    def repeated(self, request: ModelRequest) -> Hashable | None:
        """Return whether the stream is asked for as a JSON array."""
        return isinstance(request.body, GeminiBody) and request.body.in_array

    def problems(self, request: ModelRequest, window_tokens: int) -> tuple[Problem, ...]:
        """Apply the conversation rules."""
        judged = Judged(canonical(request.body), request.model, request.estimated_tokens, window_tokens)
        return judge(CONVERSATION_RULES, judged)

    def refusal(self, problem: Problem, served: Served) -> PlainReply:
        """Encode a refusal; of a wrong field, the details name it."""
        word = status_word(problem.status)
        return self._error(GeminiError(problem.status, problem.message), word, served)

    def unsayable(self, reply: Reply) -> str | None:
        """Return why there is no finish reason for it, or no part that an opaque block could be."""
        if reply.stop_reason not in FINISH_REASONS:
            return f"the Gemini API has no finish reason for '{reply.stop_reason}'"
        for block in reply.blocks:
            if isinstance(block, Opaque) and sum(name in DATA_FIELDS for name in block.content) != 1:
                return f"a part of the Gemini API has exactly one of {', '.join(DATA_FIELDS)}"
        return None

    def frames(self, reply: Reply, served: Served) -> tuple[Frame, ...]:
        """Encode one chunk for each piece of a part, and a last one with the finish reason."""
        if _blocks_prompt(reply):
            places = ("start", "stop", *_usage_place(reply), "terminal")
            return _framed([(_blocked(reply, served), places)], served)
        chunks: list[tuple[dict[str, Any], tuple[str, ...]]] = []
        for piece in streamed_pieces(reply.blocks, reply.model or served.model):
            candidate = {"content": {"parts": [piece.part], "role": "model"}, "index": 0, **_cited([piece])}
            chunks.append((_response(candidate, reply, served, ended=False), piece.places))
        candidate = {"content": {"parts": [{"text": ""}], "role": "model"}, **_finish(reply), "index": 0}
        last = _response(candidate, reply, served, ended=True)
        chunks.append((last, ("stop", *_usage_place(reply), "terminal")))
        chunks[0] = (chunks[0][0], ("start", *chunks[0][1]))
        return _framed(chunks, served)

    def stream_headers(self, served: Served) -> Headers:
        """Return the headers of an event stream, or of a JSON array."""
        if _in_array(served):
            return (("content-type", JSON_TYPE), *FRONTEND_HEADERS)
        return (("content-type", EVENTS_TYPE), ("content-disposition", "attachment"), *FRONTEND_HEADERS)

    def whole(self, reply: Reply, served: Served) -> PlainReply:
        """Encode the reply as one JSON body."""
        if _blocks_prompt(reply):
            return _plain(200, _blocked(reply, served))
        pieces = whole_pieces(reply.blocks, reply.model or served.model)
        content: dict[str, Any] = {"parts": [piece.part for piece in pieces], "role": "model"}
        if not pieces:
            # A candidate that says nothing has a content without parts.
            del content["parts"]
        candidate = {"content": content, **_finish(reply), "index": 0, **_cited(pieces)}
        return _plain(200, _response(candidate, reply, served, ended=True))

    def error(self, error: ErrorReply, served: Served) -> PlainReply:
        """Encode an error, its placeholders filled in from the request."""
        known = ERRORS.get(error.word or "")
        if known is None:
            word = error.type if error.type in STATUS_WORDS.values() else status_word(error.status)
            known = GeminiError(error.status, error.message)
        else:
            word = known.word
        said = replace(known, message=filled(known.message, served, verbatim=error.verbatim))
        plain = self._error(said, word, served, error.retry_seconds)
        body = plain.body if error.body is None else error.body.encode("utf-8")
        headers = (("content-type", error.content_type or JSON_TYPE), *plain.headers[1:], *error.headers)
        return PlainReply(plain.status, headers, body)

    def error_frame(self, error_type: str, message: str, before: Sequence[Frame] = ()) -> Frame:
        """Encode an error as an event, where the next chunk would be; in a JSON array it is no element."""
        status = status_of(error_type)
        return Frame("error", _event(msgspec.json.encode(error_value(status, error_type, message))))

    def unknown_frame(self, before: Sequence[Frame] = ()) -> Frame:
        """Encode a chunk without any field that this API has."""
        return Frame("crashcart_unknown", _event(msgspec.json.encode({"crashcartUnknown": 1})))

    def ping_frame(self) -> Frame:
        """Encode an SSE comment; this API sends no sign of life of its own."""
        return Frame("ping", b": ping\r\n\r\n", places=("ping",))

    def _error(self, error: GeminiError, word: str, served: Served, retry_seconds: float | None = None) -> PlainReply:
        details = details_of(error, served.model, served.limits, retry_seconds)
        value: Any = error_value(error.status, word, error.message, details)
        return _plain(error.status, [value] if _in_array(served) else value)


def _method(received: Received) -> str | None:
    found = _METHOD_PATH.fullmatch(received.path)
    return None if found is None else found.group("method")


def _model(received: Received) -> str:
    found = _METHOD_PATH.fullmatch(received.path)
    return "" if found is None else unquote(found.group("model"))


def _has_own_key(received: Received) -> bool:
    return "x-goog-api-key" in received.headers or "key" in parse_qs(received.query)


def _as_events(received: Received) -> bool:
    query = parse_qs(received.query)
    return "sse" in query.get("alt", []) + query.get("$alt", [])


def _in_array(served: Served) -> bool:
    return isinstance(served.body, GeminiBody) and served.body.in_array


def _json(data: bytes) -> Any:
    try:
        body = decode_json(data)
    except NotJsonError as error:
        raise RefusedRequestError((Problem("json", f"Invalid JSON payload received. {error}"),)) from error
    return body


def _plain(status: int, value: Any) -> PlainReply:
    return PlainReply(status, (("content-type", JSON_TYPE), *FRONTEND_HEADERS), msgspec.json.encode(value))


def _refused(status: int, message: str) -> PlainReply:
    word = status_word(status)
    return _plain(status, error_value(status, word, message, details_of(GeminiError(status, message), "", Limits())))


def _counted(received: Received) -> PlainReply:
    try:
        body = canonical(_json(received.body), "CountTokensRequest")
    except RefusedRequestError as refused:
        return _refused(400, str(refused))
    problems = shape_problems(body, "CountTokensRequest")
    if problems:
        return _refused(400, problems[0].message)
    tokens = estimated_tokens(body.get("generateContentRequest", body))
    return _plain(200, {"totalTokens": tokens, "promptTokensDetails": [{"modality": "TEXT", "tokenCount": tokens}]})


def _model_info(model: str) -> dict[str, Any]:
    return {
        "name": f"models/{model}",
        "version": "001",
        "displayName": MODELS[model],
        "inputTokenLimit": 1_048_576,
        "outputTokenLimit": 65_536,
        "supportedGenerationMethods": [_GENERATE, _COUNT],
        "thinking": True,
    }


def _blocks_prompt(reply: Reply) -> bool:
    return reply.stop_reason == "refusal" and not reply.blocks


def _blocked(reply: Reply, served: Served) -> dict[str, Any]:
    feedback = {"promptFeedback": {"blockReason": "PROHIBITED_CONTENT"}}
    return {**feedback, **_response(None, reply, served, ended=False)}


def _finish(reply: Reply) -> dict[str, Any]:
    reason = FINISH_REASONS[reply.stop_reason]
    return {"finishReason": reason} | ({"safetyRatings": _SAFETY_RATINGS} if reason == "SAFETY" else {})


def _cited(pieces: Sequence[Piece]) -> dict[str, Any]:
    sources = [dict(citation) for piece in pieces for citation in piece.citations]
    return {"citationMetadata": {"citationSources": sources}} if sources else {}


def _response(candidate: Mapping[str, Any] | None, reply: Reply, served: Served, *, ended: bool) -> dict[str, Any]:
    response: dict[str, Any] = {} if candidate is None else {"candidates": [candidate]}
    if reply.usage is not None:
        response["usageMetadata"] = _usage(reply, reply.usage, served, ended=ended)
    return {**response, "modelVersion": reply.model or served.model, "responseId": served.message_id}


def _usage_place(reply: Reply) -> tuple[str, ...]:
    return () if reply.usage is None else ("usage",)


def _usage(reply: Reply, usage: Usage, served: Served, *, ended: bool) -> dict[str, Any]:
    """Return the counts; unlike the neutral ones, the prompt's hold what was cached, and thoughts stand apart."""
    fresh = served.input_tokens if usage.input_tokens is None else usage.input_tokens
    prompt = fresh + usage.cache_read_input_tokens + usage.cache_creation_input_tokens
    counts: dict[str, Any] = {"promptTokenCount": prompt}
    output = 0
    if ended:
        pieces = whole_pieces(reply.blocks, "")
        output = usage.output_tokens if usage.output_tokens is not None else _tokens_of(pieces)
        thoughts = [piece for piece in pieces if piece.part.get("thought")]
        thought = min(output, _tokens_of(thoughts)) if thoughts else 0
        counts["candidatesTokenCount"] = output - thought
        if thoughts:
            counts["thoughtsTokenCount"] = thought
    counts["totalTokenCount"] = prompt + output
    if usage.cache_read_input_tokens:
        counts["cachedContentTokenCount"] = usage.cache_read_input_tokens
    counts["promptTokensDetails"] = [{"modality": "TEXT", "tokenCount": prompt}]
    return counts


def _tokens_of(pieces: Sequence[Piece]) -> int:
    return max(1, -(-sum(len(msgspec.json.encode(piece.part)) for piece in pieces) // 4))


def _event(data: bytes) -> bytes:
    return b"data: %b\r\n\r\n" % data


def _framed(chunks: Sequence[tuple[Mapping[str, Any], tuple[str, ...]]], served: Served) -> tuple[Frame, ...]:
    encoded = [msgspec.json.encode(chunk) for chunk, _ in chunks]
    if _in_array(served):
        written = [(b"[" if index == 0 else b",\r\n") + data for index, data in enumerate(encoded)]
        written[-1] += b"]"
    else:
        written = [_event(data) for data in encoded]
    return tuple(
        Frame("chunk", payload, fixed=False, places=places)
        for payload, (_, places) in zip(written, chunks, strict=True)
    )
