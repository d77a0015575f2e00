"""Only the server's own page on loopback gets an answer, and every answer carries the security headers."""

from __future__ import annotations

import httpx
import pytest
from starlette.responses import PlainTextResponse

from reference_runtime.web.guard import HEADERS, Guard

PORT = 8321
OWN = f"127.0.0.1:{PORT}"


async def ask(headers: dict[str, str], port: int = PORT) -> httpx.Response:
    guard = Guard(PlainTextResponse("reached"), port)
    async with httpx.AsyncClient(transport=httpx.ASGITransport(guard), base_url="http://127.0.0.1") as client:
        return await client.get("/", headers=headers)


@pytest.mark.parametrize("host", [OWN, f"localhost:{PORT}", f"LOCALHOST:{PORT}", f"[::1]:{PORT}"])
async def test_its_own_names_are_answered(host: str) -> None:
    assert (await ask({"host": host})).text == "reached"


@pytest.mark.parametrize(
    "host", ["", "127.0.0.1", "127.0.0.1:80", f"rebound.example:{PORT}", f"127.0.0.1.rebound.example:{PORT}"]
)
async def test_a_rebound_name_is_refused(host: str) -> None:
    refused = await ask({"host": host})
    assert refused.status_code == 421
    assert f"host '{host}' is not this server; allowed: 127.0.0.1:{PORT}" in refused.json()["error"]


async def test_the_default_port_of_http_may_be_left_out() -> None:
    assert (await ask({"host": "localhost"}, port=80)).text == "reached"


@pytest.mark.parametrize("origin", ["null", "http://rebound.example", f"https://{OWN}", "http://127.0.0.1:1"])
async def test_a_foreign_origin_is_refused(origin: str) -> None:
    refused = await ask({"host": OWN, "origin": origin})
    assert refused.status_code == 403
    assert origin in refused.json()["error"]


async def test_its_own_origin_is_answered() -> None:
    assert (await ask({"host": OWN, "origin": f"http://localhost:{PORT}"})).text == "reached"


@pytest.mark.parametrize("host", [OWN, "rebound.example"])
async def test_every_answer_carries_the_security_headers(host: str) -> None:
    answer = await ask({"host": host})
    assert {name: answer.headers.get(name) for name in HEADERS} == HEADERS
    assert "unsafe" not in answer.headers["content-security-policy"]
    assert "access-control-allow-origin" not in answer.headers
