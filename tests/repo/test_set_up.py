"""The set-up scripts take the right way, or stop with one sentence that says what to do.

Each test runs the real script in a copy of the folder that it works in, with a PATH of small stand-ins. Nothing is
installed and nothing is fetched: a stand-in for the system's installer would leave its name behind.
"""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from tests.repo.tree import ROOT, make_targets

TOOLS = "sh cat cut sha256sum id rm dirname timeout make sed awk bash mv echo true false"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a space in its name, holding what the scripts read, and a PATH of few tools in ``bin``."""
    folder = tmp_path / "crash cart"
    shutil.copytree(ROOT / "setup", folder / "setup")
    for name in ("Makefile", "pyproject.toml", "requirements.lock"):
        shutil.copy(ROOT / name, folder / name)
    (folder / "bin").mkdir()
    for name in TOOLS.split():
        found = shutil.which(name)
        assert found, f"the set-up needs {name}"
        (folder / "bin" / name).symlink_to(found)
    stand_in(folder, "id", "[ $# -gt 0 ] && [ $1 = -u ] && echo 1000 || echo ann")
    return folder


def stand_in(folder: Path, name: str, script: str) -> Path:
    """Put a command on the folder's PATH."""
    path = folder / "bin" / name
    path.unlink(missing_ok=True)
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return path


def python_of(version: str, *, has_ensurepip: bool = False) -> str:
    """A stand-in that answers the questions which the script asks of a Python, and can make nothing."""
    too_old = int(tuple(int(part) for part in version.split(".")) < (3, 11))
    return f"""case "$*" in
*version_info\\[:3\\]*) echo {version} ;;
*'version_info <'*) exit {too_old} ;;
*ensurepip*) exit {int(not has_ensurepip)} ;;
*) exit 1 ;;
esac"""


