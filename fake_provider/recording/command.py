"""``record``: stand in front of a real provider, and write a script that replays what it answered when Ctrl-C comes."""

from __future__ import annotations

import argparse
import asyncio
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from fake_provider import clients
from fake_provider.command_line import CommandError
from fake_provider.dialects import DIALECTS
from fake_provider.recording.script_file import NotWrittenError, check_writable, script_text, write_script

if TYPE_CHECKING:
    from fake_provider.recording.proxy import Recording


def add_record_words(parser: argparse.ArgumentParser) -> None:
    """Declare the words of ``record``."""
    parser.add_argument("--upstream", required=True, metavar="URL", help="the provider to pass requests on to")
    parser.add_argument("--output", required=True, type=Path, metavar="FILE", help="the script to write at the end")
    parser.add_argument("--port", type=int, default=0, metavar="N", help="the port on 127.0.0.1; 0 for a free one")
    parser.add_argument(
        "--dialect", action="append", choices=tuple(DIALECTS), metavar="NAME", help="record this alone; repeatable"
    )
    parser.add_argument("--force", action="store_true", help="replace FILE if it is there")


def record_command(options: argparse.Namespace) -> int:
    """Carry out ``record`` and return its exit code, which is 0.

    Raises:
        CommandError: Something is wrong with the words, the port or the file.
    """
    # The HTTP client takes longer to import than everything else, and a mistake in the words needs none.
    _check_upstream(options.upstream)
    try:
        check_writable(options.output, force=options.force)
        recording = asyncio.run(_record(options))
        if not recording.steps:
            print(f"nothing was recorded, so {options.output} was not written")
            return 0
        write_script(options.output, script_text(recording.lanes, recording.dialects), force=options.force)
    except NotWrittenError as error:
        raise CommandError(str(error)) from error
    except (OSError, OverflowError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not a port number"
        raise CommandError(f"port {options.port} on 127.0.0.1 cannot be opened: {reason}") from error
    left_out = f"; {recording.unfinished} unfinished left out" if recording.unfinished else ""
    print(f"wrote {options.output}: {len(recording.steps)} replies{left_out}")
    print(f"replay them with: crashcart serve {options.output}")
    return 0


def _check_upstream(url: str) -> None:
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.query or parts.fragment:
        raise CommandError(f"--upstream is a URL such as https://HOST or http://127.0.0.1:8080, found '{url}'")


async def _record(options: argparse.Namespace) -> Recording:
    """Record until SIGINT or SIGTERM."""
    from fake_provider.recording.proxy import Recording

    stopped = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stopped.set)
    dialects = tuple(options.dialect or DIALECTS)
    recording = Recording(options.upstream, dialects, lambda line: print(line, flush=True))
    async with recording.listening(options.port) as url:
        print("\n".join(_greeting(url, options, dialects)), flush=True)
        await stopped.wait()
    return recording


def _greeting(url: str, options: argparse.Namespace, dialects: tuple[str, ...]) -> Iterator[str]:
    yield f"listening on {url}, passing everything on to {urlsplit(options.upstream).hostname}"
    yield from (f"  {line}" for line in clients.overview(dialects, url))
    yield f"  your client's own key is passed on and never stored; Ctrl-C writes {options.output}"
