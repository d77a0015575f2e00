"""What the caller configured: environment, settings file and MCP file, read once into frozen data.

Every error names what was found, where, and what is allowed. It starts nothing and asks nobody.
"""

import difflib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from reference_runtime.recovery.hooks import HookEvent
from reference_runtime.recovery.turns import STOP_HOOK_BLOCK_CAP

DEFAULT_MODEL = "claude-sonnet-4-5"
DEFAULT_MAX_RETRIES = 5
DEFAULT_MAX_TOKENS = 8192
DEFAULT_STREAM_IDLE_TIMEOUT_SECONDS = 90.0
DEFAULT_REPLY_TIMEOUT_SECONDS = 600.0
DEFAULT_TOOL_TIMEOUT_SECONDS = 600.0
DEFAULT_HOOK_TIMEOUT_SECONDS = 60.0


class UsageError(Exception):
    """The caller asked for something that cannot be done; one line says what was allowed. Exit code 2."""


@dataclass(frozen=True)
class HookCommand:
    """One hook: its event, a regular expression for tool names (None matches all), its command and its limit."""

    event: HookEvent
    matcher: str | None
    command: str
    timeout_seconds: float


@dataclass(frozen=True)
class ModelPrice:
    """US dollars for a million tokens."""

    input_usd: float
    output_usd: float


@dataclass(frozen=True)
class Settings:
    """The settings file."""

    hooks: tuple[HookCommand, ...] = ()
    malformed_tool_use_clean_retry: bool = False
    tool_timeout_seconds: float = DEFAULT_TOOL_TIMEOUT_SECONDS
    prices: Mapping[str, ModelPrice] = field(default_factory=dict)


@dataclass(frozen=True)
class McpServer:
    """One MCP server over standard input and output."""

    name: str
    command: str
    args: tuple[str, ...]
    environment: Mapping[str, str]


@dataclass(frozen=True)
class Environment:
    """The environment variables that the program knows; seconds are unscaled."""

    base_url: str
    api_key: str
    home: Path
    time_scale: float
    stream_idle_timeout_seconds: float
    stream_fallback_allowed: bool
    stop_hook_block_cap: int
    max_retries: int


def read_environment(variables: Mapping[str, str]) -> Environment:
    """Read the environment.

    Raises:
        UsageError: A variable is missing or not a number where one is needed.
    """
    base_url = variables.get("CRASHCART_BASE_URL", "").rstrip("/")
    if not base_url.startswith(("http://", "https://")):
        raise UsageError(f"CRASHCART_BASE_URL is {base_url!r}; give the provider's address, as http://127.0.0.1:8080")
    home = variables.get("CRASHCART_HOME")
    return Environment(
        base_url=base_url,
        api_key=variables.get("CRASHCART_API_KEY", ""),
        home=Path(home) if home else Path(variables.get("HOME", ".")) / ".crashcart-runtime",
        time_scale=_number(variables, "CRASHCART_TIME_SCALE", 1.0, least=0.001),
        stream_idle_timeout_seconds=_number(
            variables, "CRASHCART_STREAM_IDLE_TIMEOUT_SECONDS", DEFAULT_STREAM_IDLE_TIMEOUT_SECONDS, least=0.001
        ),
        stream_fallback_allowed=variables.get("CRASHCART_DISABLE_STREAM_FALLBACK", "") != "1",
        stop_hook_block_cap=int(_number(variables, "CRASHCART_STOP_HOOK_BLOCK_CAP", STOP_HOOK_BLOCK_CAP, least=0)),
        max_retries=int(_number(variables, "CRASHCART_MAX_RETRIES", DEFAULT_MAX_RETRIES, least=0)),
    )


def _number(variables: Mapping[str, str], name: str, default: float, *, least: float) -> float:
    text = variables.get(name, "")
    if not text:
        return default
    try:
        value = float(text)
    except ValueError:
        value = float("nan")
    if not least <= value < float("inf"):
        raise UsageError(f"{name} is {text!r}; allowed is a number of at least {least:g}")
    return value


