"""The JSON Schema of scenario files, for editors; ``make docs`` keeps ``scenarios/scenario.schema.json`` up to date.

It is made from the same words that the loader reads, so that an editor offers what the loader takes. The loader stays
the judge: it knows lines, and what can never be reached; the schema knows keys, types and closed lists.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Mapping
from typing import Any

from fake_provider.expectations import EXPECTATIONS
from fake_provider.faults import FAULTS
from fake_provider.matchers import CONDITIONS
from fake_provider.policies import POLICIES
from fake_provider.replies import ERROR_WORDS, STOP_REASONS
from fake_provider.reply_words import BLOCK_KINDS, USAGE_KEYS
from fake_provider.steps import FAULT_SHORTHANDS, STEP_KEYS
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
SETTINGS_OF_A_FAULT: Schema = {"type": ["object", "null"]}
"""Each kind reads its own; the loader names what is wrong in them."""

FAULT: Schema = {"anyOf": [one_of(FAULTS), mapping(dict.fromkeys(sorted(FAULTS), SETTINGS_OF_A_FAULT))]}
BOUNDS: Schema = {"anyOf": [COUNT, mapping({"min": COUNT, "max": COUNT})]}
MATCH = mapping(dict.fromkeys(CONDITIONS, ANYTHING))
STATUS: Schema = {
    "anyOf": [
        {"type": "integer", "minimum": 200, "maximum": 599},
        mapping(
            {
                "code": {"type": "integer", "minimum": 200, "maximum": 599},
                "type": TEXT,
                "message": TEXT,
                "headers": free_mapping(TEXT),
                "body": TEXT,
                "content_type": TEXT,
            },
            ["code"],
        ),
    ]
}
USAGE: Schema = {"anyOf": [{"const": "none"}, mapping(dict.fromkeys(USAGE_KEYS, COUNT))]}
CALL: dict[str, Schema] = {"with": {"type": "object"}, "arguments": TEXT, "split_at": several(FROM_ONE), "id": TEXT}
BLOCK_VALUES: dict[str, Schema] = {
    "text": TEXT,
    "thinking": TEXT,
    "redacted_thinking": TEXT,
    "tool_use": mapping(
        {"name": TEXT, "input": {"type": "object"}, **{key: CALL[key] for key in ("arguments", "split_at", "id")}},
        ["name"],
    ),
    "block": {"type": "object"},
}
ENDING: dict[str, Schema] = {"stop_reason": one_of(STOP_REASONS), "stop_sequence": TEXT, "usage": USAGE}
REPLY = mapping(
    {
        "blocks": several(
            mapping(
                {
                    **{kind: BLOCK_VALUES[kind] for kind in BLOCK_KINDS},
                    "citations": several({"type": "object"}),
                    "signature": TEXT,
                }
            )
        ),
        **ENDING,
        "model": TEXT,
    },
    ["blocks"],
)
STEPS = several({"$ref": "#/$defs/step"})
REPEAT = mapping({"times": FROM_ONE, "forever": FLAG, "steps": STEPS, "then": STEPS}, ["steps"])
HOLD: Schema = {"anyOf": [TEXT, mapping({"name": TEXT, "event": TEXT, "nth": FROM_ONE}, ["name"])]}
POLICY_VALUES: dict[str, Schema] = {
    "call": TEXT,
    "with": {"type": "object"},
    "id": TEXT,
    "until": one_of(["success", "never"]),
    "at_most": FROM_ONE,
    "then": TEXT,
    "tokens": FROM_ONE,
    "requests_per_minute": FROM_ONE,
    "tokens_per_minute": FROM_ONE,
    "when": MATCH,
    "leave_out": several(TEXT),
}
EXPECTATION_VALUES: dict[str, Schema] = {
    "stream": FLAG,
    "no_duplicate_results": FLAG,
    "max_tokens": BOUNDS,
    "messages": BOUNDS,
    "header": free_mapping(TEXT),
}


def policy(word: str) -> Schema:
    """Return the schema of a policy's settings."""
    kind = POLICIES[word]
    steps = {} if kind.wraps == "never" else {"steps": STEPS}
    required = [*kind.required, *(["steps"] if kind.wraps == "always" else [])]
    settings = mapping({**{key: POLICY_VALUES[key] for key in kind.keys}, **steps}, required)
    return settings if required else {"anyOf": [settings, {"type": "null"}]}


STEP_VALUES: dict[str, Schema] = {
    "say": TEXT,
    "think": TEXT,
    "redacted_thinking": TEXT,
    "citations": several({"type": "object"}),
    "block": {"type": "object"},
    "call": TEXT,
    **CALL,
    "calls": several({"anyOf": [TEXT, mapping({"call": TEXT, **CALL}, ["call"])]}),
    **ENDING,
    "serving_model": TEXT,
    "name": TEXT,
    "times": FROM_ONE,
    "forever": FLAG,
    "fault": FAULT,
    **dict.fromkeys(FAULT_SHORTHANDS, SETTINGS_OF_A_FAULT),
    "hold": HOLD,
    "expect_request": mapping({key: EXPECTATION_VALUES.get(key, ANYTHING) for key in EXPECTATIONS}),
    "status": STATUS,
    "error": one_of(ERROR_WORDS),
    "reply": REPLY,
    "repeat": REPEAT,
    **{word: policy(word) for word in POLICIES},
}
STEP: Schema = {
    "anyOf": [one_of({*ERROR_WORDS, *FAULT_SHORTHANDS}), mapping({key: STEP_VALUES[key] for key in STEP_KEYS})]
}
LANE: Schema = {
    "anyOf": [
        several(STEP),
        mapping({"match": MATCH, "steps": several(STEP)}, ["steps"]),
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
        "$defs": {"step": STEP},
        **described,
    }


if __name__ == "__main__":
    sys.stdout.write(json.dumps(schema(), indent=1) + "\n")
