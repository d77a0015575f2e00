"""One session: its transcript, its message graph and its turn ledger, new or rebuilt from disk (J1 to J4, N4, N8).

It restores the logical history. It never revives a process, a connection or a background task, and it never guesses
what a call did.
"""

import uuid
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from reference_runtime.clock import Clock
from reference_runtime.graph import Block, Message, MessageGraph, RepeatedMessageError
from reference_runtime.ledger import Receipt, TurnLedger
from reference_runtime.records import misfit
from reference_runtime.recovery.receipts import CallVerdict, Format, ReceiptRecord
from reference_runtime.recovery.table import ImpossibleFactsError
from reference_runtime.transcript import (
    FORMAT_VERSION,
    Damage,
    Record,
    TranscriptContent,
    TranscriptWriter,
    read_transcript,
)


class UnknownSessionError(Exception):
    """There is no session with this id (J3)."""


@dataclass(frozen=True)
class SessionHistory:
    """What a transcript tells: messages, calls, endings and damage. The reader for whoever only looks."""

    session_id: str
    graph: MessageGraph
    ledger: TurnLedger
    terminal_reasons: tuple[str, ...]
    damages: tuple[Damage, ...]
    model: str
    working_folder: str
    began_at: str

    @property
    def messages(self) -> list[Message]:
        """The active messages in order."""
        return self.graph.active()

    @property
    def receipts(self) -> tuple[Receipt, ...]:
        """Every tool call in the order of dispatch; `receipt.verdict` says what is known of it."""
        return self.ledger.receipts()


def new_id() -> str:
    """A new random identifier (UUID, RFC 9562)."""
    return str(uuid.uuid4())


def transcript_path(home: Path, session_id: str) -> Path:
    """Where the transcript of a session is kept."""
    return home / "sessions" / f"{session_id}.jsonl"


def read_session(path: Path) -> SessionHistory:
    """Read a session without changing anything.

    Raises:
        UnknownSessionError: There is no such file, or no intact record in it.
        NewerFormatError: It was written by a newer version.
        ImpossibleFactsError: The records of a tool call contradict each other.
    """
    content = _read(path)

    def refuse_to_write(kind: str, **_fields: Any) -> None:
        raise AssertionError(f"a reader tried to record {kind}")

    ledger = TurnLedger(path.stem, refuse_to_write, new_id)
    return _rebuild(path.stem, content, ledger)


def _read(path: Path) -> TranscriptContent:
    try:
        content = read_transcript(path)
    except FileNotFoundError as error:
        raise UnknownSessionError(path.stem) from error
    if not content.records:
        raise UnknownSessionError(path.stem)
    return content


def _rebuild(session_id: str, content: TranscriptContent, ledger: TurnLedger) -> SessionHistory:
    graph = MessageGraph()
    opening: Mapping[str, Any] = {}
    terminals: list[str] = []
    unusable: list[Damage] = []
    inner_damage = max((damage.line for damage in content.damages if not damage.at_end), default=0)
    for record in content.records:
        if (reason := misfit(record)) is not None:
            unusable.append(Damage(record.line, reason, at_end=False))
            continue
        try:
            match record.kind:
                case "session":
                    opening = opening or {**record.fields, "at": record.at}
                case "message":
                    message = _message(record)
                    if message.parent_uuid is not None and message.parent_uuid not in graph:
                        # What it answered is lost, and what is known of the rest must not be lost with it.
                        unusable.append(Damage(record.line, "a message whose parent is not there", at_end=False))
                        message = replace(message, parent_uuid=graph.leaf)
                    graph.add(message)
                case "tombstone":
                    graph.tombstone(record.fields["uuids"])
                case "run_ended":
                    terminals.append(record.fields["terminal_reason"])
                case _:
                    ledger.replay(record)
        except RepeatedMessageError as error:
            unusable.append(Damage(record.line, f"message {error} is there twice", at_end=False))
        except ImpossibleFactsError:
            # With a hole among the records a contradiction is expected; without one nothing here can be trusted.
            if not inner_damage and not unusable:
                raise
            ledger.distrust([record.fields["call_id"]])
    inner_damage = max([inner_damage, *(damage.line for damage in unusable)])
    _adopt_without_evidence(graph, ledger, content, inner_damage)
    return SessionHistory(
        session_id=session_id,
        graph=graph,
        ledger=ledger,
        terminal_reasons=tuple(terminals),
        damages=tuple(d for d in (*content.damages, *unusable) if d.line not in content.reported_lines),
        model=opening.get("model", ""),
        working_folder=opening.get("cwd", ""),
        began_at=opening.get("at", ""),
    )


def _adopt_without_evidence(
    graph: MessageGraph, ledger: TurnLedger, content: TranscriptContent, inner_damage: int
) -> None:
    """Make calls unknown whose start may have been recorded where now is damage, or was never recorded (N4)."""
    older = any(record.version < FORMAT_VERSION for record in content.records)
    sound = [record for record in content.records if misfit(record) is None]
    receipts = [record for record in sound if record.kind in frozenset(ReceiptRecord)]
    before_damage = {record.fields["call_id"] for record in receipts if record.line < inner_damage}
    ledger.distrust(receipt.call_id for receipt in ledger.receipts() if receipt.call_id in before_damage)
    written_at = {record.fields["uuid"]: record.line for record in sound if record.kind == "message"}
    for message, call in graph.unanswered_calls():
        damaged = written_at[message.uuid] < inner_damage
        if ledger.receipt_of(call["id"]) is None and (older or damaged):
            why = Format.DAMAGED if damaged else Format.OLDER
            ledger.adopt_unrecorded(call["id"], call["name"], message.turn, call["input"], why)


