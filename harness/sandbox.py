"""A place for one run: an empty home, a workspace, a network of its own, and a process tree that ends whole.

The sandbox starts and ends processes and says what it saw. It knows nothing of providers, agents or verdicts. Where the
system allows no network namespace it still works, and says in :attr:`Sandbox.weaker` what is weaker.
"""

from __future__ import annotations

import asyncio
import errno
import json
import os
import secrets
import shutil
import signal
import socket
import sys
import tempfile
import time
from collections import deque
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil

SPAWNER = Path(__file__).with_name("spawner.py")
MESSAGE_BYTES_MAX = 1 << 20
GRACE_SECONDS = 3.0
"""How long a runtime's own children may take to notice that it has ended, before they count as left running."""

SPAWNER_ANSWER_SECONDS = 30.0
OUTPUT_BYTES_MAX = 16 << 20
OUTPUT_LINES_MAX = 120_000
"""How much of the beginning of each output stream is kept; more is read, so that the writer goes on.

Of what comes after it only the end is kept, where a runtime says how it ended; all between is dropped and counted.
"""

TAIL_BYTES_MAX = 1 << 20
TAIL_LINES_MAX = 1_000

OUTPUT_PIECE_BYTES = 1 << 18


SPAWNER_GONE = "the process that guards the sandbox ended by itself"


class SandboxError(Exception):
    """The sandbox could not be made, or a program could not be started in it."""


@dataclass(frozen=True)
class OutputLine:
    """One line that a process wrote, and when it arrived, in monotonic seconds."""

    at_seconds: float
    stream: str
    text: str


@dataclass
class SandboxProcess:
    """One process of the runtime under test.

    Attributes:
        pid: Its process id.
        started_at_seconds: Monotonic.
        lines: What it and its children wrote, line by line, as far as read.
        exited: Resolves to exit code and signal name, one of them ``None``; fails when nobody can know any more.
        exited_at_seconds: Monotonic, when the end was seen; ``None`` before.
        readers: The tasks that read its output.
        dropped_bytes: By stream, how much it wrote beyond the bound; empty when all was kept.
    """

    pid: int
    started_at_seconds: float
    exited: asyncio.Future[tuple[int | None, str | None]]
    lines: list[OutputLine] = field(default_factory=list)
    readers: list[asyncio.Task[None]] = field(default_factory=list)
    dropped_bytes: dict[str, int] = field(default_factory=dict)
    exited_at_seconds: float | None = None

    def ended(self, code: int | None, name: str | None) -> None:
        """Note the end, once."""
        if not self.exited.done():
            self.exited_at_seconds = time.monotonic()
            self.exited.set_result((code, name))

    def text(self, stream: str) -> str:
        """Return everything written to ``stdout`` or ``stderr``."""
        return "".join(line.text for line in self.lines if line.stream == stream)


