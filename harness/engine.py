"""Runs scenarios on runtimes and makes evidence of what was seen: drive, judge, normalise.

The engine decides nothing about behaviour itself: checks do. It turns what went wrong in the harness into the outcome
``harness_error``, and what a runtime declared that it cannot do into ``unsupported``, so that neither looks green.
"""

from __future__ import annotations

import asyncio
import platform
import sys
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec

from harness.checks.check import Check, results
from harness.checks.expectation import UNIVERSAL, checks_of
from harness.driver import DEFAULT_GRACES, Graces, Recording, drive
from harness.model.evidence import FORMAT_VERSION, Evidence, FileChange, Input, Target, without_times
from harness.model.history import FileState, History
from harness.model.outcome import CheckResult, Outcome, Role, merged
from harness.normalise import normalised, sandbox_literals
from harness.runtimes.adapter import Adapter, Installation
from harness.scenario_file import LoadedScenario


@dataclass
class Played:
    """One scenario played once, before it is made into evidence.

    Attributes:
        loaded: The scenario.
        recording: What was seen; empty when nothing ran.
        refusal: Why nothing ran, as a ready result; ``None`` when it ran.
        checks: Checks that the probe adds to the scenario's own.
        captured_at: RFC 3339 in UTC.
    """

    loaded: LoadedScenario
    recording: Recording
    refusal: CheckResult | None
    captured_at: str
    checks: list[Check] = field(default_factory=list)

    @property
    def history(self) -> History:
        """What happened."""
        return self.recording.history


class Cancellation:
    """Lets one thread end the drives of all others, each of which then ends what it started."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._running: dict[asyncio.Task[Recording], asyncio.AbstractEventLoop] = {}
        self.requested = False

    def cancel_all(self) -> None:
        """Cancel every drive, now and later; asking twice does not disturb the first one's taking down."""
        with self._lock:
            if self.requested:
                return
            self.requested = True
            for task, loop in self._running.items():
                loop.call_soon_threadsafe(task.cancel)

    async def guard(
        self, loaded: LoadedScenario, adapter: Adapter, installation: Installation, graces: Graces
    ) -> Recording:
        """Drive a scenario as a task that :meth:`cancel_all` can reach.

        Raises:
            asyncio.CancelledError: Cancellation was requested.
        """
        task = asyncio.create_task(drive(loaded, adapter, installation, graces))
        with self._lock:
            if self.requested:
                task.cancel()
            self._running[task] = asyncio.get_running_loop()
        try:
            return await task
        finally:
            with self._lock:
                del self._running[task]


def play(
    loaded: LoadedScenario,
    adapter: Adapter,
    installation: Installation,
    cancellation: Cancellation,
    graces: Graces = DEFAULT_GRACES,
) -> Played:
    """Play a scenario once on a runtime, from any thread; whatever fails in the harness becomes a refusal.

    Raises:
        asyncio.CancelledError: Cancellation was requested.
    """
    captured_at = utc_now()
    refusal = unsupported(loaded, adapter)
    recording = Recording()
    if refusal is None:
        try:
            recording = asyncio.run(cancellation.guard(loaded, adapter, installation, graces))
        except Exception as error:  # noqa: BLE001 - whatever it is, it must look neither green nor like the runtime
            refusal = harness_error(error)
    return Played(loaded, recording, refusal, captured_at)


def utc_now() -> str:
    """Return the time of day in UTC as RFC 3339 has it, whole seconds."""
    return datetime.fromtimestamp(time.time(), UTC).isoformat(timespec="seconds").replace("+00:00", "Z")


def unsupported(loaded: LoadedScenario, adapter: Adapter) -> CheckResult | None:
    """Return the refusal of a scenario that needs what the runtime declared absent, or nothing."""
    needed = loaded.scenario.needs()
    missing = sorted(needed - adapter.capabilities) + sorted(set(loaded.scenario.settings.given()) - adapter.settings)
    if not missing:
        return None
    return CheckResult(
        "runtime.supports-scenario",
        Outcome.UNSUPPORTED,
        sorted(needed),
        {"declared absent": missing},
        Role.PRECONDITION,
        f"{adapter.name} declares that it has no {', '.join(missing)}",
    )


