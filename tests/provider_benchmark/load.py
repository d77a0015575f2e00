"""The two load generators: wrk, and a client in asyncio. Both check that what comes back is the reply.

wrk is written in C and leaves the processor to the server; the asyncio client costs more than the provider does, so
its rates say how the servers compare for a client of that kind, and not what they can give.
"""

from __future__ import annotations

import asyncio
import json
import re
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

from tests.provider_benchmark.exchange import FIRST_MAX_TOKENS, HEADERS, Question
from tests.provider_benchmark.servers import Running

_UNITS = {"us": 0.001, "ms": 1.0, "s": 1000.0}


@dataclass(frozen=True)
class Measured:
    """One cell: requests a second, and the time of a reply in milliseconds."""

    rate: float
    p50_ms: float
    p99_ms: float
    cpu_us: float


class LoadError(Exception):
    """A reply that is not the one asked for, or a generator that cannot run."""


def with_wrk(running: Running, question: Question, connections: int, seconds: int, folder: Path) -> Measured:
    """Measure with wrk, one thread.

    Raises:
        LoadError: A reply was no success, or wrk cannot run.
    """
    script = folder / f"{question.name}.lua"
    lines = ['wrk.method = "POST"', f"wrk.body = {json.dumps(question.body.decode())}"]
    lines += [f"wrk.headers[{json.dumps(name)}] = {json.dumps(value)}" for name, value in HEADERS.items()]
    if question.differing:
        start = json.dumps(question.body.decode().removesuffix(f"{FIRST_MAX_TOKENS}}}"))
        lines += [
            f"local number = {FIRST_MAX_TOKENS}",
            "function request()",
            "  number = number + 1",
            f'  return wrk.format(nil, nil, nil, {start} .. number .. "}}")',
            "end",
        ]
    script.write_text("\n".join(lines))
    command = ["wrk", "-t1", f"-c{connections}", f"-d{seconds}s", "--latency", "-s", str(script), running.url]
    before = running.cpu_seconds()
    try:
        output = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    except FileNotFoundError:
        raise LoadError("wrk is not installed; on Debian:  sudo apt-get install -y wrk") from None
    used = running.cpu_seconds() - before
    if "Non-2xx" in output or "Socket errors" in output:
        raise LoadError(f"wrk saw failures at {running.server.name}:\n{output}")
    requests = int(_found(r"(\d+) requests in", output))
    return Measured(
        rate=float(_found(r"Requests/sec:\s+([\d.]+)", output)),
        p50_ms=_milliseconds(_found(r"50%\s+([\d.]+[a-z]+)", output)),
        p99_ms=_milliseconds(_found(r"99%\s+([\d.]+[a-z]+)", output)),
        cpu_us=used * 1e6 / requests,
    )


def _found(pattern: str, text: str) -> str:
    match = re.search(pattern, text)
    if match is None:
        raise LoadError(f"wrk's output has no {pattern!r}:\n{text}")
    return match.group(1)


def _milliseconds(text: str) -> float:
    match = re.fullmatch(r"([\d.]+)([a-z]+)", text)
    if match is None or match.group(2) not in _UNITS:
        raise LoadError(f"not a time: {text}")
    return float(match.group(1)) * _UNITS[match.group(2)]


async def with_asyncio(running: Running, question: Question, connections: int, seconds: float) -> Measured:
    """Measure with connections of this process, each asking again as soon as its reply is complete.

    Raises:
        LoadError: A reply was no success.
    """
    lines = [f"POST /v1/messages HTTP/1.1\r\nhost: 127.0.0.1:{running.port}\r\ncontent-length: {len(question.body)}"]
    lines += [f"{name}: {value}" for name, value in HEADERS.items()]
    request = "\r\n".join(lines).encode() + b"\r\n\r\n" + question.body
    times: list[float] = []
    before, began = running.cpu_seconds(), time.perf_counter()
    until = began + seconds
    await asyncio.gather(*(_ask_until(running.port, request, until, times) for _ in range(connections)))
    took = time.perf_counter() - began
    times.sort()
    return Measured(
        rate=len(times) / took,
        p50_ms=times[len(times) // 2] * 1000,
        p99_ms=times[len(times) * 99 // 100] * 1000,
        cpu_us=(running.cpu_seconds() - before) * 1e6 / len(times),
    )


async def _ask_until(port: int, request: bytes, until: float, times: list[float]) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    began = time.perf_counter()
    while began < until:
        writer.write(request)
        await _one_reply(reader)
        ended = time.perf_counter()
        times.append(ended - began)
        began = ended
    writer.close()


async def _one_reply(reader: asyncio.StreamReader) -> None:
    head = await reader.readuntil(b"\r\n\r\n")
    if not head.startswith(b"HTTP/1.1 200"):
        raise LoadError(f"a reply is no success: {head[:200]!r}")
    length = re.search(rb"content-length: (\d+)", head, re.IGNORECASE)
    if length is None:
        await reader.readuntil(b"\r\n0\r\n\r\n")
    else:
        await reader.readexactly(int(length.group(1)))
