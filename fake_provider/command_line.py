"""``serve``: serve one script and show who asks for what, until Ctrl-C.

On a terminal it shows a live table, elsewhere one line a request. It never writes anything but to standard output, the
journal and the file for the TLS authority that it is given. Everything that can be wrong is found before it listens.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, TypeAlias

from fake_provider import clients
from fake_provider.document import DocumentError
from fake_provider.journal import AnyEntry, Journal, encode_entry
from fake_provider.listen import CERTIFICATES, Listen
from fake_provider.plain_lines import print_remark, print_row
from fake_provider.playback import LaneState
from fake_provider.presets import UnknownPresetError, descriptions, load_preset
from fake_provider.request_rows import RequestRows
from fake_provider.script import Script, load_script
from fake_provider.server import CONTROL_PREFIX, Provider, ProviderError

if TYPE_CHECKING:
    from fake_provider.view import View

KEEP_DEFAULT = 10_000
UNKNOWN_PORT_URL = "http://127.0.0.1:PORT"

Load: TypeAlias = Callable[[Path], Script]
"""Reads a script from a file; raises a ``DocumentError`` for a mistake in it."""


class CommandError(Exception):
    """The command cannot be carried out; the message says why, and nothing was started."""


@dataclass(frozen=True, slots=True)
class Serving:
    """What is served and how it is shown.

    Attributes:
        script: What to answer.
        port: The port on 127.0.0.1; 0 takes a free one.
        journal_file: Where each entry goes as a JSON line.
        authority_file: Where the TLS authority goes.
        time_scale: Scripted waits are divided by this.
        keep: How many entries are held in memory.
        live: Whether the live view is drawn.
        client: Whose lines are printed; the base URLs where it is nothing.
    """

    script: Script
    port: int
    journal_file: BinaryIO | None
    authority_file: Path | None
    time_scale: float
    keep: int
    live: bool
    client: str | None


def add_serve_words(parser: argparse.ArgumentParser) -> None:
    """Declare the words of ``serve``."""
    parser.add_argument("script", nargs="?", type=Path, metavar="SCRIPT", help="a script, or a scenario with one")
    parser.add_argument("--preset", metavar="NAME", help="serve a script that comes with the provider")
    parser.add_argument("--list-presets", action="store_true", help="list the presets and what they do")
    parser.add_argument("--port", type=int, default=0, metavar="N", help="the port on 127.0.0.1; 0 for a free one")
    parser.add_argument("--journal", type=Path, metavar="FILE", help="append each journal entry as a JSON line")
    parser.add_argument("--tls", choices=tuple(CERTIFICATES), metavar="KIND", help=f"one of {', '.join(CERTIFICATES)}")
    parser.add_argument("--ca-file", type=Path, metavar="FILE", help="with TLS: write the authority to trust, in PEM")
    parser.add_argument("--time-scale", type=_scale, default=1.0, metavar="X", help="scripted waits are divided by X")
    parser.add_argument(
        "--keep", type=_count, default=KEEP_DEFAULT, metavar="N", help=f"entries held in memory ({KEEP_DEFAULT})"
    )
    parser.add_argument("--plain", action="store_true", help="one line a request on a terminal too")
    parser.add_argument(
        "--client", metavar="NAME", help=f"print the lines to paste for one of {', '.join(clients.CLIENTS)}"
    )


def _scale(text: str) -> float:
    try:
        scale = float(text)
    except ValueError:
        scale = 0.0
    if not 0 < scale < float("inf"):
        raise argparse.ArgumentTypeError(f"expected a number above 0, found {text}")
    return scale


def _count(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"expected a whole number of at least 1, found {text}")
    return int(text)


def serve_command(options: argparse.Namespace, load: Load = load_script) -> int:
    """Carry out ``serve`` and return its exit code, which is 0.

    Args:
        options: What ``add_serve_words`` declares.
        load: Reads the script from a file.

    Raises:
        CommandError: Something is wrong, and nothing was started.
        DocumentError: The script has a mistake.
    """
    if options.list_presets:
        print("\n".join(preset_lines()))
        return 0
    _check_client(options.client)
    if options.script is None and options.preset is None and options.client is not None:
        url = f"http://127.0.0.1:{options.port}" if options.port else UNKNOWN_PORT_URL
        print(clients.lines_for(options.client, url))
        return 0
    script = _chosen(options, load)
    if options.ca_file is not None and script.listen.tls is None:
        raise CommandError("--ca-file is for TLS; add --tls KIND")
    with _opened(options.journal) as journal_file:
        serving = Serving(
            script=script,
            port=options.port,
            journal_file=journal_file,
            authority_file=options.ca_file,
            time_scale=options.time_scale,
            keep=options.keep,
            live=sys.stdout.isatty() and not options.plain,
            client=options.client,
        )
        try:
            rows = asyncio.run(_serve(serving))
        except ProviderError as error:
            raise CommandError(str(error)) from error
    print(rows.summary())
    return 0


def preset_lines() -> list[str]:
    """Return one line a preset: its name and what it does."""
    found = descriptions()
    width = max(map(len, found))
    return [f"{name:<{width}}  {words}" for name, words in found.items()]


def _check_client(name: str | None) -> None:
    try:
        if name is not None:
            clients.lines_for(name, "")
    except clients.UnknownClientError as error:
        raise CommandError(str(error)) from error


def _chosen(options: argparse.Namespace, load: Load) -> Script:
    if options.script is not None and options.preset is not None:
        raise CommandError("give a script or --preset, not both")
    if options.script is not None:
        script = load(options.script)
    elif options.preset is not None:
        try:
            script = load_preset(options.preset)
        except UnknownPresetError as error:
            raise CommandError(str(error)) from error
    else:
        raise CommandError(f"nothing to serve: give SCRIPT.yaml or --preset NAME. Presets: {', '.join(descriptions())}")
    return script if options.tls is None else replace(script, listen=Listen(options.tls))


@contextlib.contextmanager
def _opened(path: Path | None) -> Iterator[BinaryIO | None]:
    if path is None:
        yield None
        return
    try:
        opened = path.open("ab")
    except OSError as error:
        raise CommandError(f"cannot write the journal {path}: {error.strerror}") from error
    with opened:
        yield opened


async def _serve(serving: Serving) -> RequestRows:
    """Serve until SIGINT or SIGTERM, and return what was seen."""
    stopped = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stopped.set)
    rows = RequestRows() if serving.live else RequestRows(print_row, print_remark)
    view: View | None = None

    def heard(entry: AnyEntry) -> None:
        if serving.journal_file is not None:
            serving.journal_file.write(encode_entry(entry) + b"\n")
            serving.journal_file.flush()
        rows(entry)
        if view is not None:
            view.changed()

    provider = Provider(
        serving.script,
        journal=Journal(heard, keep=serving.keep),
        time_scale=serving.time_scale,
        control=True,
    )
    async with provider.listening(port=serving.port):
        _write_authority(serving.authority_file, provider.authority_pem)
        print("\n".join(_greeting(serving, provider.url)), flush=True)
        if serving.live:
            view = _made_view(rows, provider)
            drawing = loop.create_task(view.run())
            await stopped.wait()
            drawing.cancel()
            await asyncio.gather(drawing, return_exceptions=True)
        else:
            await stopped.wait()
    return rows


def _made_view(rows: RequestRows, provider: Provider) -> View:
    # Only a terminal needs rich, which takes as long to import as the provider takes to start.
    from rich.console import Console

    from fake_provider.view import View

    def lanes() -> tuple[LaneState, ...]:
        return provider.playback.state()

    return View(rows, lanes, Console(highlight=False, markup=False))


def _write_authority(path: Path | None, pem: bytes | None) -> None:
    if path is None or pem is None:
        return
    try:
        path.write_bytes(pem)
    except OSError as error:
        raise ProviderError(f"cannot write the authority {path}: {error.strerror}") from error


def _greeting(serving: Serving, url: str) -> Iterator[str]:
    yield f"listening on {url}"
    if serving.client is not None:
        yield clients.lines_for(serving.client, url)
        return
    yield from (f"  {line}" for line in clients.overview(serving.script.dialects, url))
    yield "  any key will do; for the lines to paste for a client: --client NAME"
    yield f"  control it at {url}{CONTROL_PREFIX}"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run ``python -m fake_provider [record]`` and return its exit code: 0 when ended by a signal, 2 for a mistake."""
    words = sys.argv[1:] if arguments is None else list(arguments)
    parser = argparse.ArgumentParser(prog="python -m fake_provider", description="Serve a scripted model provider.")
    try:
        if words[:1] == ["record"]:
            from fake_provider.recording.command import add_record_words, record_command

            add_record_words(parser)
            return record_command(parser.parse_args(words[1:]))
        add_serve_words(parser)
        return serve_command(parser.parse_args(words))
    except (DocumentError, CommandError) as error:
        print(error, file=sys.stderr)
    return 2
