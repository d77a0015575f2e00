"""What a runtime prints is evidence: result frames are read, and garbage beside them changes nothing."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.model.history import Ending
from harness.runtimes.frames import ending_of_result_frame, frames

RESULT = {
    "type": "result",
    "subtype": "success",
    "is_error": False,
    "num_turns": 2,
    "result": "Done.",
    "session_id": "s1",
    "terminal_reason": "completed",
    "counters": {"http_attempts": 3},
}
READ = Ending("completed", 2, "success", False, "Done.", "s1", {"http_attempts": 3})
LINE = json.dumps(RESULT)


def with_result(**changes: Any) -> str:
    return json.dumps({**RESULT, **changes}, ensure_ascii=False)


OUTPUTS: dict[str, tuple[str, Ending]] = {
    "nothing": ("", Ending()),
    "a result": (LINE, READ),
    "a result and a newline": (LINE + "\n", READ),
    "garbage around it": (f"Warning: {{\n[1]\n{{half\n{LINE}\n{{}}\n}}\n", READ),
    "half a result": (LINE[:40], Ending()),
    "half a result after a whole one": (f"{LINE}\n{LINE[:40]}", READ),
    "two results: the last counts": (
        f"{LINE}\n{with_result(result='Again.')}",
        msgspec.structs.replace(READ, text="Again."),
    ),
    "a session and no result": (
        '{"type": "system", "session_id": "s9"}\n{"type": "x", "session_id": "s8"}',
        Ending(session="s9"),
    ),
    "a result without its session": (
        '{"type": "system", "session_id": "s9"}\n' + with_result(session_id=None),
        msgspec.structs.replace(READ, session="s9"),
    ),
    "a session after the result": (f'{LINE}\n{{"type": "system", "session_id": "s9"}}', READ),
    "a line separator in a text": (
        with_result(result="a\u2028b\x85c"),
        msgspec.structs.replace(READ, text="a\u2028b\x85c"),
    ),
    "half a surrogate pair": (LINE.replace("Done.", "\\ud83d"), msgspec.structs.replace(READ, text="\\ud83d")),
    "turns as text": (with_result(num_turns="2"), msgspec.structs.replace(READ, turns=None)),
    "turns as a flag": (with_result(num_turns=True), msgspec.structs.replace(READ, turns=None)),
    "turns beyond any count": (with_result(num_turns=10**40), msgspec.structs.replace(READ, turns=None)),
    "is_error as text": (with_result(is_error="false"), msgspec.structs.replace(READ, is_error=None)),
    "counters as text": (
        with_result(counters={"a": "b", "c": 1, "d": None}),
        msgspec.structs.replace(READ, counters={"c": 1}),
    ),
    "counters as a list": (with_result(counters=[1]), msgspec.structs.replace(READ, counters={})),
    "deep nesting": ('{"a":' * 100_000 + "\n" + LINE, READ),
}


@pytest.mark.parametrize("name", OUTPUTS)
def test_ending(name: str) -> None:
    output, ending = OUTPUTS[name]
    assert ending_of_result_frame(output) == ending
    msgspec.json.encode(ending_of_result_frame(output))


def test_only_objects_are_frames() -> None:
    assert list(frames('1\n"a"\n[{}]\n{"a": 1}\n {"b": 2}\nnull\n')) == [{"a": 1}]


VALUES: st.SearchStrategy[Any] = (
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3) | st.just([]) | st.just({"a": []})
)


@settings(max_examples=60, deadline=None, derandomize=True)
@given(st.dictionaries(st.sampled_from(sorted(RESULT)), VALUES), st.text(max_size=20))
def test_no_output_makes_the_reader_raise(changes: dict[str, Any], noise: str) -> None:
    ending = ending_of_result_frame(f"{noise}\n{json.dumps({**RESULT, **changes})}\n{noise}")
    msgspec.json.encode(ending)
