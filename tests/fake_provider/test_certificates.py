"""TLS with certificates that are wrong in one way each: a client that trusts the authority complains of that alone."""

from __future__ import annotations

import ssl

import httpx
import pytest

from fake_provider.document import parse_document
from fake_provider.journal import FaultFired, HandshakeFailed, RequestReceived
from fake_provider.listen import CERTIFICATES
from fake_provider.script import parse_script
from tests.fake_provider.raw_client import CLIENT_HEADERS, HELLO, STREAMED, WatchedProvider

COMPLAINTS = {
    "self_signed": "self-signed certificate",
    "expired": "certificate has expired",
    "wrong_host": "IP address mismatch, certificate is not valid for '127.0.0.1'",
}
"""What OpenSSL says of each certificate that a client should not take."""


def provider_with(certificate: str, step: str = "say: x") -> WatchedProvider:
    text = f"listen: {{tls: {certificate}}}\nlanes: {{main: [{{{step}}}]}}"
    return WatchedProvider(parse_script(parse_document(text, "script.yaml")))


def trusting(provider: WatchedProvider) -> httpx.AsyncClient:
    assert provider.authority_pem is not None
    context = ssl.create_default_context(cadata=provider.authority_pem.decode("ascii"))
    return httpx.AsyncClient(verify=context, base_url=provider.url, headers=CLIENT_HEADERS, trust_env=False)


def test_every_certificate_is_one_of_the_cases() -> None:
    assert {"valid", *COMPLAINTS} == set(CERTIFICATES)


@pytest.mark.parametrize("certificate", COMPLAINTS)
async def test_a_client_refuses_a_wrong_certificate_for_what_is_wrong_with_it(certificate: str) -> None:
    provider = provider_with(certificate)
    async with provider.listening(), trusting(provider) as client:
        with pytest.raises(httpx.ConnectError, match=COMPLAINTS[certificate]):
            await client.post("/v1/messages", json=HELLO)
        await provider.seen(HandshakeFailed)
    assert [entry.certificate for entry in provider.journal.of(HandshakeFailed)] == [certificate]
    assert provider.journal.of(RequestReceived) == ()


async def test_a_client_that_trusts_the_authority_is_answered() -> None:
    provider = provider_with("valid")
    async with provider.listening(), trusting(provider) as client:
        reply = await client.post("/v1/messages", json=HELLO)
    assert reply.json()["content"] == [{"type": "text", "text": "x"}]
    assert provider.journal.of(HandshakeFailed) == ()


async def test_a_client_that_does_not_know_the_authority_refuses_even_the_valid_certificate() -> None:
    provider = provider_with("valid")
    async with provider.listening(), httpx.AsyncClient(base_url=provider.url, trust_env=False) as client:
        with pytest.raises(httpx.ConnectError, match="unable to get local issuer certificate"):
            await client.post("/v1/messages", json=HELLO)
        await provider.seen(HandshakeFailed)


async def test_a_fault_strikes_under_tls_too() -> None:
    provider = provider_with("valid", "say: A text of more than sixteen characters., fault: {reset: {event: text}}")
    received = b""
    async with provider.listening(), trusting(provider) as client:
        with pytest.raises(httpx.ReadError):  # noqa: PT012 - what came before the error is looked at too
            async with client.stream("POST", "/v1/messages", json=STREAMED) as reply:
                async for piece in reply.aiter_raw():
                    received += piece
    assert b"A text of more t" in received
    assert [entry.kind for entry in provider.journal.of(FaultFired)] == ["reset"]
