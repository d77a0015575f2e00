"""What a failed tool call becomes (F1, F2, N3, N5): the class of its error result and the outcome that is recorded.

Never runs a tool and never writes the result.
"""

from dataclasses import dataclass
from enum import StrEnum

from reference_runtime.recovery.receipts import Effect, ReceiptRecord
from reference_runtime.recovery.table import Table, row


class ToolFailure(StrEnum):
    """How a tool call failed. The first group never started; the second started."""

    UNKNOWN_TOOL = "unknown_tool"
    UNREADABLE_INPUT = "unreadable_input"
    INVALID_INPUT = "invalid_input"
    DENIED_BY_HOOK = "denied_by_hook"
    DENIED_BY_PERMISSION = "denied_by_permission"
    HELD_BY_BARRIER = "held_by_barrier"
    ALREADY_CONFIRMED = "already_confirmed"
    SERVER_UNAVAILABLE = "server_unavailable"
    RUN_ABORTED = "run_aborted"
    TOOL_ERROR = "tool_error"
    CANCELLED = "cancelled"
    TIMED_OUT = "timed_out"
    CONNECTION_LOST = "connection_lost"
    TOOL_EXCEPTION = "tool_exception"


@dataclass(frozen=True)
class FailureResult:
    """What becomes of a failed call: what is recorded of a started attempt, and whether its outcome is unknown."""

    record: ReceiptRecord | None
    unknown: bool

    def __str__(self) -> str:
        recorded = self.record.value if self.record else "no receipt"
        return f"error result, {recorded}{', outcome unknown' if self.unknown else ''}"


_REFUSED = (
    ToolFailure.UNKNOWN_TOOL,
    ToolFailure.UNREADABLE_INPUT,
    ToolFailure.INVALID_INPUT,
    ToolFailure.DENIED_BY_HOOK,
    ToolFailure.DENIED_BY_PERMISSION,
    ToolFailure.HELD_BY_BARRIER,
    ToolFailure.ALREADY_CONFIRMED,
    ToolFailure.SERVER_UNAVAILABLE,
    ToolFailure.RUN_ABORTED,
)

TOOL_FAILURES: Table[FailureResult] = Table(
    name="tool_failures",
    question="A tool call did not succeed: what is recorded, and is its outcome known?",
    clauses=("F1", "F2", "N1", "N3", "N5"),
    facts={"failure": tuple(ToolFailure), "effect": tuple(Effect)},
    rows=(
        row(
            "refused",
            FailureResult(None, unknown=False),
            "Checks come before anything durable; the model gets a paired error and may choose otherwise.",
            failure=_REFUSED,
        ),
        row(
            "tool-said-no",
            FailureResult(ReceiptRecord.RESULT_FAILED, unknown=False),
            "The tool answered; an answer that says no is a known outcome.",
            failure=(ToolFailure.TOOL_ERROR,),
        ),
        row(
            "cancelled-write",
            FailureResult(ReceiptRecord.RESULT_CANCELLED, unknown=True),
            "The run was aborted while a write was under way.",
            failure=(ToolFailure.CANCELLED,),
            effect=(Effect.WRITE,),
        ),
        row(
            "cancelled-read",
            FailureResult(ReceiptRecord.RESULT_CANCELLED, unknown=False),
            "The run was aborted while a read was under way; nothing is left behind.",
            failure=(ToolFailure.CANCELLED,),
            effect=(Effect.READ_ONLY,),
        ),
        row(
            "timed-out-write",
            FailureResult(ReceiptRecord.RESULT_TIMED_OUT, unknown=True),
            "The wait ended; the write may still have happened or may yet happen.",
            failure=(ToolFailure.TIMED_OUT,),
            effect=(Effect.WRITE,),
        ),
        row(
            "timed-out-read",
            FailureResult(ReceiptRecord.RESULT_TIMED_OUT, unknown=False),
            "The wait for a read ended; nothing is left behind.",
            failure=(ToolFailure.TIMED_OUT,),
            effect=(Effect.READ_ONLY,),
        ),
        row(
            "lost-write",
            FailureResult(ReceiptRecord.RESULT_LOST, unknown=True),
            "The tool had the call and broke off, or its server was lost, before there was an answer.",
            failure=(ToolFailure.CONNECTION_LOST, ToolFailure.TOOL_EXCEPTION),
            effect=(Effect.WRITE,),
        ),
        row(
            "lost-read",
            FailureResult(ReceiptRecord.RESULT_LOST, unknown=False),
            "The answer to a read never came; nothing is left behind.",
            failure=(ToolFailure.CONNECTION_LOST, ToolFailure.TOOL_EXCEPTION),
            effect=(Effect.READ_ONLY,),
        ),
    ),
)
