"""Child processes in groups of their own: run to an end, a time limit or an abort, and never left behind.

It does not interpret what a process prints or how it exits.
"""

import asyncio
import os
import signal
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import IO

OUTPUT_BYTES_MAX = 1 << 20


@dataclass(frozen=True)
class ProcessResult:
    """How a process ended: its exit status (negative for a signal), or a status of None when the limit passed."""

    status: int | None
    output: str
    errors: str


async def run_process(
    command: Sequence[str],
    *,
    given: bytes = b"",
    working_folder: str | None = None,
    environment: Mapping[str, str] | None = None,
    limit_seconds: float,
) -> ProcessResult:
    """Run a command and wait for it, at most `limit_seconds` of real time; then its whole group is killed.

    Input and output are files and not pipes, so that a process left behind in the background cannot keep the call
    waiting by holding a pipe open. Of each stream the first 1 MiB is returned.

    Raises:
        OSError: The command cannot be started.
        asyncio.CancelledError: The caller was cancelled; the group is killed first.
    """
    with (
        tempfile.TemporaryFile() as standard_input,
        tempfile.TemporaryFile() as output,
        tempfile.TemporaryFile() as errors,
    ):
        standard_input.write(given)
        standard_input.seek(0)
        process = await asyncio.create_subprocess_exec(
            *command,
            stdin=standard_input,
            stdout=output,
            stderr=errors,
            cwd=working_folder,
            env=dict(environment) if environment is not None else None,
            start_new_session=True,
        )
        status = await _wait(process, limit_seconds)
        return ProcessResult(status, _text(output), _text(errors))


async def _wait(process: asyncio.subprocess.Process, limit_seconds: float) -> int | None:
    try:
        async with asyncio.timeout(limit_seconds):
            return await process.wait()
    except TimeoutError:
        return None
    finally:
        # Also after a normal end: what the command left running in its group must not outlive it.
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
        await process.wait()


def _text(stream: IO[bytes]) -> str:
    stream.seek(0)
    return stream.read(OUTPUT_BYTES_MAX).decode("utf-8", "replace")
