"""Runs the command line as a process of its own, in a folder of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

Crashcart = Callable[..., subprocess.CompletedProcess[str]]
COMMAND = [sys.executable, "-P", "-m", "harness.cli"]


def environment(folder: Path) -> dict[str, str]:
    """Return an environment in which the command keeps its store below a folder."""
    return {**os.environ, "CRASHCART_STORE": str(folder / "store"), "CRASHCART_CACHE": str(folder / "cache")}


@pytest.fixture
def crashcart(tmp_path: Path) -> Crashcart:
    def run(*words: str | Path, **keywords: object) -> subprocess.CompletedProcess[str]:
        env = environment(tmp_path) | dict(keywords.pop("env", {}))  # type: ignore[call-overload]
        return subprocess.run(  # type: ignore[call-overload, no-any-return]
            [*COMMAND, *map(str, words)],
            capture_output=True, text=True, stdin=subprocess.DEVNULL, cwd=tmp_path, env=env, timeout=90, check=False,
            **keywords,
        )  # fmt: skip

    return run
