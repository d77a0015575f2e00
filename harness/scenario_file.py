"""Reads scenario files; every mistake is one sentence with file, line, what was allowed and the nearest word.

Everything that can be known to be wrong is refused here, before any process starts: an unknown key, a wrong type, a
crash at a tool that the scenario does not have, a fault that its reply can never reach.
"""

from __future__ import annotations

import hashlib
import math
import re
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

import msgspec

from fake_provider.document import Node, listed, load_document, nearest
from fake_provider.replies import Reply, ToolUse
from fake_provider.reply_words import called
from fake_provider.script import Script, parse_lanes
from fake_provider.steps import Entry, Repeat, in_order
from harness.crash.point import crash_label, unreachable
from harness.model.clause import CLAUSES
from harness.model.scenario import (
    Crash,
    EffectMode,
    EffectTool,
    Expectation,
    FileExpectation,
    Hook,
    HookEvent,
    Phase,
    Position,
    ResultExpectation,
    Scenario,
    Settings,
)

SCENARIO_KEYS = {
    "id", "claim", "clauses", "prompt", "crash", "phases", "settings", "model", "tools", "hooks", "workspace",
    "expect", "wall_seconds",
}  # fmt: skip
ID = re.compile(r"[a-z0-9-]+(?:\.[a-z0-9-]+)+")
TOOL_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
"""Narrower than the providers' rule, since a runtime may put its server's name before it."""

CRASH_SIGNALS = {
    "SIGABRT", "SIGBUS", "SIGFPE", "SIGHUP", "SIGILL", "SIGINT", "SIGKILL", "SIGPIPE", "SIGQUIT", "SIGSEGV", "SIGTERM",
    "SIGUSR1", "SIGUSR2",
}  # fmt: skip
"""Those that end a program which does nothing about them; stopping one is no crash."""

ARGUMENT_TYPES = {"string", "integer", "number", "boolean", "object", "array"}


DIALECTS_SERVED = ("anthropic_messages",)
"""What the adapters' runtimes speak."""

BUILT_IN_TOOLS = {"Bash", "Edit", "Read", "Write"}
"""The neutral names that adapters translate for tools which a runtime brings itself."""


@dataclass(frozen=True)
class LoadedScenario:
    """A scenario together with the provider's script and the text that both were read from.

    ``warnings`` are sentences about what is allowed and probably not meant.
    """

    scenario: Scenario
    script: Script
    path: Path
    text: str
    warnings: tuple[str, ...] = ()

    @property
    def digest(self) -> str:
        """The sha256 of the text."""
        return hashlib.sha256(self.text.encode()).hexdigest()


def load_scenario(path: Path) -> LoadedScenario:
    """Read and validate one scenario file.

    Raises:
        DocumentError: Anything is wrong with it; the message begins with ``file:line:``.
    """
    root = load_document(path)
    fields = root.fields("scenario", SCENARIO_KEYS, required=("id", "claim", "clauses", "model"))
    tools = _tools(fields["tools"]) if "tools" in fields else ()
    hooks = tuple(_hook(node) for node in fields["hooks"].items("hooks")) if "hooks" in fields else ()
    script = parse_lanes(fields["model"], dialects=DIALECTS_SERVED, strict=True)
    phases = _phases(root, fields)
    for phase, node in phases:
        if phase.crash is not None:
            _reachable(phase.crash, node, tools, script)
    scenario = Scenario(
        id=_id(fields["id"]),
        claim=fields["claim"].text(),
        clauses=tuple(_clause(node) for node in fields["clauses"].items("clauses")),
        phases=tuple(phase for phase, _ in phases),
        model=fields["model"].data(),
        settings=_settings(fields["settings"]) if "settings" in fields else Settings(),
        tools=tools,
        hooks=hooks,
        workspace=_workspace(fields["workspace"]) if "workspace" in fields else {},
        expect=_expectation(fields["expect"], tools, hooks) if "expect" in fields else Expectation(),
        wall_seconds=_finite(fields["wall_seconds"], minimum=1) if "wall_seconds" in fields else 60.0,
        faults_declared=(),
    )
    declared = (*wire_faults(script), *_tool_faults(tools), *_crash_faults(scenario.phases))
    return LoadedScenario(
        scenario=msgspec.structs.replace(scenario, faults_declared=declared),
        script=script,
        path=path,
        text=path.read_text(encoding="utf-8"),
        warnings=tuple(unlike_its_tool(script, tools)),
    )


