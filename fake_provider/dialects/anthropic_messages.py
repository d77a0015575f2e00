"""The Anthropic Messages API: ``POST /v1/messages``, streamed or not, and the small endpoints around it.

Event order and bodies follow the platform documentation ("Messages", "Streaming Messages", "Errors", "Models"). It
never decides which reply a request gets, and it never sees a connection. How blocks look is in ``anthropic_blocks``,
what is refused in ``anthropic_rules``.
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

import msgspec

from fake_provider.dialects.anthropic_blocks import block_frames, event_frame, signed_blocks, whole_block
from fake_provider.dialects.anthropic_headers import error_headers, identity_headers, limit_headers
from fake_provider.dialects.anthropic_rules import (
    CONVERSATION_RULES,
    SHAPE_RULES,
    Judged,
    blocks_of,
    estimated_tokens,
    judge,
)
from fake_provider.dialects.anthropic_thinking import WANTS_REASONING
from fake_provider.dialects.placeholders import filled
from fake_provider.dialects.problems import Problem, RefusedRequestError
from fake_provider.replies import (
    Block,
    ErrorReply,
    Opaque,
    RedactedThinking,
    Reply,
    Text,
    Thinking,
    ToolUse,
    error_type,
)
from fake_provider.requests import (
    Message,
    ModelRequest,
    NotJsonError,
    OtherBlock,
    Received,
    RequestBlock,
    ToolResult,
    decode_json,
)
from fake_provider.wire import Frame, Headers, PlainReply

if TYPE_CHECKING:
    from fake_provider.dialects import Served

MODELS: Mapping[str, str] = {
    "claude-opus-4-1": "Claude Opus 4.1",
    "claude-sonnet-4-5": "Claude Sonnet 4.5",
    "claude-haiku-4-5": "Claude Haiku 4.5",
}
"""What ``GET /v1/models`` lists, with the names to show; a request may name any model."""

# A version is a date; which dates there are changes, so that any is taken.
_VERSION = re.compile(r"\d{4}-\d{2}-\d{2}")
_JSON = "application/json"
_MODEL_PATH = "/v1/models/"
_GET = frozenset({"GET", "HEAD"})
_POST = frozenset({"POST"})
_ENDPOINTS: Mapping[str, frozenset[str]] = {
    "/v1/messages": _POST,
    "/v1/messages/count_tokens": _POST,
    "/v1/models": _GET,
    "/api/hello": _GET,
}


class AnthropicMessages:
    """The dialect's register entry; see ``fake_provider.dialects.Dialect`` for each method's contract."""

    name = "anthropic_messages"
    error_types: tuple[str, ...] = (
        "overloaded_error",
        "api_error",
        "rate_limit_error",
        "timeout_error",
        "invalid_request_error",
    )

    def claims(self, received: Received) -> bool:
        """Whether the path is one of the Messages API's; those of ``/v1/models`` are, with the version header."""
        if received.path == "/v1/models" or received.path.startswith(_MODEL_PATH):
            return "anthropic-version" in received.headers
        return received.path in _ENDPOINTS

    def unauthenticated(self, received: Received) -> ErrorReply | None:
        """Ask for ``x-api-key`` or a bearer token and for a valid version header, except on ``/api/hello``."""
        if received.path == "/api/hello":
            return None
        if not {"x-api-key", "authorization"} & received.headers.keys():
            return ErrorReply(401, "authentication_error", "x-api-key header is required")
        version = received.headers.get("anthropic-version")
        if version is None:
            return ErrorReply(400, "invalid_request_error", "anthropic-version: header is required")
        if not _VERSION.fullmatch(version):
            message = f'anthropic-version: "{version}" is not a valid version'
            return ErrorReply(400, "invalid_request_error", message, verbatim=True)
        return None

    def message_id(self, lane: int, number: int) -> str:
        """Return ``msg_`` and 24 digits."""
        return f"msg_{lane:02d}{number:022d}"

    def call_id(self, lane: int, number: int) -> str:
        """Return ``toolu_`` and 24 digits."""
        return f"toolu_{lane:02d}{number:022d}"

    def request_id(self, number: int) -> str:
        """Return ``req_`` and 24 digits."""
        return f"req_{number:024d}"

    def is_model_request(self, received: Received) -> bool:
        """Whether this is a ``POST /v1/messages``."""
        return received.method == "POST" and received.path == "/v1/messages"

    def side_reply(self, received: Received, request_id: str) -> PlainReply:
        """Answer ``count_tokens``, ``models`` and ``hello``; anything else is 404, a wrong verb 405."""
        methods = _GET if received.path.startswith(_MODEL_PATH) else _ENDPOINTS.get(received.path)
        if methods is None:
            return _error_reply(404, "not_found_error", "Not Found", request_id)
        if received.method not in methods:
            return _error_reply(405, "invalid_request_error", "Method Not Allowed", request_id)
        return _side_endpoint(received, request_id)

    def decode(self, received: Received) -> ModelRequest:
        """Decode and check the shape.

        Raises:
            RefusedRequestError: The body is no JSON object, or a shape rule found something.
        """
        body = _json_object(received.body)
        problems = judge(SHAPE_RULES, Judged(body, 0, 0))
        if problems:
            raise RefusedRequestError(problems)
        return ModelRequest(
            dialect=self.name,
            path=received.path,
            headers=received.headers,
            model=body["model"],
            stream=bool(body.get("stream", False)),
            max_tokens=body["max_tokens"],
            system="\n".join(_texts(blocks_of(body.get("system")))),
            messages=tuple(
                Message(message["role"], tuple(_request_block(block) for block in blocks_of(message["content"])))
                for message in body["messages"]
            ),
            tools=tuple(tool["name"] for tool in body.get("tools", ()) if "name" in tool),
            estimated_tokens=estimated_tokens(body),
            body=body,
        )

    def repeated(self, request: ModelRequest) -> Hashable | None:
        """Return the same for every request: a reply repeats nothing else."""
        return ()

    def problems(self, request: ModelRequest, window_tokens: int) -> tuple[Problem, ...]:
        """Apply the conversation rules."""
        betas = tuple(word.strip() for word in request.headers.get("anthropic-beta", "").split(","))
        found = judge(CONVERSATION_RULES, Judged(request.body, request.estimated_tokens, window_tokens, betas))
        return tuple(
            replace(problem, wants_reasoning=True) if problem.rule in WANTS_REASONING else problem for problem in found
        )

    def refusal(self, problem: Problem, served: Served) -> PlainReply:
        """Encode a refusal."""
        return _error_reply(problem.status, error_type(problem.status), problem.message, served.request_id)

    def unsayable(self, reply: Reply) -> str | None:
        """Return what an opaque block lacks; everything else of the neutral model is this API's."""
        if any(isinstance(block, Opaque) and not isinstance(block.content.get("type"), str) for block in reply.blocks):
            return "a block of the Messages API has a type"
        return None

    def frames(self, reply: Reply, served: Served) -> tuple[Frame, ...]:
        """Encode message_start, each block's start, deltas and stop, message_delta and message_stop.

        One ping follows the first block's start, or message_start where there is no block, as the real stream has it.
        """
        signed = signed_blocks(reply.blocks, reply.model or served.model)
        usage = _usage(reply, served, signed)
        begun = None if usage is None else {**usage, "output_tokens": 1}
        start = {"type": "message_start", "message": _message(reply, served, [], begun, ended=False)}
        ending: dict[str, Any] = {"type": "message_delta", "delta": _ending(reply)}
        if usage is not None:
            ending["usage"] = {"output_tokens": usage["output_tokens"]}
        blocks = [frame for index, block in enumerate(signed) for frame in block_frames(index, block)]
        return (
            event_frame(start, fixed=False, places=("start",)),
            *blocks[:1],
            self.ping_frame(),
            *blocks[1:],
            event_frame(ending, places=("stop",) if usage is None else ("stop", "usage")),
            event_frame({"type": "message_stop"}, places=("terminal",)),
        )

    def stream_headers(self, served: Served) -> Headers:
        """Return the headers of an event stream."""
        return (
            ("content-type", "text/event-stream; charset=utf-8"),
            ("cache-control", "no-cache"),
            *identity_headers(served.request_id),
            *limit_headers(served.limits),
        )

    def whole(self, reply: Reply, served: Served) -> PlainReply:
        """Encode the message as one JSON body."""
        signed = signed_blocks(reply.blocks, reply.model or served.model)
        content = [whole_block(block) for block in signed]
        message = _message(reply, served, content, _usage(reply, served, signed), ended=True)
        headers = (
            ("content-type", _JSON),
            *identity_headers(served.request_id),
            *limit_headers(served.limits),
        )
        return PlainReply(200, headers, msgspec.json.encode(message))

    def error(self, error: ErrorReply, served: Served) -> PlainReply:
        """Encode an error, its placeholders filled in from the request."""
        message = filled(error.message, served, verbatim=error.verbatim)
        body = _error_body(error.type, message, served.request_id)
        if error.body is not None:
            body = error.body.encode("utf-8")
        scripted = {name.lower() for name, _ in error.headers}
        own = (*identity_headers(served.request_id), *error_headers(error.status, served.limits))
        headers = (
            ("content-type", error.content_type or _JSON),
            *((name, value) for name, value in own if name not in scripted),
            *error.headers,
        )
        return PlainReply(error.status, headers, body)

    def error_frame(self, error_type: str, message: str, before: Sequence[Frame] = ()) -> Frame:
        """Encode the ``error`` event that may stand anywhere in a stream."""
        return event_frame({"type": "error", "error": {"type": error_type, "message": message}})

    def unknown_frame(self, before: Sequence[Frame] = ()) -> Frame:
        """Encode an event of a type that does not exist."""
        return event_frame({"type": "crashcart_unknown", "value": 1})

    def ping_frame(self) -> Frame:
        """Encode a ping."""
        return event_frame({"type": "ping"}, places=("ping",))


