"""Writes README's first block anew from a run of its own command; ``make readme``.

It runs the command that the block shows and replaces the output below it, and touches nothing else on the page.
"""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

BLOCK = re.compile(r"(?<=```console\n)\$ (?P<command>.+)\n(?P<output>(?:.*\n)*?)(?=```)")


def main() -> int:
    """Run the block's command and write its output into the page."""
    page = Path(__file__).resolve().parent.parent / "README.md"
    text = page.read_text(encoding="utf-8")
    found = BLOCK.search(text)
    if found is None:
        sys.stderr.write("README.md has no ```console block that begins with a command\n")
        return 1
    command = [*shlex.split(found["command"]), "--no-print-directory"]
    done = subprocess.run(command, cwd=page.parent, capture_output=True, text=True, check=False)
    lines = [line.rstrip() for line in re.sub(r"\n\n+", "\n\n", done.stdout).strip().splitlines()]
    lines = [line for line in lines if not line.startswith("crashcart is not on PATH")]  # true of one shell only
    output = "\n".join(lines) + "\n"
    page.write_text(text[: found.start()] + f"$ {found['command']}\n{output}" + text[found.end() :], encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
