"""The Chat Completions API: ``POST /v1/chat/completions``, streamed or not, and the small endpoints around it.

Bodies and chunks follow the platform documentation ("Chat", "Streaming") and the types of the official client. It never
decides which reply a request gets, and it never sees a connection.

A stream is a chunk with the role, then chunks of ``TEXT_PIECE_CHARACTERS`` of text or ``JSON_PIECE_CHARACTERS`` of a
call's arguments, then a chunk with the finish reason, then the usage where ``stream_options.include_usage`` asks for
it, then ``[DONE]``. A message has one content, so several texts of a reply are one, and the order between text,
reasoning and calls is kept by a stream only. Reasoning is ``reasoning_content``, as several servers of this protocol
send it (OpenAI itself sends none); a signature has no place here and is left out. Citations are ``annotations``, in
one chunk before the finish reason. ``prompt_tokens`` is the sum of the neutral counts of input, cache reads and cache
writes, as the API counts cached tokens into it.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import msgspec

from fake_provider.dialects.openai_chat_rules import CONVERSATION_RULES, COUNTED, SHAPE_RULES
from fake_provider.dialects.openai_errors import (
    STREAM_ERRORS,
    error_body,
    error_reply,
    keep_alive_frame,
    limit_headers,
    plain_reply,
    refusal_reply,
    reply_headers,
    stream_error,
)
from fake_provider.dialects.openai_fields import (
    CREATED_SECONDS,
    TEXT_PIECE_CHARACTERS,
    Judged,
    argument_pieces,
    encode,
    estimated_tokens,
    json_object,
    judge,
    output_tokens,
    pieces,
    read_call,
)
from fake_provider.dialects.openai_models import (
    claims_models,
    endpoint,
    models_reply,
    stored_completions_reply,
    without_key,
)
from fake_provider.dialects.problems import Problem, RefusedRequestError
from fake_provider.replies import Block, ErrorReply, Opaque, RedactedThinking, Reply, Text, Thinking, ToolUse
from fake_provider.requests import Message, ModelRequest, OtherBlock, Received, RequestBlock, ToolResult
from fake_provider.wire import Frame, PlainReply

if TYPE_CHECKING:
    from fake_provider.dialects import Served

FINGERPRINT = "fp_crashcart00"

FINISH_REASONS: Mapping[str, str] = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "refusal": "stop",
    "tool_use": "tool_calls",
}
"""Finish reason by neutral stop reason.

