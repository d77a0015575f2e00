"""The rendered pages say what the tables and types say now; ``make docs`` writes them again."""

from __future__ import annotations

from harness.model import clause
from tests.repo.tree import ROOT, fences_of


def test_the_contract_page_is_the_table() -> None:
    assert (ROOT / "docs/contract.md").read_text() == clause.render_page(), "run make docs"


def test_a_fence_keeps_its_line_and_language() -> None:
    [fence] = fences_of("page.md", "before\n\n```sh\nmake\n```\nafter")
    assert (fence.line, fence.language, fence.lines) == (3, "sh", ("make",))
