"""The sandbox with real processes: what a runtime gets, what it cannot reach, and that all of it ends.

Method: small programs say what they see, or leave things behind. Every wait is for an event (an exit, a line, a pidfd);
nothing here measures time.
"""

from __future__ import annotations

import asyncio
import json
import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path

import psutil
import pytest

import harness.sandbox
from harness.sandbox import SPAWNER, OutputLine, Sandbox, SandboxError, SandboxProcess, open_sandbox

PYTHON = (sys.executable, "-I", "-S")
WAIT_SECONDS = 30.0


@pytest.fixture
async def sandbox() -> AsyncIterator[Sandbox]:
    async with open_sandbox() as made:
        yield made


class Lines(list[OutputLine]):
    """The lines of a process, and an event for the first one."""

    def __init__(self) -> None:
        super().__init__()
        self.first = asyncio.Event()

    def append(self, line: OutputLine) -> None:
        super().append(line)
        self.first.set()


async def started(sandbox: Sandbox, code: str, *arguments: str) -> SandboxProcess:
    """Start a Python program."""
    argv = [*PYTHON, "-c", code, *arguments]
    process = await sandbox.start(argv, sandbox.base_environment(), sandbox.workspace)
    process.lines = Lines()  # nothing was read yet: reading takes a turn of the event loop
    return process


async def finished(sandbox: Sandbox, code: str, *arguments: str) -> SandboxProcess:
    """Run a Python program to its end and take down what it left."""
    process = await started(sandbox, code, *arguments)
    await process.exited
    await sandbox.end()
    return process


async def first_line(process: SandboxProcess) -> str:
    """Wait for a program's first whole line."""
    assert isinstance(process.lines, Lines)
    await process.lines.first.wait()
    return process.lines[0].text


def gone(descriptor: int) -> bool:
    """Wait for the end of a process by its pidfd."""
    try:
        return bool(select.select([descriptor], [], [], WAIT_SECONDS)[0])
    finally:
        os.close(descriptor)


# --- what a program gets


async def test_the_environment_is_exactly_as_listed(sandbox: Sandbox) -> None:
    code = "import json, os; print(json.dumps(dict(os.environ), ensure_ascii=False))"
    environment = {**sandbox.base_environment(), "WORD": "größer"}
    process = await sandbox.start([*PYTHON, "-c", code], environment, sandbox.workspace)
    await process.exited
    await sandbox.end()
    assert json.loads(process.text("stdout")) == environment
    assert set(sandbox.base_environment()) == {"HOME", "LANG", "PATH", "TERM", "TMPDIR"}
    assert not list(sandbox.home.iterdir()), "the home is empty"


async def test_the_arguments_and_the_folder_arrive(sandbox: Sandbox) -> None:
    code = "import os, sys; print(sys.argv[1:], os.getcwd())"
    process = await finished(sandbox, code, "größer", "a b\n", "")
    assert process.text("stdout") == f"{['größer', 'a b' + chr(10), '']} {sandbox.workspace}\n"


async def test_no_descriptor_is_inherited(sandbox: Sandbox) -> None:
    code = """
import os
names = sorted(os.listdir("/proc/self/fd"))   # the last one lists the folder
print({name: os.readlink(f"/proc/self/fd/{name}").split(":")[0] for name in names[:-1]})
"""
    process = await finished(sandbox, code)
    assert process.text("stdout") == "{'0': '/dev/null', '1': 'pipe', '2': 'pipe'}\n"


async def test_signals_are_as_the_system_gives_them(sandbox: Sandbox) -> None:
    process = await sandbox.start(["/bin/cat", "/proc/self/status"], {}, sandbox.workspace)
    await process.exited
    await sandbox.end()
    masks = dict(
        line.split() for line in process.text("stdout").splitlines() if line.startswith("Sig") and "\t0" in line
    )
    # 32 and 33 are the C library's own: make hands them down ignored, and no program may set or miss them.
    set_bits = {name: int(masks[name], 16) & ~(0b11 << 31) for name in ("SigBlk:", "SigIgn:", "SigCgt:")}
    assert set_bits == {"SigBlk:": 0, "SigIgn:": 0, "SigCgt:": 0}


async def test_core_files_and_huge_files_are_limited(sandbox: Sandbox) -> None:
    code = "import resource; print(resource.getrlimit(resource.RLIMIT_CORE), resource.getrlimit(resource.RLIMIT_FSIZE))"
    process = await finished(sandbox, code)
    assert process.text("stdout") == f"(0, 0) ({2 << 30}, {2 << 30})\n"


