"""Recording from end to end: a second provider is the upstream, and the official clients see equal results."""

from __future__ import annotations

import asyncio
import importlib
import signal
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from fake_provider.command_line import main
from fake_provider.dialects import DIALECTS
from fake_provider.document import parse_document
from fake_provider.recording.proxy import Recording
from fake_provider.recording.script_file import NotWrittenError, script_text, write_script
from fake_provider.script import parse_script
from fake_provider.server import Provider
from tests.fake_provider.dialect_requests import NAMES, asking
from tests.fake_provider.raw_client import script

LANES = """
main:
  - think: Where am I?
    say: I will look at the folder, and tell you what is in it.
  - call: Bash
    with: {command: ls -la, nested: {list: [1, 2.5, null, true]}}
  - say: "{{model}} stops here because it is as long as it m"
    stop_reason: max_tokens
  - say: "Literal braces: {{{{model}} and \\u00e9\\u4e2d\\U0001F600."
    usage: {input_tokens: 11, output_tokens: 22, cache_read_input_tokens: 3}
  - status: {code: 400, type: invalid_request_error, message: No good.}
  - overloaded
"""
KEY = "sk-a-very-secret-key"


@asynccontextmanager
async def recording(upstream: str) -> AsyncIterator[tuple[Recording, str]]:
    made = Recording(upstream, tuple(DIALECTS), lambda line: None)
    async with made.listening(0) as url:
        yield made, url


async def anthropic_asks(url: str) -> list[Any]:
    library = importlib.import_module("anthropic")
    results: list[Any] = []
    async with library.AsyncAnthropic(base_url=url, api_key=KEY, max_retries=0) as client:
        for number in range(6):
            asked = {"model": "m", "max_tokens": 64, "messages": [{"role": "user", "content": "hi"}]}
            try:
                if number % 2:
                    results.append((await client.messages.create(**asked)).model_dump())
                else:
                    async with client.messages.stream(**asked) as stream:
                        results.append((await stream.get_final_message()).model_dump())
            except library.APIStatusError as error:
                results.append((type(error), error.status_code, without_request_id(error.body)))
    return results


def without_request_id(body: Any) -> Any:
    return {key: value for key, value in body.items() if key != "request_id"} if isinstance(body, dict) else body


async def chat_asks(url: str) -> list[Any]:
    library = importlib.import_module("openai")
    results: list[Any] = []
    async with library.AsyncOpenAI(base_url=f"{url}/v1", api_key=KEY, max_retries=0) as client:
        for number in range(6):
            asked = {"model": "m", "messages": [{"role": "user", "content": "hi"}]}
            try:
                if number % 2:
                    results.append((await client.chat.completions.create(**asked)).model_dump())
                else:
                    stream = await client.chat.completions.create(
                        **asked, stream=True, stream_options={"include_usage": True}
                    )
                    results.append([chunk.model_dump() async for chunk in stream])
            except library.APIStatusError as error:
                results.append((type(error), error.status_code, error.body))
    return results


async def responses_asks(url: str) -> list[Any]:
    library = importlib.import_module("openai")
    results: list[Any] = []
    async with library.AsyncOpenAI(base_url=f"{url}/v1", api_key=KEY, max_retries=0) as client:
        for number in range(6):
            try:
                if number % 2:
                    results.append((await client.responses.create(model="m", input="hi")).model_dump(warnings=False))
                else:
                    stream = await client.responses.create(model="m", input="hi", stream=True)
                    results.append([event.model_dump(warnings=False) async for event in stream])
            except library.APIStatusError as error:
                results.append((type(error), error.status_code, error.body))
    return results


async def gemini_asks(url: str) -> list[Any]:
    library = importlib.import_module("google.genai")
    results: list[Any] = []
    http = httpx.AsyncClient()
    options = library.types.HttpOptions(base_url=url, api_version="v1beta", httpx_async_client=http)
    client = library.Client(api_key=KEY, http_options=options)
    for number in range(6):
        try:
            if number % 2:
                reply = await client.aio.models.generate_content(model="m", contents="hi")
                results.append(reply.model_dump(exclude={"sdk_http_response"}))
            else:
                stream = await client.aio.models.generate_content_stream(model="m", contents="hi")
                results.append([chunk.model_dump(exclude={"sdk_http_response"}) async for chunk in stream])
        except library.errors.APIError as error:
            results.append((type(error), error.code, error.details))
    await http.aclose()
    client.close()
    return results


