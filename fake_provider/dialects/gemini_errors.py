"""Errors and headers of the Gemini API: which status, word and text an error has, and its machine-readable details.

Pure tables; it never decides which error a request gets. The statuses are those of the documentation
("Troubleshooting") and of google.rpc.Code; texts are known from public bug reports, except that of ``forbidden``, which
is that of Google's API frontend. Rate-limit headers do not exist here: when to retry is in the body.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from fake_provider.dialects.gemini_rules import TOO_LONG
from fake_provider.limits import Limits
from fake_provider.wire import Headers

JSON_TYPE = "application/json; charset=UTF-8"
EVENTS_TYPE = "text/event-stream"

FRONTEND_HEADERS: Headers = (
    ("vary", "Origin"),
    ("vary", "X-Origin"),
    ("vary", "Referer"),
    ("server", "scaffolding on HTTPServer2"),
    ("x-xss-protection", "0"),
    ("x-frame-options", "SAMEORIGIN"),
    ("x-content-type-options", "nosniff"),
)

STATUS_WORDS: Mapping[int, str] = {
    400: "INVALID_ARGUMENT",
    401: "UNAUTHENTICATED",
    403: "PERMISSION_DENIED",
    404: "NOT_FOUND",
    409: "ABORTED",
    412: "FAILED_PRECONDITION",
    429: "RESOURCE_EXHAUSTED",
    499: "CANCELLED",
    500: "INTERNAL",
    501: "UNIMPLEMENTED",
    503: "UNAVAILABLE",
    504: "DEADLINE_EXCEEDED",
}
"""The word of an HTTP status (google.rpc.Code)."""


@dataclass(frozen=True, slots=True)
class GeminiError:
    """One error as this API has it."""

    status: int
    message: str
    reason: str | None = None

    @property
    def word(self) -> str:
        """The status word."""
        return status_word(self.status)


ERRORS: Mapping[str, GeminiError] = {
    "overloaded": GeminiError(503, "The model is overloaded. Please try again later."),
    "rate_limited": GeminiError(
        429,
        "You exceeded your current quota, please check your plan and billing details. For more information on this "
        "error, head to: https://ai.google.dev/gemini-api/docs/rate-limits.",
    ),
    "insufficient_quota": GeminiError(
        429, "Your prepayment credits are depleted. Please go to AI Studio to manage your project and billing."
    ),
    "server_error": GeminiError(
        500,
        "An internal error has occurred. Please retry or report in "
        "https://developers.generativeai.google/guide/troubleshooting",
    ),
    "bad_request": GeminiError(400, "Request contains an invalid argument."),
    # A wrong key is an invalid argument here, not a failed authentication.
    "unauthorized": GeminiError(400, "API key not valid. Please pass a valid API key.", reason="API_KEY_INVALID"),
    "forbidden": GeminiError(403, "The caller does not have permission"),
    "model_not_found": GeminiError(
        404,
        "models/{model} is not found for API version v1beta, or is not supported for generateContent. "
        "Call ListModels to see the list of available models and their supported methods.",
    ),
    "prompt_too_long": GeminiError(400, TOO_LONG),
    "request_too_large": GeminiError(400, "Request payload size exceeds the limit: 20971520 bytes."),
}
"""The one-word steps of a script as this API has them."""

NO_KEY = (
    "Method doesn't allow unregistered callers (callers without established identity). "
    "Please use API Key or other form of API consumer identity to call this API."
)

_VIOLATION = re.compile(r"Unknown name \".*?\" at '(?P<field>[^']*)'|Invalid value at '(?P<value>[^']*)'")


def status_word(status: int) -> str:
    """Return the word of a status; one that has none takes that of its class."""
    if status in STATUS_WORDS:
        return STATUS_WORDS[status]
    return "INVALID_ARGUMENT" if status < 500 else "UNAVAILABLE" if status == 529 else "INTERNAL"


def status_of(word: str) -> int:
    """Return the HTTP status of a word; an unknown word is an internal error."""
    return next((status for status, known in STATUS_WORDS.items() if known == word), 500)


def error_value(status: int, word: str, message: str, details: list[Any] | None = None) -> dict[str, Any]:
    """Return the body of an error as a JSON value."""
    error: dict[str, Any] = {"code": status, "message": message, "status": word}
    if details:
        error["details"] = details
    return {"error": error}


def details_of(error: GeminiError, model: str, limits: Limits, retry_seconds: float | None = None) -> list[Any]:
    """Return the details that go with an error: what was exhausted and when to retry, or which field is wrong.

    Args:
        error: The error, its text filled in.
        model: The model asked for.
        limits: The account's; without ``retry_seconds`` they say when to retry.
        retry_seconds: When to retry, where the script says it in a header.
    """
    if error.status == 429:
        return _exhausted(model, limits, retry_seconds)
    if error.reason is not None:
        return [
            {
                "@type": "type.googleapis.com/google.rpc.ErrorInfo",
                "reason": error.reason,
                "domain": "googleapis.com",
                "metadata": {"service": "generativelanguage.googleapis.com"},
            },
            {"@type": "type.googleapis.com/google.rpc.LocalizedMessage", "locale": "en-US", "message": error.message},
        ]
    violations = [violation for line in error.message.splitlines() if (violation := _violation(line)) is not None]
    if not violations:
        return []
    return [{"@type": "type.googleapis.com/google.rpc.BadRequest", "fieldViolations": violations}]


def _exhausted(model: str, limits: Limits, retry_seconds: float | None) -> list[Any]:
    refilled = max(1.0, limits.requests.reset_seconds, limits.tokens.reset_seconds)
    seconds = math.ceil(refilled if retry_seconds is None else retry_seconds)
    return [
        {
            "@type": "type.googleapis.com/google.rpc.QuotaFailure",
            "violations": [
                {
                    "quotaMetric": "generativelanguage.googleapis.com/generate_content_paid_tier_requests",
                    "quotaId": "GenerateRequestsPerMinutePerProjectPerModel-PaidTier",
                    "quotaDimensions": {"location": "global", "model": model},
                    "quotaValue": str(limits.requests.limit),
                }
            ],
        },
        {
            "@type": "type.googleapis.com/google.rpc.Help",
            "links": [
                {
                    "description": "Learn more about Gemini API quotas",
                    "url": "https://ai.google.dev/gemini-api/docs/rate-limits",
                }
            ],
        },
        {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": f"{seconds}s"},
    ]


def _violation(line: str) -> dict[str, str] | None:
    if not line.startswith(("Invalid JSON payload received. Unknown name", "Invalid value at")):
        return None
    found = _VIOLATION.search(line)
    field = (found.group("field") or found.group("value")) if found else None
    return {"description": line} if field is None else {"field": field, "description": line}
