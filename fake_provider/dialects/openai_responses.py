"""The Responses API: ``POST /v1/responses``, streamed or not, and the small endpoints around it.

Bodies and events follow the API reference ("Responses", "Streaming events") and the types of the official client. It
never decides which reply a request gets, it never sees a connection, and it stores nothing: no response can be fetched
later.

Each neutral block is one item of the output: text a message, reasoning a ``reasoning`` item whose summary is the text
and whose ``encrypted_content`` binds it, a tool call a ``function_call`` (or a ``custom_tool_call``, where the request
offers the tool as one), an opaque block the item itself. A stream splits text into deltas of ``TEXT_PIECE_CHARACTERS``
and arguments into deltas of ``JSON_PIECE_CHARACTERS``. There is no obfuscation, as if ``include_obfuscation`` were
off. ``input_tokens`` is the sum of the neutral counts of input, cache reads and cache writes.
"""

from __future__ import annotations

import json
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from fake_provider.dialects.openai_errors import (
    CONTEXT_CODE,
    ERROR_WORDS,
    MISSING_KEY,
    STREAM_ERRORS,
    OpenAIError,
    error_body,
    error_reply,
    keep_alive_frame,
    limit_headers,
    plain_reply,
    refusal_reply,
    reply_headers,
    side_error,
    stream_error,
)
from fake_provider.dialects.openai_fields import (
    CREATED_SECONDS,
    Judged,
    encode,
    estimated_tokens,
    json_object,
    judge,
    output_tokens,
    read_call,
)
from fake_provider.dialects.openai_items import Event, counted_texts, placed_blocks
from fake_provider.dialects.openai_models import (
    claims_models,
    endpoint,
    models_reply,
    unknown_url,
    without_key,
    wrong_verb,
)
from fake_provider.dialects.openai_reasoning import REDACTED, unseal
from fake_provider.dialects.openai_responses_rules import (
    CONTEXT_TOO_LONG,
    CONVERSATION_RULES,
    sealed_reasoning,
    summary_text,
)
from fake_provider.dialects.openai_responses_shapes import COUNTED, SHAPE_RULES, items_of, type_of
from fake_provider.dialects.openai_tools import joined_name, tool_names
from fake_provider.dialects.problems import Problem, RefusedRequestError
from fake_provider.replies import ErrorReply, Opaque, RedactedThinking, Reply, Text, Thinking, ToolUse
from fake_provider.requests import Message, ModelRequest, OtherBlock, Received, RequestBlock, ToolResult
from fake_provider.wire import Frame, PlainReply

if TYPE_CHECKING:
    from fake_provider.dialects import Served

STATUSES: Mapping[str, tuple[str, str | None]] = {
    "end_turn": ("completed", None),
    "tool_use": ("completed", None),
    "refusal": ("completed", None),
    "max_tokens": ("incomplete", "max_output_tokens"),
    "model_context_window_exceeded": ("incomplete", "max_output_tokens"),
}
"""Status and reason by neutral stop reason.

A full window is ``max_output_tokens`` too (platform documentation, "Reasoning models"). A refusal that says nothing is
``incomplete`` for ``content_filter``. ``stop_sequence`` has no counterpart, since this API takes none, nor has
``pause_turn``.
"""

WORDS: Mapping[str, OpenAIError] = {
    **ERROR_WORDS,
    "prompt_too_long": OpenAIError(400, "invalid_request_error", CONTEXT_TOO_LONG, CONTEXT_CODE, "input"),
    MISSING_KEY: OpenAIError(401, "invalid_request_error", "Missing bearer or basic authentication in header"),
}

ECHOED: Mapping[str, Any] = {
    "background": False,
    "instructions": None,
    "max_output_tokens": None,
    "max_tool_calls": None,
    "metadata": {},
    "parallel_tool_calls": True,
    "previous_response_id": None,
    "prompt_cache_key": None,
    "prompt_cache_retention": None,
    "reasoning": {"effort": None, "summary": None},
    "safety_identifier": None,
    "service_tier": "default",
    "store": True,
    "temperature": 1.0,
    "text": {"format": {"type": "text"}, "verbosity": "medium"},
    "tool_choice": "auto",
    "tools": [],
    "top_logprobs": 0,
    "top_p": 1.0,
    "truncation": "disabled",
    "user": None,
}
"""Fields of the request that every response repeats, with what they are where the request leaves them out."""

_SERVICE_TIERS: Mapping[str, str] = {"auto": "default", "fast": "priority"}
_ENDPOINT = "/responses"
_COUNT = f"{_ENDPOINT}/input_tokens"


