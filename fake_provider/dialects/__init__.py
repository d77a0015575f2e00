"""Wire protocols, one file each: encode replies to frames, decode and validate requests.

A dialect is pure: it turns neutral data into bytes and bytes into neutral data, and never sees a connection, a script
or a clock. Everything else in this package reaches a protocol through ``Dialect`` and finds it in ``DIALECTS``.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from fake_provider.dialects.anthropic_messages import AnthropicMessages
from fake_provider.dialects.gemini import Gemini
from fake_provider.dialects.openai_chat import OpenAIChat
from fake_provider.dialects.openai_responses import OpenAIResponses
from fake_provider.dialects.problems import Problem, RefusedRequestError
from fake_provider.limits import Limits
from fake_provider.replies import ErrorReply, Reply
from fake_provider.requests import ModelRequest, Received
from fake_provider.wire import Frame, PlainReply

__all__ = ["DIALECTS", "DIALECT_DEFAULT", "Dialect", "Problem", "RefusedRequestError", "Served"]


@dataclass(frozen=True, slots=True)
class Served:
    """What a reply is served to: the identifiers and the request's facts that its bytes repeat.

    Attributes:
        message_id: The reply's own identifier, from ``Dialect.message_id``.
        request_id: The identifier that goes into a header, from ``Dialect.request_id``.
        model: The model asked for.
        input_tokens: The request's size by the dialect's counting rule.
        window_tokens: The context window.
        body: The request's decoded body, for what a reply repeats of it.
        limits: What the rate-limit headers say.
    """

    message_id: str
    request_id: str
    model: str
    input_tokens: int
    window_tokens: int
    body: Mapping[str, Any] = field(default_factory=dict)
    limits: Limits = field(default_factory=Limits)


class Dialect(Protocol):
    """One wire protocol. Pure: no sockets, no time, no chance; the same arguments give the same bytes."""

    name: str
    error_types: tuple[str, ...]
    """The types an error event inside a stream can have, the overload first."""

    def claims(self, received: Received) -> bool:
        """Whether this request speaks this protocol: by its path, and where two share a path, by its headers."""

    def is_model_request(self, received: Received) -> bool:
        """Whether this request asks for a reply of the model; everything else is a side request."""

    def unauthenticated(self, received: Received) -> ErrorReply | None:
        """Return the error for a request without a key, or nothing where one is there; its value never matters."""

    def side_reply(self, received: Received, request_id: str) -> PlainReply:
        """Answer a side request: the endpoints that clients call around a conversation, or a 404 or 405."""

    def decode(self, received: Received) -> ModelRequest:
        """Decode a request for the model.

        Raises:
            RefusedRequestError: The request has not the shape that the API asks for.
        """

    def repeated(self, request: ModelRequest) -> Hashable | None:
        """Return what a reply repeats of a request beside its model and size; nothing where that may be all of it.

        Two requests of one model and size for which this is equal get the same bytes for the same answer.
        """

    def problems(self, request: ModelRequest, window_tokens: int) -> tuple[Problem, ...]:
        """Return everything for which the real API would refuse the conversation, in the order of its rules."""

    def refusal(self, problem: Problem, served: Served) -> PlainReply:
        """Encode the refusal of a request."""

    def unsayable(self, reply: Reply) -> str | None:
        """Return why a reply cannot be said in this dialect, or nothing if it can."""

    def frames(self, reply: Reply, served: Served) -> tuple[Frame, ...]:
        """Encode a streamed reply, event by event; each frame names its places."""

    def stream_headers(self, served: Served) -> tuple[tuple[str, str], ...]:
        """Return the headers of a streamed reply, without those of the transfer."""

    def whole(self, reply: Reply, served: Served) -> PlainReply:
        """Encode a reply that is not streamed."""

    def error(self, error: ErrorReply, served: Served) -> PlainReply:
        """Encode an error status; an error with a ``word`` is the dialect's own for it."""

    def error_frame(self, error_type: str, message: str, before: Sequence[Frame] = ()) -> Frame:
        """Encode an error event inside a stream; ``before`` are the frames that its number follows."""

    def unknown_frame(self, before: Sequence[Frame] = ()) -> Frame:
        """Encode a well-formed event of a type that no client knows; ``before`` as for an error event."""

    def ping_frame(self) -> Frame:
        """Encode an event that only says that the stream is alive; an SSE comment where the dialect has none."""

    def message_id(self, lane: int, number: int) -> str:
        """Return the identifier of a lane's nth reply; always of the same length."""

    def call_id(self, lane: int, number: int) -> str:
        """Return the identifier of a lane's nth tool call; always of the same length."""

    def request_id(self, number: int) -> str:
        """Return the identifier of the nth request; always of the same length."""


DIALECT_DEFAULT = "anthropic_messages"

DIALECTS: Mapping[str, Dialect] = {
    "anthropic_messages": AnthropicMessages(),
    "openai_chat": OpenAIChat(),
    "openai_responses": OpenAIResponses(),
    "gemini": Gemini(),
}
"""The register of dialects, by the word that a script uses."""
