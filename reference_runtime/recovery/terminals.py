"""How a run ends: terminal reason and signal to subtype and exit code (L1, L2).

Never decides that a run is to end; it only says what an ending looks like from outside.
"""

from dataclasses import dataclass
from enum import StrEnum

from reference_runtime.recovery.table import Table, impossible, row


class Terminal(StrEnum):
    """The typed reason why a run ended (L1)."""

    COMPLETED = "completed"
    MAX_TURNS = "max_turns"
    BACKGROUND_REQUESTED = "background_requested"
    TOOL_DEFERRED = "tool_deferred"
    HOOK_STOPPED = "hook_stopped"
    ABORTED_STREAMING = "aborted_streaming"
    ABORTED_TOOLS = "aborted_tools"
    PROMPT_TOO_LONG = "prompt_too_long"
    RAPID_REFILL_BREAKER = "rapid_refill_breaker"
    MALFORMED_TOOL_USE_EXHAUSTED = "malformed_tool_use_exhausted"
    MAX_OUTPUT_EXHAUSTED = "max_output_exhausted"
    MODEL_ERROR = "model_error"
    API_ERROR = "api_error"
    REFUSED = "refused"
    RECOVERY_REQUIRED = "recovery_required"
    LOOP_WAKEUP = "loop_wakeup"


class Signal(StrEnum):
    """The signal that ended a run, if one did."""

    NONE = "none"
    INTERRUPT = "interrupt"
    TERMINATE = "terminate"


class Subtype(StrEnum):
    """The subtype of the result frame (L2)."""

    SUCCESS = "success"
    ERROR_MAX_TURNS = "error_max_turns"
    ERROR_DURING_EXECUTION = "error_during_execution"


@dataclass(frozen=True)
class Ending:
    """What an ending looks like from outside; exit code as the shell sees it."""

    subtype: Subtype
    exit_code: int

    def __str__(self) -> str:
        return f"{self.subtype}, exit {self.exit_code}"


_ABORTED = (Terminal.ABORTED_STREAMING, Terminal.ABORTED_TOOLS)
_OTHERS = tuple(t for t in Terminal if t not in (*_ABORTED, Terminal.COMPLETED, Terminal.MAX_TURNS))

ENDINGS: Table[Ending] = Table(
    name="endings",
    question="A run has ended: which subtype and which exit code does it report?",
    clauses=("L1", "L2"),
    facts={"terminal": tuple(Terminal), "signal": tuple(Signal)},
    rows=(
        row(
            "success",
            Ending(Subtype.SUCCESS, 0),
            "The model came to its own end and nothing is left open.",
            terminal=(Terminal.COMPLETED,),
            signal=(Signal.NONE,),
        ),
        row(
            "turn-budget",
            Ending(Subtype.ERROR_MAX_TURNS, 1),
            "The caller set the budget and has to be able to tell it from a failure.",
            terminal=(Terminal.MAX_TURNS,),
            signal=(Signal.NONE,),
        ),
        row(
            "stopped-short",
            Ending(Subtype.ERROR_DURING_EXECUTION, 1),
            "The task may be unfinished, so a script must not take this for success.",
            terminal=_OTHERS,
            signal=(Signal.NONE,),
        ),
        row(
            "interrupted",
            Ending(Subtype.ERROR_DURING_EXECUTION, 130),
            "A shell reports SIGINT as 128 + 2.",
            terminal=_ABORTED,
            signal=(Signal.INTERRUPT,),
        ),
        row(
            "terminated",
            Ending(Subtype.ERROR_DURING_EXECUTION, 143),
            "A shell reports SIGTERM as 128 + 15.",
            terminal=_ABORTED,
            signal=(Signal.TERMINATE,),
        ),
    ),
    impossible=(
        impossible("Only a signal aborts a run.", terminal=_ABORTED, signal=(Signal.NONE,)),
        impossible(
            "A signal that ends a run gives it an aborted terminal.",
            terminal=(Terminal.COMPLETED, Terminal.MAX_TURNS, *_OTHERS),
            signal=(Signal.INTERRUPT, Signal.TERMINATE),
        ),
    ),
)
