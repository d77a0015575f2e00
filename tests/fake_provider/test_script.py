"""Scripts as people write them: every step's meaning, and every mistake as one sentence with file and line."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from fake_provider.document import DocumentError, parse_document
from fake_provider.faults.cut import CutFault
from fake_provider.faults.point import Point
from fake_provider.matchers import Condition, Pattern
from fake_provider.replies import ERROR_WORDS, ErrorReply, Reply, Text, Thinking, ToolUse, Usage
from fake_provider.script import Lane, Script, load_script, parse_lanes
from fake_provider.policies.insist import Insist
from fake_provider.steps import Repeat, Step
from tests.fake_provider.scripts import script


def only_step(text: str) -> Step:
    [lane] = script(f"main:\n  - {text}").lanes
    [step] = lane.steps
    return step


@pytest.mark.parametrize("word", ERROR_WORDS)
def test_a_word_is_an_error_status(word: str) -> None:
    step = only_step(word)
    assert step.label == word
    assert step.answer == ERROR_WORDS[word]


@pytest.mark.parametrize(
    ("text", "label", "answer"),
    [
        ("say: hi", "say", Reply((Text("hi"),), "end_turn")),
        ("{say: hi, think: hm}", "say", Reply((Thinking("hm"), Text("hi")), "end_turn")),
        ("{call: t}", "call t", Reply((ToolUse("t"),), "tool_use")),
        (
            "{call: t, with: {a: [1, 2.5, null]}, id: toolu_x, say: hi, stop_reason: max_tokens, serving_model: m2}",
            "call t",
            Reply((Text("hi"), ToolUse("t", {"a": [1, 2.5, None]}, "toolu_x")), "max_tokens", model="m2"),
        ),
        (
            "{say: hi, usage: {input_tokens: 3, cache_read_input_tokens: 4}, name: greeting}",
            "greeting",
            Reply((Text("hi"),), "end_turn", Usage(input_tokens=3, cache_read_input_tokens=4)),
        ),
        (
            "reply: {blocks: [{thinking: hm, signature: s}, {tool_use: {name: a}}, {text: x}], model: m}",
            "reply",
            Reply((Thinking("hm", "s"), ToolUse("a"), Text("x")), "tool_use", model="m"),
        ),
        ("reply: {blocks: [], stop_reason: refusal}", "reply", Reply((), "refusal")),
        (
            "insist: {call: deploy, with: {release: 7}, until: success, at_most: 2, then: All set.}",
            "insist deploy",
            Insist(ToolUse("deploy", {"release": 7}), 2, "All set."),
        ),
        ("insist: {call: deploy}", "insist deploy", Insist(ToolUse("deploy"), 4, "Done.")),
        ("status: {code: 503}", "status 503", ErrorReply(503, "api_error", "scripted api_error")),
        (
            'status: {code: 429, type: t, message: m, headers: {Retry-After: "1"}}',
            "status 429",
            ErrorReply(429, "t", "m", (("retry-after", "1"),)),
        ),
        (
            'status: {code: 200, body: "", content_type: text/html}',
            "status 200",
            ErrorReply(
                200, "invalid_request_error", "scripted invalid_request_error", body="", content_type="text/html"
            ),
        ),
        ("fault: close", "close", Reply((), "end_turn")),
    ],
)
def test_a_step_is_read(text: str, label: str, answer: object) -> None:
    step = only_step(text)
    assert (step.label, step.answer) == (label, answer)


def test_times_repeats_a_step() -> None:
    [lane] = script("main: [{say: a, times: 3}, overloaded]").lanes
    assert [step.label for step in lane.steps] == ["say", "say", "say", "overloaded"]


def test_a_fault_is_read_with_its_place() -> None:
    step = only_step("{say: hi, fault: {cut: {event: ping, byte: 3}}}")
    assert step.fault == CutFault(Point("ping", 1, 3))
    assert str(step.fault_place) == "script.yaml:2"


def test_lanes_have_matchers_in_the_order_of_the_file() -> None:
    read = script("""
        titles:
          match: {model: /haiku/, header: {X-App: cli}, has_tools: false, system_contains: title}
          steps: [{say: A title}]
        main: [{say: hi}]
    """)
    assert [lane.name for lane in read.lanes] == ["titles", "main"]
    assert read.lanes[0].matcher == (
        Condition("model", Pattern("/haiku/")),
        Condition("header", Pattern("cli"), "x-app"),
        Condition("has_tools", wanted=False),
        Condition("system_contains", "title"),
    )
    assert read.lanes[1].matcher == ()


MISTAKES = [
    ("main: [overlaoded]", "1: unknown step 'overlaoded'; did you mean 'overloaded'? Allowed: "),
    ("main:\n  - sya: hi", "2: unknown key 'sya' in step; did you mean 'say'? Allowed: "),
    ("main:\n  - 7", "2: expected a step as a word or a mapping, found a whole number 7 (in main[0])"),
    ("main:\n  - think: hm", "2: step has none of call, insist, reply, say, status (in main[0])"),
    ("main:\n  - fault: {cut: {event: ping}}", "2: step has none of call, insist, reply, say, status (in main[0])"),
    (
        "main:\n  - say: hi\n    with: {}",
        (
            "3: key 'with' cannot stand beside 'say' in step. "
            "Allowed: fault, name, say, serving_model, stop_reason, think, times, usage"
        ),
    ),
    (
        "main:\n  - status: {code: 500}\n    say: hi",
        "3: key 'say' cannot stand beside 'status' in step. Allowed: fault, name, status, times",
    ),
    ("main:\n  - call: t\n    with: x", "3: expected tool arguments as a mapping, found text 'x' (in main[0].with)"),
    ("main:\n  - say: hi\n    times: 0", "3: expected a whole number of at least 1, found 0 (in main[0].times)"),
    (
        "main:\n  - say: hi\n    stop_reason: end_trun",
        "3: unknown stop reason 'end_trun'; did you mean 'end_turn'? Allowed: ",
    ),
    ("main:\n  - say: hi\n    usage: {tokens: 3}", "3: unknown key 'tokens' in usage"),
    ("main:\n  - reply: {blocks: [{txt: hi}]}", "2: unknown key 'txt' in block; did you mean 'text'? Allowed: "),
    (
        "main:\n  - reply: {blocks: [{}]}",
        "2: expected a block with one of text, thinking (and its signature), tool_use",
    ),
    ("main:\n  - status: {}", "2: status has no 'code'. Required: code (in main[0].status)"),
    (
        "main:\n  - status: {code: 700}",
        "2: expected an HTTP status from 200 to 599, found 700 (in main[0].status.code)",
    ),
    (
        "main:\n  - status: {code: 200}",
        "2: status 200 is no error, so it needs a 'body' (an empty one is allowed) (in main[0].status)",
    ),
    (
        'main:\n  - status: {code: 500, headers: {a: "x\\ny"}}',
        "2: header 'a' holds a character that HTTP cannot send: '\\n' (in main[0].status.headers.a)",
    ),
    (
        "main:\n  - status: {code: 500, headers: {a: ü€}}",
        "2: header 'a' holds a character that HTTP cannot send: '€' (in main[0].status.headers.a)",
    ),
    (
        "main:\n  - status: {code: 500, headers: {a b: c}}",
        "2: 'a b' is no header name (in main[0].status.headers.a b)",
    ),
    ("main:\n  - insist: {with: {}}", "2: insist has no 'call'. Required: call (in main[0].insist)"),
    ("main:\n  - insist: {call: t, until: failure}", "2: unknown end of insist 'failure'. Allowed: success"),
    ("main:\n  - say: hi\n    fault: cutt", "3: unknown fault 'cutt'; did you mean 'cut'? Allowed: "),
    ("main:\n  - say: hi\n    fault:\n      cutt: {}", "4: unknown fault 'cutt'; did you mean 'cut'? Allowed: "),
    ("main:\n  - say: hi\n    fault: {}", "3: expected one fault, found 0 (in main[0].fault)"),
    ("main:\n  - say: hi\n    fault: cut", "3: cut has no 'event'. Required: event (in main[0].fault.cut)"),
    (
        "main:\n  - say: hi\n    fault: {cut: {event: ping, byte: -1}}",
        "3: expected a whole number of at least 0, found -1",
    ),
    (
        "main:\n  - overloaded\n  - status: {code: 500}\n    fault: {cut: {event: ping}}",
        (
            "4: fault 'cut' cannot strike step 'status 500': it answers with a status, and a fault rewrites a reply. "
            "Allowed on: say, call, reply, insist"
        ),
    ),
    (
        "main:\n  - say: hi\n    fault: {cut: {event: content_block_delta, nth: 2}}",
        (
            "3: fault 'cut' cannot be reached in step 'say': "
            "the reply has 1 'content_block_delta' events, so there is no number 2"
        ),
    ),
    (
        "main:\n  - say: hi\n    fault: {stall: {event: delta}}",
        (
            "3: fault 'stall' cannot be reached in step 'say': the reply has no event 'delta'. "
            "Its events: message_start, content_block_start, ping, content_block_delta, content_block_stop, "
            "message_delta, message_stop"
        ),
    ),
    (
        "main:\n  - say: hi\n    fault: {reset: {event: ping, byte: 36}}",
        "3: fault 'reset' cannot be reached in step 'say': 'ping' number 1 is 35 bytes long, so there is no byte 36",
    ),
    (
        "main:\n  - insist: {call: t}\n    fault: {error_event: {event: content_block_delta, nth: 3}}",
        (
            "3: fault 'error_event' cannot be reached in step 'insist t': "
            "the reply has 2 'content_block_delta' events, so there is no number 3"
        ),
    ),
    ("{}", "1: expected at least one lane"),
    ("main: 7", "1: expected steps of lane 'main' as a list, found a whole number 7 (in main)"),
    ("main: {match: {model: a}}", "1: lane has no 'steps'. Required: steps (in main)"),
    (
        "main: []\nside: []",
        "2: lane 'side' can never be reached: 'main' is the default lane. Give it a 'match'",
    ),
    ("main: {match: {}, steps: []}", "1: match has no condition; leave it out to make this the default lane"),
    ("main: {match: {modell: a}, steps: []}", "1: unknown key 'modell' in match; did you mean 'model'? Allowed: "),
    ("main: {match: {stream: 1}, steps: []}", "1: expected true or false, found a whole number 1"),
    ("main: {match: {model: /(/}, steps: []}", "1: not a valid regular expression: "),
]


@pytest.mark.parametrize(("text", "message"), MISTAKES)
def test_a_mistake_is_one_sentence_with_file_and_line(text: str, message: str) -> None:
    with pytest.raises(DocumentError) as error:
        script(text)
    assert str(error.value).startswith(f"script.yaml:{message}")
    assert "\n" not in str(error.value)


def test_the_last_byte_of_an_event_can_be_reached() -> None:
    assert only_step("{say: hi, fault: {reset: {event: ping, byte: 35}}}").fault is not None


def test_a_script_file_names_dialect_and_window(tmp_path: Path) -> None:
    path = tmp_path / "s.yaml"
    path.write_text("window_tokens: 900\ndialect: anthropic_messages\nlanes: {main: [overloaded]}\n")
    read = load_script(path)
    assert read == Script(
        "anthropic_messages", 900, (Lane("main", (), (Step("overloaded", ERROR_WORDS["overloaded"]),)),)
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("lanes: {main: []}\nwindow: 3", "2: unknown key 'window' in script; did you mean 'window_tokens'? Allowed: "),
        ("dialect: anthropic", "1: script has no 'lanes'. Required: lanes"),
        ("dialect: x\nlanes: {main: []}", "1: unknown dialect 'x'. Allowed: anthropic_messages"),
        ("lanes: {main: [}", "1: not valid YAML: "),
        ("a: 1\na: 2", "2: not valid YAML: found duplicate key"),
    ],
)
def test_a_mistake_in_a_script_file_names_the_file(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "s.yaml"
    path.write_text(text)
    with pytest.raises(DocumentError) as error:
        load_script(path)
    assert str(error.value).startswith(f"{path}:{message}")


def test_a_missing_script_file_is_said(tmp_path: Path) -> None:
    with pytest.raises(DocumentError, match="cannot read the file: No such file or directory"):
        load_script(tmp_path / "none.yaml")


def prefixed(name: str, arguments: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    return f"mcp__effects__{name}", {"arguments": arguments}


def test_tools_are_renamed_in_every_kind_of_step() -> None:
    renamed = script("main: [{call: a, with: {x: 1}}, overloaded, {insist: {call: b}}, {say: hi}]").renamed_tools(
        prefixed
    )
    answers = [step.answer for step in renamed.lanes[0].steps]
    assert answers == [
        Reply((ToolUse("mcp__effects__a", {"arguments": {"x": 1}}),), "tool_use"),
        ERROR_WORDS["overloaded"],
        Insist(ToolUse("mcp__effects__b", {"arguments": {}})),
        Reply((Text("hi"),), "end_turn"),
    ]


def test_a_fault_that_renaming_makes_unreachable_is_refused() -> None:
    original = script(
        "main:\n  - call: a\n    with: {x: 123456789012}\n    fault: {cut: {event: content_block_delta, nth: 4}}"
    )
    assert original.renamed_tools(lambda name, arguments: (name.upper(), arguments)) != original
    with pytest.raises(DocumentError, match=r"script.yaml:4: fault 'cut' cannot be reached in step 'call a'"):
        original.renamed_tools(lambda name, arguments: (name, {}))


def test_a_lane_node_may_stand_deep_in_another_document() -> None:
    document = parse_document("id: x\nmodel:\n  main:\n    - sya: hi\n", "scenario.yaml")
    with pytest.raises(DocumentError, match=r"^scenario.yaml:4: unknown key 'sya' in step"):
        parse_lanes(document.entries("scenario")["model"], window_tokens=9)


def test_steps_are_values() -> None:
    step = only_step("say: hi")
    assert replace(step, label="say") == step
