"""``python -m fake_provider SCRIPT.yaml``: serve one script and show who asks for what.

Prints the address, one line to paste for an Anthropic client, then one line a request. Ctrl-C ends it with a summary.
It never writes anywhere but to standard output and to the journal file it is given. Exit codes: 0 ended by Ctrl-C or
SIGTERM, 2 a mistake in the arguments or the script, or a port that cannot be opened.
"""

from __future__ import annotations

import argparse
import asyncio
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import BinaryIO

from fake_provider.document import DocumentError
from fake_provider.journal import (
    AnyEntry,
    ClientLeft,
    FaultFired,
    FaultSkipped,
    GarbageReceived,
    Journal,
    ReplyEnded,
    RequestReceived,
    RequestRefused,
    UnexpectedRequest,
    encode_entry,
)
from fake_provider.script import Script, load_script
from fake_provider.server import Provider, ProviderError


class RequestLines:
    """A journal listener that prints one line when a request is over: lane, step, status, and what was unusual."""

    def __init__(self, journal_file: BinaryIO | None = None) -> None:
        self._journal_file = journal_file
        self._requests: dict[int, RequestReceived] = {}
        self._remarks: dict[int, list[str]] = {}
        self.counts = {"requests": 0, "refused": 0, "unexpected": 0, "faults": 0}

    def __call__(self, entry: AnyEntry) -> None:
        """Take one entry."""
        if self._journal_file is not None:
            self._journal_file.write(encode_entry(entry) + b"\n")
            self._journal_file.flush()
        match entry:
            case RequestReceived(request=request):
                self._requests[request] = entry
                self._remarks[request] = []
                self.counts["requests"] += 1
            case RequestRefused(request=request):
                self.counts["refused"] += 1
                self._remarks[request].append(f"refused: {entry.problems[0]}")
            case UnexpectedRequest(request=request):
                self.counts["unexpected"] += 1
                self._remarks[request].append(f"unexpected: {entry.reason}")
            case FaultFired(request=request):
                self.counts["faults"] += 1
                self._remarks[request].append(f"fault {entry.kind} {entry.detail}")
            case FaultSkipped(request=request):
                self._remarks[request].append(f"fault {entry.kind} skipped: {entry.reason}")
            case ClientLeft(request=request):
                self._remarks[request].append(f"client left after {entry.bytes_sent} bytes")
            case GarbageReceived():
                print(f"connection {entry.connection}: no request: {entry.reason}", flush=True)
            case ReplyEnded():
                self._print(entry)

    def _print(self, ended: ReplyEnded) -> None:
        request = self._requests.pop(ended.request)
        remarks = self._remarks.pop(ended.request)
        who = (
            f"{request.method} {request.path}"
            if request.lane is None
            else f"{request.lane}: {request.step or 'no step'}"
        )
        status = "no answer" if ended.status is None else str(ended.status)
        print("  ".join([f"#{ended.request}", who, status, *remarks]), flush=True)

    def summary(self) -> str:
        """Return the totals as one line."""
        return ", ".join(f"{count} {name}" for name, count in self.counts.items())


async def serve(script: Script, port: int, lines: RequestLines) -> None:
    """Serve until SIGINT or SIGTERM.

    Raises:
        ProviderError: The port cannot be opened.
    """
    stopped = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stopped.set)
    async with Provider(script, journal=Journal(lines)).listening(port=port) as provider:
        print(f"listening on {provider.url}")
        print(f"export ANTHROPIC_BASE_URL={provider.url} ANTHROPIC_API_KEY=sk-ant-scripted", flush=True)
        await stopped.wait()


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code."""
    parser = argparse.ArgumentParser(prog="python -m fake_provider", description="Serve a scripted model provider.")
    parser.add_argument("script", type=Path, help="a script file; see fake_provider/script.py")
    parser.add_argument("--port", type=int, default=0, help="the port on 127.0.0.1; 0, the default, takes a free one")
    parser.add_argument("--journal", type=Path, help="a file to which each journal entry is appended as a JSON line")
    options = parser.parse_args(arguments)
    try:
        script = load_script(options.script)
        if options.journal is None:
            return _run(script, options.port, RequestLines())
        with options.journal.open("ab") as journal_file:
            return _run(script, options.port, RequestLines(journal_file))
    except (DocumentError, ProviderError) as error:
        print(error, file=sys.stderr)
    except OSError as error:
        print(f"cannot write the journal {options.journal}: {error.strerror}", file=sys.stderr)
    return 2


def _run(script: Script, port: int, lines: RequestLines) -> int:
    asyncio.run(serve(script, port, lines))
    print(lines.summary())
    return 0


if __name__ == "__main__":
    sys.exit(main())