def _ending(reply: Reply) -> dict[str, Any]:
    ending: dict[str, Any] = {"stop_reason": reply.stop_reason, "stop_sequence": reply.stop_sequence}
    if reply.stop_reason == "refusal":
        ending["stop_details"] = {"type": "refusal", "category": None, "explanation": None}
    return ending


def _message(
    reply: Reply, served: Served, content: list[Any], usage: Mapping[str, Any] | None, *, ended: bool
) -> dict[str, Any]:
    message = {
        "id": served.message_id,
        "type": "message",
        "role": "assistant",
        "model": reply.model or served.model,
        "content": content,
        **(_ending(reply) if ended else {"stop_reason": None, "stop_sequence": None}),
    }
    return message if usage is None else {**message, "usage": usage}


def _usage(reply: Reply, served: Served, signed: tuple[Block, ...]) -> dict[str, Any] | None:
    usage = reply.usage
    if usage is None:
        return None
    output = usage.output_tokens
    if output is None:
        output = max(1, -(-sum(len(msgspec.json.encode(whole_block(block))) for block in signed) // 4))
    return {
        "input_tokens": served.input_tokens if usage.input_tokens is None else usage.input_tokens,
        "cache_creation_input_tokens": usage.cache_creation_input_tokens,
        "cache_read_input_tokens": usage.cache_read_input_tokens,
        "cache_creation": {
            "ephemeral_5m_input_tokens": usage.cache_creation_input_tokens,
            "ephemeral_1h_input_tokens": 0,
        },
        "output_tokens": output,
        "service_tier": "standard",
    }


def _error_body(error_type: str, message: str, request_id: str) -> bytes:
    error = {"type": "error", "error": {"type": error_type, "message": message}, "request_id": request_id}
    return msgspec.json.encode(error)


def _error_reply(status: int, error_type: str, message: str, request_id: str) -> PlainReply:
    headers = (("content-type", _JSON), *identity_headers(request_id), ("x-should-retry", "false"))
    return PlainReply(status, headers, _error_body(error_type, message, request_id))


def _model_info(model: str) -> dict[str, Any]:
    return {
        "type": "model",
        "id": model,
        "display_name": MODELS[model],
        "created_at": "2025-01-01T00:00:00Z",
        "lifecycle": "active",
    }


def _side_endpoint(received: Received, request_id: str) -> PlainReply:
    headers = (("content-type", _JSON), *identity_headers(request_id))
    if received.path == "/api/hello":
        return PlainReply(200, headers, msgspec.json.encode({"message": "hello"}))
    if received.path == "/v1/models":
        names = list(MODELS)
        page = {"data": [_model_info(name) for name in names], "has_more": False}
        return PlainReply(200, headers, msgspec.json.encode({**page, "first_id": names[0], "last_id": names[-1]}))
    if received.path.startswith(_MODEL_PATH):
        name = unquote(received.path.removeprefix(_MODEL_PATH))
        if name not in MODELS:
            return _error_reply(404, "not_found_error", f"model: {name}", request_id)
        return PlainReply(200, headers, msgspec.json.encode(_model_info(name)))
    return _counted(received, request_id, headers)


def _counted(received: Received, request_id: str, headers: Headers) -> PlainReply:
    try:
        body = _json_object(received.body)
    except RefusedRequestError as refused:
        return _error_reply(400, "invalid_request_error", str(refused), request_id)
    problems = judge(SHAPE_RULES, Judged({"max_tokens": 1, **body}, 0, 0))
    if problems:
        return _error_reply(400, "invalid_request_error", problems[0].message, request_id)
    return PlainReply(200, headers, msgspec.json.encode({"input_tokens": estimated_tokens(body)}))


def _json_object(data: bytes) -> dict[str, Any]:
    try:
        body = decode_json(data)
    except NotJsonError as error:
        message = f"The request body is not valid JSON: {error}"
        raise RefusedRequestError((Problem("json", message),)) from error
    if not isinstance(body, dict):
        raise RefusedRequestError((Problem("json", "Input should be a valid dictionary"),))
    return body


def _texts(blocks: list[Any]) -> Iterator[str]:
    for block in blocks:
        if isinstance(block, Mapping) and isinstance(block.get("text"), str):
            yield block["text"]


def _request_block(block: Mapping[str, Any]) -> RequestBlock:
    match block["type"]:
        case "text":
            return Text(block["text"])
        case "thinking":
            return Thinking(block["thinking"], block["signature"])
        case "redacted_thinking":
            return RedactedThinking(block["data"])
        case "tool_use":
            return ToolUse(block["name"], block["input"], block["id"])
        case "tool_result":
            text = "\n".join(_texts(blocks_of(block.get("content"))))
            return ToolResult(block["tool_use_id"], bool(block.get("is_error", False)), text)
        case kind:
            return OtherBlock(kind)