async def test_a_program_is_its_own_session(sandbox: Sandbox) -> None:
    process = await finished(sandbox, "import os; print(os.getsid(0) == os.getpid())")
    assert process.text("stdout") == "True\n"


# --- what it cannot reach


async def test_there_is_no_network_beyond_loopback(sandbox: Sandbox) -> None:
    assert (sandbox.isolation, sandbox.weaker) == ("network namespace", "")
    code = """
import errno, socket
try:
    socket.create_connection(("192.0.2.1", 80))
except OSError as error:
    print(errno.errorcode[error.errno])
print([name for _, name in socket.if_nameindex()])
"""
    process = await finished(sandbox, code)
    assert process.text("stdout") == "ENETUNREACH\n['lo']\n"


async def test_the_listening_socket_is_inside(sandbox: Sandbox) -> None:
    assert sandbox.listening is not None
    loop = asyncio.get_running_loop()
    code = "import socket, sys; s = socket.create_connection(('127.0.0.1', int(sys.argv[1]))); s.sendall(b'hello')"
    process = await started(sandbox, code, str(sandbox.port))
    connection, _ = await loop.sock_accept(sandbox.listening)
    with connection:
        assert await loop.sock_recv(connection, 100) == b"hello"
    await process.exited
    with pytest.raises(ConnectionRefusedError):  # outside, nobody listens there
        socket.create_connection(("127.0.0.1", sandbox.port)).close()


# --- how it ends

ENDS: dict[str, tuple[str, tuple[int | None, str | None]]] = {
    "zero": ("", (0, None)),
    "three": ("raise SystemExit(3)", (3, None)),
    "signal": ("import os; os.kill(os.getpid(), 11)", (None, "SIGSEGV")),
    "real-time signal": ("import os; os.kill(os.getpid(), 36)", (None, "SIGRTMIN+2")),
}


@pytest.mark.parametrize("name", ENDS)
async def test_how_a_program_ended_is_told(name: str, sandbox: Sandbox) -> None:
    code, end = ENDS[name]
    assert (await finished(sandbox, code)).exited.result() == end


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT, signal.SIGKILL])
async def test_a_signal_ends_a_program_that_does_nothing_about_it(number: signal.Signals, sandbox: Sandbox) -> None:
    process = await sandbox.start(["/bin/cat", "/dev/ptmx"], {}, sandbox.workspace)  # blocks in read
    sandbox.signal(process, number)
    assert await process.exited == (None, number.name)
    sandbox.signal(process, number)  # it is gone, and nothing else gets the signal
    assert await sandbox.end() == []


def open_descriptors() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


UNABLE: dict[str, tuple[list[str], str, str]] = {
    "no such program": (["/none"], "/", "/none cannot be started: [Errno 2] No such file or directory"),
    "not executable": (["/etc/passwd"], "/", "/etc/passwd cannot be started: [Errno 13] Permission denied"),
    "no such folder": (
        ["/bin/true"],
        "/none",
        "/bin/true cannot be started: [Errno 2] No such file or directory: '/none'",
    ),
    "a zero byte": (["/bin/true", "a\0b"], "/", "/bin/true cannot be started: embedded null byte"),
    "an argument too long": (
        ["/bin/true", "a" * 140_000],
        "/",
        "/bin/true cannot be started: [Errno 7] Argument list too long",
    ),
    "a message too long": (
        ["/bin/true", "a" * 2_000_000],
        "/",
        "/bin/true cannot be started: its arguments and environment are too long",
    ),
}


@pytest.mark.parametrize("name", UNABLE)
async def test_a_program_that_cannot_start_says_why(name: str, sandbox: Sandbox) -> None:
    argv, folder, words = UNABLE[name]
    before = open_descriptors()
    with pytest.raises(SandboxError) as caught:
        await sandbox.start(argv, {}, Path(folder))
    assert str(caught.value).startswith(words)
    assert open_descriptors() == before
    assert (await finished(sandbox, "print(1)")).text("stdout") == "1\n", "the sandbox goes on"


# --- what it leaves behind

LEAVE = """
import os, sys
def child():
    print(os.getpid(), flush=True)
    os.read(int(sys.argv[1]), 1)   # nobody ever writes
read, write = os.pipe()
sys.argv.append(str(read))
"""
ESCAPES = {
    "child": "if os.fork() == 0: child()",
    "setsid": "if os.fork() == 0:\n    os.setsid()\n    child()",
    "double fork": "if os.fork() == 0:\n    os.setsid()\n    if os.fork() == 0:\n        child()\n    os._exit(0)",
    "closed streams": (
        "if os.fork() == 0:\n    print(os.getpid(), flush=True)\n    os.setsid()\n    os.closerange(0, 3)\n"
        "    os.read(read, 1)"
    ),
}


