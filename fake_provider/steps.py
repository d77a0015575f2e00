"""The steps of a lane: what one request is answered with, read from a script and checked before anything runs.

A step is frozen data. Reading one never serves anything; playing one is ``fake_provider.playback``'s.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeAlias

from fake_provider.dialects import DIALECTS, Served
from fake_provider.document import DocumentError, Node, Place, listed, nearest
from fake_provider.faults import Fault, read_fault
from fake_provider.replies import (
    ERROR_WORDS,
    STOP_REASONS,
    Block,
    ErrorReply,
    Reply,
    Text,
    Thinking,
    ToolUse,
    Usage,
    error_type,
)
from fake_provider.wire import Frame

if TYPE_CHECKING:
    from collections.abc import Collection

Rename: TypeAlias = Callable[[str, dict[str, Any]], tuple[str, dict[str, Any]]]
"""Maps a tool's name and arguments to what the runtime under test calls them."""

AT_MOST_DEFAULT = 4


@dataclass(frozen=True, slots=True)
class Insist:
    """A policy: ask for one tool call, with a fresh id each time, until the request shows that it succeeded.

    Attributes:
        call: The tool and its arguments.
        at_most: How many times it asks over the life of the lane, across restarts of the client too.
        then: What it says once it saw a success.
    """

    call: ToolUse
    at_most: int = AT_MOST_DEFAULT
    then: str = "Done."

    def asking(self) -> Reply:
        """The reply that asks once more."""
        return Reply((self.call,), "tool_use")

    def finished(self) -> Reply:
        """The reply after a success."""
        return Reply((Text(self.then),), "end_turn")

    def exhausted(self) -> Reply:
        """The reply after the last ask went without a success; never the same text as ``then``."""
        return Reply((Text(f"I could not get {self.call.name} done; I asked {self.at_most} times."),), "end_turn")


Answer: TypeAlias = Reply | ErrorReply | Insist


@dataclass(frozen=True, slots=True)
class Step:
    """One step: a label for people, the answer, and the fault that strikes it.

    A fault of an ``insist`` step strikes its first ask only, so that the policy can go on to see a success.
    """

    label: str
    answer: Answer
    fault: Fault | None = None
    fault_place: Place | None = None

    def renamed(self, rename: Rename, dialect: str) -> Step:
        """Return the step with every tool called as the runtime under test calls it.

        Raises:
            DocumentError: The fault's place does not exist in the renamed reply.
        """
        if isinstance(self.answer, Reply):
            blocks = tuple(
                _renamed(block, rename) if isinstance(block, ToolUse) else block for block in self.answer.blocks
            )
            step = replace(self, answer=replace(self.answer, blocks=blocks))
        elif isinstance(self.answer, Insist):
            step = replace(self, answer=replace(self.answer, call=_renamed(self.answer.call, rename)))
        else:
            return self
        check_fault(step, dialect)
        return step


def _renamed(call: ToolUse, rename: Rename) -> ToolUse:
    name, arguments = rename(call.name, dict(call.input))
    return replace(call, name=name, input=arguments)


SAMPLE_TOOL_ID = "toolu_" + "0" * 24
_SAMPLE = Served("msg_" + "0" * 24, "req_" + "0" * 24, "", 0, 0)


def sample_frames(step: Step, dialect: str) -> tuple[Frame, ...]:
    """Return the events that a step streams, with sample identifiers; none where it answers with a status."""
    if isinstance(step.answer, ErrorReply):
        return ()
    reply = step.answer.asking() if isinstance(step.answer, Insist) else step.answer
    blocks = tuple(
        replace(block, id=block.id or SAMPLE_TOOL_ID) if isinstance(block, ToolUse) else block for block in reply.blocks
    )
    return DIALECTS[dialect].frames(replace(reply, blocks=blocks), _SAMPLE)


def check_fault(step: Step, dialect: str) -> None:
    """Refuse a fault that cannot strike its step.

    Raises:
        DocumentError: There is no such event or byte, or the step is a status, which no fault rewrites.
    """
    if step.fault is None or step.fault_place is None:
        return
    if isinstance(step.answer, ErrorReply):
        raise DocumentError(
            step.fault_place,
            f"fault '{step.fault.kind}' cannot strike step '{step.label}': it answers with a status, "
            "and a fault rewrites a reply. Allowed on: say, call, reply, insist",
        )
    reason = step.fault.unreachable(sample_frames(step, dialect))
    if reason is not None:
        raise DocumentError(
            step.fault_place, f"fault '{step.fault.kind}' cannot be reached in step '{step.label}': {reason}"
        )


