"""Declares probes: a named claim over one or more scenarios, written once and run by the command line and by pytest.

A probe's function is a straight line of two verbs, ``play`` and ``check``. It never branches on what it sees, never
reads the clock and never starts anything itself.
"""

from __future__ import annotations

import importlib
import pkgutil
import shlex
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from harness.checks.check import Check
from harness.driver import Recording
from harness.engine import Cancellation, Played, evidence_of, harness_error, play, utc_now
from harness.expectations import deviations
from harness.model.clause import CLAUSES
from harness.model.outcome import worst
from harness.model.result import Deviation, ProbeResult
from harness.runtimes.adapter import Installation
from harness.runtimes.register import RuntimeChoice
from harness.scenario_file import LoadedScenario, load_scenario
from harness.store import Store

SCENARIOS = Path(__file__).resolve().parent.parent / "scenarios"


@dataclass(frozen=True)
class Probe:
    """One claim.

    Attributes:
        id: Dotted slug, never renumbered.
        claim: One sentence.
        clauses: The clauses that it serves.
        scenarios: The scenario files that it plays, relative to ``folder``.
        mutants: Its negative controls: mutants of the reference runtime that turn it red.
        function: The straight line.
        folder: Where its scenario files lie.
    """

    id: str
    claim: str
    clauses: tuple[str, ...]
    scenarios: tuple[str, ...]
    mutants: tuple[str, ...]
    function: Callable[[ProbeRun], None]
    folder: Path = SCENARIOS

    @property
    def suite_id(self) -> str | None:
        """Its id when it is one of the probe suite; a scenario file alone proves less than the probe of that name."""
        return self.id if self.folder == SCENARIOS else None

    @property
    def word(self) -> str:
        """What names it on the command line: its id, or the path of a scenario file of the user's own."""
        if self.folder == SCENARIOS:
            return self.id
        path = (self.folder / self.scenarios[0]).resolve()
        return str(path.relative_to(Path.cwd())) if path.is_relative_to(Path.cwd()) else str(path)

    def load(self) -> dict[str, LoadedScenario]:
        """Read all its scenarios.

        Raises:
            DocumentError: One of them has a mistake.
        """
        return {name: load_scenario(self.folder / name) for name in self.scenarios}


class ProbeRun:
    """One probe on one runtime: what its function speaks to."""

    def __init__(
        self,
        loaded: dict[str, LoadedScenario],
        choice: RuntimeChoice,
        installation: Installation,
        cancellation: Cancellation,
    ) -> None:
        self._loaded = loaded
        self._choice = choice
        self._installation = installation
        self._cancellation = cancellation
        self.played: list[Played] = []
        self._names: set[str] = set()

    def play(self, scenario: str) -> Played:
        """Play one of the declared scenarios; its ``expect`` and the universal checks judge it in any case."""
        played = play(self._loaded[scenario], self._choice.adapter, self._installation, self._cancellation)
        self.played.append(played)
        self._names.add(scenario)
        return played

    def demand_all_played(self) -> None:
        """Refuse a probe that declares a scenario and leaves it out, since its claim would look proved.

        Raises:
            ValueError: A declared scenario was not played.
        """
        unplayed = set(self._loaded) - self._names
        if self.played and unplayed:
            raise ValueError(f"the probe declares {', '.join(sorted(unplayed))} and never plays it")

    def refuse(self, error: Exception) -> None:
        """Let a mistake in the probe's own function be the outcome of what it was about to play or to check."""
        if not self.played:
            self.played.append(Played(next(iter(self._loaded.values())), Recording(), None, utc_now()))
        self.played[-1].refusal = harness_error(error)

    def check(self, played: Played, *checks: Check) -> None:
        """Add checks to those that judge what was played; all are asked, even when one fails."""
        played.checks += checks


PROBES: dict[str, Probe] = {}


def probe(
    *,
    id: str,  # noqa: A002 - the declaration reads best with the plain word
    claim: str,
    clauses: tuple[str, ...],
    scenarios: tuple[str, ...],
    mutants: tuple[str, ...],
) -> Callable[[Callable[[ProbeRun], None]], Probe]:
    """Declare a probe and register it under its id.

    Raises:
        ValueError: The id is taken, or a clause does not exist.
    """

    def declared(function: Callable[[ProbeRun], None]) -> Probe:
        unknown = [clause for clause in clauses if clause not in CLAUSES]
        if unknown or id in PROBES:
            raise ValueError(f"probe '{id}': unknown clauses {unknown}" if unknown else f"probe '{id}' is there twice")
        PROBES[id] = Probe(id, claim, clauses, scenarios, mutants, function)
        return PROBES[id]

    return declared


def all_probes() -> list[Probe]:
    """Import the probe suite and return its probes in the order of their ids."""
    package = importlib.import_module("probes")
    for module in pkgutil.iter_modules(package.__path__):
        importlib.import_module(f"probes.{module.name}")
    return [PROBES[name] for name in sorted(PROBES)]


@dataclass
class Session:
    """What the probes of one command share: the store, installed runtimes, and a way to end them all."""

    store: Store
    cache: Path
    cancellation: Cancellation = field(default_factory=Cancellation)
    _ready: dict[str, tuple[Installation, dict[str, Deviation]]] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def prepare(self, choice: RuntimeChoice) -> tuple[Installation, dict[str, Deviation]]:
        """Install a runtime and read its expectation file, once.

        Raises:
            RuntimeUnavailableError: It cannot be had.
            DocumentError: The expectation file has a mistake.
        """
        with self._lock:
            if str(choice) not in self._ready:
                installation = choice.adapter.install(choice.version, self.cache)
                self._ready[str(choice)] = (installation, deviations(choice.adapter.name, installation.version))
            return self._ready[str(choice)]

    def run(self, which: Probe, choice: RuntimeChoice) -> ProbeResult:
        """Run a probe on a runtime and store the evidence of each scenario it played.

        Raises:
            DocumentError: A scenario has a mistake; nothing was started.
            RuntimeUnavailableError: The runtime cannot be had.
            StoreError: The evidence could not be stored.
            asyncio.CancelledError: The command was interrupted.
        """
        loaded = which.load()
        installation, known = self.prepare(choice)
        run = ProbeRun(loaded, choice, installation, self.cancellation)
        started = time.monotonic()
        try:
            which.function(run)
            run.demand_all_played()
        except Exception as error:  # noqa: BLE001 - a mistake in a probe is an outcome of its own, and stored like any
            run.refuse(error)
        duration_seconds = time.monotonic() - started
        reproduction = shlex.join(("crashcart", "run", which.word, "--runtime", str(choice)))
        evidences = []
        for played in run.played:
            name = self.store.new_run(played.captured_at)
            evidence = evidence_of(played, installation, reproduction, name)
            self.store.keep(evidence, played.recording.journal, which.suite_id, duration_seconds / len(run.played))
            evidences.append(evidence)
        return ProbeResult(
            probe=which.id,
            claim=which.claim,
            clauses=which.clauses,
            runtime=str(choice),
            outcome=worst(evidence.outcome for evidence in evidences),
            evidences=tuple(evidences),
            duration_seconds=duration_seconds,
            deviation=known.get(which.id),
        )


def single(path: Path) -> Probe:
    """Return a scenario file of the user's own as a probe, so that it runs like any other.

    Raises:
        DocumentError: The file has a mistake.
    """
    scenario = load_scenario(path).scenario
    return Probe(
        id=scenario.id,
        claim=scenario.claim,
        clauses=scenario.clauses,
        scenarios=(path.name,),
        mutants=(),
        function=lambda run: run.check(run.play(path.name)),
        folder=path.parent,
    )