@pytest.mark.parametrize("name", ESCAPES)
async def test_everything_that_is_left_is_named_and_ended(name: str, sandbox: Sandbox) -> None:
    code = LEAVE.replace("sys.argv[1]", "sys.argv[-1]") + ESCAPES[name] + "\n"
    process = await started(sandbox, code, "left")
    pid = int(await first_line(process))
    descriptor = os.pidfd_open(pid)
    assert await process.exited == (0, None)
    [left] = await sandbox.end(grace_seconds=0.0)
    assert left.startswith(sys.executable)
    assert left.endswith("left")
    assert gone(descriptor)


async def test_a_child_that_goes_with_its_parent_is_not_left(sandbox: Sandbox) -> None:
    code = """
import os
read, write = os.pipe()
if os.fork() == 0:
    os.close(write)
    os.setsid()
    os.read(read, 1)   # returns when the parent is gone
"""
    process = await started(sandbox, code)
    await process.exited
    assert await sandbox.end(grace_seconds=WAIT_SECONDS) == []


async def test_many_long_command_lines_are_told_in_short(sandbox: Sandbox) -> None:
    code = (
        "import os\nfor _ in range(60):\n    if os.fork() == 0:\n        os.read(os.pipe()[0], 1)\nprint(1, flush=True)"
    )
    process = await started(sandbox, code, "x" * 100_000)
    await process.exited
    left = await sandbox.end(grace_seconds=0.0)
    assert len(left) == 60
    assert max(len(line) for line in left) < 500


async def test_the_end_of_the_block_ends_all(tmp_path: Path) -> None:
    async with open_sandbox() as sandbox:
        process = await started(sandbox, LEAVE.replace("sys.argv[1]", "sys.argv[-1]") + ESCAPES["setsid"] + "\nchild()")
        descriptor = os.pidfd_open(process.pid)
        second = os.pidfd_open(int(await first_line(process)))
        root = sandbox.root
        (sandbox.home / "a" / "b").mkdir(parents=True)
        (sandbox.home / "a").chmod(0o500)
    assert gone(descriptor)
    assert gone(second)
    assert not root.exists()


async def test_an_error_inside_the_block_ends_all_too() -> None:
    seen: list[Sandbox] = []
    descriptors: list[int] = []

    async def broken() -> None:
        async with open_sandbox() as sandbox:
            seen.append(sandbox)
            descriptors.append(os.pidfd_open((await started(sandbox, "import signal; signal.pause()")).pid))
            raise KeyError

    with pytest.raises(KeyError):
        await broken()
    assert gone(descriptors[0])
    assert not seen[0].root.exists()


async def test_two_sandboxes_know_nothing_of_each_other(sandbox: Sandbox) -> None:
    async with open_sandbox() as other:
        ours = await started(sandbox, "import signal; print(1, flush=True); signal.pause()")
        theirs = await started(other, "import signal; print(1, flush=True); signal.pause()")
        await first_line(ours)
        await first_line(theirs)
        assert await other.end(grace_seconds=0.0)
        assert theirs.exited.done()
        assert not ours.exited.done()
        assert psutil.pid_exists(ours.pid)


HARNESS = """
import asyncio, signal, sys
from harness.sandbox import open_sandbox
async def main():
    async with open_sandbox() as sandbox:
        process = await sandbox.start([sys.executable, "-I", "-S", "-c", sys.argv[1]], {}, sandbox.workspace)
        while not process.lines:
            await asyncio.sleep(0)
        print(sandbox.root, process.pid, process.lines[0].text, flush=True)
        signal.pause()
asyncio.run(main())
"""


def test_a_killed_harness_takes_its_tree_with_it() -> None:
    program = LEAVE.replace("sys.argv[1]", "sys.argv[-1]") + ESCAPES["double fork"] + "\nos.read(read, 1)\n"
    with subprocess.Popen(
        [sys.executable, "-c", HARNESS, program], stdout=subprocess.PIPE, text=True, cwd=Path(__file__).parents[2]
    ) as driver:
        assert driver.stdout is not None
        root, *pids = driver.stdout.readline().split()
        spawners = [os.pidfd_open(child.pid) for child in psutil.Process(driver.pid).children()]
        descriptors = [os.pidfd_open(int(pid)) for pid in pids]
        driver.kill()
    assert len(spawners) == 1
    assert len(descriptors) == 2
    assert [gone(descriptor) for descriptor in (*descriptors, *spawners)] == [True, True, True]
    assert not Path(root).exists()