_COMMON_KEYS = ("fault", "times", "name")
_REPLY_KEYS = ("say", "think", "call", "with", "id", "stop_reason", "usage", "serving_model")
_KIND_KEYS = ("status", "reply", "insist", "say", "call")
STEP_KEYS = (*_KIND_KEYS, *_REPLY_KEYS, *_COMMON_KEYS)


def read_step(node: Node, dialect: str) -> list[Step]:
    """Read one item of a lane; ``times`` makes it several equal steps.

    Raises:
        DocumentError: A word or key is unknown, a value has the wrong type, or the fault cannot be reached.
    """
    if isinstance(node.value, str):
        word = node.text()
        if word not in ERROR_WORDS:
            raise node.error(
                f"unknown step '{word}'{nearest(word, ERROR_WORDS)}; or a mapping with {listed(_KIND_KEYS)}"
            )
        return [Step(word, ERROR_WORDS[word])]
    if not isinstance(node.value, Mapping):
        raise node.expected("a step as a word or a mapping")
    fields = node.fields("step", set(STEP_KEYS))
    kind = next((key for key in _KIND_KEYS if key in fields), None)
    fault = read_fault(fields["fault"]) if "fault" in fields else None
    if kind is None and (fault is None or fault.needs_stream):
        raise node.error(f"step has none of {listed(_KIND_KEYS)}")
    label, answer = _KINDS[kind or "fault"](fields)
    step = Step(
        label=fields["name"].text() if "name" in fields else label,
        answer=answer,
        fault=fault,
        fault_place=fields["fault"].place if "fault" in fields else None,
    )
    check_fault(step, dialect)
    return [step] * (fields["times"].integer(minimum=1) if "times" in fields else 1)


def _only(kind: str, fields: Mapping[str, Node], allowed: Collection[str]) -> None:
    """Refuse keys that are known but mean nothing beside this kind of step."""
    for key, child in fields.items():
        if key not in allowed and key not in _COMMON_KEYS:
            raise DocumentError(
                child.place,
                f"key '{key}' cannot stand beside '{kind}' in step. Allowed: {listed({*allowed, *_COMMON_KEYS})}",
            )


def _read_status(fields: Mapping[str, Node]) -> tuple[str, Answer]:
    _only("status", fields, ["status"])
    keys = ("code", "type", "message", "headers", "body", "content_type")
    status = fields["status"].fields("status", keys, ["code"])
    code = status["code"].integer(minimum=200)
    if code > 599:
        raise status["code"].error(f"expected an HTTP status from 200 to 599, found {code}")
    if code < 400 and "body" not in status:
        raise fields["status"].error(f"status {code} is no error, so it needs a 'body' (an empty one is allowed)")
    kind = status["type"].text() if "type" in status else error_type(code)
    headers = status["headers"].entries("headers") if "headers" in status else {}
    error = ErrorReply(
        status=code,
        type=kind,
        message=status["message"].text() if "message" in status else f"scripted {kind}",
        headers=tuple((name.lower(), value.text()) for name, value in headers.items()),
        body=status["body"].text() if "body" in status else None,
        content_type=status["content_type"].text() if "content_type" in status else None,
    )
    for name, value in headers.items():
        _check_header(value, name, value.text())
    if error.content_type is not None:
        _check_header(status["content_type"], "content-type", error.content_type)
    return f"status {code}", error


_HEADER_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_HEADER_VALUE_MISFIT = re.compile(r"[^\t\x20-\x7e\x80-\xff]")


def _check_header(node: Node, name: str, value: str) -> None:
    """Refuse what would not be one header on the wire (RFC 9110, section 5)."""
    if not _HEADER_NAME.fullmatch(name):
        raise node.error(f"'{name}' is no header name")
    misfit = _HEADER_VALUE_MISFIT.search(value)
    if misfit:
        raise node.error(f"header '{name}' holds a character that HTTP cannot send: {misfit.group()!r}")


