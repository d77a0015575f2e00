"""MCP servers over standard input and output, through the official client, and their tools (H1, F1).

The client library takes about a second to import, so it is imported when the first server is connected. This module
never repeats a call: what a lost connection means for a call is decided elsewhere.
"""

import asyncio
import importlib
import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from reference_runtime import VERSION
from reference_runtime.clock import Clock
from reference_runtime.recovery.receipts import Effect
from reference_runtime.recovery.tools import ToolFailure
from reference_runtime.settings import McpServer
from reference_runtime.tools.tool import CallIdentity, ToolAnswer, ToolInterruptedError, ToolSpec

if TYPE_CHECKING:
    from mcp import ClientSession
    from mcp.types import CallToolResult
    from mcp.types import Tool as McpTool

CONNECT_TIMEOUT_SECONDS = 30.0


class ServerTool:
    """One tool of one server, named mcp__SERVER__TOOL."""

    def __init__(self, server: "ServerConnection", declared: "McpTool", timeout_seconds: float) -> None:
        read_only = declared.annotations is not None and declared.annotations.read_only_hint is True
        self.spec = ToolSpec(
            name=f"mcp__{server.name}__{declared.name}",
            description=declared.description or declared.name,
            input_schema=declared.input_schema,
            effect=Effect.READ_ONLY if read_only else Effect.WRITE,
        )
        self._server = server
        self._declared_name = declared.name
        self._timeout_seconds = timeout_seconds

    @property
    def unavailable_because(self) -> str | None:
        """Why the server cannot be asked, or None."""
        return self._server.lost_because

    async def run(self, arguments: Mapping[str, Any], identity: CallIdentity) -> ToolAnswer:
        """Ask the server.

        Raises:
            ToolInterruptedError: The server did not answer in time, or the connection to it ended.
        """
        return await self._server.call(self._declared_name, arguments, identity, self._timeout_seconds)


class ServerConnection:
    """A running server; connected and closed in one task of its own, as the client library demands."""

    def __init__(self, server: McpServer, clock: Clock, working_folder: Path) -> None:
        self.name = server.name
        self.lost_because: str | None = None
        self._server = server
        self._clock = clock
        self._working_folder = working_folder
        self._session: ClientSession | None = None
        self._declared: list[McpTool] = []
        self._ready = asyncio.Event()
        self._closing = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    async def connect(self) -> None:
        """Start the server and list its tools; a failure leaves `lost_because` set and no tools."""
        # In a thread, so that a signal is heard meanwhile; and before the limit, which is the server's alone.
        await asyncio.to_thread(importlib.import_module, "mcp")
        self._task = asyncio.create_task(self._live(), name=f"mcp server {self.name}")
        try:
            async with asyncio.timeout(CONNECT_TIMEOUT_SECONDS):
                await self._ready.wait()
        except TimeoutError:
            self.lost_because = f"it did not answer within {CONNECT_TIMEOUT_SECONDS:g} s"

    def tools(self, timeout_seconds: float) -> list[ServerTool]:
        """The tools that the server declared."""
        return [ServerTool(self, declared, timeout_seconds) for declared in self._declared]

    async def call(
        self, tool: str, arguments: Mapping[str, Any], identity: CallIdentity, timeout_seconds: float
    ) -> ToolAnswer:
        """Call a tool once.

        Raises:
            ToolInterruptedError: There was no answer.
        """
        from mcp import MCPError
        from mcp.types import CONNECTION_CLOSED, CallToolResult

        session = self._session
        if session is None:
            raise ToolInterruptedError(ToolFailure.CONNECTION_LOST, f"server {self.name} is not connected")
        meta: Any = {
            "crashcart/call_id": identity.call_id,
            "crashcart/attempt_id": identity.attempt_id,
            "crashcart/idempotency_key": identity.idempotency_key,
        }
        try:
            async with asyncio.timeout(self._clock.limit_for_work(timeout_seconds)):
                result = await session.call_tool(tool, dict(arguments), meta=meta)
        except TimeoutError as error:
            message = f"server {self.name} did not answer within {timeout_seconds:g} s"
            raise ToolInterruptedError(ToolFailure.TIMED_OUT, message) from error
        except MCPError as error:
            if error.code != CONNECTION_CLOSED:
                return ToolAnswer(({"type": "text", "text": f"server {self.name}: {error.message}"},), is_error=True)
            self.lost_because = "its connection ended during a call"
            message = f"the connection to server {self.name} ended before its answer"
            raise ToolInterruptedError(ToolFailure.CONNECTION_LOST, message) from error
        except (RuntimeError, ValueError, OSError) as error:
            # The server took the call and what came back cannot be read as its answer.
            message = f"the answer of server {self.name} cannot be read: {error}"
            raise ToolInterruptedError(ToolFailure.CONNECTION_LOST, message) from error
        assert isinstance(result, CallToolResult)
        return ToolAnswer(tuple(_blocks(result)), result.is_error)

    async def close(self) -> None:
        """End the server: its input is closed, and its process group is killed if it stays."""
        if self._task is not None:
            self._closing.set()
            await asyncio.gather(self._task, return_exceptions=True)

    async def _live(self) -> None:
        from mcp import ClientSession, MCPError, StdioServerParameters, stdio_client
        from mcp.types import Implementation

        parameters = StdioServerParameters(
            command=self._server.command,
            args=list(self._server.args),
            env={**_inherited_environment(), **self._server.environment},
            cwd=str(self._working_folder),
        )
        information = Implementation(name="crashcart-reference-runtime", version=VERSION)
        try:
            async with (
                stdio_client(parameters) as (read, write),
                ClientSession(read, write, client_info=information) as session,
            ):
                await session.initialize()
                self._declared = await _declared_tools(session)
                self._session = session
                self._ready.set()
                await self._closing.wait()
        except* (OSError, MCPError, ValueError, RuntimeError) as group:
            self.lost_because = self.lost_because or f"it could not be connected: {group.exceptions[0]}"
        finally:
            self._session = None
            self._ready.set()


async def _declared_tools(session: "ClientSession") -> "list[McpTool]":
    from mcp.types import PaginatedRequestParams

    page = await session.list_tools()
    declared = list(page.tools)
    while page.next_cursor:
        page = await session.list_tools(params=PaginatedRequestParams(cursor=page.next_cursor))
        declared += page.tools
    return declared


def _inherited_environment() -> dict[str, str]:
    """What a server gets of our environment: everything but the provider's key."""
    return {name: value for name, value in os.environ.items() if name != "CRASHCART_API_KEY"}


def _blocks(result: "CallToolResult") -> list[dict[str, Any]]:
    blocks: list[dict[str, Any]] = []
    for item in result.content:
        if item.type == "text":
            blocks.append({"type": "text", "text": item.text if item.text.strip() else "(no output)"})
        elif item.type == "image":
            source = {"type": "base64", "media_type": item.mime_type, "data": item.data}
            blocks.append({"type": "image", "source": source})
        else:
            blocks.append({"type": "text", "text": item.model_dump_json(by_alias=True, exclude_none=True)})
    return blocks or [{"type": "text", "text": "(no output)"}]
