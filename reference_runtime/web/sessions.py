"""What the page shows of the sessions on disk, taken from the runtime's own reader. Reads only.

It shows no tool arguments: those need an explicit inspection (P2). A session that cannot be read is listed with the
reason, never left out.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Literal

import msgspec

from reference_runtime.graph import Message
from reference_runtime.ledger import Receipt
from reference_runtime.recovery.receipts import AFTER_RESTART, CallVerdict, Effect, Format, ReceiptState
from reference_runtime.recovery.table import ImpossibleFactsError
from reference_runtime.session import SessionHistory, UnknownSessionError, read_session, transcript_path
from reference_runtime.transcript import NewerFormatError, read_transcript

SESSION_ID = re.compile(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
PROMPT_CHARACTERS_MAX = 120

CallState = Literal["finished", "unknown", "not_started"]

STATES: Mapping[CallVerdict, CallState] = {
    CallVerdict.SETTLED: "finished",
    CallVerdict.NOT_STARTED: "not_started",
    CallVerdict.UNKNOWN_HOLDS_WRITES: "unknown",
    CallVerdict.UNKNOWN_READ: "unknown",
}


class Call(msgspec.Struct, frozen=True):
    """One tool call: its state after a restart, and the decision row's reason for it (N4)."""

    call_id: str
    tool: str
    state: CallState
    because: str


class TextPart(msgspec.Struct, frozen=True, tag="text", tag_field="kind"):
    """What was said."""

    text: str


class CallPart(msgspec.Struct, frozen=True, tag="call", tag_field="kind"):
    """Where the model asked for a tool."""

    call_id: str


class ResultPart(msgspec.Struct, frozen=True, tag="result", tag_field="kind"):
    """What the model was told about a call."""

    call_id: str
    text: str
    is_error: bool


Part = TextPart | CallPart | ResultPart


class ShownMessage(msgspec.Struct, frozen=True):
    """One message of the active branch; ``hidden`` when the runtime wrote it and not the user."""

    role: str
    hidden: bool
    parts: tuple[Part, ...]


class Summary(msgspec.Struct, frozen=True):
    """One line of the list.

    Attributes:
        id: The session's id.
        began_at: ISO 8601 in UTC, empty when it cannot be told.
        ended: The terminal reason of the last run, ``None`` when that run recorded no end.
        prompt: The beginning of the first prompt.
        unknown: How many calls have an unknown outcome.
        problem: Why the session cannot be read, ``None`` when it can.
    """

    id: str
    began_at: str = ""
    ended: str | None = None
    prompt: str = ""
    unknown: int = 0
    problem: str | None = None


class View(msgspec.Struct, frozen=True):
    """One session: how its last run ended, its calls in the order of dispatch, its conversation."""

    id: str
    ended: str | None
    calls: tuple[Call, ...]
    messages: tuple[ShownMessage, ...]


class UnreadableSessionError(Exception):
    """The session is there and cannot be read; the message says why."""


def list_sessions(home: Path) -> list[Summary]:
    """Return the sessions under a runtime's home, the newest first."""
    ids = (path.stem for path in (home / "sessions").glob("*.jsonl"))
    found = [_summary(home, session_id) for session_id in ids if SESSION_ID.fullmatch(session_id)]
    return sorted(found, key=lambda summary: (summary.began_at, summary.id), reverse=True)


def view_session(home: Path, session_id: str) -> View | None:
    """Return one session, or None when there is none of this id.

    Raises:
        UnreadableSessionError: It was written by a newer version, or its records contradict each other.
    """
    # The id becomes part of a path, so nothing but an id may pass.
    if not SESSION_ID.fullmatch(session_id):
        return None
    path = transcript_path(home, session_id)
    try:
        history = read_session(path)
        ended = _ending(path)
    except UnknownSessionError:
        return None
    except (NewerFormatError, ImpossibleFactsError) as error:
        raise UnreadableSessionError(str(error)) from error
    return View(session_id, ended, tuple(_calls(history)), tuple(_shown(history.messages)))


def _summary(home: Path, session_id: str) -> Summary:
    path = transcript_path(home, session_id)
    try:
        history = read_session(path)
        ended = _ending(path)
    except UnknownSessionError:
        return Summary(session_id, problem="no intact record in it")
    except (NewerFormatError, ImpossibleFactsError) as error:
        return Summary(session_id, problem=str(error))
    texts = (part.text for message in _shown(history.messages) for part in message.parts if isinstance(part, TextPart))
    unknown = sum(call.state == "unknown" for call in _calls(history))
    return Summary(session_id, history.began_at, ended, next(texts, "")[:PROMPT_CHARACTERS_MAX], unknown)


def _ending(path: Path) -> str | None:
    # An earlier run's end says nothing about the last one: only an end that nothing follows is the session's.
    last = read_transcript(path).records[-1]
    return str(last.fields["terminal_reason"]) if last.kind == "run_ended" else None


def _calls(history: SessionHistory) -> Iterator[Call]:
    seen = set()
    for receipt in history.receipts:
        seen.add(receipt.call_id)
        yield _call(receipt.call_id, receipt.tool, receipt)
    for message in history.messages:
        for block in message.content:
            if block.get("type") == "tool_use" and block["id"] not in seen:
                yield _call(block["id"], block["name"], None)


def _call(call_id: str, tool: str, receipt: Receipt | None) -> Call:
    if receipt is None:
        facts = {"state": ReceiptState.ABSENT, "format": Format.CURRENT, "effect": Effect.WRITE}
    else:
        facts = {"state": receipt.state, "format": receipt.format, "effect": receipt.effect}
    row = AFTER_RESTART.decide(**facts)
    return Call(call_id, tool, STATES[row.decision], row.because)


def _shown(messages: Iterable[Message]) -> Iterator[ShownMessage]:
    for message in messages:
        parts = tuple(part for block in message.content if (part := _part(block)) is not None)
        if parts:
            yield ShownMessage(message.role, message.hidden, parts)


def _part(block: Mapping[str, Any]) -> Part | None:
    match block.get("type"):
        case "text":
            return TextPart(block["text"])
        case "tool_use":
            return CallPart(block["id"])
        case "tool_result":
            return ResultPart(block["tool_use_id"], _text(block.get("content", "")), bool(block.get("is_error")))
        case _:
            return None


def _text(content: str | Iterable[Mapping[str, Any]]) -> str:
    if isinstance(content, str):
        return content
    return "\n".join(block["text"] for block in content if block.get("type") == "text")
