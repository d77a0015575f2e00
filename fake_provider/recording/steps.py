"""An upstream's answer as the step of a script that gives it again.

Pure. What cannot be said in neutral words is kept as it came: a status with its raw body. Each step is checked as a
script's step before it is returned, so a recording always loads.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from fake_provider.dialects import DIALECTS, Dialect, Served
from fake_provider.document import DocumentError, Node, Place
from fake_provider.recording import anthropic_reader, chat_reader, gemini_reader, responses_reader
from fake_provider.recording.answer import Answer, Asked, Reading, UnreadableError, json_object
from fake_provider.recording.streams import array_elements, event_data
from fake_provider.replies import (
    ERROR_WORDS,
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
from fake_provider.script import parse_lanes
from fake_provider.templates import holds_values
from fake_provider.wire import PlainReply

KEPT_HEADERS = ("retry-after", "retry-after-ms", "x-should-retry", "location")
EVENT_STREAM = "text/event-stream"
UNSAYABLE = "the recorded answer cannot be said in a script"
_SAMPLE_TOKENS = 1_000_000


@dataclass(frozen=True, slots=True)
class Reader:
    """How a dialect's replies are read; each function takes what was asked too."""

    whole: Callable[[bytes, Asked], Reading]
    stream: Callable[[Iterable[str], Asked], Reading]


READERS: Mapping[str, Reader] = {
    "anthropic_messages": Reader(anthropic_reader.read_whole, anthropic_reader.read_stream),
    "openai_chat": Reader(chat_reader.read_whole, chat_reader.read_stream),
    "openai_responses": Reader(responses_reader.read_whole, responses_reader.read_stream),
    "gemini": Reader(gemini_reader.read_whole, gemini_reader.read_stream),
}
"""The register of readers, by dialect."""


def step_of(answer: Answer, dialect: str, asked: Asked, *, streamed: bool) -> Any:
    """Return the step that gives an answer again, as data.

    Args:
        answer: What the upstream sent.
        dialect: The dialect of the request.
        asked: What the request asked for.
        streamed: Whether it asked for a stream.
    """
    if answer.status is None:
        return "close"
    try:
        step = _status_step(answer, DIALECTS[dialect], asked) if answer.status != 200 else None
        step = _reply_step(answer, dialect, asked, streamed=streamed) if step is None else step
        _check(step, dialect)
    except (UnreadableError, DocumentError, AttributeError, LookupError, TypeError, ValueError):
        # An upstream may send anything where a reader expects an object or a number; what it sent is kept as it is.
        step = raw_step(answer)
    try:
        _check(step, dialect)
    except DocumentError as error:
        return {"status": {"code": 502, "body": _literal(f"{UNSAYABLE} (status {answer.status}): {error.message}")}}
    return step


def _check(step: Any, dialect: str) -> None:
    parse_lanes(Node({"main": [step]}, Place("recording", 1), ""), dialects=[dialect])


def raw_step(answer: Answer) -> dict[str, Any]:
    """Return the step that sends a body as it came."""
    text = answer.body.decode("utf-8", "replace")
    status: dict[str, Any] = {"code": answer.status, "body": _literal(text if answer.ended else f"{text} ")}
    if answer.content_type:
        status["content_type"] = answer.content_type
    step: dict[str, Any] = {"status": {**status, **_kept(answer)}}
    if not answer.ended:
        # One more byte is promised than came, so that a client sees that the body is not whole.
        step["cut"] = {"event": "body", "byte": len(text.encode())}
    return step


def _kept(answer: Answer) -> dict[str, Any]:
    headers = {name: answer.headers[name] for name in KEPT_HEADERS if name in answer.headers}
    return {"headers": headers} if headers else {}


def _status_step(answer: Answer, dialect: Dialect, asked: Asked) -> Any:
    if not answer.ended or answer.content_type != "application/json":
        return raw_step(answer)
    served = _served(dialect, asked)
    for word, error in ERROR_WORDS.items():
        if not _kept(answer) and _same(dialect.error(error, served), answer):
            return {"error": word}
    kind, message = _error_words(answer.body, answer.status or 0)
    error = ErrorReply(answer.status or 0, kind, message)
    if not _same(dialect.error(error, served), answer):
        return raw_step(answer)
    return {"status": {"code": error.status, "type": kind, "message": _literal(message), **_kept(answer)}}


def _error_words(body: bytes, status: int) -> tuple[str, str]:
    found = json_object(body).get("error")
    if not isinstance(found, Mapping):
        raise UnreadableError("no error in the body")
    kind = found.get("status") or found.get("type") or error_type(status)
    return str(kind), str(found.get("message", ""))


