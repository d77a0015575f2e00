"""Keeps runs: evidence and journal as files, one row a run in SQLite, under ``.crashcart/``.

A run's files are whole before its row exists, and each file is moved into place when it is whole, so a kill or a full
disk at any moment leaves a store that opens and holds no half evidence. The store never judges and never rewrites.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from harness.model.evidence import Evidence, decode, encode
from harness.model.outcome import Outcome

FORMAT_VERSION = 1
LOCK_SECONDS = 30.0
SCHEMA = """
CREATE TABLE IF NOT EXISTS runs (
    run TEXT PRIMARY KEY,
    probe TEXT,
    scenario TEXT NOT NULL,
    runtime TEXT NOT NULL,
    version TEXT NOT NULL,
    outcome TEXT NOT NULL,
    captured_at TEXT NOT NULL,
    duration_seconds REAL NOT NULL
);
CREATE INDEX IF NOT EXISTS runs_by_probe ON runs (probe, runtime, captured_at);
"""


class StoreError(Exception):
    """The store cannot be opened, read or written; the message says what to do."""


@dataclass(frozen=True)
class Row:
    """One run as the store lists it."""

    run: str
    probe: str | None
    scenario: str
    runtime: str
    version: str
    outcome: Outcome
    captured_at: str
    duration_seconds: float


class Store:
    """A folder with a database; safe for several writers at once."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def new_run(self, captured_at: str) -> str:
        """Return an id that sorts by time: ``20261130-203015-1f2e3d4c``."""
        digits = "".join(character for character in captured_at if character.isdigit())
        return f"{digits[:8]}-{digits[8:14]}-{secrets.token_hex(4)}"

    def keep(self, evidence: Evidence, journal: bytes, probe: str | None, duration_seconds: float) -> Path:
        """Write a run's files, then its row; return the evidence file.

        Raises:
            StoreError: Something could not be written; the store is as it was before.
        """
        folder = self.folder / "runs" / evidence.run
        claimed = False
        try:
            folder.parent.mkdir(parents=True, exist_ok=True)
            folder.mkdir()
            claimed = True
            write_whole(folder / "journal.jsonl", journal)
            write_whole(folder / "evidence.json", encode(evidence))
            self._insert(evidence, probe, duration_seconds)
        except (OSError, sqlite3.Error, StoreError) as error:
            if claimed:
                shutil.rmtree(folder, ignore_errors=True)
            if isinstance(error, StoreError):
                raise
            raise StoreError(
                f"the run {evidence.run} could not be stored under {self.folder}: {error}. "
                "Nothing that was there before is lost; free some space or name another folder with CRASHCART_STORE"
            ) from error
        return folder / "evidence.json"

    def _insert(self, evidence: Evidence, probe: str | None, duration_seconds: float) -> None:
        with self._database() as database:
            database.execute(
                "INSERT INTO runs VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
                (
                    evidence.run,
                    probe,
                    evidence.input.scenario,
                    evidence.target.runtime,
                    evidence.target.version,
                    evidence.outcome.value,
                    evidence.captured_at,
                    duration_seconds,
                ),
            )

    def rows(self) -> list[Row]:
        """Return all runs, oldest first.

        Raises:
            StoreError: The database is not one of this program.
        """
        if not (self.folder / "store.sqlite").is_file():
            return []
        try:
            with self._database() as database:
                found = database.execute("SELECT * FROM runs ORDER BY captured_at, run").fetchall()
        except sqlite3.Error as error:
            raise StoreError(f"{self.folder / 'store.sqlite'} cannot be read: {error}") from error
        return [
            Row(run, probe, scenario, runtime, version, Outcome(outcome), captured_at, duration_seconds)
            for run, probe, scenario, runtime, version, outcome, captured_at, duration_seconds in found
        ]

    def evidence(self, prefix: str) -> Evidence:
        """Return the evidence of the run whose id begins with ``prefix``; ``last`` is the newest.

        Raises:
            StoreError: No run or several runs match, or the file is damaged.
        """
        rows = self.rows()
        matching = rows[-1:] if prefix == "last" else [row for row in rows if row.run == prefix]
        matching = matching or [row for row in rows if row.run.startswith(prefix)]
        if len(matching) != 1:
            near = ", ".join(row.run for row in (matching or rows)[-5:]) or "none yet; run: crashcart run"
            what = "no run begins" if not matching else f"{len(matching)} runs begin"
            raise StoreError(f"{what} with '{prefix}' in {self.folder}. Newest: {near}")
        path = self.folder / "runs" / matching[0].run / "evidence.json"
        try:
            return decode(path.read_bytes())
        except (OSError, ValueError) as error:
            raise StoreError(f"{path} cannot be read: {error}") from error

    @contextlib.contextmanager
    def _database(self) -> Iterator[sqlite3.Connection]:
        self.folder.mkdir(parents=True, exist_ok=True)
        database = sqlite3.connect(self.folder / "store.sqlite", timeout=LOCK_SECONDS)
        try:
            found = database.execute("PRAGMA user_version").fetchone()[0]
            if found > FORMAT_VERSION:
                raise StoreError(
                    f"{self.folder / 'store.sqlite'} has format {found}, and this program knows up to "
                    f"{FORMAT_VERSION}; use the newer crashcart, or another folder with CRASHCART_STORE"
                )
            with database:
                if found < FORMAT_VERSION:
                    database.executescript(SCHEMA)
                    database.execute(f"PRAGMA user_version = {FORMAT_VERSION}")
                yield database
        finally:
            database.close()


def write_whole(path: Path, data: bytes) -> None:
    """Write a file so that it is either whole or not there, also after a power cut: temporary file, fsync, rename."""
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    try:
        with temporary.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        temporary.rename(path)
        sync_folder(path.parent)
    finally:
        temporary.unlink(missing_ok=True)


def sync_folder(folder: Path) -> None:
    """Make a rename in a folder durable; fsync(2) of the file alone does not."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
