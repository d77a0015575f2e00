"""The message graph and the view that a strict provider accepts."""

from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reference_runtime.graph import LOST_BEGINNING_TEXT, Message, MessageGraph, RepeatedMessageError, provider_view
from tests.reference_runtime.parts import text_block, tool_block
from tests.reference_runtime.property_settings import QUICK

RESULT = {"type": "tool_result", "tool_use_id": "t1", "content": [text_block("done")]}
THINKING = {"type": "thinking", "thinking": "hm", "signature": "s"}


def message(uuid: str, parent: str | None, role: str, *content: dict[str, Any]) -> Message:
    return Message(uuid, parent, role, content, 1)


def chain(*pairs: tuple[str, dict[str, Any]]) -> MessageGraph:
    graph = MessageGraph()
    for number, (role, block) in enumerate(pairs):
        graph.add(message(str(number), graph.leaf, role, block))
    return graph


def test_a_tombstone_takes_a_branch_out_for_good() -> None:
    graph = chain(("user", text_block("q")), ("assistant", text_block("bad")), ("user", text_block("more")))
    graph.tombstone(["1", "2", "never-a-message"])
    assert ([entry.uuid for entry in graph.active()], graph.leaf) == (["0"], "0")
    graph.add(message("3", graph.leaf, "assistant", text_block("good")))
    assert [entry.uuid for entry in graph.active()] == ["0", "3"]


def test_a_tombstone_in_the_middle_leaves_what_follows() -> None:
    graph = chain(("user", text_block("q")), ("assistant", text_block("bad")), ("user", text_block("more")))
    graph.tombstone(["1"])
    assert [entry.uuid for entry in graph.active()] == ["0", "2"]


def test_a_repeated_message_changes_nothing() -> None:
    graph = chain(("user", text_block("q")), ("assistant", text_block("a")))
    with pytest.raises(RepeatedMessageError):
        graph.add(message("0", "1", "user", text_block("other")))
    assert [entry.uuid for entry in graph.active()] == ["0", "1"]


def test_a_circle_of_parents_ends() -> None:
    graph = MessageGraph()
    graph.add(message("a", "b", "user", text_block("x")))
    graph.add(message("b", "a", "user", text_block("y")))
    assert [entry.uuid for entry in graph.active()] == ["a", "b"]


def test_calls_without_an_answer_are_found() -> None:
    graph = chain(
        ("user", text_block("q")),
        ("assistant", tool_block("t1", "Read", {})),
        ("user", RESULT),
        ("assistant", tool_block("t2", "Read", {})),
    )
    assert [block["id"] for _message, block in graph.unanswered_calls()] == ["t2"]
    assert graph.tool_use_ids() == {"t1", "t2"}


def test_neighbours_of_one_role_are_joined_with_results_first() -> None:
    graph = chain(
        ("user", text_block("q")),
        ("assistant", tool_block("t1", "Read", {})),
        ("user", RESULT),
        ("user", text_block("go on")),
    )
    assert [(entry["role"], len(entry["content"])) for entry in provider_view(graph.active())] == [
        ("user", 1),
        ("assistant", 1),
        ("user", 2),
    ]


def test_results_come_first_also_within_one_message() -> None:
    asked = message("0", None, "assistant", tool_block("t1", "Read", {}))
    *_, last = provider_view([asked, message("1", "0", "user", text_block("x"), RESULT)])
    assert [block["type"] for block in last["content"]] == ["tool_result", "text"]


def test_a_conversation_whose_beginning_is_lost_says_so() -> None:
    first, second = provider_view([message("1", "0", "assistant", text_block("x"))])
    assert first == {"role": "user", "content": [text_block(LOST_BEGINNING_TEXT)]}
    assert second == {"role": "assistant", "content": [text_block("x")]}


def test_a_late_result_stands_right_after_its_call() -> None:
    graph = chain(
        ("user", text_block("q")),
        ("assistant", tool_block("t1", "Read", {})),
        ("assistant", text_block("the message with the result was lost")),
        ("user", text_block("Go on.")),
        ("user", RESULT),
    )
    kinds = [[block["type"] for block in entry["content"]] for entry in provider_view(graph.active())]
    assert kinds == [["text"], ["tool_use"], ["tool_result"], ["text"], ["text"]]


@pytest.mark.parametrize("block", [THINKING, text_block(""), text_block(" \n")])
def test_a_message_with_nothing_to_say_is_left_out(block: dict[str, Any]) -> None:
    graph = chain(("user", text_block("q")), ("assistant", block), ("user", text_block("again")))
    assert [entry["role"] for entry in provider_view(graph.active())] == ["user"]


BLOCKS = st.sampled_from([text_block("x"), text_block(""), THINKING])


@QUICK
@given(st.lists(st.tuples(st.sampled_from(["user", "assistant"]), st.lists(BLOCKS, max_size=3)), max_size=8))
def test_the_view_alternates_and_holds_nothing_empty(said: list[tuple[str, list[dict[str, Any]]]]) -> None:
    view = provider_view(message(str(n), None, role, *blocks) for n, (role, blocks) in enumerate(said))
    roles = [entry["role"] for entry in view]
    assert all(one != other for one, other in pairwise(roles))
    for entry in view:
        assert entry["content"]
        assert all(block.get("text", "x").strip() for block in entry["content"])