def read_settings(source: str | None) -> Settings:
    """Read settings from a file's path or from the JSON text itself; None gives the defaults.

    Raises:
        UsageError: It cannot be read, or has an unknown key or a value of another type.
    """
    if source is None:
        return Settings()
    where, value = _json_object(source, "--settings")
    known = ("hooks", "malformed_tool_use_clean_retry", "tool_timeout_seconds", "prices")
    _require_known(value, known, where)
    clean_retry = value.get("malformed_tool_use_clean_retry", False)
    timeout = value.get("tool_timeout_seconds", DEFAULT_TOOL_TIMEOUT_SECONDS)
    if not isinstance(clean_retry, bool):
        raise UsageError(f"{where}: malformed_tool_use_clean_retry is {clean_retry!r}; allowed is true or false")
    return Settings(
        hooks=tuple(_hooks(value.get("hooks", {}), where)),
        malformed_tool_use_clean_retry=clean_retry,
        tool_timeout_seconds=_positive(timeout, f"{where}: tool_timeout_seconds"),
        prices=_prices(value.get("prices", {}), where),
    )


def _hooks(value: object, where: str) -> Iterable[HookCommand]:
    events = _mapping(value, f"{where}: hooks")
    _require_known(events, tuple(HookEvent), f"{where}: hooks")
    for event, groups in events.items():
        for group in _list(groups, f"{where}: hooks.{event}"):
            place = f"{where}: hooks.{event}"
            _require_known(_mapping(group, place), ("matcher", "hooks"), place)
            for hook in _list(group.get("hooks", []), f"{place}.hooks"):
                _require_known(_mapping(hook, f"{place}.hooks"), ("type", "command", "timeout"), f"{place}.hooks")
                if hook.get("type", "command") != "command" or not isinstance(hook.get("command"), str):
                    raise UsageError(f'{place}.hooks: {hook!r}; allowed is {{"type": "command", "command": TEXT}}')
                yield HookCommand(
                    event=HookEvent(event),
                    matcher=group.get("matcher") or None,
                    command=hook["command"],
                    timeout_seconds=_positive(hook.get("timeout", DEFAULT_HOOK_TIMEOUT_SECONDS), f"{place}.timeout"),
                )


def _prices(value: object, where: str) -> Mapping[str, ModelPrice]:
    prices = {}
    for model, price in _mapping(value, f"{where}: prices").items():
        place = f"{where}: prices.{model}"
        _require_known(_mapping(price, place), ("input_usd_per_million", "output_usd_per_million"), place)
        prices[model] = ModelPrice(
            _positive(price.get("input_usd_per_million"), place), _positive(price.get("output_usd_per_million"), place)
        )
    return prices


def read_mcp_servers(path: str | None) -> tuple[McpServer, ...]:
    """Read the MCP file; None gives no servers.

    Raises:
        UsageError: It cannot be read, or has an unknown key or a value of another type.
    """
    if path is None:
        return ()
    where, value = _json_object(path, "--mcp-config")
    _require_known(value, ("mcpServers",), where)
    servers = []
    for name, server in _mapping(value.get("mcpServers", {}), f"{where}: mcpServers").items():
        place = f"{where}: mcpServers.{name}"
        _require_known(_mapping(server, place), ("type", "command", "args", "env"), place)
        if server.get("type", "stdio") != "stdio" or not isinstance(server.get("command"), str):
            raise UsageError(f"{place}: allowed is a stdio server with a command")
        servers.append(
            McpServer(
                name=name,
                command=server["command"],
                args=tuple(str(argument) for argument in _list(server.get("args", []), f"{place}.args")),
                environment={k: str(v) for k, v in _mapping(server.get("env", {}), f"{place}.env").items()},
            )
        )
    return tuple(servers)


def _json_object(source: str, option: str) -> tuple[str, dict[str, Any]]:
    inline = source.lstrip().startswith("{")
    where = option if inline else source
    try:
        value = json.loads(source if inline else Path(source).read_text(encoding="utf-8"))
    except OSError as error:
        raise UsageError(f"{option} {source}: {error.strerror}") from error
    except ValueError as error:
        raise UsageError(f"{where}: not JSON: {error}") from error
    return where, _mapping(value, where)


def _require_known(value: Mapping[str, Any], known: tuple[str, ...], where: str) -> None:
    for key in value:
        if key not in known:
            nearest = difflib.get_close_matches(key, known, n=1)
            hint = f"; did you mean '{nearest[0]}'?" if nearest else ""
            raise UsageError(f"{where}: unknown key {key!r}{hint} Allowed: {', '.join(known)}")


def _mapping(value: object, where: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise UsageError(f"{where}: {value!r}; allowed is an object")
    return value


def _list(value: object, where: str) -> list[Any]:
    if not isinstance(value, list):
        raise UsageError(f"{where}: {value!r}; allowed is a list")
    return value


def _positive(value: object, where: str) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not value > 0:
        raise UsageError(f"{where}: {value!r}; allowed is a number above 0")
    return float(value)
