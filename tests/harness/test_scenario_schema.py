"""The published schema of scenario files offers what the loader takes, and refuses what an editor should mark."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from ruamel.yaml import YAML

from fake_provider.steps import STEP_KEYS
from harness.model.scenario import Crash, EffectTool, Expectation, Hook, Phase, Settings
from harness.scenario_file import SCENARIO_KEYS
from harness.scenario_schema import STEP_VALUES, schema

SCENARIOS = Path(__file__).parents[2] / "scenarios"
VALID: dict[str, Any] = {
    "id": "a.b",
    "claim": "A claim.",
    "clauses": ["A1"],
    "prompt": "Go.",
    "model": {"main": ["overloaded", {"say": "Hi."}]},
}


def with_text_keys(value: Any) -> Any:
    """Return data as JSON would hold it; YAML has numbers as keys."""
    return json.loads(json.dumps(value))


def test_the_published_schema_is_up_to_date() -> None:
    assert json.loads((SCENARIOS / "scenario.schema.json").read_text(encoding="utf-8")) == schema()


@pytest.mark.parametrize("path", sorted(SCENARIOS.rglob("*.yaml")), ids=lambda path: path.stem)
def test_every_scenario_fits(path: Path) -> None:
    jsonschema.validate(with_text_keys(YAML(typ="safe").load(path)), schema())


@pytest.mark.parametrize(
    ("keys", "shape"),
    [
        (SCENARIO_KEYS, schema()),
        (set(Crash.__struct_fields__), schema()["properties"]["crash"]),
        (set(Phase.__struct_fields__) - {"text"} | {"prompt"}, schema()["properties"]["phases"]["items"]),
        (
            set(EffectTool.__struct_fields__) - {"name"} | {"mode"},
            schema()["properties"]["tools"]["additionalProperties"],
        ),
        (set(Hook.__struct_fields__), schema()["properties"]["hooks"]["items"]),
        (set(Settings.__struct_fields__), schema()["properties"]["settings"]),
        (set(Expectation.__struct_fields__), schema()["properties"]["expect"]),
        (set(STEP_KEYS), schema()["properties"]["model"]["additionalProperties"]["anyOf"][0]["items"]["anyOf"][1]),
    ],
    ids=["scenario", "crash", "phase", "tool", "hook", "settings", "expect", "step"],
)
def test_the_schema_and_the_loader_know_the_same_keys(keys: set[str], shape: dict[str, Any]) -> None:
    assert set(shape["properties"]) == keys


STEPS = [
    "close",
    {"repeat": {"times": 2, "steps": [{"repeat": {"forever": True, "steps": ["overloaded"]}}], "then": ["close"]}},
    {"windowed": {"tokens": 9, "steps": [{"say": "a", "times": 2}]}},
    {"obedient": None},
    {"calls": ["a", {"call": "b", "with": {}}], "usage": "none", "hold": "gate", "cut": {"event": "text"}},
    {
        "reply": {"blocks": [{"block": {"type": "x"}}, {"text": "a", "citations": []}]},
        "hold": {"name": "a", "event": "text"},
    },
    {"status": 503, "expect_request": {"messages": {"min": 1}, "tools": ["a"]}},
    {"error": "overloaded", "forever": True},
]


def test_steps_of_every_form_fit() -> None:
    jsonschema.validate({**VALID, "model": {"main": STEPS}}, schema())


def test_every_policy_and_every_key_of_a_step_has_a_schema_of_its_own() -> None:
    assert set(STEP_VALUES) == set(STEP_KEYS)


@pytest.mark.parametrize(
    "step",
    [
        {"repeat": {"times": 2, "steps": ["overloadd"]}},
        {"repeat": {"times": 2}},
        {"windowed": {"steps": ["overloaded"]}},
        {"stubborn": {"call": "a", "at_most": 0}},
        {"calls": [{"with": {}}]},
        {"reply": {"blocks": [{"txt": "a"}]}},
        {"expect_request": {"modle": "a"}, "say": "a"},
        {"usage": "nonw", "say": "a"},
        {"error": "overloadd"},
    ],
    ids=str,
)
def test_a_mistake_deep_in_a_step_is_marked(step: Any) -> None:
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({**VALID, "model": {"main": [step]}}, schema())


@pytest.mark.parametrize(
    "change",
    [
        {"promt": "Go."},
        {"clauses": ["Z9"]},
        {"model": {"main": ["overloadd"]}},
        {"model": {"main": [{"sy": "Hi."}]}},
        {"crash": {"at": "tool.comitted"}},
        {"expect": {"exit": "zero"}},
        {"expect": {"hooks": {"post": 1}}},
        {"tools": {"deploy": {"mode": "fine"}}},
    ],
    ids=str,
)
def test_a_mistake_is_marked(change: dict[str, Any]) -> None:
    jsonschema.validate(VALID, schema())
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({**VALID, **change}, schema())
