"""The endpoints around a conversation that both OpenAI dialects answer: the list of models, and what does not exist.

Pure: from a request to a reply. It never knows which dialect asks, and it never answers for the model. ``/v1/models``
is a path of three services, so a request that carries another service's key or version is left to that one.
"""

from __future__ import annotations

import re

from fake_provider.dialects.openai_errors import MISSING_KEY, OpenAIError, plain_reply, side_error
from fake_provider.dialects.openai_fields import CREATED_SECONDS
from fake_provider.replies import ErrorReply
from fake_provider.requests import Received
from fake_provider.wire import PlainReply

MODELS = ("gpt-5", "gpt-5-mini", "gpt-5-codex", "gpt-4.1", "o4-mini")
"""What ``GET /v1/models`` lists; a request may name any model."""

_OTHER_SERVICES = ("anthropic-version", "x-goog-api-key")
_OTHER_KEY = re.compile(r"(?:^|&)key=")
_OTHER_VERB = re.compile(r":[a-z]+[A-Z][A-Za-z]*$|:embed$")


def endpoint(path: str) -> str:
    """Return a path without its version: the official clients put ``/v1`` into their base URL, so it may be missing."""
    return path.removeprefix("/v1") if path.startswith("/v1/") else path


def claims_models(received: Received) -> bool:
    """Whether this is ``/v1/models`` or one of its models, and no other service's request."""
    path = endpoint(received.path)
    if path != "/models" and not path.startswith("/models/"):
        return False
    if any(header in received.headers for header in _OTHER_SERVICES) or _OTHER_KEY.search(received.query):
        return False
    return _OTHER_VERB.search(path) is None


def models_reply(received: Received, request_id: str) -> PlainReply:
    """Answer the list of models or one model."""
    if received.method not in ("GET", "HEAD"):
        return wrong_verb(received, request_id)
    name = endpoint(received.path).removeprefix("/models").removeprefix("/")
    if not name:
        return plain_reply(200, {"object": "list", "data": [_model(model) for model in MODELS]}, request_id)
    if name in MODELS:
        return plain_reply(200, _model(name), request_id)
    error = OpenAIError(
        404, "invalid_request_error", f"The model '{name}' does not exist", "model_not_found", param="model"
    )
    return side_error(error, request_id)


def stored_completions_reply(received: Received, request_id: str) -> PlainReply:
    """Answer the list of stored chat completions: nothing is stored here, so it is empty, and each one is unknown."""
    name = endpoint(received.path).removeprefix("/chat/completions").removeprefix("/")
    if received.method not in ("GET", "HEAD"):
        return unknown_url(received, request_id) if name else wrong_verb(received, request_id)
    if not name:
        page: dict[str, object] = {"object": "list", "data": [], "first_id": None, "last_id": None, "has_more": False}
        return plain_reply(200, page, request_id)
    # By analogy with the wording for a response.
    error = OpenAIError(404, "invalid_request_error", f"Chat completion with id '{name}' not found.")
    return side_error(error, request_id)


def wrong_verb(received: Received, request_id: str) -> PlainReply:
    """Refuse a verb."""
    message = (
        f"Not allowed to {received.method} on {received.path}. "
        "(HINT: Perhaps you meant to use a different HTTP method?)"
    )
    return side_error(OpenAIError(405, "invalid_request_error", message, "method_not_supported"), request_id)


def unknown_url(received: Received, request_id: str) -> PlainReply:
    """Refuse a path that does not exist."""
    message = f"Invalid URL ({received.method} {received.path})"
    return side_error(OpenAIError(404, "invalid_request_error", message), request_id)


def without_key(received: Received) -> ErrorReply | None:
    """Return the error for a request with neither a bearer token nor the ``api-key`` of Azure's clients."""
    if {"authorization", "api-key"} & received.headers.keys():
        return None
    return ErrorReply(401, "invalid_request_error", "no API key", word=MISSING_KEY)


def _model(name: str) -> dict[str, object]:
    return {"id": name, "object": "model", "created": CREATED_SECONDS, "owned_by": "openai"}
