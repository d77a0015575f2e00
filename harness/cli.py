"""The command line, and the only place where harness, probes and reports meet.

Exit codes: 0 all pass (or all as the expectation files say, with --against-expectations); 1 a failure; 2 usage or a
mistake in a file; 3 inconclusive, a harness error, or a runtime that cannot be had; 4 unsupported only; 130
interrupted.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import os
import shutil
import signal
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from types import FrameType
from typing import NoReturn

import msgspec
from rich.console import Console

from fake_provider.command_line import CommandError, add_serve_words
from fake_provider.command_line import serve_command as serve
from fake_provider.document import DocumentError, load_document, nearest
from fake_provider.recording.command import add_record_words, record_command
from fake_provider.script import Script, parse_script
from harness.model.clause import CLAUSES
from harness.model.evidence import encode
from harness.model.outcome import Outcome
from harness.model.result import ProbeResult
from harness.probe import Probe, Session, all_probes, single
from harness.runtimes.adapter import RuntimeUnavailableError
from harness.runtimes.register import ADAPTERS, UnknownRuntimeError, chosen
from harness.scenario_file import load_scenario
from harness.store import Store, StoreError, write_whole
from harness.workers import Cell, run_cells
from reports import junit, progress, table, timeline

EXIT_PASS, EXIT_FAIL, EXIT_USAGE, EXIT_INCONCLUSIVE, EXIT_UNSUPPORTED, EXIT_INTERRUPTED = 0, 1, 2, 3, 4, 130

EXIT_CODES: tuple[tuple[frozenset[Outcome], int], ...] = (
    (frozenset({Outcome.FAIL}), EXIT_FAIL),
    (frozenset({Outcome.HARNESS_ERROR, Outcome.INCONCLUSIVE}), EXIT_INCONCLUSIVE),
    (frozenset({Outcome.PASS, Outcome.WARN}), EXIT_PASS),
    (frozenset({Outcome.UNSUPPORTED}), EXIT_UNSUPPORTED),
)
"""The first row that shares an outcome with the results decides."""


class UsageError(Exception):
    """The command's words are off; the message says what was allowed."""


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run one command and exit with its code; every error is one line on standard error."""
    options = parser().parse_args(arguments)
    signal.signal(signal.SIGTERM, _interrupt)
    try:
        code = options.command(options)
    except KeyboardInterrupt:
        sys.stderr.write("interrupted; everything that was started has ended, and finished runs are stored\n")
        code = EXIT_INTERRUPTED
    except (UsageError, CommandError, UnknownRuntimeError, DocumentError) as error:
        sys.stderr.write(f"crashcart: {error}\n")
        code = EXIT_USAGE
    except (RuntimeUnavailableError, StoreError) as error:
        sys.stderr.write(f"crashcart: {error}\n")
        code = EXIT_INCONCLUSIVE
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = EXIT_INCONCLUSIVE
    sys.exit(code)


def _interrupt(_number: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt


def parser() -> argparse.ArgumentParser:
    """Return the command line's grammar."""
    root = argparse.ArgumentParser(
        prog="crashcart",
        description="Breaks AI agent runtimes at exact places and shows what they did about it.",
        epilog=(__doc__ or "").partition("Exit codes:")[2].join(("Exit codes:", "")),
    )
    root.add_argument("--version", action="version", version=f"crashcart {importlib.metadata.version('crashcart')}")
    commands = root.add_subparsers(required=True, metavar="COMMAND")

    run = commands.add_parser("run", help="run probes or scenarios on runtimes")
    run.add_argument("targets", nargs="*", metavar="SCENARIO|PROBE|FOLDER", help="what to run; all probes when absent")
    run.add_argument("--runtime", action="append", metavar="NAME[@VERSION]", help="reference when absent; repeatable")
    run.add_argument("--jobs", type=_positive, default=os.cpu_count() or 1, metavar="N", help="runs at once")
    run.add_argument("--json", action="store_true", help="print one JSON object a result instead of the table")
    run.add_argument("--junit", type=Path, metavar="FILE", help="write JUnit XML too")
    run.add_argument(
        "--against-expectations",
        action="store_true",
        help="exit 0 when every cell is as the runtime's expectation file says; new and stale deviations exit 1",
    )
    run.set_defaults(command=run_command)

    serve = commands.add_parser("serve", help="serve a provider script on its own")
    add_serve_words(serve)
    serve.set_defaults(command=serve_command)

    record = commands.add_parser("record", help="stand in front of a real provider and record a script that replays it")
    add_record_words(record)
    record.set_defaults(command=record_command)

    show = commands.add_parser("show", help="show a stored run: checks, timeline, reproduction")
    show.add_argument(
        "run", nargs="?", metavar="RUN", help="the beginning of a run's id, or 'last'; all runs when absent"
    )
    show.add_argument("--json", action="store_true", help="print the evidence itself")
    show.set_defaults(command=show_command)

    runtimes = commands.add_parser("runtimes", help="list runtimes, install one, list the versions of one")
    runtimes.add_argument("action", nargs="?", choices=("list", "install", "versions"), default="list")
    runtimes.add_argument("runtime", nargs="?", metavar="NAME[@VERSION]")
    runtimes.set_defaults(command=runtimes_command)

    check = commands.add_parser("check", help="validate scenario files; nothing is started")
    check.add_argument("scenarios", nargs="+", type=Path, metavar="SCENARIO")
    check.set_defaults(command=check_command)

    coverage = commands.add_parser("coverage", help="clause × probe × runtime")
    coverage.add_argument("--json", action="store_true")
    coverage.set_defaults(command=coverage_command)
    return root


