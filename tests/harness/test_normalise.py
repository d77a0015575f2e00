"""Placeholders for what varies, and for nothing else: each rule with what it replaces and what it must leave alone.

A rule that replaces too little makes two runs of one behaviour look different; one that replaces too much hides a
difference in behaviour. Both are seen here, also inside JSON, where a line begins after an escaped line feed.
"""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.normalise import RULES, normalised, sandbox_literals

UUID = "0b0d3a52-7a43-4c1e-9d6f-0123456789ab"
OTHER = "0b0d3a52-7a43-4c1e-9d6f-0123456789ac"
SHA1 = "a" * 39 + "1"

# rule -> (text, what becomes of it)
REPLACED: dict[str, list[tuple[str, str]]] = {
    "uuid": [
        (UUID, "<uuid-1>"),
        (UUID.upper(), "<uuid-1>"),
        (f"{UUID} {OTHER} {UUID}", "<uuid-1> <uuid-2> <uuid-1>"),
        (f"session_{UUID}.jsonl", "session_<uuid-1>.jsonl"),
        (f"/{UUID}/", "/<uuid-1>/"),
    ],
    "timestamp": [
        ("2026-11-30T20:30:15Z", "<time>"),
        ("2026-11-30T20:30:15.123456+02:00 ok", "<time> ok"),
        ("2026-11-30 20:30:15,123 INFO", "<time> INFO"),
    ],
    "date": [("on 2026-11-30.", "on <date>."), ("2026/01/02", "<date>")],
    "measured number in JSON": [
        ('"duration_ms":12', '"duration_ms":0'),
        ('"duration_api_ms": 12.5', '"duration_api_ms": 0'),
        ('"durationMs":12', '"durationMs":0'),
        ('"elapsed":1e-05', '"elapsed":0'),
        ('"at_seconds":3.25', '"at_seconds":0'),
        ('"started_at":1764534615', '"started_at":0'),
        ('"tokens_per_second":80', '"tokens_per_second":0'),
        ('"ttft_ms":-1', '"ttft_ms":0'),
        ('{\\"duration_ms\\":12}', '{\\"duration_ms\\":0}'),
        ('{\\\\\\"duration_ms\\\\\\":12}', '{\\\\\\"duration_ms\\\\\\":0}'),
    ],
    "process id": [("pid 4711", "pid 0"), ('"pid": 4711', '"pid": 0'), ("PID=4711", "PID=0")],
    "sha1-sized id": [(SHA1, "<hex40-1>"), (f"{SHA1} {'b' * 40} {SHA1}", "<hex40-1> <hex40-2> <hex40-1>")],
    "device id": [('"device_id":"' + "a" * 64 + '"', '"device_id":"<device>"')],
    "temporary name": [("/tmp/tmpab12cd_9/x", "/tmp/<tmp>/x")],
}

KEPT: dict[str, list[str]] = {
    "uuid": [UUID[:-1], UUID + "0", "x" + UUID, UUID.replace("-", ""), UUID.replace("a", "g")],
    "timestamp": ["2026-11-30T20:30", "12026-11-30T20:30:15Z"[:8]],
    "date": ["2026-13-30", "2026-11-32", "1999-11-30", "120261130", "version 20.11-30"],
    "measured number in JSON": [
        '"num_turns":2',
        '"attempt":3',
        '"total_attempts":3',
        '"http_attempts":3',
        '"num_msgs":3',
        '"status":529',
        '"last_attachment":3',
        '"duration":"12"',
        "duration_ms:12",
    ],
    "process id": ["rapid 5", "pid: x", "pids 4", '"pidgin":4'],
    "sha1-sized id": ["a" * 39, "a" * 41, "A" * 40, "g" * 40],
    "device id": ['"device_id":"' + "a" * 63 + '"', '"sha256":"' + "a" * 64 + '"'],
    "temporary name": ["tmpab", "tmpab12cd_90", "tmp_file", "xtmpab12cd_9", "tmpAB12CD_9"],
}


def test_every_rule_has_examples_of_both() -> None:
    names = [rule.name for rule in RULES]
    assert len(names) == len(set(names))
    assert set(names) == set(REPLACED) == set(KEPT)


@pytest.mark.parametrize(("text", "expected"), [pair for pairs in REPLACED.values() for pair in pairs])
def test_what_varies_is_replaced(text: str, expected: str) -> None:
    assert normalised(text, {}) == expected


@pytest.mark.parametrize(("text", "expected"), [pair for pairs in REPLACED.values() for pair in pairs])
@pytest.mark.parametrize("before", ["line\n", "column\t", "\r\n"])
def test_it_is_replaced_at_the_beginning_of_a_line_of_a_text_in_json_too(before: str, text: str, expected: str) -> None:
    once = json.dumps(before + text)
    assert normalised(once, {}) == json.dumps(before + expected)
    twice = json.dumps(once)
    assert normalised(twice, {}) == json.dumps(json.dumps(before + expected))


@pytest.mark.parametrize(("rule", "text"), [(rule, text) for rule, texts in KEPT.items() for text in texts])
def test_a_near_miss_stays(rule: str, text: str) -> None:
    assert normalised(text, {}) == text


def test_literals_go_first_and_the_longest_first() -> None:
    literals = {"/a": "<short>", "/a/b": "<long>"}
    assert normalised("/a/b/c /a/c", literals) == "<long>/c <short>/c"


def test_the_sandbox_is_replaced_in_every_form() -> None:
    literals = sandbox_literals("/tmp/crashcart-ab", 4711)
    text = "/tmp/crashcart-ab/home -tmp-crashcart-ab http://127.0.0.1:4711/v1 127.0.0.1:4712"
    assert normalised(text, literals) == "<sandbox>/home <sandbox> http://127.0.0.1:<port>/v1 127.0.0.1:4712"


WORDS = st.sampled_from([UUID, OTHER, "2026-11-30", SHA1, '"x_ms": 5', "pid 7", "a", "\n", " ", "-", '"'])


@settings(max_examples=60, deadline=None, derandomize=True)
@given(st.lists(WORDS, max_size=12).map("".join))
def test_json_stays_json(text: str) -> None:
    replaced = json.loads(normalised(json.dumps({"text": text, "at_seconds": 1.5}), {}))
    assert set(replaced) == {"text", "at_seconds"}
