"""How a connection ends under TLS: a cut says nothing, a good reply's end does, and nothing outlives the provider."""

from __future__ import annotations

import asyncio
import socket
import ssl

import pytest

from fake_provider.document import parse_document
from fake_provider.journal import FaultFired
from fake_provider.script import parse_script
from fake_provider.server import Provider
from tests.fake_provider.raw_client import STREAMED, post

SHUTDOWN_SECONDS_MAX = 10.0


def provider_of(step: str) -> Provider:
    return Provider(
        parse_script(parse_document(f"{{listen: {{tls: self_signed}}, lanes: {{main: [{step}]}}}}", "s.yaml"))
    )


def read_to_the_end(port: int, request: bytes) -> tuple[bytes, str]:
    """Send a request over TLS; return what came, and how the stream ended: by TLS's own word or by the connection."""
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    raw = socket.create_connection(("127.0.0.1", port))
    with context.wrap_socket(raw, suppress_ragged_eofs=False) as secured:
        secured.sendall(request)
        came = b""
        try:
            while data := secured.recv(65536):
                came += data
        except ssl.SSLEOFError:
            return came, "cut"
        return came, "close_notify"


@pytest.mark.parametrize(
    ("step", "ended"),
    [
        ("{say: hello, fault: {cut: {event: content}}}", "cut"),
        ("{fault: close}", "cut"),
        ("{say: hello}", "close_notify"),
    ],
)
async def test_a_fault_ends_the_connection_and_a_good_reply_the_stream(step: str, ended: str) -> None:
    provider = provider_of(step)
    request = post(STREAMED, headers={"connection": "close"})
    async with provider.listening():
        came, how = await asyncio.to_thread(read_to_the_end, provider.port, request)
    assert how == ended
    assert (b"hello" in came) is ("say" in step)
    assert len(provider.journal.of(FaultFired)) == ("fault" in step)


async def test_a_client_that_never_closes_does_not_hold_up_the_end() -> None:
    provider = provider_of("{say: hello, fault: {cut: {event: content}}}")
    async with asyncio.timeout(SHUTDOWN_SECONDS_MAX):
        async with provider.listening():
            context = ssl.create_default_context()
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
            reader, writer = await asyncio.open_connection("127.0.0.1", provider.port, ssl=context)
            writer.write(post(STREAMED))
            assert b"hello" in await reader.read()
            idle = await asyncio.open_connection("127.0.0.1", provider.port, ssl=context)
        for end in (writer, idle[1]):
            end.transport.abort()
