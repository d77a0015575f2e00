"""docs/recovery.md is what the tables say."""

import subprocess
import sys
from pathlib import Path

from reference_runtime.recovery.page import TABLES, render

REPOSITORY = Path(__file__).parents[2]


def test_the_page_is_up_to_date() -> None:
    page = (REPOSITORY / "docs" / "recovery.md").read_text(encoding="utf-8")
    assert page == render(), "run: make docs"


def test_the_page_shows_every_row_with_its_reason() -> None:
    page = render()
    for table in TABLES:
        assert f"## {table.name}\n" in page
        assert all(f"| {entry.label} |" in page and entry.because in page for entry in table.rows)


def test_the_module_prints_the_page_with_the_standard_library_alone() -> None:
    command = [
        sys.executable,
        "-S",
        "-E",
        "-c",
        "import runpy; runpy.run_module('reference_runtime.recovery', run_name='__main__')",
    ]
    ended = subprocess.run(command, cwd=REPOSITORY, capture_output=True, check=True)
    assert ended.stdout.decode() == render()
