"""The durable record of a session: JSON lines, appended and synced one by one, never rewritten (J4, N2, N8, N10).

This module knows lines and versions; what a record means is known elsewhere. It never repairs a file in place: damage
stays where it is, is skipped and is reported.
"""

import errno
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
    """One durable record: what kind, when (ISO 8601, UTC), by which format version, and its fields."""

    version: int
    kind: str
    at: str
    fields: Mapping[str, Any]


@dataclass(frozen=True)
class Damage:
    """A line that could not be read: its number from 1 and what is wrong with it."""

    line: int
    what: str


@dataclass(frozen=True)
class TranscriptContent:
    """Everything intact in a transcript, in order, and every damage that was not reported before."""

    records: tuple[Record, ...]
    damages: tuple[Damage, ...]


def read_transcript(path: Path) -> TranscriptContent:
    """Read a transcript as far as it is intact, on both sides of any damage.

    Raises:
        OSError: The file cannot be read.
        NewerFormatError: A record has a version above the one that this program writes.
    """
    records: list[Record] = []
    damages: list[Damage] = []
    for number, line in enumerate(path.read_bytes().split(b"\n"), start=1):
        if not line:
            continue
        parsed = _parse(line)
        if isinstance(parsed, str):
            damages.append(Damage(number, parsed))
            continue
        if parsed.version > FORMAT_VERSION:
            raise NewerFormatError(
                f"{path}:{number}: record format {parsed.version} is newer than {FORMAT_VERSION}, the newest that this "
                "version reads; settle unknown effects with the newer version before going back"
            )
        records.append(parsed)
    known = {line for record in records if record.kind == "damage_seen" for line in record.fields["lines"]}
    return TranscriptContent(tuple(records), tuple(damage for damage in damages if damage.line not in known))


def _parse(line: bytes) -> Record | str:
    try:
        value = json.loads(line)
    except ValueError:
        return "not a whole JSON record (a torn write)"
    if not isinstance(value, dict):
        return "not a JSON object"
    version, kind, at = value.pop("version", 0), value.pop("kind", None), value.pop("at", "")
    if not isinstance(version, int) or not isinstance(kind, str):
        return "no record kind"
    return Record(version, kind, str(at), value)


class TranscriptWriter:
    """Appends records; each is on disk when `append` returns."""

    def __init__(self, path: Path) -> None:
        """Open or create the file and its folder.

        Raises:
            JournalError: It cannot be opened or its folder cannot be made durable.
        """
        self.path = path
        self._broken: OSError | None = None
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._descriptor = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
            self._end_torn_line()
            _sync_folder(path.parent)
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
        data = line.encode("ascii")
        try:
            written = os.write(self._descriptor, data)
            if written != len(data):
                raise OSError(errno.ENOSPC, f"only {written} of {len(data)} bytes were written")
            os.fsync(self._descriptor)
        except OSError as error:
            self._broken = error
            raise JournalError(f"cannot record {kind} in {self.path}: {error.strerror}") from error

    def close(self) -> None:
        """Close the file."""
        os.close(self._descriptor)

    def _end_torn_line(self) -> None:
        size = os.fstat(self._descriptor).st_size
        # A torn last line gets its own end, so that the next record is not read as its tail.
        if size and os.pread(self._descriptor, 1, size - 1) != b"\n":
            os.write(self._descriptor, b"\n")


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
