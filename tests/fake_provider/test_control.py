"""The control API of a running provider, asked by a plain HTTP client and by the curl lines of its page."""

from __future__ import annotations

import asyncio
import json
import shlex
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import httpx
import pytest

from fake_provider.journal import ControlRequested, HoldReached, Journal, RequestReceived, decode_entry
from fake_provider.server import Provider
from tests.fake_provider.dialect_requests import asking
from tests.fake_provider.raw_client import script

LANES = """
main:
  - say: one
  - hold: here
  - say: two
  - say: three
"""
ASKED = asking("openai_chat")


@asynccontextmanager
async def controlled(text: str = LANES, journal: Journal | None = None) -> AsyncIterator[tuple[Provider, Client]]:
    provider = Provider(script(text), control=True, journal=journal)
    async with provider.listening(), httpx.AsyncClient(base_url=provider.url, timeout=30) as http:
        yield provider, Client(http)


class Client:
    """A client of the control API and of the model."""

    def __init__(self, http: httpx.AsyncClient) -> None:
        self.http = http

    async def get(self, name: str, /, **parameters: str) -> httpx.Response:
        return await self.http.get(f"/__crashcart__/{name}", params=parameters)

    async def post(self, name: str, content: bytes = b"", /, **parameters: str) -> httpx.Response:
        return await self.http.post(f"/__crashcart__/{name}", params=parameters, content=content)

    async def ask(self) -> str:
        reply = await self.http.post(ASKED.path, headers=ASKED.headers, json=ASKED.body)
        return str(reply.json()["choices"][0]["message"]["content"]) if reply.status_code == 200 else reply.text


async def test_the_index_lists_what_there_is() -> None:
    async with controlled() as (_, client):
        index = (await client.get("")).text
    for name in (
        "journal?since=N",
        "state",
        "script",
        "presets",
        "preset?name=",
        "skip?lane=",
        "wait?hold=",
        "release",
    ):
        assert f"/__crashcart__/{name}" in index


async def test_the_journal_is_read_on_from_where_one_was() -> None:
    async with controlled() as (_, client):
        await client.ask()
        first = await client.get("journal")
        following = first.headers["crashcart-next"]
        second = await client.get("journal", since=following)
    entries = [decode_entry(line) for line in first.content.splitlines()]
    assert [entry.request for entry in entries if isinstance(entry, RequestReceived)] == [1]
    later = [decode_entry(line) for line in second.content.splitlines()]
    assert [type(entry) for entry in later] == [ControlRequested]
    assert int(following) == len(entries)


async def test_a_control_request_is_no_request_of_the_model() -> None:
    async with controlled() as (provider, client):
        await client.get("state")
        await client.ask()
    assert [entry.request for entry in provider.journal.of(RequestReceived)] == [1]
    [control] = provider.journal.of(ControlRequested)
    assert (control.method, control.path, control.status) == ("GET", "/__crashcart__/state", 200)


async def test_the_state_says_where_the_lanes_stand() -> None:
    async with controlled() as (_, client):
        await client.ask()
        state = (await client.get("state")).json()
    assert state["lanes"] == [{"lane": "main", "step": 2, "steps": 3, "label": "say", "answered": 1}]
    assert state["holds"] == {}
    assert "openai_chat" in state["script"]["dialects"]


async def test_a_client_is_waited_for_at_a_hold_and_let_go() -> None:
    async with controlled() as (provider, client):
        await client.ask()
        asked = asyncio.create_task(client.ask())
        waited = await client.get("wait", hold="here")
        assert waited.json() == {"waiting": 1}
        assert provider.journal.of(HoldReached)
        assert (await client.get("state")).json()["holds"] == {"here": 1}
        assert (await client.post("release", hold="here")).json() == {"released": 1}
        assert await asked == "two"


async def test_a_wait_has_an_end() -> None:
    async with controlled() as (_, client):
        reply = await client.get("wait", hold="here", timeout_seconds="0.01")
    assert (reply.status_code, reply.text) == (408, "no client waits at hold 'here' after 0.01 s\n")


async def test_a_step_is_left_out() -> None:
    async with controlled("main: [{say: one}, {say: two}]") as (_, client):
        assert (await client.post("skip", lane="main")).json()["lanes"][0]["step"] == 2
        assert await client.ask() == "two"


async def test_a_script_is_loaded_and_a_bad_one_changes_nothing() -> None:
    async with controlled("main: [{say: one}, {say: old}]") as (_, client):
        assert await client.ask() == "one"
        bad = await client.post("script", b"lanes:\n  main:\n    - overloded\n")
        assert bad.status_code == 400
        assert bad.text.startswith("script:3: unknown step 'overloded'; did you mean 'overloaded'?")
        assert (await client.post("script", b"\xff")).status_code == 400
        assert await client.ask() == "old"
        assert (await client.post("script", b"lanes: {main: [{say: new}]}")).status_code == 200
        assert await client.ask() == "new"


async def test_a_script_that_listens_in_another_way_needs_a_provider_of_its_own() -> None:
    async with controlled() as (_, client):
        reply = await client.post("script", b"listen: {tls: expired}\nlanes: {main: [{say: new}]}")
    assert reply.status_code == 409
    assert "needs a provider of its own" in reply.text


