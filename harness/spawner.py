"""The process that stands between the harness and a runtime under test, inside the runtime's own network.

It is started as a file with ``python -I -S`` and speaks one JSON message a datagram over an inherited socket. It enters
a network namespace that has loopback only, opens the provider's listening socket there and hands it to the harness,
starts the runtime's processes, and adopts everything they leave behind, so that ending the run ends all of it: a child
that called setsid or daemonised too. When the harness is gone the socket closes, and the spawner ends the tree and
itself. It uses the standard library only, never a thread, and never decides anything about a run.

Messages from the harness: ``spawn`` (argv, env, cwd; three descriptors attached), ``signal`` (pid, number), ``end``
(grace_seconds). Messages to the harness: ``ready`` (isolation, weaker, port; the listening descriptor attached),
``spawned``, ``refused``, ``exited`` (pid, code, signal), ``ended`` (what was still running after the grace).
"""

from __future__ import annotations

import array
import ctypes
import fcntl
import json
import os
import resource
import select
import shutil
import signal
import socket
import struct
import sys
import time
from collections.abc import Iterator
from typing import Any

CLONE_NEWUSER = 0x10000000
CLONE_NEWNET = 0x40000000
PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36
SIOCSIFFLAGS = 0x8914
IFF_UP_AND_RUNNING = 0x41
MESSAGE_BYTES_MAX = 1 << 20
FILE_BYTES_MAX = 2 << 30
COMMAND_LINE_CHARACTERS_MAX = 200
COMMAND_LINES_MAX = 200


def isolated() -> tuple[str, str]:
    """Leave the machine's network for one with loopback only, where the system allows it.

    There is no way back from a namespace that turns out to be useless, as where a security module grants the namespace
    and no rights in it. So a child tries first.

    Returns:
        The isolation reached (``network namespace`` or ``none``) and why it is weaker than wanted, if it is.
    """
    read, write = os.pipe2(os.O_CLOEXEC)
    pid = os.fork()
    if pid == 0:
        try:
            enter_network_namespace()
        except Exception as error:  # noqa: BLE001 - whatever it is, the parent is told and stays where it is
            os.write(write, str(getattr(error, "strerror", None) or error).encode())
        finally:
            os._exit(0)
    os.close(write)
    reason = os.read(read, 4096).decode()
    os.close(read)
    os.waitpid(pid, 0)
    if reason:
        return "none", f"this system allows no network namespace ({reason}): the runtime can reach any network"
    enter_network_namespace()
    return "network namespace", ""


def enter_network_namespace() -> None:
    """Leave the machine's network for one with loopback only.

    Raises:
        OSError: The system does not allow it.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    uid, gid = os.getuid(), os.getgid()
    if uid != 0 or libc.unshare(CLONE_NEWNET) != 0:
        if libc.unshare(CLONE_NEWNET | CLONE_NEWUSER) != 0:
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
        write_file("/proc/self/setgroups", "deny")
        write_file("/proc/self/uid_map", f"{uid} {uid} 1")
        write_file("/proc/self/gid_map", f"{gid} {gid} 1")
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        fcntl.ioctl(probe, SIOCSIFFLAGS, struct.pack("16sh14x", b"lo", IFF_UP_AND_RUNNING))


def write_file(path: str, text: str) -> None:
    """Write a short text to a file of the kernel's own."""
    descriptor = os.open(path, os.O_WRONLY)
    try:
        os.write(descriptor, text.encode())
    finally:
        os.close(descriptor)


def spawn(argv: list[str], env: dict[str, str], cwd: str, descriptors: list[int]) -> tuple[int, str]:
    """Start one process in a session of its own; return its pid and an empty text, or 0 and why it did not start."""
    report_read, report_write = os.pipe2(os.O_CLOEXEC)
    try:
        pid = os.fork()
    except OSError as error:
        os.close(report_read)
        os.close(report_write)
        return 0, str(error)
    if pid == 0:
        try:
            become(argv, env, cwd, descriptors)
        except Exception as error:  # noqa: BLE001 - whatever it is, it must not look like the program's own exit
            os.write(report_write, str(error).encode())
        finally:
            os._exit(127)
    os.close(report_write)
    problem = os.read(report_read, 4096).decode()
    os.close(report_read)
    if problem:
        os.waitpid(pid, 0)
        return 0, problem
    return pid, ""


def become(argv: list[str], env: dict[str, str], cwd: str, descriptors: list[int]) -> None:
    """Turn this child into a program that inherits nothing of the spawner: no descriptor, no signal's treatment.

    Raises:
        OSError: The folder or the program is not there, or cannot be executed.
        ValueError: An argument holds a zero byte.
    """
    os.setsid()
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0)  # nobody would watch it any more
    signal.set_wakeup_fd(-1)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    for number in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}:
        signal.signal(number, signal.SIG_DFL)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    _, most = resource.getrlimit(resource.RLIMIT_FSIZE)
    bound = FILE_BYTES_MAX if most == resource.RLIM_INFINITY else min(most, FILE_BYTES_MAX)
    resource.setrlimit(resource.RLIMIT_FSIZE, (bound, bound))
    os.chdir(cwd)
    for target, descriptor in enumerate(descriptors):
        os.dup2(descriptor, target, inheritable=True)
    os.execve(argv[0], argv, env)  # noqa: S606 - the argument vector is the adapter's


def descendants() -> dict[int, str]:
    """Return the living processes below this one, by pid, with their command lines."""
    parents: dict[int, list[int]] = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                with open(f"/proc/{name}/stat", encoding="utf-8", errors="replace") as file:
                    fields = file.read().rpartition(")")[2].split()
            except OSError:
                continue
            if fields[0] != "Z":
                parents.setdefault(int(fields[1]), []).append(int(name))
    found: dict[int, str] = {}
    waiting = [os.getpid()]
    while waiting:
        for pid in parents.get(waiting.pop(), ()):
            found[pid] = command_line(pid)
            waiting.append(pid)
    return found


