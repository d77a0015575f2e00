"""What may follow what in a tool call's durable records, and what a restart makes of them (N2, N3, N4, N5, N6, N7).

Never reads the records themselves: the caller names them by kind.
"""

from enum import StrEnum

from reference_runtime.recovery.table import Table, impossible, row


class ReceiptState(StrEnum):
    """Where a tool call stands according to its durable records."""

    ABSENT = "absent"
    DISPATCHED = "dispatched"
    STARTED = "started"
    CONFIRMED = "confirmed"
    FAILED = "failed"
    CANCELLED = "cancelled"
    TIMED_OUT = "timed_out"
    LOST = "lost"
    NOT_STARTED = "not_started"
    USER_CONFIRMED = "user_confirmed"


class ReceiptRecord(StrEnum):
    """A durable record about one attempt of a tool call; the RESULT records carry the outcome in their name."""

    RECEIPT = "receipt"
    TOOL_STARTED = "tool_started"
    RESULT_CONFIRMED = "result_confirmed"
    RESULT_FAILED = "result_failed"
    RESULT_CANCELLED = "result_cancelled"
    RESULT_TIMED_OUT = "result_timed_out"
    RESULT_LOST = "result_lost"
    RESULT_NOT_STARTED = "result_not_started"
    USER_CONFIRMED = "user_confirmed"


class Effect(StrEnum):
    """Whether a tool declares that it changes nothing."""

    READ_ONLY = "read_only"
    WRITE = "write"


class Format(StrEnum):
    """What the absence of a record is worth: evidence, or nothing (an older format, or damage among the records)."""

    CURRENT = "current"
    OLDER = "older"
    DAMAGED = "damaged"


class CallVerdict(StrEnum):
    """What is known of a call after a restart."""

    SETTLED = "settled"
    NOT_STARTED = "not_started"
    UNKNOWN_HOLDS_WRITES = "unknown_holds_writes"
    UNKNOWN_READ = "unknown_read"


_RESULTS = tuple(record for record in ReceiptRecord if record.startswith("result_"))
_INTERRUPTED = (ReceiptState.CANCELLED, ReceiptState.TIMED_OUT, ReceiptState.LOST)
_CLOSED = (ReceiptState.CONFIRMED, ReceiptState.FAILED, ReceiptState.NOT_STARTED, ReceiptState.USER_CONFIRMED)
_AFTER_START = tuple(record for record in _RESULTS if record != ReceiptRecord.RESULT_NOT_STARTED)

