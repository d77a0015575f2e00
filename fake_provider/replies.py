"""The provider-neutral reply model: what a scripted model says, before any dialect turns it into bytes.

Frozen data without I/O. It never holds a wire format, an identifier of a request, or a time: those belong to the
dialect and to the server.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

STOP_REASONS = (
    "end_turn",
    "max_tokens",
    "model_context_window_exceeded",
    "pause_turn",
    "refusal",
    "stop_sequence",
    "tool_use",
)
"""Stop reasons, in the words of the Messages API (platform documentation, "Handling stop reasons")."""


@dataclass(frozen=True, slots=True)
class Text:
    """Visible text; citations are the dialect's own objects, passed through where it has them."""

    text: str
    citations: tuple[Mapping[str, Any], ...] = ()


@dataclass(frozen=True, slots=True)
class Thinking:
    """Reasoning; ``signature`` is the dialect's own MAC over the text where the script gives none."""

    thinking: str
    signature: str | None = None


@dataclass(frozen=True, slots=True)
class RedactedThinking:
    """Reasoning that only the provider can read; ``data`` comes back unchanged or is refused."""

    data: str


@dataclass(frozen=True, slots=True)
class ToolUse:
    """A request to run a tool.

    Attributes:
        name: The tool.
        input: Its arguments.
        id: Filled in when the step is played where the script gives none.
        arguments: Text sent where the JSON of ``input`` belongs, valid or not.
        split_at: Character positions of the arguments' text at which a stream begins a new piece; the dialect's own
            pieces where it is nothing. A dialect that sends arguments whole has no pieces.
    """

    name: str
    input: Mapping[str, Any] = field(default_factory=dict)
    id: str | None = None
    arguments: str | None = None
    split_at: tuple[int, ...] | None = None

    @property
    def arguments_text(self) -> str:
        """The arguments as the text that a stream carries."""
        return json.dumps(self.input, ensure_ascii=False) if self.arguments is None else self.arguments


@dataclass(frozen=True, slots=True)
class Opaque:
    """A block in the words of one dialect, passed through unchanged: server-side tools and their results."""

    content: Mapping[str, Any]


Block: TypeAlias = Text | Thinking | RedactedThinking | ToolUse | Opaque


@dataclass(frozen=True, slots=True)
class Usage:
    """Token counts, in tokens; ``None`` lets the dialect count by its documented rule."""

    input_tokens: int | None = None
    output_tokens: int | None = None
    cache_read_input_tokens: int = 0
    cache_creation_input_tokens: int = 0


@dataclass(frozen=True, slots=True)
class Reply:
    """One answer of the model.

    Attributes:
        blocks: What it says, in order.
        stop_reason: A word of ``STOP_REASONS``; each dialect has its own table from these words to its own.
        usage: The counts, or nothing where the reply leaves them out altogether.
        model: The serving model where it differs from the one asked for.
        stop_sequence: The sequence that ended the reply, where one did.
    """

    blocks: tuple[Block, ...]
    stop_reason: str
    usage: Usage | None = Usage()
    model: str | None = None
    stop_sequence: str | None = None


@dataclass(frozen=True, slots=True)
class ErrorReply:
    """An answer that is an error: an HTTP status with the dialect's error body.

    Attributes:
        status: HTTP status code; a dialect that has another status for the same ``word`` sends its own.
        type: The error's type word, as the provider writes it.
        message: The error's text; ``{model}``, ``{tokens}`` and ``{window_tokens}`` are filled in from the request,
            unless it is ``verbatim``.
        headers: Headers beside the dialect's own, in order.
        body: Raw text sent instead of the dialect's error body.
        content_type: Content type sent instead of the dialect's own.
        word: The one-word step it came from, a key of ``ERROR_WORDS``; each dialect has its own status, type and text
            for it.
        verbatim: The text repeats what a client sent, and nothing in it is a placeholder.
    """

    status: int
    type: str
    message: str
    headers: tuple[tuple[str, str], ...] = ()
    body: str | None = None
    content_type: str | None = None
    word: str | None = None
    verbatim: bool = False

    @property
    def retry_seconds(self) -> float | None:
        """How long its headers tell the client to wait; nothing where they do not, or name a date."""
        stated = {name.lower(): value.strip() for name, value in self.headers}
        for name, units_per_second in (("retry-after-ms", 1000), ("retry-after", 1)):
            if _DECIMAL.fullmatch(stated.get(name, "")):
                return float(stated[name]) / units_per_second
        return None


_DECIMAL = re.compile(r"[0-9]{1,9}(\.[0-9]{1,9})?")

ERROR_TYPES: Mapping[int, str] = {
    400: "invalid_request_error",
    401: "authentication_error",
    402: "billing_error",
    403: "permission_error",
    404: "not_found_error",
    409: "conflict_error",
    413: "request_too_large",
    429: "rate_limit_error",
    500: "api_error",
    504: "timeout_error",
    529: "overloaded_error",
}
"""Error type by status (platform documentation, "Errors")."""

PROMPT_TOO_LONG = "prompt is too long: {tokens} tokens > {window_tokens} maximum"

_MESSAGES_ERRORS: Mapping[str, ErrorReply] = {
    "overloaded": ErrorReply(529, "overloaded_error", "Overloaded"),
    "rate_limited": ErrorReply(429, "rate_limit_error", "This request would exceed your account's rate limit."),
    "insufficient_quota": ErrorReply(
        400,
        "invalid_request_error",
        "Your credit balance is too low to access the Anthropic API. "
        "Please go to Plans & Billing to upgrade or purchase credits.",
    ),
    "server_error": ErrorReply(500, "api_error", "Internal server error"),
    "bad_request": ErrorReply(400, "invalid_request_error", "messages: this request is refused by the script"),
    "unauthorized": ErrorReply(401, "authentication_error", "invalid x-api-key"),
    "forbidden": ErrorReply(
        403, "permission_error", "Your API key does not have permission to use the specified resource."
    ),
    "model_not_found": ErrorReply(404, "not_found_error", "model: {model}"),
    "prompt_too_long": ErrorReply(400, "invalid_request_error", PROMPT_TOO_LONG),
    "request_too_large": ErrorReply(413, "request_too_large", "Request exceeds the maximum size"),
}

ERROR_WORDS: Mapping[str, ErrorReply] = {word: replace(error, word=word) for word, error in _MESSAGES_ERRORS.items()}
"""The one-word steps of a script, and the error each one is in the words of the Messages API."""


def error_type(status: int) -> str:
    """Return the error type that goes with a status; an unlisted one takes that of its class (4xx, 5xx)."""
    if status in ERROR_TYPES:
        return ERROR_TYPES[status]
    return "invalid_request_error" if status < 500 else "api_error"
