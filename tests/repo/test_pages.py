"""The rendered pages say what the tables and types say now; ``make docs`` writes them again."""

from __future__ import annotations

import json

from harness.model import clause, evidence
from tests.repo.tree import ROOT, fences_of


def test_the_contract_page_is_the_table() -> None:
    assert (ROOT / "docs/contract.md").read_text() == clause.render_page(), "run make docs"


def test_the_published_schema_is_that_of_the_evidence() -> None:
    rendered = json.dumps(evidence.schema(), indent=2) + "\n"
    assert (ROOT / "docs/evidence.schema.json").read_text() == rendered, "run make docs"


def test_a_fence_keeps_its_line_and_language() -> None:
    [fence] = fences_of("page.md", "before\n\n```sh\nmake\n```\nafter")
    assert (fence.line, fence.language, fence.lines) == (3, "sh", ("make",))
