"""Every kind of fault in every dialect, streamed and whole: what must be on the wire, byte by byte.

Each row compares what a raw client saw with what it saw of the same step without the fault. Where the connection can be
used again, the second reply on it is looked at too.
"""

from __future__ import annotations

import gzip
import json
import re
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pytest

from fake_provider.dialects import DIALECTS
from fake_provider.faults import FAULTS
from fake_provider.faults.rewriting import struck_at_end
from fake_provider.journal import FaultFired, FaultSkipped
from tests.fake_provider.dialect_requests import asking
from tests.fake_provider.raw_client import WatchedProvider, serving
from tests.fake_provider.wire_reader import End, Wire, look

SAY = "say: 'A text of more than sixteen, and chäracters.'"
CALL = "call: deploy, with: {target: production, release: 7000}"
CALLS = "calls: [{call: deploy, with: {release: 7}}, {call: notify, with: {text: done}}]"
FIRST_PIECE = b"A text of more t"
MARK = b"\xef\xbb\xbf"
STRINGS_LAST = ("anthropic_messages", "openai_chat", "openai_responses")
"""Dialects in whose events with text no other string follows it."""
ASKS_FOR_GZIP = ("accept-encoding: gzip",)


@dataclass(frozen=True)
class Case:
    """What was seen: with the fault, and without it."""

    seen: Wire
    good: Wire
    dialect: str
    stream: bool

    @property
    def text(self) -> int:
        """The index of the first event with visible text."""
        return next(index for index, event in enumerate(self.good.events) if FIRST_PIECE in event)

    def changed(self, *events: bytes) -> bool:
        """Whether exactly these events came, and the body ended as HTTP says."""
        return self.seen.events == list(events) and self.seen.ended

    def replaced(self, *events: bytes) -> bool:
        """Whether these events came in place of the first one with text."""
        return self.changed(*self.before, *events, *self.after)

    @property
    def before(self) -> list[bytes]:
        """The events before the first one with text."""
        return self.good.events[: self.text]

    @property
    def event(self) -> bytes:
        """The first event with text."""
        return self.good.events[self.text]

    @property
    def after(self) -> list[bytes]:
        """The events after the first one with text."""
        return self.good.events[self.text + 1 :]

    def stops_after_text(self) -> bool:
        """Whether the stream came as far as its first text."""
        return self.seen.events == [*self.before, self.event]

    @property
    def line_end(self) -> bytes:
        return b"\r\n" if self.event.endswith(b"\r\n") else b"\n"

    def with_event_edited(self, old: bytes, new: bytes) -> bool:
        """Whether the first event with text came with these bytes exchanged, and everything else as it was."""
        assert self.event.count(old) == 1
        edited = self.event.replace(old, new)
        return self.seen.body == b"".join([*self.before, edited, *self.after]) and self.seen.ended


Check = Callable[[Case], bool]


@dataclass(frozen=True)
class Row:
    """A fault, and what must be seen of it.

    Attributes:
        fault: As a script writes it.
        check: What must be on the wire.
        stream: Whether a stream is asked for.
        step: What the fault strikes.
        end: How the connection ends.
        headers: Headers of the request.
        dialects: Where it can strike.
        timing: Whether the bytes are those of the undisturbed reply, and only their times differ.
    """

    fault: str
    check: Check
    stream: bool = True
    step: str = SAY
    end: End = "open"
    headers: Sequence[str] = ()
    dialects: Sequence[str] = tuple(DIALECTS)
    timing: bool = False


def found_in(value: Any, key: str) -> list[Any]:
    """Every value of a key, however deep."""
    if isinstance(value, Mapping):
        own = [value[key]] if key in value else []
        return [*own, *(found for inner in value.values() for found in found_in(inner, key))]
    return [found for inner in value for found in found_in(inner, key)] if isinstance(value, list) else []


def all_of(wire: Wire, key: str) -> list[Any]:
    return [found for value in wire.values for found in found_in(value, key)]


