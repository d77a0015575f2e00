"""Content blocks in the words of the Messages API: whole, and as the events that build them up in a stream.

Pure: neutral blocks in, JSON values and frames out. It never says anything about the message around the blocks.

Text and thinking are split into deltas of ``TEXT_PIECE_CHARACTERS`` characters; a tool's input into one empty delta, as
the real stream begins it, and then deltas of ``JSON_PIECE_CHARACTERS`` or the pieces that the script asks for. The
shapes follow the platform documentation ("Streaming Messages", "Citations", "Web search tool").
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from fake_provider.dialects.anthropic_thinking import sealed, signature_of
from fake_provider.replies import Block, Opaque, RedactedThinking, Text, Thinking, ToolUse
from fake_provider.wire import Frame

TEXT_PIECE_CHARACTERS = 16
JSON_PIECE_CHARACTERS = 8

_STREAMED_INPUT_KINDS = ("server_tool_use", "mcp_tool_use")

_DELTA_PLACES: Mapping[str, tuple[str, ...]] = {
    "text_delta": ("content", "text"),
    "thinking_delta": ("content", "thinking"),
    "signature_delta": ("content", "thinking"),
    "input_json_delta": ("content", "tool_arguments"),
    "citations_delta": ("content",),
}


def event_frame(event: Mapping[str, Any], *, fixed: bool = True, places: tuple[str, ...] = ()) -> Frame:
    """Encode one event of a stream, named by its type."""
    name = str(event["type"])
    data = msgspec.json.encode(event)
    return Frame(name, b"event: %b\ndata: %b\n\n" % (name.encode("ascii"), data), fixed, places)


def signed_blocks(blocks: tuple[Block, ...], model: str) -> tuple[Block, ...]:
    """Return the blocks with their reasoning signed as the model's, in the order in which it stands."""
    signed: list[Block] = []
    ordinal = 0
    for block in blocks:
        match block:
            case Thinking(thinking, signature):
                genuine = signature_of(thinking, model, ordinal)
                signed.append(Thinking(thinking, genuine if signature is None else signature))
                ordinal += 1
            case RedactedThinking(data):
                signed.append(RedactedThinking(sealed(data, model, ordinal)))
                ordinal += 1
            case _:
                signed.append(block)
    return tuple(signed)


def whole_block(block: Block) -> dict[str, Any]:
    """Return a block as a message that is not streamed holds it; raw arguments stand where its input belongs."""
    match block:
        case Text(text, citations):
            return {"type": "text", "text": text} | ({"citations": list(citations)} if citations else {})
        case Thinking(thinking, signature):
            return {"type": "thinking", "thinking": thinking, "signature": signature}
        case RedactedThinking(data):
            return {"type": "redacted_thinking", "data": data}
        case ToolUse(name=name, input=arguments, id=call_id):
            given = arguments if block.arguments is None else msgspec.Raw(block.arguments.encode("utf-8"))
            return {"type": "tool_use", "id": call_id, "name": name, "input": given}
        case Opaque(content):
            return dict(content)


def block_frames(index: int, block: Block) -> Iterator[Frame]:
    """Encode the start, the deltas and the stop of the block at an index of the message."""
    start_places, stop_places = _edges(block)
    start = {"type": "content_block_start", "index": index, "content_block": _begun(block)}
    yield event_frame(start, places=start_places)
    for kind, key, value in _deltas(block):
        places = _DELTA_PLACES[kind]
        # The arguments of a tool that the provider runs itself are no part of a call that the client answers.
        if isinstance(block, Opaque):
            places = ("content",)
        delta = {"type": "content_block_delta", "index": index, "delta": {"type": kind, key: value}}
        yield event_frame(delta, places=places)
    yield event_frame({"type": "content_block_stop", "index": index}, places=stop_places)


def _edges(block: Block) -> tuple[tuple[str, ...], tuple[str, ...]]:
    match block:
        case ToolUse():
            return ("content", "tool_start"), ("tool_end",)
        case RedactedThinking():
            return ("content", "thinking"), ()
        case Opaque():
            return ("content",), ()
        case _:
            return (), ()


def _begun(block: Block) -> dict[str, Any]:
    """Return the block as its start event holds it: with everything but what the deltas bring."""
    match block:
        case Text(citations=citations):
            return {"type": "text", "text": ""} | ({"citations": []} if citations else {})
        case Thinking():
            return {"type": "thinking", "thinking": "", "signature": ""}
        case ToolUse(name=name, id=call_id):
            return {"type": "tool_use", "id": call_id, "name": name, "input": {}}
        case Opaque(content) if content["type"] in _STREAMED_INPUT_KINDS:
            return {**content, "input": {}}
        case _:
            return whole_block(block)


def _deltas(block: Block) -> Iterator[tuple[str, str, Any]]:
    match block:
        case Text(text, citations):
            yield from (("text_delta", "text", piece) for piece in _pieces(text, TEXT_PIECE_CHARACTERS))
            yield from (("citations_delta", "citation", citation) for citation in citations)
        case Thinking(thinking, signature):
            yield from (("thinking_delta", "thinking", piece) for piece in _pieces(thinking, TEXT_PIECE_CHARACTERS))
            yield "signature_delta", "signature", signature
        case ToolUse(split_at=split_at):
            yield from _input_deltas(block.arguments_text, split_at)
        case Opaque(content) if content["type"] in _STREAMED_INPUT_KINDS:
            yield from _input_deltas(json.dumps(content.get("input", {}), ensure_ascii=False), None)
        case _:
            return


def _input_deltas(text: str, split_at: tuple[int, ...] | None) -> Iterator[tuple[str, str, str]]:
    pieces = _pieces(text, JSON_PIECE_CHARACTERS) if split_at is None else _pieces_at(text, split_at)
    for piece in ("", *pieces):
        yield "input_json_delta", "partial_json", piece


def _pieces(text: str, size: int) -> Iterator[str]:
    for start in range(0, len(text), size):
        yield text[start : start + size]


def _pieces_at(text: str, positions: tuple[int, ...]) -> Iterator[str]:
    edges = [0, *sorted({position for position in positions if 0 < position < len(text)}), len(text)]
    for start, end in itertools.pairwise(edges):
        yield text[start:end]