ASKS: dict[str, Callable[[str], Awaitable[list[Any]]]] = {
    "anthropic_messages": anthropic_asks,
    "openai_chat": chat_asks,
    "openai_responses": responses_asks,
    "gemini": gemini_asks,
}


@pytest.mark.parametrize("dialect", NAMES)
async def test_the_official_client_sees_the_same_thrice(dialect: str) -> None:
    ask = ASKS[dialect]
    direct = Provider(script(LANES))
    async with direct.listening():
        without_proxy = await ask(direct.url)
    upstream = Provider(script(LANES))
    async with upstream.listening(), recording(upstream.url) as (made, url):
        through_proxy = await ask(url)
    text = script_text(made.lanes, made.dialects)
    replaying = Provider(parse_script(parse_document(text, "recording")))
    async with replaying.listening():
        replayed = await ask(replaying.url)
    assert through_proxy == without_proxy
    assert replayed == without_proxy
    assert len(made.steps) == 6
    assert made.dialects == (dialect,)
    assert KEY not in text
    assert "hi" not in text.split()


async def test_bytes_are_passed_on_as_they_come() -> None:
    upstream = Provider(script("main: [{say: the first words and the last words, hold: {name: here, event: text}}]"))
    asked = asking("openai_chat", stream=True)
    async with upstream.listening(), recording(upstream.url) as (made, url), httpx.AsyncClient(timeout=30) as client:
        async with client.stream("POST", url + asked.path, headers=asked.headers, json=asked.body) as reply:
            pieces = reply.aiter_bytes()
            seen = await anext(pieces)
            while b"the first" not in seen:
                seen += await anext(pieces)
            assert made.steps == []
            upstream.named_holds.release("here")
            async for piece in pieces:
                seen += piece
        assert b"[DONE]" in seen
    assert made.steps[0]["reply"]["blocks"] == [{"text": "the first words and the last words"}]


@pytest.mark.parametrize("dialect", NAMES)
async def test_a_cut_is_passed_on_and_recorded(dialect: str) -> None:
    upstream = Provider(script("main: [{say: cut after these words and before these, cut: {event: text}}, close]"))
    asked = asking(dialect, stream=True)
    async with upstream.listening(), recording(upstream.url) as (made, url), httpx.AsyncClient(timeout=30) as client:
        for _ in range(2):
            with pytest.raises(httpx.TransportError):
                await client.post(url + asked.path, headers=asked.headers, json=asked.body)
    cut, closed = made.steps
    assert cut["fault"] == {"cut": {"event": "content"}}
    assert closed == "close"


async def test_requests_without_tools_get_a_lane_of_their_own() -> None:
    upstream = Provider(script("main: [{say: title}, {say: answer}, {say: summary}]"))
    asked = asking("openai_chat")
    tool = {"type": "function", "function": {"name": "Bash", "parameters": {"type": "object"}}}
    async with upstream.listening(), recording(upstream.url) as (made, url), httpx.AsyncClient() as client:
        for tools in ({}, {"tools": [tool]}, {}):
            await client.post(url + asked.path, headers=asked.headers, json={**asked.body, **tools})
    replaying = Provider(parse_script(parse_document(script_text(made.lanes, made.dialects), "recording")))
    async with replaying.listening(), httpx.AsyncClient(base_url=replaying.url) as client:
        said = []
        for tools in ({"tools": [tool]}, {}, {}):
            reply = await client.post(asked.path, headers=asked.headers, json={**asked.body, **tools})
            said.append(reply.json()["choices"][0]["message"]["content"])
    assert said == ["answer", "title", "summary"]


async def test_side_requests_pass_and_are_not_recorded() -> None:
    upstream = Provider(script("main: [{say: hi}]"))
    async with upstream.listening(), recording(upstream.url) as (made, url), httpx.AsyncClient() as client:
        models = await client.get(f"{url}/v1/models", headers={"authorization": "Bearer k"})
        head = await client.head(f"{url}/api/hello")
    assert (models.status_code, head.status_code) == (200, 200)
    assert models.json()["data"]
    assert made.steps == []


