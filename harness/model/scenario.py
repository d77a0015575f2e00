"""A scenario as frozen data: what is asked, what is broken, and what should be seen.

Reading a file into this shape is the loader's work; nothing here reads, starts or judges anything.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from enum import StrEnum
from typing import Any

import msgspec

from harness.model.capability import Capability


class Position(StrEnum):
    """A place in the protocol where the harness can hold a peer and crash the runtime."""

    REQUEST_RECEIVED = "request.received"
    REPLY_STREAMING = "reply.streaming"
    TOOL_CALLED = "tool.called"
    TOOL_COMMITTED = "tool.committed"

    @property
    def of_tool(self) -> bool:
        """Whether the effect server holds here; otherwise the provider does."""
        return self in (Position.TOOL_CALLED, Position.TOOL_COMMITTED)


class EffectMode(StrEnum):
    """How the effect server treats one call of a tool."""

    NORMAL = "normal"
    HANG_BEFORE_COMMIT = "hang_before_commit"
    HANG_AFTER_COMMIT = "hang_after_commit"
    EXIT_AFTER_COMMIT = "exit_after_commit"
    ERROR_AFTER_COMMIT = "error_after_commit"
    SLOW = "slow"

    @property
    def is_fault(self) -> bool:
        """Whether this mode is a fault that has to fire for the run to count."""
        return self is not EffectMode.NORMAL

    @property
    def after_commit(self) -> bool:
        """Whether it strikes once the effect is in the ledger."""
        return self in (EffectMode.HANG_AFTER_COMMIT, EffectMode.EXIT_AFTER_COMMIT, EffectMode.ERROR_AFTER_COMMIT)


class HookEvent(StrEnum):
    """When a hook of the scenario speaks."""

    PRE_TOOL = "pre_tool"
    STOP = "stop"


class Crash(msgspec.Struct, frozen=True):
    """A crash at an exact place: the peer is held there, then the runtime's process gets the signal."""

    at: Position
    signal: str = "SIGKILL"
    tool: str | None = None
    lane: str = "main"
    nth: int = 1
    event: str | None = None
    event_nth: int = 1


class Phase(msgspec.Struct, frozen=True):
    """One start of the runtime's process: a new session, or a session resumed.

    Attributes:
        text: The prompt.
        resume: Whether the session of the phase before, or ``session``, is resumed.
        session: A session id to resume instead of the last one.
        crash: Where the process is ended, if it is.
    """

    text: str
    resume: bool = False
    session: str | None = None
    crash: Crash | None = None


class EffectTool(msgspec.Struct, frozen=True):
    """A tool of the effect server.

    Attributes:
        name: Its neutral name.
        description: What the model is told.
        arguments: Argument name to JSON schema type.
        modes: The mode of the first call, the second, …; the last one holds for all later calls.
        delay_seconds: How long a ``slow`` call takes.
        read_only: Whether it is declared to have no effect.
    """

    name: str
    description: str
    arguments: dict[str, str]
    modes: tuple[EffectMode, ...] = (EffectMode.NORMAL,)
    delay_seconds: float = 1.0
    read_only: bool = False


class Hook(msgspec.Struct, frozen=True):
    """A hook program's rule: deny or block with a reason, for the first ``times`` occasions."""

    event: HookEvent
    reason: str
    tool: str | None = None
    times: int = 1


class Settings(msgspec.Struct, frozen=True):
    """Neutral settings; an adapter translates each, or declares that it cannot."""

    model: str | None = None
    fallback_models: tuple[str, ...] = ()
    max_retries: int | None = None
    max_turns: int | None = None
    stream_idle_timeout_seconds: float | None = None

    def given(self) -> dict[str, Any]:
        """Return the settings that the scenario states."""
        return {name: value for name in self.__struct_fields__ if (value := getattr(self, name)) not in (None, ())}


class ResultExpectation(msgspec.Struct, frozen=True):
    """The answer that the model should have been given for a call of a tool."""

    tool: str
    error: bool | None = None
    contains: str | None = None


class FileExpectation(msgspec.Struct, frozen=True):
    """What a workspace file should be after the run; ``absent`` and the texts exclude each other."""

    path: str
    equals: str | None = None
    contains: str | None = None
    absent: bool = False


