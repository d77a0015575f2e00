"""What each witness wrote down becomes events on one clock, in the phase in which it happened, under declared names."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from fake_provider import journal
from harness.model.event import Source
from harness.model.scenario import EffectMode
from harness.scenario_file import fault_label
from harness.tools.ledger import ANSWERED, CALLED, COMMITTED, Ledger, LedgerLine
from harness.witness import KINDS, Timeline, condensed, effect_faults, hook_events, provider_events, tool_events

START_SECONDS = 100.0


@pytest.fixture
def timeline() -> Timeline:
    made = Timeline(START_SECONDS)
    made.phase_begins(101.0)
    made.phase_begins(105.0)
    return made


PHASES = {99.0: (0.0, 0), 100.5: (0.5, 0), 101.0: (1.0, 1), 104.9: (4.9, 1), 105.0: (5.0, 2), 200.0: (100.0, 2)}


@pytest.mark.parametrize("at", PHASES)
def test_an_event_is_in_the_phase_that_had_begun(at: float, timeline: Timeline) -> None:
    event = timeline.event(at, Source.HARNESS, "x", {})
    assert (round(event.at_seconds, 6), event.phase) == PHASES[at]


def received(number: int, **changes: Any) -> journal.RequestReceived:
    whole: dict[str, Any] = {
        "at_seconds": 1.5,
        "request": number,
        "connection": 1,
        "lane": "main",
        "step": "say",
        "method": "POST",
        "path": "/v1/messages",
        "headers": {},
        "body": {"model": "m"},
        "model": "m",
        "stream": True,
        "side": False,
    }
    return journal.RequestReceived(**{**whole, **changes})


ENTRIES: tuple[journal.AnyEntry, ...] = (
    journal.ConnectionOpened(at_seconds=1.0, connection=1),
    received(1),
    journal.FaultFired(at_seconds=2.0, request=1, kind="cut", detail="after message_start"),
    received(2, lane=None, step=None),
    journal.RequestMismatch(at_seconds=2.5, request=1, step="say", differences=("model: expected a, found m",)),
    journal.FaultSkipped(at_seconds=6.0, request=1, kind="stall", reason="not streamed"),
    journal.HoldSkipped(at_seconds=6.0, request=1, position="reply.streaming", reason="no such event"),
    journal.ClientLeft(at_seconds=6.5, request=1, connection=1, bytes_sent=3),
    journal.ConnectionClosed(at_seconds=7.0, connection=1),
)


def test_the_journal_becomes_events_and_faults_have_their_declared_names(timeline: Timeline) -> None:
    events = provider_events(ENTRIES, timeline, fault_label, str)
    assert [(event.kind, event.phase) for event in events] == [
        ("request.received", 1),
        ("fault.fired", 1),
        ("request.received", 1),
        ("request.mismatch", 1),
        ("fault.skipped", 2),
        ("hold.skipped", 2),
        ("client.left", 2),
    ]
    assert [event.data["fault"] for event in events if "fault" in event.data] == [
        "lane main: say: cut",
        "lane main: say: stall",
        "reply.streaming",
    ]
    assert all(event.source is Source.PROVIDER for event in events)
    assert "at_seconds" not in events[0].data


def test_every_entry_of_the_journal_is_told_or_left_out_on_purpose() -> None:
    kinds = set(journal.Entry.__subclasses__())
    assert kinds - set(KINDS) == {journal.ConnectionOpened, journal.ConnectionClosed}


def test_what_every_request_repeats_is_told_in_short() -> None:
    body = {"model": "m", "system": "in /run/1", "tools": [{"name": "Bash", "input_schema": {}}, "odd"], "messages": []}
    short = condensed(body, lambda text: text.replace("/run/1", "/run"))
    other = condensed({**body, "system": "in /run/2"}, lambda text: text.replace("/run/2", "/run"))
    assert short == other
    assert short["tools"] == ["Bash", "odd"]
    assert short["system"]["characters"] == len('"in /run"')
    assert body["system"] == "in /run/1", "the journal's own body is not changed"
    assert condensed("no JSON", str) == "no JSON"


def called(mode: EffectMode, call: int, kind: str, at_seconds: float = 102.0) -> LedgerLine:
    return LedgerLine(kind, "deploy", call, "1", {}, {}, mode.value, 4711, at_seconds)


STRIKES = {
    EffectMode.NORMAL: None,
    EffectMode.SLOW: CALLED,
    EffectMode.HANG_BEFORE_COMMIT: CALLED,
    EffectMode.HANG_AFTER_COMMIT: COMMITTED,
    EffectMode.EXIT_AFTER_COMMIT: COMMITTED,
    EffectMode.ERROR_AFTER_COMMIT: COMMITTED,
}


@pytest.mark.parametrize("mode", EffectMode)
def test_a_tools_fault_has_fired_at_its_place(mode: EffectMode, tmp_path: Path, timeline: Timeline) -> None:
    place = STRIKES[mode]
    ledger = Ledger(tmp_path / "ledger.jsonl")
    for number, kind in enumerate((CALLED, COMMITTED, ANSWERED)):
        ledger.append(called(mode, 1, kind, 102.0 + number))
    events = tool_events(ledger, timeline)
    assert [event.kind for event in events] == [CALLED, COMMITTED, ANSWERED]
    assert "pid" not in events[0].data, "it differs in every run"
    fired = effect_faults(events, timeline, {"deploy": [mode.value]})
    assert [event.data["fault"] for event in fired] == ([] if place is None else [f"tool deploy every call: {mode}"])
    assert [event.at_seconds for event in fired] == [event.at_seconds for event in events if event.kind == place]


def test_a_later_call_fires_the_last_mode_under_its_declared_number(tmp_path: Path, timeline: Timeline) -> None:
    ledger = Ledger(tmp_path / "ledger.jsonl")
    ledger.append(called(EffectMode.NORMAL, 1, CALLED))
    ledger.append(called(EffectMode.SLOW, 2, CALLED))
    ledger.append(called(EffectMode.SLOW, 5, CALLED))
    fired = effect_faults(tool_events(ledger, timeline), timeline, {"deploy": ["normal", "slow"]})
    assert [event.data["fault"] for event in fired] == ["tool deploy call 2 and later: slow"] * 2


def test_the_hook_log_becomes_events(tmp_path: Path, timeline: Timeline) -> None:
    log = tmp_path / "hooks.jsonl"
    assert hook_events(log, timeline) == []
    log.write_text(json.dumps({"at_seconds": 106.0, "event": "stop", "reason": None}) + "\n")
    [event] = hook_events(log, timeline)
    assert (event.kind, event.phase, event.data) == ("hook.asked", 2, {"event": "stop", "reason": None})
