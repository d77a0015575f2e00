"""How the OpenAI API says that something is wrong: error bodies, statuses, codes, and the headers of every reply.

Pure tables and encoders. It never decides which error a request gets. The body is ``{"error": {"message", "type",
"param", "code"}}`` (platform documentation, "Error codes"). The wordings of a missing or wrong key, a missing model, a
rate limit, a spent quota, a server error, a context that is too long, an unsupported region and an unknown URL are
quoted in public bug reports. By analogy: the types of the statuses 409, 413, 422, 502, 504 and 529, and the wording of
``request_too_large`` and ``bad_request``.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from fake_provider.dialects.openai_fields import encode
from fake_provider.dialects.placeholders import filled
from fake_provider.limits import Limits, RateLimit
from fake_provider.replies import ErrorReply, error_type
from fake_provider.wire import Frame, PlainReply

if TYPE_CHECKING:
    from fake_provider.dialects import Problem, Served

JSON = "application/json"
ORGANIZATION = "org-crashcart"
PROCESSING_MILLISECONDS = 42
"""What ``openai-processing-ms`` says; a constant, because a reply's bytes do not depend on a clock."""
VERSION = "2020-10-01"


@dataclass(frozen=True, slots=True)
class OpenAIError:
    """One error of the API: its HTTP status, and the four fields of its body."""

    status: int
    type: str
    message: str
    code: str | None = None
    param: str | None = None


_INVALID = "invalid_request_error"
_SERVER = "server_error"
_OVERLOADED = "The server is overloaded or not ready yet."
_SERVER_ERROR = (
    "The server had an error while processing your request. Sorry about that! You can retry your request, or contact "
    "us through our help center at help.openai.com if the error persists."
)
_QUOTA = (
    "You exceeded your current quota, please check your plan and billing details. For more information on this error, "
    "read the docs: https://platform.openai.com/docs/guides/error-codes/api-errors."
)
_RATE_LIMIT = (
    "Rate limit reached for {model} in organization {organization} on {window}: Limit {limit}, Used {used}, "
    "Requested {requested}. Please try again in {wait}. Visit https://platform.openai.com/account/rate-limits to learn "
    "more."
)
RATE_LIMIT_CODE = "rate_limit_exceeded"
CONTEXT_CODE = "context_length_exceeded"
MISSING_KEY = "missing_key"

ERROR_WORDS: Mapping[str, OpenAIError] = {
    "overloaded": OpenAIError(503, _SERVER, _OVERLOADED, "server_is_overloaded"),
    "rate_limited": OpenAIError(429, "requests", _RATE_LIMIT, RATE_LIMIT_CODE),
    "insufficient_quota": OpenAIError(429, "insufficient_quota", _QUOTA, "insufficient_quota"),
    "server_error": OpenAIError(500, _SERVER, _SERVER_ERROR),
    "bad_request": OpenAIError(400, _INVALID, "This request is refused by the script."),
    MISSING_KEY: OpenAIError(
        401,
        _INVALID,
        "You didn't provide an API key. You need to provide your API key in an Authorization header using Bearer auth "
        "(i.e. Authorization: Bearer YOUR_KEY), or as the password field (with blank username) if you're accessing the "
        "API from your browser and are prompted for a username and password. You can obtain an API key from "
        "https://platform.openai.com/account/api-keys.",
    ),
    "unauthorized": OpenAIError(
        401,
        _INVALID,
        "Incorrect API key provided: sk-****. You can find your API key at https://platform.openai.com/account/api-keys.",
        "invalid_api_key",
    ),
    "forbidden": OpenAIError(
        403,
        "request_forbidden",
        "Country, region, or territory not supported",
        "unsupported_country_region_territory",
    ),
    "model_not_found": OpenAIError(
        404, _INVALID, "The model `{model}` does not exist or you do not have access to it.", "model_not_found"
    ),
    "prompt_too_long": OpenAIError(
        400,
        _INVALID,
        "This model's maximum context length is {window_tokens} tokens. However, your messages resulted in {tokens} "
        "tokens. Please reduce the length of the messages.",
        CONTEXT_CODE,
        "messages",
    ),
    "request_too_large": OpenAIError(413, _INVALID, "Maximum content size limit (26214400) exceeded."),
}
"""The one-word steps of a script, and the error each one is here; Responses has its own text for two of them.

``MISSING_KEY`` is no step, but what a request without a key gets.
"""

