"""An MCP server over stdio whose tools have effects that can be counted: the witness outside the runtime.

It runs as a process of its own, started by the runtime under test: ``python -m harness.tools.effect_server CONFIG``.
Every effect is a fsynced line of the ledger. At two places, ``tool.called`` and ``tool.committed``, it tells the
harness where it stands and waits for leave to go on, so that a crash can be put there exactly. It never decides whether
a call is a duplicate: it does what it is asked, as a real service without deduplication would.

CONFIG is a JSON file: ``ledger`` and ``socket`` (paths; the socket may be null) and ``tools`` (name, description,
arguments, modes, delay_seconds, read_only).
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import mcp_types as types
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server

from harness.model.scenario import EffectMode, EffectTool
from harness.tools.ledger import ANSWERED, CALLED, COMMITTED, Ledger, LedgerLine, monotonic_seconds

EXIT_AFTER_COMMIT_STATUS = 86
JSON_TYPES = {"string", "integer", "number", "boolean", "object", "array"}


class Harness:
    """The line to the harness: announce a position, wait for leave to go on."""

    def __init__(self, socket_path: str | None) -> None:
        self._socket_path = socket_path
        self._lock = asyncio.Lock()
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def stand_at(self, line: LedgerLine) -> None:
        """Announce the position of a ledger line and return when the harness lets go.

        A harness that has gone away is the end of the run: the process ends rather than act unobserved.
        """
        if self._socket_path is None:
            return
        async with self._lock:
            if self._streams is None:
                self._streams = await asyncio.open_unix_connection(self._socket_path)
            reader, writer = self._streams
            message = {"position": line.kind, "tool": line.tool, "call": line.call, "at_seconds": line.at_seconds}
            writer.write(json.dumps(message).encode() + b"\n")
            await writer.drain()
            if not await reader.readline():
                os._exit(0)


class EffectServer:
    """Tools of one configuration, all writing to one ledger."""

    def __init__(self, tools: list[EffectTool], ledger: Ledger, harness: Harness) -> None:
        self._tools = {tool.name: tool for tool in tools}
        self._ledger = ledger
        self._harness = harness

    async def list_tools(
        self, _context: ServerRequestContext[Any, Any], _params: types.PaginatedRequestParams | None
    ) -> types.ListToolsResult:
        """Answer ``tools/list``."""
        return types.ListToolsResult(tools=[described(tool) for tool in self._tools.values()])

    async def call_tool(
        self, context: ServerRequestContext[Any, Any], params: types.CallToolRequestParams
    ) -> types.CallToolResult:
        """Answer ``tools/call``: ledger line, position, effect, position, answer, as the call's mode says."""
        tool = self._tools.get(params.name)
        if tool is None:
            return answer(f"no tool is named {params.name}", is_error=True)
        call = self._ledger.calls(tool.name) + 1
        mode = tool.modes[min(call, len(tool.modes)) - 1]
        line = LedgerLine(
            kind=CALLED,
            tool=tool.name,
            call=call,
            request=str(context.request_id),
            meta=dict(context.meta or {}),
            arguments=params.arguments or {},
            mode=mode.value,
            pid=os.getpid(),
            at_seconds=monotonic_seconds(),
        )
        await self._write(line)
        if mode is EffectMode.HANG_BEFORE_COMMIT:
            await asyncio.Event().wait()
        if mode is EffectMode.SLOW:
            await asyncio.sleep(tool.delay_seconds)
        if not tool.read_only:
            await self._write(replace(line, kind=COMMITTED, at_seconds=monotonic_seconds()))
        if mode is EffectMode.EXIT_AFTER_COMMIT:
            os._exit(EXIT_AFTER_COMMIT_STATUS)
        if mode is EffectMode.HANG_AFTER_COMMIT:
            await asyncio.Event().wait()
        self._ledger.append(replace(line, kind=ANSWERED, at_seconds=monotonic_seconds()))
        if mode is EffectMode.ERROR_AFTER_COMMIT:
            return answer(f"{tool.name}: the service reported an internal error", is_error=True)
        return answer(json.dumps({"tool": tool.name, "status": "accepted", "number": call}), is_error=False)

    async def _write(self, line: LedgerLine) -> None:
        self._ledger.append(line)
        await self._harness.stand_at(line)


def described(tool: EffectTool) -> types.Tool:
    """Return a tool as MCP lists it, all arguments required."""
    return types.Tool(
        name=tool.name,
        description=tool.description,
        input_schema={
            "type": "object",
            "properties": {name: {"type": kind} for name, kind in tool.arguments.items()},
            "required": list(tool.arguments),
        },
        annotations=types.ToolAnnotations(read_only_hint=tool.read_only, destructive_hint=not tool.read_only),
    )


def answer(text: str, *, is_error: bool) -> types.CallToolResult:
    """Return a tool result of one text."""
    return types.CallToolResult(content=[types.TextContent(type="text", text=text)], is_error=is_error)


def tools_of(config: dict[str, Any]) -> list[EffectTool]:
    """Read the tools of a configuration."""
    return [
        EffectTool(**{**tool, "modes": tuple(EffectMode(mode) for mode in tool["modes"])}) for tool in config["tools"]
    ]


async def serve(config: dict[str, Any]) -> None:
    """Serve over standard input and output until the client closes them."""
    effects = EffectServer(tools_of(config), Ledger(Path(config["ledger"])), Harness(config["socket"]))
    server: Server[Any] = Server(
        "effects", version="1", on_list_tools=effects.list_tools, on_call_tool=effects.call_tool
    )
    async with stdio_server() as (read, write):
        await server.run(read, write, server.create_initialization_options())


if __name__ == "__main__":
    asyncio.run(serve(json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))))
