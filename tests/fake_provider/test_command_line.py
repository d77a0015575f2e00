"""``python -m fake_provider`` from end to end, as its own process."""

from __future__ import annotations

import asyncio
import signal
import socket
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from fake_provider.journal import ReplyEnded, RequestReceived, decode_entry
from tests.fake_provider.raw_client import HELLO, STREAMED, Connection, post

LANES = """lanes:
  main:
    - overloaded
    - say: hi
      fault: {cut: {event: ping}}
    - fault: close
"""


@asynccontextmanager
async def running(*arguments: str | Path) -> AsyncIterator[asyncio.subprocess.Process]:
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "fake_provider",
        *map(str, arguments),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        yield process
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


async def ended(process: asyncio.subprocess.Process) -> tuple[int | None, str, str]:
    out, err = await process.communicate()
    return process.returncode, out.decode(), err.decode()


@pytest.fixture
def script_file(tmp_path: Path) -> Path:
    path = tmp_path / "script.yaml"
    path.write_text(LANES)
    return path


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
async def test_it_shows_each_request_and_ends_with_a_summary(
    script_file: Path, tmp_path: Path, number: signal.Signals
) -> None:
    async with running(script_file, "--journal", tmp_path / "journal.jsonl") as process:
        assert process.stdout is not None
        address = (await process.stdout.readline()).decode().strip()
        url = address.removeprefix("listening on ")
        exported = (await process.stdout.readline()).decode().strip()
        assert exported == f"export ANTHROPIC_BASE_URL={url} ANTHROPIC_API_KEY=sk-ant-scripted"
        port = int(url.rpartition(":")[2])
        requests = [post(STREAMED), post(STREAMED), post(HELLO), post({**HELLO, "max_tokens": 0})]
        requests += [b"HEAD /api/hello HTTP/1.1\r\nhost: p\r\n\r\n", b"nonsense\r\n\r\n", post(HELLO)]
        lines = []
        for request in requests:
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            await Connection(reader, writer).send(request)
            lines.append((await process.stdout.readline()).decode().strip())
            writer.transport.abort()
        process.send_signal(number)
        status, out, err = await ended(process)
    assert lines == [
        "#1  main: overloaded  529",
        "#2  main: say  200  fault cut after ping number 1",
        "#3  main: close  no answer  fault close before the first byte",
        "#4  POST /v1/messages  400  refused: max_tokens: Input should be greater than or equal to 1",
        "#5  HEAD /api/hello  200",
        "connection 6: no request: illegal request line",
        "#6  main: no step  400  unexpected: the script of lane 'main' is used up (steps: 3)",
    ]
    assert (status, out, err) == (0, "6 requests, 1 refused, 1 unexpected, 2 faults\n", "")
    entries = [decode_entry(line) for line in (tmp_path / "journal.jsonl").read_bytes().splitlines()]
    assert [entry.request for entry in entries if isinstance(entry, RequestReceived)] == [1, 2, 3, 4, 5, 6]
    assert [entry.status for entry in entries if isinstance(entry, ReplyEnded)] == [529, 200, None, 400, 200, 400]


async def test_a_taken_port_is_one_line_and_exit_2(script_file: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        async with running(script_file, "--port", str(port)) as process:
            status, out, err = await ended(process)
    assert (status, out) == (2, "")
    assert err == f"port {port} on 127.0.0.1 is taken; choose another with --port, or 0 for a free one\n"


async def test_a_mistake_in_the_script_is_one_line_and_exit_2(tmp_path: Path) -> None:
    path = tmp_path / "bad.yaml"
    path.write_text("lanes:\n  main:\n    - overloded\n")
    async with running(path) as process:
        status, _, err = await ended(process)
    assert status == 2
    assert err.startswith(f"{path}:3: unknown step 'overloded'; did you mean 'overloaded'? Allowed: ")
    assert err.count("\n") == 1


async def test_a_journal_that_cannot_be_written_is_one_line_and_exit_2(script_file: Path, tmp_path: Path) -> None:
    async with running(script_file, "--journal", tmp_path) as process:
        status, _, err = await ended(process)
    assert (status, err) == (2, f"cannot write the journal {tmp_path}: Is a directory\n")