def harness_error(error: Exception) -> CheckResult:
    """Return the result for a mistake of the harness or of this machine."""
    return CheckResult(
        "harness.ran", Outcome.HARNESS_ERROR, "the scenario is driven", None, Role.PRECONDITION,
        f"{type(error).__name__}: {error}",
    )  # fmt: skip


def evidence_of(played: Played, installation: Installation, reproduce: str, run: str) -> Evidence:
    """Judge what was played and return it as evidence, with placeholders for what varies.

    Args:
        played: What was seen.
        installation: The runtime.
        reproduce: The one command that does it again.
        run: The run's id in the store.
    """
    history = played.history
    if played.refusal is not None:
        judged: Sequence[CheckResult] = (played.refusal,)
    else:
        judged = results((*UNIVERSAL, *checks_of(played.loaded.scenario.expect), *played.checks), history)
    timeless, times = without_times(history)
    recording = played.recording
    evidence = Evidence(
        format=FORMAT_VERSION,
        run=run,
        target=Target(installation.runtime, installation.version, installation.sha256),
        captured_at=played.captured_at,
        environment={
            "isolation": recording.isolation,
            "weaker": recording.weaker,
            "system": platform.system(),
            "machine": platform.machine(),
            "variables": recording.environment,
        },
        commands=recording.commands,
        input=Input(played.loaded.scenario.id, played.loaded.digest, played.loaded.text, seed=0),
        history=timeless,
        timings_seconds=[round(at, 6) for at in times],
        literal_output=recording.literal_output,
        observed=observed(history),
        before_after=changes(history),
        exit_status=[msgspec.to_builtins(end) for end in history.ends],
        checks=list(judged),
        outcome=merged(judged),
        reproduce=reproduce,
    )
    return placeholders(evidence, recording, installation)


def observed(history: History) -> dict[str, Any]:
    """Return the figures that people compare."""
    end, ending = history.last_end, history.last_ending
    effects: dict[str, int] = {}
    for event in history.of("tool.committed"):
        effects[event.data["tool"]] = effects.get(event.data["tool"], 0) + 1
    return {
        "requests": len(history.requests(None)),
        "models": [request.model for request in history.requests()],
        "statuses": [request.status for request in history.requests()],
        "turns": ending.turns,
        "terminal": ending.terminal,
        "exit": None if end is None else end.exit_code if end.signal is None else end.signal,
        "effects": effects,
        "hooks": len(history.of("hook.asked")),
    }


def changes(history: History) -> list[FileChange]:
    """Return the workspace files that are not the same before and after."""
    paths = sorted({*history.files_before, *history.files_after})
    found = []
    for path in paths:
        before, after = state(history.files_before.get(path)), state(history.files_after.get(path))
        if before != after:
            found.append(FileChange(path, before, after))
    return found


def state(file: FileState | None) -> dict[str, Any] | None:
    """Return a file's mode, size and digest."""
    return None if file is None else {"mode": file.mode, "size_bytes": file.size_bytes, "sha256": file.sha256}


def placeholders(evidence: Evidence, recording: Recording, installation: Installation) -> Evidence:
    """Return evidence with this machine's paths, ports, ids and times replaced; its own varying fields stay."""
    literals = {
        str(Path(sys.executable)): "<python>",
        str(Path(__file__).parent.parent): "<crashcart>",
        installation.program[0]: f"<{installation.runtime}>",
        **{value: f"<{name}>" for name, value in installation.environment.items() if Path(value).is_absolute()},
    }
    if recording.sandbox_root:
        literals |= sandbox_literals(recording.sandbox_root, recording.port)
    text = normalised(msgspec.json.encode(evidence).decode(), literals)
    replaced = msgspec.json.decode(text, type=Evidence)
    return msgspec.structs.replace(
        replaced,
        run=evidence.run,
        captured_at=evidence.captured_at,
        timings_seconds=evidence.timings_seconds,
        reproduce=evidence.reproduce,
        input=evidence.input,
        target=evidence.target,
    )