async def test_a_preset_is_loaded_by_name() -> None:
    async with controlled() as (_, client):
        assert "overload" in (await client.get("presets")).json()
        assert (await client.post("preset", name="ok")).status_code == 200
        assert "Everything is fine" in await client.ask()
        unknown = await client.post("preset", name="okay")
    assert unknown.status_code == 404
    assert unknown.text.startswith("no preset 'okay'; did you mean 'ok'? Allowed: ")


async def test_a_reset_begins_anew_and_lets_everybody_go() -> None:
    async with controlled() as (provider, client):
        assert await client.ask() == "one"
        asked = asyncio.create_task(client.ask())
        await client.get("wait", hold="here")
        await client.post("reset")
        assert await asked == "two"
        assert await client.ask() == "one"
        assert [entry.request for entry in provider.journal.of(RequestReceived)] == [3]


@pytest.mark.parametrize(
    ("method", "target", "headers", "status", "text"),
    [
        ("GET", "state", {"origin": "http://evil.example"}, 403, "a request with an Origin comes from a web page"),
        ("POST", "reset", {"host": "evil.example:80"}, 403, "Host 'evil.example:80' is no loopback name"),
        ("GET", "state", {"host": "127.0.0.1.evil.example"}, 403, "Host '127.0.0.1.evil.example' is no loopback"),
        ("GET", "stat", {}, 404, "no /__crashcart__/stat; GET /__crashcart__/ lists"),
        ("GET", "reset", {}, 405, "/__crashcart__/reset takes POST, found GET"),
        ("POST", "skip", {}, 400, "needs ?lane="),
        ("POST", "skip?lane=man", {}, 404, "no lane 'man'; did you mean 'main'?"),
        ("GET", "journal?since=-1", {}, 400, "since counts entries from 0, found '-1'"),
        ("GET", "wait?hold=x&timeout_seconds=nan", {}, 400, "timeout_seconds is a number from 0 to 600"),
    ],
)
async def test_what_is_refused_says_why(
    method: str, target: str, headers: dict[str, str], status: int, text: str
) -> None:
    async with controlled() as (_, client):
        reply = await client.http.request(method, f"/__crashcart__/{target}", headers=headers)
    assert reply.status_code == status
    assert reply.text.startswith(text)


@pytest.mark.parametrize("host", ["localhost:1", "127.0.0.2", "[::1]:80"])
async def test_every_loopback_name_may_control(host: str) -> None:
    async with controlled() as (_, client):
        assert (await client.http.get("/__crashcart__/state", headers={"host": host})).status_code == 200


async def test_a_provider_without_control_has_none() -> None:
    provider = Provider(script(LANES))
    async with provider.listening(), httpx.AsyncClient(base_url=provider.url) as http:
        reply = await http.get("/__crashcart__/state")
    assert reply.status_code == 404
    assert provider.journal.of(ControlRequested) == ()
    assert json.loads(reply.content)["error"]


async def test_a_waiting_client_that_leaves_ends_the_wait() -> None:
    async with controlled() as (provider, client):
        reader, writer = await asyncio.open_connection("127.0.0.1", provider.port)
        writer.write(b"GET /__crashcart__/wait?hold=here HTTP/1.1\r\nhost: localhost\r\n\r\n")
        await client.get("state")
        writer.write_eof()
        assert b" 408 " in await reader.readline()
        writer.close()


PAGE = Path(__file__).parents[2] / "docs" / "provider.md"
CURLS = [
    line for line in PAGE.read_text(encoding="utf-8").replace(" \\\n", " ").splitlines() if line.startswith("curl ")
]


@pytest.mark.parametrize("line", CURLS)
async def test_the_curl_lines_of_the_page_work(line: str) -> None:
    async with controlled("main: [{say: one}, {say: two}]") as (provider, _):
        words = shlex.split(line.replace("http://127.0.0.1:8080", provider.url))
        process = await asyncio.create_subprocess_exec(
            *words, "-sS", "--fail", stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE
        )
        out, err = await process.communicate()
        assert (process.returncode, err) == (0, b"")
        if "/__crashcart__/" in line:
            assert [control.status for control in provider.journal.of(ControlRequested)] == [200] or b"lanes" in out
        else:
            assert b"one" in out


def test_there_are_curl_lines() -> None:
    assert len(CURLS) >= 7


@pytest.mark.parametrize("since", ["9" * 20, "9" * 5000, "-1", "x", "²"])
async def test_a_number_that_no_journal_reaches_is_refused_and_hurts_nobody(since: str) -> None:
    async with controlled() as (provider, client):
        assert (await client.get("journal", since=since)).status_code == 400
        assert await client.ask() == "one"
        assert [entry.status for entry in provider.journal.of(ControlRequested)] == [400]


async def test_a_failure_inside_is_said_and_journalled_and_ends_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    async with controlled() as (provider, client):
        monkeypatch.setattr(type(provider.playback), "state", lambda self: 1 / 0)
        failed = await client.get("state")
        assert failed.status_code == 500
        assert "ZeroDivisionError" in failed.text
        assert await client.ask() == "one"


async def test_a_page_of_another_site_may_not_control_and_keys_stay_out_of_the_journal() -> None:
    async with controlled() as (provider, client):
        refused = await client.http.get("/__crashcart__/state?token=hidden", headers={"sec-fetch-site": "cross-site"})
        [entry] = provider.journal.of(ControlRequested)
    assert refused.status_code == 403
    assert entry.query == "token=[redacted]"


async def test_a_script_that_is_too_long_is_refused() -> None:
    async with controlled() as (_, client):
        assert (await client.post("script", b"#" * (1024 * 1024 + 1))).status_code == 413