class OpenAIResponses:
    """The dialect's register entry; see ``fake_provider.dialects.Dialect`` for each method's contract."""

    name = "openai_responses"
    error_types: tuple[str, ...] = tuple(STREAM_ERRORS)

    def claims(self, received: Received) -> bool:
        """Whether the path is one of Responses', or of the models where no other service is meant."""
        path = endpoint(received.path)
        return path == _ENDPOINT or path.startswith(f"{_ENDPOINT}/") or claims_models(received)

    def is_model_request(self, received: Received) -> bool:
        """Whether this is a ``POST /v1/responses``."""
        return received.method == "POST" and endpoint(received.path) == _ENDPOINT

    def unauthenticated(self, received: Received) -> ErrorReply | None:
        """Ask for a key."""
        return without_key(received)

    def side_reply(self, received: Received, request_id: str) -> PlainReply:
        """Answer the models and the token count; a response by its id is never found, because none is stored."""
        if claims_models(received):
            return models_reply(received, request_id)
        path = endpoint(received.path)
        if path == _COUNT:
            return _count(received, request_id) if received.method == "POST" else wrong_verb(received, request_id)
        if path == _ENDPOINT:
            return wrong_verb(received, request_id)
        name, _, rest = path.removeprefix(f"{_ENDPOINT}/").partition("/")
        if (received.method, rest) not in _BY_ID:
            return unknown_url(received, request_id)
        return side_error(
            OpenAIError(404, "invalid_request_error", f"Response with id '{name}' not found."), request_id
        )

    def decode(self, received: Received) -> ModelRequest:
        """Decode and check the shape.

        Raises:
            RefusedRequestError: The body is no JSON object, or a shape rule found something.
        """
        body = json_object(received.body)
        problems = judge(SHAPE_RULES, Judged(body))
        if problems:
            raise RefusedRequestError(problems)
        return ModelRequest(
            dialect=self.name,
            path=received.path,
            headers=received.headers,
            model=body["model"],
            stream=bool(body.get("stream")),
            max_tokens=body.get("max_output_tokens"),
            system="\n".join(_system(body)),
            messages=tuple(_messages(items_of(body))),
            tools=tool_names(body.get("tools")),
            estimated_tokens=estimated_tokens(body, COUNTED),
            body=body,
        )

    def repeated(self, request: ModelRequest) -> Hashable | None:
        """Return nothing: a response repeats its request's settings, tools and instructions."""
        return None

    def problems(self, request: ModelRequest, window_tokens: int) -> tuple[Problem, ...]:
        """Apply the conversation rules."""
        return judge(CONVERSATION_RULES, Judged(request.body, request.estimated_tokens, window_tokens))

    def refusal(self, problem: Problem, served: Served) -> PlainReply:
        """Encode a refusal."""
        return refusal_reply(problem, served)

    def unsayable(self, reply: Reply) -> str | None:
        """Return why a reply has no form here: its stop reason, or an opaque block that is no item."""
        if reply.stop_reason not in STATUSES:
            return f"stop reason '{reply.stop_reason}' has no status in openai_responses"
        for block in reply.blocks:
            if isinstance(block, Opaque) and not isinstance(block.content.get("type"), str):
                return "an output item of openai_responses needs a 'type'"
        return None

    def frames(self, reply: Reply, served: Served) -> tuple[Frame, ...]:
        """Encode the events from ``response.created`` to ``response.completed`` or ``response.incomplete``."""
        started = _response(reply, served, "in_progress")
        ended = _finished(reply, served)
        usage = ("usage",) if reply.usage is not None else ()
        events = (
            Event("response.created", {"response": started}, ("start",), fixed=False),
            Event("response.in_progress", {"response": started}, fixed=False),
            *(event for placed in placed_blocks(reply, served) for event in placed.events()),
            Event(f"response.{ended['status']}", {"response": ended}, ("stop", *usage, "terminal"), fixed=False),
        )
        return tuple(_frame(event, number) for number, event in enumerate(events))

    def stream_headers(self, served: Served) -> tuple[tuple[str, str], ...]:
        """Return the headers of an event stream."""
        return (
            ("content-type", "text/event-stream; charset=utf-8"),
            ("cache-control", "no-cache"),
            *reply_headers(served.request_id),
            *limit_headers(served.limits),
        )

    def whole(self, reply: Reply, served: Served) -> PlainReply:
        """Encode the response as one JSON body."""
        plain = plain_reply(200, _finished(reply, served), served.request_id)
        return PlainReply(200, (*plain.headers, *limit_headers(served.limits)), plain.body)

    def error(self, error: ErrorReply, served: Served) -> PlainReply:
        """Encode an error, its placeholders filled in from the request."""
        return error_reply(error, served, WORDS)

    def error_frame(self, error_type: str, message: str, before: Sequence[Frame] = ()) -> Frame:
        """Encode an event that says that the response failed; ``error_type`` is a word of ``STREAM_ERRORS``.

        ``before`` are the frames that precede it: the event's number follows theirs, and a ``response.failed`` holds
        the response that they began. Without them the number is 0 and the response is one that no frame has begun.
        """
        error = stream_error(error_type, message)
        body = error_body(error)
        number, response = _progress(before)
        if error.carrier == "response.failed":
            failed = {**response, "status": "failed", "error": {"code": error.code, "message": error.message}}
            return _frame(Event("response.failed", {"response": failed}, fixed=False), number)
        flat = {name: body[name] for name in ("code", "message", "param")}
        return _frame(Event("error", flat if error.carrier == "flat" else {"error": body}), number)

    def unknown_frame(self, before: Sequence[Frame] = ()) -> Frame:
        """Encode an event of a type that does not exist; its number follows those of the frames before it."""
        return _frame(Event("response.crashcart_unknown", {"value": 1}), _progress(before)[0])

    def ping_frame(self) -> Frame:
        """Encode a comment."""
        return keep_alive_frame()

    def message_id(self, lane: int, number: int) -> str:
        """Return ``resp_`` and 24 digits."""
        return f"resp_{lane:02d}{number:022d}"

    def call_id(self, lane: int, number: int) -> str:
        """Return ``call_`` and 24 digits."""
        return f"call_{lane:02d}{number:022d}"

    def request_id(self, number: int) -> str:
        """Return ``req_`` and 32 digits."""
        return f"req_{number:032d}"


