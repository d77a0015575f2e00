"""Wire protocols, one file each: encode replies to frames, decode and validate requests.

A dialect is pure: it turns neutral data into bytes and bytes into neutral data, and never sees a connection, a script
or a clock. Everything else in this package reaches a protocol through ``Dialect`` and finds it in ``DIALECTS``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from fake_provider.dialects.anthropic_messages import AnthropicMessages
from fake_provider.dialects.problems import Problem, RefusedRequestError
from fake_provider.replies import ErrorReply, Reply
from fake_provider.requests import ModelRequest, Received
from fake_provider.wire import Frame, PlainReply

__all__ = ["DIALECTS", "DIALECT_DEFAULT", "Dialect", "Problem", "RefusedRequestError", "Served"]


@dataclass(frozen=True, slots=True)
class Served:
    """What a reply is served to: the identifiers and the request's facts that its bytes repeat."""

    message_id: str
    request_id: str
    model: str
    input_tokens: int
    window_tokens: int


class Dialect(Protocol):
    """One wire protocol."""

    name: str

    def is_model_request(self, received: Received) -> bool:
        """Whether this request asks for a reply of the model; everything else is a side request."""

    def side_reply(self, received: Received, request_id: str) -> PlainReply:
        """Answer a side request: the endpoints that clients call around a conversation, or a 404 or 405."""

    def decode(self, received: Received) -> ModelRequest:
        """Decode a request for the model.

        Raises:
            RefusedRequestError: The request has not the shape that the API asks for.
        """

    def problems(self, request: ModelRequest, window_tokens: int) -> tuple[Problem, ...]:
        """Return everything for which the real API would refuse the conversation, in the order of its rules."""

    def frames(self, reply: Reply, served: Served) -> tuple[Frame, ...]:
        """Encode a streamed reply, event by event."""

    def stream_headers(self, served: Served) -> tuple[tuple[str, str], ...]:
        """Return the headers of a streamed reply, without those of the transfer."""

    def whole(self, reply: Reply, served: Served) -> PlainReply:
        """Encode a reply that is not streamed."""

    def error(self, error: ErrorReply, served: Served) -> PlainReply:
        """Encode an error status."""

    def error_frame(self, error_type: str, message: str) -> Frame:
        """Encode an error event inside a stream."""


DIALECT_DEFAULT = "anthropic_messages"

DIALECTS: Mapping[str, Dialect] = {
    "anthropic_messages": AnthropicMessages(),
}
"""The register of dialects, by the word that a script uses."""