async def test_garbage_ends_its_connection_and_no_other() -> None:
    upstream = Provider(script("main: [{say: hi}]"))
    asked = asking("gemini")
    async with upstream.listening(), recording(upstream.url) as (made, url), httpx.AsyncClient() as client:
        reader, writer = await asyncio.open_connection("127.0.0.1", int(url.rpartition(":")[2]))
        writer.write(b"nonsense\r\n\r\n")
        assert b"400" in await reader.readline()
        writer.close()
        assert (await client.post(url + asked.path, headers=asked.headers, json=asked.body)).status_code == 200
    assert len(made.steps) == 1


async def test_a_key_that_the_upstream_quotes_is_not_written() -> None:
    said = f"main: [{{status: {{code: 401, type: invalid_request_error, message: 'Incorrect key {KEY}, see help.'}}}}]"
    upstream = Provider(script(said))
    asked = asking("openai_chat")
    async with upstream.listening(), recording(upstream.url) as (made, url), httpx.AsyncClient() as client:
        reply = await client.post(url + asked.path, headers={"authorization": f"Bearer {KEY}"}, json=asked.body)
    assert KEY in reply.text
    assert KEY not in script_text(made.lanes, made.dialects)
    assert "[redacted]" in script_text(made.lanes, made.dialects)


async def test_the_command_writes_the_script_on_ctrl_c(tmp_path: Path) -> None:
    upstream = Provider(script("main: [{say: hi}, {hold: here}, {say: never}]"))
    output = tmp_path / "recorded.yaml"
    asked = asking("anthropic_messages")
    async with upstream.listening():
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "fake_provider", "record", "--upstream", upstream.url, "--output", str(output)),
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        assert process.stdout is not None
        url = (await process.stdout.readline()).decode().split(",")[0].removeprefix("listening on ")
        async with httpx.AsyncClient(timeout=30) as client:
            await client.post(url + asked.path, headers=asked.headers, json=asked.body)
            waiting = asyncio.create_task(client.post(url + asked.path, headers=asked.headers, json=asked.body))
            await upstream.named_holds.reached("here")
            process.send_signal(signal.SIGINT)
            out, err = await process.communicate()
            with pytest.raises(httpx.TransportError):
                await waiting
    assert (process.returncode, err) == (0, b"")
    assert f"wrote {output}: 1 replies; 1 unfinished left out" in out.decode()
    assert [path.name for path in tmp_path.iterdir()] == ["recorded.yaml"]
    assert "text: hi" in output.read_text()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--upstream", "127.0.0.1:80"], "--upstream is a URL such as https://HOST"),
        (
            ["--upstream", "http://h", "--output", "there.yaml"],
            "there.yaml exists; choose another file, or say --force",
        ),
        (
            ["--upstream", "http://h", "--output", "no/folder.yaml"],
            "cannot write no/folder.yaml: there is no folder no",
        ),
        (["--upstream", "http://h", "--port", "70000"], "port 70000 on 127.0.0.1 cannot be opened: it is no"),
    ],
)
def test_a_mistake_is_found_before_anything_is_recorded(
    words: list[str], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("there.yaml").write_text("mine")
    assert main(["record", "--output", "new.yaml", *words]) == 2
    assert capsys.readouterr().err.startswith(message)
    assert [path.name for path in tmp_path.iterdir()] == ["there.yaml"]


def test_a_file_that_came_to_be_meanwhile_stays(tmp_path: Path) -> None:
    path = tmp_path / "script.yaml"
    path.write_text("mine")
    with pytest.raises(NotWrittenError, match="exists"):
        write_script(path, "new", force=False)
    assert path.read_text() == "mine"
    write_script(path, "new", force=True)
    assert path.read_text() == "new"
    with pytest.raises(NotWrittenError, match="cannot write"):
        write_script(tmp_path / "none" / "script.yaml", "new", force=False)
    assert [one.name for one in tmp_path.iterdir()] == ["script.yaml"]
