"""The JSON Schema of scenario files, for editors; ``make docs`` keeps ``scenarios/scenario.schema.json`` up to date.

It is made from the same words that the loader reads, so that an editor offers what the loader takes. The loader stays
the judge: it knows lines, and what can never be reached; the schema knows keys, types and closed lists.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Mapping
from typing import Any

from fake_provider.faults import FAULTS
from fake_provider.faults.point import POINT_KEYS
from fake_provider.matchers import CONDITIONS
from fake_provider.replies import ERROR_WORDS, STOP_REASONS
from fake_provider.steps import STEP_KEYS
from harness.model.clause import CLAUSES
from harness.model.scenario import EffectMode, HookEvent, Position
from harness.scenario_file import ARGUMENT_TYPES, CRASH_SIGNALS, TERMINALS

Schema = dict[str, Any]

TEXT: Schema = {"type": "string"}
FLAG: Schema = {"type": "boolean"}
COUNT: Schema = {"type": "integer", "minimum": 0}
FROM_ONE: Schema = {"type": "integer", "minimum": 1}
SECONDS: Schema = {"type": "number", "minimum": 0}
ANYTHING: Schema = {}


def one_of(words: Iterable[str]) -> Schema:
    """Return the schema of a closed list of words."""
    return {"enum": sorted(words)}


def several(item: Schema) -> Schema:
    """Return the schema of a list."""
    return {"type": "array", "items": item}


def mapping(properties: Mapping[str, Schema], required: Iterable[str] = ()) -> Schema:
    """Return the schema of a mapping whose keys are all known."""
    return {
        "type": "object",
        "properties": dict(properties),
        "required": sorted(required),
        "additionalProperties": False,
    }


def free_mapping(value: Schema) -> Schema:
    """Return the schema of a mapping whose keys are free text."""
    return {"type": "object", "additionalProperties": value}


CRASH = mapping(
    {
        "at": one_of(Position),
        "signal": one_of(CRASH_SIGNALS),
        "tool": TEXT,
        "lane": TEXT,
        "nth": FROM_ONE,
        "event": TEXT,
        "event_nth": FROM_ONE,
    },
    ["at"],
)
PHASE = mapping({"prompt": TEXT, "resume": TEXT, "session": {"type": "string", "format": "uuid"}, "crash": CRASH})
TOOL = mapping(
    {
        "description": TEXT,
        "arguments": free_mapping(one_of(ARGUMENT_TYPES)),
        "mode": one_of(EffectMode),
        "modes": several(one_of(EffectMode)),
        "delay_seconds": SECONDS,
        "read_only": FLAG,
    }
)
HOOK = mapping({"event": one_of(HookEvent), "reason": TEXT, "tool": TEXT, "times": FROM_ONE}, ["event", "reason"])
SETTINGS = mapping(
    {
        "model": TEXT,
        "fallback_models": several(TEXT),
        "max_retries": COUNT,
        "max_turns": FROM_ONE,
        "stream_idle_timeout_seconds": SECONDS,
    }
)
EXPECT = mapping(
    {
        "models": several(TEXT),
        "requests": COUNT,
        "turns": COUNT,
        "terminal": one_of(TERMINALS),
        "subtype": TEXT,
        "exit": {"anyOf": [COUNT, {"const": "nonzero"}]},
        "effects": free_mapping(COUNT),
        "results": several(mapping({"tool": TEXT, "error": FLAG, "contains": TEXT}, ["tool"])),
        "files": free_mapping({**mapping({"equals": TEXT, "contains": TEXT, "absent": FLAG}), "maxProperties": 1}),
        "answer_contains": TEXT,
        "request_contains": {"type": "object", "additionalProperties": TEXT},
        "output_contains": TEXT,
        "hooks": {**free_mapping(COUNT), "propertyNames": one_of(HookEvent)},
    }
)
FAULT: Schema = {
    "anyOf": [
        one_of(FAULTS),
        mapping(
            {
                kind: {"type": ["object", "null"], "properties": dict.fromkeys(POINT_KEYS, ANYTHING)}
                for kind in sorted(FAULTS)
            }
        ),
    ]
}
STATUS = mapping(
    {
        "code": {"type": "integer", "minimum": 200, "maximum": 599},
        "type": TEXT,
        "message": TEXT,
        "headers": free_mapping(TEXT),
        "body": TEXT,
        "content_type": TEXT,
    },
    ["code"],
)
STEP_VALUES: dict[str, Schema] = {
    "say": TEXT,
    "think": TEXT,
    "call": TEXT,
    "with": {"type": "object"},
    "id": TEXT,
    "stop_reason": one_of(STOP_REASONS),
    "serving_model": TEXT,
    "name": TEXT,
    "times": FROM_ONE,
    "fault": FAULT,
    "status": STATUS,
    "usage": free_mapping(COUNT),
}
STEP: Schema = {
    "anyOf": [one_of(ERROR_WORDS), mapping({key: STEP_VALUES.get(key, {"type": "object"}) for key in STEP_KEYS})]
}
LANE: Schema = {
    "anyOf": [
        several(STEP),
        mapping({"match": mapping(dict.fromkeys(CONDITIONS, ANYTHING)), "steps": several(STEP)}, ["steps"]),
    ]
}


def schema() -> Schema:
    """Return the JSON Schema (draft 2020-12) of a scenario file."""
    described = mapping(
        {
            "id": TEXT,
            "claim": TEXT,
            "clauses": several(one_of(CLAUSES)),
            "prompt": TEXT,
            "crash": CRASH,
            "phases": several(PHASE),
            "settings": SETTINGS,
            "model": free_mapping(LANE),
            "tools": free_mapping(TOOL),
            "hooks": several(HOOK),
            "workspace": free_mapping(TEXT),
            "expect": EXPECT,
            "wall_seconds": {"type": "number", "minimum": 1},
        },
        ["id", "claim", "clauses", "model"],
    )
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "crashcart scenario",
        "description": "One whole reproduction; docs/scenarios.md says what each key means.",
        **described,
    }


if __name__ == "__main__":
    sys.stdout.write(json.dumps(schema(), indent=1) + "\n")