def _positive(text: str) -> int:
    number = int(text) if text.isdecimal() else 0
    if number < 1:
        raise argparse.ArgumentTypeError(f"expected a number of at least 1, found {text}")
    return number


def store_folder() -> Path:
    """Return where runs are kept: ``CRASHCART_STORE``, else ``.crashcart`` in the current folder."""
    return Path(os.environ.get("CRASHCART_STORE") or ".crashcart")


def cache_folder() -> Path:
    """Return where runtimes are installed: ``CRASHCART_CACHE``, else the user's cache folder."""
    if chosen_folder := os.environ.get("CRASHCART_CACHE"):
        return Path(chosen_folder).resolve()
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "crashcart"


def targets(words: Iterable[str]) -> list[Probe]:
    """Return the probes that words of the command line name.

    Raises:
        UsageError: A word names no probe, no scenario file and no folder.
        DocumentError: A scenario file has a mistake.
    """
    known = {probe.id: probe for probe in all_probes()}
    found: dict[str, Probe] = {}
    for word in words:
        path = Path(word)
        if word in known:
            picked = [known[word]]
        elif path.is_dir():
            picked = [single(file) for file in sorted(path.rglob("*.yaml"))]
            if not picked:
                raise UsageError(f"the folder {word} holds no scenario (*.yaml)")
        elif path.is_file():
            picked = [single(path)]
        else:
            picked = [probe for probe in known.values() if probe.id.partition(".")[0] == word]
            if not picked:
                raise UsageError(f"'{word}' is no scenario file, no folder and no probe{nearest(word, known)}")
        for probe in picked:
            taken = found.setdefault(probe.id, probe)
            if taken != probe and taken.word != probe.word:
                raise UsageError(
                    f"{probe.word} and {taken.word} have one id, '{probe.id}', and would be one row; "
                    "give one of them another"
                )
    return list(found.values()) or list(known.values())


def run_command(options: argparse.Namespace) -> int:
    """Run probes on runtimes; validate everything and install everything before the first process starts."""
    probes = targets(options.targets)
    choices = [chosen(text) for text in options.runtime or ["reference"]]
    for probe in probes:
        probe.load()
    session = Session(Store(store_folder()), cache_folder())
    for choice in choices:
        session.prepare(choice)
    cells = [Cell(probe, choice) for choice in choices for probe in probes]
    started = time.monotonic()
    console = Console(stderr=options.json, highlight=False, markup=False)
    names = [(cell.probe.id, str(cell.choice)) for cell in cells]
    with progress.shown(console, names, as_json=options.json) as tell:
        results = run_cells(session, cells, options.jobs, tell)
    if options.junit is not None:
        write_report(options.junit, junit.document(results))
    if not options.json:
        console.print()
        table.print_results(console, results)
        console.print()
        console.print(table.totals(results, time.monotonic() - started))
        if shutil.which("crashcart") is None and any(result.outcome is not Outcome.PASS for result in results):
            hint = "crashcart is not on PATH here; for the commands above, first: . .venv/bin/activate"
            console.print(hint, soft_wrap=True)
    for weaker in sorted(
        {evidence.environment["weaker"] for result in results for evidence in result.evidences} - {""}
    ):
        sys.stderr.write(f"warning: {weaker}\n")
    if options.against_expectations:
        return judged_against_expectations(console, results)
    return exit_code(result.outcome for result in results)


def write_report(path: Path, data: bytes) -> None:
    """Write a report whole.

    Raises:
        StoreError: It cannot be written.
    """
    try:
        write_whole(path, data)
    except OSError as error:
        raise StoreError(f"{path} cannot be written: {error}; the runs themselves are stored") from error


def exit_code(outcomes: Iterable[Outcome]) -> int:
    """Return the exit code of several outcomes."""
    found = set(outcomes)
    return next(code for row, code in EXIT_CODES if row & found)


def judged_against_expectations(console: Console, results: Sequence[ProbeResult]) -> int:
    """Say what is new or stale, and return 1 when anything is."""
    unlike = [(result, result.as_expected) for result in results if result.as_expected is not None]
    for result, words in unlike:
        console.print(f"{result.probe} on {result.runtime}: {words}")
    if not unlike:
        console.print("every cell is as the expectation files say")
    return EXIT_FAIL if unlike else EXIT_PASS


