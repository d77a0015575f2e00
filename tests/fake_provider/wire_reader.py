"""What a client's socket sees of a reply, byte by byte, and taken apart by the rules of HTTP and of event streams.

It shares no code with the provider that encodes replies: where both were wrong in the same way, no test would notice.
"""

from __future__ import annotations

import asyncio
import json
import re
import socket
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from fake_provider.journal import ReplyEnded
from tests.fake_provider.dialect_requests import asking
from tests.fake_provider.raw_client import WatchedProvider

End = Literal["open", "fin", "rst"]

_EVENT = re.compile(rb".*?(?:\r\n\r\n|\n\n)", re.DOTALL)


def request_bytes(dialect: str, *, stream: bool, headers: Sequence[str] = (), last: bool = False) -> bytes:
    """A request of one dialect; the ``last`` one on its connection says so."""
    asked = asking(dialect, stream=stream)
    body = dict(asked.body)
    if dialect == "openai_chat" and stream:
        body["stream_options"] = {"include_usage": True}
    data = json.dumps(body).encode()
    lines = [f"POST {asked.path} HTTP/1.1", "host: provider", f"content-length: {len(data)}", *headers]
    lines += [f"{name}: {value}" for name, value in asked.headers.items()]
    lines += ["connection: close"] if last else []
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + data


@dataclass(frozen=True)
class Wire:
    """One reply.

    Attributes:
        data: Every byte of it.
        end: Whether the connection stayed open, or ended with a FIN or a RST.
        again: What came for a second request on the connection, where it stayed open.
    """

    data: bytes
    end: End
    again: bytes = b""

    @property
    def head(self) -> bytes:
        return self.data.partition(b"\r\n\r\n")[0]

    @property
    def status_line(self) -> bytes:
        return self.head.split(b"\r\n")[0]

    @property
    def headers(self) -> dict[str, str]:
        found: dict[str, str] = {}
        for line in self.head.decode("latin-1").split("\r\n")[1:]:
            name, _, value = line.partition(": ")
            found[name] = f"{found[name]}, {value}" if name in found else value
        return found

    @property
    def raw_body(self) -> bytes:
        """Everything behind the head, with its framing."""
        return self.data.partition(b"\r\n\r\n")[2]

    @property
    def chunks(self) -> tuple[list[bytes], bytes]:
        """The whole chunks, and what is left that is none."""
        found: list[bytes] = []
        rest = self.raw_body
        while match := re.match(rb"([0-9a-f]+)\r\n", rest):
            size = int(match[1], 16)
            chunk, mark = rest[match.end() : match.end() + size], rest[match.end() + size :][:2]
            if len(chunk) < size or mark != b"\r\n":
                break
            if not size:
                return [*found, b""], rest[match.end() + 2 :]
            found.append(chunk)
            rest = rest[match.end() + size + 2 :]
        return found, rest

    @property
    def body(self) -> bytes:
        """The body without its framing, as far as whole chunks came."""
        if self.headers.get("transfer-encoding") == "chunked":
            return b"".join(self.chunks[0])
        return self.raw_body

    @property
    def ended(self) -> bool:
        """Whether the body ended by HTTP's own rules, and nothing stands behind it."""
        if self.headers.get("transfer-encoding") == "chunked":
            chunks, rest = self.chunks
            return chunks[-1:] == [b""] and rest == b""
        if "content-length" in self.headers:
            return len(self.raw_body) == int(self.headers["content-length"])
        return self.end == "fin"

    @property
    def events(self) -> list[bytes]:
        """The blocks that a blank line ends; a torn one at the end counts too."""
        body = self.body
        found = _EVENT.findall(body)
        rest = body[sum(map(len, found)) :]
        return [*found, rest] if rest else found

    @property
    def values(self) -> list[Any]:
        """The JSON of each event, or of the body."""
        if self.headers["content-type"].startswith("application/json"):
            return [json.loads(self.body)]
        data = [re.search(rb"^data: (.*?)\r?$", event, re.MULTILINE) for event in self.events]
        return [json.loads(found[1]) for found in data if found is not None and found[1] != b"[DONE]"]


async def look(
    provider: WatchedProvider, dialect: str, *, stream: bool, headers: Sequence[str] = (), end: End = "open"
) -> Wire:
    """Ask once and see everything that comes; where the connection is to stay open, ask on it once more."""
    loop = asyncio.get_running_loop()
    received = bytearray()
    with socket.socket() as client:
        client.setblocking(False)
        await loop.sock_connect(client, ("127.0.0.1", provider.port))
        await loop.sock_sendall(client, request_bytes(dialect, stream=stream, headers=headers))
        reading = asyncio.create_task(_read_all(client, received))
        await provider.seen(ReplyEnded)
        if end == "open":
            await loop.sock_sendall(client, request_bytes(dialect, stream=stream, headers=headers, last=True))
        ended = await reading
    if end != "open":
        return Wire(bytes(received), ended)
    size = provider.journal.of(ReplyEnded)[0].bytes
    return Wire(bytes(received[:size]), "open" if received[size:] else ended, bytes(received[size:]))


async def _read_all(client: socket.socket, received: bytearray) -> End:
    loop = asyncio.get_running_loop()
    try:
        while data := await loop.sock_recv(client, 65_536):
            received += data
    except ConnectionResetError:
        return "rst"
    return "fin"
