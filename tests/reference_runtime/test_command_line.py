"""The program as it is run: a real process against the fake provider, real signals, a real MCP server."""

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from fake_provider.document import parse_document
from fake_provider.journal import RequestReceived, RequestRefused, UnexpectedRequest
from fake_provider.script import parse_lanes
from fake_provider.server import Provider
from reference_runtime.recovery.receipts import CallVerdict
from reference_runtime.session import read_session, transcript_path
from tests.reference_runtime.bench import SESSION_ID

REPOSITORY = Path(__file__).parents[2]
TOOL_SERVER = Path(__file__).parent / "tool_server.py"
INSIST = (
    "main:\n  - insist: {call: mcp__effects__deploy, with: {release: '7'}, until: success, at_most: 2, then: Done.}\n"
)


@dataclass(frozen=True)
class Ended:
    """How a run ended."""

    code: int
    output: str
    errors: str

    @property
    def frames(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.output.splitlines()]

    @property
    def result(self) -> dict[str, Any]:
        (result,) = [frame for frame in self.frames if frame["type"] == "result"]
        assert self.frames[-1] is not None
        assert self.frames[-1] == result
        return result


class Program:
    """Starts the program in an empty home with a listed environment."""

    def __init__(self, folder: Path, url: str) -> None:
        self.folder = folder
        self.home = folder / "home"
        self.work = folder / "work"
        self.work.mkdir(exist_ok=True)
        self._environment = {
            "PATH": os.environ["PATH"],
            "PYTHONPATH": str(REPOSITORY),
            "CRASHCART_HOME": str(self.home),
            "CRASHCART_BASE_URL": url,
            "CRASHCART_API_KEY": "key",
            "CRASHCART_TIME_SCALE": "100",
        }

    async def start(self, *arguments: str, output: int = subprocess.PIPE) -> asyncio.subprocess.Process:
        return await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "reference_runtime",
            *arguments,
            cwd=self.work,
            env=self._environment,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.PIPE,
        )

    async def run(self, *arguments: str, output_format: str = "stream-json") -> Ended:
        return await self.end(await self.start(*arguments, "--output-format", output_format))

    async def end(self, process: asyncio.subprocess.Process) -> Ended:
        output, errors = await process.communicate()
        assert process.returncode is not None
        return Ended(process.returncode, (output or b"").decode(), errors.decode())

    def mcp(self, mode: str) -> tuple[str, str]:
        """The options for the test's MCP server in a mode."""
        server = {"command": sys.executable, "args": [str(TOOL_SERVER), str(self.folder / "effects"), mode]}
        path = self.folder / f"mcp-{mode}.json"
        path.write_text(json.dumps({"mcpServers": {"effects": server}}))
        return ("--mcp-config", str(path))

    @property
    def effects(self) -> list[dict[str, Any]]:
        path = self.folder / "effects"
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


@asynccontextmanager
async def provider(lanes: str) -> AsyncIterator[Provider]:
    """A strict provider; it is an error when it was asked what it would refuse or did not expect."""
    served = Provider(parse_lanes(parse_document(lanes, "lanes.yaml")))
    async with served.listening():
        yield served
    wrong = [entry for entry in served.journal.entries if isinstance(entry, RequestRefused | UnexpectedRequest)]
    assert wrong == []


def requests(served: Provider) -> list[RequestReceived]:
    return [entry for entry in served.journal.entries if isinstance(entry, RequestReceived)]


async def test_a_run_that_succeeds(tmp_path: Path) -> None:
    async with provider("main:\n  - overloaded\n  - say: Done.\n") as served:
        ended = await Program(tmp_path, served.url).run("-p", "Say hi.", "--session-id", SESSION_ID)
    assert (ended.code, ended.errors) == (0, "")
    assert [frame.get("subtype", frame["type"]) for frame in ended.frames] == [
        "init",
        "request",
        "api_retry",
        "request",
        "assistant",
        "success",
    ]
    result = ended.result
    assert (result["result"], result["num_turns"], result["terminal_reason"]) == ("Done.", 1, "completed")
    assert result["session_id"] == SESSION_ID
    first, second = requests(served)
    assert first.headers["x-crashcart-request"] == second.headers["x-crashcart-request"]
    assert ended.frames[0]["tools"] == ["Read", "Write", "Edit", "Bash"]


@pytest.mark.parametrize("output_format", ["text", "json"])
async def test_the_last_word_alone(tmp_path: Path, output_format: str) -> None:
    async with provider("main:\n  - say: Done.\n") as served:
        ended = await Program(tmp_path, served.url).run("-p", "Hi.", output_format=output_format)
    assert ended.code == 0
    assert ended.output == "Done.\n" if output_format == "text" else ended.result["result"] == "Done."


