"""The page of how clients take each fault is what a run gives."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from fake_provider.faults import FAULTS

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "faults.md"


def test_the_page_is_what_the_clients_do() -> None:
    # A process of its own: the clients leave replies that they gave up, with their sockets, to the garbage collector.
    run = subprocess.run(
        [sys.executable, "-m", "tests.fault_matrix"], cwd=ROOT, capture_output=True, encoding="utf-8", check=False
    )
    assert run.returncode == 0, run.stderr
    assert run.stdout == PAGE.read_text(encoding="utf-8"), "run make faults"


def test_the_page_shows_every_kind() -> None:
    text = PAGE.read_text(encoding="utf-8")
    assert [kind for kind in FAULTS if not re.search(rf"`\{{?{kind}\b", text)] == []
