"""Scripts as people write them: every step's meaning, and every mistake as one sentence with file and line."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from fake_provider.dialects import Served
from fake_provider.dialects.anthropic_messages import AnthropicMessages
from fake_provider.document import DocumentError, parse_document
from fake_provider.faults import FAULTS
from fake_provider.faults.cut import CutFault
from fake_provider.faults.point import Point
from fake_provider.matchers import Condition, Pattern
from fake_provider.policies.insist import Insist
from fake_provider.policies.obedient import Obedient
from fake_provider.policies.quota import Quota
from fake_provider.policies.stubborn import Stubborn
from fake_provider.policies.summarise import Summarise
from fake_provider.policies.windowed import Windowed
from fake_provider.replies import (
    ERROR_WORDS,
    ErrorReply,
    Opaque,
    RedactedThinking,
    Reply,
    Text,
    Thinking,
    ToolUse,
    Usage,
)
from fake_provider.script import Lane, Script, load_script, parse_lanes
from fake_provider.steps import FAULT_SHORTHANDS, HoldStep, Repeat, Step, answers_at_least, in_order
from fake_provider.wire import Frame
from tests.fake_provider.scripts import script


def only_step(text: str) -> Step:
    [lane] = script(f"main:\n  - {text}").lanes
    [step] = lane.steps
    assert isinstance(step, Step)
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
        ("close", "close", Reply((), "end_turn")),
        ("cut: {event: start}", "cut", Reply((), "end_turn")),
        ("{say: hi, stall: {event: text}}", "say", Reply((Text("hi"),), "end_turn")),
        ("error: overloaded", "overloaded", ERROR_WORDS["overloaded"]),
        ("{error: overloaded, name: busy}", "busy", ERROR_WORDS["overloaded"]),
        ("status: 503", "status 503", ErrorReply(503, "api_error", "scripted api_error")),
        ("{say: hi, usage: none}", "say", Reply((Text("hi"),), "end_turn", None)),
        ("{say: hi, stop_sequence: END}", "say", Reply((Text("hi"),), "stop_sequence", stop_sequence="END")),
        (
            "{say: hi, redacted_thinking: abc, citations: [{a: 1}]}",
            "say",
            Reply((RedactedThinking("abc"), Text("hi", ({"a": 1},))), "end_turn"),
        ),
        ("block: {type: x, n: 1}", "block", Reply((Opaque({"type": "x", "n": 1}),), "end_turn")),
        (
            "calls: [a, {call: b, with: {x: 1}, id: toolu_b}]",
            "call a, b",
            Reply((ToolUse("a"), ToolUse("b", {"x": 1}, "toolu_b")), "tool_use"),
        ),
        (
            '{call: t, arguments: "{broken", split_at: [1, 4]}',
            "call t",
            Reply((ToolUse("t", arguments="{broken", split_at=(1, 4)),), "tool_use"),
        ),
        (
            (
                "reply: {blocks: [{redacted_thinking: d}, {text: x, citations: [{a: 1}]}, {block: {type: y}}, "
                "{tool_use: {name: t, arguments: '[]', split_at: [1]}}], usage: none}"
            ),
            "reply",
            Reply(
                (
                    RedactedThinking("d"),
                    Text("x", ({"a": 1},)),
                    Opaque({"type": "y"}),
                    ToolUse("t", arguments="[]", split_at=(1,)),
                ),
                "tool_use",
                None,
            ),
        ),
        (
            "stubborn: {call: t, id: toolu_x, until: success, at_most: 2}",
            "stubborn t",
            Stubborn(ToolUse("t", id="toolu_x"), 2, until_success=True),
        ),
        ("obedient:", "obedient", Obedient()),
        ("obedient: {at_most: 3}", "obedient", Obedient(3)),
        ("windowed: {tokens: 9, steps: [overloaded]}", "windowed", Windowed(9)),
        ("quota: {requests_per_minute: 2, steps: [overloaded]}", "quota", Quota(2)),
        (
            "summarise: {when: {has_tools: false}, leave_out: [deploy, files]}",
            "summarise",
            Summarise((Condition("has_tools", wanted=False),), frozenset({"deploy", "files"})),
        ),
    ],
)
def test_a_step_is_read(text: str, label: str, answer: object) -> None:
    step = only_step(text)
    assert (step.label, step.answer) == (label, answer)


def test_times_repeats_a_step_without_writing_it_out() -> None:
    [lane] = script("main: [{say: a, times: 3000000000}, overloaded]").lanes
    say = Step("say", Reply((Text("a"),), "end_turn"))
    assert lane.steps == (Repeat((say,), 3_000_000_000), Step("overloaded", ERROR_WORDS["overloaded"]))
    assert [step.label for step in in_order(lane.steps, 2)] == ["say", "say", "overloaded"]
    assert answers_at_least(lane.steps) == 3_000_000_001


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


LAUGHS = "main:\n" + "\n".join(
    f"  - &r{level} {{repeat: {{times: 1, steps: [{', '.join([f'*r{level - 1}'] * 9 if level else ['close'])}]}}}}"
    for level in range(8)
)
"""Nine steps of nine steps of nine …: a short text that means millions of steps."""

MISTAKES = [
    ("main: [overlaoded]", "1: unknown step 'overlaoded'; did you mean 'overloaded'? Allowed: "),
    ("main:\n  - sya: hi", "2: unknown key 'sya' in step; did you mean 'say'? Allowed: "),
    ("main:\n  - 7", "2: expected a step as a word or a mapping, found a whole number 7 (in main[0])"),
    (
        "main:\n  - think: hm",
        (
            "2: step has none of block, call, calls, error, insist, obedient, quota, repeat, reply, say, status, "
            "stubborn, summarise, windowed (in main[0])"
        ),
    ),
    (
        "main:\n  - say: hi\n    with: {}",
        (
            "3: key 'with' cannot stand beside 'say' in step. "
            "Allowed: block, citations, close, cut, error_event, expect_request, fault, forever, hold, name, "
            "redacted_thinking, reset, say, serving_model, stall, stop_reason, stop_sequence, think, times, usage"
        ),
    ),
    (
        "main:\n  - status: {code: 500}\n    say: hi",
        (
            "3: key 'say' cannot stand beside 'status' in step. Allowed: close, cut, error_event, expect_request, "
            "fault, forever, hold, name, reset, stall, status, times"
        ),
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
        (
            "2: expected a block with one of text (and its citations), thinking (and its signature), "
            "redacted_thinking, tool_use, block"
        ),
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
            "4: fault 'cut' cannot be reached in step 'status 500': "
            "the reply is not streamed, so its only event is 'body' and 'ping' is none"
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
    ("main:\n  - error: overlaoded", "2: unknown error 'overlaoded'; did you mean 'overloaded'? Allowed: "),
    ("main:\n  - say: hi\n    cut: {event: start}\n    fault: close", "3: a step has one fault, found cut, fault"),
    ("main:\n  - cut", "2: cut has no 'event'"),
    ("main:\n  - cut: {event: text}", "2: fault 'cut' cannot be reached in step 'cut': the reply has no event 'text'."),
    ("main:\n  - {call: t, with: {}, arguments: x}", "2: 'arguments' is the raw text of what 'with' says as data;"),
    ("main:\n  - {call: t, split_at: [2, 1]}", "2: the positions of split_at go up, each once"),
    ("main:\n  - {call: t, split_at: [2]}", "2: the arguments are 2 characters long, so no piece begins at 2"),
    ("main:\n  - calls: []", "2: calls is empty; at least one is needed"),
    ("main:\n  - {calls: [a], call: b}", "2: key 'call' cannot stand beside 'calls' in step."),
    ("main:\n  - {call: a, citations: []}", "2: citations belong to a text, and this step has no 'say'"),
    ("main:\n  - {say: a, citations: [x]}", "2: expected citation as a mapping, found text 'x'"),
    ("main:\n  - {say: a, usage: nonw}", "2: expected token counts as a mapping, or the word none, found text 'nonw'"),
    ("main:\n  - block: 7", "2: expected block as a mapping, found a whole number 7"),
    ("main:\n  - {say: hi, times: 2, forever: true}", "2: 'times' and 'forever' exclude each other"),
    (
        "main:\n  - {say: hi, forever: true}\n  - say: no",
        "3: this step can never be reached: the one before it goes on",
    ),
    ("main:\n  - obedient:\n  - say: no", "3: this step can never be reached: the one before it goes on for ever"),
    (
        "main:\n  - windowed: {tokens: 9, steps: [{repeat: {forever: true, steps: [overloaded]}}]}\n  - say: no",
        "3: this step can never be reached",
    ),
    ("main:\n  - repeat: {steps: [overloaded]}", "2: repeat has neither 'times: NUMBER' nor 'forever: true'"),
    ("main:\n  - repeat: {times: 2, steps: []}", "2: repeat has no steps; at least one is needed"),
    ("main:\n  - repeat: {times: 2, setps: []}", "2: unknown key 'setps' in repeat; did you mean 'steps'?"),
    (
        "main:\n  - repeat: {times: 2, steps: [close]}\n    say: hi",
        "3: key 'say' cannot stand beside 'repeat' in step.",
    ),
    (
        "main:\n  - repeat:\n      forever: true\n      steps: [close]\n      then: [close]",
        "5: 'then' can never be reached: the steps before it go on for ever",
    ),
    ("main:\n  - hold: gate", "2: hold 'gate' has no step after it that answers once it is released"),
    ("main:\n  - hold: a\n  - hold: b\n  - close", "3: hold 'b' follows another hold; put a step between them"),
    ("main:\n  - hold: a\n  - {say: hi, hold: b}", "3: hold 'a' stands before a step that has a hold of its own"),
    (
        "main:\n  - hold: a\n  - repeat: {times: 2, steps: [close, overloaded]}",
        "3: hold 'a' cannot stand before steps that hold steps; put it inside",
    ),
    ("main:\n  - {say: hi, hold: ''}", "2: a hold needs a name to be released by"),
    ("main:\n  - {say: hi, hold: {name: a, nth: 2}}", "2: 'nth' counts events, and this hold has no 'event'"),
    (
        "main:\n  - {say: hi, hold: {name: a, event: txt}}",
        "2: hold 'a' cannot be reached in step 'say': the reply has no event 'txt'. Its events: ",
    ),
    (
        "main:\n  - {say: hi, hold: {name: a, event: text, nth: 2}}",
        "2: hold 'a' cannot be reached in step 'say': the reply has 1 'text' events, so there is no number 2",
    ),
    ("main:\n  - windowed: {tokens: 9}", "2: windowed has no 'steps'. Required: steps, tokens"),
    ("main:\n  - windowed: {tokens: 9, steps: []}", "2: windowed has no steps; at least one is needed"),
    (
        "main:\n  - windowed: {tokens: 9, steps: [close]}\n    cut: {event: start}",
        "3: key 'cut' cannot stand beside 'wi",
    ),
    ("main:\n  - quota: {steps: [close]}", "2: quota has none of requests_per_minute, tokens_per_minute; it needs one"),
    ("main:\n  - insist: {call: t, then: 'a {{model}}'}", "2: 'insist' takes no values from the request; say, call, "),
    (
        "main:\n  - say: a {{modle}}",
        "2: unknown value 'modle' between braces; did you mean 'model'? Allowed: header.NAME, ",
    ),
    ("main:\n  - {call: t, with: {a: [{b: '{{}}'}]}}", "2: unknown value '' between braces. Allowed: "),
    ("main:\n  - say: a {{header.}}", "2: unknown value 'header.' between braces; did you mean 'header.NAME'?"),
    (
        "main:\n  - {say: a, expect_request: {}}",
        "2: expect_request expects nothing. Allowed: any_text_contains, dialect, ",
    ),
    (
        "main:\n  - {say: a, expect_request: {modle: x}}",
        "2: unknown key 'modle' in expect_request; did you mean 'model'?",
    ),
    (LAUGHS, "1: it holds more than 200000 values, or an alias that stands inside itself"),
    ("main: {match: {message_count: {min: 3, max: 2}}, steps: []}", "1: nothing lies between min 3 and max 2"),
    ("main: {match: {message_count: {}}, steps: []}", "1: bounds have a 'min', a 'max', or both"),
    ("main: {match: {dialect: anthropic}, steps: []}", "1: unknown dialect 'anthropic'"),
    ("main: {match: {text: '/a{99999999999}/'}, steps: []}", "1: not a valid regular expression: "),
    ("main: {match: {text: '/[[a]/'}, steps: []}", "1: not a valid regular expression: "),
    ("main:\n  - {say: a, times: 99999999999999999999}", "2: expected a whole number from -9223372036854775808 to "),
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
        ("anthropic_messages",), 900, (Lane("main", (), (Step("overloaded", ERROR_WORDS["overloaded"]),)),)
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("lanes: {main: []}\nwindow: 3", "2: unknown key 'window' in script; did you mean 'window_tokens'? Allowed: "),
        ("dialect: anthropic", "1: script has no 'lanes'. Required: lanes"),
        ("dialect: x\nlanes: {main: []}", "1: unknown dialect 'x'. Allowed: anthropic_messages"),
        ("dialect: [anthropic_messages, gemin]\nlanes: {main: []}", "1: unknown dialect 'gemin'"),
        ("dialect: []\nlanes: {main: []}", "1: dialect is an empty list; leave it out to serve all"),
        ("flush: evnt\nlanes: {main: []}", "1: unknown way to flush 'evnt'; did you mean 'event'? Allowed: "),
        ("strict: 1\nlanes: {main: []}", "1: expected true or false, found a whole number 1 (in strict)"),
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
    answers = [step.answer for step in in_order(renamed.lanes[0].steps, 1)]
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


def test_then_follows_a_repeat() -> None:
    [lane] = script("main: [{repeat: {times: 2, steps: [overloaded], then: [{say: a}]}}]").lanes
    assert lane.steps == script("main: [{repeat: {times: 2, steps: [overloaded]}}, {say: a}]").lanes[0].steps


def test_repeats_are_not_nested_without_end() -> None:
    text = "main: [" + "{repeat: {times: 1, steps: [" * 21 + "close" + "]}}" * 21 + "]"
    with pytest.raises(DocumentError, match="nested more than 20 levels deep"):
        script(text)


def test_a_hold_alone_belongs_to_the_first_play_of_the_next_step() -> None:
    [lane] = script("main: [{hold: gate}, {say: a, times: 3}]").lanes
    say = Step("say", Reply((Text("a"),), "end_turn"))
    assert lane.steps == (replace(say, hold=HoldStep("gate")), Repeat((say,), 2))
    assert script("main: [{hold: gate}, {say: a, times: 1}]").lanes[0].steps == (replace(say, hold=HoldStep("gate")),)


@pytest.mark.parametrize("word", FAULT_SHORTHANDS)
def test_every_shorthand_is_a_fault(word: str) -> None:
    assert word in FAULTS
    settings = "{}" if word == "close" else "{event: text}"
    step = only_step(f"{{say: hi, {word}: {settings}}}")
    assert step.fault is not None
    assert step.fault.kind == word


class Picky(AnthropicMessages):
    """A dialect that cannot say texts, and that calls its events otherwise."""

    name = "picky"

    def unsayable(self, reply: Reply) -> str | None:
        return "it has no texts" if any(isinstance(block, Text) for block in reply.blocks) else None

    def frames(self, reply: Reply, served: Served) -> tuple[Frame, ...]:
        return tuple(replace(frame, name="event") for frame in super().frames(reply, served))


BOTH = ["anthropic_messages", "picky"]


@pytest.mark.parametrize(
    ("step", "reason"),
    [
        ("say: hi", "step 'say' cannot be said: in picky, it has no texts"),
        (
            "{call: t, cut: {event: event}}",
            "fault 'cut' cannot be reached in step 'call t': in anthropic_messages, the reply has no event 'event'.",
        ),
        (
            "{call: t, hold: {name: a, event: message_stop}}",
            "hold 'a' cannot be reached in step 'call t': in picky, the reply has no event 'message_stop'.",
        ),
    ],
)
def test_listed_dialects_all_have_to_work_and_otherwise_one(
    step: str, reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fake_provider.steps.DIALECTS", {"anthropic_messages": AnthropicMessages(), "picky": Picky()})
    monkeypatch.setattr("fake_provider.script.DIALECTS", {"anthropic_messages": AnthropicMessages(), "picky": Picky()})
    with pytest.raises(DocumentError) as error:
        script(f"main: [{step}]", BOTH)
    assert reason in str(error.value)
    assert script(f"main: [{step}]", None).dialects == tuple(BOTH)


def test_what_no_dialect_can_do_is_refused_without_a_list_too() -> None:
    with pytest.raises(DocumentError, match=r"fault 'cut' cannot be reached in step 'say': .*no event 'x'"):
        script("main: [{say: hi, cut: {event: x}}]", None)


def test_a_fault_in_a_reply_with_values_is_left_to_the_run() -> None:
    assert only_step("{say: 'hi {{model}}', cut: {event: content_block_delta, nth: 9}}").templated


def test_steps_are_values() -> None:
    step = only_step("say: hi")
    assert replace(step, label="say") == step
