"""Documents remember their lines, and every mistake in one is a sentence, whatever was written."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fake_provider.document import DocumentError, Node, load_document, nearest, parse_document, plain
from fake_provider.faults import FAULTS
from fake_provider.script import parse_lanes
from fake_provider.steps import STEP_KEYS
from tests.fake_provider.property_settings import QUICK


def at(text: str, *keys: str) -> Node:
    """The node under some keys of a document."""
    node = parse_document(text, "d.yaml")
    for key in keys:
        node = node.entries("mapping")[key]
    return node


@pytest.mark.parametrize(
    ("read", "value", "message"),
    [
        (lambda node: node.text(), "7", "expected text, found a whole number 7"),
        (lambda node: node.integer(), "true", "expected a whole number, found true/false True"),
        (lambda node: node.integer(minimum=3), "2", "expected a whole number of at least 3, found 2"),
        (lambda node: node.number(), "x", "expected a number, found text 'x'"),
        (lambda node: node.number(minimum=0), "-0.5", "expected a number of at least 0, found -0.5"),
        (lambda node: node.flag(), "1", "expected true or false, found a whole number 1"),
        (lambda node: node.items("things"), "{}", "expected things as a list, found a mapping"),
        (lambda node: node.entries("thing"), "[]", "expected thing as a mapping, found a list"),
        (lambda node: node.entries("thing"), "", "expected thing as a mapping, found nothing"),
        (lambda node: node.choice("colour", ["red"]), "rad", "unknown colour 'rad'; did you mean 'red'? Allowed: red"),
    ],
)
def test_a_value_of_the_wrong_kind_is_said_with_its_place(
    read: Callable[[Node], object], value: str, message: str
) -> None:
    with pytest.raises(DocumentError) as error:
        read(at(f"a:\n  b: {value}", "a", "b"))
    assert str(error.value) == f"d.yaml:2: {message} (in a.b)"
    assert (error.value.place.line, error.value.message) == (2, f"{message} (in a.b)")


def test_values_of_the_right_kind_are_read() -> None:
    node = parse_document("{t: x, i: 3, n: 2.5, f: false, l: [1, {k: v}]}", "d.yaml")
    fields = node.fields("thing", "tinfl", "t")
    read = (fields["t"].text(), fields["i"].integer(), fields["n"].number(), fields["f"].flag())
    assert read == ("x", 3, 2.5, False)
    assert fields["l"].items("list")[1].path == "l[1]"
    assert node.data() == {"t": "x", "i": 3, "n": 2.5, "f": False, "l": [1, {"k": "v"}]}


def test_a_key_that_is_no_text_is_refused() -> None:
    with pytest.raises(DocumentError, match=r"^d.yaml:2: expected a text key in thing, found 7"):
        at("a: 1\n7: 2").entries("thing")


def test_each_item_of_a_list_has_its_own_line() -> None:
    items = at("- a\n\n- b\n- c").items("list")
    assert [item.place.line for item in items] == [1, 3, 4]


def test_an_unknown_word_gets_the_nearest_one_only_when_there_is_one() -> None:
    assert nearest("oveloaded", ["overloaded", "say"]) == "; did you mean 'overloaded'? Allowed: overloaded, say"
    assert nearest("xyz", ["overloaded", "say"]) == ". Allowed: overloaded, say"


def test_a_file_that_is_not_utf_8_is_said(tmp_path: Path) -> None:
    path = tmp_path / "d.yaml"
    path.write_bytes(b"a: \xff")
    with pytest.raises(DocumentError, match=r"^shown:1: cannot read the file: 'utf-8' codec"):
        load_document(path, shown_as="shown")


@pytest.mark.parametrize("text", ['"\\ud83d\\ude00"', "😀", '"\\U0001F600"'])
def test_a_character_may_be_escaped_as_json_does_it(text: str) -> None:
    assert at(f"a: {text}", "a").text() == "😀"
    assert at(f"{{a: {{{text}: [{text}]}}}}", "a").data() == {"😀": ["😀"]}
    assert list(at(f"{{a: {{{text}: 1}}}}", "a").entries("thing")) == ["😀"]


def test_half_a_character_is_refused() -> None:
    message = r"^d.yaml:1: text holds half a character, '\\ud83d'; write the character itself"
    with pytest.raises(DocumentError, match=message):
        at('a: "\\ud83d"', "a").text()
    with pytest.raises(DocumentError, match=message):
        at('a: {b: [{"\\ud83d": 1}]}', "a").data()
    with pytest.raises(DocumentError, match=message):
        at('a: {"\\ud83d": 1}', "a").entries("thing")


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("2020-01-01", "expected data that JSON has, found date; quote it to make it text (in a)"),
        (".nan", "expected a number, found nan (in a)"),
        ("!!binary aGk=", "expected data that JSON has, found bytes; quote it to make it text (in a)"),
        ("{b: {7: x}}", "expected a text key, found 7 (in a)"),
    ],
)
def test_data_that_json_has_not_is_refused(value: str, message: str) -> None:
    with pytest.raises(DocumentError) as error:
        at(f"a: {value}", "a").data()
    assert str(error.value) == f"d.yaml:1: {message}"


def test_a_document_nested_too_deeply_is_refused() -> None:
    with pytest.raises(DocumentError, match=r"^d.yaml:1: nested too deeply"):
        at("[" * 600 + "]" * 600)
    assert at("[" * 200 + "]" * 200).data()
    with pytest.raises(DocumentError, match=r"^d.yaml:1: nested more than 200 levels deep"):
        at("[" * 201 + "]" * 201).data()


SETTING_KEYS = ("event", "nth", "byte", "blocks", "text", "tool_use", "code", "match", "steps")
WORDS = st.sampled_from([*STEP_KEYS, *FAULTS, *SETTING_KEYS])
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-2, 600) | st.text(max_size=4) | WORDS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(WORDS | st.text(max_size=3), inner, max_size=4),
    max_leaves=10,
)


@QUICK
@given(st.dictionaries(st.sampled_from(["main", "side"]), VALUES, max_size=2))
def test_lanes_of_any_shape_are_read_or_answered_with_a_sentence(lanes: dict[str, Any]) -> None:
    node = parse_document(json.dumps(lanes), "d.yaml")
    assert plain(node.value) == lanes
    said = sentence(lambda: parse_lanes(node))
    assert said == "" or said.startswith("d.yaml:1: ")


def sentence(read: Callable[[], object]) -> str:
    """What is said about a mistake, or nothing where there is none; anything else than a sentence is raised."""
    try:
        read()
    except DocumentError as error:
        return str(error)
    return ""


@QUICK
@given(st.text(max_size=30))
def test_any_text_is_a_document_or_answered_with_a_sentence(text: str) -> None:
    said = sentence(lambda: parse_document(text, "d.yaml"))
    assert said == "" or said.startswith("d.yaml:")
    assert "\n" not in said
