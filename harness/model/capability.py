"""What a runtime may or may not be able to do, declared by its adapter before any run.

A missing capability makes a run ``unsupported``, which is evidence too; it is never a way to soften a failure.
"""

from __future__ import annotations

from enum import StrEnum


class Capability(StrEnum):
    """One ability that a scenario can need of the runtime under test."""

    RESUME = "resume"
    SESSION_CHOICE = "session_choice"
    MCP_TOOLS = "mcp_tools"
    SHELL_TOOL = "shell_tool"
    FILE_TOOLS = "file_tools"
    PRE_TOOL_HOOK = "pre_tool_hook"
    STOP_HOOK = "stop_hook"
    MODEL_FALLBACK = "model_fallback"
    RETRY_LIMIT = "retry_limit"
    TURN_LIMIT = "turn_limit"
    TERMINAL_REASON = "terminal_reason"
    TURN_COUNT = "turn_count"
    STREAM_IDLE_LIMIT = "stream_idle_limit"