def command_line(pid: int) -> str:
    """Return a process's arguments joined by spaces, the middle of long ones left out, or its number without them."""
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            words = file.read().replace(b"\0", b" ").decode(errors="replace").strip() or str(pid)
    except OSError:
        return str(pid)
    if len(words) <= COMMAND_LINE_CHARACTERS_MAX:
        return words
    half = COMMAND_LINE_CHARACTERS_MAX // 2
    return f"{words[:half]}…{words[-half:]}"


def end_all() -> None:
    """Send SIGKILL to everything below, again and again until nothing is left, and reap it."""
    while found := descendants():
        for pid in found:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue
        for _ in reaped(blocking=True):
            pass


def reaped(*, blocking: bool = False) -> Iterator[tuple[int, int]]:
    """Yield pid and wait status of each child that has ended; wait for one first when ``blocking``."""
    flags = 0 if blocking else os.WNOHANG
    while True:
        try:
            pid, status = os.waitpid(-1, flags)
        except ChildProcessError:
            return
        if pid == 0:
            return
        yield pid, status
        flags = os.WNOHANG


class Spawner:
    """The loop: one message at a time, in order, and child exits as they come."""

    def __init__(self, control: socket.socket) -> None:
        self.control = control
        self.spawned: set[int] = set()
        self.wake_read, wake_write = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(wake_write, warn_on_full_buffer=False)
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN)  # the harness alone decides; its end closes the socket

    def send(self, message: dict[str, Any], descriptors: tuple[int, ...] = ()) -> None:
        """Send one message with descriptors attached."""
        socket.send_fds(self.control, [json.dumps(message).encode()], list(descriptors))

    def run(self) -> None:
        """Serve until the harness closes the socket; then end the whole tree."""
        try:
            while True:
                readable, _, _ = select.select([self.control.fileno(), self.wake_read], [], [])
                if self.wake_read in readable:
                    self.report_exits()
                if self.control.fileno() in readable and not self.take_message():
                    return
        except (BrokenPipeError, ConnectionResetError):
            return
        finally:
            end_all()

    def report_exits(self) -> None:
        """Tell the harness of each program of its own that has ended."""
        os.read(self.wake_read, 4096)
        for pid, status in reaped():
            if pid not in self.spawned:
                continue  # adopted; its number may be given to the next program
            self.spawned.remove(pid)
            by_signal = os.WIFSIGNALED(status)
            self.send(
                {
                    "kind": "exited",
                    "pid": pid,
                    "code": None if by_signal else os.WEXITSTATUS(status),
                    "signal": signal_name(os.WTERMSIG(status)) if by_signal else None,
                }
            )

    def still_running(self, grace_seconds: float) -> dict[int, str]:
        """Return what is below this process once the grace has passed, or nothing as soon as nothing is.

        An orphan becomes a child of this process when its parent ends, so each exit wakes the wait.
        """
        deadline = time.monotonic() + grace_seconds
        while running := descendants():
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([self.wake_read], [], [], left)[0]:
                return descendants()
            self.report_exits()
        return running

    def take_message(self) -> bool:
        """Read and serve one message; return False when the harness is gone."""
        data, ancillary, _, _ = self.control.recvmsg(MESSAGE_BYTES_MAX, socket.CMSG_LEN(3 * 4))
        if not data:
            return False
        descriptors = array.array("i")
        for _, _, payload in ancillary:
            descriptors.frombytes(payload[: len(payload) - len(payload) % descriptors.itemsize])
        for descriptor in descriptors:
            os.set_inheritable(descriptor, False)
        message = json.loads(data)
        if message["kind"] == "spawn":
            pid, problem = spawn(message["argv"], message["env"], message["cwd"], list(descriptors))
            if pid:
                self.spawned.add(pid)
            self.send({"kind": "spawned", "pid": pid} if pid else {"kind": "refused", "reason": problem})
        elif message["kind"] == "signal":
            if message["pid"] in self.spawned:  # not reaped yet, so the number is still its own
                os.kill(message["pid"], message["number"])
        elif message["kind"] == "end":
            running = sorted(self.still_running(message["grace_seconds"]).values())
            end_all()
            self.spawned.clear()
            self.send({"kind": "ended", "running": running[:COMMAND_LINES_MAX]})
        for descriptor in descriptors:
            os.close(descriptor)
        return True


def signal_name(number: int) -> str:
    """Return a signal's name; the real-time signals between the first and the last are counted from the first."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"SIGRTMIN+{number - signal.SIGRTMIN}"


def main() -> None:
    """Enter the namespace, open the listening socket, announce both, and serve."""
    control = socket.socket(fileno=int(sys.argv[1]))
    control.set_inheritable(False)
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    isolation, weaker = isolated()
    listening = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    listening.bind(("127.0.0.1", 0))
    listening.listen(128)
    spawner = Spawner(control)
    ready = {"kind": "ready", "isolation": isolation, "weaker": weaker, "port": listening.getsockname()[1]}
    try:
        spawner.send(ready, (listening.fileno(),))
    except (BrokenPipeError, ConnectionResetError):
        return  # the harness was interrupted before anything ran here
    listening.close()
    spawner.run()
    if len(sys.argv) > 2:
        # The harness removes the run's folder too, unless it was killed, and then nobody else would.
        shutil.rmtree(sys.argv[2], ignore_errors=True)


if __name__ == "__main__":
    main()
