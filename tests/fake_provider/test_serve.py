"""``python -m fake_provider`` from end to end, as its own process, on a pipe and on a terminal."""

from __future__ import annotations

import asyncio
import fcntl
import os
import pty
import signal
import socket
import ssl
import struct
import sys
import termios
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import httpx
import pytest

from fake_provider.clients import lines_for
from fake_provider.command_line import main
from fake_provider.journal import ReplyEnded, RequestReceived, decode_entry
from fake_provider.presets import descriptions
from harness.cli import script_of
from tests.fake_provider.dialect_requests import asking
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
        greeting = [(await process.stdout.readline()).decode().strip() for _ in range(6)]
        assert greeting == [
            f"anthropic_messages  ANTHROPIC_BASE_URL={url}",
            f"openai_chat         OPENAI_BASE_URL={url}/v1",
            f"openai_responses    OPENAI_BASE_URL={url}/v1",
            f"gemini              GOOGLE_GEMINI_BASE_URL={url}",
            "any key will do; for the lines to paste for a client: --client NAME",
            f"control it at {url}/__crashcart__/",
        ]
        port = int(url.rpartition(":")[2])
        requests = [post(STREAMED), post(STREAMED), post(HELLO), post({**HELLO, "max_tokens": -1})]
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
        "#4  POST /v1/messages  400  refused: max_tokens: Input should be greater than or equal to 0",
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


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "nothing to serve: give SCRIPT.yaml or --preset NAME. Presets: cut-inside-tool, "),
        (["--preset", "flakey"], "no preset 'flakey'; did you mean 'flaky'? Allowed: "),
        (["script.yaml", "--preset", "ok"], "give a script or --preset, not both"),
        (["--preset", "ok", "--client", "claude"], "no client 'claude'; did you mean 'claude-code'? Allowed: "),
        (["--preset", "ok", "--ca-file", "ca.pem"], "--ca-file is for TLS; add --tls KIND"),
        (["missing.yaml"], "missing.yaml:1: cannot read the file: No such file or directory"),
        (["--preset", "ok", "--port", "70000"], "port 70000 on 127.0.0.1 cannot be opened: it is not a port number"),
    ],
)
def test_a_mistake_is_one_line_that_says_what_is_allowed(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments) == 2
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert err.startswith(message)


@pytest.mark.parametrize(
    "arguments", [["--time-scale", "0"], ["--time-scale", "inf"], ["--keep", "0"], ["--tls", "no"]]
)
def test_a_word_that_means_nothing_is_refused(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        main(["--preset", "ok", *arguments])
    assert f"argument {arguments[0]}: " in capsys.readouterr().err


def test_presets_are_listed_with_what_they_do(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--list-presets"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == len(descriptions())
    assert any(line.startswith("overload  ") and line.endswith("own overload error.") for line in lines)


def test_the_lines_for_a_client_need_no_script(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--client", "openai"]) == 0
    assert main(["--client", "openai", "--port", "8080"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "export OPENAI_BASE_URL=http://127.0.0.1:PORT/v1 OPENAI_API_KEY=sk-scripted",
        "export OPENAI_BASE_URL=http://127.0.0.1:8080/v1 OPENAI_API_KEY=sk-scripted",
    ]


async def test_only_the_lines_of_the_client_that_was_named_are_printed() -> None:
    async with running("--preset", "ok", "--client", "claude-code") as process:
        assert process.stdout is not None
        url = (await process.stdout.readline()).decode().strip().removeprefix("listening on ")
        lines = [(await process.stdout.readline()).decode().strip() for _ in range(3)]
        process.send_signal(signal.SIGINT)
        status, rest, _ = await ended(process)
    assert lines == lines_for("claude-code", url).splitlines()
    assert (status, rest) == (0, "0 requests, 0 refused, 0 unexpected, 0 faults\n")


async def test_a_client_that_trusts_the_written_authority_is_served_over_tls(tmp_path: Path) -> None:
    authority = tmp_path / "authority.pem"
    async with running("--preset", "ok", "--tls", "valid", "--ca-file", authority) as process:
        assert process.stdout is not None
        url = (await process.stdout.readline()).decode().strip().removeprefix("listening on ")
        asked = asking("openai_chat")
        async with httpx.AsyncClient(verify=ssl.create_default_context(cafile=authority)) as client:
            reply = await client.post(url + asked.path, headers=asked.headers, json=asked.body)
        process.send_signal(signal.SIGTERM)
        status, _, err = await ended(process)
    assert url.startswith("https://127.0.0.1:")
    assert (reply.status_code, status, err) == (200, 0, "")


async def test_a_terminal_gets_a_live_table_and_ctrl_c_a_summary(tmp_path: Path) -> None:
    main_end, terminal = pty.openpty()
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 20, 100, 0, 0))
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "100", "LINES": "20"}
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "fake_provider", "--preset", "overload", stdout=terminal, stderr=terminal, env=environment
    )
    os.close(terminal)
    loop, shown, changed = asyncio.get_running_loop(), bytearray(), asyncio.Event()

    def read() -> None:
        try:
            shown.extend(os.read(main_end, 65536))
        except OSError:  # a terminal whose last writer is gone reports an error where a pipe reports an end
            loop.remove_reader(main_end)
        changed.set()

    async def seen(words: bytes) -> None:
        while words not in shown:
            changed.clear()
            await changed.wait()

    loop.add_reader(main_end, read)
    try:
        await seen(b"0 requests")
        port = int(shown.split(b"listening on http://127.0.0.1:")[1].split(b"\r")[0])
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        await Connection(reader, writer).send(post(HELLO))
        await seen(b"1 requests")
        process.send_signal(signal.SIGINT)
        assert await process.wait() == 0
        await seen(b"1 requests, 0 refused, 0 unexpected, 0 faults\r\n")
        writer.close()
    finally:
        loop.remove_reader(main_end)
        os.close(main_end)
        if process.returncode is None:
            process.kill()
            await process.wait()
    assert b"529" in shown
    assert b"main: overloaded" in shown
    assert b"Traceback" not in shown


def test_a_scenario_is_served_by_its_model(tmp_path: Path) -> None:
    scenario = next(Path("scenarios").rglob("*.yaml"))
    assert script_of(scenario).strict
    plain = tmp_path / "script.yaml"
    plain.write_text(LANES)
    assert not script_of(plain).strict