async def test_a_reader_that_leaves_does_not_end_the_run(tmp_path: Path) -> None:
    lanes = "main:\n  - call: Write\n    with: {file_path: a.txt, content: hello}\n  - say: Done.\n"
    async with provider(lanes) as served:
        program = Program(tmp_path, served.url)
        reader, writer = os.pipe()
        arguments = ("-p", "x", "--permission-mode", "bypass", "--output-format", "stream-json")
        process = await program.start(*arguments, output=writer)
        os.close(reader)
        os.close(writer)
        ended = await program.end(process)
    assert (ended.code, ended.errors) == (0, "")
    assert (program.work / "a.txt").read_text() == "hello"


async def test_a_bad_request_is_asked_once_and_exits_with_1(tmp_path: Path) -> None:
    async with provider("main:\n  - bad_request\n") as served:
        ended = await Program(tmp_path, served.url).run("-p", "Hi.")
    assert (ended.code, len(requests(served))) == (1, 1)
    assert (ended.result["subtype"], ended.result["terminal_reason"]) == ("error_during_execution", "api_error")
    assert "HTTP 400" in ended.errors


async def test_an_unknown_session_asks_nobody(tmp_path: Path) -> None:
    async with provider("main:\n  - say: never\n") as served:
        program = Program(tmp_path, served.url)
        for unknown in (SESSION_ID, "../../etc/passwd"):
            ended = await program.run("-p", "Hi.", "--resume", unknown)
            assert (ended.code, ended.output) == (1, "")
            assert ended.errors == f"No conversation found with session ID: {unknown}\n"
    assert requests(served) == []
    assert not program.home.exists()


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ((), "required: -p"),
        (("-p", "x", "--max-turns", "0"), "allowed is a whole number of at least 1"),
        (("-p", "x", "--output-format", "xml"), "choose from"),
        (("-p", "x", "--session-id", "7"), "allowed is a UUID"),
        (("-p", "x", "--session-id", SESSION_ID, "--resume", SESSION_ID), "give one of them"),
        (("-p", "x", "--settings", '{"hoks": {}}'), "did you mean 'hooks'"),
        (("-p", "x", "--frobnicate"), "unrecognized arguments"),
    ],
)
async def test_a_wrong_call_is_one_line_and_exits_with_2(tmp_path: Path, arguments: tuple[str, ...], told: str) -> None:
    program = Program(tmp_path, "http://127.0.0.1:1")
    ended = await program.end(await program.start(*arguments))
    assert (ended.code, ended.output, ended.errors.count("\n")) == (2, "", 1)
    assert told in ended.errors
    assert not program.home.exists()


async def test_a_session_id_in_use_is_refused_and_a_session_goes_on(tmp_path: Path) -> None:
    async with provider("main:\n  - say: One.\n  - say: Two.\n") as served:
        program = Program(tmp_path, served.url)
        assert (await program.run("-p", "A.", "--session-id", SESSION_ID, "--model", "first")).code == 0
        assert (await program.run("-p", "B.", "--session-id", SESSION_ID)).code == 2
        assert (await program.run("-p", "C.", "--resume", SESSION_ID)).result["result"] == "Two."
    assert [request.model for request in requests(served)] == ["first", "first"]
    sent = requests(served)[-1].body
    assert isinstance(sent, dict)
    assert [message["content"][0]["text"] for message in sent["messages"]] == ["A.", "One.", "C."]


async def test_a_newer_transcript_is_refused_with_a_result(tmp_path: Path) -> None:
    program = Program(tmp_path, "http://127.0.0.1:1")
    path = transcript_path(program.home, SESSION_ID)
    path.parent.mkdir(parents=True)
    path.write_text('{"version": 99, "kind": "session"}\n')
    ended = await program.run("-p", "Hi.", "--resume", SESSION_ID)
    assert (ended.code, ended.result["terminal_reason"]) == (1, "recovery_required")
    assert "newer than" in ended.errors
    assert path.read_text().count("\n") == 1


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
async def test_a_signal_during_a_tool_is_a_clean_abort(tmp_path: Path, number: signal.Signals, code: int) -> None:
    os.mkfifo(tmp_path / "ready")
    call = f"main:\n  - call: Bash\n    with: {{command: 'echo $$ > {tmp_path}/ready; sleep 600'}}\n"
    async with provider(call) as served:
        program = Program(tmp_path, served.url)
        process = await program.start(
            "-p", "x", "--permission-mode", "bypass", "--output-format", "stream-json", "--session-id", SESSION_ID
        )
        shell = int(await asyncio.to_thread((tmp_path / "ready").read_text))
        process.send_signal(number)
        ended = await program.end(process)
    assert (ended.code, ended.result["terminal_reason"]) == (code, "aborted_tools")
    with pytest.raises(ProcessLookupError):
        os.kill(shell, 0)
    history = read_session(transcript_path(program.home, SESSION_ID))
    assert history.graph.unanswered_calls() == []
    assert [receipt.verdict for receipt in history.receipts] == [CallVerdict.UNKNOWN_HOLDS_WRITES]
    assert history.terminal_reasons == ("aborted_tools",)


