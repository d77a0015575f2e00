"""The first screen of README.md is what the command prints: run it, and find every line of the block in its output."""

from __future__ import annotations

import re
import shlex
import subprocess
from pathlib import Path

import pytest

pytestmark = pytest.mark.real
VARYING = (
    (re.compile(r"\d{8}-\d{6}-[0-9a-f]{4,}"), "RUN"),
    (re.compile(r"\d+\.\d+"), "0.0"),
    (re.compile(r"\s+"), " "),
)


def steady(line: str) -> str:
    """Return a line without times, run ids and column widths."""
    for pattern, replacement in VARYING:
        line = pattern.sub(replacement, line)
    return line.strip()


def test_the_first_block_is_what_its_command_prints(root: Path, tmp_path: Path) -> None:
    block = re.search(r"```console\n\$ (?P<command>.+)\n(?P<output>(?:.*\n)+?)```", (root / "README.md").read_text())
    assert block is not None
    words = [*shlex.split(block["command"]), "--no-print-directory"]
    done = subprocess.run(
        words, cwd=root, capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=110, check=False
    )
    printed = {steady(line) for line in done.stdout.splitlines()}
    shown = [steady(line) for line in block["output"].splitlines()]
    assert [line for line in shown if line not in printed] == []
    assert any(line.startswith(steady("fail tool.crash-after-effect claude-code@2.1.235")) for line in shown)
    assert any(line.startswith("pass tool.crash-after-effect reference") for line in shown)
