"""Child processes end with the call, however it ends."""

import asyncio
import os
import select
from pathlib import Path

import pytest

from reference_runtime.clock import Clock
from reference_runtime.processes import OUTPUT_BYTES_MAX, run_process
from reference_runtime.recovery.tools import ToolFailure
from reference_runtime.tools.shell import BashTool
from reference_runtime.tools.tool import CallIdentity, ToolInterruptedError

IDENTITY = CallIdentity("t1", "a1", "key")


def ends(process: int) -> bool:
    """Wait until a process has ended; False when it has not within a minute."""
    try:
        descriptor = os.pidfd_open(process)
    except ProcessLookupError:
        return True
    try:
        return bool(select.select([descriptor], [], [], 60)[0])
    finally:
        os.close(descriptor)


async def test_status_output_and_input() -> None:
    result = await run_process(("sh", "-c", "cat; echo no >&2; exit 3"), given=b"hi", limit_seconds=30)
    assert (result.status, result.output, result.errors) == (3, "hi", "no\n")
    big = await run_process(("sh", "-c", "head -c 3000000 /dev/zero"), limit_seconds=30)
    assert len(big.output) == OUTPUT_BYTES_MAX


async def test_a_process_left_in_the_background_neither_holds_the_call_nor_outlives_it() -> None:
    result = await run_process(("sh", "-c", "sleep 600 & echo $!"), limit_seconds=30)
    assert result.status == 0
    assert ends(int(result.output))


async def test_at_the_limit_the_whole_group_is_killed(tmp_path: Path) -> None:
    command = f"echo $$ > {tmp_path}/a; sh -c 'echo $$ > {tmp_path}/b; sleep 600'"
    result = await run_process(("sh", "-c", command), limit_seconds=0.5)
    assert result.status is None
    assert all(ends(int((tmp_path / name).read_text())) for name in "ab")


async def test_an_abort_kills_the_group_first(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "ready")
    running = asyncio.create_task(
        run_process(("sh", "-c", f"echo $$ > {tmp_path}/ready; sleep 600"), limit_seconds=600)
    )
    process = int(await asyncio.to_thread((tmp_path / "ready").read_text))
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert ends(process)


async def test_bash_tells_how_the_command_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CRASHCART_API_KEY", "secret")
    bash = BashTool(tmp_path, Clock(scale=1000))
    answer = await bash.run({"command": "pwd; echo $CRASHCART_API_KEY$CRASHCART_IDEMPOTENCY_KEY"}, IDENTITY)
    assert (answer.is_error, answer.content[0]["text"]) == (False, f"{tmp_path}\nkey")
    answer = await bash.run({"command": "echo out; echo err >&2; exit 7"}, IDENTITY)
    assert (answer.is_error, answer.content[0]["text"]) == (True, "exit status 7\nout\nerr")
    with pytest.raises(ToolInterruptedError) as raised:
        await bash.run({"command": "sleep 600", "timeout_seconds": 0.05}, IDENTITY)
    assert raised.value.failure is ToolFailure.TIMED_OUT
    assert (await bash.run({"command": "a\x00b"}, IDENTITY)).is_error


def test_the_scale_never_starves_real_work() -> None:
    clock = Clock(scale=100)
    assert (clock.limit(90), clock.limit_for_work(6000), clock.limit_for_work(60)) == (0.9, 60, 10)
    assert clock.limit_for_work(0.5) == 0.5
    assert Clock().limit_for_work(60) == 60
