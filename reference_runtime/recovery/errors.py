"""What a failed attempt at a model request means, and what follows it (A1, A3, A7, A8, B3, B4, B6, C1).

The first half gives a failure its kind; the tables below say what a kind leads to. Never sends, waits or counts.
"""

from collections.abc import Mapping
from enum import StrEnum

from reference_runtime.recovery.table import Answer, Table, impossible, row


class FailureKind(StrEnum):
    """What went wrong with one attempt, as far as the decision needs it."""

    OVERLOADED = "overloaded"
    SERVER_ERROR = "server_error"
    RATE_LIMITED = "rate_limited"
    REQUEST_TIMEOUT = "request_timeout"
    CONFLICT = "conflict"
    CONNECTION = "connection"
    NO_REPLY = "no_reply"
    STREAM_CUT = "stream_cut"
    STREAM_STALL = "stream_stall"
    STREAM_MALFORMED = "stream_malformed"
    MALFORMED_RESPONSE = "malformed_response"
    AUTHENTICATION = "authentication"
    PERMISSION = "permission"
    BILLING = "billing"
    MODEL_UNAVAILABLE = "model_unavailable"
    PROMPT_TOO_LONG = "prompt_too_long"
    INVALID_REQUEST = "invalid_request"


class Directive(StrEnum):
    """The provider's own word in `x-should-retry`, when it gave one."""

    NONE = "none"
    RETRY = "retry"
    NO_RETRY = "no_retry"


class StreamFallback(StrEnum):
    """Whether this request may still be asked again without streaming (B4)."""

    AVAILABLE = "available"
    UNAVAILABLE = "unavailable"


class AttemptDecision(StrEnum):
    """What the request runner does after one failed attempt."""

    RETRY = "retry"
    STREAM_FALLBACK = "stream_fallback"
    GIVE_UP = "give_up"


class ModelDecision(StrEnum):
    """What the request runner does when a model's attempts are used up."""

    FALL_BACK = "fall_back"
    END_API_ERROR = "end_api_error"
    END_MODEL_ERROR = "end_model_error"
    END_PROMPT_TOO_LONG = "end_prompt_too_long"


KIND_BY_STATUS: Mapping[int, FailureKind] = {
    401: FailureKind.AUTHENTICATION,
    402: FailureKind.BILLING,
    403: FailureKind.PERMISSION,
    404: FailureKind.MODEL_UNAVAILABLE,
    408: FailureKind.REQUEST_TIMEOUT,
    409: FailureKind.CONFLICT,
    413: FailureKind.PROMPT_TOO_LONG,
    429: FailureKind.RATE_LIMITED,
    529: FailureKind.OVERLOADED,
}
"""HTTP status to kind, for the statuses that mean something of their own."""

KIND_BY_ERROR_TYPE: Mapping[str, FailureKind] = {
    "overloaded_error": FailureKind.OVERLOADED,
    "api_error": FailureKind.SERVER_ERROR,
    "timeout_error": FailureKind.SERVER_ERROR,
    "rate_limit_error": FailureKind.RATE_LIMITED,
    "authentication_error": FailureKind.AUTHENTICATION,
    "billing_error": FailureKind.BILLING,
    "permission_error": FailureKind.PERMISSION,
    "not_found_error": FailureKind.MODEL_UNAVAILABLE,
    "request_too_large": FailureKind.PROMPT_TOO_LONG,
    "invalid_request_error": FailureKind.INVALID_REQUEST,
}
"""Error type of a provider's body or stream event to kind."""

OVER_LENGTH_PHRASES = ("prompt is too long", "context window", "context length", "maximum context")
"""Wordings by which providers say that the request does not fit (E1)."""


