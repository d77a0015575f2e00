"""The tools that a Responses request offers: which kind of call a tool's name becomes, and back.

Pure. A tool may be a function, a custom tool with free text, or either inside a group of the type ``namespace``, whose
calls carry the group's name beside their own. Outside this module such a tool has one name, the group's and its own
joined by two underscores, as agents name the tools of an MCP server everywhere else.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

JOINT = "__"
CALL_TYPES: Mapping[str, str] = {"function": "function_call", "custom": "custom_tool_call"}
"""The item that calls a tool, by the tool's type."""


@dataclass(frozen=True, slots=True)
class Offered:
    """A tool as a call names it: the type of the call, the tool's own name, and its group where it has one."""

    call_type: str
    name: str
    namespace: str | None = None

    @property
    def joined(self) -> str:
        """The tool's one name."""
        return self.name if self.namespace is None else joined_name(self.namespace, self.name)


def joined_name(namespace: str, name: str) -> str:
    """Return the one name of a tool inside a group."""
    return f"{namespace.removesuffix(JOINT)}{JOINT}{name}"


def offered_tools(tools: Any) -> Iterator[Offered]:
    """Yield the tools that can be called by name."""
    for tool in tools if isinstance(tools, list) else ():
        kind = tool.get("type")
        if kind in CALL_TYPES:
            yield Offered(CALL_TYPES[kind], tool["name"])
        elif kind == "namespace":
            for inner in tool["tools"]:
                if inner.get("type") in CALL_TYPES:
                    yield Offered(CALL_TYPES[inner["type"]], inner["name"], tool["name"])


def tool_names(tools: Any) -> tuple[str, ...]:
    """Return the names of all tools; one that the service runs itself has its type for a name."""
    hosted = (
        str(tool.get("type"))
        for tool in (tools if isinstance(tools, list) else ())
        if tool.get("type") not in (*CALL_TYPES, "namespace")
    )
    return (*(offered.joined for offered in offered_tools(tools)), *hosted)


def resolve(name: str, tools: Any) -> Offered:
    """Return the tool that a scripted call means.

    By its one name; else by its own name inside a group; a name that is not offered is a function's, because a model
    may call what does not exist.
    """
    offered = list(offered_tools(tools))
    for tool in offered:
        if tool.joined == name:
            return tool
    for tool in offered:
        if tool.name == name:
            return tool
    return Offered("function_call", name)
