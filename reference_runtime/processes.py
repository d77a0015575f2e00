"""Child processes in groups of their own: run to an end, a time limit or an abort, and never left behind.

It does not interpret what a process prints or how it exits.
"""

import asyncio
import os
import signal
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

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
    """Run a command and wait for it, at most `limit_seconds` of real time; its whole group is killed at the limit.

    Output beyond 1 MiB a stream is cut off.

    Raises:
        OSError: The command cannot be started.
        asyncio.CancelledError: The caller was cancelled; the group is killed first.
    """
    process = await asyncio.create_subprocess_exec(
        *command,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        cwd=working_folder,
        env=dict(environment) if environment is not None else None,
        start_new_session=True,
    )
    try:
        async with asyncio.timeout(limit_seconds):
            output, errors = await process.communicate(given)
        return ProcessResult(process.returncode, _text(output), _text(errors))
    except TimeoutError:
        return ProcessResult(None, "", "")
    finally:
        # Also after a normal end: what the command left running in its group must not outlive it.
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
        await process.wait()


def _text(output: bytes) -> str:
    return output[:OUTPUT_BYTES_MAX].decode("utf-8", "replace")