_BY_ID = frozenset({("GET", ""), ("HEAD", ""), ("DELETE", ""), ("POST", "cancel"), ("GET", "input_items")})


def _frame(event: Event, number: int) -> Frame:
    data = {"type": event.type, "sequence_number": number, **event.fields}
    payload = b"event: %b\ndata: %b\n\n" % (event.type.encode("ascii"), encode(data))
    return Frame(event.type, payload, event.fixed, event.places)


def _progress(before: Sequence[Frame]) -> tuple[int, Mapping[str, Any]]:
    """Return the number of the next event, and the response that a stream has begun."""
    number = 0
    response: Mapping[str, Any] = _EMPTY_RESPONSE
    for frame in before:
        _, _, data = frame.payload.partition(b"\ndata: ")
        try:
            event = json.loads(data)
        except ValueError:
            # A damaged event has no number to follow.
            continue
        number = event.get("sequence_number", number - 1) + 1
        response = event.get("response", response)
    return number, response


def _base(message_id: str, model: str, status: str, echoed: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "id": message_id,
        "object": "response",
        "created_at": CREATED_SECONDS,
        "status": status,
        "error": None,
        "incomplete_details": None,
        "model": model,
        "output": [],
        "usage": None,
        **echoed,
    }


_EMPTY_RESPONSE: Mapping[str, Any] = _base("resp_000000000000000000000000", "unknown", "failed", ECHOED)


def _response(reply: Reply, served: Served, status: str) -> dict[str, Any]:
    body = served.body
    echoed = {name: default if body.get(name) is None else body[name] for name, default in ECHOED.items()}
    echoed["reasoning"] = {**ECHOED["reasoning"], **echoed["reasoning"]}
    echoed["text"] = {**ECHOED["text"], **echoed["text"]}
    echoed["service_tier"] = _SERVICE_TIERS.get(echoed["service_tier"], echoed["service_tier"])
    response = _base(served.message_id, reply.model or served.model, status, echoed)
    withheld = _withheld(served)
    return {**response, "input_transformations": withheld} if withheld else response


def _finished(reply: Reply, served: Served) -> dict[str, Any]:
    status, reason = STATUSES[reply.stop_reason]
    if reply.stop_reason == "refusal" and not any(isinstance(block, Text) and block.text for block in reply.blocks):
        status, reason = "incomplete", "content_filter"
    response = _response(reply, served, status)
    response["output"] = [placed.item() for placed in placed_blocks(reply, served)]
    if reason is not None:
        response["incomplete_details"] = {"reason": reason}
    else:
        response["completed_at"] = CREATED_SECONDS
    if reply.usage is not None:
        response["usage"] = _usage(reply, served)
    return response