def _message(record: Record) -> Message:
    fields = record.fields
    return Message(
        uuid=fields["uuid"],
        parent_uuid=fields["parent_uuid"],
        role=fields["role"],
        content=tuple(fields["content"]),
        turn=fields["turn"],
        hidden=fields.get("hidden", False),
        details=fields.get("details", {}),
    )


class Session:
    """A session that is being written: every message and record is on disk before it counts."""

    def __init__(self, session_id: str, path: Path, clock: Clock) -> None:
        """Open the transcript, which may hold nothing yet."""
        self.session_id = session_id
        self.path = path
        self.graph = MessageGraph()
        self.ledger = TurnLedger(session_id, self.append, new_id)
        self.damages: tuple[Damage, ...] = ()
        self.model = ""
        self._clock = clock
        self._writer = TranscriptWriter(path)

    @classmethod
    def begin(cls, home: Path, session_id: str, clock: Clock, *, model: str, cwd: str) -> "Session":
        """Begin a new session."""
        session = cls(session_id, transcript_path(home, session_id), clock)
        session.append("session", session_id=session_id, model=model, cwd=cwd)
        return session

    @classmethod
    def resume(cls, home: Path, session_id: str, clock: Clock) -> "Session":
        """Open an existing session with its graph and ledger.

        Raises:
            UnknownSessionError: There is none.
            NewerFormatError: It was written by a newer version.
            ImpossibleFactsError: The records of a tool call contradict each other.
        """
        path = transcript_path(home, session_id)
        if not path.is_file():
            raise UnknownSessionError(session_id)
        # Opened, which takes the lock, before it is read: what another process still writes is not to be missed.
        session = cls(session_id, path, clock)
        try:
            history = _rebuild(session_id, _read(path), session.ledger)
        except BaseException:
            session.close()
            raise
        session.graph, session.damages, session.model = history.graph, history.damages, history.model
        if session.damages:
            session.append("damage_seen", damages=[asdict(damage) for damage in session.damages])
        return session

    def append(self, kind: str, **fields: Any) -> None:
        """Make one record durable. Raises JournalError when it cannot be."""
        self._writer.append(kind, self._clock.now().isoformat(), **fields)

    def say(
        self,
        role: str,
        content: tuple[Block, ...],
        turn: int,
        *,
        hidden: bool = False,
        details: Mapping[str, Any] | None = None,
    ) -> Message:
        """Record a message as the new leaf."""
        message = Message(new_id(), self.graph.leaf, role, content, turn, hidden, details or {})
        self.append(
            "message",
            uuid=message.uuid,
            parent_uuid=message.parent_uuid,
            role=role,
            content=list(content),
            turn=turn,
            hidden=hidden,
            details=message.details,
        )
        self.graph.add(message)
        return message

    def tombstone(self, uuids: tuple[str, ...], reason: str) -> None:
        """Take messages out of the active branch for good (C6)."""
        self.append("tombstone", uuids=list(uuids), reason=reason)
        self.graph.tombstone(uuids)

    def close(self) -> None:
        """Close the transcript."""
        self._writer.close()


@dataclass(frozen=True)
class OrphanCall:
    """A tool call of an earlier run that no message answers: what is known of it and the result it now gets."""

    call_id: str
    tool: str
    attempt_id: str | None
    verdict: CallVerdict
    result: Mapping[str, Any]


def orphan_calls(session: Session) -> list[OrphanCall]:
    """The calls that an earlier run left without an answer, each with the result that says what is known (J4, N4)."""
    orphans = []
    for _message_of_call, call in session.graph.unanswered_calls():
        receipt = session.ledger.receipt_of(call["id"])
        verdict = receipt.verdict if receipt is not None else CallVerdict.NOT_STARTED
        orphans.append(
            OrphanCall(
                call_id=call["id"],
                tool=call["name"],
                attempt_id=receipt.attempt_id if receipt is not None else None,
                verdict=verdict,
                result=_orphan_result(call, receipt, verdict),
            )
        )
    return orphans


def _orphan_result(call: Block, receipt: Receipt | None, verdict: CallVerdict) -> Mapping[str, Any]:
    if verdict is CallVerdict.SETTLED and receipt is not None and receipt.result:
        recorded = {"type": "tool_result", "tool_use_id": call["id"], "content": list(receipt.result)}
        return {**recorded, "is_error": True} if receipt.is_error else recorded
    text = _ORPHAN_TEXTS[verdict].format(call_id=call["id"], tool=call["name"])
    content = [{"type": "text", "text": text}]
    return {"type": "tool_result", "tool_use_id": call["id"], "content": content, "is_error": True}


_ORPHAN_TEXTS: Mapping[CallVerdict, str] = {
    CallVerdict.SETTLED: "A person confirmed that call {call_id} of tool {tool} took effect. Its output is not known.",
    CallVerdict.NOT_STARTED: "Call {call_id} of tool {tool} was not started: the program ended before it began.",
    CallVerdict.UNKNOWN_HOLDS_WRITES: (
        "The outcome of call {call_id} of tool {tool} is unknown: it was started and the program ended before a result "
        "was confirmed. It may have happened. Writes of this session are held until a person confirms it; read-only "
        "tools still work."
    ),
    CallVerdict.UNKNOWN_READ: (
        "The outcome of call {call_id} of tool {tool} is unknown: the program ended before its result was confirmed. "
        "It only reads, so it may be asked again."
    ),
}