async def test_a_killed_spawner_leaves_no_stray_behind() -> None:
    """A daemon that the spawner had adopted goes to init when the spawner dies; its home still tells whose it is."""
    async with open_sandbox() as sandbox:
        code = LEAVE.replace("sys.argv[1]", "sys.argv[-1]") + ESCAPES["double fork"] + "\nos.read(read, 1)\n"
        process = await started(sandbox, code, "left")
        pids = [int(word) for word in (await first_line(process)).split()]
        descriptors = [os.pidfd_open(pid) for pid in pids]
        [spawner] = psutil.Process().children()
        spawner.kill()
    assert [gone(descriptor) for descriptor in descriptors] == [True] * len(descriptors)


async def test_a_killed_spawner_ends_the_program_and_is_told(sandbox: Sandbox) -> None:
    process = await started(sandbox, "import signal; print(1, flush=True); signal.pause()")
    await first_line(process)
    descriptor = os.pidfd_open(process.pid)
    [spawner] = psutil.Process().children()
    spawner.kill()
    with pytest.raises(SandboxError, match="the process that guards the sandbox ended by itself"):
        await process.exited
    with pytest.raises(SandboxError, match="the process that guards the sandbox"):
        await sandbox.end()
    assert gone(descriptor)


async def test_a_key_on_the_terminal_does_not_reach_the_spawner(sandbox: Sandbox) -> None:
    [spawner] = psutil.Process().children()
    assert os.getsid(spawner.pid) == spawner.pid


# --- output


async def test_lines_of_both_outputs_are_kept_apart_and_in_order(sandbox: Sandbox) -> None:
    code = "import sys\nfor n in range(3):\n    print('o', n, flush=True); print('e', n, file=sys.stderr, flush=True)"
    process = await finished(sandbox, code)
    assert process.text("stdout") == "o 0\no 1\no 2\n"
    assert process.text("stderr") == "e 0\ne 1\ne 2\n"
    times = [line.at_seconds for line in process.lines if line.stream == "stdout"]
    assert times == sorted(times)
    assert all(at >= process.started_at_seconds - WAIT_SECONDS for at in times)


OUTPUTS: dict[str, tuple[str, list[str]]] = {
    "nothing": ("", []),
    "no newline at the end": ("w(b'a\\nb')", ["a\n", "b"]),
    "an empty line": ("w(b'\\n\\n')", ["\n", "\n"]),
    "only line feeds end a line": ("w('a\\r\\u2028\\x85b\\n'.encode())", ["a\r\u2028\x85b\n"]),
    "no UTF-8": ("w(b'\\xff\\xfe\\n\\xc3\\xa4\\n')", ["\ufffd\ufffd\n", "ä\n"]),
    "a character in two writes": ("w(b'\\xc3'); w(b'\\xa4\\n')", ["ä\n"]),
    "a huge line": ("w(b'x' * 3_000_000 + b'\\n'); w(b'y\\n')", ["x" * 3_000_000 + "\n", "y\n"]),
}


@pytest.mark.parametrize("name", OUTPUTS)
async def test_output(name: str, sandbox: Sandbox) -> None:
    code, lines = OUTPUTS[name]
    write = "import sys\nw = lambda data: (sys.stdout.buffer.write(data), sys.stdout.buffer.flush())\n"
    process = await finished(sandbox, write + code)
    assert [line.text for line in process.lines] == lines
    assert process.dropped_bytes == {}


async def test_ten_megabytes_arrive_whole(sandbox: Sandbox) -> None:
    process = await finished(
        sandbox, "import sys\nfor n in range(10):\n    sys.stdout.write(('x' * 99 + '\\n') * 10_000)"
    )
    assert process.text("stdout") == ("x" * 99 + "\n") * 100_000
    assert len(process.lines) == 100_000


