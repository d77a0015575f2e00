"""Read, Write and Edit: files changed atomically, verified afterwards, and never over a version not seen (K3).

A failed write leaves the old bytes. It keeps no old versions; that is a checkpoint store's work.
"""

import hashlib
import os
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from reference_runtime.recovery.receipts import Effect
from reference_runtime.tools.tool import CallIdentity, ToolAnswer, ToolSpec, text_answer

READ_LINES_MAX = 2000
NEW_FILE_MODE = 0o644


class ToolRefusedError(Exception):
    """The file is not as the call needs it; the text goes to the model."""


class KnownVersions:
    """The version (SHA-256) of each file as this session last read or wrote it."""

    def __init__(self) -> None:
        self._digests: dict[Path, str] = {}

    def note(self, path: Path, content: bytes) -> None:
        """The session now knows this content of the file."""
        self._digests[path] = _digest(content)

    def check(self, path: Path, content: bytes) -> None:
        """Raise ToolRefusedError when the session knows another content than this."""
        if self._digests.get(path, _digest(content)) != _digest(content):
            raise ToolRefusedError(f"{path} changed since it was last read; read it again first")


def replace_file(path: Path, content: bytes, expected: bytes | None) -> None:
    """Replace a file's bytes atomically and durably, keeping its mode, and verify what is there afterwards.

    Temporary file in the same folder, fsync, rename, fsync of the folder; a crash leaves the old or the new bytes.

    Args:
        path: The file, without symbolic links.
        content: The new bytes.
        expected: The bytes that must be there right before the rename; None for no file.

    Raises:
        ToolRefusedError: Other bytes were there, or other bytes are there afterwards.
        OSError: A step failed; the old bytes are still in place.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    mode = path.stat().st_mode & 0o7777 if expected is not None else NEW_FILE_MODE
    descriptor, temporary = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    try:
        with os.fdopen(descriptor, "wb") as stream:
            stream.write(content)
            os.fchmod(stream.fileno(), mode)
            stream.flush()
            os.fsync(stream.fileno())
        if _bytes_of(path) != expected:
            raise ToolRefusedError(f"{path} changed while it was being written; read it again first")
        Path(temporary).replace(path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise
    folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
    if _bytes_of(path) != content:
        raise ToolRefusedError(f"{path} does not hold what was written to it")


def _bytes_of(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return None


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


class FileTool:
    """What the three file tools share: a working folder, the known versions, and errors as answers."""

    spec: ToolSpec
    unavailable_because: str | None = None

    def __init__(self, working_folder: Path, versions: KnownVersions) -> None:
        self._working_folder = working_folder
        self._versions = versions

    async def run(self, arguments: Mapping[str, Any], identity: CallIdentity) -> ToolAnswer:
        """Do the work; a file that is not as needed, or an error of the system, is an answer that says so."""
        del identity  # Files need no key: their content tells whether a write is there.
        path = self._working_folder / arguments["file_path"]
        try:
            path = Path(os.path.realpath(path))
            return text_answer(self.work(path, arguments))
        except ToolRefusedError as error:
            return text_answer(str(error), is_error=True)
        except (OSError, ValueError) as error:
            reason = error.strerror if isinstance(error, OSError) else str(error)
            return text_answer(f"{str(path)!r}: {reason}", is_error=True)

    def work(self, path: Path, arguments: Mapping[str, Any]) -> str:
        """The tool's own work on the resolved path; returns the text for the model."""
        raise NotImplementedError


class ReadTool(FileTool):
    """Reads a text file with line numbers."""

    spec = ToolSpec(
        name="Read",
        description="Read a text file. Lines are numbered from 1.",
        input_schema={
            "type": "object",
            "properties": {
                "file_path": {"type": "string", "description": "Path, absolute or below the working folder."},
                "offset": {"type": "integer", "description": "First line to read, from 1."},
                "limit": {"type": "integer", "description": "How many lines to read."},
            },
            "required": ["file_path"],
            "additionalProperties": False,
        },
        effect=Effect.READ_ONLY,
    )

    def work(self, path: Path, arguments: Mapping[str, Any]) -> str:
        """Read the lines asked for."""
        content = path.read_bytes()
        self._versions.note(path, content)
        first = max(1, arguments.get("offset", 1))
        count = min(READ_LINES_MAX, arguments.get("limit", READ_LINES_MAX))
        lines = content.decode("utf-8", "replace").splitlines()[first - 1 : first - 1 + count]
        numbered = (f"{number:>6}\t{line}" for number, line in enumerate(lines, start=first))
        return "\n".join(numbered) or "(the file has no such lines)"


class WriteTool(FileTool):
    """Writes a whole file."""

    spec = ToolSpec(
        name="Write",
        description="Write a whole file, replacing what was there.",
        input_schema={
            "type": "object",
            "properties": {
                "file_path": {"type": "string", "description": "Path, absolute or below the working folder."},
                "content": {"type": "string", "description": "The file's new content."},
            },
            "required": ["file_path", "content"],
            "additionalProperties": False,
        },
        effect=Effect.WRITE,
    )

    def work(self, path: Path, arguments: Mapping[str, Any]) -> str:
        """Replace the file."""
        before = _bytes_of(path)
        if before is not None:
            self._versions.check(path, before)
        content = arguments["content"].encode()
        replace_file(path, content, before)
        self._versions.note(path, content)
        return f"{path} {'created' if before is None else 'replaced'}: {len(content)} bytes"


class EditTool(FileTool):
    """Replaces a text inside a file."""

    spec = ToolSpec(
        name="Edit",
        description="Replace a text in a file. The text must occur exactly once unless replace_all is true.",
        input_schema={
            "type": "object",
            "properties": {
                "file_path": {"type": "string", "description": "Path, absolute or below the working folder."},
                "old_string": {"type": "string", "description": "The text to replace."},
                "new_string": {"type": "string", "description": "The text to put in its place."},
                "replace_all": {"type": "boolean", "description": "Replace every occurrence."},
                "expected_version": {"type": "string", "description": "SHA-256 of the file as it must be before."},
            },
            "required": ["file_path", "old_string", "new_string"],
            "additionalProperties": False,
        },
        effect=Effect.WRITE,
    )

    def work(self, path: Path, arguments: Mapping[str, Any]) -> str:
        """Replace the text in the file."""
        before = path.read_bytes()
        self._versions.check(path, before)
        expected = arguments.get("expected_version")
        if expected is not None and expected != _digest(before):
            raise ToolRefusedError(f"{path} has version {_digest(before)}, not the expected {expected}")
        old, new = arguments["old_string"].encode(), arguments["new_string"].encode()
        count = before.count(old) if old else 0
        if count == 0:
            raise ToolRefusedError(f"the text to replace does not occur in {path}")
        if count > 1 and not arguments.get("replace_all", False):
            raise ToolRefusedError(f"the text to replace occurs {count} times in {path}; give more of it")
        content = before.replace(old, new)
        replace_file(path, content, before)
        self._versions.note(path, content)
        return f"{path} edited: {count} replaced"