def _id(node: Node) -> str:
    if not ID.fullmatch(node.text()):
        raise node.error(f"'{node.value}' is no id; write AREA.NAME in small letters, digits and dashes")
    return node.text()


def _argument(node: Node) -> str:
    if "\0" in node.text():
        raise node.error("a text that becomes a command's argument has no zero byte")
    return node.text()


def _finite(node: Node, minimum: float) -> float:
    if not math.isfinite(node.number()):
        raise node.error(f"expected a finite number, found {node.value}")
    return node.number(minimum)


def _clause(node: Node) -> str:
    return node.choice("clause", CLAUSES)


def _phases(root: Node, fields: dict[str, Node]) -> list[tuple[Phase, Node]]:
    if ("prompt" in fields) == ("phases" in fields):
        raise root.error("a scenario has either 'prompt' (one phase) or 'phases' (a list), not both and not neither")
    if "prompt" in fields:
        crash = _crash(fields["crash"]) if "crash" in fields else None
        return [(Phase(text=_argument(fields["prompt"]), crash=crash), fields.get("crash", root))]
    if "crash" in fields:
        raise fields["crash"].error("with 'phases', the crash stands in the phase that it ends")
    nodes = fields["phases"].items("phases")
    if not nodes:
        raise fields["phases"].error("phases is empty; at least one is needed")
    return [_phase(node, number) for number, node in enumerate(nodes, start=1)]


def _phase(node: Node, number: int) -> tuple[Phase, Node]:
    fields = node.fields("phase", {"prompt", "resume", "session", "crash"})
    if ("prompt" in fields) == ("resume" in fields):
        raise node.error("a phase has either 'prompt' (a new session) or 'resume' (the session goes on)")
    session = _session(fields["session"]) if "session" in fields else None
    if session is not None and "resume" not in fields:
        raise fields["session"].error("'session' names the session to resume, and this phase has no 'resume'")
    if "resume" in fields and number == 1 and session is None:
        raise fields["resume"].error("the first phase has nothing to resume; begin with 'prompt', or name a 'session'")
    phase = Phase(
        text=_argument(fields.get("prompt") or fields["resume"]),
        resume="resume" in fields,
        session=session,
        crash=_crash(fields["crash"]) if "crash" in fields else None,
    )
    return phase, fields.get("crash", node)


def _session(node: Node) -> str:
    try:
        return str(uuid.UUID(node.text()))
    except ValueError:
        raise node.expected("a session id as a UUID") from None


def _crash(node: Node) -> Crash:
    fields = node.fields("crash", Crash.__struct_fields__, required=("at",))
    at = Position(fields["at"].choice("position", {position.value for position in Position}))
    for key in ("lane", "event", "event_nth"):
        if key in fields and at.of_tool:
            raise fields[key].error(f"a crash at {at} happens in the effect server and takes no '{key}'")
        if key in fields and key != "lane" and at is Position.REQUEST_RECEIVED:
            raise fields[key].error(f"a crash at {at} happens before any event and takes no '{key}'")
    return Crash(
        at=at,
        signal=fields["signal"].choice("signal", CRASH_SIGNALS) if "signal" in fields else "SIGKILL",
        tool=fields["tool"].text() if "tool" in fields else None,
        lane=fields["lane"].text() if "lane" in fields else "main",
        nth=fields["nth"].integer(minimum=1) if "nth" in fields else 1,
        event=fields["event"].text() if "event" in fields else None,
        event_nth=fields["event_nth"].integer(minimum=1) if "event_nth" in fields else 1,
    )


