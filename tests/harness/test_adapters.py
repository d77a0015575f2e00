"""What each adapter makes of a phase, as golden tables: the exact command line, environment and files of each setting.

Also the register and the expectation file, whose words a user meets first.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

import harness.expectations
from fake_provider.document import DocumentError
from harness.expectations import deviations
from harness.model.capability import Capability
from harness.model.outcome import Outcome
from harness.model.result import Deviation
from harness.model.scenario import HookEvent, Settings
from harness.runtimes.adapter import Installation, Launch, RuntimeUnavailableError, Start
from harness.runtimes.claude_code.adapter import ClaudeCodeAdapter
from harness.runtimes.reference.adapter import ReferenceAdapter, tree_sha256
from harness.runtimes.register import ADAPTERS, UnknownRuntimeError, chosen

CONTROL = Path("/s/control")


def start(**changes: Any) -> Start:
    whole: dict[str, Any] = {
        "text": "Go.",
        "resume": False,
        "session": "S",
        "settings": Settings(),
        "provider_url": "http://127.0.0.1:1",
        "home": Path("/s/home"),
        "workspace": Path("/s/workspace"),
        "control_folder": CONTROL,
        "environment": {"HOME": "/s/home"},
        "effect_server": None,
        "hook_commands": {},
    }
    return Start(**{**whole, **changes})


MCP = {"mcpServers": {"effects": {"command": "python", "args": ["-m", "effects"], "env": {}}}}
HOOKS = {
    "hooks": {
        "PreToolUse": [{"hooks": [{"type": "command", "command": "pre", "timeout": 30}]}],
        "Stop": [{"hooks": [{"type": "command", "command": "stop", "timeout": 30}]}],
    }
}
BOTH_HOOKS = {HookEvent.PRE_TOOL: "pre", HookEvent.STOP: "stop"}

# case -> (start, words added to the command, words removed from it, variables added, files)
Case = tuple[Start, tuple[str, ...], tuple[str, ...], dict[str, str], dict[Path, Any]]

REFERENCE_PLAIN = ("-p", "Go.", "--output-format", "stream-json", "--permission-mode", "bypass", "--session-id", "S")
REFERENCE: dict[str, Case] = {
    "plain": (start(), (), (), {}, {}),
    "resume": (start(resume=True), ("--resume", "S"), ("--session-id", "S"), {}, {}),
    "model": (start(settings=Settings(model="m")), ("--model", "m"), (), {}, {}),
    "fallback_models": (
        start(settings=Settings(fallback_models=("f", "g"))),
        ("--fallback-model", "f,g"),
        (),
        {},
        {},
    ),
    "max_retries": (start(settings=Settings(max_retries=0)), ("--max-retries", "0"), (), {}, {}),
    "max_turns": (start(settings=Settings(max_turns=3)), ("--max-turns", "3"), (), {}, {}),
    "stream_idle_timeout_seconds": (
        start(settings=Settings(stream_idle_timeout_seconds=0.5)),
        (),
        (),
        {"CRASHCART_STREAM_IDLE_TIMEOUT_SECONDS": "0.5"},
        {},
    ),
    "tools": (
        start(effect_server=["python", "-m", "effects"]),
        ("--mcp-config", "/s/control/mcp.json"),
        (),
        {},
        {CONTROL / "mcp.json": MCP},
    ),
    "hooks": (
        start(hook_commands=BOTH_HOOKS),
        ("--settings", "/s/control/settings.json"),
        (),
        {},
        {CONTROL / "settings.json": HOOKS},
    ),
}

CLAUDE_PLAIN = (
    *("-p", "Go.", "--output-format", "stream-json", "--verbose", "--model", "claude-sonnet-4-5"),
    *("--dangerously-skip-permissions", "--session-id", "S"),
)
CLAUDE: dict[str, Case] = {
    "plain": (start(), (), (), {}, {}),
    "resume": (start(resume=True), ("--resume", "S"), ("--session-id", "S"), {}, {}),
    "model": (start(settings=Settings(model="m")), ("--model", "m"), ("--model", "claude-sonnet-4-5"), {}, {}),
    "fallback_models": (
        start(settings=Settings(fallback_models=("f", "g"))),
        ("--fallback-model", "f,g"),
        (),
        {},
        {},
    ),
    "max_retries": (start(settings=Settings(max_retries=0)), (), (), {"CLAUDE_CODE_MAX_RETRIES": "0"}, {}),
    "max_turns": (start(settings=Settings(max_turns=3)), ("--max-turns", "3"), (), {}, {}),
    "tools": (
        start(effect_server=["python", "-m", "effects"]),
        ("--mcp-config", "/s/control/mcp.json", "--strict-mcp-config"),
        (),
        {},
        {CONTROL / "mcp.json": MCP},
    ),
    "hooks": (start(hook_commands=BOTH_HOOKS), ("--settings", json.dumps(HOOKS)), (), {}, {}),
}


def assert_launch(launch: Launch, program: tuple[str, ...], plain: tuple[str, ...], case: Case) -> None:
    _, added, removed, _, files = case
    assert launch.argv[: len(program)] == program
    assert sorted(launch.argv[len(program) :]) == sorted([*words_without(plain, removed), *added])
    for first, second in zip(added[::2], added[1::2], strict=False):
        assert launch.argv[launch.argv.index(first) + 1] == second
    assert {path: json.loads(text) for path, text in launch.files.items()} == files


def words_without(words: tuple[str, ...], removed: tuple[str, ...]) -> list[str]:
    left = list(words)
    for word in removed:
        left.remove(word)
    return left


@pytest.mark.parametrize("name", REFERENCE)
def test_the_reference_runtime_is_started_so(name: str) -> None:
    case = REFERENCE[name]
    installation = Installation("reference", "1", ("python", "-m", "reference_runtime"), "x", {"PYTHONPATH": "/tree"})
    launch = ReferenceAdapter().launch(installation, case[0])
    assert_launch(launch, installation.program, REFERENCE_PLAIN, case)
    assert launch.environment == {
        "HOME": "/s/home",
        "PYTHONPATH": "/tree",
        "CRASHCART_BASE_URL": "http://127.0.0.1:1",
        "CRASHCART_API_KEY": "fake-key",
        **case[3],
    }


@pytest.mark.parametrize("name", CLAUDE)
def test_claude_code_is_started_so(name: str) -> None:
    case = CLAUDE[name]
    installation = Installation("claude-code", "1", ("/cache/claude",), "x")
    launch = ClaudeCodeAdapter().launch(installation, case[0])
    assert_launch(launch, installation.program, CLAUDE_PLAIN, case)
    for name_of_variable, value in {"ANTHROPIC_BASE_URL": "http://127.0.0.1:1", "HOME": "/s/home", **case[3]}.items():
        assert launch.environment[name_of_variable] == value
    assert launch.environment["ANTHROPIC_API_KEY"].endswith("fake")
    assert ("CLAUDE_CODE_MAX_RETRIES" in launch.environment) is (name == "max_retries")


@pytest.mark.parametrize("adapter", ADAPTERS.values(), ids=lambda adapter: adapter.name)
def test_every_setting_that_is_declared_has_its_row(adapter: Any) -> None:
    rows = {"reference": REFERENCE, "claude-code": CLAUDE}[adapter.name]
    assert set(rows) == {*adapter.settings, "plain", "resume", "tools", "hooks"}
    assert adapter.settings <= set(Settings.__struct_fields__)


def test_what_cannot_be_translated_is_declared_absent() -> None:
    for adapter in ADAPTERS.values():
        can_wait = "stream_idle_timeout_seconds" in adapter.settings
        assert (Capability.STREAM_IDLE_LIMIT in adapter.capabilities) is can_wait


@pytest.mark.parametrize("adapter", ADAPTERS.values(), ids=lambda adapter: adapter.name)
def test_only_effect_tools_are_renamed(adapter: Any) -> None:
    assert adapter.tool_call("deploy", {"a": 1}, frozenset({"deploy"})) == ("mcp__effects__deploy", {"a": 1})
    assert adapter.tool_call("Bash", {"command": "ls"}, frozenset({"deploy"})) == ("Bash", {"command": "ls"})


# --- the reference runtime as installed, and another tree


def test_the_installed_reference_runtime_is_found(tmp_path: Path) -> None:
    installation = ReferenceAdapter().install("installed", tmp_path)
    assert installation.program == (sys.executable, "-P", "-m", "reference_runtime")
    assert installation.environment == {}
    assert len(installation.sha256) == 64


def test_another_tree_is_named_by_its_content(tmp_path: Path) -> None:
    package = tmp_path / "reference_runtime"
    package.mkdir()
    (package / "__main__.py").write_text("print(1)")
    adapter = ReferenceAdapter()
    first = adapter.install(str(tmp_path), tmp_path)
    assert first.environment == {"PYTHONPATH": str(tmp_path)}
    assert first.version == f"tree-{tree_sha256(package)[:12]}"
    (package / "__main__.py").write_text("print(2)")
    assert adapter.install(str(tmp_path), tmp_path).version != first.version
    (package / "notes.txt").write_text("no code")
    assert adapter.install(str(tmp_path), tmp_path).sha256 == tree_sha256(package)


def test_a_folder_without_the_runtime_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RuntimeUnavailableError) as caught:
        ReferenceAdapter().install(str(tmp_path), tmp_path)
    assert str(caught.value) == (
        f"reference@{tmp_path}: no reference_runtime/__main__.py in that folder; "
        "allowed: reference, or reference@FOLDER with FOLDER/reference_runtime in it"
    )


# --- the register

CHOICES = {
    "reference": ("reference", "installed", "reference"),
    "reference@": ("reference", "installed", "reference"),
    "reference@/tree": ("reference", "/tree", "reference@/tree"),
    "claude-code": ("claude-code", "2.1.235", "claude-code@2.1.235"),
    "claude-code@1.0.0": ("claude-code", "1.0.0", "claude-code@1.0.0"),
}


@pytest.mark.parametrize("text", CHOICES)
def test_a_choice(text: str) -> None:
    choice = chosen(text)
    assert (choice.adapter.name, choice.version, str(choice)) == CHOICES[text]


UNKNOWN = {
    "claud-code": "unknown runtime 'claud-code'; did you mean 'claude-code'? Allowed: claude-code, reference",
    "refrence@1": "unknown runtime 'refrence'; did you mean 'reference'? Allowed: claude-code, reference",
    "zzz": "unknown runtime 'zzz'. Allowed: claude-code, reference",
    "": "unknown runtime ''. Allowed: claude-code, reference",
}


@pytest.mark.parametrize("text", UNKNOWN)
def test_an_unknown_runtime(text: str) -> None:
    with pytest.raises(UnknownRuntimeError) as caught:
        chosen(text)
    assert str(caught.value) == UNKNOWN[text]


# --- the expectation file

ENTRY = """\
versions:
  "1.0.0":
    deviations:
      tool.one:
        outcome: fail
        checks: [effects.exactly-once.deploy]
        reason: >
          It forgets
          the call.
