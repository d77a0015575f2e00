"""The Anthropic Messages API: ``POST /v1/messages``, streamed or not, and the small endpoints around it.

Event order and bodies follow the platform documentation ("Messages", "Streaming Messages", "Errors"). It never decides
which reply a request gets, and it never sees a connection.

A stream's text and thinking are split into deltas of ``TEXT_PIECE_CHARACTERS`` characters, and a tool's input into one
empty delta and then deltas of ``JSON_PIECE_CHARACTERS``, so that "inside a tool call" is a place with a name.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import msgspec

from fake_provider.dialects.anthropic_rules import (
    CONVERSATION_RULES,
    SHAPE_RULES,
    Judged,
    blocks_of,
    estimated_tokens,
    judge,
    signature_of,
)
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
    Usage,
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
from fake_provider.wire import Frame, PlainReply

if TYPE_CHECKING:
    from fake_provider.dialects import Served

TEXT_PIECE_CHARACTERS = 16
JSON_PIECE_CHARACTERS = 8
MODELS = ("claude-opus-4-1", "claude-sonnet-4-5", "claude-haiku-4-5")
"""What ``GET /v1/models`` lists; a request may name any model."""

_JSON = "application/json"
_SIDE_ENDPOINTS: Mapping[str, frozenset[str]] = {
    "/v1/messages": frozenset({"POST"}),
    "/v1/messages/count_tokens": frozenset({"POST"}),
    "/v1/models": frozenset({"GET", "HEAD"}),
    "/api/hello": frozenset({"GET", "HEAD"}),
}


class AnthropicMessages:
    """The dialect's register entry; see ``fake_provider.dialects.Dialect`` for each method's contract."""

    name = "anthropic_messages"
    error_types: tuple[str, ...] = ("overloaded_error", "api_error", "rate_limit_error", "timeout_error", "invalid_request_error")

    def claims(self, received: Received) -> bool:
        """Whether the path is one of the Messages API's; ``/v1/models`` is, when the version header is there."""
        if received.path == "/v1/models":
            return "anthropic-version" in received.headers
        return received.path in _SIDE_ENDPOINTS

    def unauthenticated(self, received: Received) -> ErrorReply | None:
        """Ask for ``x-api-key`` or a bearer token, except on ``/api/hello``."""
        if received.path == "/api/hello" or {"x-api-key", "authorization"} & received.headers.keys():
            return None
        return ErrorReply(401, "authentication_error", "x-api-key header is required")

    def refusal(self, problem: Problem, served: Served) -> PlainReply:
        """Encode a refusal."""
        return _error_reply(problem.status, error_type(problem.status), problem.message, served.request_id)

    def unsayable(self, reply: Reply) -> str | None:
        """Return nothing: the neutral model is this API's."""
        return None

    def unknown_frame(self) -> Frame:
        """Encode an event of a type that does not exist."""
        return _frame({"type": "crashcart_unknown", "value": 1})

    def ping_frame(self) -> Frame:
        """Encode a ping."""
        return _frame({"type": "ping"}, places=("ping",))

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
        methods = _SIDE_ENDPOINTS.get(received.path)
        if methods is None:
            error = ErrorReply(404, "not_found_error", "Not Found")
        elif received.method not in methods:
            error = ErrorReply(405, "invalid_request_error", "Method Not Allowed")
        else:
            return _side_endpoint(received, request_id)
        return _error_reply(error.status, error.type, error.message, request_id)

    def decode(self, received: Received) -> ModelRequest:
        """Decode and check the shape.

        Raises:
            RefusedRequestError: The body is no JSON object, or a shape rule found something.
        """
        body = _json_object(received.body)
        judged = Judged(body, 0, 0)
        problems = judge(SHAPE_RULES, judged)
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
            tools=tuple(tool["name"] for tool in body.get("tools", ())),
            estimated_tokens=estimated_tokens(body),
            body=body,
        )

    def problems(self, request: ModelRequest, window_tokens: int) -> tuple[Problem, ...]:
        """Apply the conversation rules."""
        return judge(CONVERSATION_RULES, Judged(request.body, request.estimated_tokens, window_tokens))

    def frames(self, reply: Reply, served: Served) -> tuple[Frame, ...]:
        """Encode message_start, each block's start, deltas and stop, message_delta and message_stop.

        One ping follows the first block's start, or message_start where there is no block, as the real stream has it.
        """
        usage = _usage(reply, served)
        start = {
            "type": "message_start",
            "message": _message(reply, served, [], None, {**usage, "output_tokens": 1}),
        }
        blocks = [frame for index, block in enumerate(reply.blocks) for frame in _block_frames(index, block)]
        ending = (
            _frame(
                {
                    "type": "message_delta",
                    "delta": {"stop_reason": reply.stop_reason, "stop_sequence": None},
                    "usage": {"output_tokens": usage["output_tokens"]},
                },
                places=("stop", "usage"),
            ),
            _frame({"type": "message_stop"}, places=("terminal",)),
        )
        return (_frame(start, fixed=False, places=("start",)), *blocks[:1], self.ping_frame(), *blocks[1:], *ending)

    def stream_headers(self, served: Served) -> tuple[tuple[str, str], ...]:
        """Return the headers of an event stream."""
        return (
            ("content-type", "text/event-stream; charset=utf-8"),
            ("cache-control", "no-cache"),
            ("request-id", served.request_id),
        )

    def whole(self, reply: Reply, served: Served) -> PlainReply:
        """Encode the message as one JSON body."""
        content = [_whole_block(block) for block in reply.blocks]
        message = _message(reply, served, content, reply.stop_reason, _usage(reply, served))
        return PlainReply(200, (("content-type", _JSON), ("request-id", served.request_id)), _encode(message))

    def error(self, error: ErrorReply, served: Served) -> PlainReply:
        """Encode an error, its placeholders filled in from the request."""
        # A scripted "too long" for a short request still has to say a number above the window.
        tokens = max(served.input_tokens, served.window_tokens + 1)
        message = error.message
        for name, value in (("model", served.model), ("tokens", tokens), ("window_tokens", served.window_tokens)):
            message = message.replace(f"{{{name}}}", str(value))
        reply = _error_reply(error.status, error.type, message, served.request_id)
        body = reply.body if error.body is None else error.body.encode("utf-8")
        headers = (("content-type", error.content_type or _JSON), *reply.headers[1:], *error.headers)
        return PlainReply(error.status, headers, body)

    def error_frame(self, error_type: str, message: str) -> Frame:
        """Encode the ``error`` event that may stand anywhere in a stream."""
        return _frame({"type": "error", "error": {"type": error_type, "message": message}})