def _reachable(crash: Crash, node: Node, tools: tuple[EffectTool, ...], script: Script) -> None:
    if crash.at.of_tool:
        names = {tool.name for tool in tools}
        if crash.tool is None or crash.tool not in names:
            raise node.error(
                f"a crash at {crash.at} names a tool of this scenario's 'tools', found "
                f"{crash.tool or 'none'}; allowed: {', '.join(sorted(names)) or 'none, the scenario has no tools'}"
            )
        _strikes_alone(crash, node, next(tool for tool in tools if tool.name == crash.tool))
        return
    if crash.tool is not None:
        raise node.error(f"a crash at {crash.at} happens in the provider and takes no 'tool'")
    if problem := unreachable(crash, script):
        raise node.error(f"this crash can never be reached: {problem}")


def _strikes_alone(crash: Crash, node: Node, tool: EffectTool) -> None:
    mode = tool.modes[min(crash.nth, len(tool.modes)) - 1]
    has_struck = mode is EffectMode.SLOW and crash.at is Position.TOOL_COMMITTED
    if mode.is_fault and not has_struck:
        raise node.error(
            f"call {crash.nth} of {tool.name} has mode {mode} and a crash at {crash.at}, which ends the effect server "
            "before the mode can strike; give the call mode normal, or crash at another call"
        )


def _tools(node: Node) -> tuple[EffectTool, ...]:
    return tuple(_tool(name, child) for name, child in node.entries("tools").items())


def _tool(name: str, node: Node) -> EffectTool:
    if not TOOL_NAME.fullmatch(name):
        raise node.error(f"'{name}' is no tool name; allowed are letters, digits, '_' and '-', at most 64")
    fields = node.fields("tool", {"description", "arguments", "mode", "modes", "delay_seconds", "read_only"})
    if "mode" in fields and "modes" in fields:
        raise node.error("a tool has either 'mode' (every call) or 'modes' (call by call)")
    modes: tuple[EffectMode, ...] = (EffectMode.NORMAL,)
    if "mode" in fields:
        modes = (_mode(fields["mode"]),)
    if "modes" in fields:
        modes = tuple(_mode(item) for item in fields["modes"].items("modes"))
    if not modes:
        raise fields["modes"].error("modes is empty; at least one is needed")
    read_only = fields["read_only"].flag() if "read_only" in fields else False
    for mode in modes if read_only else ():
        if mode.after_commit:
            raise node.error(f"a read_only tool commits nothing, so '{mode}' can never strike")
    arguments = fields["arguments"].entries("arguments") if "arguments" in fields else {}
    return EffectTool(
        name=name,
        description=fields["description"].text() if "description" in fields else f"Does {name}.",
        arguments={key: child.choice("argument type", ARGUMENT_TYPES) for key, child in arguments.items()},
        modes=modes,
        delay_seconds=_finite(fields["delay_seconds"], minimum=0) if "delay_seconds" in fields else 1.0,
        read_only=read_only,
    )


def _mode(node: Node) -> EffectMode:
    return EffectMode(node.choice("mode", {mode.value for mode in EffectMode}))


def _hook(node: Node) -> Hook:
    fields = node.fields("hook", {"event", "reason", "tool", "times"}, required=("event", "reason"))
    event = HookEvent(fields["event"].choice("hook event", {event.value for event in HookEvent}))
    if event is HookEvent.STOP and "tool" in fields:
        raise fields["tool"].error("a stop hook is asked about no tool")
    return Hook(
        event=event,
        reason=fields["reason"].text(),
        tool=fields["tool"].text() if "tool" in fields else None,
        times=fields["times"].integer(minimum=1) if "times" in fields else 1,
    )


def _settings(node: Node) -> Settings:
    fields = node.fields("settings", Settings.__struct_fields__)
    values: dict[str, Any] = {}
    for name, child in fields.items():
        values[name] = SETTING_READERS[name](child)
    return Settings(**values)


SETTING_READERS: dict[str, Callable[[Node], Any]] = {
    "model": _argument,
    "fallback_models": lambda node: tuple(_argument(item) for item in node.items("fallback_models")),
    "max_retries": lambda node: node.integer(minimum=0),
    "max_turns": lambda node: node.integer(minimum=1),
    "stream_idle_timeout_seconds": lambda node: _finite(node, minimum=0),
}


