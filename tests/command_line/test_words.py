"""Words that are off are answered before anything starts: one line, what was allowed, exit code 2."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.command_line.conftest import Crashcart

SCENARIOS = Path(__file__).parent.parent.parent / "scenarios"
BROKEN = """\
id: request.broken
claim: A claim.
clauses: [A1]
prompt: Say hi.
model:
  main:
    - overloadd
"""


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["run", "--runtime", "claude-kode"], "unknown runtime 'claude-kode'; did you mean 'claude-code'?"),
        (["run", "tool.crash-after-efect"], "did you mean 'tool.crash-after-effect'?"),
        (["run", "--runtime", "reference@/nonexistent"], "no reference_runtime/__main__.py in that folder"),
        (["runtimes", "install"], "runtimes install takes NAME[@VERSION]; names: reference, claude-code"),
        (["show", "2026"], "no run begins with '2026'"),
        (["check", "missing.yaml"], "missing.yaml:1: cannot read the file: No such file or directory"),
        (["run", "--jobs", "0"], "expected a number of at least 1, found 0"),
        (["rnu"], "invalid choice: 'rnu'"),
        ([], "required: COMMAND"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_a_wrong_word_is_one_line_and_nothing_starts(
    crashcart: Crashcart, tmp_path: Path, words: list[str], message: str
) -> None:
    done = crashcart(*words)
    assert message in done.stderr
    assert "Traceback" not in done.stderr
    assert done.returncode in (2, 3)
    assert done.stdout == ""
    assert not (tmp_path / "store").exists()


def test_a_broken_scenario_names_file_line_and_nearest_word(crashcart: Crashcart, tmp_path: Path) -> None:
    path = tmp_path / "broken.yaml"
    path.write_text(BROKEN)
    for words in (["check", path], ["run", path]):
        done = crashcart(*words)
        assert done.returncode == 2
        assert done.stderr.startswith(f"crashcart: {path}:7: unknown step 'overloadd'; did you mean 'overloaded'?")
        assert not (tmp_path / "store").exists()


def test_check_says_what_a_scenario_declares(crashcart: Crashcart) -> None:
    done = crashcart("check", SCENARIOS / "tool" / "crash-after-effect.yaml")
    assert done.returncode == 0
    assert "tool.crash-after-effect is valid: 2 phases, N2, N4, N5, phase 1: SIGKILL at tool.committed" in done.stdout


def test_check_warns_about_a_call_that_no_tool_can_take_and_is_content(crashcart: Crashcart, tmp_path: Path) -> None:
    path = tmp_path / "odd.yaml"
    path.write_text(BROKEN.replace("overloadd", "call: deploy"))
    done = crashcart("check", path)
    assert done.returncode == 0
    assert done.stderr.startswith(
        f"warning: {path}:7: step 'call deploy' in lane 'main': calls 'deploy', which is no tool"
    )


def test_an_empty_folder_is_refused(crashcart: Crashcart, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    done = crashcart("run", "empty")
    assert (done.returncode, done.stderr) == (2, "crashcart: the folder empty holds no scenario (*.yaml)\n")


def test_runtimes_are_listed_with_what_they_can_do(crashcart: Crashcart) -> None:
    done = crashcart("runtimes")
    assert done.returncode == 0
    assert [line.split()[0] for line in done.stdout.splitlines()] == ["reference", "claude-code"]


def test_coverage_lists_every_clause(crashcart: Crashcart) -> None:
    done = crashcart("coverage")
    assert done.returncode == 0
    lines = done.stdout.splitlines()
    assert any(line.split()[:2] == ["N5", "tool.crash-after-effect"] for line in lines)
    assert any(line.split()[:2] == ["Q5", "—"] for line in lines)
    assert lines[-1].endswith("clauses have a probe")


def test_no_npm_is_said_in_one_line(crashcart: Crashcart) -> None:
    done = crashcart("runtimes", "install", "claude-code", env={"PATH": "/nonexistent"})
    assert done.returncode == 3
    assert done.stderr == (
        "crashcart: @anthropic-ai/claude-code@2.1.235 cannot be installed: npm is not on PATH; "
        "install Node.js with npm, then run this again\n"
    )


def test_two_scenarios_of_one_id_are_refused(crashcart: Crashcart, tmp_path: Path) -> None:
    text = (SCENARIOS / "request" / "bad-request.yaml").read_text()
    for name in ("one.yaml", "two.yaml"):
        (tmp_path / name).write_text(text)
    done = crashcart("run", "one.yaml", "two.yaml")
    assert done.returncode == 2
    assert "two.yaml and one.yaml have one id, 'request.bad-request'" in done.stderr
    assert crashcart("check", ".").stdout.count("is valid") == 2


def test_a_store_without_runs_says_what_to_do(crashcart: Crashcart, tmp_path: Path) -> None:
    done = crashcart("show")
    assert (done.returncode, done.stdout) == (0, f"no runs yet in {tmp_path / 'store'}; run: crashcart run\n")


def test_the_version_is_told(crashcart: Crashcart) -> None:
    assert crashcart("--version").stdout == "crashcart 0.1.0\n"


def test_jobs_that_are_no_number_are_said(crashcart: Crashcart) -> None:
    assert "expected a number of at least 1, found x" in crashcart("run", "--jobs", "x").stderr
