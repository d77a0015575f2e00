"""The effect server through the official MCP client, its gate, its ledger, and the hook program, each as a process.

Method: one server with a tool for each mode; a hold keeps a call at a place and the ledger is read meanwhile. That a
call hangs is seen by a later call of the same server being answered while it is not.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from mcp import ClientSession, MCPError, StdioServerParameters, stdio_client
from mcp.types import CallToolResult, TextContent

from harness.driver import HOOK_PROGRAM
from harness.tools.effect_server import EXIT_AFTER_COMMIT_STATUS, LEDGER_LOST_STATUS
from harness.tools.gate import Gate, ToolHold
from harness.tools.ledger import ANSWERED, CALLED, COMMITTED, Ledger, LedgerLine

LINE = LedgerLine(CALLED, "deploy", 1, "7", {"a": 1}, {"release": "é"}, "normal", 4711, 1.5)


def tool(name: str, *modes: str, read_only: bool = False) -> dict[str, Any]:
    return {
        "name": name,
        "description": f"Does {name}.",
        "arguments": {"release": "string"},
        "modes": modes or ("normal",),
        "delay_seconds": 0.0,
        "read_only": read_only,
    }


TOOLS = [
    tool("deploy"),
    tool("look", read_only=True),
    tool("slowly", "slow"),
    tool("fails", "error_after_commit"),
    tool("changes", "normal", "error_after_commit"),
    tool("sleeps", "hang_before_commit"),
    tool("freezes", "hang_after_commit"),
    tool("dies", "exit_after_commit"),
]


def command(folder: Path, socket: Path | None = None) -> list[str]:
    """Write a configuration and return the server's command line."""
    config = {
        "ledger": str(folder / "ledger.jsonl"),
        "socket": None if socket is None else str(socket),
        "tools": TOOLS,
    }
    path = folder / "effects.json"
    path.write_text(json.dumps(config))
    return [sys.executable, "-P", "-s", "-m", "harness.tools.effect_server", str(path)]


@asynccontextmanager
async def client(folder: Path, socket: Path | None = None) -> AsyncIterator[ClientSession]:
    """Start the server with the official client."""
    program, *arguments = command(folder, socket)
    async with (
        stdio_client(StdioServerParameters(command=program, args=arguments)) as (read, write),
        ClientSession(read, write) as session,
    ):
        await session.initialize()
        yield session


def words(result: Any) -> tuple[bool, str]:
    assert isinstance(result, CallToolResult)
    [content] = result.content
    assert isinstance(content, TextContent)
    return bool(result.is_error), content.text


def kinds(folder: Path, name: str) -> list[str]:
    """Return what the ledger holds of a tool."""
    return [line.kind for line in Ledger(folder / "ledger.jsonl").lines() if line.tool == name]


WHOLE = [CALLED, COMMITTED, ANSWERED]
RELEASE = {"release": "7"}


async def test_every_mode_that_answers(tmp_path: Path) -> None:
    async with client(tmp_path) as session:
        listed = (await session.list_tools()).tools
        assert [found.name for found in listed] == [declared["name"] for declared in TOOLS]
        assert listed[0].input_schema["required"] == ["release"]
        hints = {found.name: found.annotations.read_only_hint for found in listed if found.annotations}
        assert [name for name, read_only in hints.items() if read_only] == ["look"]

        accepted = '{"tool": "deploy", "status": "accepted", "number": %d}'
        assert words(await session.call_tool("deploy", RELEASE)) == (False, accepted % 1)
        assert words(await session.call_tool("deploy", RELEASE)) == (False, accepted % 2)
        assert kinds(tmp_path, "deploy") == [*WHOLE, *WHOLE], "it does not deduplicate"

        assert words(await session.call_tool("look", RELEASE))[0] is False
        assert kinds(tmp_path, "look") == [CALLED, ANSWERED]

        assert words(await session.call_tool("slowly", RELEASE))[0] is False
        assert kinds(tmp_path, "slowly") == WHOLE

        assert words(await session.call_tool("fails", RELEASE)) == (
            True,
            "fails: the service reported an internal error",
        )
        assert kinds(tmp_path, "fails") == WHOLE

        errors = [words(await session.call_tool("changes", RELEASE))[0] for _ in range(3)]
        assert errors == [False, True, True], "the last mode holds for all later calls"

        with pytest.raises(MCPError, match="no tool is named none"):
            await session.call_tool("none", {})

    lines = Ledger(tmp_path / "ledger.jsonl").lines()
    assert lines[0].arguments == RELEASE
    assert [line.at_seconds for line in lines] == sorted(line.at_seconds for line in lines)
    assert [line.call for line in lines if line.kind == COMMITTED and line.tool == "deploy"] == [1, 2]