class Sandbox:
    """Folders, network and process tree of one run; made by :func:`open_sandbox`."""

    def __init__(self, root: Path, control: socket.socket) -> None:
        self.root = root
        self.home = root / "home"
        self.workspace = root / "workspace"
        self.control_folder = root / "control"
        self.temporary = root / "tmp"
        self.isolation = "none"
        self.weaker = ""
        self.port = 0
        self.listening: socket.socket | None = None
        self._control = control
        self._answers: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        self._processes: dict[int, SandboxProcess] = {}
        self._early_exits: dict[int, tuple[int | None, str | None]] = {}
        for folder in (self.home, self.workspace, self.control_folder, self.temporary):
            folder.mkdir()

    def base_environment(self) -> dict[str, str]:
        """Return the whole environment that a runtime gets before its adapter adds to it."""
        return {
            "HOME": str(self.home),
            "LANG": "C.UTF-8",
            "PATH": os.pathsep.join(("/usr/local/bin", "/usr/bin", "/bin")),
            "TERM": "dumb",
            "TMPDIR": str(self.temporary),
        }

    async def start(self, argv: Sequence[str], env: Mapping[str, str], cwd: Path) -> SandboxProcess:
        """Start a program; its standard input is empty.

        Raises:
            SandboxError: The program cannot be executed.
        """
        descriptors = [os.open(os.devnull, os.O_RDONLY)]
        readers = []
        for _ in ("stdout", "stderr"):
            read, write = os.pipe2(os.O_CLOEXEC)
            readers.append(read)
            descriptors.append(write)
        try:
            answer = await self._ask(
                {"kind": "spawn", "argv": list(argv), "env": dict(env), "cwd": str(cwd)}, descriptors
            )
        except BaseException:
            for read in readers:
                os.close(read)
            raise
        finally:
            for descriptor in descriptors:
                os.close(descriptor)
        if answer["kind"] == "refused":
            for read in readers:
                os.close(read)
            raise SandboxError(f"{argv[0]} cannot be started: {answer['reason']}")
        loop = asyncio.get_running_loop()
        process = SandboxProcess(answer["pid"], time.monotonic(), loop.create_future())
        self._processes[process.pid] = process
        if process.pid in self._early_exits:
            process.ended(*self._early_exits.pop(process.pid))
        for name, read in zip(("stdout", "stderr"), readers, strict=True):
            process.readers.append(asyncio.create_task(_read_lines(process, name, read)))
        return process

    def signal(self, process: SandboxProcess, number: signal.Signals) -> None:
        """Send a signal to the process itself, not to its children."""
        self._send({"kind": "signal", "pid": process.pid, "number": int(number)})

    async def end(self, grace_seconds: float = GRACE_SECONDS) -> list[str]:
        """End everything that runs and return the command lines of what had outlived the grace."""
        answer = await self._ask({"kind": "end", "grace_seconds": grace_seconds})
        for process in self._processes.values():
            await asyncio.gather(*process.readers)
            process.ended(None, "SIGKILL")
        return list(answer["running"])

    def _send(self, message: Mapping[str, Any], descriptors: Sequence[int] = ()) -> None:
        try:
            socket.send_fds(self._control, [json.dumps(message).encode()], list(descriptors))
        except OSError as error:
            if error.errno == errno.EMSGSIZE:
                raise SandboxError(
                    f"{message['argv'][0]} cannot be started: its arguments and environment are too long"
                ) from error
            raise SandboxError(f"the process that guards the sandbox is gone: {error}") from error

    async def _ask(self, message: Mapping[str, Any], descriptors: Sequence[int] = ()) -> dict[str, Any]:
        self._send(message, descriptors)
        return await self._answer()

    async def _answer(self) -> dict[str, Any]:
        try:
            async with asyncio.timeout(SPAWNER_ANSWER_SECONDS):
                answer = await self._answers.get()
        except TimeoutError as error:
            raise SandboxError(
                f"the process that guards the sandbox gave no answer in {SPAWNER_ANSWER_SECONDS:g} s"
            ) from error
        if answer["kind"] == "gone":
            raise SandboxError(SPAWNER_GONE)
        return answer

    def _on_readable(self) -> None:
        try:
            data, descriptors, _, _ = socket.recv_fds(self._control, MESSAGE_BYTES_MAX, 1)
        except OSError:
            data, descriptors = b"", []
        if not data:
            asyncio.get_running_loop().remove_reader(self._control)
            self._answers.put_nowait({"kind": "gone"})
            for watched in self._processes.values():
                if not watched.exited.done():
                    watched.exited.set_exception(SandboxError(SPAWNER_GONE))
                    watched.exited.exception()  # whoever waits is told; nobody has to wait
            return
        message = json.loads(data)
        if message["kind"] == "exited":
            process = self._processes.get(message["pid"])
            if process is None:
                self._early_exits[message["pid"]] = (message["code"], message["signal"])
            else:
                process.ended(message["code"], message["signal"])
            return
        if descriptors:
            message["descriptor"] = descriptors[0]
        self._answers.put_nowait(message)

    async def _open(self) -> None:
        asyncio.get_running_loop().add_reader(self._control, self._on_readable)
        ready = await self._answer()
        self.isolation, self.weaker, self.port = ready["isolation"], ready["weaker"], ready["port"]
        self.listening = socket.socket(fileno=ready["descriptor"])
        self.listening.setblocking(False)

    def _leave(self) -> None:
        asyncio.get_running_loop().remove_reader(self._control)
        self._control.close()  # the spawner ends the tree when it sees this, and then itself

    async def _close(self) -> None:
        for process in self._processes.values():
            for reader in process.readers:
                reader.cancel()
            await asyncio.gather(*process.readers, return_exceptions=True)
        if self.listening is not None:
            self.listening.close()


