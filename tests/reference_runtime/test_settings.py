"""Configuration: defaults, and one clear error for each thing that cannot be done."""

import json
from pathlib import Path
from typing import Any

import pytest

from reference_runtime.recovery.hooks import HookEvent
from reference_runtime.schema import problems
from reference_runtime.settings import (
    HookCommand,
    ModelPrice,
    Settings,
    UsageError,
    read_environment,
    read_mcp_servers,
    read_settings,
)

URL = {"CRASHCART_BASE_URL": "http://127.0.0.1:9/"}


def test_the_environment_and_its_defaults() -> None:
    found = read_environment({**URL, "HOME": "/h"})
    assert (found.base_url, found.home) == ("http://127.0.0.1:9", Path("/h/.crashcart-runtime"))
    assert (found.max_retries, found.stop_hook_block_cap, found.time_scale) == (5, 8, 1.0)
    assert found.stream_fallback_allowed
    given = read_environment(
        {
            **URL,
            "CRASHCART_HOME": "/x",
            "CRASHCART_TIME_SCALE": "20",
            "CRASHCART_MAX_RETRIES": "0",
            "CRASHCART_DISABLE_STREAM_FALLBACK": "1",
            "CRASHCART_STOP_HOOK_BLOCK_CAP": "2",
        }
    )
    assert (given.home, given.time_scale, given.max_retries, given.stop_hook_block_cap) == (Path("/x"), 20, 0, 2)
    assert not given.stream_fallback_allowed


@pytest.mark.parametrize(
    ("variables", "told"),
    [
        ({"CRASHCART_BASE_URL": ""}, "CRASHCART_BASE_URL is ''"),
        ({"CRASHCART_BASE_URL": "127.0.0.1"}, "give the provider's address"),
        ({"CRASHCART_TIME_SCALE": "0"}, "CRASHCART_TIME_SCALE is '0'; allowed is a number of at least 0.001"),
        ({"CRASHCART_MAX_RETRIES": "many"}, "CRASHCART_MAX_RETRIES is 'many'"),
        ({"CRASHCART_STREAM_IDLE_TIMEOUT_SECONDS": "nan"}, "CRASHCART_STREAM_IDLE_TIMEOUT_SECONDS is 'nan'"),
    ],
)
def test_a_wrong_variable_is_named(variables: dict[str, str], told: str) -> None:
    with pytest.raises(UsageError, match=told):
        read_environment({**URL, **variables})


def test_settings_from_text_and_from_a_file(tmp_path: Path) -> None:
    value = {
        "hooks": {
            "PreToolUse": [{"matcher": "Bash", "hooks": [{"type": "command", "command": "true", "timeout": 5}]}],
            "Stop": [{"hooks": [{"command": "false"}]}],
        },
        "malformed_tool_use_clean_retry": True,
        "prices": {"m": {"input_usd_per_million": 3, "output_usd_per_million": 15}},
    }
    path = tmp_path / "settings.json"
    path.write_text(json.dumps(value))
    settings = read_settings(json.dumps(value))
    assert settings == read_settings(str(path))
    assert settings.hooks == (
        HookCommand(HookEvent.PRE_TOOL_USE, "Bash", "true", 5),
        HookCommand(HookEvent.STOP, None, "false", 60),
    )
    assert settings.prices == {"m": ModelPrice(3, 15)}
    assert settings.malformed_tool_use_clean_retry
    assert read_settings(None) == Settings()


@pytest.mark.parametrize(
    ("value", "told"),
    [
        ({"hook": {}}, "unknown key 'hook'; did you mean 'hooks'"),
        ({"hooks": {"PretoolUse": []}}, "did you mean 'PreToolUse'"),
        ({"hooks": []}, "allowed is an object"),
        ({"hooks": {"Stop": {}}}, "allowed is a list"),
        ({"hooks": {"Stop": [{"hooks": [{"type": "prompt"}]}]}}, "allowed is"),
        ({"hooks": {"Stop": [{"hooks": [{"command": "x", "timeout": 0}]}]}}, "allowed is a number above 0"),
        ({"malformed_tool_use_clean_retry": "yes"}, "allowed is true or false"),
        ({"tool_timeout_seconds": True}, "allowed is a number above 0"),
        ({"prices": {"m": {}}}, "prices.m"),
    ],
)
def test_a_wrong_setting_is_named(value: dict[str, Any], told: str) -> None:
    with pytest.raises(UsageError, match=told):
        read_settings(json.dumps(value))


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="No such file"):
        read_settings(str(tmp_path / "none"))
    (tmp_path / "bad").write_text("nonsense")
    with pytest.raises(UsageError, match="bad: not JSON"):
        read_mcp_servers(str(tmp_path / "bad"))


def test_mcp_servers() -> None:
    (server,) = read_mcp_servers('{"mcpServers": {"a": {"command": "c", "args": ["x", 1], "env": {"K": "v"}}}}') or ()
    assert (server.name, server.command, server.args, server.environment) == ("a", "c", ("x", "1"), {"K": "v"})
    assert read_mcp_servers(None) == ()
    with pytest.raises(UsageError, match="allowed is a stdio server"):
        read_mcp_servers('{"mcpServers": {"a": {"type": "http", "command": "c"}}}')


SCHEMA = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "enum": ["a", "b"]},
        "count": {"type": "integer"},
        "size": {"type": ["number", "null"]},
        "tags": {"type": "array", "items": {"type": "string"}},
    },
    "required": ["name"],
    "additionalProperties": False,
}


@pytest.mark.parametrize(
    ("value", "wrong"),
    [
        ({"name": "a", "count": 1, "size": None, "tags": ["x"]}, []),
        ({}, ["input.name is missing"]),
        ([], ["input is list; allowed is object"]),
        ({"name": "c"}, ["input.name is 'c'; allowed is one of ['a', 'b']"]),
        ({"name": "a", "count": True}, ["input.count is bool; allowed is integer"]),
        ({"name": "a", "count": 1.5}, ["input.count is float; allowed is integer"]),
        ({"name": "a", "tags": ["x", 1]}, ["input.tags[1] is int; allowed is string"]),
        ({"name": "a", "more": 1}, ["input.more is not known; allowed are name, count, size, tags"]),
    ],
)
def test_arguments_are_checked_against_their_schema(value: object, wrong: list[str]) -> None:
    assert problems(SCHEMA, value) == wrong
    assert problems({}, value) == []
