"""Prints the published JSON Schema of evidence: ``python -m reports.schema > reports/evidence.schema.json``.

The schema is rendered from the types that evidence is read with, and never the other way round.
"""

from __future__ import annotations

import json
import sys

from harness.model.evidence import schema


def document() -> str:
    """Return the schema as indented JSON, ending in a newline."""
    return json.dumps(schema(), indent=1, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    sys.stdout.write(document())