A refusal that says something is the message's ``refusal`` with ``stop`` (platform documentation, "Structured outputs");
one that says nothing is ``content_filter``. ``length`` for the window is by analogy. ``pause_turn`` has no counterpart.
"""

_ENDPOINT = "/chat/completions"

Delta: TypeAlias = tuple[dict[str, Any], tuple[str, ...]]


class OpenAIChat:
    """The dialect's register entry; see ``fake_provider.dialects.Dialect`` for each method's contract."""

    name = "openai_chat"
    error_types: tuple[str, ...] = tuple(STREAM_ERRORS)

    def claims(self, received: Received) -> bool:
        """Whether the path is one of Chat Completions', or of the models where no other service is meant."""
        path = endpoint(received.path)
        return path == _ENDPOINT or path.startswith(f"{_ENDPOINT}/") or claims_models(received)

    def is_model_request(self, received: Received) -> bool:
        """Whether this is a ``POST /v1/chat/completions``."""
        return received.method == "POST" and endpoint(received.path) == _ENDPOINT

    def unauthenticated(self, received: Received) -> ErrorReply | None:
        """Ask for a key."""
        return without_key(received)

    def side_reply(self, received: Received, request_id: str) -> PlainReply:
        """Answer the models and the list of stored completions, which is always empty."""
        if claims_models(received):
            return models_reply(received, request_id)
        return stored_completions_reply(received, request_id)

    def decode(self, received: Received) -> ModelRequest:
        """Decode and check the shape.

        Raises:
            RefusedRequestError: The body is no JSON object, or a shape rule found something.
        """
        body = json_object(received.body)
        problems = judge(SHAPE_RULES, Judged(body))
        if problems:
            raise RefusedRequestError(problems)
        limit = body.get("max_completion_tokens")
        return ModelRequest(
            dialect=self.name,
            path=received.path,
            headers=received.headers,
            model=body["model"],
            stream=bool(body.get("stream")),
            max_tokens=body.get("max_tokens") if limit is None else limit,
            system="\n".join(_content_text(message) for message in body["messages"] if message["role"] in _SYSTEM),
            messages=tuple(_messages(body["messages"])),
            tools=tuple(tool[tool["type"]]["name"] for tool in body.get("tools") or ()),
            estimated_tokens=estimated_tokens(body, COUNTED),
            body=body,
        )

    def repeated(self, request: ModelRequest) -> Hashable | None:
        """Return the service tier and the stream options, as text that is equal where they are."""
        return msgspec.json.encode([request.body.get("service_tier"), request.body.get("stream_options")])

    def problems(self, request: ModelRequest, window_tokens: int) -> tuple[Problem, ...]:
        """Apply the conversation rules."""
        return judge(CONVERSATION_RULES, Judged(request.body, request.estimated_tokens, window_tokens))

    def refusal(self, problem: Problem, served: Served) -> PlainReply:
        """Encode a refusal."""
        return refusal_reply(problem, served)

    def unsayable(self, reply: Reply) -> str | None:
        """Return why a reply has no form here: its stop reason, or a block of another protocol."""
        if reply.stop_reason not in FINISH_REASONS:
            return f"stop reason '{reply.stop_reason}' has no finish reason in openai_chat"
        for block in reply.blocks:
            if isinstance(block, RedactedThinking):
                return "openai_chat has no redacted thinking"
            if isinstance(block, Opaque):
                return "openai_chat has no blocks beside text, reasoning and tool calls"
        return None

    def frames(self, reply: Reply, served: Served) -> tuple[Frame, ...]:
        """Encode the role, the deltas of each block in order, the finish reason, the usage and ``[DONE]``."""
        with_usage = _includes_usage(served)
        empty = {"usage": None} if with_usage else {}

        def chunk(delta: Mapping[str, Any], places: tuple[str, ...], finish: str | None = None) -> Frame:
            choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
            return _data({**_envelope(reply, served, "chat.completion.chunk"), "choices": [choice], **empty}, places)

        content = None if _said(reply) is None or _refuses(reply) else ""
        frames = [chunk({"role": "assistant", "content": content, "refusal": None}, ("start",))]
        frames += (chunk(delta, places) for delta, places in _deltas(reply))
        frames.append(chunk({}, ("stop",), _finish_reason(reply)))
        if with_usage and reply.usage is not None:
            usage = {**_envelope(reply, served, "chat.completion.chunk"), "choices": [], "usage": _usage(reply, served)}
            frames.append(_data(usage, ("usage",)))
        return (*frames, Frame("[DONE]", b"data: [DONE]\n\n", places=("terminal",)))

    def stream_headers(self, served: Served) -> tuple[tuple[str, str], ...]:
        """Return the headers of an event stream."""
        return (
            ("content-type", "text/event-stream; charset=utf-8"),
            ("cache-control", "no-cache"),
            *reply_headers(served.request_id),
            *limit_headers(served.limits),
        )

    def whole(self, reply: Reply, served: Served) -> PlainReply:
        """Encode the completion as one JSON body."""
        choice = {"index": 0, "message": _message(reply), "logprobs": None, "finish_reason": _finish_reason(reply)}
        body = {**_envelope(reply, served, "chat.completion"), "choices": [choice]}
        if reply.usage is not None:
            body["usage"] = _usage(reply, served)
        plain = plain_reply(200, body, served.request_id)
        return PlainReply(200, (*plain.headers, *limit_headers(served.limits)), plain.body)

    def error(self, error: ErrorReply, served: Served) -> PlainReply:
        """Encode an error, its placeholders filled in from the request."""
        return error_reply(error, served)

    def error_frame(self, error_type: str, message: str, before: Sequence[Frame] = ()) -> Frame:
        """Encode a chunk that holds an error and nothing else; ``error_type`` is a word of ``STREAM_ERRORS``."""
        return Frame("error", b"data: %b\n\n" % encode({"error": error_body(stream_error(error_type, message))}))

    def unknown_frame(self, before: Sequence[Frame] = ()) -> Frame:
        """Encode a chunk whose ``object`` does not exist."""
        event = {
            "id": "chatcmpl-unknown",
            "object": "crashcart.unknown",
            "created": CREATED_SECONDS,
            "model": "unknown",
            "choices": [],
        }
        return Frame("crashcart.unknown", b"data: %b\n\n" % encode(event))

    def ping_frame(self) -> Frame:
        """Encode a comment."""
        return keep_alive_frame()

    def message_id(self, lane: int, number: int) -> str:
        """Return ``chatcmpl-`` and 24 digits."""
        return f"chatcmpl-{lane:02d}{number:022d}"

    def call_id(self, lane: int, number: int) -> str:
        """Return ``call_`` and 24 digits."""
        return f"call_{lane:02d}{number:022d}"

    def request_id(self, number: int) -> str:
        """Return ``req_`` and 32 digits."""
        return f"req_{number:032d}"