async def test_a_signal_while_the_model_is_silent_is_a_clean_abort(tmp_path: Path) -> None:
    async with provider("main:\n  - say: Hello.\n    fault: {stall: {event: content_block_delta}}\n") as served:
        program = Program(tmp_path, served.url)
        process = await program.start("-p", "x", "--output-format", "stream-json")
        assert process.stdout is not None
        first = await process.stdout.readline()
        process.send_signal(signal.SIGTERM)
        ended = await program.end(process)
    assert b'"init"' in first
    assert (ended.code, ended.result["terminal_reason"]) == (143, "aborted_streaming")


async def test_a_kill_after_the_effect_is_told_as_unknown_and_never_repeated(tmp_path: Path) -> None:
    async with provider(INSIST) as served:
        program = Program(tmp_path, served.url)
        bypass = ("--permission-mode", "bypass", "--output-format", "stream-json")
        process = await program.start("-p", "Deploy.", "--session-id", SESSION_ID, *bypass, *program.mcp("hang"))
        assert process.stderr is not None
        assert await process.stderr.readline() == b"the effect is on disk\n"
        process.kill()
        await program.end(process)
        ended = await program.run(
            "-p", "Go on.", "--resume", SESSION_ID, "--permission-mode", "bypass", *program.mcp("normal")
        )
    assert (ended.code, ended.result["terminal_reason"]) == (1, "recovery_required")
    (recovery,) = [frame for frame in ended.frames if frame.get("subtype") == "recovery"]
    assert [entry["tool"] for entry in recovery["unknown"]] == ["mcp__effects__deploy"]
    (effect,) = program.effects
    receipt = read_session(transcript_path(program.home, SESSION_ID)).receipts[0]
    assert effect["_meta"]["crashcart/idempotency_key"] == receipt.idempotency_key
    assert effect["_meta"]["crashcart/call_id"] == receipt.call_id


async def test_a_server_that_dies_in_a_call_fails_the_call_and_the_loop_goes_on(tmp_path: Path) -> None:
    lanes = (
        "main:\n"
        "  - call: mcp__effects__deploy\n    with: {release: '7'}\n    id: toolu_a\n"
        "  - call: mcp__effects__status\n    with: {}\n    id: toolu_b\n"
        "  - say: Done.\n"
    )
    async with provider(lanes) as served:
        program = Program(tmp_path, served.url)
        ended = await program.run("-p", "x", "--permission-mode", "bypass", *program.mcp("exit"))
    told = {
        block["tool_use_id"]: block["content"][0]["text"]
        for frame in ended.frames
        if frame["type"] == "user"
        for block in frame["message"]["content"]
    }
    assert (ended.code, ended.result["num_turns"], len(program.effects)) == (0, 3, 1)
    assert "The outcome of call toolu_a of tool mcp__effects__deploy is unknown" in told["toolu_a"]
    assert told["toolu_b"] == "mcp__effects__status is not there: its connection ended during a call"


async def test_a_server_that_cannot_be_started_leaves_the_other_tools(tmp_path: Path) -> None:
    async with provider("main:\n  - say: Done.\n") as served:
        program = Program(tmp_path, served.url)
        config = tmp_path / "mcp.json"
        config.write_text('{"mcpServers": {"gone": {"command": "/nonexistent/server"}}}')
        ended = await program.run("-p", "x", "--mcp-config", str(config))
    assert ended.code == 0
    assert ended.frames[0]["mcp_servers"] == [{"name": "gone", "status": "failed"}]
    assert [frame["message"] for frame in ended.frames if frame.get("subtype") == "warning"]


def test_the_core_is_light_to_import() -> None:
    code = (
        "import sys, reference_runtime.command_line;"
        "print([name for name in ('httpx', 'mcp', 'pydantic', 'anyio') if name in sys.modules])"
    )
    ended = subprocess.run([sys.executable, "-c", code], cwd=REPOSITORY, capture_output=True, check=True)
    assert ended.stdout.decode().strip() == "[]"