def _encode(value: Any) -> bytes:
    return msgspec.json.encode(value)


def _frame(event: Mapping[str, Any], *, fixed: bool = True, places: tuple[str, ...] = ()) -> Frame:
    name = str(event["type"])
    return Frame(name, b"event: %b\ndata: %b\n\n" % (name.encode("ascii"), _encode(event)), fixed, places)


def _pieces(text: str, size: int) -> Iterator[str]:
    for start in range(0, len(text), size):
        yield text[start : start + size]


def _delta(index: int, kind: str, key: str, value: str) -> Frame:
    places = ("content", _DELTA_PLACES[kind])
    return _frame({"type": "content_block_delta", "index": index, "delta": {"type": kind, key: value}}, places=places)


_DELTA_PLACES = {
    "text_delta": "text",
    "thinking_delta": "thinking",
    "signature_delta": "thinking",
    "input_json_delta": "tool_arguments",
}


def _signature(block: Thinking) -> str:
    return signature_of(block.thinking) if block.signature is None else block.signature


def _block_frames(index: int, block: Block) -> Iterator[Frame]:
    match block:
        case Text(text=text):
            empty: dict[str, Any] = {"type": "text", "text": ""}
            deltas = [_delta(index, "text_delta", "text", piece) for piece in _pieces(text, TEXT_PIECE_CHARACTERS)]
        case Thinking(thinking):
            empty = {"type": "thinking", "thinking": "", "signature": ""}
            deltas = [
                _delta(index, "thinking_delta", "thinking", piece) for piece in _pieces(thinking, TEXT_PIECE_CHARACTERS)
            ]
            deltas.append(_delta(index, "signature_delta", "signature", _signature(block)))
        case ToolUse(name=name, id=call_id):
            empty = {"type": "tool_use", "id": call_id, "name": name, "input": {}}
            pieces = ["", *_pieces(block.arguments_text, JSON_PIECE_CHARACTERS)]
            deltas = [_delta(index, "input_json_delta", "partial_json", piece) for piece in pieces]
        case RedactedThinking() | Opaque():
            raise NotImplementedError
    tool = isinstance(block, ToolUse)
    start_places = ("content", "tool_start") if tool else ()
    yield _frame({"type": "content_block_start", "index": index, "content_block": empty}, places=start_places)
    yield from deltas
    yield _frame({"type": "content_block_stop", "index": index}, places=("tool_end",) if tool else ())


