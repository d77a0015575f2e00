"""What the readers make of replies: recorded and replayed, a reply says the same and breaks off at the same place."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fake_provider.dialects import DIALECTS, Served
from fake_provider.document import parse_document
from fake_provider.faults import WireFault
from fake_provider.recording.answer import Answer, Asked, Reading
from fake_provider.recording.script_file import script_text, without_secrets
from fake_provider.recording.steps import READERS, step_of
from fake_provider.recording.streams import array_elements, event_data
from fake_provider.replies import ERROR_WORDS, Block, ErrorReply, Opaque, Reply, Text, Thinking, ToolUse, Usage
from fake_provider.script import Script, parse_script
from fake_provider.steps import Step
from fake_provider.wire import Draft, Frame, Send
from tests.fake_provider.dialect_requests import NAMES
from tests.fake_provider.property_settings import QUICK

ASKED = Asked("m")
EVENTS = {"content-type": "text/event-stream; charset=utf-8"}
JSON = {"content-type": "application/json"}

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=40)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-1000, 1000) | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=5,
)
CALLS = st.builds(ToolUse, name=st.sampled_from(["Bash", "deploy"]), input=st.dictionaries(TEXTS, VALUES, max_size=3))
BLOCKS: st.SearchStrategy[Block] = st.one_of(st.builds(Text, TEXTS), st.builds(Thinking, TEXTS), CALLS)
USAGES = st.none() | st.builds(
    Usage,
    *[st.integers(0, 10_000)] * 2,
    cache_read_input_tokens=st.integers(0, 99),
    cache_creation_input_tokens=st.just(0),
)
STOPS = st.sampled_from(["end_turn", "tool_use", "max_tokens", "refusal"])
REPLIES = st.builds(
    Reply, st.lists(BLOCKS, max_size=4).map(tuple), STOPS, usage=USAGES, model=st.none() | st.just("other")
)


def served(dialect: str, number: int = 1) -> Served:
    speaking = DIALECTS[dialect]
    body = {"stream_options": {"include_usage": True}}
    return Served(speaking.message_id(1, number), speaking.request_id(1), "m", 7, 1_000_000, body)


def with_ids(reply: Reply, dialect: str) -> Reply:
    blocks = [
        replace(block, id=block.id or DIALECTS[dialect].call_id(1, number)) if isinstance(block, ToolUse) else block
        for number, block in enumerate(reply.blocks, start=1)
    ]
    return replace(reply, blocks=tuple(blocks))


def body_of(reply: Reply, dialect: str, *, streamed: bool) -> bytes:
    speaking = DIALECTS[dialect]
    whole = with_ids(reply, dialect)
    if not streamed:
        return speaking.whole(whole, served(dialect)).body
    return b"".join(frame.payload for frame in speaking.frames(whole, served(dialect)))


def read(body: bytes, dialect: str, *, streamed: bool) -> Reading:
    reader = READERS[dialect]
    return reader.stream(event_data(body), ASKED) if streamed else reader.whole(body, ASKED)


def answer_of(body: bytes, *, streamed: bool, ended: bool = True) -> Answer:
    return Answer(200, EVENTS if streamed else JSON, body, ended=ended)


def replayed(steps: Sequence[Any], *dialects: str) -> Script:
    return parse_script(parse_document(script_text({"main": list(steps)}, dialects), "recording"))


def only_step(script: Script) -> Step:
    [step] = script.lanes[0].steps
    assert isinstance(step, Step)
    return step


@pytest.mark.parametrize("streamed", [True, False], ids=["streamed", "whole"])
@pytest.mark.parametrize("dialect", NAMES)
@QUICK
@given(reply=REPLIES)
def test_any_reply_says_the_same_when_it_is_replayed(dialect: str, streamed: bool, reply: Reply) -> None:
    body = body_of(reply, dialect, streamed=streamed)
    recorded = step_of(answer_of(body, streamed=streamed), dialect, ASKED, streamed=streamed)
    assert set(recorded) == {"reply"}
    step = only_step(replayed([recorded], dialect))
    assert step.fault is None
    said = step.answer
    assert isinstance(said, Reply)
    if step.templated:
        said = json_literal(said)
    assert read(body_of(said, dialect, streamed=streamed), dialect, streamed=streamed) == read(
        body, dialect, streamed=streamed
    )


def json_literal(reply: Reply) -> Reply:
    """Undo what keeps texts from being taken for values, as playing does."""
    from fake_provider.templates import Asked as AskedValues
    from fake_provider.templates import filled
    from tests.fake_provider.scripts import asked

    answer = filled(reply, AskedValues(asked(), 1))
    assert isinstance(answer, Reply)
    return answer


RICH = Reply(
    (
        Thinking("I should look at the folder first, and then at the files in it."),
        Text("I will look at the folder now, and tell you what is there."),
        ToolUse("Bash", {"command": "ls -la", "description": "list the folder"}),
        ToolUse("Bash", {"command": "pwd"}),
    ),
    "tool_use",
)


def reaching(dialect: str) -> list[int]:
    return list(range(len(DIALECTS[dialect].frames(with_ids(RICH, dialect), served(dialect)))))


@pytest.mark.parametrize("ended", [False, True], ids=["cut", "ended early"])
@pytest.mark.parametrize(("dialect", "count"), [(dialect, count) for dialect in NAMES for count in reaching(dialect)])
def test_a_stream_that_breaks_off_breaks_off_at_the_same_place(dialect: str, count: int, ended: bool) -> None:
    speaking = DIALECTS[dialect]
    frames = speaking.frames(with_ids(RICH, dialect), served(dialect))
    body = b"".join(frame.payload for frame in frames[:count])
    before = read(body, dialect, streamed=True)
    partial = frames[count].payload[:9]
    step = only_step(
        replayed(
            [step_of(answer_of(body + partial, streamed=True, ended=ended), dialect, ASKED, streamed=True)], dialect
        )
    )
    if before.reached == "terminal":
        assert step.fault is None
        return
    if ended and count == 0:
        assert isinstance(step.answer, ErrorReply)
        assert step.answer.body == partial.decode()
        return
    assert isinstance(step.fault, WireFault)
    assert step.fault.kind == ("early_end" if ended else "cut")
    assert isinstance(step.answer, Reply)
    after = read(struck(step, dialect), dialect, streamed=True)
    assert after.reached == before.reached
    assert calls(after.reply) == calls(before.reply)
    assert texts(after.reply) == texts(before.reply)


def struck(step: Step, dialect: str) -> bytes:
    """What a client receives of a step's reply."""
    speaking = DIALECTS[dialect]
    assert isinstance(step.answer, Reply)
    assert isinstance(step.fault, WireFault)
    frames = speaking.frames(with_ids(step.answer, dialect), served(dialect))
    draft = Draft(200, speaking.stream_headers(served(dialect)), frames, streamed=True, transfer="chunked")
    assert step.fault.unreachable(draft) is None
    return b"".join(action.payload for action in step.fault.strike(draft, speaking) if isinstance(action, Send))


