"""Tool names as the runtime under test writes them: a script's neutral names, mapped once before it is played.

The mapping itself is the caller's; nothing here knows any runtime.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, TypeAlias

from fake_provider.replies import ToolUse

Rename: TypeAlias = Callable[[str, dict[str, Any]], tuple[str, dict[str, Any]]]
"""Maps a tool's name and arguments to what the runtime under test calls them."""


def renamed_call(call: ToolUse, rename: Rename) -> ToolUse:
    """Return a tool call with its name and arguments mapped; raw arguments are nobody's but the script's."""
    name, arguments = rename(call.name, dict(call.input))
    return replace(call, name=name, input=arguments)


def renamed_tool(name: str, rename: Rename) -> str:
    """Return a tool's name mapped."""
    return rename(name, {})[0]