def _workspace(node: Node) -> dict[str, str]:
    children = node.entries("workspace")
    for path, child in children.items():
        _inside_workspace(path, child)
        for parent in PurePosixPath(path).parents:
            if str(parent) in children:
                raise child.error(f"'{path}' lies inside '{parent}', which is a file")
    return {path: child.text() for path, child in children.items()}


def _inside_workspace(path: str, node: Node) -> None:
    """Refuse a path that leaves the workspace, or that the listing of the workspace would write differently."""
    plain = PurePosixPath(path)
    if not path or str(plain) != path or plain.is_absolute() or ".." in plain.parts or path == "." or "\0" in path:
        raise node.error(f"'{path}' is no path inside the workspace, like 'folder/note.txt'")


def _expectation(node: Node, tools: tuple[EffectTool, ...], hooks: tuple[Hook, ...]) -> Expectation:
    fields = node.fields("expect", Expectation.__struct_fields__)
    names = {tool.name for tool in tools}
    return Expectation(
        models=tuple(item.text() for item in fields["models"].items("models")) if "models" in fields else None,
        requests=fields["requests"].integer(minimum=0) if "requests" in fields else None,
        turns=fields["turns"].integer(minimum=0) if "turns" in fields else None,
        terminal=fields["terminal"].choice("terminal reason", TERMINALS) if "terminal" in fields else None,
        subtype=fields["subtype"].text() if "subtype" in fields else None,
        exit=_exit(fields["exit"]) if "exit" in fields else None,
        effects=_counts(fields["effects"], "tool", names) if "effects" in fields else {},
        results=tuple(_result(item) for item in fields["results"].items("results")) if "results" in fields else (),
        files=_files(fields["files"]) if "files" in fields else (),
        answer_contains=fields["answer_contains"].text() if "answer_contains" in fields else None,
        request_contains=_request_texts(fields["request_contains"]) if "request_contains" in fields else {},
        output_contains=fields["output_contains"].text() if "output_contains" in fields else None,
        hooks=_counts(fields["hooks"], "hook event", {hook.event.value for hook in hooks}) if "hooks" in fields else {},
    )


TERMINALS = {
    "completed", "max_turns", "background_requested", "tool_deferred", "hook_stopped", "aborted_streaming",
    "aborted_tools", "prompt_too_long", "rapid_refill_breaker", "malformed_tool_use_exhausted",
    "max_output_exhausted", "model_error", "api_error", "refused", "recovery_required", "loop_wakeup",
}  # fmt: skip
"""Clause L1."""


def _exit(node: Node) -> int | str:
    if node.value == "nonzero":
        return "nonzero"
    if isinstance(node.value, str):
        raise node.expected("an exit code, or the word nonzero")
    return node.integer(minimum=0)


def _counts(node: Node, kind: str, allowed: set[str]) -> dict[str, int]:
    children = node.fields(f"{kind} counts", allowed)
    return {name: child.integer(minimum=0) for name, child in children.items()}


def _result(node: Node) -> ResultExpectation:
    fields = node.fields("result", {"tool", "error", "contains"}, required=("tool",))
    return ResultExpectation(
        tool=fields["tool"].text(),
        error=fields["error"].flag() if "error" in fields else None,
        contains=fields["contains"].text() if "contains" in fields else None,
    )


def _files(node: Node) -> tuple[FileExpectation, ...]:
    found = []
    for path, child in node.entries("files").items():
        _inside_workspace(path, child)
        fields = child.fields("file", {"equals", "contains", "absent"})
        if len(fields) != 1:
            raise child.error("a file has exactly one of 'equals', 'contains', 'absent'")
        found.append(
            FileExpectation(
                path=path,
                equals=fields["equals"].text() if "equals" in fields else None,
                contains=fields["contains"].text() if "contains" in fields else None,
                absent=fields["absent"].flag() if "absent" in fields else False,
            )
        )
    return tuple(found)


def _request_texts(node: Node) -> dict[int, str]:
    if not isinstance(node.value, dict):
        raise node.expected("a mapping of request number to text")
    found = {}
    for key, value in node.value.items():
        if not isinstance(key, int) or isinstance(key, bool) or key < 1 or not isinstance(value, str):
            raise node.error(f"expected a request number from 1 and a text, found {key!r}: {value!r}")
        found[int(key)] = str(value)
    return found


