"""An MCP server over stdio whose tools have effects that can be counted: the witness outside the runtime.

It runs as a process of its own, started by the runtime under test: ``python -m harness.tools.effect_server CONFIG``.
Every effect is a fsynced line of the ledger. At two places, ``tool.called`` and ``tool.committed``, it tells the
harness where it stands and waits for leave to go on, so that a crash can be put there exactly. It never decides whether
a call is a duplicate: it does what it is asked, as a real service without deduplication would.

It speaks the Model Context Protocol itself (modelcontextprotocol.io, stdio transport: one JSON-RPC message a line),
because importing the official SDK takes longer than the fastest agent's whole run; the tests drive it with the SDK's
client. CONFIG is a JSON file: ``ledger`` and ``socket`` (paths; the socket may be null) and ``tools``, each an
:class:`~harness.model.scenario.EffectTool`.
"""

from __future__ import annotations

import contextlib
import json
import os
import socket
import sys
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any, BinaryIO

import msgspec

from harness.model.scenario import EffectMode, EffectTool
from harness.tools.ledger import ANSWERED, CALLED, COMMITTED, LOST, Ledger, LedgerLine, monotonic_seconds

EXIT_AFTER_COMMIT_STATUS = 86
LEDGER_LOST_STATUS = 70
PROTOCOL_VERSIONS = ("2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05")
"""The versions of the protocol in which these few methods are the same; the first is offered to an unknown client."""

METHOD_NOT_FOUND = -32601
INVALID_PARAMS = -32602


class Config(msgspec.Struct, frozen=True):
    """What the server is started with."""

    ledger: str
    tools: list[EffectTool]
    socket: str | None = None