ANNOUNCED = b'{"position": "tool.committed", "tool": "deploy", "call": 1}\n'
FOREIGN = [
    b"garbage\n",
    b"{}\n",
    b"[]\n",
    b"\xff\xfe\n",
    b"x" * 200_000,
    b'{"position": 1, "tool": "deploy", "call": 1}\n',
]


async def said_to(gate: Gate, socket: Path, data: bytes) -> bytes:
    async with gate.open_at(socket):
        reader, writer = await asyncio.open_unix_connection(socket)
        writer.write(data)
        try:
            return await reader.readline()
        except ConnectionResetError:
            return b""
        finally:
            writer.close()


async def test_a_ledger_that_cannot_be_written_is_told_to_the_harness(tmp_path: Path) -> None:
    (tmp_path / "ledger.jsonl").mkdir()
    socket, gate = tmp_path / "gate", Gate(())
    async with gate.open_at(socket):
        server = Bare(command(tmp_path, socket))
        await asyncio.to_thread(server.call, "deploy")
        status, _, _ = await asyncio.to_thread(server.end)
        while not gate.contradictions([]):  # noqa: ASYNC110 - the gate has no event for what it is told
            await asyncio.sleep(0)
    assert status == LEDGER_LOST_STATUS
    assert gate.contradictions([]) == ["a line that a server could not write"]


@pytest.mark.parametrize("data", FOREIGN, ids=lambda data: data[:20].decode(errors="replace"))
async def test_what_no_effect_server_says_is_found_out(data: bytes, tmp_path: Path) -> None:
    gate = Gate(())
    assert await said_to(gate, tmp_path / "gate", data) == b""
    assert gate.contradictions([]) == ["what no effect server says"]


async def test_an_announcement_that_the_ledger_does_not_hold_is_found_out(tmp_path: Path) -> None:
    gate = Gate(())
    assert await said_to(gate, tmp_path / "gate", ANNOUNCED) == b"go\n"
    assert gate.contradictions([]) == ["tool.committed deploy #1"]


async def test_a_ledger_that_was_emptied_is_found_out_and_a_whole_one_is_not(tmp_path: Path) -> None:
    socket, gate = tmp_path / "gate", Gate(())
    async with gate.open_at(socket), client(tmp_path, socket) as session:
        await session.call_tool("deploy", RELEASE)
    ledger = Ledger(tmp_path / "ledger.jsonl")
    assert gate.contradictions(ledger.lines()) == []
    ledger.path.write_bytes(b"")
    assert gate.contradictions(ledger.lines()) == ["tool.called deploy #1", "tool.committed deploy #1"]


async def test_who_stands_at_a_hold_when_the_gate_closes_is_sent_away(tmp_path: Path) -> None:
    hold = ToolHold(COMMITTED, "deploy")
    async with Gate([hold]).open_at(tmp_path / "gate"):
        reader, writer = await asyncio.open_unix_connection(tmp_path / "gate")
        writer.write(ANNOUNCED)
        await hold.reached.wait()
    assert await reader.readline() == b""
    writer.close()