async def test_output_beyond_the_bound_is_dropped_and_counted(
    sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(harness.sandbox, "OUTPUT_BYTES_MAX", 1_000_000)
    monkeypatch.setattr(harness.sandbox, "TAIL_BYTES_MAX", 1_000)
    process = await finished(sandbox, "import sys\nsys.stdout.write('x' * 1_500_000)\nsys.stderr.write('whole')")
    assert process.text("stdout") == "x" * 1_000_000
    assert process.text("stderr") == "whole"
    assert process.dropped_bytes == {"stdout": 500_000}


FLOODS: dict[str, tuple[str, int]] = {
    "many lines": ("w('y\\n' * 500_000)", 130_000),
    "long lines": ("[w('x' * 1_000_000 + '\\n') for _ in range(40)]", 40),
    "one line": ("w('x' * 40_000_000 + '\\n')", 3),
    "a long line after a full beginning": ("w('y\\n' * 200_000); w('x' * 9_000_000 + '\\n')", 130_000),
}


@pytest.mark.parametrize("name", FLOODS)
async def test_a_flood_keeps_its_beginning_and_its_end_and_is_bounded(name: str, sandbox: Sandbox) -> None:
    flood, lines_max = FLOODS[name]
    code = f"import sys\nw = sys.stdout.write\nw('first\\n')\n{flood}\nw('the last word\\n')"
    process = await finished(sandbox, code)
    text = process.text("stdout")
    assert text.startswith("first\n")
    assert text.endswith("the last word\n")
    assert len(process.lines) <= lines_max
    assert len(text) <= harness.sandbox.OUTPUT_BYTES_MAX + 2 * harness.sandbox.TAIL_BYTES_MAX
    assert process.dropped_bytes["stdout"] > 0


def test_a_spawner_whose_harness_is_gone_before_it_is_ready_ends_without_a_word() -> None:
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    ours.close()
    with theirs:
        command = [sys.executable, "-I", "-S", str(SPAWNER), str(theirs.fileno())]
        done = subprocess.run(command, pass_fds=[theirs.fileno()], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


# --- a machine that gives less

SPAWNER_ON_A_POORER_MACHINE = """
import ctypes, errno, importlib.util, sys
spec = importlib.util.spec_from_file_location("spawner", {spawner!r})
spawner = importlib.util.module_from_spec(spec)
spec.loader.exec_module(spawner)
real = ctypes.CDLL(None, use_errno=True)
class Library:
    prctl = real.prctl
    def unshare(self, flags):
        {unshare}
spawner.ctypes.CDLL = lambda *a, **k: Library()
{more}
spawner.main()
"""
DENY = "ctypes.set_errno(errno.EPERM); return -1"
POORER: dict[str, tuple[str, str, str]] = {
    "no namespace at all": (
        DENY,
        "",
        "this system allows no network namespace (Operation not permitted): the runtime can reach any network",
    ),
    "a namespace without rights in it": (
        "return real.unshare(flags)",
        "def ioctl(*a): raise PermissionError(1, 'Operation not permitted')\nspawner.fcntl.ioctl = ioctl",
        "this system allows no network namespace (Operation not permitted): the runtime can reach any network",
    ),
}


@pytest.mark.parametrize("name", POORER)
async def test_without_a_namespace_it_works_and_says_what_is_weaker(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    unshare, more, words = POORER[name]
    path = tmp_path / "spawner.py"
    path.write_text(SPAWNER_ON_A_POORER_MACHINE.format(spawner=str(SPAWNER), unshare=unshare, more=more))
    monkeypatch.setattr(harness.sandbox, "SPAWNER", path)
    async with open_sandbox() as sandbox:
        assert (sandbox.isolation, sandbox.weaker) == ("none", words)
        process = await finished(sandbox, "import socket; print(len(socket.if_nameindex()) > 0)")
        assert process.text("stdout") == "True\n"
        with socket.create_connection(("127.0.0.1", sandbox.port)):  # reachable from everywhere on this machine
            pass


async def test_a_spawner_that_does_not_start_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "spawner.py"
    path.write_text("raise SystemExit(1)")
    monkeypatch.setattr(harness.sandbox, "SPAWNER", path)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with pytest.raises(SandboxError, match="the process that guards the sandbox ended by itself"):
        async with open_sandbox():
            pass
    assert list(tmp_path.iterdir()) == [path]


async def test_a_disk_that_takes_no_folder_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "none"))
    with pytest.raises(SandboxError, match=r"no temporary folder can be made: .*none"):
        async with open_sandbox():
            pass


async def test_a_disk_that_fills_up_is_told_and_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    mkdir = Path.mkdir

    def full(path: Path, *arguments: object, **words: object) -> None:
        if path.name == "control":
            raise OSError(28, "No space left on device", str(path))
        mkdir(path, *arguments, **words)  # type: ignore[arg-type]

    monkeypatch.setattr(Path, "mkdir", full)
    with pytest.raises(SandboxError, match=r"the sandbox's folders cannot be made: .*No space left on device"):
        async with open_sandbox():
            pass
    assert list(tmp_path.iterdir()) == []
    assert psutil.Process().children() == []
