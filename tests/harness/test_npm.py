"""Installing from npm with a stand-in for npm on PATH: whole or not at all, the same binary later, and clear words.

Method: a script plays npm and does what its test asks of it. Nothing here reaches a registry.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from harness.runtimes import npm
from harness.runtimes.adapter import RuntimeUnavailableError
from harness.runtimes.claude_code.adapter import PROGRAM, ClaudeCodeAdapter
from harness.runtimes.npm import NpmRecord, file_sha256, installed, npm_reason, registry_versions

PACKAGE = "@scope/agent"
REPOSITORY = Path(__file__).parents[2]

NPM = """\
#!{python} -IS
import json, os, sys
arguments = sys.argv[1:]
with open({log!r}, "a") as log:
    log.write(json.dumps(arguments) + "\\n")
mode = open({mode!r}).read()
if arguments[0] == "view":
    print({{"one": '"1.0.0"', "garbage": "<html>"}}.get(mode, '["1.0.0", "1.1.0"]'))
    sys.exit(0)
assert "--prefix" not in arguments, "it hides the machine's own npm configuration"
prefix = os.getcwd()
assert os.listdir(prefix) == ["package.json"]
if mode == "no such version":
    sys.stderr.write("npm error code ETARGET\\nnpm error notarget No matching version found for agent@9.9.9.\\n")
    sys.exit(1)
if mode == "silent failure":
    sys.exit(7)
os.makedirs(os.path.join(prefix, "bin"))
if mode == "interrupted":
    with open(os.path.join(prefix, "bin", "agent"), "w") as file:
        file.write("half")
    with open({fifo!r}, "w") as fifo:
        fifo.write(prefix)
    os.read(os.pipe()[0], 1)
if mode != "no build":
    path = os.path.join(prefix, "bin", "agent")
    with open(path, "w") as file:
        file.write("#!/bin/sh\\necho {version} \\\\(Agent\\\\)\\n")
    os.chmod(path, 0o755)