@asynccontextmanager
async def open_sandbox() -> AsyncIterator[Sandbox]:
    """Make a sandbox and end all of it on the way out, whatever happened inside.

    Raises:
        SandboxError: No folder can be made (a full disk), or the guarding process does not start.
    """
    try:
        root = Path(tempfile.gettempdir()) / f"crashcart-{secrets.token_hex(6)}"
        root.mkdir(mode=0o700)  # no other characters in the name: agents make file names of it by rules of their own
    except OSError as error:
        raise SandboxError(f"no temporary folder can be made: {error}") from error
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    ours.setblocking(False)
    try:
        with ours, theirs:
            try:
                sandbox = Sandbox(root, ours)
            except OSError as error:
                raise SandboxError(f"the sandbox's folders cannot be made: {error}") from error
            spawner = await asyncio.create_subprocess_exec(
                *(sys.executable, "-I", "-S", str(SPAWNER), str(theirs.fileno()), str(root)),
                pass_fds=[theirs.fileno()],
                env={},
                start_new_session=True,  # a key on the terminal is for the harness, which ends the spawner in order
            )
            theirs.close()
            try:
                await sandbox._open()
                yield sandbox
            finally:
                sandbox._leave()
                if await spawner.wait() != 0:
                    _end_strays(root)
                await sandbox._close()
    finally:
        shutil.rmtree(root, ignore_errors=True)


def _end_strays(root: Path) -> None:
    """End what a spawner that was killed left behind: processes whose home or working folder is this run's."""
    for process in psutil.process_iter():
        try:
            places = (process.environ().get("HOME", ""), process.cwd())
            if any(Path(place).is_relative_to(root) for place in places):
                process.kill()
        except psutil.Error:
            continue  # it is gone, or it is somebody else's


class _Kept:
    """What is kept of one output stream: its beginning and its end, both bounded in bytes and in lines."""

    def __init__(self, process: SandboxProcess, stream: str) -> None:
        self._process = process
        self._stream = stream
        self._line = bytearray()
        self._room_bytes, self._room_lines = OUTPUT_BYTES_MAX, OUTPUT_LINES_MAX
        self._tail: deque[tuple[OutputLine, int]] = deque()
        self._tail_bytes = 0

    def add(self, piece: bytes) -> None:
        """Take bytes as they come."""
        *whole, rest = piece.split(b"\n")
        for part in whole:
            self._grow(part + b"\n")
            self._end_line()
        self._grow(rest)

    def finish(self) -> None:
        """Hand over the end; no more will come."""
        if self._line:
            self._end_line()
        self._process.lines += [line for line, _ in self._tail]

    def _grow(self, part: bytes) -> None:
        bound = max(self._room_bytes if self._room_lines else 0, TAIL_BYTES_MAX)
        room = max(0, bound - len(self._line))
        self._line += part[:room]
        self._drop(len(part) - min(len(part), room))

    def _end_line(self) -> None:
        size = len(self._line)
        line = OutputLine(time.monotonic(), self._stream, self._line.decode(errors="replace"))
        self._line.clear()
        if self._room_lines and size <= self._room_bytes:
            self._room_lines -= 1
            self._room_bytes -= size
            self._process.lines.append(line)
            return
        self._room_lines = 0  # the beginning is over with the first line that does not fit
        self._tail.append((line, size))
        self._tail_bytes += size
        while len(self._tail) > TAIL_LINES_MAX or (self._tail_bytes > TAIL_BYTES_MAX and len(self._tail) > 1):
            _, dropped = self._tail.popleft()
            self._tail_bytes -= dropped
            self._drop(dropped)

    def _drop(self, size: int) -> None:
        if size:
            dropped = self._process.dropped_bytes
            dropped[self._stream] = dropped.get(self._stream, 0) + size


async def _read_lines(process: SandboxProcess, stream: str, descriptor: int) -> None:
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader(limit=OUTPUT_PIECE_BYTES)
    kept = _Kept(process, stream)
    with os.fdopen(descriptor, "rb", buffering=0) as pipe:
        transport, _ = await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), pipe)
        try:
            while piece := await reader.read(OUTPUT_PIECE_BYTES):
                kept.add(piece)
            kept.finish()
        finally:
            transport.close()
