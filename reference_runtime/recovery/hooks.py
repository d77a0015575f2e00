"""What the end of a hook command means (G1, G2, G3): its exit and its output to one outcome.

Never starts a hook and never reads its output; `reading_of` names what a decoded output says.
"""

from enum import StrEnum

from reference_runtime.recovery.table import Table, impossible, row


class HookEvent(StrEnum):
    """The moment at which a hook runs."""

    PRE_TOOL_USE = "PreToolUse"
    POST_TOOL_USE = "PostToolUse"
    STOP = "Stop"


class HookEnd(StrEnum):
    """How the hook's process ended."""

    EXIT_ZERO = "exit_zero"
    EXIT_TWO = "exit_two"
    EXIT_OTHER = "exit_other"
    TIMED_OUT = "timed_out"
    NOT_STARTED = "not_started"


class HookReading(StrEnum):
    """What the standard output of a hook that ended with exit 0 says."""

    NOTHING = "nothing"
    NOT_JSON = "not_json"
    WRONG_SCHEMA = "wrong_schema"
    ALLOW = "allow"
    DENY = "deny"
    BLOCK = "block"
    STOP_RUN = "stop_run"
    NEW_OUTPUT = "new_output"


class HookOutcome(StrEnum):
    """What the runtime does because of one hook."""

    GO_ON = "go_on"
    ALLOW = "allow"
    DENY = "deny"
    BLOCK = "block"
    STOP_RUN = "stop_run"
    REPLACE_OUTPUT = "replace_output"
    HOOK_ERROR = "hook_error"


_TOOL_MOMENTS = (HookEvent.PRE_TOOL_USE,)
_BLOCKABLE = (HookEvent.POST_TOOL_USE, HookEvent.STOP)

HOOKS: Table[HookOutcome] = Table(
    name="hooks",
    question="A hook command ended: what does the runtime do?",
    clauses=("G1", "G2", "G3"),
    facts={"event": tuple(HookEvent), "end": tuple(HookEnd), "reading": tuple(HookReading)},
    rows=(
        row(
            "nothing-to-say",
            HookOutcome.GO_ON,
            "A hook that ends well and prints nothing has no objection.",
            end=(HookEnd.EXIT_ZERO,),
            reading=(HookReading.NOTHING,),
        ),
        row(
            "allowed",
            HookOutcome.ALLOW,
            "The hook takes the place of the permission question.",
            event=_TOOL_MOMENTS,
            end=(HookEnd.EXIT_ZERO,),
            reading=(HookReading.ALLOW,),
        ),
        row(
            "denied",
            HookOutcome.DENY,
            "The tool body does not run; the model gets the reason.",
            event=_TOOL_MOMENTS,
            end=(HookEnd.EXIT_ZERO,),
            reading=(HookReading.DENY,),
        ),
        row(
            "blocked",
            HookOutcome.BLOCK,
            "The hook's reason goes to the model as feedback.",
            event=_BLOCKABLE,
            end=(HookEnd.EXIT_ZERO,),
            reading=(HookReading.BLOCK,),
        ),
        row(
            "run-stopped",
            HookOutcome.STOP_RUN,
            "A hook may end the run at any moment.",
            end=(HookEnd.EXIT_ZERO,),
            reading=(HookReading.STOP_RUN,),
        ),
        row(
            "output-replaced",
            HookOutcome.REPLACE_OUTPUT,
            "The hook gave another text for the tool's result.",
            event=(HookEvent.POST_TOOL_USE,),
            end=(HookEnd.EXIT_ZERO,),
            reading=(HookReading.NEW_OUTPUT,),
        ),
        row(
            "denied-by-exit",
            HookOutcome.DENY,
            "Exit 2 before a tool refuses it, with standard error as the reason.",
            event=_TOOL_MOMENTS,
            end=(HookEnd.EXIT_TWO,),
            reading=(HookReading.NOTHING,),
        ),
        row(
            "blocked-by-exit",
            HookOutcome.BLOCK,
            "Exit 2 after a tool or at the stop gives standard error to the model.",
            event=_BLOCKABLE,
            end=(HookEnd.EXIT_TWO,),
            reading=(HookReading.NOTHING,),
        ),
        row(
            "broken-output",
            HookOutcome.HOOK_ERROR,
            "Output that cannot be read is no verdict: tool, result and stop stay as they are, the error is attached.",
            end=(HookEnd.EXIT_ZERO,),
            reading=(HookReading.NOT_JSON, HookReading.WRONG_SCHEMA),
        ),
        row(
            "broken-run",
            HookOutcome.HOOK_ERROR,
            "A hook that did not end properly gave no verdict: it neither blocks nor hides what the tool did.",
            end=(HookEnd.EXIT_OTHER, HookEnd.TIMED_OUT, HookEnd.NOT_STARTED),
            reading=(HookReading.NOTHING,),
        ),
    ),
    impossible=(
        impossible(
            "The output is read only after exit 0.",
            end=tuple(end for end in HookEnd if end is not HookEnd.EXIT_ZERO),
            reading=tuple(reading for reading in HookReading if reading is not HookReading.NOTHING),
        ),
        impossible(
            "A verdict that its moment does not know is read as a wrong schema.",
            event=_TOOL_MOMENTS,
            reading=(HookReading.BLOCK, HookReading.NEW_OUTPUT),
        ),
        impossible(
            "A verdict that its moment does not know is read as a wrong schema.",
            event=_BLOCKABLE,
            reading=(HookReading.ALLOW, HookReading.DENY),
        ),
        impossible(
            "A verdict that its moment does not know is read as a wrong schema.",
            event=(HookEvent.STOP,),
            reading=(HookReading.NEW_OUTPUT,),
        ),
    ),
)


def reading_of(event: HookEvent, output: object) -> tuple[HookReading, str]:
    """What a decoded hook output says, and the text that comes with it (reason, new output or what is wrong).

    Args:
        event: The hook's moment.
        output: The decoded JSON value.
    """
    if not isinstance(output, dict):
        return HookReading.WRONG_SCHEMA, "the output is not a JSON object"
    if output.get("continue") is False:
        return HookReading.STOP_RUN, str(output.get("stopReason", ""))
    if "decision" in output:
        if output["decision"] == "block" and event in _BLOCKABLE:
            return HookReading.BLOCK, str(output.get("reason", ""))
        return HookReading.WRONG_SCHEMA, f"decision {output['decision']!r} is not known for {event}"
    specific = output.get("hookSpecificOutput")
    if specific is None:
        return HookReading.NOTHING, ""
    if not isinstance(specific, dict) or specific.get("hookEventName", event) != event:
        return HookReading.WRONG_SCHEMA, "hookSpecificOutput is not an object for this event"
    return _specific_reading(event, specific)


def _specific_reading(event: HookEvent, specific: dict[str, object]) -> tuple[HookReading, str]:
    if event is HookEvent.PRE_TOOL_USE and "permissionDecision" in specific:
        reason = str(specific.get("permissionDecisionReason", ""))
        known = {"allow": HookReading.ALLOW, "deny": HookReading.DENY}
        decision = specific["permissionDecision"]
        if isinstance(decision, str) and decision in known:
            return known[decision], reason
        return HookReading.WRONG_SCHEMA, f"permissionDecision {decision!r} is none of allow, deny"
    if event is HookEvent.POST_TOOL_USE and "updatedToolOutput" in specific:
        updated = specific["updatedToolOutput"]
        if isinstance(updated, str):
            return HookReading.NEW_OUTPUT, updated
        return HookReading.WRONG_SCHEMA, "updatedToolOutput is not a text"
    return HookReading.NOTHING, ""