def run(folder: Path, *command: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run a command in the folder with nothing but its own PATH."""
    return subprocess.run(
        command,
        cwd=folder,
        check=False,
        capture_output=True,
        text=True,
        env={"PATH": str(folder / "bin"), "HOME": str(folder), **variables},
    )


def test_a_missing_python_is_named(folder: Path) -> None:
    done = run(folder, "make", "environment", "PYTHON=python3.99")
    assert "no 'python3.99' found" in done.stderr
    assert done.returncode == 2


def test_an_old_python_is_refused_before_anything_is_made(folder: Path) -> None:
    stand_in(folder, "python3", python_of("3.9.2"))
    done = run(folder, "make", "environment")
    assert "Python 3.11 or newer is needed, and 'python3' is 3.9.2" in done.stderr
    assert not (folder / ".venv").exists()


def test_without_any_way_the_one_command_to_run_is_said(folder: Path) -> None:
    stand_in(folder, "python3", python_of("3.11.2"))
    stand_in(folder, "apt-get", "touch installed; exit 1")
    done = run(folder, "make", "environment")
    assert "sudo apt-get install -y python3-venv" in done.stderr
    assert done.returncode == 2
    assert not (folder / "installed").exists(), "only root may install system packages"


def test_root_installs_what_is_missing_and_says_so(folder: Path) -> None:
    stand_in(folder, "python3", python_of("3.11.2"))
    stand_in(folder, "id", "echo 0")
    stand_in(folder, "apt-get", 'echo "$*" >>installed')
    done = run(folder, "make", "environment")
    assert "installing the system package python3-venv" in done.stdout
    assert "python3-venv" in (folder / "installed").read_text()
    assert done.returncode == 2, "the stand-in still makes no environment, and that must not pass for done"


def test_a_ready_environment_is_left_alone(folder: Path) -> None:
    stand_in(folder, "python3", python_of("3.11.2"))
    (folder / ".venv/bin").mkdir(parents=True)
    (folder / ".venv/bin/python").symlink_to("/bin/false")
    recipe = "cat requirements.lock pyproject.toml setup/environment.sh | sha256sum | cut -d ' ' -f 1"
    digest = run(folder, "sh", "-c", recipe).stdout.strip()
    stamp = f"{digest} 3.11.2 {folder}"
    (folder / ".venv/installed").write_text(stamp)
    done = run(folder, "make", "environment")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    (folder / "requirements.lock").write_text("changed")
    assert run(folder, "make", "environment").returncode == 2


def test_an_environment_that_was_interrupted_is_made_again(folder: Path) -> None:
    stand_in(folder, "python3", python_of("3.11.2", has_ensurepip=True))
    (folder / ".venv/bin").mkdir(parents=True)
    stand_in(folder, "environment-python", 'case "$*" in *pip*) exit 1 ;; esac')
    (folder / ".venv/bin/python").symlink_to(folder / "bin/environment-python")
    done = run(folder, "make", "environment")
    assert "making .venv with python3 (3.11.2)" in done.stdout
    assert not (folder / ".venv").exists()


@pytest.fixture
def environment(folder: Path) -> Path:
    """The folder with a .venv whose Python starts Playwright's driver and can install no browser."""
    (folder / ".venv/bin").mkdir(parents=True)
    stand_in(folder, "environment-python", 'case "$*" in *--version*) exit 0 ;; esac; exit 1')
    (folder / ".venv/bin/python").symlink_to(folder / "bin/environment-python")
    return folder


def test_a_browser_that_is_named_and_does_not_start_is_an_error(environment: Path) -> None:
    done = run(environment, "sh", "setup/browser.sh", CHROMIUM="nowhere")
    assert "CHROMIUM names 'nowhere', which does not start" in done.stderr
    assert done.returncode == 1


def test_a_browser_that_is_named_goes_before_one_on_the_path(environment: Path) -> None:
    stand_in(environment, "chromium", "exit 0")
    mine = stand_in(environment, "my-chromium", "exit 0")
    assert run(environment, "sh", "setup/browser.sh", CHROMIUM="my-chromium").returncode == 0
    assert (environment / ".venv/chromium").read_text() == str(mine)


def test_the_first_browser_on_the_path_that_starts_is_taken(environment: Path) -> None:
    chromium = stand_in(environment, "chromium-browser", "exit 0")
    stand_in(environment, "chromium", "exit 1")
    assert run(environment, "sh", "setup/browser.sh").returncode == 0
    assert (environment / ".venv/chromium").read_text() == str(chromium)


def test_without_any_browser_the_tests_do_not_start(environment: Path) -> None:
    stand_in(environment, "apt-get", "touch installed; exit 1")
    done = run(environment, "sh", "setup/browser.sh")
    assert "sudo apt-get install -y chromium" in done.stderr
    assert done.returncode == 1
    assert not (environment / ".venv/chromium").exists()
    assert not (environment / "installed").exists(), "only root may install system packages"


def test_root_gets_the_system_browser(environment: Path) -> None:
    stand_in(environment, "id", "echo 0")
    stand_in(environment, "chromium-of-debian", "exit 0")
    stand_in(environment, "apt-get", 'case "$*" in *chromium*) cd bin && mv chromium-of-debian chromium ;; esac')
    done = run(environment, "sh", "setup/browser.sh")
    assert "installing the system package chromium" in done.stdout
    assert done.returncode == 0


def test_a_driver_that_does_not_start_is_said(environment: Path) -> None:
    stand_in(environment, "chromium", "exit 0")
    stand_in(environment, "environment-python", "echo no libatomic >&2; exit 1")
    done = run(environment, "sh", "setup/browser.sh")
    assert "no libatomic" in done.stderr
    assert "sudo apt-get install -y libatomic1" in done.stderr
    assert done.returncode == 1


def test_help_lists_every_target(folder: Path) -> None:
    shown = run(folder, "make").stdout
    for target in make_targets((ROOT / "Makefile").read_text()):
        assert f"make {target} " in shown


@pytest.mark.parametrize("broken", ["check", "test", "test-real", None])
def test_the_gate_runs_every_stage_and_fails_when_one_fails(folder: Path, broken: str | None) -> None:
    shutil.copytree(ROOT / ".ci", folder / ".ci")
    stages = ("check", "test", "test-real")
    recipes = (f"{stage}:\n\t@echo stage {stage}\n\t@{'false' if stage == broken else 'true'}\n" for stage in stages)
    (folder / "Makefile").write_text("".join(recipes))
    done = run(folder, "bash", ".ci/run")
    assert all(f"stage {stage}\n" in done.stdout for stage in stages)
    assert done.returncode == (1 if broken else 0)
    assert (f"failed: make {broken}\n" in done.stdout) == bool(broken)
