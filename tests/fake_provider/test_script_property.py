"""Whatever is written, a script loads or is refused in one sentence; and what loads can be played.

Method: scripts put together at random out of every word that a script knows, with values that are right, nearly right
and wrong, so that the readers are entered deeply; and texts that are hardly YAML at all.
"""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from fake_provider.document import DocumentError, parse_document
from fake_provider.expectations import EXPECTATIONS
from fake_provider.faults import FAULTS
from fake_provider.faults.point import POINT_KEYS
from fake_provider.matchers import CONDITIONS
from fake_provider.playback import NothingToPlay, Playback, Played
from fake_provider.policies import POLICIES
from fake_provider.replies import ERROR_WORDS, STOP_REASONS
from fake_provider.reply_words import BLOCK_KINDS, STATUS_KEYS, USAGE_KEYS
from fake_provider.script import SCRIPT_KEYS, Script, parse_script
from fake_provider.steps import STEP_KEYS
from fake_provider.templates import VALUES
from fake_provider.wire import PLACES
from tests.fake_provider.property_settings import QUICK
from tests.fake_provider.scripts import asked

WORDS = sorted({
    *STEP_KEYS, *FAULTS, *POINT_KEYS, *CONDITIONS, *EXPECTATIONS, *POLICIES, *ERROR_WORDS, *STOP_REASONS, *PLACES,
    *BLOCK_KINDS, *STATUS_KEYS, *USAGE_KEYS, *SCRIPT_KEYS, "steps", "then", "match", "min", "max", "leave_out", "when",
    "until", "at_most", "tokens", "requests_per_minute", "none", "success", "never", "whole",
    *(f"{{{{{value}}}}}" for value in (*VALUES, "header.a", "nonsense", "")),
})  # fmt: skip


@st.composite
def words(draw: st.DrawFn) -> str:
    """Any word; composite, so that no strategy is described by all of them."""
    return WORDS[draw(st.integers(0, len(WORDS) - 1))]


SCALARS = st.none() | st.booleans() | st.integers(-2, 5) | st.integers() | st.floats() | words() | st.text(max_size=5)
DATA = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(words(), inner, max_size=3),
    max_leaves=12,
)
SMALL: dict[str, Any] = {
    "text": st.text(max_size=6),
    "count": st.integers(1, 3),
    "event": st.sampled_from(sorted(PLACES)),
}


def mostly(key: str, right: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    """A mapping of one key to a right value, or now and then to anything."""
    return (right | right | right | DATA).map(lambda value: {key: value})


def steps_of(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    steps = st.lists(inner, min_size=1, max_size=3)
    return st.one_of(
        st.fixed_dictionaries({"times": SMALL["count"], "steps": steps}).map(lambda repeat: {"repeat": repeat}),
        st.fixed_dictionaries({"tokens": st.integers(1, 99), "steps": steps}).map(lambda policy: {"windowed": policy}),
        st.fixed_dictionaries({"requests_per_minute": SMALL["count"], "steps": steps}).map(lambda at: {"quota": at}),
        st.fixed_dictionaries({"steps": steps}).map(lambda policy: {"summarise": policy}),
    )


def merged(parts: list[dict[str, Any]]) -> dict[str, Any]:
    return {key: value for part in parts for key, value in part.items()}


EXTRAS = st.one_of(
    mostly("times", SMALL["count"]),
    mostly("name", SMALL["text"]),
    mostly("hold", SMALL["text"]),
    mostly("expect_request", st.dictionaries(st.sampled_from(sorted(EXPECTATIONS)), DATA, min_size=1, max_size=2)),
    *(mostly(kind, st.fixed_dictionaries({"event": SMALL["event"]})) for kind in ("cut", "stall", "error_event")),
    mostly("fault", st.fixed_dictionaries({}, optional=dict.fromkeys(FAULTS, DATA))),
)
ANSWERS = st.one_of(
    mostly("say", SMALL["text"] | words()),
    mostly("call", SMALL["text"]),
    mostly("calls", st.lists(SMALL["text"], min_size=1, max_size=2)),
    mostly("error", st.sampled_from(sorted(ERROR_WORDS))),
    mostly("status", st.integers(200, 599)),
    mostly("block", st.dictionaries(words(), SCALARS, max_size=2)),
    mostly("reply", st.fixed_dictionaries({"blocks": st.lists(mostly("text", SMALL["text"]), max_size=2)})),
    mostly("insist", st.fixed_dictionaries({"call": SMALL["text"]})),
    mostly("stubborn", st.fixed_dictionaries({"call": SMALL["text"]})),
    mostly("obedient", st.fixed_dictionaries({"at_most": SMALL["count"]})),
)


@st.composite
def single_steps(draw: st.DrawFn) -> Any:
    """A step that holds no steps, mostly of a right form."""
    kind = draw(st.integers(0, 9))
    if kind == 0:
        return draw(DATA)
    if kind == 1:
        return draw(st.sampled_from(sorted(ERROR_WORDS)))
    return merged([draw(ANSWERS), *draw(st.lists(EXTRAS, max_size=2))])


STEPS = st.recursive(single_steps(), steps_of, max_leaves=6)
LANES = st.dictionaries(SMALL["text"], st.lists(STEPS, max_size=4) | DATA, min_size=1, max_size=2)
SCRIPTS = st.fixed_dictionaries(
    {"lanes": LANES | DATA},
    optional={key: DATA for key in SCRIPT_KEYS if key != "lanes"},
)


def loaded(text: str) -> Script | None:
    try:
        return parse_script(parse_document(text, "script.yaml"))
    except DocumentError as error:
        refusal = str(error)
    assert refusal.startswith("script.yaml:")
    assert "\n" not in refusal
    return None


@QUICK
@given(SCRIPTS)
def test_any_script_loads_or_is_refused_and_what_loads_is_played(written: dict[str, Any]) -> None:
    script = loaded(json.dumps(written))
    if script is None:
        return
    playback = Playback(script)
    for number in range(6):
        outcome = playback.play(asked(), float(number))
        assert isinstance(outcome, Played | NothingToPlay)
    for state in playback.state():
        playback.skip(state.lane)


@QUICK
@given(DATA)
def test_any_data_is_refused_or_loads(written: Any) -> None:
    loaded(json.dumps(written))


@QUICK
@given(st.text(max_size=60) | st.lists(words() | st.sampled_from("{}[]:,-&*!|>#'\"%@\n "), max_size=40).map("".join))
def test_any_text_is_refused_or_loads(text: str) -> None:
    loaded(text)