def calls(reply: Reply) -> list[tuple[str, str]]:
    return [(call.name, call.arguments_text) for call in reply.blocks if isinstance(call, ToolUse)]


def texts(reply: Reply) -> str:
    return "".join(block.text for block in reply.blocks if isinstance(block, Text))


@pytest.mark.parametrize("dialect", NAMES)
def test_an_error_event_comes_again_with_its_type_and_message(dialect: str) -> None:
    speaking = DIALECTS[dialect]
    frames = speaking.frames(with_ids(RICH, dialect), served(dialect))
    for kind in speaking.error_types:
        error = speaking.error_frame(kind, "Out of order.", frames[:6])
        body = b"".join(frame.payload for frame in (*frames[:6], error))
        before = read(body, dialect, streamed=True)
        step = only_step(replayed([step_of(answer_of(body, streamed=True), dialect, ASKED, streamed=True)], dialect))
        assert step.fault is not None
        assert step.fault.kind == "error_event"
        assert read(struck(step, dialect), dialect, streamed=True).error == before.error
        assert before.error is not None


@pytest.mark.parametrize("dialect", NAMES)
@pytest.mark.parametrize("word", ERROR_WORDS)
def test_an_error_of_the_real_service_becomes_its_word(dialect: str, word: str) -> None:
    plain = DIALECTS[dialect].error(ERROR_WORDS[word], served(dialect))
    headers = {name: value for name, value in plain.headers if name not in ("retry-after", "x-should-retry")}
    step = only_step(
        replayed([step_of(Answer(plain.status, headers, plain.body), dialect, ASKED, streamed=False)], dialect)
    )
    assert isinstance(step.answer, ErrorReply)
    again = DIALECTS[dialect].error(step.answer, served(dialect))
    assert (again.status, json.loads(again.body)) == (plain.status, json.loads(plain.body))
    assert step.answer.word == word or step.answer.headers or step.answer.body