class Expectation(msgspec.Struct, frozen=True):
    """What should be seen; each field that is given becomes one check.

    Attributes:
        models: The models asked for, request by request, in the main lane.
        requests: How many model requests reached the main lane.
        turns: What the runtime counts as turns.
        terminal: The typed terminal reason.
        subtype: The structured result's subtype.
        exit: The exit code of the last phase, or ``"nonzero"``.
        effects: Tool name to the number of lines in the effect ledger.
        results: Tool calls' answers, in order.
        files: Files of the workspace after the run.
        answer_contains: A part of the final answer.
        request_contains: Request number in the main lane to a text that it must hold.
        output_contains: A part of the standard output or error output of the last phase.
        hooks: Hook event to how often the hook was asked.
    """

    models: tuple[str, ...] | None = None
    requests: int | None = None
    turns: int | None = None
    terminal: str | None = None
    subtype: str | None = None
    exit: int | str | None = None
    effects: dict[str, int] = {}
    results: tuple[ResultExpectation, ...] = ()
    files: tuple[FileExpectation, ...] = ()
    answer_contains: str | None = None
    request_contains: dict[int, str] = {}
    output_contains: str | None = None
    hooks: dict[str, int] = {}


class Scenario(msgspec.Struct, frozen=True):
    """One whole reproduction.

    Attributes:
        id: Dotted slug, ``<area>.<name>``, the same as the file's path under ``scenarios/``.
        claim: One sentence.
        clauses: The clauses of the contract that it serves.
        phases: The starts of the runtime, in order.
        model: The provider's lanes as plain data, exactly as written.
        settings: Neutral settings.
        tools: Tools of the effect server.
        hooks: Hook rules.
        workspace: Files that the workspace begins with.
        expect: What should be seen.
        wall_seconds: The bound on each phase, in real seconds.
        faults_declared: Every fault and crash, as short sentences; each must be seen to fire.
    """

    id: str
    claim: str
    clauses: tuple[str, ...]
    phases: tuple[Phase, ...]
    model: dict[str, Any]
    settings: Settings = Settings()
    tools: tuple[EffectTool, ...] = ()
    hooks: tuple[Hook, ...] = ()
    workspace: dict[str, str] = {}
    expect: Expectation = Expectation()
    wall_seconds: float = 60.0
    faults_declared: tuple[str, ...] = ()

    def built_in_tools(self) -> frozenset[str]:
        """Return the tools that the scripted model asks for and that are not the effect server's."""
        return frozenset(_called(self.model)) - {tool.name for tool in self.tools}

    def needs(self) -> frozenset[Capability]:
        """Return the capabilities that this scenario takes for granted, derived from what it uses."""
        return frozenset(capability for capability, used in NEEDS if used(self))


def _called(value: object) -> Iterator[str]:
    """Yield the tool names of a script's ``call``, ``calls`` and ``tool_use``, at any depth."""
    if isinstance(value, dict):
        used, several = value.get("tool_use"), value.get("calls")
        yield from (name for name in (several if isinstance(several, list) else ()) if isinstance(name, str))
        yield from (name for name in (value.get("call"), used.get("name") if isinstance(used, dict) else None) if name)
        for item in value.values():
            yield from _called(item)
    elif isinstance(value, list):
        for item in value:
            yield from _called(item)


NEEDS: tuple[tuple[Capability, Callable[[Scenario], bool]], ...] = (
    (Capability.RESUME, lambda s: any(phase.resume for phase in s.phases)),
    (Capability.MCP_TOOLS, lambda s: bool(s.tools)),
    (Capability.SHELL_TOOL, lambda s: "Bash" in s.built_in_tools()),
    (Capability.FILE_TOOLS, lambda s: not s.built_in_tools().isdisjoint({"Read", "Write", "Edit"})),
    (Capability.PRE_TOOL_HOOK, lambda s: any(hook.event is HookEvent.PRE_TOOL for hook in s.hooks)),
    (Capability.STOP_HOOK, lambda s: any(hook.event is HookEvent.STOP for hook in s.hooks)),
    (Capability.MODEL_FALLBACK, lambda s: bool(s.settings.fallback_models)),
    (Capability.RETRY_LIMIT, lambda s: s.settings.max_retries is not None),
    (Capability.TURN_LIMIT, lambda s: s.settings.max_turns is not None),
    (Capability.STREAM_IDLE_LIMIT, lambda s: s.settings.stream_idle_timeout_seconds is not None),
    (Capability.TERMINAL_REASON, lambda s: s.expect.terminal is not None or s.expect.subtype is not None),
    (Capability.TURN_COUNT, lambda s: s.expect.turns is not None),
)
"""What a scenario uses, and the capability which that takes."""