def _tool_faults(tools: tuple[EffectTool, ...]) -> tuple[str, ...]:
    return tuple(
        tool_fault_label(tool.name, number, tool.modes)
        for tool in tools
        for number, mode in enumerate(tool.modes, start=1)
        if mode.is_fault
    )


def _crash_faults(phases: tuple[Phase, ...]) -> tuple[str, ...]:
    return tuple(
        crash_label(number, phase.crash) for number, phase in enumerate(phases, start=1) if phase.crash is not None
    )


def tool_fault_label(tool: str, call: int, modes: Sequence[str]) -> str:
    """Return the fault of one call in one short sentence, equal for the declaration and for each event that it fired.

    Args:
        tool: The tool's neutral name.
        call: The call's number, from 1.
        modes: The tool's modes; the last one holds for all later calls.
    """
    number = min(call, len(modes))
    which = "every call" if len(modes) == 1 else f"call {number}"
    onwards = " and later" if number == len(modes) > 1 else ""
    return f"tool {tool} {which}{onwards}: {modes[number - 1]}"


FAULT_REPEATS_MAX = 1000
"""How often one fault inside a repeat counts as declared, at most."""


def wire_faults(script: Script) -> tuple[str, ...]:
    """Return the script's wire faults as short sentences, one for each time that a step plays one.

    Inside a repeat without an end, and in one with very many rounds, a fault counts as often as can be said.
    """
    return tuple(label for lane in script.lanes for label in _faults_of(lane.name, lane.steps))


def _faults_of(lane: str, entries: Sequence[Entry]) -> Iterator[str]:
    for entry in entries:
        if isinstance(entry, Repeat):
            labels = list(_faults_of(lane, entry.steps))
            yield from labels * min(entry.times or 1, FAULT_REPEATS_MAX)
            continue
        if entry.fault is not None:
            yield fault_label(lane, f"{entry.label}: {entry.fault.kind}")
        yield from _faults_of(lane, entry.steps)


def fault_label(lane: str, what: str) -> str:
    """Return a wire fault in one short sentence, equal for the declaration and for the event that it fired."""
    return f"lane {lane}: {what}"


def unlike_its_tool(script: Script, tools: Sequence[EffectTool]) -> Iterator[str]:
    """Yield a sentence for each scripted call that no declared tool can take as it is.

    Such a call is allowed, because a model may ask for anything, and is nearly always a slip.
    """
    declared = {tool.name: tool for tool in tools}
    said: set[str] = set()
    for lane in script.lanes:
        for step in in_order(lane.steps, rounds_at_most=1):
            for call in called(step.sample) if isinstance(step.sample, Reply) else ():
                sentence = _unlike(call, declared)
                if sentence is not None and sentence not in said:
                    said.add(sentence)
                    yield f"{step.place}: step '{step.label}' in lane '{lane.name}': {sentence}"


def _unlike(call: ToolUse, declared: Mapping[str, EffectTool]) -> str | None:
    if call.name in BUILT_IN_TOOLS or call.arguments is not None:
        return None
    if call.name not in declared:
        return (
            f"calls '{call.name}', which is no tool of this scenario{nearest(call.name, {*declared, *BUILT_IN_TOOLS})}"
        )
    wanted = declared[call.name].arguments
    if set(call.input) != set(wanted):
        return (
            f"calls '{call.name}' with {listed(call.input) or 'no arguments'}; "
            f"it is declared with {listed(wanted) or 'no arguments'}"
        )
    for name, value in call.input.items():
        if not _fits(value, wanted[name]):
            return f"calls '{call.name}' with {name}: {value!r}, which is no {wanted[name]}"
    return None


def _fits(value: object, kind: str) -> bool:
    """Whether a value has a JSON type."""
    if isinstance(value, bool):
        return kind == "boolean"
    return isinstance(value, JSON_TYPES[kind])


JSON_TYPES: dict[str, tuple[type, ...]] = {
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "object": (dict,),
    "array": (list,),
}
"""What the types of ``ARGUMENT_TYPES`` are in Python; true and false are numbers there, and nowhere else."""