def serve_command(options: argparse.Namespace) -> int:
    """Serve a provider script, or that of a scenario, until interrupted."""
    return serve(options, script_of)


def script_of(path: Path) -> Script:
    """Return the script in a file: a scenario's ``model``, or the whole file.

    Raises:
        DocumentError: The file has a mistake.
    """
    root = load_document(path)
    is_scenario = isinstance(root.value, Mapping) and "model" in root.value and "lanes" not in root.value
    return load_scenario(path).script if is_scenario else parse_script(root)


def show_command(options: argparse.Namespace) -> int:
    """Show one stored run, or list all."""
    store = Store(store_folder())
    if options.run is None:
        rows = store.rows()
        if not rows:
            print(f"no runs yet in {store.folder.resolve()}; run: crashcart run")
        for row in rows:
            print(f"{row.run}  {row.outcome:<13} {row.scenario:<34} {row.runtime}@{row.version}")
        return EXIT_PASS
    evidence = store.evidence(options.run)
    if options.json:
        sys.stdout.buffer.write(encode(evidence))
        return EXIT_PASS
    target = evidence.target
    print(f"{evidence.outcome}  {evidence.input.scenario} on {target.runtime}@{target.version}, {evidence.captured_at}")
    print(f"  binary sha256 {target.sha256}; {evidence.environment['isolation']}")
    for check in evidence.checks:
        passed = check.outcome is Outcome.PASS
        print("\n".join([f"  {check.outcome}: {check.check}"] if passed else table.check_words(check)))
    for words in timeline.lines(evidence):
        print(words)
    print(f"  reproduce: {evidence.reproduce}")
    return EXIT_PASS


def runtimes_command(options: argparse.Namespace) -> int:
    """List adapters, install a runtime, or list its versions."""
    if options.action == "list":
        for adapter in ADAPTERS.values():
            print(f"{adapter.name:<14} {adapter.default_version:<12} {', '.join(sorted(adapter.capabilities))}")
        return EXIT_PASS
    if options.runtime is None:
        raise UsageError(f"runtimes {options.action} takes NAME[@VERSION]; names: {', '.join(ADAPTERS)}")
    choice = chosen(options.runtime)
    if options.action == "versions":
        print("\n".join(choice.adapter.versions()))
        return EXIT_PASS
    installation = choice.adapter.install(choice.version, cache_folder())
    print(f"{installation.runtime}@{installation.version}  sha256 {installation.sha256}\n  {installation.program[0]}")
    return EXIT_PASS


def scenario_files(words: Iterable[Path]) -> list[Path]:
    """Return files as they are, and a folder as all scenarios below it."""
    return [path for word in words for path in (sorted(word.rglob("*.yaml")) if word.is_dir() else [word])]


def check_command(options: argparse.Namespace) -> int:
    """Validate scenario files and say what each declares; what is allowed and probably not meant goes to stderr."""
    for path in scenario_files(options.scenarios):
        loaded = load_scenario(path)
        scenario = loaded.scenario
        for warning in loaded.warnings:
            print(f"warning: {warning}", file=sys.stderr)
        faults = "; ".join(scenario.faults_declared) or "no faults"
        print(f"{path}: {scenario.id} is valid: {len(scenario.phases)} phases, {', '.join(scenario.clauses)}, {faults}")
    return EXIT_PASS


def coverage_command(options: argparse.Namespace) -> int:
    """Print clause × probe × runtime, with the newest stored outcome of each."""
    newest = {(row.probe, f"{row.runtime}@{row.version}"): row.outcome for row in Store(store_folder()).rows()}
    runtimes = sorted({runtime for _, runtime in newest})
    probes = all_probes()
    rows = [
        (clause, [probe.id for probe in probes if clause.id in probe.clauses])
        for clause in CLAUSES.values()
    ]  # fmt: skip
    if options.json:
        found = [
            {
                "clause": clause.id,
                "probes": [
                    {"probe": name, "outcomes": {at: newest[name, at] for at in runtimes if (name, at) in newest}}
                    for name in names
                ],
            }
            for clause, names in rows
        ]
        print(msgspec.json.encode(found).decode())
        return EXIT_PASS
    print(f"{'clause':<7} {'probe':<36} {'  '.join(f'{runtime:<20}' for runtime in runtimes)}")
    for clause, names in rows:
        for name in names or ["—"]:
            outcomes = "  ".join(f"{newest.get((name, runtime), '·'):<20}" for runtime in runtimes)
            print(f"{clause.id:<7} {name:<36} {outcomes}".rstrip())
    served = sum(bool(names) for _, names in rows)
    print(f"{served} of {len(rows)} clauses have a probe")
    return EXIT_PASS


if __name__ == "__main__":
    main()
