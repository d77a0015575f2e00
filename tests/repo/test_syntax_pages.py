"""The pages about scenarios and scripts are true: every block on them loads, and every word that is read is there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from fake_provider.document import parse_document
from fake_provider.faults import FAULTS
from fake_provider.matchers import CONDITIONS
from fake_provider.replies import ERROR_WORDS
from fake_provider.script import load_script
from fake_provider.steps import STEP_KEYS
from harness.model.scenario import (
    Crash,
    EffectMode,
    EffectTool,
    Expectation,
    Hook,
    HookEvent,
    Phase,
    Position,
    Settings,
)
from harness.scenario_file import SCENARIO_KEYS, load_scenario

DOCS = Path(__file__).parents[2] / "docs"
BLOCK = re.compile(r"```yaml\n(.*?)```", re.DOTALL)
SCENARIO_WORDS = {
    *SCENARIO_KEYS,
    *Crash.__struct_fields__,
    *(set(Phase.__struct_fields__) - {"text"}),
    *(set(EffectTool.__struct_fields__) - {"name"}),
    *Hook.__struct_fields__,
    *Settings.__struct_fields__,
    *Expectation.__struct_fields__,
    *(word.value for kind in (Position, EffectMode, HookEvent) for word in kind),
}
SCRIPT_WORDS = {*STEP_KEYS, *ERROR_WORDS, *FAULTS, *CONDITIONS, "match", "steps", "dialect", "window_tokens", "lanes"}


def blocks(page: str) -> list[str]:
    return BLOCK.findall((DOCS / page).read_text(encoding="utf-8"))


@pytest.mark.parametrize("block", blocks("scenarios.md"))
def test_every_scenario_on_the_page_loads(block: str, tmp_path: Path) -> None:
    path = tmp_path / "scenario.yaml"
    path.write_text(block, encoding="utf-8")
    assert load_scenario(path).scenario.id.startswith("example.")


@pytest.mark.parametrize("block", blocks("scripts.md"))
def test_every_script_on_the_page_loads(block: str, tmp_path: Path) -> None:
    path = tmp_path / "script.yaml"
    path.write_text(block, encoding="utf-8")
    assert load_script(path).lanes


@pytest.mark.parametrize(("page", "words"), [("scenarios.md", SCENARIO_WORDS), ("scripts.md", SCRIPT_WORDS)])
def test_every_word_that_is_read_is_on_its_page(page: str, words: set[str]) -> None:
    text = (DOCS / page).read_text(encoding="utf-8")
    missing = [word for word in sorted(words) if not re.search(rf"(?<![\w.]){re.escape(word)}(?![\w])", text)]
    assert missing == []


def test_the_scenario_in_the_readme_is_the_one_in_the_suite() -> None:
    [shown] = BLOCK.findall((DOCS.parent / "README.md").read_text(encoding="utf-8"))
    kept = DOCS.parent / "scenarios" / "tool" / "crash-after-effect.yaml"
    without_comments = re.sub(r" +#.*", "", shown)
    assert parse_document(without_comments, "README.md").data() == parse_document(kept.read_text(), "kept").data()
