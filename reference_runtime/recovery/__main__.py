"""Renders every decision table as one Markdown page on standard output: `python -m reference_runtime.recovery`.

The page is written from the tables and never the other way round.
"""

import sys

from reference_runtime.recovery.page import render

if __name__ == "__main__":
    sys.stdout.write(render())