STATUS_TYPES: Mapping[int, tuple[str, str | None]] = {
    400: (_INVALID, None),
    401: (_INVALID, "invalid_api_key"),
    403: ("request_forbidden", None),
    404: (_INVALID, None),
    409: (_INVALID, None),
    413: (_INVALID, None),
    422: (_INVALID, None),
    429: ("requests", RATE_LIMIT_CODE),
    500: (_SERVER, None),
    502: (_SERVER, None),
    503: (_SERVER, "server_is_overloaded"),
    504: (_SERVER, None),
    529: (_SERVER, "server_is_overloaded"),
}
"""Error type and code by status, for an error that has no word; others take those of 400 or 500."""


@dataclass(frozen=True, slots=True)
class StreamError:
    """An error inside a stream: the fields of its body, and how a Responses stream carries it.

    Attributes:
        type: The error's type.
        message: What it says where the script gives no text.
        code: The error's code.
        carrier: The Responses event: ``error`` with the error in an object of its own, ``flat`` for the same event with
            the fields beside the type, or ``response.failed``.
    """

    type: str
    message: str
    code: str | None
    carrier: str


STREAM_ERRORS: Mapping[str, StreamError] = {
    "server_is_overloaded": StreamError(
        "service_unavailable_error",
        "Our servers are currently overloaded. Please try again later.",
        "server_is_overloaded",
        "error",
    ),
    "server_error": StreamError(_SERVER, _SERVER_ERROR, _SERVER, "response.failed"),
    "rate_limit_exceeded": StreamError(
        "tokens", "Rate limit reached. Please try again in 1s.", RATE_LIMIT_CODE, "response.failed"
    ),
    "insufficient_quota": StreamError("insufficient_quota", _QUOTA, "insufficient_quota", "response.failed"),
    "context_length_exceeded": StreamError(
        _INVALID,
        "Your input exceeds the context window of this model. Please adjust your input and try again.",
        CONTEXT_CODE,
        "response.failed",
    ),
    "invalid_prompt": StreamError(
        _INVALID,
        "Invalid prompt: your prompt was flagged as potentially violating our usage policy.",
        "invalid_prompt",
        "response.failed",
    ),
    "stream_error": StreamError(_SERVER, _SERVER_ERROR, _SERVER, "flat"),
}
"""The types an error inside a stream can have.

That an overload comes as ``error`` with its own object, and a rate limit, a spent quota and a context that is too long
as ``response.failed``, is how the service behaves to the Codex client (public bug reports); ``flat`` is the form of
the API reference ("Streaming events", ``error``). A chat stream sends each as ``data: {"error": {…}}``.
"""


def stream_error(word: str, message: str) -> StreamError:
    """Return the error for a word; one that is not in the table is a type without a code.

    A message that only repeats the word is no message, and the table's own stands for it.
    """
    known = STREAM_ERRORS.get(word, StreamError(word, message, None, "error"))
    return known if message in ("", word) else replace(known, message=message)


def error_body(error: OpenAIError | StreamError, param: str | None = None) -> dict[str, Any]:
    """Return the object behind ``error``."""
    return {"message": error.message, "type": error.type, "param": param, "code": error.code}


def reply_headers(request_id: str) -> tuple[tuple[str, str], ...]:
    """Return the headers that every reply has."""
    return (
        ("x-request-id", request_id),
        ("openai-organization", ORGANIZATION),
        ("openai-processing-ms", str(PROCESSING_MILLISECONDS)),
        ("openai-version", VERSION),
    )


def limit_headers(limits: Limits) -> tuple[tuple[str, str], ...]:
    """Return the rate-limit headers (platform documentation, "Rate limits in headers")."""
    windows = (("requests", limits.requests), ("tokens", limits.tokens))
    return (
        *((f"x-ratelimit-limit-{name}", str(window.limit)) for name, window in windows),
        *((f"x-ratelimit-remaining-{name}", str(window.remaining)) for name, window in windows),
        *((f"x-ratelimit-reset-{name}", duration_text(window.reset_seconds)) for name, window in windows),
    )


