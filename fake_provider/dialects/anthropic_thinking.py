"""Which reasoning the Messages API refuses to take back, as pure rules; and how reasoning is signed.

What is judged follows the platform documentation ("Extended thinking", "Preserved thinking") and public bug reports
that quote the 400. A ``signature`` or ``data`` that was never issued is refused wherever it stands. Whether the block
is as it was in the reply is judged in the latest assistant message alone: a changed text, a block in another order, one
left out before another. A block of another model is not refused: the API drops it without an error, so the model is
signed and never judged. The check of newer models that nothing before a block has changed is not made here.

The sealed ``data`` of redacted thinking is a signature followed by what the script says.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from fake_provider.dialects.anthropic_shapes import Judged, Rule, blocks_of, messages_of
from fake_provider.dialects.signatures import SIGNATURE_CHARACTERS, Signed, read_signature, sign

_GUIDE = "https://docs.claude.com/en/docs/build-with-claude/extended-thinking"
_MODIFIED = (
    "`thinking` or `redacted_thinking` blocks in the latest assistant message cannot be modified. "
    "These blocks must remain as they were in the original response."
)
_INTERLEAVED_BETA = "interleaved-thinking-2025-05-14"
_SIGNING_MODEL = "claude-sonnet-4-5"
REASONING_KINDS = ("thinking", "redacted_thinking")


def signature_of(thinking: str, model: str = _SIGNING_MODEL, ordinal: int = 0) -> str:
    """Return the signature of a thinking text, the ``ordinal``-th reasoning block of a model's reply."""
    return sign(model, ordinal, thinking)


def sealed(data: str, model: str = _SIGNING_MODEL, ordinal: int = 0) -> str:
    """Return the ``data`` of a redacted block."""
    return sign(model, ordinal, data) + data


def _read(block: Mapping[str, Any]) -> tuple[Signed | None, str]:
    """Return what the block's signature says and the text that it should cover."""
    if block["type"] == "thinking":
        return read_signature(block["signature"]), block["thinking"]
    return read_signature(block["data"][:SIGNATURE_CHARACTERS]), block["data"][SIGNATURE_CHARACTERS:]


def _reasoning(judged: Judged) -> Iterator[tuple[int, str, Mapping[str, Any]]]:
    """Yield message index, place and block of all reasoning that comes back."""
    for index, message in enumerate(messages_of(judged)):
        if message["role"] == "assistant":
            for position, block in enumerate(blocks_of(message["content"])):
                if block["type"] in REASONING_KINDS:
                    yield index, f"messages.{index}.content.{position}", block


def _signed(judged: Judged) -> list[str]:
    found = []
    for _, where, block in _reasoning(judged):
        signed, content = _read(block)
        kind = block["type"]
        if signed is None or (kind == "redacted_thinking" and not signed.covers(content)):
            field = "signature" if kind == "thinking" else "data"
            found.append(f"{where}: Invalid `{field}` in `{kind}` block")
    return found


def _present(judged: Judged) -> list[str]:
    found = []
    for _, where, block in _reasoning(judged):
        signed, content = _read(block)
        if block["type"] == "thinking" and content == "" and signed is not None and not signed.covers(""):
            found.append(f"{where}.thinking: each thinking block must contain thinking")
    return found


def _unmodified(judged: Judged) -> list[str]:
    latest = max((i for i, message in enumerate(messages_of(judged)) if message["role"] == "assistant"), default=None)
    before = -1
    found = []
    for index, where, block in _reasoning(judged):
        signed, content = _read(block)
        if index != latest or signed is None:
            continue
        # A message may hold several replies in a row, after a pause, so that counting may begin anew.
        if signed.ordinal not in (0, before + 1) or not (signed.covers(content) or content == ""):
            found.append(f"{where}: {_MODIFIED}")
        before = signed.ordinal
    return found


def _first_in_message(judged: Judged) -> list[str]:
    found = []
    for index, message in enumerate(messages_of(judged)):
        kinds = [block["type"] for block in blocks_of(message["content"])]
        if message["role"] == "assistant" and "thinking" in kinds and kinds[0] not in REASONING_KINDS:
            found.append(
                f"messages.{index}.content.0: If an assistant message contains any thinking blocks, the first block "
                f"must be `thinking` or `redacted_thinking`. Found `{kinds[0]}`."
            )
    return found


def _open_turn(messages: list[Any]) -> int | None:
    """Return the index of the first assistant message after the user last spoke, where the turn calls tools."""
    first = None
    calls = False
    for index in range(len(messages) - 1, -1, -1):
        kinds = {block["type"] for block in blocks_of(messages[index]["content"])}
        if messages[index]["role"] == "user" and "tool_result" not in kinds:
            break
        if messages[index]["role"] == "assistant":
            first = index
            calls = calls or "tool_use" in kinds
    return first if calls else None


def _first_in_turn(judged: Judged) -> list[str]:
    thinking = judged.body.get("thinking")
    # With adaptive thinking the model decides whether it thinks, and nothing is demanded.
    if thinking is None or thinking["type"] != "enabled":
        return []
    messages = messages_of(judged)
    first = _open_turn(messages)
    if first is None:
        return []
    kind = next((block["type"] for block in blocks_of(messages[first]["content"])), None)
    if kind is None or kind in REASONING_KINDS:
        return []
    message = (
        f"messages.{first}.content.0.type: Expected `thinking` or `redacted_thinking`, but found `{kind}`. When "
        "`thinking` is enabled, a final `assistant` message must start with a thinking block (preceeding the lastmost "
        "set of `tool_use` and `tool_result` blocks). We recommend you include thinking blocks from previous turns. To "
        f"avoid this requirement, disable `thinking`. Please consult our documentation at {_GUIDE}"
    )
    return [message]


def _budget(judged: Judged) -> list[str]:
    thinking = judged.body.get("thinking")
    if thinking is None or thinking["type"] != "enabled" or _INTERLEAVED_BETA in judged.betas:
        return []
    if judged.body["max_tokens"] > thinking["budget_tokens"]:
        return []
    guide = f"{_GUIDE}#max-tokens-and-context-window-size"
    return [f"`max_tokens` must be greater than `thinking.budget_tokens`. Please consult our documentation at {guide}"]


def _forced_tool(judged: Judged) -> list[str]:
    thinking, choice = judged.body.get("thinking"), judged.body.get("tool_choice")
    if thinking is None or thinking["type"] != "enabled" or choice is None or choice["type"] not in ("any", "tool"):
        return []
    return ["Thinking may not be enabled when tool_choice forces tool use."]


def _temperature(judged: Judged) -> list[str]:
    thinking = judged.body.get("thinking")
    if thinking is None or thinking["type"] != "enabled" or judged.body.get("temperature") in (None, 1):
        return []
    guide = f"{_GUIDE}#important-considerations-when-using-extended-thinking"
    return [f"`temperature` may only be set to 1 when thinking is enabled. Please consult our documentation at {guide}"]


THINKING_RULES: Mapping[str, Rule] = {
    "thinking-signed": _signed,
    "thinking-present": _present,
    "thinking-unmodified": _unmodified,
    "thinking-first-in-message": _first_in_message,
    "thinking-first-in-turn": _first_in_turn,
    "thinking-budget": _budget,
    "thinking-forced-tool": _forced_tool,
    "thinking-temperature": _temperature,
}
"""Rules about reasoning, in the order in which they speak; they rely on every shape rule having passed."""

WANTS_REASONING = frozenset({"thinking-first-in-turn"})
"""Rules that miss reasoning, where others judge the reasoning that is there."""