def _data(event: Mapping[str, Any], places: tuple[str, ...]) -> Frame:
    # Every chunk repeats the model's name and the service tier, so no length is known before the request.
    return Frame("chunk", b"data: %b\n\n" % encode(event), fixed=False, places=places)


def _envelope(reply: Reply, served: Served, kind: str) -> dict[str, Any]:
    return {
        "id": served.message_id,
        "object": kind,
        "created": CREATED_SECONDS,
        "model": reply.model or served.model,
        "service_tier": _service_tier(served),
        "system_fingerprint": FINGERPRINT,
    }


def _service_tier(served: Served) -> str:
    asked = served.body.get("service_tier")
    if asked == "fast":
        return "priority"
    return asked if asked in ("flex", "scale", "priority") else "default"


def _includes_usage(served: Served) -> bool:
    options = served.body.get("stream_options")
    return isinstance(options, Mapping) and bool(options.get("include_usage"))


def _refuses(reply: Reply) -> bool:
    return reply.stop_reason == "refusal"


def _said(reply: Reply) -> str | None:
    texts = [block.text for block in reply.blocks if isinstance(block, Text)]
    return "".join(texts) if texts else None


def _finish_reason(reply: Reply) -> str:
    if _refuses(reply) and not _said(reply):
        return "content_filter"
    return FINISH_REASONS[reply.stop_reason]


def _deltas(reply: Reply) -> Iterator[Delta]:
    position = 0
    for block in reply.blocks:
        if isinstance(block, ToolUse):
            yield from _call_deltas(position, block)
            position += 1
        elif isinstance(block, Text):
            key = "refusal" if _refuses(reply) else "content"
            yield from (({key: piece}, ("content", "text")) for piece in pieces(block.text, TEXT_PIECE_CHARACTERS))
        elif isinstance(block, Thinking):
            for piece in pieces(block.thinking, TEXT_PIECE_CHARACTERS):
                yield {"reasoning_content": piece}, ("content", "thinking")
    citations = _citations(reply)
    if citations:
        yield {"annotations": citations}, ("content",)


def _call_deltas(position: int, call: ToolUse) -> Iterator[Delta]:
    arguments = argument_pieces(call)
    start = {"index": position, "id": call.id, "type": "function", "function": {"name": call.name, "arguments": ""}}
    yield {"tool_calls": [start]}, ("content", "tool_start", *(() if arguments else ("tool_end",)))
    for number, piece in enumerate(arguments, start=1):
        # Nothing in this protocol says that a call is complete but its last piece of arguments.
        end = ("tool_end",) if number == len(arguments) else ()
        delta = {"tool_calls": [{"index": position, "function": {"arguments": piece}}]}
        yield delta, ("content", "tool_arguments", *end)


