"""The durable record of a session: JSON lines, appended and synced one by one, never rewritten (J4, N2, N8, N10).

This module knows lines and versions; what a record means is known elsewhere. It never repairs a file in place: damage
stays where it is, is skipped and is reported.
"""

import errno
import fcntl
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

FORMAT_VERSION = 1


class JournalError(Exception):
    """A record could not be made durable; nothing after it may be taken as recorded."""


class NewerFormatError(Exception):
    """The file was written by a version that this program does not know."""


@dataclass(frozen=True)
class Record:
    """One durable record: its line from 1, format version, kind, time (ISO 8601, UTC) and fields."""

    line: int
    version: int
    kind: str
    at: str
    fields: Mapping[str, Any]


@dataclass(frozen=True)
class Damage:
    """A line that could not be used: its number from 1, what is wrong, and whether it was the file's end when found.

    A torn end is a record that never counted. Damage anywhere else may have been a record that did.
    """

    line: int
    what: str
    at_end: bool


@dataclass(frozen=True)
class TranscriptContent:
    """Everything intact in a transcript, in order; every damage; and the lines that were reported before."""

    records: tuple[Record, ...]
    damages: tuple[Damage, ...]
    reported_lines: frozenset[int]


def read_transcript(path: Path) -> TranscriptContent:
    """Read a transcript as far as it is intact, on both sides of any damage.

    Raises:
        OSError: The file cannot be read.
        NewerFormatError: A record has a version above the one that this program writes.
    """
    records: list[Record] = []
    torn: list[tuple[int, str]] = []
    lines = path.read_bytes().split(b"\n")
    for number, line in enumerate(lines, start=1):
        parsed = _parse(number, line) if line else None
        if isinstance(parsed, str):
            torn.append((number, parsed))
        elif parsed is not None:
            if parsed.version > FORMAT_VERSION:
                raise NewerFormatError(
                    f"{path}:{number}: record format {parsed.version} is newer than {FORMAT_VERSION}, the newest that "
                    "this version reads; settle unknown effects with the newer version before going back"
                )
            records.append(parsed)
    # Only a last line without its end is a torn write; how a line was found at first is kept by damage_seen.
    known = {seen["line"]: bool(seen["at_end"]) for record in records for seen in _seen(record)}
    damages = tuple(Damage(number, what, known.get(number, number == len(lines))) for number, what in torn)
    return TranscriptContent(tuple(records), damages, frozenset(known))


def _seen(record: Record) -> list[Mapping[str, Any]]:
    damages = record.fields.get("damages") if record.kind == "damage_seen" else None
    if not isinstance(damages, list):
        return []
    return [
        seen for seen in damages if isinstance(seen, dict) and isinstance(seen.get("line"), int) and "at_end" in seen
    ]


def _parse(number: int, line: bytes) -> Record | str:
    try:
        value = json.loads(line)
    except ValueError:
        return "not a whole JSON record (a torn write)"
    except RecursionError:
        return "JSON that is nested too deeply to be a record"
    if not isinstance(value, dict):
        return "not a JSON object"
    version, kind, at = value.pop("version", 0), value.pop("kind", None), value.pop("at", "")
    if not isinstance(version, int) or not isinstance(kind, str):
        return "no record kind"
    return Record(number, version, kind, str(at), value)


class TranscriptWriter:
    """Appends records; each is on disk when `append` returns. One process at a time may have a file open so."""

    def __init__(self, path: Path) -> None:
        """Open or create the file and its folder, and take its lock; the kernel gives it back when the process ends.

        Raises:
            JournalError: It cannot be opened, another process has it, or its folder cannot be made durable.
        """
        self.path = path
        self._broken: OSError | None = None
        try:
            _make_folder(path.parent)
            self._descriptor = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            self._line_is_torn = self._ends_without_line_end()
            _sync_folder(path.parent)
        except BlockingIOError as error:
            os.close(self._descriptor)
            raise JournalError(f"{path} is in use by another process; end that one first") from error
        except OSError as error:
            raise JournalError(f"cannot open {path}: {error.strerror}") from error

    def append(self, kind: str, at: str, **fields: Any) -> None:
        """Append one record and wait until it is on disk.

        Raises:
            JournalError: The record is not durable. The writer refuses every later record, since a failed sync says
                nothing about what the disk holds.
        """
        if self._broken is not None:
            raise JournalError(f"{self.path} is not written any more since: {self._broken.strerror}")
        line = json.dumps({"version": FORMAT_VERSION, "kind": kind, "at": at, **fields}, ensure_ascii=True) + "\n"
        # A torn last line gets its own end first, so that the new record is not read as its tail.
        data = b"\n" * self._line_is_torn + line.encode("ascii")
        try:
            written = os.write(self._descriptor, data)
            if written != len(data):
                raise OSError(errno.ENOSPC, f"only {written} of {len(data)} bytes were written")
            os.fsync(self._descriptor)
            self._line_is_torn = False
        except OSError as error:
            self._broken = error
            raise JournalError(f"cannot record {kind} in {self.path}: {error.strerror}") from error

    def close(self) -> None:
        """Close the file."""
        os.close(self._descriptor)

    def _ends_without_line_end(self) -> bool:
        size = os.fstat(self._descriptor).st_size
        return size > 0 and os.pread(self._descriptor, 1, size - 1) != b"\n"


def _make_folder(folder: Path) -> None:
    if not folder.is_dir():
        _make_folder(folder.parent)
        folder.mkdir(exist_ok=True)
        # A folder whose own entry is lost in a power cut takes every record in it along.
        _sync_folder(folder.parent)


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
