"""A provider in a thread of its own, driven from plain and from asynchronous tests."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path
from typing import Any

import httpx
import pytest

from fake_provider.document import DocumentError
from fake_provider.handle import NotReachedError, ProviderHandle, Source, script_from
from fake_provider.server import ProviderError
from tests.fake_provider.dialect_requests import NAMES, Asking, asking

ASKED = asking("anthropic_messages")
HELD = [{"hold": "here"}, {"say": "hi"}]


def ask(provider: ProviderHandle, asked: Asking = ASKED) -> httpx.Response:
    return httpx.post(provider.url + asked.path, headers=asked.headers, json=asked.body, timeout=30)


async def ask_later(provider: ProviderHandle) -> httpx.Response:
    async with httpx.AsyncClient(timeout=30) as client:
        return await client.post(provider.url + ASKED.path, headers=ASKED.headers, json=ASKED.body)


@pytest.mark.parametrize(
    ("source", "strict"),
    [
        ("lanes:\n  main: [overloaded]", True),
        ("main: [overloaded]", True),
        ("- overloaded", True),
        ("[overloaded]", True),
        (["overloaded"], True),
        ({"main": ["overloaded"]}, True),
        ({"lanes": {"main": ["overloaded"]}}, True),
        ({"strict": False, "lanes": {"main": ["overloaded"]}}, False),
        ({"strict": True, "lanes": {"main": ["overloaded"]}}, True),
    ],
)
def test_a_script_comes_in_many_forms(source: Source, strict: bool) -> None:
    script = script_from(source)
    assert script.strict is strict
    assert [step.label for step in script.lanes[0].steps if not hasattr(step, "times")] == ["overloaded"]
    assert script_from(source, strict=not strict).strict is not strict
    assert script_from(script) == script


def test_a_script_comes_from_a_file(tmp_path: Path) -> None:
    path = tmp_path / "script.yaml"
    path.write_text("lanes: {main: [overloaded]}")
    assert script_from(path) == script_from(str(path))
    with pytest.raises(DocumentError, match="cannot read the file"):
        script_from("missing.yaml")


def test_a_mistake_in_python_data_is_named() -> None:
    with pytest.raises(DocumentError, match="unknown step 'overloded'; did you mean 'overloaded'"):
        script_from(["overloded"])


def test_a_plain_test_loads_scripts_and_reads_the_journal() -> None:
    with ProviderHandle() as provider:
        assert provider.script(["overloaded", {"say": "hi"}]) is provider
        assert [ask(provider).status_code for _ in range(2)] == [529, 200]
        assert len(provider.attempts()) == 2
        assert provider.preset("ok").attempts() == ()
        assert "Everything is fine" in ask(provider).text


def test_a_bad_script_leaves_the_old_one() -> None:
    with ProviderHandle([{"say": "old"}]) as provider:
        with pytest.raises(DocumentError):
            provider.script(["overloded"])
        with pytest.raises(ProviderError, match="a provider of its own"):
            provider.script({"listen": {"tls": "valid"}, "lanes": {"main": [{"say": "new"}]}})
        assert "old" in ask(provider).text


def test_a_plain_test_waits_for_a_hold() -> None:
    got: list[int] = []
    with ProviderHandle(HELD) as provider:
        asking_thread = threading.Thread(target=lambda: got.append(ask(provider).status_code))
        asking_thread.start()
        provider.wait_for_hold("here")
        assert provider.wait_for_attempts(1)[0].step == "say"
        assert provider.release("here") == 1
        asking_thread.join()
    assert got == [200]


async def test_an_asynchronous_test_waits_for_a_hold() -> None:
    with ProviderHandle(HELD) as provider:
        asked = asyncio.create_task(ask_later(provider))
        await provider.async_wait_for_hold("here")
        assert len(await provider.async_wait_for_attempts(1)) == 1
        assert provider.release("here") == 1
        assert (await asked).status_code == 200


async def test_a_wait_that_is_in_vain_shows_the_journal() -> None:
    with ProviderHandle([{"say": "hi"}]) as provider:
        await ask_later(provider)
        with pytest.raises(NotReachedError, match=r"no client waits at hold 'here' after 0\.01 s") as failure:
            provider.wait_for_hold("here", 0.01)
        assert "anthropic_messages" in str(failure.value)
        with pytest.raises(NotReachedError, match="no client waits"):
            await provider.async_wait_for_hold("here", 0.01)
        with pytest.raises(NotReachedError, match=r"1 attempts of 2 arrived after 0\.01 s"):
            provider.wait_for_attempts(2, timeout_seconds=0.01)


def test_scripted_time_can_be_made_faster() -> None:
    with ProviderHandle([{"say": "hi", "stall": {"event": "nothing", "seconds": 3600}}]) as provider:
        provider.time_scale = 1_000_000
        assert ask(provider).status_code == 200
        with pytest.raises(ValueError, match="time_scale is a number above 0"):
            provider.time_scale = 0


def test_a_provider_with_tls_is_one_of_its_own() -> None:
    import ssl

    with ProviderHandle({"listen": {"tls": "valid"}, "lanes": {"main": [{"say": "hi"}]}}) as provider:
        assert provider.authority_pem is not None
        trusting = ssl.create_default_context(cadata=provider.authority_pem.decode())
        reply = httpx.post(provider.url + ASKED.path, headers=ASKED.headers, json=ASKED.body, verify=trusting)
    assert reply.status_code == 200


@pytest.mark.parametrize("dialect", NAMES)
def test_each_dialect_has_a_base_url_and_an_environment(dialect: str) -> None:
    with ProviderHandle() as provider:
        assert provider.base_url(dialect).startswith(provider.url)
        assert provider.base_url(dialect) in provider.environment(dialect).values()
        with pytest.raises(LookupError, match="no dialect 'opena'"):
            provider.base_url("opena")
        assert set(provider.environment("google-genai")) == {"GOOGLE_GEMINI_BASE_URL", "GEMINI_API_KEY"}
        with pytest.raises(LookupError, match="no client 'codex' that is set up by variables alone"):
            provider.environment("codex")


def test_the_official_client_reads_the_environment(anthropic: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    with ProviderHandle(["overloaded", {"say": "Hello."}]) as provider:
        for name, value in provider.environment("anthropic").items():
            monkeypatch.setenv(name, value)
        with anthropic.Anthropic(max_retries=1) as client:
            said = client.messages.create(model="m", max_tokens=9, messages=[{"role": "user", "content": "hi"}])
        provider.expect(attempts=2, statuses=[529, 200])
        assert [gap > 0 for gap in provider.gaps()] == [True]
    assert said.content[0].text == "Hello."


def test_the_control_api_is_there() -> None:
    with ProviderHandle([{"say": "hi"}]) as provider:
        assert httpx.get(provider.control_url + "state").json()["lanes"][0]["steps"] == 1


@pytest.mark.parametrize(
    ("source", "complaint"),
    [
        ([], "No script was loaded"),
        (["overloaded"], "request 2 was unexpected: the script of lane 'main' is used up"),
        ([{"say": "hi", "times": 2, "cut": {"event": "text"}}], "fault 'cut' of request 1 did not strike"),
        (
            [{"say": "hi", "times": 2, "expect_request": {"model": "other"}}],
            "request 1 is not as 'say' expects: model: ",
        ),
    ],
)
def test_what_makes_a_test_worthless_is_complained_of(source: Source, complaint: str) -> None:
    with ProviderHandle(source) as provider:
        for _ in range(2):
            ask(provider)
        assert complaint in (provider.complaint() or "")
        assert provider.lenient().complaint() is None


def test_a_script_that_is_not_strict_may_be_left() -> None:
    with ProviderHandle(["overloaded"], strict=False) as provider:
        for _ in range(2):
            ask(provider)
        assert provider.complaint() is None


FAULTY = {"say": "b", "fault": {"cut": {"event": "body", "byte": 3}}}


def test_a_fault_that_no_request_came_for_is_a_complaint() -> None:
    with ProviderHandle([{"say": "a"}, FAULTY]) as provider:
        ask(provider)
        complaint = provider.complaint()
    assert complaint is not None
    assert "lane 'main': no request came for 1 faults: cut" in complaint


def test_a_second_script_does_not_hide_what_the_first_proved_too_little_about() -> None:
    with ProviderHandle([{"say": "a"}]) as provider:
        ask(provider)
        ask(provider)
        provider.script([{"say": "b"}])
        ask(provider)
        complaint = provider.complaint()
    assert complaint is not None
    assert "request 2 was unexpected" in complaint


def test_clearing_the_journal_does_not_hide_an_unexpected_request() -> None:
    with ProviderHandle([{"say": "a"}]) as provider:
        ask(provider)
        ask(provider)
        assert httpx.post(provider.control_url + "reset").status_code == 200
        complaint = provider.complaint()
    assert complaint is not None
    assert "request 2 was unexpected" in complaint


def test_a_hold_that_kept_nobody_is_a_complaint() -> None:
    with ProviderHandle([{"say": "x", "hold": {"name": "h", "event": "text", "nth": 1}}]) as provider:
        ask(provider)
        complaint = provider.complaint()
    assert complaint is not None
    assert "the hold of request 1 kept nobody" in complaint


def test_faults_that_go_on_for_ever_need_not_be_reached() -> None:
    with ProviderHandle([{"say": "a"}, {**FAULTY, "forever": True}]) as provider:
        ask(provider)
        assert provider.complaint() is None