def _withheld(served: Served) -> list[dict[str, Any]]:
    """Name the reasoning that another model made: it is taken and not read (the official client's type for it)."""
    items = [item for item in items_of(served.body) if isinstance(item, Mapping) and type_of(item) == "reasoning"]
    return [
        {"id": f"rs_{sealed.suffix}", "action": "removed", "reason": "model_mismatch", "type": "reasoning"}
        for _, _, sealed in sealed_reasoning(items)
        if sealed is not None and not sealed.is_of(served.model)
    ]


def _usage(reply: Reply, served: Served) -> dict[str, Any]:
    usage = reply.usage
    if usage is None:
        raise ValueError("a reply without usage has no counts to encode")
    cached, written = usage.cache_read_input_tokens, usage.cache_creation_input_tokens
    given = (served.input_tokens if usage.input_tokens is None else usage.input_tokens) + cached + written
    thoughts = tuple(block for block in reply.blocks if isinstance(block, Thinking | RedactedThinking))
    counted = max(1, output_tokens(counted_texts(reply.blocks)))
    said = counted if usage.output_tokens is None else usage.output_tokens
    return {
        "input_tokens": given,
        "input_tokens_details": {"cached_tokens": cached, "cache_write_tokens": written},
        "output_tokens": said,
        "output_tokens_details": {"reasoning_tokens": output_tokens(counted_texts(thoughts))},
        "total_tokens": given + said,
    }


def _count(received: Received, request_id: str) -> PlainReply:
    try:
        body = json_object(received.body)
        problems = judge(SHAPE_RULES, Judged({"model": "", **body}))
    except RefusedRequestError as refused:
        problems = refused.problems
    if problems:
        first = problems[0]
        error = OpenAIError(first.status, "invalid_request_error", first.message, first.code, first.param)
        return side_error(error, request_id)
    counted = {"object": "response.input_tokens", "input_tokens": estimated_tokens(body, COUNTED)}
    return plain_reply(200, counted, request_id)


def _system(body: Mapping[str, Any]) -> Iterator[str]:
    if isinstance(body.get("instructions"), str):
        yield body["instructions"]
    for item in items_of(body):
        if type_of(item) == "message" and item["role"] in _SYSTEM:
            yield _text(item["content"])


_SYSTEM = ("system", "developer")


def _messages(items: Iterable[Mapping[str, Any]]) -> Iterator[Message]:
    """Yield the conversation: items of the model in a row are one message of it, outputs in a row one of the user."""
    role, blocks = "", list[RequestBlock]()
    for item in items:
        kind = type_of(item)
        if kind == "message" and item["role"] in _SYSTEM:
            continue
        by_user = (kind == "message" and item["role"] == "user") or kind.endswith("_output")
        speaker = "user" if by_user else "assistant"
        # A prompt is a message of its own, so that its text is the last text of the user.
        if blocks and (speaker != role or (kind == "message" and by_user)):
            yield Message(role, tuple(blocks))
            blocks = []
        role = speaker
        blocks += _blocks(item, kind)
    if blocks:
        yield Message(role, tuple(blocks))


def _blocks(item: Mapping[str, Any], kind: str) -> Iterator[RequestBlock]:
    match kind:
        case "message":
            content = item["content"]
            parts = [{"type": "input_text", "text": content}] if isinstance(content, str) else content
            for part in parts:
                text = part.get("text", part.get("refusal"))
                yield Text(text) if isinstance(text, str) else OtherBlock(part["type"])
        case "reasoning":
            encrypted = item.get("encrypted_content")
            sealed = unseal(encrypted) if encrypted is not None else None
            if sealed is not None and sealed.kind == REDACTED:
                yield RedactedThinking(sealed.data)
            else:
                yield Thinking(summary_text(item), encrypted)
        case "function_call":
            yield read_call(_joined(item), item["arguments"], item["call_id"])
        case "custom_tool_call":
            yield ToolUse(_joined(item), {"input": item["input"]}, item["call_id"])
        case "function_call_output" | "custom_tool_call_output":
            yield ToolResult(item["call_id"], False, _text(item["output"]))
        case _:
            yield OtherBlock(kind)


def _joined(item: Mapping[str, Any]) -> str:
    namespace = item.get("namespace")
    return joined_name(namespace, item["name"]) if isinstance(namespace, str) else str(item["name"])


def _text(content: Any) -> str:
    if isinstance(content, str):
        return content
    return "\n".join(part["text"] for part in content if isinstance(part.get("text"), str))
