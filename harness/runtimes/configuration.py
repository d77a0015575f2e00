"""Hook and MCP configuration in the shape that Claude Code documents and the reference runtime follows."""

from __future__ import annotations

from typing import Any

from harness.model.scenario import HookEvent
from harness.runtimes.adapter import Start

HOOK_EVENTS = {HookEvent.PRE_TOOL: "PreToolUse", HookEvent.STOP: "Stop"}


def hook_settings(start: Start) -> dict[str, Any]:
    """Return the hooks of a phase as a settings file holds them."""
    return {
        HOOK_EVENTS[event]: [{"hooks": [{"type": "command", "command": command, "timeout": 30}]}]
        for event, command in start.hook_commands.items()
    }


def mcp_settings(start: Start) -> dict[str, Any]:
    """Return the effect server as an MCP configuration file holds it."""
    command, *arguments = start.effect_server or ()
    return {"mcpServers": {"effects": {"command": command, "args": arguments, "env": {}}}}