@pytest.mark.parametrize("dialect", NAMES)
@pytest.mark.parametrize(
    "answer",
    [
        Answer(503, {"content-type": "text/html", "retry-after": "3"}, b"<h1>{{model}} Bad gateway</h1>"),
        Answer(429, {**JSON, "retry-after": "7"}, b'{"error": {"code": "odd", "message": "Slow {model}."}}'),
        Answer(307, {"location": "/elsewhere"}, b""),
        Answer(200, JSON, b""),
        Answer(200, JSON, b'{"odd": 1}'),
        Answer(200, JSON, b"[" * 50),
        Answer(200, EVENTS, b"data: {broken\n\n"),
        Answer(200, {}, b"\xff\xfe"),
    ],
)
def test_what_is_no_reply_is_kept_as_it_came(dialect: str, answer: Answer) -> None:
    step = only_step(replayed([step_of(answer, dialect, ASKED, streamed=True)], dialect))
    assert isinstance(step.answer, ErrorReply)
    said = step.answer
    assert said.status == answer.status
    assert dict(said.headers).get("retry-after") == answer.headers.get("retry-after")
    assert dict(said.headers).get("location") == answer.headers.get("location")
    body = (said.body or "").replace("{{{{", "{{")
    assert body == answer.body.decode("utf-8", "replace")


@pytest.mark.parametrize("dialect", NAMES)
def test_a_whole_body_that_broke_off_is_promised_longer_than_it_comes(dialect: str) -> None:
    answer = Answer(200, JSON, b'{"id": "half', ended=False)
    step = only_step(replayed([step_of(answer, dialect, ASKED, streamed=False)], dialect))
    assert isinstance(step.answer, ErrorReply)
    assert isinstance(step.fault, WireFault)
    draft = Draft(200, (), (Frame("body", (step.answer.body or "").encode()),), streamed=False, transfer="length")
    sent = b"".join(one.payload for one in step.fault.strike(draft, DIALECTS[dialect]) if isinstance(one, Send))
    assert (sent, draft.body_bytes) == (answer.body, len(answer.body) + 1)


def test_no_answer_is_a_closed_connection() -> None:
    assert step_of(Answer(None, ended=False), "gemini", ASKED, streamed=True) == "close"


@pytest.mark.parametrize("dialect", ["anthropic_messages", "openai_responses"])
def test_blocks_that_are_the_service_s_own_pass_through(dialect: str) -> None:
    block = {"type": "web_search_call", "id": "ws_1", "status": "completed", "action": {"query": "x"}}
    reply = Reply((Opaque(block), Text("Found.", ({"type": "url_citation", "url": "u"},))), "end_turn")
    for streamed in (True, False):
        body = body_of(reply, dialect, streamed=streamed)
        step = only_step(
            replayed([step_of(answer_of(body, streamed=streamed), dialect, ASKED, streamed=streamed)], dialect)
        )
        assert isinstance(step.answer, Reply)
        assert step.answer.blocks == reply.blocks


def test_a_stream_without_counts_that_were_not_asked_for_counts_again() -> None:
    body = b'data: {"choices": [{"delta": {"content": "hi"}, "finish_reason": "stop"}]}\n\ndata: [DONE]\n\n'
    for wanted, usage in ((False, Usage()), (True, None)):
        assert READERS["openai_chat"].stream(event_data(body), Asked("m", wanted)).reply.usage == usage


def test_an_array_is_read_as_far_as_it_came() -> None:
    assert list(array_elements(b'[{"a": 1},\r\n{"b": [2]},\r\n{"c": ')) == [{"a": 1}, {"b": [2]}]
    assert list(event_data(b": ping\n\ndata: a\r\ndata: b\r\n\r\nevent: x\n\ndata: half")) == ["a\nb"]


def test_a_secret_stands_nowhere() -> None:
    step = {"status": {"message": "bad key sk-secret", "list": ["sk-secret!"]}}
    assert without_secrets(step, {"sk-secret"}) == {
        "status": {"message": "bad key [redacted]", "list": ["[redacted]!"]}
    }


def test_recordings_of_several_dialects_serve_all() -> None:
    assert replayed(["overloaded"], "gemini").dialects == ("gemini",)
    assert replayed(["overloaded"], "gemini", "openai_chat").dialects == tuple(DIALECTS)


def test_a_status_that_no_script_can_say_becomes_a_502_that_loads() -> None:
    step = step_of(
        Answer(700, {"content-type": "text/plain"}, b"odd"), "anthropic_messages", Asked("m"), streamed=False
    )
    assert step["status"]["code"] == 502
    assert "status 700" in step["status"]["body"]
