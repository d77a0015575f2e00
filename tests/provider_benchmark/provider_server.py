"""The provider as the measurement meets it: ``python -m tests.provider_benchmark.provider_server SCRIPT``.

It prints its port. The journal keeps the newest entries, as ``crashcart serve`` does; nothing is printed for a request.
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from fake_provider.journal import Journal
from fake_provider.script import load_script
from fake_provider.server import Provider

KEEP = 10_000


async def main(path: Path) -> None:
    """Serve until the process is ended."""
    async with Provider(load_script(path), journal=Journal(keep=KEEP)).listening() as provider:
        print(provider.port, flush=True)
        await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1])))
