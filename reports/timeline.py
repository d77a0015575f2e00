"""One run as lines of text in the order of time: who did what, and where the faults struck.

Reads evidence and nothing else. Times are those measured in the run, in seconds since it began.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from harness.model.event import Source
from harness.model.evidence import Evidence, timed_history
from harness.model.history import blocks_of, messages_of, text_of

TEXT_CHARACTERS_MAX = 90


def lines(evidence: Evidence) -> Iterator[str]:
    """Yield one line an event that a reader needs; output lines are left to the literal output."""
    history = timed_history(evidence)
    phase = 0
    for event in history.events:
        if event.kind not in WORDS:
            continue
        if event.phase != phase:
            phase = event.phase
            yield f"  phase {phase}"
        mark = "!" if event.kind in ("fault.fired", "hold.reached") else " "
        who = Source.HARNESS if event.kind == "fault.fired" else event.source
        yield visible(f"  {event.at_seconds:8.3f} {mark} {who:<8} {WORDS[event.kind](event.data)}")


def visible(text: str) -> str:
    """Return text on one line in which nothing commands a terminal: what cannot be printed becomes its escape."""
    return "".join(
        character if character.isprintable() else character.encode("unicode_escape").decode() for character in text
    )


def request_words(data: dict[str, Any]) -> str:
    """Return a request as its number, model and the last thing it adds to the conversation."""
    if data.get("side"):
        return f"← {data['method']} {data['path']}"
    body = data["body"] if isinstance(data["body"], dict) else {}
    messages = messages_of(body)
    how = "" if data.get("stream") else ", not streamed"
    return f"← request {data['request']} for {data.get('model')}{how}, {len(messages)} messages, {last_words(messages)}"


def last_words(messages: Sequence[Mapping[str, Any]]) -> str:
    """Return the end of a conversation in a few words."""
    blocks = blocks_of(messages[-1]) if messages else []
    if not blocks:
        return "empty"
    for block in blocks:
        if block.get("type") == "tool_result":
            kind = "error result" if block.get("is_error") else "result"
            return f"{kind}: {shortened(text_of(block.get('content')))}"
    return f"{messages[-1].get('role')}: {shortened(str(blocks[-1].get('text', blocks[-1].get('type'))))}"


def shortened(text: str) -> str:
    """Return text on one line and not too long."""
    line = " ".join(text.split())
    return line if len(line) <= TEXT_CHARACTERS_MAX else line[: TEXT_CHARACTERS_MAX - 1] + "…"


def reply_words(data: dict[str, Any]) -> str:
    """Return the end of a reply."""
    status = "no status" if data["status"] is None else str(data["status"])
    return f"→ reply {data['request']}: {status}, {data['bytes']} bytes{'' if data['complete'] else ', cut short'}"


def tool_words(what: str) -> Callable[[dict[str, Any]], str]:
    """Return how a ledger line is told."""
    return lambda data: f"{what} {data['tool']} #{data['call']} {json.dumps(data['arguments'], ensure_ascii=False)}"


def exit_words(data: dict[str, Any]) -> str:
    """Return how a process ended."""
    if data["signal"] is not None:
        return f"ended by {data['signal']}"
    if data["code"] is None:
        return "did not end within the wall limit, and was ended"
    return f"exit {data['code']}"


def hook_words(data: dict[str, Any]) -> str:
    """Return what a hook was asked and what it said."""
    said = f"says no: {data['reason']}" if data["reason"] is not None else "lets it pass"
    return f"{data['event']} hook {said}"


WORDS: dict[str, Callable[[dict[str, Any]], str]] = {
    "process.started": lambda _: "started",
    "process.exited": exit_words,
    "process.overdue": lambda data: f"the wall limit of {data['wall_seconds']:g} s passed",
    "process.killed": lambda data: f"killed: {data['reason']}",
    "request.received": request_words,
    "request.refused": lambda data: f"  refused: {'; '.join(data['problems'])}",
    "request.unexpected": lambda data: f"  the script has no answer: {data['reason']}",
    "reply.ended": reply_words,
    "client.left": lambda data: f"  the client left reply {data['request']} after {data['bytes_sent']} bytes",
    "hold.reached": lambda data: f"held at {data['position']}: {data['detail']}",
    "fault.fired": lambda data: f"FAULT {data['fault']}",
    "fault.skipped": lambda data: f"fault did not fire: {data['fault']}: {data['reason']}",
    "hold.skipped": lambda data: f"hold was not reached: {data['position']}: {data['reason']}",
    "tool.called": tool_words("called"),
    "tool.committed": tool_words("EFFECT"),
    "tool.answered": tool_words("answered"),
    "hook.asked": hook_words,
}
"""The events that a timeline tells, and how."""