"""


@pytest.fixture
def recorded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(harness.expectations, "RUNTIMES", tmp_path)
    (tmp_path / "my_agent").mkdir()
    path = tmp_path / "my_agent" / "expectations.yaml"
    path.write_text(ENTRY)
    return path


def test_deviations_are_read_for_one_version(recorded: Path) -> None:
    assert deviations("my-agent", "1.0.0") == {
        "tool.one": Deviation(
            "tool.one", Outcome.FAIL, frozenset({"effects.exactly-once.deploy"}), "It forgets the call."
        )
    }
    assert deviations("my-agent", "2.0.0") == {}
    assert deviations("other", "1.0.0") == {}


MISTAKES = {
    "outcome: fail": (
        "outcome: fial",
        (
            "expectations.yaml:5: unknown outcome 'fial'; did you mean 'fail'? Allowed: "
            "fail, harness_error, inconclusive, pass, unsupported, warn (in versions.1.0.0.deviations.tool.one.outcome)"
        ),
    ),
    "reason: >": (
        "because: >",
        "expectations.yaml:7: unknown key 'because' in deviation. Allowed: checks, outcome, reason",
    ),
    "checks: [effects.exactly-once.deploy]": (
        "checks: all",
        (
            "expectations.yaml:6: expected checks as a list, found text 'all' "
            "(in versions.1.0.0.deviations.tool.one.checks)"
        ),
    ),
    "versions:": (
        "version:",
        "expectations.yaml:1: unknown key 'version' in expectations; did you mean 'versions'? Allowed: versions",
    ),
    "deviations:": (
        "deviation:",
        "expectations.yaml:3: unknown key 'deviation' in version; did you mean 'deviations'? Allowed: deviations",
    ),
}


@pytest.mark.parametrize("written", MISTAKES)
def test_a_mistake_in_an_expectation_file(written: str, recorded: Path) -> None:
    replacement, words = MISTAKES[written]
    recorded.write_text(ENTRY.replace(written, replacement, 1))
    with pytest.raises(DocumentError) as caught:
        deviations("my-agent", "1.0.0")
    assert str(caught.value) == words


@pytest.mark.parametrize("adapter", ADAPTERS.values(), ids=lambda adapter: adapter.name)
def test_the_expectation_files_of_the_repository_are_well_formed(adapter: Any) -> None:
    for deviation in deviations(adapter.name, adapter.default_version).values():
        assert deviation.outcome is not Outcome.PASS
        assert deviation.checks
        assert deviation.reason.endswith(".")