def _whole_block(block: Block) -> dict[str, Any]:
    match block:
        case Text(text=text):
            return {"type": "text", "text": text}
        case Thinking(thinking):
            return {"type": "thinking", "thinking": thinking, "signature": _signature(block)}
        case ToolUse(name=name, input=arguments, id=call_id):
            return {"type": "tool_use", "id": call_id, "name": name, "input": arguments}
        case RedactedThinking() | Opaque():
            raise NotImplementedError


def _message(reply: Reply, served: Served, content: list[Any], stop: str | None, usage: Any) -> dict[str, Any]:
    return {
        "id": served.message_id,
        "type": "message",
        "role": "assistant",
        "model": reply.model or served.model,
        "content": content,
        "stop_reason": stop,
        "stop_sequence": None,
        "usage": usage,
    }


def _usage(reply: Reply, served: Served) -> dict[str, int]:
    usage = reply.usage or Usage()
    output = usage.output_tokens
    if output is None:
        output = max(1, -(-sum(len(_encode(_whole_block(block))) for block in reply.blocks) // 4))
    return {
        "input_tokens": served.input_tokens if usage.input_tokens is None else usage.input_tokens,
        "cache_creation_input_tokens": usage.cache_creation_input_tokens,
        "cache_read_input_tokens": usage.cache_read_input_tokens,
        "output_tokens": output,
    }


def _error_reply(status: int, error_type: str, message: str, request_id: str) -> PlainReply:
    body = {"type": "error", "error": {"type": error_type, "message": message}, "request_id": request_id}
    return PlainReply(status, (("content-type", _JSON), ("request-id", request_id)), _encode(body))


def _side_endpoint(received: Received, request_id: str) -> PlainReply:
    headers = (("content-type", _JSON), ("request-id", request_id))
    if received.path == "/api/hello":
        return PlainReply(200, headers, _encode({"message": "hello"}))
    if received.path == "/v1/models":
        models = [
            {"type": "model", "id": model, "display_name": model, "created_at": "2025-01-01T00:00:00Z"}
            for model in MODELS
        ]
        page = {"data": models, "has_more": False, "first_id": MODELS[0], "last_id": MODELS[-1]}
        return PlainReply(200, headers, _encode(page))
    try:
        body = _json_object(received.body)
    except RefusedRequestError as refused:
        return _error_reply(400, "invalid_request_error", str(refused), request_id)
    problems = judge(SHAPE_RULES, Judged({"max_tokens": 1, **body}, 0, 0))
    if problems:
        return _error_reply(400, "invalid_request_error", problems[0].message, request_id)
    return PlainReply(200, headers, _encode({"input_tokens": estimated_tokens(body)}))


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
        case "tool_use":
            return ToolUse(block["name"], block["input"], block["id"])
        case "tool_result":
            text = "\n".join(_texts(blocks_of(block.get("content"))))
            return ToolResult(block["tool_use_id"], bool(block.get("is_error", False)), text)
        case kind:
            return OtherBlock(kind)
