"""The turn ledger: what is durably known of each tool call, and which unknown writes hold the barrier (N1 to N7).

It keeps receipts in the session's own transcript. It never runs a tool and never knows the truth about the outside
world.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from reference_runtime.digests import arguments_digest, idempotency_key
from reference_runtime.recovery.receipts import (
    AFTER_RESTART,
    TRANSITIONS,
    CallVerdict,
    Effect,
    Format,
    ReceiptRecord,
    ReceiptState,
)
from reference_runtime.transcript import FORMAT_VERSION, Record


class Append(Protocol):
    """Makes one record durable before it returns; raises JournalError when it cannot."""

    def __call__(self, kind: str, **fields: Any) -> None:
        """Append a record of this kind."""


@dataclass
class Receipt:
    """One attempt of one tool call, as its durable records tell it."""

    call_id: str
    attempt_id: str
    tool: str
    turn: int
    effect: Effect
    arguments: Mapping[str, Any]
    digest: str
    idempotency_key: str
    state: ReceiptState = ReceiptState.ABSENT
    format: Format = Format.CURRENT
    result: tuple[Mapping[str, Any], ...] = ()
    is_error: bool = False

    @property
    def verdict(self) -> CallVerdict:
        """What would be known of this call if the program started now."""
        return AFTER_RESTART.decide(state=self.state, format=self.format, effect=self.effect).decision


class TurnLedger:
    """The receipts of one session, in the order of their dispatch."""

    def __init__(self, session_id: str, append: Append, new_id: Callable[[], str]) -> None:
        self._session_id = session_id
        self._append = append
        self._new_id = new_id
        self._receipts: dict[str, Receipt] = {}

    def dispatch(self, call_id: str, tool: str, turn: int, effect: Effect, arguments: Mapping[str, Any]) -> Receipt:
        """Save the receipt of a call whose arguments, target and permission are already checked (N1, N2)."""
        digest = arguments_digest(arguments)
        receipt = Receipt(
            call_id=call_id,
            attempt_id=self._new_id(),
            tool=tool,
            turn=turn,
            effect=effect,
            arguments=arguments,
            digest=digest,
            idempotency_key=idempotency_key(self._session_id, call_id, tool, digest),
        )
        state = _next_state(receipt, ReceiptRecord.RECEIPT)
        self._append(
            ReceiptRecord.RECEIPT,
            session_id=self._session_id,
            call_id=call_id,
            attempt_id=receipt.attempt_id,
            tool=tool,
            turn=turn,
            effect=effect,
            arguments=arguments,
            digest=digest,
            idempotency_key=receipt.idempotency_key,
        )
        receipt.state = state
        self._receipts[receipt.attempt_id] = receipt
        return receipt

    def start(self, receipt: Receipt) -> None:
        """Save that the tool is about to run; it may run only after this returned."""
        self._move(receipt, ReceiptRecord.TOOL_STARTED)

    def finish(
        self, receipt: Receipt, record: ReceiptRecord, result: tuple[Mapping[str, Any], ...], *, is_error: bool
    ) -> None:
        """Save how the attempt ended, with the content blocks of its result."""
        self._move(receipt, record, content=list(result), is_error=is_error)
        receipt.result, receipt.is_error = result, is_error

    def receipt_of(self, call_id: str) -> Receipt | None:
        """The newest receipt of a call id, or None."""
        return next((receipt for receipt in reversed(self._receipts.values()) if receipt.call_id == call_id), None)

    def receipts(self) -> tuple[Receipt, ...]:
        """Every receipt in the order of dispatch."""
        return tuple(self._receipts.values())

    def unknown_writes(self) -> tuple[Receipt, ...]:
        """The writes whose outcome is unknown; while there is one, no other write may run (N5)."""
        return tuple(r for r in self._receipts.values() if r.verdict is CallVerdict.UNKNOWN_HOLDS_WRITES)

    def confirmed_by_user(self, tool: str, arguments: Mapping[str, Any]) -> Receipt | None:
        """The receipt of the same tool and arguments that a person confirmed, or None (N6)."""
        digest = arguments_digest(arguments)
        return next(
            (
                receipt
                for receipt in self._receipts.values()
                if receipt.state is ReceiptState.USER_CONFIRMED and receipt.tool == tool and receipt.digest == digest
            ),
            None,
        )

    def adopt_unrecorded(self, call_id: str, tool: str, turn: int, arguments: Mapping[str, Any], why: Format) -> None:
        """Take in a call of which no receipt is left and none proves anything; it counts as a write."""
        digest = arguments_digest(arguments)
        key = idempotency_key(self._session_id, call_id, tool, digest)
        attempt_id = f"unrecorded-{call_id}"
        self._receipts.setdefault(
            attempt_id, Receipt(call_id, attempt_id, tool, turn, Effect.WRITE, arguments, digest, key, format=why)
        )

    def replay(self, record: Record) -> None:
        """Take in a durable record of an earlier run; a record that is none of the ledger's is left alone.

        Raises:
            ImpossibleFactsError: The records of an attempt contradict each other.
            KeyError: The record lacks a field.
        """
        if record.kind not in tuple(ReceiptRecord):
            return
        kind, fields = ReceiptRecord(record.kind), record.fields
        attempt_id = fields["attempt_id"]
        if kind is ReceiptRecord.RECEIPT and attempt_id not in self._receipts:
            self._receipts[attempt_id] = _receipt_of(record)
        receipt = self._receipts.get(attempt_id)
        if receipt is None:
            # The receipt itself is gone: what is left proves that there was a call and not what it was.
            self.adopt_unrecorded(fields["call_id"], "unknown", 0, {}, Format.DAMAGED)
            return
        receipt.state = _next_state(receipt, kind)
        if "content" in fields:
            receipt.result, receipt.is_error = tuple(fields["content"]), fields["is_error"]

    def distrust(self, call_ids: Iterable[str]) -> None:
        """Let missing records of these calls prove nothing, since damage may have swallowed them."""
        for call_id in call_ids:
            receipt = self.receipt_of(call_id)
            if receipt is not None:
                receipt.format = Format.DAMAGED

    def _move(self, receipt: Receipt, record: ReceiptRecord, **fields: Any) -> None:
        state = _next_state(receipt, record)
        self._append(record, call_id=receipt.call_id, attempt_id=receipt.attempt_id, **fields)
        receipt.state = state


def _receipt_of(record: Record) -> Receipt:
    fields = record.fields
    return Receipt(
        call_id=fields["call_id"],
        attempt_id=fields["attempt_id"],
        tool=fields["tool"],
        turn=fields["turn"],
        effect=Effect(fields["effect"]),
        arguments=fields["arguments"],
        digest=fields["digest"],
        idempotency_key=fields["idempotency_key"],
        format=Format.OLDER if record.version < FORMAT_VERSION else Format.CURRENT,
    )


def _next_state(receipt: Receipt, record: ReceiptRecord) -> ReceiptState:
    return TRANSITIONS.decide(state=receipt.state, record=record).decision