def duration_text(seconds: float) -> str:
    """Write a duration as the rate-limit headers do: ``15ms``, ``1.5s``, ``6m0s``, ``1h0m0s``."""
    milliseconds = round(seconds * 1000)
    if milliseconds < 1000:
        return f"{milliseconds}ms"
    minutes, rest = divmod(milliseconds, 60_000)
    hours, minutes = divmod(minutes, 60)
    hours_text = f"{hours}h" if hours else ""
    minutes_text = f"{minutes}m" if minutes or hours else ""
    return f"{hours_text}{minutes_text}{rest / 1000:g}s"


def plain_reply(status: int, value: Any, request_id: str) -> PlainReply:
    """Encode a JSON reply with the headers that every reply has."""
    return PlainReply(status, (("content-type", JSON), *reply_headers(request_id)), encode(value))


def side_error(error: OpenAIError, request_id: str) -> PlainReply:
    """Encode an error outside any reply of the model."""
    return plain_reply(error.status, {"error": error_body(error, error.param)}, request_id)


def refusal_reply(problem: Problem, served: Served) -> PlainReply:
    """Encode the refusal of a request."""
    error = OpenAIError(problem.status, _INVALID, problem.message, problem.code, problem.param)
    return side_error(error, served.request_id)


def error_reply(error: ErrorReply, served: Served, words: Mapping[str, OpenAIError] = ERROR_WORDS) -> PlainReply:
    """Encode an error status.

    A word decides everything. Without one the status decides the code, and the type too, unless the script named a type
    other than the neutral default of that status. Of a header that the script gives, only the script's value is sent.
    """
    said = _said(error, words)
    headers = reply_headers(served.request_id)
    if said.status == 429 and said.code == RATE_LIMIT_CODE:
        said, more = _rate_limited(said, served, error)
        headers = (*headers, *more)
    said = replace(said, message=filled(said.message, served, verbatim=error.verbatim))
    body = encode({"error": error_body(said, said.param)})
    given = {name.lower() for name, _ in error.headers}
    return PlainReply(
        said.status,
        (
            ("content-type", error.content_type or JSON),
            *((name, value) for name, value in headers if name not in given),
            *error.headers,
        ),
        body if error.body is None else error.body.encode("utf-8"),
    )


def _said(error: ErrorReply, words: Mapping[str, OpenAIError]) -> OpenAIError:
    if error.word is not None and error.word in words:
        return words[error.word]
    kind, code = STATUS_TYPES.get(error.status, STATUS_TYPES[400 if error.status < 500 else 500])
    named = error.type != error_type(error.status)
    return OpenAIError(error.status, error.type if named else kind, error.message, code)


def _rate_limited(
    error: OpenAIError, served: Served, scripted: ErrorReply
) -> tuple[OpenAIError, tuple[tuple[str, str], ...]]:
    """Say which window is spent and how long to wait, so that headers and text agree.

    Spent is the window that says so, else the requests. To wait is what the script's headers say, else until the window
    is full again; a wait that they give as a date has no milliseconds.
    """
    limits = served.limits
    if limits.tokens.remaining <= 0 < limits.requests.remaining:
        kind, window, spent, requested = "tokens", "tokens per min (TPM)", limits.tokens, served.input_tokens
    else:
        kind, window, requested = "requests", "requests per min (RPM)", 1
        spent = _spent(limits.requests)
        limits = replace(limits, requests=spent)
    seconds = spent.reset_seconds if scripted.retry_seconds is None else scripted.retry_seconds
    facts = {
        "organization": ORGANIZATION,
        "window": window,
        "limit": spent.limit,
        "used": spent.limit - spent.remaining,
        "requested": requested,
        "wait": duration_text(seconds),
    }
    message = error.message
    for name, value in facts.items():
        message = message.replace(f"{{{name}}}", str(value))
    dated = scripted.retry_seconds is None and any(name.lower() == "retry-after" for name, _ in scripted.headers)
    wait = (
        *(() if dated else (("retry-after-ms", str(math.ceil(seconds * 1000))),)),
        ("retry-after", str(math.ceil(seconds))),
    )
    kind = kind if error.type in ("requests", "tokens") else error.type
    return replace(error, type=kind, message=message), (*limit_headers(limits), *wait)


def _spent(window: RateLimit) -> RateLimit:
    return replace(window, remaining=min(window.remaining, 0))


def keep_alive_frame() -> Frame:
    """Encode a comment of the event stream (HTML standard, "Server-sent events"): neither protocol has a ping event."""
    return Frame("ping", b": keep-alive\n\n", places=("ping",))
