"""The parts of the fuzzing: each a claim about the provider that must hold for every case of its strategies."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from hypothesis import strategies as st

from fake_provider.dialects import DIALECTS, Dialect, RefusedRequestError, Served
from fake_provider.document import DocumentError, Node, Place, parse_document
from fake_provider.faults import ReplyFault, read_fault
from fake_provider.inbound import Garbage, RequestReader, Signal
from fake_provider.replies import ERROR_WORDS, Reply
from fake_provider.requests import ModelRequest, Received
from fake_provider.script import Script, parse_lanes, parse_script
from fake_provider.wire import Action, Draft, Fired, Framing, SendFill, SendHead, settled
from tests.fake_provider.test_script_property import DATA, SCRIPTS, WORDS
from tests.fuzz import bodies, byte_streams, faulty_replies
from tests.fuzz.conversation import LEAVINGS, Heard, converse
from tests.fuzz.http_replies import replies

WINDOW_TOKENS = 200_000


@dataclass(frozen=True)
class Part:
    """One part.

    Attributes:
        name: For the command line.
        claim: What holds for every case.
        check: Raises where it does not.
        strategies: The cases: a strategy for each argument of ``check``.
        cases: How many there are in a whole run.
    """

    name: str
    claim: str
    check: Callable[..., None]
    strategies: Mapping[str, st.SearchStrategy[Any]]
    cases: int


def _lanes(text: str) -> Script:
    return parse_lanes(parse_document(text, "script.yaml"))


STEADY = _lanes("main: [{say: 'Grüße.', forever: true}]")
CHANGING = _lanes(
    """
    hot: {match: {model: m}, steps: [{say: first}, {say: steady, forever: true}]}
    main:
      - {say: one, times: 2}
      - {call: deploy, with: {release: 7}}
      - overloaded
      - insist: {call: deploy, at_most: 2}
      - {say: again, forever: true}
    """
)
TALKING = {"steady": STEADY, "changing": CHANGING}


def parser_takes_anything(pieces: list[bytes]) -> None:
    """The parser takes any bytes, and how they are cut changes nothing."""
    assert _parsed(pieces) == _parsed([b"".join(pieces)])


def _parsed(pieces: list[bytes]) -> list[Any]:
    reader = RequestReader()
    outcomes: list[Any] = []
    for piece in [*pieces, b""]:
        reader.feed(piece)
        while True:
            outcome = reader.poll()
            if outcome is Signal.NEEDS_DATA:
                break
            if isinstance(outcome, Signal) and outcome is not Signal.ENDED:
                continue
            outcomes.append(outcome)
            if isinstance(outcome, Garbage) or outcome is Signal.ENDED:
                return outcomes
    raise AssertionError("the end was never reached")


def connection_takes_anything(script: str, pieces: list[bytes], leaving: str) -> None:
    """A connection answers or refuses all that is sent, journals it, and ends; its replies are proper HTTP."""
    heard = converse(TALKING[script], pieces, leaving=leaving)
    _sound(heard)
    received = [entry for entry in heard.entries if entry["entry"] == "RequestReceived"]
    said = replies(heard.data, [entry["method"] for entry in received])
    assert not [reply for reply in said if reply.status >= 500 and reply.status not in (501, 505, 529, 503)]
    if leaving == "eof":
        assert len(said) == len(received) + heard.count("GarbageReceived")
        assert all(reply.whole for reply in said)


def _sound(heard: Heard) -> None:
    """A journal tells of each request once, how it was answered, and last of the end of the connection."""
    started = {entry["request"] for entry in heard.entries if entry["entry"] == "RequestReceived"}
    ended = [entry["request"] for entry in heard.entries if entry["entry"] == "ReplyEnded"]
    assert sorted(ended) == sorted(started) == list(range(1, len(started) + 1))
    assert heard.entries[0]["entry"] == "ConnectionOpened"
    assert heard.entries[-1]["entry"] == "ConnectionClosed"
    assert heard.count("ConnectionClosed") == 1
    assert heard.count("GarbageReceived") <= 1


def bodies_are_decoded_or_refused(asked: tuple[str, Received]) -> None:
    """A dialect decodes a body, or refuses it in its own words; it fails in no other way."""
    name, received = asked
    dialect = DIALECTS[name]
    unserved = Served("", dialect.request_id(1), "", 0, WINDOW_TOKENS)
    assert next(known for known in DIALECTS.values() if known.claims(received)) is dialect
    refusal = dialect.unauthenticated(received)
    if refusal is not None:
        assert json.loads(dialect.error(refusal, unserved).body)
    try:
        request = dialect.decode(received)
        problems = dialect.problems(request, WINDOW_TOKENS)
    except RefusedRequestError as refused:
        problems = refused.problems
        assert problems
    else:
        _answered(dialect, request)
    for problem in problems:
        plain = dialect.refusal(problem, unserved)
        assert 400 <= plain.status < 500
        assert json.loads(plain.body)
        assert problem.rule
        assert problem.message


def _answered(dialect: Dialect, request: ModelRequest) -> None:
    """A decoded request can be looked at and answered in every way."""
    hash(dialect.repeated(request))
    assert request.estimated_tokens >= 0
    assert isinstance(request.last_user_text, str)
    assert request.tool_results is not None
    assert request.tool_calls is not None
    served = _served(dialect, request)
    for text in ("", "Hello."):
        reply = parse_say(text)
        assert json.loads(dialect.whole(reply, served).body)
        assert b"".join(frame.payload for frame in dialect.frames(reply, served))
    for error in ERROR_WORDS.values():
        assert json.loads(dialect.error(error, served).body)
    for name, value in dialect.stream_headers(served):
        assert f"{name}: {value}".encode("latin-1")


def parse_say(text: str) -> Reply:
    """Return the reply that a step ``say`` means."""
    [lane] = _lanes(json.dumps({"main": [{"say": text}]})).lanes
    answer = lane.steps[0].answer  # type: ignore[union-attr]
    assert isinstance(answer, Reply)
    return answer


def _served(dialect: Dialect, request: ModelRequest) -> Served:
    return Served(
        dialect.message_id(1, 1),
        dialect.request_id(1),
        request.model,
        request.estimated_tokens,
        WINDOW_TOKENS,
        request.body,
    )


def _loaded(read: Callable[[], Node]) -> Script | None:
    try:
        return parse_script(read())
    except DocumentError as error:
        refusal = str(error)
    assert refusal.startswith("script.yaml:")
    assert "\n" not in refusal
    return None


def texts_load_or_are_refused(text: str) -> None:
    """Any text is a script, or is refused in one sentence that names the place."""
    _loaded(lambda: parse_document(text, "script.yaml"))


def scripts_are_played(written: dict[str, Any], pieces: list[bytes], leaving: str) -> None:
    """A script that loads answers whatever requests come, and its journal is sound."""
    script = _loaded(lambda: Node(written, Place("script.yaml", 1), ""))
    if script is None:
        return
    if script.listen.tls is not None:
        script = replace(script, listen=replace(script.listen, tls=None))
    _sound(converse(script, pieces, leaving=leaving))


def faults_can_be_encoded(
    reply: Reply, settings: dict[str, Any], headers: Mapping[str, str], *, stream: bool, chunks: bool
) -> None:
    """A fault says that it cannot strike, or what happens, and all of that can be sent."""
    try:
        fault = read_fault(Node(settings, Place("script.yaml", 1), "fault"))
    except DocumentError:
        return
    for name, dialect in DIALECTS.items():
        served = Served(dialect.message_id(1, 1), dialect.request_id(1), "m", 7, WINDOW_TOKENS, bodies.VALID[name])
        if dialect.unsayable(reply) is not None:
            continue
        said = reply
        if isinstance(fault, ReplyFault):
            if fault.unsayable(reply) is not None:
                continue
            said = fault.reshape(reply)
            if dialect.unsayable(said) is not None:
                continue
        received = Received("POST", bodies.PATHS[name][0], "", headers, b"{}")
        draft = _draft(dialect, said, served, received, stream=stream, chunks=chunks)
        if isinstance(fault, ReplyFault):
            _sent(draft.actions())
        elif fault.unreachable(draft) is None:
            actions = fault.strike(draft, dialect)
            assert sum(isinstance(action, Fired) for action in actions) == 1
            _sent(actions)


def _draft(dialect: Dialect, reply: Reply, served: Served, received: Received, *, stream: bool, chunks: bool) -> Draft:
    if not stream:
        return Draft.of_plain(dialect.whole(reply, served), chunks=chunks, request=received)
    frames = settled(dialect.frames(reply, served))
    transfer = "chunked" if chunks else "until_close"
    return Draft(200, dialect.stream_headers(served), frames, True, transfer, chunks, received)  # type: ignore[arg-type]


def _sent(actions: tuple[Action, ...]) -> bytes:
    framing = Framing(keep_alive=True, with_body=True, chunked=False)
    sent = bytearray()
    for action in actions:
        if isinstance(action, SendFill):
            assert action.pieces >= 0
            sent += framing.body(action.piece(0)) + framing.body(action.piece(max(0, action.pieces - 1)))
        else:
            sent += framing.encode(action)
    if any(isinstance(action, SendHead) for action in actions):
        assert sent.startswith(b"HTTP/1.")
    return bytes(sent)


def memory_changes_nothing(script: str, pieces: list[bytes]) -> None:
    """What the provider remembers, and how the bytes come, makes no difference to its replies and its journal."""
    pieces = [byte_streams.HOT_REQUEST] * 3 + pieces
    remembered = converse(TALKING[script], pieces)
    forgotten = converse(TALKING[script], pieces, recall=False)
    assert forgotten.at_once == 0
    assert (remembered.data, remembered.entries) == (forgotten.data, forgotten.entries)
    if not any(b"100-continue" in piece for piece in pieces):
        together = converse(TALKING[script], [b"".join(pieces)], reads_apart=False)
        # Who ended the connection first is a matter of time.
        assert (remembered.data, remembered.entries[:-1]) == (together.data, together.entries[:-1])


PIECES = byte_streams.pieces()
GOOD_PIECES = byte_streams.pieces(byte_streams.GOOD)
WHICH = st.sampled_from(sorted(TALKING))
FAULTY = st.fixed_dictionaries({"say": st.just("Hello, wörld."), "fault": faulty_replies.fault_settings()})
FAULTY_SCRIPTS = st.lists(FAULTY, min_size=1, max_size=3).map(lambda steps: {"lanes": {"main": steps}})

PARTS: Mapping[str, Part] = {
    part.name: part
    for part in (
        Part(
            "parser",
            "any bytes are parsed or refused, however they are cut",
            parser_takes_anything,
            {"pieces": PIECES},
            30_000,
        ),
        Part(
            "connection",
            "any bytes on a connection are answered in proper HTTP and journalled",
            connection_takes_anything,
            {"script": WHICH, "pieces": PIECES, "leaving": st.sampled_from(LEAVINGS)},
            12_000,
        ),
        Part(
            "bodies",
            "any body is decoded, or refused in the dialect's words",
            bodies_are_decoded_or_refused,
            {"asked": bodies.received()},
            28_000,
        ),
        Part(
            "texts",
            "any text is a script, or is refused with its place",
            texts_load_or_are_refused,
            {
                "text": st.text(max_size=60)
                | st.lists(st.sampled_from(WORDS) | st.sampled_from("{}[]:,-&*!|>#'\"%@\n "), max_size=40).map("".join)
                | SCRIPTS.map(json.dumps)
                | DATA.map(json.dumps)
            },
            10_000,
        ),
        Part(
            "scripts",
            "any script that loads is played, whatever is sent",
            scripts_are_played,
            {
                "written": SCRIPTS | FAULTY_SCRIPTS | FAULTY_SCRIPTS,
                "pieces": GOOD_PIECES,
                "leaving": st.sampled_from(LEAVINGS),
            },
            5_000,
        ),
        Part(
            "faults",
            "any fault in any reply of any dialect can be sent, or says why not",
            faults_can_be_encoded,
            {
                "reply": faulty_replies.REPLIES,
                "settings": faulty_replies.fault_settings(),
                "headers": st.sampled_from([{}, {"accept-encoding": "gzip, br"}, {"connection": "close", "host": "h"}]),
                "stream": st.booleans(),
                "chunks": st.booleans(),
            },
            14_000,
        ),
        Part(
            "memory",
            "what is remembered changes no reply and no entry",
            memory_changes_nothing,
            {"script": WHICH, "pieces": PIECES},
            2_000,
        ),
    )
}
"""Every part by its name."""
