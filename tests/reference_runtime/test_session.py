"""A session rebuilt from disk: after a stop at any byte, valid for a strict provider and honest about each call."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from reference_runtime.ledger import TurnLedger
from reference_runtime.recovery.receipts import CallVerdict, Effect, ReceiptRecord
from reference_runtime.recovery.table import ImpossibleFactsError
from reference_runtime.recovery.terminals import Terminal
from reference_runtime.session import (
    Session,
    UnknownSessionError,
    new_id,
    orphan_calls,
    read_session,
    transcript_path,
)
from reference_runtime.transcript import JournalError, Record
from tests.reference_runtime.bench import SESSION_ID, AgentBench, StandInTool, calling
from tests.reference_runtime.parts import InstantClock, said, text_block, tool_block


class DeadError(BaseException):
    """The process is killed here; nothing of the runtime may run after it."""


async def killed_run(home: Path) -> Path:
    """A session whose run was killed while its second write was at work, a read being done before it."""
    deploy = StandInTool("deploy", Effect.WRITE, DeadError())
    note, look = StandInTool("note"), StandInTool("look", Effect.READ_ONLY)
    bench = AgentBench(
        home,
        calling(("t1", "note"), ("t2", "look"), ("t3", "deploy"), ("t4", "note")),
        tools=[note, look, deploy],
    )
    with pytest.raises(DeadError):
        await bench.run("Deploy.")
    # The kernel does this for a dead process: its lock is gone with it.
    bench.session.close()
    return bench.session.path


def resumed(home: Path, path: Path, content: bytes) -> Session:
    copy = transcript_path(home, SESSION_ID)
    copy.parent.mkdir(parents=True, exist_ok=True)
    copy.write_bytes(content)
    assert path.name == copy.name
    return Session.resume(home, SESSION_ID, InstantClock())


def last_line_of(lines: list[dict[str, Any]], kind: str, call_id: str) -> int | None:
    numbers = [n for n, line in enumerate(lines) if line["kind"] == kind and line.get("call_id") == call_id]
    return numbers[-1] if numbers else None


async def test_what_is_known_of_each_call_after_the_kill(tmp_path: Path) -> None:
    path = await killed_run(tmp_path)
    session = Session.resume(tmp_path, SESSION_ID, InstantClock())
    verdicts = {orphan.call_id: orphan.verdict for orphan in orphan_calls(session)}
    assert verdicts == {
        "t1": CallVerdict.SETTLED,
        "t2": CallVerdict.SETTLED,
        "t3": CallVerdict.UNKNOWN_HOLDS_WRITES,
        "t4": CallVerdict.NOT_STARTED,
    }
    results = {orphan.call_id: orphan.result for orphan in orphan_calls(session)}
    assert results["t1"]["content"] == [text_block("done")]
    assert "is_error" not in results["t1"]
    told = results["t3"]["content"][0]["text"]
    assert "unknown" in told
    assert "It may have happened" in told
    assert "not started" in results["t4"]["content"][0]["text"]
    assert read_session(path).terminal_reasons == ()


async def test_the_resumed_model_is_told_and_held_and_nothing_runs_twice(tmp_path: Path) -> None:
    await killed_run(tmp_path)
    note, look, deploy = StandInTool("note"), StandInTool("look", Effect.READ_ONLY), StandInTool("deploy")
    bench = AgentBench(
        tmp_path,
        calling(("t5", "deploy")),
        calling(("t6", "note"), ("t7", "look")),
        said("I cannot."),
        tools=[note, look, deploy],
        resume=True,
    )
    outcome = await bench.run("Go on.")
    assert (outcome.terminal, outcome.ending.exit_code) == (Terminal.RECOVERY_REQUIRED, 1)
    assert (note.calls, deploy.calls, len(look.calls)) == ([], [], 1)
    (recovery,) = bench.sink.of("recovery")
    assert [(entry["call_id"], entry["tool"]) for entry in recovery["unknown"]] == [("t3", "deploy")]
    assert recovery["not_started"] == ["t4"]
    first = bench.transport.bodies[0]["messages"]
    assert [message["role"] for message in first] == ["user", "assistant", "user"]
    assert [block["type"] for block in first[2]["content"]] == [*["tool_result"] * 4, "text"]
    again = AgentBench(tmp_path, calling(("t8", "deploy")), said("x"), tools=[deploy], resume=True)
    assert (await again.run()).terminal is Terminal.RECOVERY_REQUIRED
    assert deploy.calls == []


async def test_a_stop_at_any_byte_is_told_truly(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """For each length of the file: loads, can be continued, and claims `not started` only where no start is on disk."""
    path = await killed_run(tmp_path / "whole")
    # The test itself makes every state of the disk, so nothing is gained by waiting for the real one.
    monkeypatch.setattr(os, "fsync", lambda _descriptor: None)
    whole = path.read_bytes()
    lines = [json.loads(line) for line in whole.splitlines()]
    ends = [at + 1 for at, byte in enumerate(whole) if byte == 0x0A]
    first_end = ends[0]
    for size in range(first_end, len(whole) + 1, 3):
        # A record counts from the byte before its line's end on: the line's end itself carries nothing.
        kept = sum(end <= size + 1 for end in ends)
        session = resumed(tmp_path / "torn", path, whole[:size])
        for orphan in orphan_calls(session):
            start = last_line_of(lines[:kept], "tool_started", orphan.call_id)
            result = last_line_of(lines[:kept], "result_confirmed", orphan.call_id)
            if result is not None:
                assert orphan.verdict is CallVerdict.SETTLED
            elif start is not None:
                assert orphan.verdict in (CallVerdict.UNKNOWN_HOLDS_WRITES, CallVerdict.UNKNOWN_READ)
            else:
                assert orphan.verdict is CallVerdict.NOT_STARTED
        session.close()


async def test_a_torn_session_goes_on_with_a_valid_history(tmp_path: Path) -> None:
    path = await killed_run(tmp_path / "whole")
    whole = path.read_bytes()
    for number, size in enumerate(range(len(whole) // 3, len(whole), 97)):
        home = tmp_path / str(number)
        resumed(home, path, whole[:size]).close()
        bench = AgentBench(home, said("x"), resume=True)
        # The bench judges every request by a strict provider's rules.
        assert (await bench.run("Go on.")).terminal is Terminal.COMPLETED


async def test_damage_in_the_middle_makes_earlier_calls_unknown_instead_of_not_started(tmp_path: Path) -> None:
    path = await killed_run(tmp_path)
    lines = path.read_bytes().splitlines(keepends=True)
    kinds = [json.loads(line)["kind"] for line in lines]
    for victim, kind in enumerate(kinds):
        if kind in ("session", "message"):
            continue
        broken = [*lines[:victim], b'{"torn\n', *lines[victim + 1 :]]
        session = resumed(tmp_path / str(victim), path, b"".join(broken))
        known = {orphan.call_id: orphan.verdict for orphan in orphan_calls(session)}
        assert known["t3"] is CallVerdict.UNKNOWN_HOLDS_WRITES, (victim, kind)
        assert known["t4"] is not CallVerdict.NOT_STARTED
        assert session.damages
        session.close()
        again = Session.resume(tmp_path / str(victim), SESSION_ID, InstantClock())
        assert again.damages == (), "damage is reported once"
        assert {orphan.call_id: orphan.verdict for orphan in orphan_calls(again)} == known
        again.close()


def test_a_contradiction_without_damage_is_refused(tmp_path: Path) -> None:
    session = Session.begin(tmp_path, SESSION_ID, InstantClock(), model="m", cwd="/")
    receipt = session.ledger.dispatch("t1", "deploy", 1, Effect.WRITE, {})
    session.append("result_confirmed", call_id="t1", attempt_id=receipt.attempt_id, content=[], is_error=False)
    session.close()
    with pytest.raises(ImpossibleFactsError):
        Session.resume(tmp_path, SESSION_ID, InstantClock())


def test_an_older_record_without_evidence_is_unknown(tmp_path: Path) -> None:
    path = transcript_path(tmp_path, SESSION_ID)
    path.parent.mkdir(parents=True)
    call = tool_block("t1", "deploy", {"release": "7"})
    old = {"kind": "message", "uuid": "a", "parent_uuid": None, "role": "assistant", "content": [call], "turn": 1}
    path.write_text(json.dumps(old) + "\n")
    session = Session.resume(tmp_path, SESSION_ID, InstantClock())
    assert [orphan.verdict for orphan in orphan_calls(session)] == [CallVerdict.UNKNOWN_HOLDS_WRITES]
    assert [receipt.call_id for receipt in session.ledger.unknown_writes()] == ["t1"]
    session.close()


def test_an_unusable_record_and_a_repeated_message_are_passed_over_and_reported(tmp_path: Path) -> None:
    session = Session.begin(tmp_path, SESSION_ID, InstantClock(), model="m", cwd="/")
    message = session.say("user", (text_block("x"),), 1)
    session.append("message", uuid="only")
    session.append("message", uuid=message.uuid, parent_uuid=None, role="user", content=[], turn=1)
    session.append("from_the_future", anything=1)
    session.close()
    again = Session.resume(tmp_path, SESSION_ID, InstantClock())
    assert [damage.line for damage in again.damages] == [3, 4]
    assert [entry.uuid for entry in again.graph.active()] == [message.uuid]
    again.close()


def test_tombstones_and_hidden_messages_survive(tmp_path: Path) -> None:
    session = Session.begin(tmp_path, SESSION_ID, InstantClock(), model="m", cwd="/")
    session.say("user", (text_block("x"),), 1)
    bad = session.say("assistant", (text_block("bad"),), 1)
    session.tombstone((bad.uuid,), "test")
    session.say("user", (text_block("correction"),), 1, hidden=True)
    session.close()
    history = read_session(session.path)
    assert [(message.role, message.hidden) for message in history.messages] == [("user", False), ("user", True)]
    assert (history.model, history.working_folder, bool(history.began_at)) == ("m", "/", True)


def test_an_unknown_session_leaves_nothing_on_disk(tmp_path: Path) -> None:
    with pytest.raises(UnknownSessionError):
        Session.resume(tmp_path, SESSION_ID, InstantClock())
    assert list(tmp_path.iterdir()) == []


def test_a_session_that_is_being_written_is_not_resumed(tmp_path: Path) -> None:
    session = Session.begin(tmp_path, SESSION_ID, InstantClock(), model="m", cwd="/")
    with pytest.raises(JournalError, match="in use"):
        Session.resume(tmp_path, SESSION_ID, InstantClock())
    assert read_session(session.path).model == "m"
    session.close()
    Session.resume(tmp_path, SESSION_ID, InstantClock()).close()


def test_reading_changes_nothing(tmp_path: Path) -> None:
    session = Session.begin(tmp_path, SESSION_ID, InstantClock(), model="m", cwd="/")
    session.close()
    session.path.write_bytes(session.path.read_bytes() + b"{torn")
    before = session.path.read_bytes()
    assert read_session(session.path).damages[0].at_end
    assert session.path.read_bytes() == before


async def test_a_confirmed_write_lifts_the_barrier_and_is_not_repeated(tmp_path: Path) -> None:
    path = await killed_run(tmp_path)
    receipt = read_session(path).ledger.unknown_writes()[0]
    session = Session.resume(tmp_path, SESSION_ID, InstantClock())
    session.append("user_confirmed", call_id=receipt.call_id, attempt_id=receipt.attempt_id)
    session.close()
    note, deploy = StandInTool("note"), StandInTool("deploy")
    bench = AgentBench(
        tmp_path, calling(("t5", "deploy"), ("t6", "note")), said("Done."), tools=[note, deploy], resume=True
    )
    assert (await bench.run("Go on.")).terminal is Terminal.COMPLETED
    assert (deploy.calls, len(note.calls)) == ([], 1)
    results = bench.results()
    assert results["t3"] == (
        True,
        "A person confirmed that call t3 of tool deploy took effect. Its output is not known.",
    )
    assert results["t5"][0]
    assert "it is not repeated" in results["t5"][1]


def test_a_confirmed_call_is_settled_and_known_by_its_arguments() -> None:
    records: list[tuple[str, dict[str, Any]]] = []

    def append(kind: str, **fields: Any) -> None:
        records.append((kind, fields))

    ledger = TurnLedger(SESSION_ID, append, new_id)
    receipt = ledger.dispatch("t1", "deploy", 1, Effect.WRITE, {"a": 1, "b": 2})
    ledger.start(receipt)
    attempt = {"call_id": "t1", "attempt_id": receipt.attempt_id}
    ledger.replay(Record(3, 1, ReceiptRecord.USER_CONFIRMED, "", attempt))
    assert ledger.unknown_writes() == ()
    assert ledger.confirmed_by_user("deploy", {"b": 2, "a": 1}) is receipt
    assert ledger.confirmed_by_user("deploy", {"a": 1}) is None
    assert receipt.result == (), "no output is made up"
    assert [kind for kind, _fields in records] == ["receipt", "tool_started"]
