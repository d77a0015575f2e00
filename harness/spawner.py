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
import signal
import socket
import struct
import sys
import time
from collections.abc import Iterator
from typing import Any

CLONE_NEWUSER = 0x10000000
CLONE_NEWNET = 0x40000000
PR_SET_CHILD_SUBREAPER = 36
SIOCSIFFLAGS = 0x8914
IFF_UP_AND_RUNNING = 0x41
MESSAGE_BYTES_MAX = 1 << 20
FILE_BYTES_MAX = 2 << 30


def enter_network_namespace() -> tuple[str, str]:
    """Leave the machine's network for one with loopback only.

    Returns:
        The isolation reached (``network namespace`` or ``none``) and why it is weaker than wanted, if it is.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    uid, gid = os.getuid(), os.getgid()
    flags = CLONE_NEWNET if uid == 0 else CLONE_NEWNET | CLONE_NEWUSER
    if libc.unshare(flags) != 0:
        reason = os.strerror(ctypes.get_errno())
        if uid != 0 or libc.unshare(CLONE_NEWNET | CLONE_NEWUSER) != 0:
            return "none", f"this system allows no network namespace ({reason}): the runtime can reach any network"
        flags |= CLONE_NEWUSER
    if flags & CLONE_NEWUSER:
        write_file("/proc/self/setgroups", "deny")
        write_file("/proc/self/uid_map", f"{uid} {uid} 1")
        write_file("/proc/self/gid_map", f"{gid} {gid} 1")
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        fcntl.ioctl(probe, SIOCSIFFLAGS, struct.pack("16sh14x", b"lo", IFF_UP_AND_RUNNING))
    return "network namespace", ""


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
    pid = os.fork()
    if pid == 0:
        try:
            os.setsid()
            signal.set_wakeup_fd(-1)
            for number in (signal.SIGCHLD, signal.SIGPIPE, signal.SIGINT, signal.SIGTERM):
                signal.signal(number, signal.SIG_DFL)
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
            resource.setrlimit(resource.RLIMIT_FSIZE, (FILE_BYTES_MAX, FILE_BYTES_MAX))
            os.chdir(cwd)
            for target, descriptor in enumerate(descriptors):
                os.dup2(descriptor, target, inheritable=True)
            os.execve(argv[0], argv, env)  # noqa: S606 - the argument vector is the adapter's
        except OSError as error:
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
    """Return a process's arguments joined by spaces, or its number when they cannot be read."""
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            return file.read().replace(b"\0", b" ").decode(errors="replace").strip() or str(pid)
    except OSError:
        return str(pid)


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
        """Tell the harness of each child that has ended."""
        os.read(self.wake_read, 4096)
        for pid, status in reaped():
            by_signal = os.WIFSIGNALED(status)
            self.send(
                {
                    "kind": "exited",
                    "pid": pid,
                    "code": None if by_signal else os.WEXITSTATUS(status),
                    "signal": signal.Signals(os.WTERMSIG(status)).name if by_signal else None,
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
                break
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
        message = json.loads(data)
        if message["kind"] == "spawn":
            pid, problem = spawn(message["argv"], message["env"], message["cwd"], list(descriptors))
            self.send({"kind": "spawned", "pid": pid} if pid else {"kind": "refused", "reason": problem})
        elif message["kind"] == "signal":
            try:
                os.kill(message["pid"], message["number"])
            except ProcessLookupError:
                pass
        elif message["kind"] == "end":
            running = self.still_running(message["grace_seconds"])
            end_all()
            self.send({"kind": "ended", "running": sorted(running.values())})
        for descriptor in descriptors:
            os.close(descriptor)
        return True


def main() -> None:
    """Enter the namespace, open the listening socket, announce both, and serve."""
    control = socket.socket(fileno=int(sys.argv[1]))
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    isolation, weaker = enter_network_namespace()
    listening = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    listening.bind(("127.0.0.1", 0))
    listening.listen(128)
    spawner = Spawner(control)
    ready = {"kind": "ready", "isolation": isolation, "weaker": weaker, "port": listening.getsockname()[1]}
    spawner.send(ready, (listening.fileno(),))
    listening.close()
    spawner.run()


if __name__ == "__main__":
    main()