def _read_short(fields: Mapping[str, Node]) -> tuple[str, Answer]:
    call = fields.get("call")
    _only("call" if call else "say", fields, _REPLY_KEYS if call else set(_REPLY_KEYS) - {"call", "with", "id"})
    blocks: list[Block] = []
    if "think" in fields:
        blocks.append(Thinking(fields["think"].text()))
    if "say" in fields:
        blocks.append(Text(fields["say"].text()))
    if call is not None:
        blocks.append(_tool_use(call, fields.get("with"), fields.get("id")))
    stop = _stop_reason(fields) or ("tool_use" if call else "end_turn")
    model = fields["serving_model"].text() if "serving_model" in fields else None
    reply = Reply(tuple(blocks), stop, _usage(fields.get("usage")), model)
    return (f"call {call.text()}" if call else "say"), reply


def _read_reply(fields: Mapping[str, Node]) -> tuple[str, Answer]:
    _only("reply", fields, ["reply"])
    inner = fields["reply"].fields("reply", ("blocks", "stop_reason", "usage", "model"), ["blocks"])
    blocks = tuple(_block(item) for item in inner["blocks"].items("blocks"))
    calls = any(isinstance(block, ToolUse) for block in blocks)
    stop = _stop_reason(inner) or ("tool_use" if calls else "end_turn")
    model = inner["model"].text() if "model" in inner else None
    return "reply", Reply(blocks, stop, _usage(inner.get("usage")), model)


def _read_insist(fields: Mapping[str, Node]) -> tuple[str, Answer]:
    _only("insist", fields, ["insist"])
    inner = fields["insist"].fields("insist", ("call", "with", "until", "at_most", "then"), ["call"])
    if "until" in inner:
        inner["until"].choice("end of insist", ["success"])
    insist = Insist(
        call=_tool_use(inner["call"], inner.get("with"), None),
        at_most=inner["at_most"].integer(minimum=1) if "at_most" in inner else AT_MOST_DEFAULT,
        then=inner["then"].text() if "then" in inner else "Done.",
    )
    return f"insist {insist.call.name}", insist


def _read_fault_alone(fields: Mapping[str, Node]) -> tuple[str, Answer]:
    _only("fault", fields, [])
    return "close", Reply((), "end_turn")


_KINDS: Mapping[str, Callable[[Mapping[str, Node]], tuple[str, Answer]]] = {
    "status": _read_status,
    "say": _read_short,
    "call": _read_short,
    "reply": _read_reply,
    "insist": _read_insist,
    "fault": _read_fault_alone,
}


def _block(node: Node) -> Block:
    fields = node.fields("block", ("text", "thinking", "signature", "tool_use"))
    kinds = [key for key in ("text", "thinking", "tool_use") if key in fields]
    if len(kinds) != 1 or ("signature" in fields and kinds != ["thinking"]):
        raise node.error("expected a block with one of text, thinking (and its signature), tool_use")
    if kinds == ["text"]:
        return Text(fields["text"].text())
    if kinds == ["thinking"]:
        return Thinking(fields["thinking"].text(), fields["signature"].text() if "signature" in fields else None)
    inner = fields["tool_use"].fields("tool_use", ("name", "input", "id"), ["name"])
    return _tool_use(inner["name"], inner.get("input"), inner.get("id"))


def _tool_use(name: Node, arguments: Node | None, call_id: Node | None) -> ToolUse:
    if arguments is not None and not isinstance(arguments.value, Mapping):
        raise arguments.expected("tool arguments as a mapping")
    return ToolUse(
        name=name.text(),
        input=arguments.data() if arguments is not None else {},
        id=call_id.text() if call_id is not None else None,
    )


def _stop_reason(fields: Mapping[str, Node]) -> str | None:
    return fields["stop_reason"].choice("stop reason", STOP_REASONS) if "stop_reason" in fields else None


def _usage(node: Node | None) -> Usage:
    if node is None:
        return Usage()
    keys = ("input_tokens", "output_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")
    counts = {key: child.integer(minimum=0) for key, child in node.fields("usage", keys).items()}
    return replace(Usage(), **counts)