class MethodError(Exception):
    """A request that is answered with a JSON-RPC error."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code


class Harness:
    """The line to the harness: announce a position, wait for leave to go on."""

    def __init__(self, path: str | None) -> None:
        self._lock = threading.Lock()
        self._stream: socket.SocketIO | None = None
        if path is not None:
            connection = socket.socket(socket.AF_UNIX)
            connection.connect(path)
            self._stream = connection.makefile("rwb", buffering=0)

    def stand_at(self, line: LedgerLine) -> None:
        """Announce the position of a ledger line and return when the harness lets go.

        A harness that has gone away is the end of the run: the process ends rather than act unobserved.
        """
        if self._stream is None:
            return
        message = {"position": line.kind, "tool": line.tool, "call": line.call, "at_seconds": line.at_seconds}
        with self._lock:
            try:
                self._stream.write(json.dumps(message).encode() + b"\n")
                leave = self._stream.readline()
            except OSError:
                leave = b""
        if not leave:
            os._exit(0)

    def tell_loss(self) -> None:
        """Tell the harness that the ledger cannot be written, so that the run is not judged by what is missing."""
        if self._stream is not None:
            with contextlib.suppress(OSError):
                self._stream.write(json.dumps({"position": LOST, "tool": "", "call": 0}).encode() + b"\n")


class EffectServer:
    """Tools of one configuration, all writing to one ledger; each call runs in a thread of its own."""

    def __init__(self, config: Config, harness: Harness, output: BinaryIO) -> None:
        self._tools = {tool.name: tool for tool in config.tools}
        self._ledger = Ledger(Path(config.ledger))
        self._harness = harness
        self._output = output
        self._writing = threading.Lock()
        self._counting = threading.Lock()

    def serve(self, lines: BinaryIO) -> None:
        """Answer requests until the client closes its end, then end at once, as a real server does."""
        for line in lines:
            try:
                message = json.loads(line)
            except ValueError:
                continue  # not a message; the protocol has no answer to it
            if not isinstance(message, dict) or "id" not in message or "method" not in message:
                continue  # a notification, which nothing here waits for
            if message["method"] == "tools/call":
                threading.Thread(target=self._answer, args=(message,), daemon=True).start()
            else:
                self._answer(message)
        os._exit(0)

    def _answer(self, message: dict[str, Any]) -> None:
        try:
            params = mapping("params", message.get("params"))
            reply: dict[str, Any] = {"result": self._result(message["method"], params, message["id"])}
        except MethodError as error:
            reply = {"error": {"code": error.code, "message": str(error)}}
        except (OSError, ValueError) as error:  # the ledger: a witness that cannot write must not look like a slow tool
            sys.stderr.write(f"effect server: {error}\n")
            sys.stderr.flush()
            self._harness.tell_loss()
            os._exit(LEDGER_LOST_STATUS)
        data = json.dumps({"jsonrpc": "2.0", "id": message["id"], **reply}).encode() + b"\n"
        try:
            with self._writing:
                self._output.write(data)
                self._output.flush()
        except OSError:
            os._exit(0)  # the client is gone

    def _result(self, method: str, params: dict[str, Any], request: object) -> dict[str, Any]:
        match method:
            case "initialize":
                asked = params.get("protocolVersion")
                return {
                    "protocolVersion": asked if asked in PROTOCOL_VERSIONS else PROTOCOL_VERSIONS[0],
                    "capabilities": {"tools": {}},
                    "serverInfo": {"name": "effects", "version": "1"},
                }
            case "ping":
                return {}
            case "tools/list":
                return {"tools": [described(tool) for tool in self._tools.values()]}
            case "tools/call":
                return self._call(params, request)
        raise MethodError(METHOD_NOT_FOUND, f"no method is named {method}")

    def _call(self, params: dict[str, Any], request: object) -> dict[str, Any]:
        """Ledger line, position, effect, position, answer, as the call's mode says."""
        tool = self._tools.get(str(params.get("name")))
        if tool is None:
            raise MethodError(INVALID_PARAMS, f"no tool is named {params.get('name')}")
        called = self._called(tool, params, request)
        self._harness.stand_at(called)
        mode = EffectMode(called.mode)
        if mode is EffectMode.HANG_BEFORE_COMMIT:
            hang()
        if mode is EffectMode.SLOW:
            threading.Event().wait(tool.delay_seconds)
        if not tool.read_only:
            committed = replace(called, kind=COMMITTED, at_seconds=monotonic_seconds())
            self._ledger.append(committed)
            self._harness.stand_at(committed)
        if mode is EffectMode.EXIT_AFTER_COMMIT:
            os._exit(EXIT_AFTER_COMMIT_STATUS)
        if mode is EffectMode.HANG_AFTER_COMMIT:
            hang()
        self._ledger.append(replace(called, kind=ANSWERED, at_seconds=monotonic_seconds()))
        if mode is EffectMode.ERROR_AFTER_COMMIT:
            return answer(f"{tool.name}: the service reported an internal error", is_error=True)
        return answer(json.dumps({"tool": tool.name, "status": "accepted", "number": called.call}), is_error=False)

    def _called(self, tool: EffectTool, params: dict[str, Any], request: object) -> LedgerLine:
        """Count the call and write its first ledger line; no two calls get one number."""
        meta, arguments = (mapping(key, params.get(key)) for key in ("_meta", "arguments"))
        with self._counting:
            call = self._ledger.calls(tool.name) + 1
            line = LedgerLine(
                kind=CALLED,
                tool=tool.name,
                call=call,
                request=str(request),
                meta=meta,
                arguments=arguments,
                mode=tool.modes[min(call, len(tool.modes)) - 1].value,
                pid=os.getpid(),
                at_seconds=monotonic_seconds(),
            )
            self._ledger.append(line)
        return line


def mapping(name: str, value: object) -> dict[str, Any]:
    """Return a part of a request that has to be a JSON object where it is given.

    Raises:
        MethodError: It is something else.
    """
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise MethodError(INVALID_PARAMS, f"{name} is no object")
    return value


def hang() -> None:
    """Never return; only the end of the process ends it."""
    threading.Event().wait()


def described(tool: EffectTool) -> dict[str, Any]:
    """Return a tool as MCP lists it, all arguments required."""
    return {
        "name": tool.name,
        "description": tool.description,
        "inputSchema": {
            "type": "object",
            "properties": {name: {"type": kind} for name, kind in tool.arguments.items()},
            "required": list(tool.arguments),
        },
        "annotations": {"readOnlyHint": tool.read_only, "destructiveHint": not tool.read_only},
    }


def answer(text: str, *, is_error: bool) -> dict[str, Any]:
    """Return a tool result of one text."""
    return {"content": [{"type": "text", "text": text}], "isError": is_error}


def main() -> None:
    """Serve over standard input and output."""
    config = msgspec.json.decode(Path(sys.argv[1]).read_bytes(), type=Config)
    EffectServer(config, Harness(config.socket), sys.stdout.buffer).serve(sys.stdin.buffer)


if __name__ == "__main__":
    main()
