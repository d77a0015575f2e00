"""Golden files for the reports, under ``tests/golden/reports``, one a test and named after it.

``CRASHCART_GOLDEN=write pytest tests/reports`` writes them anew; read the difference before you commit it.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

GOLDEN = Path(__file__).parents[1] / "golden" / "reports"

Golden = Callable[[str], None]


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Golden:
    """Return what compares a text with the golden file of the test."""
    path = GOLDEN / f"{request.node.name.removeprefix('test_')}.txt"

    def compare(text: str) -> None:
        if os.environ.get("CRASHCART_GOLDEN") == "write":
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        assert text == path.read_text(encoding="utf-8")

    return compare