async def test_a_hold_keeps_a_call_at_its_place_and_a_hanging_call_never_goes_on(tmp_path: Path) -> None:
    socket = tmp_path / "gate"
    holds = [
        ToolHold(CALLED, "deploy", nth=2),
        ToolHold(COMMITTED, "deploy", nth=2),
        ToolHold(CALLED, "sleeps"),
        ToolHold(COMMITTED, "freezes"),
    ]
    at_call, at_commit, sleeps, freezes = holds
    async with Gate(holds).open_at(socket), client(tmp_path, socket) as session, asyncio.TaskGroup() as tasks:
        await session.call_tool("deploy", RELEASE)
        assert not at_call.reached.is_set(), "the first time is not the second"
        second = tasks.create_task(session.call_tool("deploy", RELEASE))
        await at_call.reached.wait()
        assert kinds(tmp_path, "deploy") == [*WHOLE, CALLED]
        at_call.release()
        await at_commit.reached.wait()
        assert kinds(tmp_path, "deploy") == [*WHOLE, CALLED, COMMITTED]
        assert not second.done()
        at_commit.release()
        assert words(await second)[0] is False
        assert kinds(tmp_path, "deploy") == [*WHOLE, *WHOLE]

        hanging = [tasks.create_task(session.call_tool(name, RELEASE)) for name in ("sleeps", "freezes")]
        await sleeps.reached.wait()
        sleeps.release()
        await freezes.reached.wait()
        freezes.release()
        assert words(await session.call_tool("deploy", RELEASE))[0] is False
        assert not any(call.done() for call in hanging)
        assert kinds(tmp_path, "sleeps") == [CALLED]
        assert kinds(tmp_path, "freezes") == [CALLED, COMMITTED]
        for call in hanging:
            call.cancel()


class Bare:
    """A client that speaks JSON-RPC by hand, for what a well-behaved one never sends or cannot see."""

    def __init__(self, argv: Sequence[str]) -> None:
        self.process = subprocess.Popen(
            argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )

    def send(self, line: str) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()

    def call(self, name: str) -> None:
        params = {"name": name, "arguments": RELEASE}
        self.send(json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}))

    def end(self) -> tuple[int, str, str]:
        """Wait for the server to end by itself, then return its status and what it printed."""
        assert self.process.stdout is not None
        printed = self.process.stdout.read()  # until it closes its end
        status = self.process.wait()
        _, errors = self.process.communicate()
        return status, printed, errors


def test_exit_after_commit_exits_with_the_effect_in_the_ledger(tmp_path: Path) -> None:
    server = Bare(command(tmp_path))
    server.call("dies")
    assert server.end() == (EXIT_AFTER_COMMIT_STATUS, "", "")
    assert kinds(tmp_path, "dies") == [CALLED, COMMITTED]


def test_calls_are_counted_over_all_servers_of_a_ledger(tmp_path: Path) -> None:
    for _ in range(2):
        server = Bare(command(tmp_path))
        server.call("dies")
        server.end()
    lines = Ledger(tmp_path / "ledger.jsonl").lines()
    assert [(line.call, line.kind) for line in lines] == [(1, CALLED), (1, COMMITTED), (2, CALLED), (2, COMMITTED)]
    assert len({line.pid for line in lines}) == 2


async def test_a_harness_that_goes_away_ends_the_server(tmp_path: Path) -> None:
    socket = tmp_path / "gate"
    asked = asyncio.Event()

    async def leave(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readline()
        writer.close()
        asked.set()

    listening = await asyncio.start_unix_server(leave, socket)
    async with listening:
        server = Bare(command(tmp_path, socket))
        server.call("deploy")
        await asked.wait()
        assert await asyncio.to_thread(server.end) == (0, "", "")
    assert kinds(tmp_path, "deploy") == [CALLED]


def rpc(method: str, params: Any) -> str:
    return json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params})


ODD = {
    "garbage": "hello",
    "a list": "[]",
    "params as a list": rpc("tools/call", [1]),
    "arguments as text": rpc("tools/call", {"name": "deploy", "arguments": "a"}),
    "initialize as text": rpc("initialize", "a"),
    "unknown method": rpc("resources/list", {}),
}


def test_odd_messages_get_an_error_or_nothing_and_the_server_goes_on(tmp_path: Path) -> None:
    server = Bare(command(tmp_path))
    for line in ODD.values():
        server.send(line)
    server.send('{"jsonrpc": "2.0", "id": 2, "method": "ping"}')
    assert server.process.stdout is not None
    answers = [json.loads(server.process.stdout.readline()) for _ in range(5)]
    assert [answer["id"] for answer in answers if "error" in answer] == [1, 1, 1, 1]
    assert [answer["result"] for answer in answers if "result" in answer] == [{}]
    assert server.process.stdin is not None
    server.process.stdin.close()
    assert server.process.wait() == 0
    server.process.stdout.close()
    assert server.process.stderr is not None
    assert server.process.stderr.read() == ""
    server.process.stderr.close()


def test_a_witness_that_cannot_write_ends_loudly(tmp_path: Path) -> None:
    (tmp_path / "ledger.jsonl").mkdir()
    server = Bare(command(tmp_path))
    server.call("deploy")
    status, printed, errors = server.end()
    assert (status, printed) == (LEDGER_LOST_STATUS, "")
    assert "Is a directory" in errors