STOPS = {
    "anthropic_messages": ("stop_reason", "max_tokens"),
    "openai_chat": ("finish_reason", "length"),
    "openai_responses": ("reason", "max_output_tokens"),
    "gemini": ("finishReason", "MAX_TOKENS"),
}
COUNTS = {
    "anthropic_messages": ("input_tokens", "output_tokens"),
    "openai_chat": ("prompt_tokens", "completion_tokens"),
    "openai_responses": ("input_tokens", "output_tokens"),
    "gemini": ("promptTokenCount", "candidatesTokenCount"),
}
OVERLOADS = {
    "anthropic_messages": rb'event: error\ndata: \{"type":"error","error":\{"type":"overloaded_error","message":"no"\}\}\n\n',  # noqa: E501
    "openai_chat": rb'data: \{"error":\{.*"message":"no".*\}\}\n\n',
    "openai_responses": rb'event: \w[\w.]*\ndata: \{.*"sequence_number":5,.*"message":"no".*\}\n\n',
    "gemini": rb'data: \{"error":\{"code":503,"message":"no","status":"UNAVAILABLE".*\}\}\r\n\r\n',
}
NEVER_HEARD_OF = b"crashcart"


def arguments_of(wire: Wire, dialect: str) -> list[str]:
    """The arguments of every call as the text on the wire, JSON objects as JSON."""
    values = wire.values
    match dialect:
        case "anthropic_messages":
            if len(values) == 1:
                return [json.dumps(block["input"]) for block in values[0]["content"] if block["type"] == "tool_use"]
            pieces: dict[int, str] = {v["index"]: "" for v in values if v["type"] == "content_block_start"}
            for value in values:
                if "partial_json" in value.get("delta", {}):
                    pieces[value["index"]] += value["delta"]["partial_json"]
            return list(pieces.values())
        case "openai_chat":
            calls: dict[int, str] = {}
            for number, call in enumerate(call for found in all_of(wire, "tool_calls") for call in found):
                index = call.get("index", number)
                calls[index] = calls.get(index, "") + call["function"]["arguments"]
            return list(calls.values())
        case "openai_responses":
            return [call["arguments"] for output in found_in(values[-1], "output") for call in output]
        case _:
            return [json.dumps(call["args"]) for call in all_of(wire, "functionCall")]


def with_arguments(expected: str) -> Check:
    def check(case: Case) -> bool:
        assert arguments_of(case.good, case.dialect) == ['{"target": "production", "release": 7000}']
        return arguments_of(case.seen, case.dialect) == [expected] and case.seen.ended

    return check


def breaks_the_body(case: Case) -> bool:
    """Where arguments are an object, text that is none makes the body no JSON."""
    with pytest.raises(ValueError, match=r"Expecting|Invalid|Unterminated|Extra"):
        case.seen.values  # noqa: B018 - reading it is what fails
    return case.seen.ended


def ids_of(wire: Wire) -> list[str]:
    found = [value for value in (*all_of(wire, "id"), *all_of(wire, "call_id")) if isinstance(value, str)]
    return sorted({value for value in found if value.startswith(("toolu_", "call_", "call-"))})


def usages(*expected: int) -> Check:
    def check(case: Case) -> bool:
        return [all_of(case.seen, key)[-1] for key in COUNTS[case.dialect]] == list(expected) and case.seen.ended

    return check


def usage_missing(case: Case) -> bool:
    keys = COUNTS[case.dialect]
    return all(all_of(case.good, key) for key in keys) and not any(all_of(case.seen, key) for key in keys)


def unzipped(data: bytes) -> tuple[bytes, bool]:
    """What can be read of it, and whether its end came."""
    reader = zlib.decompressobj(wbits=31)
    return reader.decompress(data), reader.eof


def gzip_is_torn(case: Case) -> bool:
    body, eof = unzipped(case.seen.body)
    return not eof and body != case.good.body and case.good.body.startswith(body) and bool(body) and case.seen.ended


def gzip_is_damaged(case: Case) -> bool:
    with pytest.raises(zlib.error, match="invalid block type"):
        unzipped(case.seen.body)
    return case.seen.ended


def gzip_is_fine(case: Case) -> bool:
    return gzip.decompress(case.seen.body) == case.good.body and case.seen.ended and "gzip" in case.seen.head.decode()


