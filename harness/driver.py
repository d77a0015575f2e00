"""Drives one scenario on one installed runtime, once: starts it, breaks it where the scenario says, and records.

The driver judges nothing. Whatever happens, it ends everything that it started, and what it returns is what was seen.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import shlex
import signal
import stat
import sys
import time
import uuid
from collections.abc import Iterable, Iterator, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from fake_provider.journal import Journal
from fake_provider.server import Provider
from harness.crash.point import CrashPoint, armed, provider_holds, tool_holds
from harness.model.event import Event, Source
from harness.model.history import Ending, FileState, History, ProcessEnd
from harness.model.scenario import EffectTool, Hook, HookEvent, Phase, Scenario
from harness.normalise import normalised, sandbox_literals
from harness.runtimes.adapter import Adapter, Installation, Launch, Start
from harness.sandbox import GRACE_SECONDS, Sandbox, SandboxProcess, open_sandbox
from harness.scenario_file import LoadedScenario, fault_label
from harness.tools.gate import Gate
from harness.tools.ledger import Ledger
from harness.witness import Timeline, effect_faults, hook_events, output_events, provider_events, tool_events


@dataclass(frozen=True)
class Graces:
    """How long the driver waits for things to end by themselves.

    Attributes:
        children_seconds: For the runtime's own children after it has ended; then they count as left running.
        signal_seconds: For the runtime after a signal that it can catch; then it is killed, and an event says so.
    """

    children_seconds: float = GRACE_SECONDS
    signal_seconds: float = 15.0


DEFAULT_GRACES = Graces()
FILE_TEXT_BYTES_MAX = 100_000
HOOK_PROGRAM = Path(__file__).parent / "tools" / "hook.py"


class WitnessError(Exception):
    """Two witnesses contradict each other, so something that is none of them has touched one; nothing can be judged."""


@dataclass
class Recording:
    """What one drive saw.

    Attributes:
        history: Everything, in order.
        commands: The argument vector of each phase.
        environment: The environment that the first phase got.
        literal_output: Standard output and error output of each phase.
        isolation: How the runtime was kept from the network.
        weaker: Why that is weaker than wanted, if it is.
        sandbox_root: The run's folder, for placeholders.
        port: The provider's port, for placeholders.
        journal: The provider's whole journal, as JSON lines.
    """

    history: History = field(default_factory=lambda: History((), (), ()))
    commands: list[list[str]] = field(default_factory=list)
    environment: dict[str, str] = field(default_factory=dict)
    literal_output: list[dict[str, str]] = field(default_factory=list)
    isolation: str = "none"
    weaker: str = ""
    sandbox_root: str = ""
    port: int = 0
    journal: bytes = b""


async def drive(
    loaded: LoadedScenario, adapter: Adapter, installation: Installation, graces: Graces = DEFAULT_GRACES
) -> Recording:
    """Run all phases of a scenario.

    Raises:
        SandboxError: The sandbox cannot be made, or the runtime's program cannot be executed.
        WitnessError: The effect ledger was tampered with.
    """
    async with open_sandbox() as sandbox:
        return await Drive(loaded, adapter, installation, sandbox, graces).run()


class Drive:
    """One run in one sandbox."""

    def __init__(
        self, loaded: LoadedScenario, adapter: Adapter, installation: Installation, sandbox: Sandbox, graces: Graces
    ) -> None:
        self.scenario: Scenario = loaded.scenario
        self.adapter = adapter
        self.installation = installation
        self.sandbox = sandbox
        self.graces = graces
        effect_tools = frozenset(tool.name for tool in self.scenario.tools)
        self.script = loaded.script.renamed_tools(
            lambda tool, arguments: adapter.tool_call(tool, arguments, effect_tools)
        )
        self.points = {point.phase: point for point in armed(self.scenario.phases)}
        self.started_seconds = time.monotonic()
        self.timeline = Timeline(self.started_seconds)
        self.journal = Journal(start_seconds=self.started_seconds)
        self.ledger = Ledger(sandbox.control_folder / "ledger.jsonl")
        self.gate = Gate(tool_holds(list(self.points.values())))
        self.hook_log = sandbox.control_folder / "hooks.jsonl"
        self.session = ""
        self.events: list[Event] = []
        self.ends: list[ProcessEnd] = []
        self.endings: list[Ending] = []
        self.left_running: list[str] = []
        self.exits: dict[int, float] = {}
        self.recording = Recording(
            isolation=sandbox.isolation, weaker=sandbox.weaker, sandbox_root=str(sandbox.root), port=sandbox.port
        )

    async def run(self) -> Recording:
        """Run every phase, then put together what all witnesses wrote down."""
        write_files({self.sandbox.workspace / path: text for path, text in self.scenario.workspace.items()})
        write_files(self.effect_configuration())
        before = file_states(self.sandbox.workspace)
        points = list(self.points.values())
        provider = Provider(self.script, journal=self.journal, holds=provider_holds(points))
        async with AsyncExitStack() as stack:
            if self.sandbox.listening is None:
                raise RuntimeError("a sandbox that is open has a listening socket")
            await stack.enter_async_context(provider.serving(self.sandbox.listening))
            await stack.enter_async_context(self.gate.open_at(self.sandbox.control_folder / "gate"))
            for number, phase in enumerate(self.scenario.phases, start=1):
                if not await self.play(number, phase):
                    break
        self.confront_witnesses()
        self.recording.history = self.whole_history(before)
        self.recording.journal = b"".join(line + b"\n" for line in self.journal.lines())
        return self.recording

    def confront_witnesses(self) -> None:
        """Raise WitnessError where the ledger does not bear out what its servers announced."""
        if contradictions := self.gate.contradictions(self.ledger.lines()):
            raise WitnessError(f"the ledger does not hold what was announced: {', '.join(contradictions)}")

    async def play(self, number: int, phase: Phase) -> bool:
        """Run one phase; return whether the next one may follow."""
        if not phase.resume:
            self.session = str(uuid.uuid4())  # a second new session is not the first one again
        launch = self.launch(phase)
        write_files(launch.files)
        self.recording.commands.append(list(launch.argv))
        self.recording.environment = self.recording.environment or launch.environment
        self.timeline.phase_begins(time.monotonic())
        process = await self.sandbox.start(launch.argv, launch.environment, self.sandbox.workspace)
        self.note("process.started", {"phase": number})
        point = self.points.get(number)
        end = await self.until_end(process, point)
        running = await self.sandbox.end(self.graces.children_seconds if end.ended else 0.0)
        if end.ended:
            self.left_running += running
        if point is not None:
            point.held.release()  # not before the tree is gone: what was held must never go on
        self.note("process.exited", {"code": end.exit_code, "signal": end.signal, "ended": end.ended})
        if end.ended and process.exited_at_seconds is not None:
            self.exits[number] = process.exited_at_seconds - self.started_seconds
        self.ends.append(end)
        output = process.text("stdout")
        ending = self.adapter.ending(output)
        self.session = ending.session or self.session
        self.endings.append(ending)
        self.recording.literal_output.append({"stdout": output, "stderr": process.text("stderr")})
        self.events += output_events(process, self.timeline)
        if process.dropped_bytes:
            self.note("output.dropped", {"bytes": process.dropped_bytes})
        return end.ended or end.crashed

    async def until_end(self, process: SandboxProcess, point: CrashPoint | None) -> ProcessEnd:
        """Wait for the process to end, for its crash point, or for the wall limit, whichever is first."""
        waiting: set[asyncio.Future[Any]] = {process.exited}
        reached = asyncio.ensure_future(point.held.reached.wait()) if point is not None else None
        if reached is not None:
            waiting.add(reached)
        try:
            await asyncio.wait(waiting, timeout=self.scenario.wall_seconds, return_when=asyncio.FIRST_COMPLETED)
            if process.exited.done():
                code, name = process.exited.result()
                return ProcessEnd(code, name, ended=True, crashed=False)
            if point is None or reached is None or not reached.done():
                self.note("process.overdue", {"wall_seconds": self.scenario.wall_seconds})
                return ProcessEnd(None, None, ended=False, crashed=False)
            return await self.crash(process, point)
        finally:
            if reached is not None:
                reached.cancel()

    async def crash(self, process: SandboxProcess, point: CrashPoint) -> ProcessEnd:
        """Send the crash's signal while the peer is still held, and wait for the process to be gone."""
        self.confront_witnesses()  # a crash at a position that was never reached would be a lie
        number = signal.Signals[point.crash.signal]
        sent_at_seconds = time.monotonic()
        self.sandbox.signal(process, number)
        try:
            async with asyncio.timeout(self.graces.signal_seconds):
                code, name = await asyncio.shield(process.exited)
        except TimeoutError:
            self.note("process.killed", {"reason": f"it outlived {number.name} by {self.graces.signal_seconds:g} s"})
            self.sandbox.signal(process, signal.SIGKILL)
            code, name = await process.exited
        # What no program can survive or answer did not end this one, so it had ended already.
        late = number is signal.SIGKILL and name != "SIGKILL"
        told: dict[str, Any] = {"fault": point.label}
        if late:
            told["reason"] = "the process had ended by itself when the signal was sent"
        kind = "fault.skipped" if late else "fault.fired"
        self.events.append(self.timeline.event(sent_at_seconds, Source.PROCESS, kind, told))
        return ProcessEnd(code, name, ended=late, crashed=not late)

    def launch(self, phase: Phase) -> Launch:
        """Translate a phase into the runtime's own words."""
        hooks = {hook.event for hook in self.scenario.hooks}
        return self.adapter.launch(
            self.installation,
            Start(
                text=phase.text,
                resume=phase.resume,
                session=phase.session or self.session,
                settings=self.scenario.settings,
                provider_url=f"http://127.0.0.1:{self.sandbox.port}",
                home=self.sandbox.home,
                workspace=self.sandbox.workspace,
                control_folder=self.sandbox.control_folder,
                environment=self.sandbox.base_environment(),
                effect_server=self.effect_server() if self.scenario.tools else None,
                hook_commands={event: self.hook_command(event) for event in HookEvent if event in hooks},
            ),
        )

    def effect_server(self) -> list[str]:
        """Return the command of the effect server, as the runtime is told to start it."""
        path = self.sandbox.control_folder / "effects.json"
        return [sys.executable, "-P", "-s", "-m", "harness.tools.effect_server", str(path)]

    def effect_configuration(self) -> dict[Path, str]:
        """Return the configuration files of the effect server and the hook program."""
        folder = self.sandbox.control_folder
        effects = {"ledger": str(self.ledger.path), "socket": str(folder / "gate"), "tools": tools(self.scenario.tools)}
        hooks = {"log": str(self.hook_log), "rules": self.hook_rules(self.scenario.hooks)}
        return {folder / "effects.json": json.dumps(effects), folder / "hook-rules.json": json.dumps(hooks)}

    def hook_rules(self, hooks: tuple[Hook, ...]) -> list[dict[str, Any]]:
        """Return the hook rules with each tool as the runtime calls it."""
        effect_tools = frozenset(tool.name for tool in self.scenario.tools)
        return [
            {
                "event": hook.event.value,
                "reason": hook.reason,
                "tool": self.adapter.tool_call(hook.tool, {}, effect_tools)[0] if hook.tool is not None else None,
                "times": hook.times,
            }
            for hook in hooks
        ]

    def hook_command(self, event: HookEvent) -> str:
        """Return the shell command of a hook."""
        rules = self.sandbox.control_folder / "hook-rules.json"
        return shlex.join([sys.executable, "-I", "-S", str(HOOK_PROGRAM), str(rules), event.value])

    def steady(self, text: str) -> str:
        """Return a text of this run as it would be in any other."""
        return normalised(text, sandbox_literals(str(self.sandbox.root), self.sandbox.port))

    def note(self, kind: str, data: dict[str, Any]) -> None:
        """Record something that the harness itself saw or did, now."""
        self.events.append(self.timeline.event(time.monotonic(), Source.PROCESS, kind, data))

    def whole_history(self, before: dict[str, FileState]) -> History:
        """Put together what all witnesses wrote down, in the order of time."""
        effects = tool_events(self.ledger, self.timeline)
        modes = {tool.name: [mode.value for mode in tool.modes] for tool in self.scenario.tools}
        events = [
            *self.events,
            *provider_events(self.journal.entries, self.timeline, fault_label, self.steady),
            *effects,
            *effect_faults(effects, self.timeline, modes),
            *hook_events(self.hook_log, self.timeline),
        ]
        effect_tools = frozenset(modes)
        return History(
            events=tuple(marked_after_exit(sorted(events, key=lambda event: event.at_seconds), self.exits)),
            ends=tuple(self.ends),
            endings=tuple(self.endings),
            files_before=before,
            files_after=file_states(self.sandbox.workspace),
            left_running=tuple(self.left_running),
            faults_declared=self.scenario.faults_declared,
            tool_names={tool: self.adapter.tool_call(tool, {}, effect_tools)[0] for tool in modes},
        )