def _citations(reply: Reply) -> list[Mapping[str, Any]]:
    return [citation for block in reply.blocks if isinstance(block, Text) for citation in block.citations]


def _message(reply: Reply) -> dict[str, Any]:
    said = _said(reply)
    refusing = _refuses(reply)
    message: dict[str, Any] = {
        "role": "assistant",
        "content": None if refusing else said,
        "refusal": said if refusing else None,
        "annotations": _citations(reply),
    }
    thoughts = [block.thinking for block in reply.blocks if isinstance(block, Thinking)]
    if thoughts:
        message["reasoning_content"] = "".join(thoughts)
    calls = [block for block in reply.blocks if isinstance(block, ToolUse)]
    if calls:
        message["tool_calls"] = [
            {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments_text}}
            for call in calls
        ]
    return message


def _usage(reply: Reply, served: Served) -> dict[str, Any]:
    usage = reply.usage
    if usage is None:
        raise ValueError("a reply without usage has no counts to encode")
    cached, written = usage.cache_read_input_tokens, usage.cache_creation_input_tokens
    prompt = (served.input_tokens if usage.input_tokens is None else usage.input_tokens) + cached + written
    thought = output_tokens(block.thinking for block in reply.blocks if isinstance(block, Thinking))
    spoken = output_tokens(text for block in reply.blocks for text in _texts_of(block))
    completion = max(1, spoken) if usage.output_tokens is None else usage.output_tokens
    return {
        "prompt_tokens": prompt,
        "completion_tokens": completion,
        "total_tokens": prompt + completion,
        "prompt_tokens_details": {"cached_tokens": cached, "cache_write_tokens": written, "audio_tokens": 0},
        "completion_tokens_details": {
            "reasoning_tokens": thought,
            "audio_tokens": 0,
            "accepted_prediction_tokens": 0,
            "rejected_prediction_tokens": 0,
        },
    }


def _texts_of(block: Block) -> tuple[str, ...]:
    match block:
        case Text(text=text):
            return (text,)
        case Thinking(thinking):
            return (thinking,)
        case ToolUse(name=name):
            return (name, block.arguments_text)
        case _:
            return ()


_SYSTEM = ("system", "developer")


def _messages(messages: list[Any]) -> Iterator[Message]:
    """Yield the conversation; tool messages in a row are one message of the user, as results are in other protocols."""
    results: list[RequestBlock] = []
    for message in messages:
        if message["role"] == "tool":
            results.append(ToolResult(message["tool_call_id"], False, _content_text(message)))
            continue
        if results:
            yield Message("user", tuple(results))
            results = []
        if message["role"] not in _SYSTEM:
            yield Message(message["role"], tuple(_blocks(message)))
    if results:
        yield Message("user", tuple(results))


def _blocks(message: Mapping[str, Any]) -> Iterator[RequestBlock]:
    thought = message.get("reasoning_content")
    if isinstance(thought, str) and thought:
        yield Thinking(thought)
    content = message.get("content")
    if isinstance(content, str):
        yield Text(content)
    for part in content if isinstance(content, list) else ():
        text = part.get(part["type"])
        yield Text(text) if isinstance(text, str) else OtherBlock(part["type"])
    refusal = message.get("refusal")
    if isinstance(refusal, str):
        yield Text(refusal)
    for call in message.get("tool_calls") or ():
        yield _tool_use(call) if call["type"] == "function" else OtherBlock(call["type"])


def _tool_use(call: Mapping[str, Any]) -> ToolUse:
    return read_call(call["function"]["name"], call["function"]["arguments"], call["id"])


def _content_text(message: Mapping[str, Any]) -> str:
    content = message.get("content")
    if isinstance(content, str):
        return content
    texts = (part.get("text") for part in content or ())
    return "\n".join(text for text in texts if isinstance(text, str))