def _same(plain: PlainReply, answer: Answer) -> bool:
    """Whether a reply has the status and the body of an answer, but for the identifier of the request."""
    if plain.status != answer.status:
        return False
    ours, theirs = json_object(plain.body), json_object(answer.body)
    return {**ours, "request_id": None} == {**theirs, "request_id": None}


def _reply_step(answer: Answer, dialect: str, asked: Asked, *, streamed: bool) -> dict[str, Any]:
    if answer.content_type == EVENT_STREAM:
        reading = READERS[dialect].stream(event_data(answer.body), asked)
    elif streamed and dialect == "gemini":
        reading = gemini_reader.read_chunks(array_elements(answer.body), asked)
    elif not answer.ended:
        return raw_step(answer)
    else:
        reading = READERS[dialect].whole(answer.body, asked)
    if reading.reached == "head" and reading.error is None and answer.ended:
        raise UnreadableError("nothing in it is an event")
    return {"reply": reply_data(reading.reply), **_fault(reading, DIALECTS[dialect], asked, ended=answer.ended)}


def _fault(reading: Reading, dialect: Dialect, asked: Asked, *, ended: bool) -> dict[str, Any]:
    if reading.error is not None:
        kind, message = reading.error
        return {"error_event": {**_place(reading, dialect, asked), "type": kind, "message": message}}
    if reading.reached == "terminal":
        return {}
    return {"fault": {"early_end" if ended else "cut": _place(reading, dialect, asked)}}


def _place(reading: Reading, dialect: Dialect, asked: Asked) -> dict[str, Any]:
    """Return the place in the replayed reply that is as far as the recorded one came."""
    if reading.reached == "head":
        return {"event": "head"}
    frames = dialect.frames(_with_ids(reading.reply, dialect), _served(dialect, asked))
    for event in (reading.reached, "content", "start"):
        count = sum(frame.is_at(event) for frame in frames)
        if count:
            return {"event": event, "nth": count} if count > 1 else {"event": event}
    raise UnreadableError("the replayed reply has no such place")


def _with_ids(reply: Reply, dialect: Dialect) -> Reply:
    blocks = (
        ToolUse(block.name, block.input, block.id or dialect.call_id(1, 1), block.arguments)
        if isinstance(block, ToolUse)
        else block
        for block in reply.blocks
    )
    return Reply(tuple(blocks), reply.stop_reason, reply.usage, reply.model, reply.stop_sequence)


def _served(dialect: Dialect, asked: Asked) -> Served:
    body = {"stream_options": {"include_usage": asked.wants_usage}}
    return Served(dialect.message_id(1, 1), dialect.request_id(1), asked.model, 0, _SAMPLE_TOKENS, body)


def reply_data(reply: Reply) -> dict[str, Any]:
    """Return a reply as the ``reply`` of a step."""
    data: dict[str, Any] = {"blocks": [_block_data(block) for block in reply.blocks], "stop_reason": reply.stop_reason}
    if reply.stop_sequence is not None:
        data["stop_sequence"] = reply.stop_sequence
    if reply.usage is None:
        data["usage"] = "none"
    elif reply.usage != Usage():
        data["usage"] = _usage_data(reply.usage)
    if reply.model is not None:
        data["model"] = reply.model
    return data


def _usage_data(usage: Usage) -> dict[str, int]:
    counts = {
        "input_tokens": usage.input_tokens,
        "output_tokens": usage.output_tokens,
        "cache_read_input_tokens": usage.cache_read_input_tokens or None,
        "cache_creation_input_tokens": usage.cache_creation_input_tokens or None,
    }
    return {name: count for name, count in counts.items() if count is not None}


def _block_data(block: Block) -> dict[str, Any]:
    match block:
        case Text(text, citations):
            return {"text": _literal(text)} | ({"citations": list(citations)} if citations else {})
        case Thinking(thinking):
            return {"thinking": _literal(thinking)}
        case RedactedThinking(data):
            return {"redacted_thinking": data}
        case ToolUse():
            return {"tool_use": _call_data(block)}
        case Opaque(content):
            return {"block": dict(content)}


def _call_data(call: ToolUse) -> dict[str, Any]:
    given = {"input": _literal(dict(call.input))} if call.arguments is None else {"arguments": _literal(call.arguments)}
    return {"name": call.name, **given, **({} if call.id is None else {"id": call.id})}


def _literal(value: Any) -> Any:
    """Return a value in which no text is taken for one that holds values from the request."""
    if isinstance(value, str):
        return value.replace("{{", "{{{{") if holds_values(value) else value
    if isinstance(value, Mapping):
        return {key: _literal(item) for key, item in value.items()}
    return [_literal(item) for item in value] if isinstance(value, list) else value
