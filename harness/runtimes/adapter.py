"""What every adapter has to say: a required core of few verbs, and what its runtime can do.

An adapter translates; it is pure data in and data out but for :meth:`Adapter.install`. It never starts the runtime,
never reads what happened, and never decides whether something was right.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from harness.model.capability import Capability
from harness.model.history import Ending
from harness.model.scenario import HookEvent, Settings


class RuntimeUnavailableError(Exception):
    """A runtime cannot be installed or is not what it says it is; the message names the next command."""


@dataclass(frozen=True)
class Installation:
    """A runtime on this machine, ready to start.

    Attributes:
        runtime: The adapter's name.
        version: The version that the program itself reported.
        program: What is executed, before the arguments of a phase.
        sha256: Of the binary, or of the source tree.
        environment: What this installation adds to the environment.
    """

    runtime: str
    version: str
    program: tuple[str, ...]
    sha256: str
    environment: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Start:
    """What one phase asks of the runtime.

    Attributes:
        text: The prompt.
        resume: Whether ``session`` is resumed; otherwise it is the id of a new session.
        session: A UUID.
        settings: Neutral settings.
        provider_url: Where the model provider answers.
        home: The empty home.
        workspace: The working folder.
        control_folder: A folder for files that the adapter wants to hand to the runtime.
        environment: The environment to add to.
        effect_server: The argument vector of the effect server, or ``None`` without tools.
        hook_commands: Shell command by hook event.
    """

    text: str
    resume: bool
    session: str
    settings: Settings
    provider_url: str
    home: Path
    workspace: Path
    control_folder: Path
    environment: Mapping[str, str]
    effect_server: Sequence[str] | None
    hook_commands: Mapping[HookEvent, str]


@dataclass(frozen=True)
class Launch:
    """A runtime's start in its own words: what to execute, with what environment, and files to write before."""

    argv: tuple[str, ...]
    environment: dict[str, str]
    files: dict[Path, str] = field(default_factory=dict)


class Adapter(Protocol):
    """The required core."""

    @property
    def name(self) -> str:
        """The word after ``--runtime``."""

    @property
    def default_version(self) -> str:
        """The version that a bare name stands for."""

    @property
    def capabilities(self) -> frozenset[Capability]:
        """What the runtime can do, declared before any run."""

    @property
    def settings(self) -> frozenset[str]:
        """The neutral settings that it can translate."""

    def install(self, version: str, cache: Path) -> Installation:
        """Make a version ready, from the cache when it is there.

        Raises:
            RuntimeUnavailableError: It cannot be had, or it is not what was recorded or asked for.
        """

    def versions(self) -> list[str]:
        """Return the versions that can be installed, oldest first.

        Raises:
            RuntimeUnavailableError: The registry cannot be asked.
        """

    def launch(self, installation: Installation, start: Start) -> Launch:
        """Translate a phase into a command."""

    def tool_call(
        self, tool: str, arguments: dict[str, Any], effect_tools: frozenset[str]
    ) -> tuple[str, dict[str, Any]]:
        """Return a tool call of the script as this runtime's tools expect it."""

    def ending(self, output: str) -> Ending:
        """Read what the runtime said about its own end from its standard output."""