# --- the ledger


def test_a_line_is_read_back(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "ledger.jsonl")
    assert ledger.lines() == []
    ledger.append(LINE)
    ledger.append(replace(LINE, kind=COMMITTED))
    assert ledger.lines() == [LINE, replace(LINE, kind=COMMITTED)]
    assert ledger.calls("deploy") == 1
    assert ledger.calls("refund") == 0


DAMAGED = {
    "half a line": b'{"kind": "tool.cal',
    "no object": b"5",
    "a field missing": b'{"kind": "tool.called"}',
    "a field too many": b'{"kind": "a", "more": 1}',
    "empty": b"",
    "not UTF-8": b"\xff",
}


@pytest.mark.parametrize("name", DAMAGED)
def test_a_damaged_line_makes_the_witness_worthless_and_says_where(name: str, tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "ledger.jsonl")
    ledger.append(LINE)
    with ledger.path.open("ab") as file:
        file.write(DAMAGED[name] + b"\n")
    with pytest.raises(ValueError, match=r"ledger\.jsonl:2: damaged ledger line: "):
        ledger.lines()


# --- the hook program


def asked(folder: Path, rules: list[dict[str, Any]], event: str, question: dict[str, Any]) -> subprocess.Popen[str]:
    config = folder / "hook-rules.json"
    config.write_text(json.dumps({"log": str(folder / "hooks.jsonl"), "rules": rules}))
    process = subprocess.Popen(
        [sys.executable, "-I", "-S", str(HOOK_PROGRAM), str(config), event],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdin is not None
    process.stdin.write(json.dumps(question))
    return process


def answered(folder: Path, rules: list[dict[str, Any]], event: str, question: dict[str, Any]) -> Any:
    process = asked(folder, rules, event, question)
    printed, _ = process.communicate()
    assert process.returncode == 0
    return json.loads(printed) if printed else None


def log(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "hooks.jsonl").read_text().splitlines()]


def rule(event: str, reason: str, tool_name: str | None = None, times: int = 1) -> dict[str, Any]:
    return {"event": event, "reason": reason, "tool": tool_name, "times": times}


def test_a_tool_is_denied_as_often_as_the_rule_says_and_other_tools_are_not(tmp_path: Path) -> None:
    rules = [rule("pre_tool", "Not so.", "Bash", times=2)]
    denial = {
        "hookSpecificOutput": {
            "hookEventName": "PreToolUse",
            "permissionDecision": "deny",
            "permissionDecisionReason": "Not so.",
        }
    }
    answers = [answered(tmp_path, rules, "pre_tool", {"tool_name": name}) for name in ("Read", "Bash", "Bash", "Bash")]
    assert answers == [None, denial, denial, None]
    assert [(entry["tool"], entry["rule"], entry["reason"]) for entry in log(tmp_path)] == [
        ("Read", None, None),
        ("Bash", 0, "Not so."),
        ("Bash", 0, "Not so."),
        ("Bash", None, None),
    ]


def test_a_stop_is_blocked_and_the_next_rule_speaks_when_the_first_is_spent(tmp_path: Path) -> None:
    rules = [rule("pre_tool", "Never."), rule("stop", "Once more."), rule("stop", "And again.")]
    question = {"stop_hook_active": True}
    answers = [answered(tmp_path, rules, "stop", question) for _ in range(3)]
    assert answers == [
        {"decision": "block", "reason": "Once more."},
        {"decision": "block", "reason": "And again."},
        None,
    ]
    assert [entry["stop_hook_active"] for entry in log(tmp_path)] == [True, True, True]


def test_hooks_asked_at_once_are_counted_one_by_one(tmp_path: Path) -> None:
    rules = [rule("pre_tool", "No.", times=3)]
    processes = [asked(tmp_path, rules, "pre_tool", {"tool_name": f"t{number}"}) for number in range(6)]
    printed = [process.communicate()[0] for process in processes]
    assert sum(bool(text) for text in printed) == 3
    entries = log(tmp_path)
    assert [entry["rule"] for entry in entries] == [0, 0, 0, None, None, None]
    assert {entry["tool"] for entry in entries} == {f"t{number}" for number in range(6)}
