"""How long the effect server takes to answer its first request, against an import of the official SDK's server.

Prints a ratio of two medians taken in one run: ``python -m tests.harness.bench_effect_server``. It asserts nothing.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROUNDS = 9
REQUEST = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {}}).encode() + b"\n"


def first_answer_seconds(config: Path) -> float:
    """Start the effect server and wait for its first answer."""
    started = time.monotonic()
    command = [sys.executable, "-P", "-m", "harness.tools.effect_server", str(config)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as server:
        assert server.stdin is not None
        assert server.stdout is not None
        server.stdin.write(REQUEST)
        server.stdin.flush()
        server.stdout.readline()
        seconds = time.monotonic() - started
        server.stdin.close()
    return seconds


def sdk_import_seconds() -> float:
    """Start Python and import what a server on the SDK needs."""
    started = time.monotonic()
    subprocess.run([sys.executable, "-c", "import mcp.server.lowlevel, mcp.server.stdio"], check=True)
    return time.monotonic() - started


def main() -> None:
    """Measure both in turn, so that they share the machine's mood."""
    with tempfile.TemporaryDirectory() as folder:
        config = Path(folder) / "config.json"
        config.write_text(json.dumps({"ledger": str(Path(folder) / "ledger"), "socket": None, "tools": []}))
        pairs = [(first_answer_seconds(config), sdk_import_seconds()) for _ in range(ROUNDS)]
    ours, theirs = (statistics.median(column) for column in zip(*pairs, strict=True))
    print(f"first answer {ours:.3f} s, import of the SDK's server {theirs:.3f} s, ratio {theirs / ours:.1f}")


if __name__ == "__main__":
    main()