def marked_after_exit(events: Iterable[Event], exits: Mapping[int, float]) -> Iterator[Event]:
    """Give each end of a process its true time, and mark the work that was done after it.

    An end keeps its place behind what the process printed, whose reading may lag behind by a moment, so that two runs
    of one behaviour have one order.

    Args:
        events: In the order of time.
        exits: Phase to the time at which its process ended by itself.
    """
    for event in events:
        exited_at = exits.get(event.phase)
        if exited_at is None:
            yield event
        elif event.kind == "process.exited":
            yield msgspec.structs.replace(event, at_seconds=exited_at)
        elif event.kind in WORK and event.at_seconds > exited_at and not event.data.get("side"):
            yield msgspec.structs.replace(event, data={**event.data, "after_exit": True})
        else:
            yield event


WORK = frozenset({"request.received", "tool.called", "tool.committed"})
"""What a runtime does; after its process has ended somebody else does it, and nobody is told how it went."""


def tools(effect_tools: tuple[EffectTool, ...]) -> list[dict[str, Any]]:
    """Return effect tools as plain data."""
    return [msgspec.to_builtins(tool) for tool in effect_tools]


def write_files(files: Mapping[Path, str]) -> None:
    """Write files, making their folders."""
    for path, text in files.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


def file_states(root: Path) -> dict[str, FileState]:
    """Return every regular file under a folder by relative path; short UTF-8 files with their text."""
    found = {}
    for path in sorted(root.rglob("*")):
        if path.is_symlink() or not path.is_file():
            continue
        data = path.read_bytes()
        # A name need not be UTF-8, and evidence is.
        name = str(path.relative_to(root)).encode(errors="surrogateescape").decode(errors="backslashreplace")
        found[name] = FileState(
            path=name,
            mode=oct(stat.S_IMODE(path.stat().st_mode)),
            size_bytes=len(data),
            sha256=hashlib.sha256(data).hexdigest(),
            text=utf8(data),
        )
    return found


def utf8(data: bytes) -> str | None:
    """Return short UTF-8 data as text, anything else as nothing."""
    if len(data) > FILE_TEXT_BYTES_MAX:
        return None
    try:
        return data.decode()
    except UnicodeDecodeError:
        return None