"""


class FakeNpm:
    """The stand-in and its log."""

    def __init__(self, folder: Path, version: str = "1.0.0") -> None:
        self.folder = folder
        self.log = folder / "npm.log"
        self.fifo = folder / "npm.fifo"
        (folder / "path").mkdir()
        self.script = folder / "path" / "npm"
        self.script.write_text(
            NPM.format(
                python=sys.executable,
                log=str(self.log),
                mode=str(folder / "mode"),
                fifo=str(self.fifo),
                version=version,
            )
        )
        self.script.chmod(0o755)
        self.does("well")

    def does(self, mode: str) -> None:
        (self.folder / "mode").write_text(mode)

    @property
    def calls(self) -> list[list[str]]:
        return [json.loads(line) for line in self.log.read_text().splitlines()] if self.log.exists() else []


@pytest.fixture
def fake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeNpm:
    made = FakeNpm(tmp_path)
    monkeypatch.setenv("PATH", str(made.script.parent))
    return made


def problem(cache: Path, version: str = "1.0.0", program: str = "bin/agent") -> str:
    with pytest.raises(RuntimeUnavailableError) as caught:
        installed(PACKAGE, version, program, cache)
    return str(caught.value)


def entries(cache: Path) -> list[str]:
    return sorted(path.name for path in (cache / "scope__agent").iterdir())


def test_a_version_is_installed_once_and_recorded(fake: FakeNpm, tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    path, record = installed(PACKAGE, "1.0.0", "bin/agent", cache)
    assert path == cache / "scope__agent" / "1.0.0" / "bin" / "agent"
    assert record == NpmRecord(PACKAGE, "1.0.0", "bin/agent", path.stat().st_size, file_sha256(path))
    assert installed(PACKAGE, "1.0.0", "bin/agent", cache) == (path, record)
    [call] = fake.calls
    assert call[:4] == ["install", "--ignore-scripts", "--no-audit", "--no-fund"]
    assert call[-1] == "@scope/agent@1.0.0"
    assert entries(cache) == ["1.0.0"]


def test_without_npm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert problem(tmp_path / "cache") == (
        "@scope/agent@1.0.0 cannot be installed: npm is not on PATH; install Node.js with npm, then run this again"
    )
    assert entries(tmp_path / "cache") == []


def test_an_npm_that_cannot_be_executed(fake: FakeNpm, tmp_path: Path) -> None:
    fake.script.write_text("#!/none/node\n")
    assert problem(tmp_path / "cache").startswith("@scope/agent@1.0.0 cannot be installed: npm cannot be started: ")
    with pytest.raises(RuntimeUnavailableError, match="cannot be listed: npm cannot be started"):
        registry_versions(PACKAGE)


FAILURES: dict[str, str] = {
    "no such version": (
        "@scope/agent@1.0.0 cannot be installed: npm ended with 1: "
        "code ETARGET notarget No matching version found for agent@9.9.9."
    ),
    "silent failure": "@scope/agent@1.0.0 cannot be installed: npm ended with 7: it gave no reason",
    "no build": ("@scope/agent@1.0.0 was installed, but has no bin/agent; this platform may have no build of it"),
}


@pytest.mark.parametrize("mode", FAILURES)
def test_a_failed_install_says_why_and_leaves_nothing(mode: str, fake: FakeNpm, tmp_path: Path) -> None:
    fake.does(mode)
    assert problem(tmp_path / "cache") == FAILURES[mode]
    assert entries(tmp_path / "cache") == []
    fake.does("well")
    installed(PACKAGE, "1.0.0", "bin/agent", tmp_path / "cache")


@pytest.mark.parametrize("version", ["", "latest", "^1.0.0", "../../1.0.0", "1.0", "1.0.0/..", "1.0.0 "])
def test_only_an_exact_version_has_a_place_in_the_cache(version: str, fake: FakeNpm, tmp_path: Path) -> None:
    assert problem(tmp_path / "cache", version) == (
        f"@scope/agent@{version}: '{version}' is no exact version, such as 1.2.3; "
        "the versions that there are: crashcart runtimes versions NAME"
    )
    assert fake.calls == []


@pytest.mark.parametrize("version", ["1.2.3", "1.2.3-beta.1", "10.20.30+build.5"])
def test_exact_versions(version: str, fake: FakeNpm, tmp_path: Path) -> None:
    installed(PACKAGE, version, "bin/agent", tmp_path / "cache")


INSTALLER = """
import sys
from pathlib import Path
from harness.runtimes.npm import installed
installed("@scope/agent", "1.0.0", "bin/agent", Path(sys.argv[1]))
"""


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
def test_an_interrupted_install_leaves_no_half_entry(number: signal.Signals, fake: FakeNpm, tmp_path: Path) -> None:
    os.mkfifo(fake.fifo)
    fake.does("interrupted")
    cache = tmp_path / "cache"
    process = subprocess.Popen(
        [sys.executable, "-c", INSTALLER, str(cache)],
        cwd=REPOSITORY,
        start_new_session=True,
        stderr=subprocess.DEVNULL,
    )
    building = Path(fake.fifo.read_text())  # npm is in the middle of it
    assert building.parent == cache / "scope__agent"
    os.killpg(process.pid, number)
    assert process.wait() != 0
    assert not (cache / "scope__agent" / "1.0.0").exists()
    fake.does("well")
    path, _ = installed(PACKAGE, "1.0.0", "bin/agent", cache)
    assert "half" not in path.read_text()
    if number is signal.SIGINT:
        assert entries(cache) == ["1.0.0"]


def test_two_installs_at_once_give_one_whole_entry(fake: FakeNpm, tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda _: installed(PACKAGE, "1.0.0", "bin/agent", cache), range(4)))
    assert len({(path, record.sha256) for path, record in found}) == 1
    assert entries(cache) == ["1.0.0"]


def test_a_changed_binary_is_refused(fake: FakeNpm, tmp_path: Path) -> None:
    path, record = installed(PACKAGE, "1.0.0", "bin/agent", tmp_path / "cache")
    path.write_text("other")
    entry = tmp_path / "cache" / "scope__agent" / "1.0.0"
    assert problem(tmp_path / "cache") == (
        f"@scope/agent@1.0.0: {path} has sha256 {file_sha256(path)}, and {record.sha256} was recorded when it was "
        f"installed. Somebody changed it; remove {entry} and run the command again to install it anew"
    )
    path.unlink()
    assert f"{path} has sha256 missing" in problem(tmp_path / "cache")


@pytest.mark.parametrize("text", ["", "{", "[]", '{"package": 1}', "5"])
def test_a_damaged_record_names_the_entry_to_remove(text: str, fake: FakeNpm, tmp_path: Path) -> None:
    installed(PACKAGE, "1.0.0", "bin/agent", tmp_path / "cache")
    entry = tmp_path / "cache" / "scope__agent" / "1.0.0"
    (entry / npm.RECORD).write_text(text)
    assert problem(tmp_path / "cache").startswith(
        f"@scope/agent@1.0.0: {entry / npm.RECORD} is damaged; remove {entry} and run the command again: "
    )


def test_an_entry_without_its_record_is_named(fake: FakeNpm, tmp_path: Path) -> None:
    entry = tmp_path / "cache" / "scope__agent" / "1.0.0"
    (entry / "bin").mkdir(parents=True)
    assert problem(tmp_path / "cache") == (
        f"@scope/agent@1.0.0: {entry} is there and was not installed by crashcart; remove it and run the command again"
    )
    assert entries(tmp_path / "cache") == ["1.0.0"]


def test_a_cache_that_cannot_be_written(fake: FakeNpm, tmp_path: Path) -> None:
    (tmp_path / "cache").write_text("a file")
    assert problem(tmp_path / "cache").startswith(f"the cache {tmp_path}/cache/scope__agent cannot be written: ")
    assert fake.calls == []


def test_a_full_disk(fake: FakeNpm, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(path: Path, *arguments: object, **more: object) -> int:
        raise OSError(28, "No space left on device", str(path))

    with monkeypatch.context() as patch:
        patch.setattr(Path, "write_text", full)
        words = problem(tmp_path / "cache")
    assert words.startswith(f"@scope/agent@1.0.0 cannot be stored under {tmp_path}/cache/scope__agent: [Errno 28]")
    assert entries(tmp_path / "cache") == []


def test_an_npm_that_never_answers(fake: FakeNpm, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake.script.write_text("#!/bin/sh\nread line < /dev/ptmx\n")
    monkeypatch.setattr(npm, "INSTALL_SECONDS", 0.2)
    assert problem(tmp_path / "cache") == "@scope/agent@1.0.0 cannot be installed: npm gave no answer in 0.2 s"


def test_versions(fake: FakeNpm) -> None:
    assert registry_versions(PACKAGE) == ["1.0.0", "1.1.0"]
    fake.does("one")
    assert registry_versions(PACKAGE) == ["1.0.0"]
    fake.does("garbage")
    with pytest.raises(RuntimeUnavailableError, match=r"the versions of @scope/agent cannot be listed: npm printed no"):
        registry_versions(PACKAGE)
    assert fake.calls[0] == ["view", "@scope/agent", "versions", "--json"]


REASONS = {
    "npm error code E404\nnpm error 404 Not Found\n": "code E404 404 Not Found",
    "npm ERR! a\nnpm ERR! b\nnpm ERR! c\nnpm ERR! d\nnpm ERR! e": "a b c d",
    "": "it gave no reason",
    "\n\n": "it gave no reason",
}


@pytest.mark.parametrize("stderr", REASONS)
def test_the_reason_that_npm_gives(stderr: str) -> None:
    assert npm_reason(stderr) == REASONS[stderr]


# --- the adapter that uses it


def claude(fake: FakeNpm) -> ClaudeCodeAdapter:
    text = fake.script.read_text().replace('"bin"', repr(str(Path(PROGRAM).parent))).replace('"agent"', repr("claude"))
    fake.script.write_text(text)
    return ClaudeCodeAdapter()


def test_the_binary_must_be_the_version_that_was_asked_for(fake: FakeNpm, tmp_path: Path) -> None:
    adapter = claude(fake)
    installation = adapter.install("1.0.0", tmp_path / "cache")
    assert (installation.runtime, installation.version) == ("claude-code", "1.0.0")
    assert installation.sha256 == file_sha256(Path(installation.program[0]))
    with pytest.raises(RuntimeUnavailableError) as caught:
        adapter.install("1.1.0", tmp_path / "cache")
    assert str(caught.value) == "claude-code@1.1.0: the installed binary reports version 1.0.0"


def test_a_binary_that_does_not_start(fake: FakeNpm, tmp_path: Path) -> None:
    fake.script.write_text(fake.script.read_text().replace("#!/bin/sh", "#!/none/sh"))
    with pytest.raises(RuntimeUnavailableError, match="--version does not answer: "):
        claude(fake).install("1.0.0", tmp_path / "cache")


def test_a_binary_that_says_nothing(fake: FakeNpm, tmp_path: Path) -> None:
    fake.script.write_text(fake.script.read_text().replace("echo 1.0.0 \\\\(Agent\\\\)", "exit 3"))
    with pytest.raises(RuntimeUnavailableError, match=r"the installed binary reports version nothing \(exit 3\)"):
        claude(fake).install("1.0.0", tmp_path / "cache")
