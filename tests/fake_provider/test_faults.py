"""Faults as pure data: what they leave before their place is exactly the beginning of the stream."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from fake_provider.dialects import DIALECTS
from fake_provider.document import DocumentError, parse_document
from fake_provider.faults import FAULTS, Fault, WireFault, read_fault
from fake_provider.faults.cut import CutFault
from fake_provider.faults.error_event import ErrorEventFault
from fake_provider.faults.point import Point
from fake_provider.faults.reset import ResetFault
from fake_provider.faults.stall import StallFault
from fake_provider.wire import (
    Action,
    Close,
    Draft,
    Fired,
    Frame,
    HoldHere,
    Pause,
    Reset,
    Send,
    SendEnd,
    settled,
    with_hold,
)
from tests.fake_provider.property_settings import QUICK

FRAMES = st.lists(
    st.builds(Frame, st.sampled_from(["start", "delta", "stop"]), st.binary(min_size=1, max_size=9)),
    min_size=1,
    max_size=8,
)
POINTS = st.builds(Point, st.sampled_from(["start", "delta", "stop"]), st.integers(1, 4), st.none() | st.integers(0, 9))


DIALECT = DIALECTS["anthropic_messages"]


def draft_of(frames: Sequence[Frame]) -> Draft:
    return Draft(200, (), tuple(frames), streamed=True, transfer="chunked")


def sent(actions: Sequence[Action]) -> bytes:
    return b"".join(action.payload for action in actions if isinstance(action, Send))


def parts(actions: Sequence[Action]) -> tuple[Sequence[Action], Sequence[Action]]:
    """What comes before the fault strikes, and what comes after."""
    [index] = [index for index, action in enumerate(actions) if isinstance(action, Fired)]
    return actions[:index], actions[index + 1 :]


@QUICK
@given(FRAMES, POINTS)
def test_every_fault_at_a_place_leaves_exactly_the_beginning_before_it(frames: list[Frame], point: Point) -> None:
    whole = b"".join(frame.payload for frame in frames)
    faults: list[WireFault] = [CutFault(point), ResetFault(point), StallFault(point), StallFault(point, 3.0)]
    assume(point.unreachable(draft_of(frames)) is None)
    index = point.index_in(frames)
    assert index is not None
    length = sum(len(frame.payload) for frame in frames[:index])
    length += len(frames[index].payload) if point.byte is None else point.byte
    for fault in faults:
        assert fault.unreachable(draft_of(frames)) is None
        before, after = parts(fault.strike(draft_of(frames), DIALECT))
        assert before[0] == draft_of(frames).head()
        assert sent(before) == whole[:length]
        complete = [action.event for action in before if isinstance(action, Send) and action.complete]
        done = index + 1 if point.byte in (None, len(frames[index].payload)) else index
        assert complete == [frame.name for frame in frames[:done]]
        assert sent(after) in (b"", whole[length:])


@QUICK
@given(FRAMES, POINTS)
def test_a_place_is_unreachable_exactly_where_it_does_not_exist(frames: list[Frame], point: Point) -> None:
    named = [frame for frame in frames if frame.name == point.event]
    exists = len(named) >= point.nth and (point.byte is None or point.byte <= len(named[point.nth - 1].payload))
    assert (point.unreachable(draft_of(frames)) is None) is exists


def test_what_follows_the_place_is_each_faults_own() -> None:
    frames = [Frame("start", b"abc"), Frame("delta", b"def"), Frame("stop", b"ghi")]
    point = Point("delta", byte=1)
    assert parts(CutFault(point).strike(draft_of(frames), DIALECT))[1] == (Close(),)
    assert parts(ResetFault(point).strike(draft_of(frames), DIALECT))[1] == (Reset(),)
    assert parts(StallFault(point).strike(draft_of(frames), DIALECT))[1] == (Pause(None), Close())
    assert parts(StallFault(point, 2).strike(draft_of(frames), DIALECT))[1] == (
        Pause(2),
        Send("delta", b"ef"),
        Send("stop", b"ghi"),
        SendEnd(),
    )
    event = ErrorEventFault(Point("delta"), "api_error", "down")
    assert parts(event.strike(draft_of(frames), DIALECT)) == (
        (draft_of(frames).head(), Send("start", b"abc"), Send("delta", b"def")),
        (Send.whole(DIALECT.error_frame("api_error", "down")), SendEnd()),
    )


def test_the_length_of_an_event_is_judged_only_once_it_is_known() -> None:
    frames = (Frame("start", b"abc", fixed=False),)
    point = Point("start", byte=4)
    assert point.unreachable(draft_of(frames)) is None
    assert point.unreachable(draft_of(settled(frames))) == "'start' number 1 is 3 bytes long, so there is no byte 4"


def test_a_place_that_does_not_exist_cannot_be_rewritten() -> None:
    with pytest.raises(ValueError, match="no 'stop' number 1 in the frames"):
        CutFault(Point("stop")).strike(draft_of(()), DIALECT)
    with pytest.raises(ValueError, match="no 'stop' number 1 in the frames"):
        Point("stop").actions_after(draft_of(()))


@QUICK
@given(FRAMES, st.integers(1, 4))
def test_a_hold_stands_right_after_its_event_and_changes_nothing_else(frames: list[Frame], nth: int) -> None:
    actions = draft_of(frames).actions()
    held = with_hold(actions, 5, "delta", nth)
    count = sum(frame.name == "delta" for frame in frames)
    assert (held is None) is (count < nth)
    if held is not None:
        index = held.index(HoldHere(5))
        assert (*held[:index], *held[index + 1 :]) == actions
        names = [action.event for action in held[:index] if isinstance(action, Send)]
        assert (names.count("delta"), names[-1]) == (nth, "delta")


def test_a_hold_does_not_stand_after_an_event_that_is_cut_short() -> None:
    frames = [Frame("start", b"abc"), Frame("delta", b"def")]
    cut = CutFault(Point("delta", byte=1)).strike(draft_of(frames), DIALECT)
    assert with_hold(cut, 0, "delta", 1) is None


@pytest.mark.parametrize("kind", FAULTS)
def test_every_kind_says_what_a_client_may_wrongly_conclude(kind: str) -> None:
    fault = FAULTS[kind]
    assert fault.kind == kind
    assert "A client may wrongly conclude" in (fault.__doc__ or "")


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("cut: {event: e}", CutFault(Point("e"))),
        ("reset: {event: e, nth: 2, byte: 0}", ResetFault(Point("e", 2, 0))),
        ("stall: {event: e, seconds: 1.5}", StallFault(Point("e"), 1.5)),
        ("error_event: {event: e}", ErrorEventFault(Point("e"))),
        ("error_event: {event: e, type: api_error}", ErrorEventFault(Point("e"), "api_error")),
        ("error_event: {event: e, type: x, message: m}", ErrorEventFault(Point("e"), "x", "m")),
        ("close:", FAULTS["close"].read(parse_document("{}", "f.yaml"))),
    ],
)
def test_a_fault_is_read_from_its_settings(text: str, fault: Fault) -> None:
    assert read_fault(parse_document(text, "f.yaml")) == fault


@pytest.mark.parametrize("kind", FAULTS)
def test_a_fault_refuses_a_setting_it_has_not(kind: str) -> None:
    with pytest.raises(DocumentError, match=rf"^f.yaml:1: unknown key 'evnt' in {kind}"):
        read_fault(parse_document(f"{kind}: {{evnt: x}}", "f.yaml"))
