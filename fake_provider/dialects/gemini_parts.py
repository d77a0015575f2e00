"""Content parts in the words of the Gemini API: whole, and as the pieces that a stream brings one chunk at a time.

Pure: neutral blocks in, JSON values out. It never says anything about the candidate around the parts.

Text and thoughts are split into pieces of ``TEXT_PIECE_CHARACTERS`` characters; a function call is one piece, because
this API never splits arguments. A thought's signature does not stand on the thought: it is carried by the first
function call after it, else by the last part before the next thought, else by an empty text part of its own; and the
first function call of a reply carries one in any case (documentation, "Thought signatures"). Reasoning that only the
provider can read has no part of its own here: it is the data behind such a signature.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from fake_provider.dialects.gemini_rules import thought_signature
from fake_provider.replies import Block, Opaque, RedactedThinking, Text, Thinking, ToolUse

TEXT_PIECE_CHARACTERS = 16

_PLACES: Mapping[type[Block], tuple[str, ...]] = {
    Text: ("content", "text"),
    Thinking: ("content", "thinking"),
    RedactedThinking: ("content", "thinking"),
    ToolUse: ("content", "tool_start", "tool_arguments", "tool_end"),
    Opaque: ("content",),
}


@dataclass(frozen=True, slots=True)
class Piece:
    """One part as it leaves, with the places that it is in a stream and the sources that it quotes."""

    part: Mapping[str, Any]
    places: tuple[str, ...]
    citations: tuple[Mapping[str, Any], ...] = ()


def whole_pieces(blocks: Sequence[Block], model: str) -> tuple[Piece, ...]:
    """Return one piece for each part of a reply of the model."""
    return tuple(_pieces(blocks, model, characters=None))


def streamed_pieces(blocks: Sequence[Block], model: str) -> tuple[Piece, ...]:
    """Return the pieces of a reply of the model as a stream brings them."""
    return tuple(_pieces(blocks, model, characters=TEXT_PIECE_CHARACTERS))


def _pieces(blocks: Sequence[Block], model: str, characters: int | None) -> Iterator[Piece]:
    signatures, following = _signatures(blocks, model)
    for index, block in enumerate(blocks):
        parts = list(_parts(block, characters))
        if index in signatures and parts:
            parts[-1] = {**parts[-1], "thoughtSignature": signatures[index]}
        for position, part in enumerate(parts):
            last = position == len(parts) - 1
            citations = block.citations if isinstance(block, Text) and last else ()
            yield Piece(part, _PLACES[type(block)], citations)
        if index in following:
            yield Piece({"text": "", "thoughtSignature": following[index]}, _PLACES[Thinking])


def _parts(block: Block, characters: int | None) -> Iterator[dict[str, Any]]:
    match block:
        case Text(text):
            yield from ({"text": piece} for piece in _split(text, characters))
        case Thinking(thinking):
            yield from ({"text": piece, "thought": True} for piece in _split(thinking, characters))
        case ToolUse(name=name, input=arguments, id=call_id):
            given = arguments if block.arguments is None else msgspec.Raw(block.arguments.encode("utf-8"))
            yield {"functionCall": {"id": call_id, "name": name, "args": given}}
        case Opaque(content):
            yield dict(content)
        case RedactedThinking():
            return


def _split(text: str, characters: int | None) -> Iterator[str]:
    if characters is None or not text:
        yield text
        return
    for start in range(0, len(text), characters):
        yield text[start : start + characters]


def _signatures(blocks: Sequence[Block], model: str) -> tuple[dict[int, str], dict[int, str]]:
    """Return the signatures by the index of the block that carries them, and those that need a part behind theirs."""
    carried: dict[int, str] = {}
    following: dict[int, str] = {}
    first_call = next((index for index, block in enumerate(blocks) if isinstance(block, ToolUse)), None)
    first_thought = next((index for index, block in enumerate(blocks) if _is_reasoning(block)), len(blocks))
    if first_call is not None and first_call < first_thought:
        carried[first_call] = thought_signature(model, 0, "")
    for index, block in enumerate(blocks):
        match block:
            case Thinking(thinking, given):
                thought, data = thinking, ""
            case RedactedThinking(data):
                thought, given = "", None
            case _:
                continue
        signature = given
        if signature is None:
            signature = thought_signature(model, len(carried) + len(following), thought, data)
        carrier = _carrier(blocks, index)
        if carrier is None:
            following[index] = signature
        else:
            carried[carrier] = signature
    return carried, following


def _carrier(blocks: Sequence[Block], thought: int) -> int | None:
    carrier = None
    for index in range(thought + 1, len(blocks)):
        if _is_reasoning(blocks[index]):
            break
        carrier = index
        if isinstance(blocks[index], ToolUse):
            break
    return carrier


def _is_reasoning(block: Block) -> bool:
    return isinstance(block, Thinking | RedactedThinking)
