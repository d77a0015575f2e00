"""Faults as pure data: what they leave before their place is exactly the beginning of the stream."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from fake_provider.dialects import DIALECTS, Served
from fake_provider.document import DocumentError, parse_document
from fake_provider.faults import FAULTS, Fault, WireFault, read_fault
from fake_provider.faults.cut import CutFault
from fake_provider.faults.error_event import ErrorEventFault
from fake_provider.faults.point import Point
from fake_provider.faults.reset import ResetFault
from fake_provider.faults.rewriting import head_bytes, split_at, with_header
from fake_provider.faults.stall import StallFault
from fake_provider.faults.tool_arguments import HOW, ToolArgumentsFault
from fake_provider.replies import Reply, Text, Thinking, ToolUse
from fake_provider.requests import Received
from fake_provider.wire import (
    BODILESS_STATUSES,
    Action,
    Close,
    Draft,
    Fired,
    Frame,
    Headers,
    HoldHere,
    Numbering,
    Pause,
    PlainReply,
    Reset,
    Send,
    SendEnd,
    SendFill,
    settled,
    with_hold,
)
from tests.fake_provider.property_settings import QUICK
from tests.fake_provider.scripts import script

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


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("early_end: {event: nothing}", "a reply that ends before its headers is none; write 'close'"),
        ("early_end: {event: e, inside: chunk_header}", "a body cannot end properly inside a chunk header"),
        ("dribble: {seconds: 0}", "expected a number of at least 0.001, found 0"),
        ("slow_headers: {seconds: 0}", "expected a number of at least 0.001, found 0"),
        ("stall: {event: head, seconds: 0}", "expected a number of at least 0.001, found 0"),
        ("stall: {event: head, seconds: 2, ping_seconds: 2}", "no ping would come: the stall is over after 2 s"),
        ("dribble: {nth: 2}", "'nth' says where in an event, and there is no 'event'"),
        ("dribble: {bytes: 0}", "expected a whole number of at least 1, found 0"),
        ("malformed_frame: {event: e, how: jsn}", "unknown damage 'jsn'; did you mean 'json'"),
        ("malformed_frame: {event: head}", "'head' is no event, and an event is needed here"),
        ("duplicate_event: {event: nothing}", "'nothing' is no event"),
        ("unknown_event: {event: nothing}", "an event cannot come before the headers; write 'head'"),
        ("error_event: {event: nothing}", "an error before the headers is a status"),
        ("wrong_content_length: {}", "wrong_content_length has exactly one of 'over' and 'under'"),
        ("wrong_content_length: {over: 1, under: 1}", "wrong_content_length has exactly one of 'over' and 'under'"),
        ("wrong_content_length: {under: 1, wait: true}", "'wait' means nothing beside 'under'"),
        ("gzip: {how: brotli}", "unknown form of gzip 'brotli'"),
        ("http10: {event: nothing}", "an answer that ends before its headers has no version; write 'close'"),
        ("redirect: {status: 200}", "200 is no redirect. Allowed: 301, 302, 303, 307, 308"),
        ("redirect: {port: 80}", "'port' means nothing beside 'to: self'"),
        ("redirect: {to: elsewhere, port: 65536}", "expected a port of at most 65535, found 65536"),
        ("informational: {status: 101}", "101 is no interim status. Allowed: 100, 102, 103"),
        ("refuse_connections: {}", "refuse_connections has no 'seconds'"),
        ("refuse_connections: {seconds: 1, how: busy}", "unknown way to take no connection 'busy'"),
        ("repeated_tool_id: {of: reply, id: x}", "expected 'of' or 'id', found both"),
        ("tool_arguments: {}", "tool_arguments has no 'how'"),
        ("wrong_stop_reason: {reason: stop}", "unknown stop reason 'stop'"),
        ("stall: {event: nothing, ping_seconds: 1}", "'ping_seconds' needs a place between two events"),
        ("wrong_content_type: {type: ☃}", "header 'content-type' holds a character that HTTP cannot send: '☃'"),
    ],
)
def test_settings_that_mean_nothing_are_refused(text: str, message: str) -> None:
    with pytest.raises(DocumentError) as raised:
        read_fault(parse_document(text, "f.yaml"))
    assert message in str(raised.value)


UNREACHABLE = [
    ("say: x", "early_end: {event: terminal}", "nothing is left of the reply after terminal number 1"),
    ("say: x", "dribble: {event: terminal}", "so nothing can come in pieces"),
    ("say: x", "reorder_events: {event: terminal}", "is the last event, so it has none to change places with"),
    ("say: x", "drop_event: {event: tool_start}", "the reply has no event 'tool_start'"),
    ("say: x", "malformed_frame: {event: message_start, how: utf8, nth: 2}", "so there is no number 2"),
    ("say: x", "tool_arguments: {how: cut}", "the reply has 0 tool calls, so there is no number 1"),
    ("call: deploy", "tool_arguments: {how: wrong_type}", "the call has no arguments that could be 'wrong_type'"),
    ("call: deploy", "repeated_tool_id: {}", "the reply has 1 tool calls, and two are needed"),
    ("say: x", "repeated_tool_id: {id: x}", "the reply has no tool call"),
    ("say: x", "wrong_stop_reason: {reason: end_turn}", "the reply's stop reason is 'end_turn' as it is"),
    ("reply: {blocks: [{thinking: Hm.}]}", "thinking_only: {}", "the reply is reasoning and nothing else as it is"),
    ("reply: {blocks: []}", "empty_message: {}", "the reply says nothing as it is"),
    ("call: deploy", "huge_reply: {}", "the reply has no event 'text'"),
    ("say: x", "slow_headers: {bytes: 4096}", "so 4096 would be all of them"),
    ("say: x", "error_event: {event: head, type: overload_error}", "did you mean 'overloaded_error'?"),
    ("status: {code: 500, body: ''}", "empty_body: {}", "the body of this reply is empty as it is"),
    ("status: 500", "usage: {}", "the step answers with an error"),
    ("status: 500", "duplicate_event: {event: body}", "the reply is not streamed, so it has no events"),
]


@pytest.mark.parametrize(("step", "fault", "reason"), UNREACHABLE)
def test_a_fault_that_cannot_be_reached_is_refused_when_the_script_is_read(step: str, fault: str, reason: str) -> None:
    with pytest.raises(DocumentError) as raised:
        script(f"main: [{{{step}, fault: {{{fault}}}}}]")
    assert "cannot be reached" in str(raised.value) or "unknown error type" in str(raised.value)
    assert reason in str(raised.value)


def test_a_fault_whose_reply_no_dialect_can_say_is_refused_when_the_script_is_read() -> None:
    lanes = "main: [{say: x, fault: {wrong_stop_reason: {reason: pause_turn}}}]"
    assert script(lanes).lanes
    with pytest.raises(DocumentError, match=r"cannot be reached in step 'say': .*'pause_turn'"):
        script(lanes, ["gemini"])


@pytest.mark.parametrize(
    "fault",
    ["html_body: {}", "truncated_json: {}", "wrong_content_length: {over: 1}", "gzip: {how: corrupt}", "hang_up: {}"],
)
def test_a_fault_on_the_wire_may_strike_a_status(fault: str) -> None:
    assert script(f"main: [{{status: 500, fault: {{{fault}}}}}]").lanes


ARRAY = Draft(200, (("content-type", "application/json"),), (Frame("chunk", b"["),), streamed=True, transfer="chunked")


@pytest.mark.parametrize("kind", ["drop_event", "duplicate_event", "reorder_events", "unknown_event", "error_event"])
def test_the_elements_of_one_array_are_no_events(kind: str) -> None:
    fault = read_fault(parse_document(f"{kind}: {{event: chunk}}", "f.yaml"))
    assert isinstance(fault, WireFault)
    assert fault.unreachable(ARRAY) == ("the reply streams the elements of one array, which are no events of their own")


@QUICK
@given(FRAMES, st.integers(0, 80))
def test_frames_split_at_a_byte_are_the_same_bytes(frames: list[Frame], size: int) -> None:
    whole = b"".join(frame.payload for frame in frames)
    before, after = split_at(frames, size)
    assert (sent(before), sent(after)) == (whole[:size], whole[size:])
    assert [action.event for action in (*before, *after) if action.complete] == [frame.name for frame in frames]


HEADERS = st.lists(st.tuples(st.sampled_from(["a", "b", "c"]), st.text("xyz", max_size=2)), max_size=5).map(tuple)


@QUICK
@given(HEADERS, st.sampled_from(["a", "b", "c"]), st.none() | st.just("new"))
def test_a_header_is_replaced_where_it_stands_and_nothing_else_changes(
    headers: Headers, name: str, value: str | None
) -> None:
    changed = with_header(headers, name, value)
    assert [header for header in changed if header[0] != name] == [header for header in headers if header[0] != name]
    assert [header for header in changed if header[0] == name] == ([] if value is None else [(name, value)])
    known = [index for index, header in enumerate(headers) if header[0] == name]
    if value is not None:
        assert changed.index((name, value)) == (known[0] if known else len(headers))


def test_the_pieces_of_a_fill_are_numbered_on() -> None:
    fill = SendFill("delta", b'{"n":}', 3, Numbering(5, 9))
    assert [fill.piece(index) for index in range(3)] == [b'{"n":9}', b'{"n":10}', b'{"n":11}']
    assert SendFill("delta", b"same", 3).piece(2) == b"same"


CALL = ToolUse("run", {"path": "/srv/old", "force": True, "limit": 120})
ARGUMENTS = {
    "invalid": '{"path": "/srv/old", "force": true, "limit": 120,}',
    "cut": '{"path": "/srv/old", "fo',
    "empty": "",
    "not_an_object": '["/srv/old", true, 120]',
    "wrong_type": '{"path": ["/srv/old"], "force": true, "limit": 120}',
    "valid_by_accident": '{"path": "/srv", "force": true, "limit": 120}',
}


@pytest.mark.parametrize("how", HOW)
def test_arguments_are_broken_in_the_one_way_that_is_named(how: str) -> None:
    fault = ToolArgumentsFault(how)
    reply = Reply((CALL, CALL), "tool_use")
    [broken, same] = fault.reshape(reply).blocks
    assert (broken, same) == (replace(CALL, arguments=ARGUMENTS[how]), CALL)
    [same, broken] = replace(fault, nth=2).reshape(reply).blocks
    assert (broken, same) == (replace(CALL, arguments=ARGUMENTS[how]), CALL)


@pytest.mark.parametrize(
    ("arguments", "left"),
    [({"n": 120}, '{"n": 12}'), ({"n": -120}, '{"n": -12}'), ({"n": 1, "m": True}, '{"n": 1}'), ({"n": 1}, "{}")],
)
def test_arguments_are_valid_by_accident_whatever_they_hold(arguments: dict[str, object], left: str) -> None:
    reply = Reply((ToolUse("run", arguments),), "tool_use")
    assert ToolArgumentsFault("valid_by_accident").reshape(reply).blocks == (ToolUse("run", arguments, None, left),)


OF_THE_BODY = {
    "cut": "event: body, byte: 1",
    "dribble": "event: head",
    "early_end": "event: head",
    "empty_body": "",
    "gzip": "how: not_gzip",
    "html_body": "",
    "http10": "event: body, byte: 1",
    "huge_reply": "",
    "malformed_frame": "event: body",
    "no_last_chunk": "",
    "reset": "event: head",
    "stall": "event: head",
    "truncated_json": "",
    "wrong_content_length": "over: 1",
    "wrong_content_type": "",
}
OF_EVENTS = {
    "drop_event": "event: body",
    "duplicate_event": "event: body",
    "error_event": "event: body",
    "no_terminal": "",
    "reorder_events": "event: body",
    "unknown_event": "event: body",
}
OF_THE_CONNECTION = {
    "close": "",
    "hang_up": "",
    "informational": "",
    "redirect": "",
    "refuse_connections": "seconds: 1",
    "slow_headers": "",
}


def wire_fault(kind: str, settings: str) -> WireFault:
    fault = read_fault(parse_document(f"{kind}: {{{settings}}}", "f.yaml"))
    assert isinstance(fault, WireFault)
    return fault


@pytest.mark.parametrize("status", BODILESS_STATUSES)
@pytest.mark.parametrize("kind", sorted(kind for kind, fault in FAULTS.items() if hasattr(fault, "strike")))
def test_no_fault_strikes_a_body_that_a_status_has_not(kind: str, status: int) -> None:
    settings = {**OF_THE_BODY, **OF_EVENTS, **OF_THE_CONNECTION}[kind]
    body = b'{"error":{"message":"down"}}'
    reason = wire_fault(kind, settings).unreachable(Draft.of_plain(PlainReply(status, (), body)))
    if kind in OF_THE_BODY:
        assert reason == f"a reply of status {status} has no body"
    else:
        assert (reason is None) is (kind in OF_THE_CONNECTION)


def answering(body: bytes, **headers: str) -> Draft:
    request = Received("POST", "/v1/messages", "", headers, b"")
    return replace(Draft.of_plain(PlainReply(200, (), body), request=request), frames=(Frame("body", body),))


@pytest.mark.parametrize(
    ("connection", "kept"),
    [("", True), ("keep-alive", True), ("Close", False), ("te, CLOSE", False), ("x-close-notify", True)],
)
def test_an_end_that_was_asked_for_is_no_hang_up(connection: str, kept: bool) -> None:
    assert (wire_fault("hang_up", "").unreachable(answering(b"{}", connection=connection)) is None) is kept


@pytest.mark.parametrize(
    ("accepted", "asked"),
    [
        ("gzip", True),
        ("br, GZIP;q=0.5", True),
        ("*", True),
        ("", False),
        ("gzip;q=0", False),
        ("gzip; q=0.000, *", False),
        ("*;q=0", False),
        ("not-gzip", False),
    ],
)
def test_a_client_asks_for_gzip_as_http_says(accepted: str, asked: bool) -> None:
    draft = answering(b"{}", **{"accept-encoding": accepted})
    assert (wire_fault("gzip", "how: fine").unreachable(draft) is None) is asked
    assert (wire_fault("gzip", "how: unasked").unreachable(draft) is None) is not asked


def test_what_would_leave_in_one_piece_does_not_dribble() -> None:
    draft = answering(b"0123456789")
    assert wire_fault("dribble", "event: head, bytes: 9").unreachable(draft) is None
    assert "more than 10 bytes" in (wire_fault("dribble", "event: head, bytes: 10").unreachable(draft) or "")
    size = head_bytes(draft)
    assert wire_fault("dribble", f"bytes: {size - 1}").unreachable(draft) is None
    assert wire_fault("dribble", f"bytes: {size}").unreachable(draft) is not None
    assert wire_fault("slow_headers", f"bytes: {size - 1}").unreachable(draft) is None
    assert wire_fault("slow_headers", f"bytes: {size}").unreachable(draft) is not None


TOOL = {"text": "a", "content": "b", "message": "c", "error": {"message": "d"}}


@pytest.mark.parametrize("name", sorted(DIALECTS))
@pytest.mark.parametrize("says", [True, False])
def test_only_what_the_model_says_becomes_huge(name: str, says: bool) -> None:
    dialect = DIALECTS[name]
    blocks = (Text("Said."),) if says else ()
    reply = Reply((*blocks, ToolUse("run", TOOL, "call_1")), "tool_use")
    if not says:
        reply = replace(reply, blocks=(Thinking("A thought."), *reply.blocks))
    draft = Draft.of_plain(dialect.whole(reply, Served("m_1", "r_1", "model", 1, 1, {})))
    fault = wire_fault("huge_reply", "bytes: 1")
    assert (fault.unreachable(draft) is None) is says
    if says:
        [begun, rest] = [action for action in fault.strike(draft, dialect) if isinstance(action, Send)]
        assert rest.payload.startswith(b'Said."')
        assert begun.payload + rest.payload == draft.frames[0].payload