def kind_of_status(status: int, error_type: str, message: str) -> FailureKind:
    """The kind of a reply that is not a success.

    Args:
        status: HTTP status, anything outside 200–299.
        error_type: The body's error type, or empty when the body has none.
        message: The body's message, or its text when it is not an error object.
    """
    if status < 500 and _says_over_length(message):
        return FailureKind.PROMPT_TOO_LONG
    if error_type == "overloaded_error":
        return FailureKind.OVERLOADED
    if status in KIND_BY_STATUS:
        return KIND_BY_STATUS[status]
    return FailureKind.SERVER_ERROR if status >= 500 else FailureKind.INVALID_REQUEST


def kind_of_stream_error(error_type: str, message: str) -> FailureKind:
    """The kind of an error event inside a 200 stream (B6); an error type not known counts as a server error."""
    if _says_over_length(message):
        return FailureKind.PROMPT_TOO_LONG
    return KIND_BY_ERROR_TYPE.get(error_type, FailureKind.SERVER_ERROR)


def directive_of(headers: Mapping[str, str]) -> Directive:
    """The provider's `x-should-retry`, from headers with lower-case names; another value than true or false is none."""
    value = headers.get("x-should-retry", "").strip().lower()
    return {"true": Directive.RETRY, "false": Directive.NO_RETRY}.get(value, Directive.NONE)


def _says_over_length(message: str) -> bool:
    lowered = message.lower()
    return any(phrase in lowered for phrase in OVER_LENGTH_PHRASES)


_STREAM_BROKEN = (FailureKind.STREAM_CUT, FailureKind.STREAM_STALL, FailureKind.STREAM_MALFORMED)
_NO_RESPONSE = (FailureKind.CONNECTION, FailureKind.NO_REPLY)
_PASSING = (
    FailureKind.OVERLOADED,
    FailureKind.SERVER_ERROR,
    FailureKind.RATE_LIMITED,
    FailureKind.REQUEST_TIMEOUT,
    FailureKind.CONFLICT,
    FailureKind.MALFORMED_RESPONSE,
    *_NO_RESPONSE,
)
_LASTING = (
    FailureKind.AUTHENTICATION,
    FailureKind.PERMISSION,
    FailureKind.BILLING,
    FailureKind.MODEL_UNAVAILABLE,
    FailureKind.PROMPT_TOO_LONG,
    FailureKind.INVALID_REQUEST,
)
_WITH_RESPONSE = tuple(kind for kind in FailureKind if kind not in _NO_RESPONSE)

ATTEMPTS: Table[AttemptDecision] = Table(
    name="attempts",
    question="An attempt at a model request failed: is the same request sent again?",
    clauses=("A1", "A2", "A3", "A7", "A8", "B3", "B4", "B6"),
    facts={
        "kind": tuple(FailureKind),
        "directive": tuple(Directive),
        "attempts_left": tuple(Answer),
        "stream_fallback": tuple(StreamFallback),
    },
    rows=(
        row(
            "stream-fallback",
            AttemptDecision.STREAM_FALLBACK,
            "What broke is the streaming, so the same request is asked for in one piece; this has its own budget.",
            kind=_STREAM_BROKEN,
            directive=(Directive.NONE, Directive.RETRY),
            stream_fallback=(StreamFallback.AVAILABLE,),
        ),
        row(
            "stream-retry",
            AttemptDecision.RETRY,
            "A broken stream is a broken connection once asking without a stream is not open.",
            kind=_STREAM_BROKEN,
            directive=(Directive.NONE, Directive.RETRY),
            stream_fallback=(StreamFallback.UNAVAILABLE,),
            attempts_left=(Answer.YES,),
        ),
        row(
            "stream-exhausted",
            AttemptDecision.GIVE_UP,
            "Every attempt that the caller allowed has been made.",
            kind=_STREAM_BROKEN,
            directive=(Directive.NONE, Directive.RETRY),
            stream_fallback=(StreamFallback.UNAVAILABLE,),
            attempts_left=(Answer.NO,),
        ),
        row(
            "retry",
            AttemptDecision.RETRY,
            "The failure can pass by itself and the request had no effect that a repeat would double.",
            kind=_PASSING,
            directive=(Directive.NONE,),
            attempts_left=(Answer.YES,),
        ),
        row(
            "exhausted",
            AttemptDecision.GIVE_UP,
            "Every attempt that the caller allowed has been made.",
            kind=_PASSING,
            directive=(Directive.NONE,),
            attempts_left=(Answer.NO,),
        ),
        row(
            "refused",
            AttemptDecision.GIVE_UP,
            "The provider would refuse the same request again; repeating it only adds delay and traffic.",
            kind=_LASTING,
            directive=(Directive.NONE,),
        ),
        row(
            "told-to-retry",
            AttemptDecision.RETRY,
            "The provider said that a repeat can succeed, and knows better than its status code.",
            kind=tuple(k for k in _WITH_RESPONSE if k not in _STREAM_BROKEN),
            directive=(Directive.RETRY,),
            attempts_left=(Answer.YES,),
        ),
        row(
            "told-to-retry-exhausted",
            AttemptDecision.GIVE_UP,
            "The provider's word raises no budget of the caller.",
            kind=tuple(k for k in _WITH_RESPONSE if k not in _STREAM_BROKEN),
            directive=(Directive.RETRY,),
            attempts_left=(Answer.NO,),
        ),
        row(
            "told-not-to-retry",
            AttemptDecision.GIVE_UP,
            "The provider said that a repeat cannot succeed, and knows better than its status code.",
            kind=_WITH_RESPONSE,
            directive=(Directive.NO_RETRY,),
        ),
    ),
    impossible=(
        impossible(
            "Without a response there is no header that could carry a directive.",
            kind=_NO_RESPONSE,
            directive=(Directive.RETRY, Directive.NO_RETRY),
        ),
    ),
)

