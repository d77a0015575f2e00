"""The output of a Responses reply: each neutral block as an item, and the events that a stream builds it with.

Pure. It never knows the response around the items, nor their place in a stream: that is ``openai_responses``. Item
types and event order follow the API reference ("Responses", "Streaming events") and the types of the official client.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from fake_provider.dialects.openai_fields import TEXT_PIECE_CHARACTERS, argument_pieces, pieces
from fake_provider.dialects.openai_reasoning import REDACTED, THOUGHT, seal
from fake_provider.dialects.openai_responses_rules import item_suffix
from fake_provider.dialects.openai_tools import Offered, resolve
from fake_provider.replies import Block, Opaque, RedactedThinking, Reply, Text, Thinking, ToolUse

if TYPE_CHECKING:
    from fake_provider.dialects import Served

Item: TypeAlias = Mapping[str, Any]

_ARGUMENTS: Mapping[str, tuple[str, str]] = {
    "function_call": ("arguments", "function_call_arguments"),
    "custom_tool_call": ("input", "custom_tool_call_input"),
}
"""The field that holds a call's arguments, and what its events are called, by the call's type."""


@dataclass(frozen=True, slots=True)
class Event:
    """One event of a stream, without its number: its type, its fields, its places, and whether its length is fixed."""

    type: str
    fields: Mapping[str, Any]
    places: tuple[str, ...] = ()
    fixed: bool = True


@dataclass(frozen=True, slots=True)
class Placed:
    """A block of a reply with what its item repeats.

    Attributes:
        block: The block.
        index: Its place in the output.
        suffix: The item's id without its prefix.
        model: The serving model.
        refusing: Whether text is a refusal.
        status: What the item says of itself: ``completed``, or ``incomplete`` for the last one of a reply that was cut.
        tool: The tool that a call means.
    """

    block: Block
    index: int
    suffix: str
    model: str
    refusing: bool
    status: str
    tool: Offered | None = None

    def item(self) -> Item:
        """Return the finished item."""
        match self.block:
            case Text():
                return self._message([self._part(self.block.text, self.block.citations)], self.status)
            case Thinking(thinking):
                return self._reasoning(thinking, self._encrypted(thinking))
            case RedactedThinking(data):
                return self._reasoning("", seal(REDACTED, self.model, self.suffix, data))
            case ToolUse():
                return self._call(self.block, _argument_text(self.block, self._offered()), self.status)
            case Opaque(content):
                return content

    def events(self) -> Iterator[Event]:
        """Yield the events from ``response.output_item.added`` to ``response.output_item.done``."""
        match self.block:
            case Text():
                yield from self._message_events(self.block)
            case Thinking():
                yield from self._reasoning_events(self.block)
            case RedactedThinking():
                empty = {"id": f"rs_{self.suffix}", "type": "reasoning", "summary": []}
                yield self._event("output_item.added", {"item": empty})
                yield self._event("output_item.done", {"item": self.item()}, ("content", "thinking"))
            case ToolUse():
                yield from self._call_events(self.block)
            case Opaque(content):
                yield self._event("output_item.added", {"item": content})
                yield self._event("output_item.done", {"item": content}, ("content",))

    def _event(self, name: str, fields: Item, places: tuple[str, ...] = (), *, fixed: bool = True) -> Event:
        return Event(f"response.{name}", {"output_index": self.index, **fields}, places, fixed)

    def _part(self, text: str, citations: tuple[Item, ...]) -> dict[str, Any]:
        if self.refusing:
            return {"type": "refusal", "refusal": text}
        return {"type": "output_text", "text": text, "annotations": list(citations), "logprobs": []}

    def _message(self, parts: list[dict[str, Any]], status: str) -> Item:
        message_id = f"msg_{self.suffix}"
        return {"id": message_id, "type": "message", "status": status, "role": "assistant", "content": parts}

    def _message_events(self, text: Text) -> Iterator[Event]:
        place: Item = {"item_id": f"msg_{self.suffix}", "content_index": 0}
        name, key = ("refusal", "refusal") if self.refusing else ("output_text", "text")
        extra: Item = {} if self.refusing else {"logprobs": []}
        part = self._part(text.text, text.citations)
        yield self._event("output_item.added", {"item": self._message([], "in_progress")})
        yield self._event("content_part.added", {**place, "part": self._part("", ())})
        for piece in pieces(text.text, TEXT_PIECE_CHARACTERS):
            yield self._event(f"{name}.delta", {**place, "delta": piece, **extra}, ("content", "text"))
        for number, citation in enumerate(() if self.refusing else text.citations):
            cited = {**place, "annotation_index": number, "annotation": citation}
            yield self._event("output_text.annotation.added", cited, ("content",))
        yield self._event(f"{name}.done", {**place, key: text.text, **extra})
        yield self._event("content_part.done", {**place, "part": part})
        yield self._event("output_item.done", {"item": self.item()})

    def _reasoning(self, text: str, encrypted: str) -> Item:
        summary = [{"type": "summary_text", "text": text}] if text else []
        return {"id": f"rs_{self.suffix}", "type": "reasoning", "summary": summary, "encrypted_content": encrypted}

    def _encrypted(self, thinking: str) -> str:
        assert isinstance(self.block, Thinking)
        if self.block.signature is not None:
            return self.block.signature
        return seal(THOUGHT, self.model, self.suffix, thinking)

    def _reasoning_events(self, thought: Thinking) -> Iterator[Event]:
        place: Item = {"item_id": f"rs_{self.suffix}", "summary_index": 0}
        text = thought.thinking
        empty = {"id": f"rs_{self.suffix}", "type": "reasoning", "summary": []}
        yield self._event("output_item.added", {"item": empty})
        if text:
            part = {"type": "summary_text", "text": text}
            yield self._event("reasoning_summary_part.added", {**place, "part": {**part, "text": ""}})
            for piece in pieces(text, TEXT_PIECE_CHARACTERS):
                yield self._event("reasoning_summary_text.delta", {**place, "delta": piece}, ("content", "thinking"))
            yield self._event("reasoning_summary_text.done", {**place, "text": text})
            yield self._event("reasoning_summary_part.done", {**place, "part": part})
        yield self._event("output_item.done", {"item": self.item()})

    def _offered(self) -> Offered:
        assert isinstance(self.block, ToolUse)
        return self.tool or Offered("function_call", self.block.name)

    def _call(self, call: ToolUse, arguments: str, status: str) -> Item:
        tool = self._offered()
        prefix = "fc" if tool.call_type == "function_call" else "ctc"
        item = {
            "id": f"{prefix}_{self.suffix}",
            "type": tool.call_type,
            "status": status,
            _ARGUMENTS[tool.call_type][0]: arguments,
            "call_id": call.id,
            "name": tool.name,
        }
        return item if tool.namespace is None else {**item, "namespace": tool.namespace}

    def _call_events(self, call: ToolUse) -> Iterator[Event]:
        tool = self._offered()
        key, name = _ARGUMENTS[tool.call_type]
        text = _argument_text(call, tool)
        started = self._call(call, "", "in_progress")
        place: Item = {"item_id": started["id"]}
        # What a name becomes depends on the tools that the request offers.
        yield self._event("output_item.added", {"item": started}, ("content", "tool_start"), fixed=False)
        split = argument_pieces(call) if text == call.arguments_text else pieces(text, TEXT_PIECE_CHARACTERS)
        for piece in split:
            delta = {**place, "delta": piece}
            yield self._event(f"{name}.delta", delta, ("content", "tool_arguments"), fixed=False)
        yield self._event(f"{name}.done", {**place, key: text}, fixed=False)
        yield self._event("output_item.done", {"item": self.item()}, ("tool_end",), fixed=False)


def _argument_text(call: ToolUse, tool: Offered) -> str:
    """Return what a call carries: a custom tool's one text ``input``, else the arguments' JSON."""
    free_text = call.input.get("input")
    if tool.call_type == "custom_tool_call" and call.arguments is None and isinstance(free_text, str):
        return free_text
    return call.arguments_text


def placed_blocks(reply: Reply, served: Served) -> tuple[Placed, ...]:
    """Return the blocks of a reply with what their items repeat."""
    message_suffix = served.message_id.removeprefix("resp_")
    cut = reply.stop_reason in ("max_tokens", "model_context_window_exceeded")
    placed = []
    for index, block in enumerate(reply.blocks):
        reasoning = isinstance(block, Thinking | RedactedThinking)
        before = reply.blocks[index - 1] if index else None
        after_reasoning = not reasoning and isinstance(before, Thinking | RedactedThinking)
        last = index == len(reply.blocks) - 1
        placed.append(
            Placed(
                block,
                index,
                item_suffix(message_suffix, index, after_reasoning=after_reasoning),
                reply.model or served.model,
                reply.stop_reason == "refusal",
                "incomplete" if cut and last else "completed",
                resolve(block.name, served.body.get("tools")) if isinstance(block, ToolUse) else None,
            )
        )
    return tuple(placed)


def counted_texts(blocks: tuple[Block, ...]) -> Iterator[str]:
    """Yield every text that counts as output."""
    for block in blocks:
        match block:
            case Text(text=text):
                yield text
            case Thinking(thinking):
                yield thinking
            case RedactedThinking(data):
                yield data
            case ToolUse(name=name):
                yield name
                yield block.arguments_text
            case Opaque():
                pass