def huge_stream(case: Case) -> bool:
    good, seen = case.good.events, case.seen.events
    more = len(seen) - len(good)
    numbers = all_of(case.seen, "sequence_number")
    assert numbers == ([] if case.dialect != "openai_responses" else list(range(len(seen))))
    text = [re.sub(rb'"sequence_number":\d+', b"", event) for event in seen]
    same = text[case.text : case.text + more + 1]
    return len(set(same)) == 1 and more == -(-50_000 // len(good[case.text])) and case.seen.ended


def huge_body(case: Case) -> bool:
    texts = [text for text in (*all_of(case.seen, "text"), *all_of(case.seen, "content")) if isinstance(text, str)]
    return max(map(len, texts)) > 50_000 and len(case.seen.body) < 70_000 and case.seen.ended


def html(case: Case) -> bool:
    same = case.seen.status_line == case.good.status_line
    type_is = case.seen.headers["content-type"] == "text/html; charset=utf-8"
    return same and type_is and case.seen.body.startswith(b"<!DOCTYPE html>") and case.seen.ended


def location(expected: str | None) -> Check:
    def check(case: Case) -> bool:
        assert case.seen.status_line == b"HTTP/1.1 307 Temporary Redirect"
        path = asking(case.dialect, stream=case.stream).path
        target = {None: None, "itself": path}.get(expected, f"{expected}{path}")
        return case.seen.body == b"" and case.seen.headers.get("location") == target

    return check


def old(case: Case) -> bool:
    seen = case.seen
    framed = {"transfer-encoding", "content-length"} & seen.headers.keys()
    return seen.status_line == b"HTTP/1.0 200 OK" and not framed and seen.headers["connection"] == "close"


def dribbled(case: Case) -> bool:
    pieces = case.seen.chunks[0][len(case.before) + 1 : -1]
    return case.changed(*case.good.events) and all(len(piece) <= 7 for piece in pieces) and len(pieces) > 20


def length_is(by: int) -> Check:
    def check(case: Case) -> bool:
        seen = case.seen
        return seen.raw_body == case.good.body and int(seen.headers["content-length"]) == len(seen.raw_body) + by

    return check


def error_event_after_text(case: Case) -> bool:
    events, at = case.seen.events, case.text + 1
    pattern = OVERLOADS[case.dialect].replace(b":5,", b":%d," % at)
    return events[:-1] == case.good.events[:at] and re.fullmatch(pattern, events[-1]) is not None and case.seen.ended


def says_gzip(case: Case) -> bool:
    return case.seen.headers.get("content-encoding") == "gzip"


def stray_line(case: Case) -> bool:
    return case.with_event_edited(b"data: {", b"a line without a colon" + case.line_end + b"data: {")


def unknown_after_text(case: Case) -> bool:
    unknown = case.seen.events[case.text + 1]
    return NEVER_HEARD_OF in unknown and case.replaced(case.event, unknown)


def retyped(case: Case, content_type: str | None) -> bool:
    headers = {name: value for name, value in case.good.headers.items() if name != "content-type"}
    expected = headers if content_type is None else {**headers, "content-type": content_type}
    return case.seen.headers == expected and case.seen.raw_body == case.good.raw_body


def one_chunk(case: Case) -> bool:
    return case.seen.chunks == ([case.good.body], b"") and "content-length" not in case.seen.headers


def three_times_continue(case: Case) -> bool:
    return case.seen.data == b"HTTP/1.1 100 Continue\r\n\r\n" * 3 + case.good.data


def answered_for_the_last_time(case: Case) -> bool:
    return case.seen.raw_body == case.good.raw_body and case.seen.headers["connection"] == "close"


def stops_for_length(case: Case) -> bool:
    key, word = STOPS[case.dialect]
    return word in all_of(case.seen, key) and bool(arguments_of(case.seen, case.dialect))


def calls_and_ends_the_turn(case: Case) -> bool:
    key = STOPS[case.dialect][0]
    return all_of(case.seen, key)[-1] in ("end_turn", "stop") and bool(arguments_of(case.seen, case.dialect))


def calls_nothing(case: Case) -> bool:
    key = STOPS[case.dialect][0]
    return all_of(case.seen, key)[-1] in ("tool_use", "tool_calls") and FIRST_PIECE in case.seen.body


def thinks_only(case: Case) -> bool:
    return b"Hm." in case.seen.body and b"A text" not in case.seen.body and case.seen.ended


def both(fault: str, check: Check, step: str = SAY, dialects: Sequence[str] = tuple(DIALECTS)) -> list[Row]:
    return [Row(fault, check, stream=stream, step=step, dialects=dialects) for stream in (True, False)]


JSON_WITHOUT_END = re.compile(rb"\}(\r?\n\r?\n)$")


def edited(old: bytes, new: bytes) -> Check:
    return lambda case: case.with_event_edited(old, new)


def json_lacks_its_end(case: Case) -> bool:
    return case.replaced(JSON_WITHOUT_END.sub(rb"\1", case.event))


def two_events_in_one(case: Case) -> bool:
    return case.changed(*case.before, case.event.removesuffix(case.line_end) + case.after[0], *case.after[1:])


WIRE_ROWS = [
    Row("close", lambda c: c.seen.data == b"", end="fin"),
    Row("{close: {}}", lambda c: c.seen.data == b"", end="fin", stream=False),
    Row("{cut: {event: head}}", lambda c: c.seen.data == c.good.head + b"\r\n\r\n", end="fin"),
    Row("{cut: {event: text}}", Case.stops_after_text, end="fin"),
    Row("{cut: {event: text, byte: 9}}", lambda c: c.seen.events == [*c.before, c.event[:9]], end="fin"),
    Row("{cut: {event: text, nth: 3, inside: utf8}}", lambda c: c.seen.data.endswith(b"ch\xc3\r\n"), end="fin"),
    Row("{cut: {event: text, inside: chunk_header}}", lambda c: c.seen.chunks[1] == b"%x" % len(c.event), end="fin"),
    Row("{cut: {event: body, byte: 9}}", lambda c: c.seen.raw_body == c.good.body[:9], end="fin", stream=False),
    Row("{reset: {event: text}}", Case.stops_after_text, end="rst"),
    Row("{reset: {event: nothing}}", lambda c: c.seen.data == b"", end="rst", stream=False),
    Row(
        "{stall: {event: text, byte: 9, seconds: 1}}",
        lambda c: c.seen.body == c.good.body and c.seen.ended,
        timing=True,
    ),
    Row("{stall: {event: nothing, seconds: 1}}", lambda c: c.seen.data == c.good.data, stream=False, timing=True),
    Row("{error_event: {event: text, message: 'no'}}", error_event_after_text),
    Row("{early_end: {event: head}}", lambda c: c.changed()),
    Row("{early_end: {event: text}}", lambda c: c.changed(*c.before, c.event)),
    Row("{early_end: {event: text, byte: 9}}", lambda c: c.changed(*c.before, c.event[:9])),
    Row("{early_end: {event: body, byte: 9}}", lambda c: c.seen.body == c.good.body[:9] and c.seen.ended, stream=False),
    Row("{no_terminal: {}}", lambda c: c.changed(*c.good.events[:-1])),
    Row("{dribble: {event: text, bytes: 7}}", dribbled),
    Row("{dribble: {bytes: 50}}", lambda c: c.changed(*c.good.events) and max(map(len, c.seen.chunks[0])) == 50),
    Row("{dribble: {bytes: 50}}", lambda c: c.seen.data == c.good.data, stream=False, timing=True),
    Row("{malformed_frame: {event: text}}", json_lacks_its_end),
    Row("{malformed_frame: {event: text, how: utf8}}", edited(b'":"A text', b'":"\xffA text'), dialects=STRINGS_LAST),
    Row("{malformed_frame: {event: text, how: bom}}", lambda c: c.replaced(b"\xef\xbb\xbf" + c.event)),
    Row("{malformed_frame: {event: text, how: field}}", edited(b"data: {", b"dato: {")),
    Row("{malformed_frame: {event: text, how: line}}", stray_line),
    Row("{malformed_frame: {event: text, how: no_blank_line}}", two_events_in_one),
    Row("{malformed_frame: {event: body}}", lambda c: c.seen.body == c.good.body[:-1] and c.seen.ended, stream=False),
    Row("{malformed_frame: {event: body, how: bom}}", lambda c: c.seen.body == MARK + c.good.body, stream=False),
    Row("{duplicate_event: {event: text}}", lambda c: c.replaced(c.event, c.event)),
    Row("{drop_event: {event: text}}", lambda c: c.replaced()),
    Row("{reorder_events: {event: text}}", lambda c: c.changed(*c.before, c.after[0], c.event, *c.after[1:])),
    Row("{unknown_event: {event: text}}", unknown_after_text),
    Row("{unknown_event: {event: head}}", lambda c: c.changed(c.seen.events[0], *c.good.events)),
    Row("{empty_body: {}}", lambda c: c.seen.head == c.good.head and c.changed()),
    Row("{empty_body: {}}", lambda c: c.seen.headers["content-length"] == "0" and c.seen.body == b"", stream=False),
    Row("{html_body: {}}", html),
    Row("{html_body: {}}", html, stream=False),
    Row("{wrong_content_type: {}}", lambda c: retyped(c, "text/plain; charset=utf-8")),
    Row("{wrong_content_type: {type: null}}", lambda c: retyped(c, None), stream=False),
    Row("{truncated_json: {}}", lambda c: c.seen.body == c.good.body[: len(c.good.body) // 2], stream=False),
    Row("{truncated_json: {bytes: 30}}", lambda c: c.seen.body == c.good.body[:30] and c.seen.ended, stream=False),
    Row("{wrong_content_length: {over: 5}}", length_is(5), end="fin"),
    Row("{wrong_content_length: {under: 5}}", length_is(-5), end="fin"),
    Row("{wrong_content_length: {over: 5}}", length_is(5), end="fin", stream=False),
    Row("{wrong_content_length: {under: 5}}", length_is(-5), end="fin", stream=False),
    Row("{no_last_chunk: {}}", lambda c: c.seen.data == c.good.data.removesuffix(b"0\r\n\r\n"), end="fin"),
    Row("{no_last_chunk: {}}", one_chunk, end="fin", stream=False),
    Row("{gzip: {}}", gzip_is_fine, headers=ASKS_FOR_GZIP),
    Row("{gzip: {}}", gzip_is_fine, headers=ASKS_FOR_GZIP, stream=False),
    Row("{gzip: {how: unasked}}", gzip_is_fine),
    Row("{gzip: {how: truncated}}", gzip_is_torn),
    Row("{gzip: {how: truncated}}", gzip_is_torn, stream=False),
    Row("{gzip: {how: corrupt}}", gzip_is_damaged),
    Row("{gzip: {how: corrupt}}", gzip_is_damaged, stream=False),
    Row("{gzip: {how: not_gzip}}", lambda c: c.changed(*c.good.events) and says_gzip(c)),
    Row("{http10: {}}", lambda c: old(c) and c.seen.raw_body == c.good.body, end="fin"),
    Row("{http10: {}}", lambda c: old(c) and c.seen.raw_body == c.good.body, end="fin", stream=False),
    Row("{http10: {event: text}}", lambda c: old(c) and c.stops_after_text(), end="fin"),
    Row("{slow_headers: {bytes: 9}}", lambda c: c.seen.data == c.good.data, timing=True),
    Row("{redirect: {to: missing}}", location(None)),
    Row("{redirect: {to: self}}", location("itself"), stream=False),
    Row("{redirect: {to: elsewhere, port: 7}}", location("http://127.0.0.1:7")),
    Row("{redirect: {status: 301}}", lambda c: c.seen.status_line == b"HTTP/1.1 301 Moved Permanently"),
    Row("{informational: {}}", lambda c: c.seen.data == b"HTTP/1.1 103 Early Hints\r\n\r\n" + c.good.data),
    Row("{informational: {status: 100, times: 3}}", three_times_continue, stream=False),
    Row("{hang_up: {}}", lambda c: c.seen.data == c.good.data and "connection" not in c.seen.headers, end="fin"),
    Row("{hang_up: {how: rst, seconds: 1}}", lambda c: c.seen.data == c.good.data, end="rst", stream=False),
    Row("{huge_reply: {bytes: 50000}}", huge_stream),
    Row("{huge_reply: {bytes: 50000}}", huge_body, stream=False),
    Row("{refuse_connections: {seconds: 1}}", lambda c: c.seen.data == b"", end="fin"),
    Row("{refuse_connections: {seconds: 1, answer: true}}", answered_for_the_last_time, end="fin"),
]
"""The faults on the wire."""

OBJECTS = ("anthropic_messages", "gemini")
"""Dialects whose replies, where they are not streamed, hold arguments as an object."""
TEXTS = ("openai_chat", "openai_responses")


def tool_arguments(how: str, expected: str, *, parses: bool) -> list[Row]:
    fault, check = f"{{tool_arguments: {{how: {how}}}}}", with_arguments(expected)
    torn = [] if parses else list(OBJECTS)
    whole = [
        Row(fault, check, stream=False, step=CALL, dialects=[name for name in DIALECTS if name not in torn]),
        Row(fault, breaks_the_body, stream=False, step=CALL, dialects=torn),
    ]
    streams = [
        Row(fault, check, step=CALL, dialects=[name for name in DIALECTS if parses or name != "gemini"]),
        Row(fault, breaks_the_body, step=CALL, dialects=[] if parses else ["gemini"]),
    ]
    return [*whole, *streams]


REPLY_ROWS = [
    *tool_arguments("invalid", '{"target": "production", "release": 7000,}', parses=False),
    *tool_arguments("cut", '{"target": "producti', parses=False),
    *tool_arguments("empty", "", parses=False),
    *tool_arguments("wrong_type", '{"target": ["production"], "release": 7000}', parses=True),
    *tool_arguments("not_an_object", '["production", 7000]', parses=True),
    *tool_arguments("valid_by_accident", '{"target": "produ", "release": 7000}', parses=True),
    *both("{wrong_stop_reason: {reason: max_tokens}}", stops_for_length, CALL),
    *both("{wrong_stop_reason: {}}", calls_and_ends_the_turn, CALL, dialects=("anthropic_messages", "openai_chat")),
    *both("{wrong_stop_reason: {}}", calls_nothing, SAY, dialects=("anthropic_messages", "openai_chat")),
    *both("{repeated_tool_id: {}}", lambda c: len(ids_of(c.good)) == 2 and len(ids_of(c.seen)) == 1, CALLS),
    *both("{repeated_tool_id: {id: call_earlier}}", lambda c: ids_of(c.seen) == ["call_earlier"], CALLS),
    *both("{empty_message: {}}", lambda c: b"A text" not in c.seen.body and bool(c.seen.values) and c.seen.ended),
    *both("{thinking_only: {text: Hm.}}", thinks_only),
    *both("{usage: {how: absurd}}", usages(2**53 + 1, 2**53 + 1)),
    *both("{usage: {how: negative}}", usages(-1, -1)),
    *both("{usage: {how: zero}}", usages(0, 0)),
    *both("{usage: {how: missing}}", usage_missing),
]
"""The faults in what the model says."""

ROWS = [*WIRE_ROWS, *REPLY_ROWS]


def kind_of(row: Row) -> str:
    return re.sub(r"\W", "", row.fault.partition(":")[0])


def named(row: Row) -> str:
    return f"{row.fault}-{'stream' if row.stream else 'whole'}"


async def seen_and_good(row: Row, dialect: str) -> tuple[Wire, Wire, WatchedProvider]:
    """What a row is about, and the same step without the fault."""
    async with serving(f"main: [{{{row.step}}}, {{say: again}}]") as provider:
        good = await look(provider, dialect, stream=row.stream)
    async with serving(f"main: [{{{row.step}, fault: {row.fault}}}, {{say: again}}]", time_scale=1000) as provider:
        seen = await look(provider, dialect, stream=row.stream, headers=row.headers, end=row.end)
    return seen, good, provider


@pytest.mark.parametrize("row", ROWS, ids=named)
async def test_a_fault_is_on_the_wire_as_the_table_says_and_fires_once(row: Row) -> None:
    for dialect in row.dialects:
        seen, good, provider = await seen_and_good(row, dialect)
        assert good.ended
        assert b"again" in good.again
        [fired] = provider.journal.of(FaultFired)
        assert fired.request == 1
        assert provider.journal.of(FaultSkipped) == ()
        assert row.check(Case(seen, good, dialect, row.stream)), (dialect, seen)
        assert seen.end == row.end, dialect
        assert (b"again" in seen.again) is (row.end == "open"), (dialect, seen)


@pytest.mark.parametrize("row", [row for row in ROWS if not row.timing and row.dialects], ids=named)
async def test_a_row_turns_red_when_its_fault_does_nothing(row: Row, monkeypatch: pytest.MonkeyPatch) -> None:
    kind = FAULTS[kind_of(row)]
    if hasattr(kind, "strike"):
        monkeypatch.setattr(kind, "strike", lambda fault, draft, dialect: struck_at_end(draft, fault.kind, "nothing"))
    else:
        monkeypatch.setattr(kind, "reshape", lambda fault, reply: reply)
    seen, good, _ = await seen_and_good(replace(row, end="open"), row.dialects[0])
    try:
        noticed = not row.check(Case(seen, good, row.dialects[0], row.stream))
    except (AssertionError, KeyError, IndexError, ValueError, OSError, pytest.fail.Exception, zlib.error):
        noticed = True
    assert noticed or row.end != "open"


def test_the_table_has_every_kind() -> None:
    assert {kind_of(row) for row in ROWS} == set(FAULTS)
