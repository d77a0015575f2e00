"""A thousand streams open at once, each stalled in its middle: are they all open, and what does one cost?"""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass

from tests.provider_benchmark.exchange import HEADERS, QUESTIONS, TEXT
from tests.provider_benchmark.servers import Running

STREAMS = 1_000
STALL_SECONDS = 5
SCRIPT = (
    "dialect: anthropic_messages\n"
    f'lanes: {{main: [{{say: "{TEXT}", forever: true, '
    f"fault: {{stall: {{event: text, nth: 5, seconds: {STALL_SECONDS}}}}}}}]}}\n"
)


@dataclass(frozen=True)
class Stalled:
    """What was seen: how many were open at once, how long all took, and the memory of one."""

    open_at_once: int
    seconds: float
    stream_kib: float


async def stalled(running: Running) -> Stalled:
    """Open all streams, see each of them stand still in its middle, and read each to its end."""
    body = QUESTIONS[1].body
    lines = [f"POST /v1/messages HTTP/1.1\r\nhost: p\r\ncontent-length: {len(body)}"]
    request = (
        "\r\n".join([*lines, *(f"{name}: {value}" for name, value in HEADERS.items())]).encode() + b"\r\n\r\n" + body
    )
    before, began = running.memory_mib(), time.monotonic()
    standing = 0
    all_stand = asyncio.Event()
    memory = before

    async def one() -> None:
        nonlocal standing, memory
        reader, writer = await asyncio.open_connection("127.0.0.1", running.port)
        writer.write(request)
        for _ in range(5):
            await reader.readuntil(b'"text_delta"')
        standing += 1
        if standing == STREAMS:
            memory = running.memory_mib()
            all_stand.set()
        await reader.readuntil(b"\r\n0\r\n\r\n")
        writer.close()

    streams = [asyncio.ensure_future(one()) for _ in range(STREAMS)]
    first_done, _ = await asyncio.wait(streams, return_when=asyncio.FIRST_COMPLETED)
    open_at_once = standing if all_stand.is_set() else STREAMS - len(first_done)
    await asyncio.gather(*streams)
    return Stalled(open_at_once, time.monotonic() - began, (memory - before) * 1024 / STREAMS)
