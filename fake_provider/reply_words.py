"""How a script writes replies and errors: the readers of blocks, short forms, usage and statuses.

It reads nodes into the neutral reply model and refuses what no reply can hold. It never chooses a dialect, and never
serves anything.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

from fake_provider.document import Node
from fake_provider.replies import (
    STOP_REASONS,
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
from fake_provider.templates import check_values, holds_values

ENDING_KEYS = ("stop_reason", "stop_sequence", "usage")
CALL_KEYS = ("with", "arguments", "split_at", "id")
SHORT_KEYS = ("say", "citations", "think", "redacted_thinking", "block", "serving_model", *ENDING_KEYS)
"""The keys of a short reply; ``call`` with ``CALL_KEYS``, or ``calls``, may stand beside them."""

BLOCK_KINDS = ("text", "thinking", "redacted_thinking", "tool_use", "block")
_COMPANIONS = {"citations": "text", "signature": "thinking"}
USAGE_KEYS = ("input_tokens", "output_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")
STATUS_KEYS = ("code", "type", "message", "headers", "body", "content_type")


def template_text(node: Node) -> str:
    """Read a text that may hold values from the request."""
    text = node.text()
    check_values(node, text)
    return text


def read_short(fields: Mapping[str, Node]) -> Reply:
    """Read ``say``, ``think``, ``call`` and what may stand beside them, in the order in which models write them."""
    blocks: list[Block] = []
    if "think" in fields:
        blocks.append(Thinking(template_text(fields["think"])))
    if "redacted_thinking" in fields:
        blocks.append(RedactedThinking(fields["redacted_thinking"].text()))
    if "citations" in fields and "say" not in fields:
        raise fields["citations"].error("citations belong to a text, and this step has no 'say'")
    if "say" in fields:
        blocks.append(Text(template_text(fields["say"]), _citations(fields.get("citations"))))
    if "block" in fields:
        blocks.append(_opaque(fields["block"]))
    if "call" in fields:
        blocks.append(read_call(fields["call"], fields))
    if "calls" in fields:
        blocks += _calls(fields["calls"])
    model = fields["serving_model"].text() if "serving_model" in fields else None
    return _ended(tuple(blocks), fields, model)


def read_reply(node: Node) -> Reply:
    """Read the general form: ``{blocks, stop_reason, stop_sequence, usage, model}``."""
    fields = node.fields("reply", ("blocks", *ENDING_KEYS, "model"), ["blocks"])
    blocks = tuple(_block(item) for item in fields["blocks"].items("blocks"))
    return _ended(blocks, fields, fields["model"].text() if "model" in fields else None)


def _ended(blocks: tuple[Block, ...], fields: Mapping[str, Node], model: str | None) -> Reply:
    sequence = fields["stop_sequence"].text() if "stop_sequence" in fields else None
    if "stop_reason" in fields:
        stop = fields["stop_reason"].choice("stop reason", STOP_REASONS)
    elif sequence is not None:
        stop = "stop_sequence"
    else:
        stop = "tool_use" if any(isinstance(block, ToolUse) for block in blocks) else "end_turn"
    return Reply(blocks, stop, _usage(fields.get("usage")), model, sequence)


def _block(node: Node) -> Block:
    fields = node.fields("block", (*BLOCK_KINDS, *_COMPANIONS))
    kinds = [key for key in BLOCK_KINDS if key in fields]
    if len(kinds) != 1 or any(key in fields and kinds != [owner] for key, owner in _COMPANIONS.items()):
        raise node.error(
            "expected a block with one of text (and its citations), thinking (and its signature), redacted_thinking, "
            "tool_use, block"
        )
    [kind] = kinds
    child = fields[kind]
    match kind:
        case "text":
            return Text(template_text(child), _citations(fields.get("citations")))
        case "thinking":
            return Thinking(template_text(child), fields["signature"].text() if "signature" in fields else None)
        case "redacted_thinking":
            return RedactedThinking(child.text())
        case "block":
            return _opaque(child)
        case _:
            inner = child.fields("tool_use", ("name", "input", "arguments", "split_at", "id"), ["name"])
            return read_call(inner["name"], {"with" if key == "input" else key: value for key, value in inner.items()})


def _opaque(node: Node) -> Opaque:
    node.entries("block")
    return Opaque(node.data())


def _citations(node: Node | None) -> tuple[Mapping[str, object], ...]:
    if node is None:
        return ()
    for item in node.items("citations"):
        item.entries("citation")
    return tuple(node.data())


def _calls(node: Node) -> list[ToolUse]:
    calls = []
    for item in node.items("calls"):
        if isinstance(item.value, str):
            calls.append(ToolUse(item.text()))
        else:
            fields = item.fields("call", ("call", *CALL_KEYS), ["call"])
            calls.append(read_call(fields["call"], fields))
    if not calls:
        raise node.error("calls is empty; at least one is needed")
    return calls


def read_call(name: Node, fields: Mapping[str, Node]) -> ToolUse:
    """Read a tool call: its name, and ``with`` or ``arguments``, ``split_at`` and ``id`` where they are given.

    Raises:
        DocumentError: Both forms of arguments are given, or a piece begins where the arguments have no character.
    """
    with_, raw = fields.get("with"), fields.get("arguments")
    if with_ is not None and not isinstance(with_.value, Mapping):
        raise with_.expected("tool arguments as a mapping")
    if with_ is not None and raw is not None:
        raise raw.error("'arguments' is the raw text of what 'with' says as data; give one of them")
    arguments = with_.data() if with_ is not None else {}
    if with_ is not None:
        check_values(with_, arguments)
    call = ToolUse(
        name=name.text(),
        input=arguments,
        id=fields["id"].text() if "id" in fields else None,
        arguments=template_text(raw) if raw is not None else None,
    )
    return replace(call, split_at=_split_at(fields["split_at"], call)) if "split_at" in fields else call


def _split_at(node: Node, call: ToolUse) -> tuple[int, ...]:
    items = node.items("split_at")
    positions = tuple(item.integer(minimum=1) for item in items)
    if list(positions) != sorted(set(positions)):
        raise node.error("the positions of split_at go up, each once")
    size = len(call.arguments_text)
    changes = holds_values(call.input) or holds_values(call.arguments)
    for item, position in zip(items, positions, strict=True):
        if position >= size and not changes:
            raise item.error(f"the arguments are {size} characters long, so no piece begins at {position}")
    return positions


def _usage(node: Node | None) -> Usage | None:
    if node is None:
        return Usage()
    if node.value == "none":
        return None
    if isinstance(node.value, str):
        raise node.expected("token counts as a mapping, or the word none")
    counts = {key: child.integer(minimum=0) for key, child in node.fields("usage", USAGE_KEYS).items()}
    return replace(Usage(), **counts)


def read_status(node: Node) -> ErrorReply:
    """Read ``status: CODE`` or ``status: {code, type, message, headers, body, content_type}``."""
    plain = isinstance(node.value, int)
    fields = {"code": node} if plain else node.fields("status", STATUS_KEYS, ["code"])
    code = fields["code"].integer(minimum=200)
    if code > 599:
        raise fields["code"].error(f"expected an HTTP status from 200 to 599, found {code}")
    if code < 400 and "body" not in fields:
        raise node.error(f"status {code} is no error, so it needs a 'body' (an empty one is allowed)")
    kind = fields["type"].text() if "type" in fields else error_type(code)
    headers = fields["headers"].entries("headers") if "headers" in fields else {}
    error = ErrorReply(
        status=code,
        type=kind,
        message=template_text(fields["message"]) if "message" in fields else f"scripted {kind}",
        headers=tuple((name.lower(), value.text()) for name, value in headers.items()),
        body=template_text(fields["body"]) if "body" in fields else None,
        content_type=fields["content_type"].text() if "content_type" in fields else None,
    )
    for name, value in headers.items():
        check_header(value, name, value.text())
    if error.content_type is not None:
        check_header(fields["content_type"], "content-type", error.content_type)
    return error


_HEADER_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_HEADER_VALUE_MISFIT = re.compile(r"[^\t\x20-\x7e\x80-\xff]")


def check_header(node: Node, name: str, value: str) -> None:
    """Refuse what would not be one header on the wire (RFC 9110, section 5)."""
    if not _HEADER_NAME.fullmatch(name):
        raise node.error(f"'{name}' is no header name")
    misfit = _HEADER_VALUE_MISFIT.search(value)
    if misfit:
        raise node.error(f"header '{name}' holds a character that HTTP cannot send: {misfit.group()!r}")


def called(reply: Reply) -> Sequence[ToolUse]:
    """Return the tool calls of a reply, in order."""
    return [block for block in reply.blocks if isinstance(block, ToolUse)]
