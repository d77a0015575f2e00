"""Any damage to a transcript: the session loads or refuses with a word, and what it then sends is a valid request.

The damage is arbitrary: values replaced by any JSON, records removed, doubled or exchanged, lines that are no records.
"""

import json
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fake_provider.dialects import DIALECTS, RefusedRequestError
from fake_provider.requests import Received
from reference_runtime.graph import provider_view
from reference_runtime.recovery.receipts import CallVerdict
from reference_runtime.recovery.table import ImpossibleFactsError
from reference_runtime.session import Session, UnknownSessionError, orphan_calls, transcript_path
from reference_runtime.transcript import NewerFormatError
from tests.reference_runtime.bench import SESSION_ID
from tests.reference_runtime.parts import InstantClock, text_block, tool_block
from tests.reference_runtime.property_settings import QUICK

Line = dict[str, Any]

CALL = {"call_id": "t1", "attempt_id": "a1"}
RECEIPT = {
    **CALL,
    "tool": "Bash",
    "turn": 1,
    "effect": "write",
    "arguments": {"command": "true"},
    "digest": "d",
    "idempotency_key": "k",
}
RESULT = {"type": "tool_result", "tool_use_id": "t1", "content": [text_block("done")]}


def line(kind: str, **fields: Any) -> Line:
    return {"version": 1, "kind": kind, "at": "2026-01-01T00:00:00+00:00", **fields}


def message(uuid: str, parent: str | None, role: str, *content: Any) -> Line:
    return line("message", uuid=uuid, parent_uuid=parent, role=role, content=list(content), turn=1)


TRANSCRIPT: tuple[Line, ...] = (
    line("session", session_id=SESSION_ID, model="m", cwd="/"),
    message("1", None, "user", text_block("Do it.")),
    message("2", "1", "assistant", text_block("I will."), tool_block("t1", "Bash", {"command": "true"})),
    line("receipt", **RECEIPT),
    line("tool_started", **CALL),
    line("result_confirmed", **CALL, content=[text_block("done")], is_error=False),
    message("3", "2", "user", RESULT),
    message("4", "3", "assistant", tool_block("t2", "Bash", {"command": "false"})),
    line("receipt", **{**RECEIPT, "call_id": "t2", "attempt_id": "a2"}),
    line("tool_started", call_id="t2", attempt_id="a2"),
)


def sent_after(lines: list[bytes]) -> list[dict[str, Any]] | None:
    """Resume the transcript and return the conversation that is sent next; None where it is refused with a word."""
    with tempfile.TemporaryDirectory() as name:
        path = transcript_path(Path(name), SESSION_ID)
        path.parent.mkdir(parents=True)
        path.write_bytes(b"".join(text + b"\n" for text in lines))
        try:
            session = Session.resume(Path(name), SESSION_ID, InstantClock())
        except (UnknownSessionError, NewerFormatError, ImpossibleFactsError):
            return None
        orphans = orphan_calls(session)
        if orphans:
            session.say("user", tuple(orphan.result for orphan in orphans), 1)
        session.say("user", (text_block("Go on."),), 1)
        session.close()
        return provider_view(session.graph.active())


def refusals(messages: list[dict[str, Any]]) -> list[str]:
    """What the strict provider has against a conversation."""
    dialect = DIALECTS["anthropic_messages"]
    tools = [{"name": "Bash", "description": "Runs.", "input_schema": {"type": "object"}}]
    body = json.dumps({"model": "m", "max_tokens": 9, "messages": messages, "tools": tools}).encode()
    try:
        request = dialect.decode(Received("POST", "/v1/messages", "", {}, body))
    except RefusedRequestError as refused:
        return [problem.message for problem in refused.problems]
    return [problem.message for problem in dialect.problems(request, 1_000_000)]


def encoded(lines: list[Line]) -> list[bytes]:
    return [json.dumps(entry).encode() for entry in lines]


def places(value: Any) -> list[tuple[Any, Any]]:
    """Every container of a JSON value with each of its keys."""
    keys = list(value) if isinstance(value, dict) else list(range(len(value))) if isinstance(value, list) else []
    return [(value, key) for key in keys] + [place for key in keys for place in places(value[key])]


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.sampled_from(["", " ", "t1", "t2", "1", "user", "text", "\ud800"]),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(["type", "text", "id"]), inner),
    max_leaves=4,
)


@QUICK
@given(st.data())
def test_any_damage_leaves_a_valid_conversation_or_a_typed_refusal(data: st.DataObject) -> None:
    lines: list[Line] = json.loads(json.dumps(TRANSCRIPT))
    for _ in range(data.draw(st.integers(1, 3))):
        index = data.draw(st.integers(0, len(lines) - 1))
        other = data.draw(st.integers(0, len(lines) - 1))
        match data.draw(st.sampled_from(["value", "key", "remove", "double", "exchange"])):
            case "value":
                container, key = data.draw(st.sampled_from(places(lines[index])))
                container[key] = data.draw(JSON)
            case "key":
                container, key = data.draw(st.sampled_from(places(lines[index])))
                del container[key]
            case "remove" if len(lines) > 1:
                del lines[index]
            case "double":
                lines.insert(other, json.loads(json.dumps(lines[index])))
            case "exchange":
                lines[index], lines[other] = lines[other], lines[index]
    sent = sent_after(encoded(lines))
    assert sent is None or refusals(sent) == []


@pytest.mark.parametrize(
    "junk",
    [
        b"[" * 200_000,
        b'{"a":' * 100_000 + b"1" + b"}" * 100_000,
        b"\0" * 5_000,
        b'{"kind": "message", "version": ' + b"9" * 5_000 + b"}",
        *encoded([line("damage_seen", damages=damages) for damages in (5, [5], [{"x": 1}], None)]),
        *encoded([line("message"), line("tombstone", uuids=5), line("run_ended"), line("receipt", **CALL)]),
    ],
    ids=lambda junk: junk[:60].decode(errors="replace"),
)
def test_a_line_that_is_no_record_takes_nothing_else_along(junk: bytes) -> None:
    lines = encoded(list(TRANSCRIPT))
    whole = sent_after(lines)
    assert whole is not None
    assert sent_after([*lines[:5], junk, *lines[5:]]) == whole


def test_a_lost_message_does_not_lose_what_came_before_it() -> None:
    for index, entry in enumerate(TRANSCRIPT):
        if entry["kind"] == "message" and entry["uuid"] in ("2", "3"):
            sent = sent_after(encoded([*TRANSCRIPT[:index], *TRANSCRIPT[index + 1 :]]))
            assert sent is not None
            assert sent[0]["content"][0] == text_block("Do it.")


@pytest.mark.parametrize("spoil", [lambda entry: entry.pop("attempt_id"), lambda entry: entry.update(call_id=None)])
def test_a_spoilt_start_proves_nothing(spoil: Callable[[Line], Any], tmp_path: Path) -> None:
    lines: list[Line] = json.loads(json.dumps(TRANSCRIPT))
    spoil(lines[-1])
    path = transcript_path(tmp_path, SESSION_ID)
    path.parent.mkdir(parents=True)
    path.write_bytes(b"".join(text + b"\n" for text in encoded(lines)))
    session = Session.resume(tmp_path, SESSION_ID, InstantClock())
    session.close()
    assert [orphan.verdict for orphan in orphan_calls(session)] == [CallVerdict.UNKNOWN_HOLDS_WRITES]
    assert [damage.line for damage in session.damages] == [len(lines)]