TRANSITIONS: Table[ReceiptState] = Table(
    name="receipt_transitions",
    question="A durable record about an attempt is read or about to be written: which state does it lead to?",
    clauses=("N2", "N3", "N7"),
    facts={"state": tuple(ReceiptState), "record": tuple(ReceiptRecord)},
    rows=(
        row(
            "dispatch",
            ReceiptState.DISPATCHED,
            "The receipt is the first thing that is saved of a call.",
            state=(ReceiptState.ABSENT,),
            record=(ReceiptRecord.RECEIPT,),
        ),
        row(
            "start",
            ReceiptState.STARTED,
            "The start is on disk before the tool runs, so a missing start is evidence.",
            state=(ReceiptState.DISPATCHED,),
            record=(ReceiptRecord.TOOL_STARTED,),
        ),
        row(
            "withdraw",
            ReceiptState.NOT_STARTED,
            "The call was given up between its receipt and its start.",
            state=(ReceiptState.DISPATCHED,),
            record=(ReceiptRecord.RESULT_NOT_STARTED,),
        ),
        row(
            "confirm",
            ReceiptState.CONFIRMED,
            "The tool answered that it did its work.",
            state=(ReceiptState.STARTED,),
            record=(ReceiptRecord.RESULT_CONFIRMED,),
        ),
        row(
            "fail",
            ReceiptState.FAILED,
            "The tool itself answered that it did not succeed.",
            state=(ReceiptState.STARTED,),
            record=(ReceiptRecord.RESULT_FAILED,),
        ),
        row(
            "cancel",
            ReceiptState.CANCELLED,
            "The run was aborted while the tool worked; nobody heard its answer.",
            state=(ReceiptState.STARTED,),
            record=(ReceiptRecord.RESULT_CANCELLED,),
        ),
        row(
            "time-out",
            ReceiptState.TIMED_OUT,
            "The wait ended, which says nothing about the work.",
            state=(ReceiptState.STARTED,),
            record=(ReceiptRecord.RESULT_TIMED_OUT,),
        ),
        row(
            "lose",
            ReceiptState.LOST,
            "The connection to the tool ended before its answer came.",
            state=(ReceiptState.STARTED,),
            record=(ReceiptRecord.RESULT_LOST,),
        ),
        row(
            "user-confirm",
            ReceiptState.USER_CONFIRMED,
            "A person looked and vouches for the effect; no output is made up.",
            state=(ReceiptState.STARTED, *_INTERRUPTED),
            record=(ReceiptRecord.USER_CONFIRMED,),
        ),
    ),
    impossible=(
        impossible(
            "Nothing is recorded of an attempt before its receipt.",
            state=(ReceiptState.ABSENT,),
            record=tuple(r for r in ReceiptRecord if r != ReceiptRecord.RECEIPT),
        ),
        impossible(
            "A dispatched call can only start or be withdrawn.",
            state=(ReceiptState.DISPATCHED,),
            record=(ReceiptRecord.RECEIPT, *_AFTER_START, ReceiptRecord.USER_CONFIRMED),
        ),
        impossible(
            "A started call is not dispatched or started again under the same attempt, nor can it be withdrawn.",
            state=(ReceiptState.STARTED,),
            record=(ReceiptRecord.RECEIPT, ReceiptRecord.TOOL_STARTED, ReceiptRecord.RESULT_NOT_STARTED),
        ),
        impossible(
            "An interrupted attempt gets no late result; only a person can settle it.",
            state=_INTERRUPTED,
            record=(ReceiptRecord.RECEIPT, ReceiptRecord.TOOL_STARTED, *_RESULTS),
        ),
        impossible("A closed attempt changes no more.", state=_CLOSED),
    ),
)

AFTER_RESTART: Table[CallVerdict] = Table(
    name="after_restart",
    question="The program starts again on a session: what is known of a call?",
    clauses=("N4", "N5", "N6"),
    facts={"state": tuple(ReceiptState), "format": tuple(Format), "effect": tuple(Effect)},
    rows=(
        row(
            "settled",
            CallVerdict.SETTLED,
            "An answer of the tool or the word of a person is on disk.",
            state=(ReceiptState.CONFIRMED, ReceiptState.FAILED, ReceiptState.USER_CONFIRMED),
        ),
        row(
            "withdrawn",
            CallVerdict.NOT_STARTED,
            "The record itself says that the call was given up before it started.",
            state=(ReceiptState.NOT_STARTED,),
        ),
        row(
            "never-started",
            CallVerdict.NOT_STARTED,
            "This format saves the start before the tool runs; without a start nothing ran.",
            state=(ReceiptState.ABSENT, ReceiptState.DISPATCHED),
            format=(Format.CURRENT,),
        ),
        row(
            "no-evidence-write",
            CallVerdict.UNKNOWN_HOLDS_WRITES,
            "An older format saved no start, and damage may have swallowed one: its absence proves nothing.",
            state=(ReceiptState.ABSENT, ReceiptState.DISPATCHED),
            format=(Format.OLDER, Format.DAMAGED),
            effect=(Effect.WRITE,),
        ),
        row(
            "no-evidence-read",
            CallVerdict.UNKNOWN_READ,
            "Whether it ran is unknown, and a read changed nothing either way.",
            state=(ReceiptState.ABSENT, ReceiptState.DISPATCHED),
            format=(Format.OLDER, Format.DAMAGED),
            effect=(Effect.READ_ONLY,),
        ),
        row(
            "started-write",
            CallVerdict.UNKNOWN_HOLDS_WRITES,
            "It began and no answer was kept: the effect may or may not be there.",
            state=(ReceiptState.STARTED, *_INTERRUPTED),
            effect=(Effect.WRITE,),
        ),
        row(
            "started-read",
            CallVerdict.UNKNOWN_READ,
            "It began and no answer was kept; a read leaves nothing behind.",
            state=(ReceiptState.STARTED, *_INTERRUPTED),
            effect=(Effect.READ_ONLY,),
        ),
    ),
)
