"""A home with two sessions of the real runtime, one of them really killed, the real server, and a real Chromium."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Page, sync_playwright

from fake_provider.document import parse_document
from fake_provider.script import parse_lanes
from fake_provider.server import Provider

FINISHED = "00000000-0000-4000-8000-000000000001"
CRASHED = "00000000-0000-4000-8000-000000000002"
LONG_WORD = "unbroken" * 20
MARKUP = '<img src=x onerror="document.title=1">'

# The second session's first call kills the runtime that runs it, so its second call is never dispatched.
SCRIPT = """
main:
  - {say: I read the notes., call: Read, with: {file_path: notes.txt}}
  - say: Done.
  - reply:
      blocks:
        - text: I deploy.
        - tool_use: {name: Bash, id: toolu_deploy, input: {command: 'echo s3cret; kill -9 $PPID; sleep 60'}}
        - tool_use: {name: Write, id: toolu_note, input: {file_path: note.txt, content: s3cret}}
"""

BROWSER_NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
QUIET = ("--disable-background-networking", "--disable-component-update", "--disable-sync", "--no-first-run")


async def run_sessions(home: Path) -> list[int]:
    """Run both sessions against a scripted provider and return the exit codes, negative for a signal."""
    workspace = home / "workspace"
    workspace.mkdir()
    (workspace / "notes.txt").write_text(f"{LONG_WORD}\n")
    codes = []
    async with Provider(parse_lanes(parse_document(SCRIPT, "script"))).listening() as provider:
        for session_id, prompt in ((FINISHED, MARKUP), (CRASHED, "Deploy release 7.")):
            process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-m", "reference_runtime", "-p", prompt, "--session-id", session_id),
                *("--permission-mode", "bypass"),
                cwd=workspace,
                env={"PATH": os.environ["PATH"], "CRASHCART_BASE_URL": provider.url, "CRASHCART_HOME": str(home)},
                stdout=asyncio.subprocess.DEVNULL,
            )
            codes.append(await process.wait())
    return codes


@pytest.fixture(scope="session")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The home of a runtime: one session came to its end, one was killed in the middle of a write."""
    home = tmp_path_factory.mktemp("home")
    assert asyncio.run(run_sessions(home)) == [0, -signal.SIGKILL]
    return home


@dataclass(frozen=True)
class Server:
    """The real server as a process, and where it listens (with a trailing slash)."""

    process: subprocess.Popen[str]
    url: str


def start_server(home: Path, *words: str) -> Server:
    """Start the server on a free port and wait until it said where it listens."""
    command = [sys.executable, "-m", "reference_runtime.web", "--home", str(home), "--port", "0", *words]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    return Server(process, process.stdout.readline().strip())


def stop_server(server: Server) -> int:
    """Interrupt the server as Ctrl-C does and return its exit code."""
    server.process.send_signal(signal.SIGINT)
    code = server.process.wait(timeout=30)
    assert server.process.stdout is not None
    server.process.stdout.close()
    return code


@pytest.fixture(scope="session")
def server(home: Path) -> Iterator[Server]:
    """The server for all tests that do not stop it."""
    server = start_server(home)
    yield server
    stop_server(server)


def chromium() -> str:
    """Return the Chromium to drive; without one the tests fail, because a skip reads as green."""
    named = os.environ.get("CHROMIUM") or next(filter(None, map(shutil.which, BROWSER_NAMES)), None)
    assert named, "the browser tests need a Chromium: run them with make test, or name one in CHROMIUM"
    return named


# Playwright's own event loop counts as running for as long as this lives, so no asynchronous test of another module may
# meet it, and the sessions are made before it.
@pytest.fixture(scope="module")
def browser(home: Path) -> Iterator[Browser]:
    """One headless Chromium."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium(), args=list(QUIET))
        yield browser
        browser.close()


@pytest.fixture
def context(browser: Browser) -> Iterator[BrowserContext]:
    """A browser context without history."""
    context = browser.new_context(viewport={"width": 1024, "height": 768})
    yield context
    context.close()


@pytest.fixture
def page(context: BrowserContext) -> Iterator[Page]:
    """A page that fails the test when the browser itself complains, for example about the content security policy."""
    page = context.new_page()
    complaints: list[str] = []

    def listen(message: ConsoleMessage) -> None:
        if message.type in ("error", "warning"):
            complaints.append(message.text)

    page.on("console", listen)
    page.on("pageerror", lambda error: complaints.append(str(error)))
    yield page
    expected = ("ERR_CONNECTION_REFUSED", "status of 404")
    assert [text for text in complaints if not any(part in text for part in expected)] == []