_MODEL_AT_FAULT = (FailureKind.OVERLOADED, FailureKind.SERVER_ERROR, FailureKind.MODEL_UNAVAILABLE)

MODELS: Table[ModelDecision] = Table(
    name="models",
    question="A model's attempts are used up: does the next model of the chain take over?",
    clauses=("A7", "A8", "C1"),
    facts={"kind": tuple(FailureKind), "fallback_left": tuple(Answer)},
    rows=(
        row(
            "next-model",
            ModelDecision.FALL_BACK,
            "The trouble belongs to this model, and another one may be well.",
            kind=_MODEL_AT_FAULT,
            fallback_left=(Answer.YES,),
        ),
        row(
            "chain-exhausted",
            ModelDecision.END_API_ERROR,
            "The last model of the chain is in trouble too.",
            kind=(FailureKind.OVERLOADED, FailureKind.SERVER_ERROR),
            fallback_left=(Answer.NO,),
        ),
        row(
            "no-such-model",
            ModelDecision.END_MODEL_ERROR,
            "The model asked for does not serve, and no other was named.",
            kind=(FailureKind.MODEL_UNAVAILABLE,),
            fallback_left=(Answer.NO,),
        ),
        row(
            "not-the-models-fault",
            ModelDecision.END_API_ERROR,
            "Credentials, billing, rate limit, request and transport would meet another model in the same way.",
            kind=(
                FailureKind.RATE_LIMITED,
                FailureKind.REQUEST_TIMEOUT,
                FailureKind.CONFLICT,
                FailureKind.CONNECTION,
                FailureKind.NO_REPLY,
                FailureKind.STREAM_CUT,
                FailureKind.STREAM_STALL,
                FailureKind.AUTHENTICATION,
                FailureKind.PERMISSION,
                FailureKind.BILLING,
                FailureKind.INVALID_REQUEST,
            ),
        ),
        row(
            "not-a-message",
            ModelDecision.END_MODEL_ERROR,
            "What came back was never a valid message.",
            kind=(FailureKind.MALFORMED_RESPONSE, FailureKind.STREAM_MALFORMED),
        ),
        row(
            "over-length",
            ModelDecision.END_PROMPT_TOO_LONG,
            "The request does not fit; another model or another try does not make it shorter.",
            kind=(FailureKind.PROMPT_TOO_LONG,),
        ),
    ),
)
