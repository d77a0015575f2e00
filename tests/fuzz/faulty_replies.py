"""Replies of every form, and faults with settings of every kind."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hypothesis import strategies as st

from fake_provider.faults.gzip import HOW as GZIP_FORMS
from fake_provider.faults.malformed_frame import DAMAGES
from fake_provider.faults.tool_arguments import HOW as ARGUMENT_FORMS
from fake_provider.faults.usage import HOW as USAGE_FORMS
from fake_provider.replies import (
    STOP_REASONS,
    Opaque,
    RedactedThinking,
    Reply,
    Text,
    Thinking,
    ToolUse,
    Usage,
)
from fake_provider.wire import PLACES
from tests.fuzz.bodies import JSON

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=12) | st.sampled_from(["Hello, wörld.", "☃" * 9, ""])
ARGUMENTS = st.dictionaries(TEXTS, JSON, max_size=3)
CALLS = st.builds(
    ToolUse,
    name=st.sampled_from(["deploy", "x", ""]),
    input=ARGUMENTS,
    id=st.none() | st.sampled_from(["toolu_010000000000000000000002", "a", "call_1", ""]),
    arguments=st.none() | st.none() | TEXTS | st.sampled_from(['{"a":', "[1]", "{}"]),
    split_at=st.none() | st.lists(st.integers(0, 20), max_size=3).map(lambda at: tuple(sorted(at))),
)
OPAQUE_CONTENTS: tuple[Mapping[str, Any], ...] = (
    {"type": "server_tool_use", "id": "s", "name": "web_search", "input": {"q": "x"}},
    {"type": "reasoning", "id": "rs", "summary": []},
    {"executableCode": {"language": "PYTHON", "code": "1"}},
    {"type": "unheard"},
    {},
)
OPAQUE = st.sampled_from(OPAQUE_CONTENTS).map(Opaque)
BLOCKS = (
    st.builds(Text, TEXTS, st.just(()) | st.just(({"type": "char_location", "cited_text": "x"},)))
    | st.builds(Thinking, TEXTS, st.none() | TEXTS)
    | st.builds(RedactedThinking, TEXTS)
    | CALLS
    | OPAQUE
)
COUNTS = st.none() | st.integers(-1, 10**12)
REPLIES = st.builds(
    Reply,
    blocks=st.lists(BLOCKS, max_size=4).map(tuple),
    stop_reason=st.sampled_from(STOP_REASONS),
    usage=st.none() | st.just(Usage()) | st.builds(Usage, COUNTS, COUNTS, st.integers(0, 9), st.integers(0, 9)),
    model=st.none() | TEXTS,
    stop_sequence=st.none() | st.just("END"),
)

EVENTS = st.sampled_from([*sorted(PLACES), "nothing", "head", "message_start", "content_block_delta", "chunk", "none"])
SETTINGS: Mapping[str, st.SearchStrategy[Any]] = {
    "event": EVENTS,
    "nth": st.integers(1, 3),
    "byte": st.integers(0, 80) | st.integers(0, 2000),
    "inside": st.sampled_from(["utf8", "chunk_header"]),
    "bytes": st.integers(1, 40) | st.integers(1, 300_000),
    "seconds": st.sampled_from([0, 0.5, 3]),
    "ping_seconds": st.sampled_from([1, 2]),
    "type": TEXTS | st.sampled_from(["overloaded_error", "server_error", "RESOURCE_EXHAUSTED"]),
    "message": TEXTS,
    "page": TEXTS,
    "text": TEXTS,
    "abrupt": st.booleans(),
    "over": st.integers(1, 99),
    "under": st.integers(1, 99),
    "wait": st.booleans(),
    "status": st.sampled_from([102, 103, 301, 307, 308]),
    "times": st.integers(1, 3),
    "to": st.sampled_from(["self", "elsewhere", "loop"]),
    "port": st.integers(1, 70_000),
    "answer": st.booleans(),
    "of": st.sampled_from(["reply", "conversation"]),
    "id": TEXTS,
    "reason": st.sampled_from(STOP_REASONS),
}
PLACE = ("event", "nth", "byte", "inside")
KEYS: Mapping[str, tuple[str, ...]] = {
    "close": (),
    "cut": PLACE,
    "dribble": ("event", "nth", "byte", "bytes", "seconds"),
    "drop_event": ("event", "nth"),
    "duplicate_event": ("event", "nth"),
    "early_end": PLACE,
    "empty_body": (),
    "empty_message": (),
    "error_event": ("event", "nth", "type", "message"),
    "gzip": ("how",),
    "hang_up": ("how", "seconds"),
    "html_body": ("page",),
    "http10": ("event", "nth", "byte"),
    "huge_reply": ("bytes",),
    "informational": ("status", "times"),
    "malformed_frame": ("event", "nth", "how"),
    "no_last_chunk": (),
    "no_terminal": (),
    "redirect": ("status", "to", "port"),
    "refuse_connections": ("seconds", "how", "answer"),
    "reorder_events": ("event", "nth"),
    "repeated_tool_id": ("of", "id"),
    "reset": (*PLACE, "abrupt"),
    "slow_headers": ("bytes", "seconds"),
    "stall": (*PLACE, "seconds", "ping_seconds"),
    "thinking_only": ("text",),
    "tool_arguments": ("how", "nth"),
    "truncated_json": ("bytes",),
    "unknown_event": ("event", "nth"),
    "usage": ("how",),
    "wrong_content_length": ("over", "under", "wait"),
    "wrong_content_type": ("type",),
    "wrong_stop_reason": ("reason",),
}
"""The settings of every kind; a kind that is missing here turns a test red."""

FORMS: Mapping[str, tuple[str, ...]] = {
    "gzip": tuple(GZIP_FORMS),
    "hang_up": ("fin", "rst"),
    "malformed_frame": tuple(DAMAGES),
    "refuse_connections": ("refused", "full"),
    "tool_arguments": tuple(ARGUMENT_FORMS),
    "usage": tuple(USAGE_FORMS),
}
OFTEN = ("event", "how", "reason", "over")


@st.composite
def fault_settings(draw: st.DrawFn) -> dict[str, dict[str, Any]]:
    """``{KIND: {…}}`` as a script has it, right as a rule."""
    kind = draw(st.sampled_from(sorted(KEYS)))
    settings = {}
    for key in KEYS[kind]:
        if draw(st.integers(0, 9)) < (9 if key in OFTEN else 3):
            values = st.sampled_from(FORMS[kind]) if key == "how" else SETTINGS[key]
            settings[key] = draw(values)
    return {kind: settings}
