"""The servers under measurement: how each is started, where it listens, and how it is ended."""

from __future__ import annotations

import json
import os
import select
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import psutil

from tests.provider_benchmark.exchange import AIMOCK_CHUNK_CHARACTERS, HEADERS, QUESTIONS, SCRIPT, TEXT

AIMOCK_VERSION = "1.43.0"
_START_TRIES = 5_000
_BETWEEN_TRIES_SECONDS = 0.002


@dataclass(frozen=True)
class Server:
    """One server: its name in the table, how it is started, and whether it has a streamed variant of its own."""

    name: str
    command: tuple[str, ...]
    only_streams: bool = False
    port: int | None = None


@dataclass(frozen=True)
class Running:
    """A started server, and the seconds from its start to its first reply."""

    server: Server
    port: int
    process: subprocess.Popen[str]
    start_seconds: float

    @property
    def url(self) -> str:
        """Where it is asked."""
        return f"http://127.0.0.1:{self.port}/v1/messages"

    def memory_mib(self) -> float:
        """Return its resident memory."""
        return psutil.Process(self.process.pid).memory_info().rss / 2**20

    def cpu_seconds(self) -> float:
        """Return the processor time that it has used, its own and the kernel's for it."""
        times = psutil.Process(self.process.pid).cpu_times()
        return times.user + times.system


def servers(folder: Path, aimock: Path) -> tuple[Server, ...]:
    """Write what the servers read into a folder, and return them in the table's order."""
    scripts = {}
    for flush in ("whole", "event"):
        scripts[flush] = folder / f"{flush}.yaml"
        scripts[flush].write_text(SCRIPT.format(flush=flush))
    fixtures = folder / "fixtures"
    fixtures.mkdir()
    answer = {"match": {"userMessage": "hi"}, "response": {"content": TEXT}}
    (fixtures / "reply.json").write_text(json.dumps({"fixtures": [answer]}))
    module = (sys.executable, "-m")
    port = _free_port()
    return (
        Server("crashcart", (*module, "tests.provider_benchmark.provider_server", str(scripts["whole"]))),
        Server(
            "crashcart, an event a write",
            (*module, "tests.provider_benchmark.provider_server", str(scripts["event"])),
            only_streams=True,
        ),
        Server("aiohttp, an event a write", (*module, "tests.provider_benchmark.aiohttp_server", "event")),
        Server("aiohttp, one write", (*module, "tests.provider_benchmark.aiohttp_server", "whole"), only_streams=True),
        Server(
            f"aimock {AIMOCK_VERSION}",
            (
                *("node", str(aimock), "-p", str(port), "-f", str(fixtures), "--log-level", "silent"),
                *("--chunk-size", str(AIMOCK_CHUNK_CHARACTERS)),
            ),
            port=port,
        ),
    )


def _free_port() -> int:
    with socket.socket() as finder:
        finder.bind(("127.0.0.1", 0))
        return int(finder.getsockname()[1])


@contextmanager
def running(server: Server) -> Iterator[Running]:
    """Start a server, and end it with the block."""
    began = time.monotonic()
    process = subprocess.Popen(
        server.command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=_environment()
    )
    try:
        port = server.port or _printed_port(process)
        _await_reply(port, process)
        yield Running(server, port, process, time.monotonic() - began)
    finally:
        process.kill()
        process.wait()


def _environment() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if name in ("PATH", "HOME", "LANG")}


def _printed_port(process: subprocess.Popen[str]) -> int:
    line = process.stdout.readline() if process.stdout is not None else ""
    if not line.strip().isdigit():
        raise RuntimeError(f"the server printed no port but {line!r}: {process.args!r}")
    return int(line)


def _await_reply(port: int, process: subprocess.Popen[str]) -> None:
    """Ask again and again until there is a reply; a connection is refused at once, so this is no long wait."""
    url = f"http://127.0.0.1:{port}/v1/messages"
    for _ in range(_START_TRIES):
        if process.poll() is not None:
            raise RuntimeError(f"the server ended with {process.returncode}: {process.args!r}")
        request = urllib.request.Request(url, QUESTIONS[0].body, HEADERS)
        try:
            with urllib.request.urlopen(request) as reply:
                reply.read()
                return
        except (urllib.error.URLError, ConnectionError):
            select.select((), (), (), _BETWEEN_TRIES_SECONDS)
    raise RuntimeError(f"the server never answered: {process.args!r}")
