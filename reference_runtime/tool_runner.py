"""Runs the tool calls of one reply: checks, hooks, permission, barrier, receipt, start, work, result (F, G, N).

The order is the contract's: everything that can refuse a call comes before anything durable, and the tool runs only
after its start is on disk. It never repeats a call.
"""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from reference_runtime.frames import FrameSink, system_frame
from reference_runtime.hooks import HookRunner, HookWords
from reference_runtime.ledger import Append, Receipt, TurnLedger
from reference_runtime.permissions import Permissions
from reference_runtime.recovery.hooks import HookEvent, HookOutcome
from reference_runtime.recovery.receipts import Effect, ReceiptRecord
from reference_runtime.recovery.tools import TOOL_FAILURES, ToolFailure
from reference_runtime.recovery.turns import HookVerdict
from reference_runtime.schema import problems
from reference_runtime.tools.tool import CallIdentity, Tool, ToolAnswer, ToolInterruptedError

Block = Mapping[str, Any]


@dataclass
class ToolBatch:
    """The calls of one reply and their results so far; every call gets exactly one result."""

    calls: tuple[Block, ...]
    unreadable: frozenset[str]
    turn: int
    results: list[dict[str, Any]] = field(default_factory=list)
    hooks: HookVerdict = HookVerdict.ACCEPTED
    stop_reason: str = ""


class RefusedCallError(Exception):
    """A call is refused before anything durable was written; the text goes to the model."""

    def __init__(self, failure: ToolFailure, message: str) -> None:
        super().__init__(message)
        self.failure = failure


class ToolRunner:
    """Runs the tool calls of one session, one after the other."""

    def __init__(
        self,
        tools: Sequence[Tool],
        ledger: TurnLedger,
        hooks: HookRunner,
        permissions: Permissions,
        append: Append,
        sink: FrameSink,
    ) -> None:
        self._tools = {tool.spec.name: tool for tool in tools}
        self._ledger = ledger
        self._hooks = hooks
        self._permissions = permissions
        self._append = append
        self._sink = sink
        self.permission_denials: list[dict[str, Any]] = []
        self.writes_held = 0

    async def run(self, batch: ToolBatch) -> None:
        """Run the calls in order; when this is cancelled, the results so far are in the batch."""
        for call in batch.calls:
            if batch.hooks is HookVerdict.STOPPED:
                break
            await self._run_call(call, batch)
        self.answer_rest(batch, f"not started: the run was stopped by a hook: {batch.stop_reason}")

    def answer_rest(self, batch: ToolBatch, text: str) -> None:
        """Give every call of the batch that has no result an error result; those calls never started."""
        answered = {result["tool_use_id"] for result in batch.results}
        batch.results += [_error(call["id"], text) for call in batch.calls if call["id"] not in answered]

    async def _run_call(self, call: Block, batch: ToolBatch) -> None:
        try:
            tool, words = await self._admit(call, batch)
        except RefusedCallError as refusal:
            self._append("tool_refused", call_id=call["id"], tool=call["name"], failure=refusal.failure)
            batch.results.append(_error(call["id"], str(refusal)))
            return
        receipt = self._ledger.dispatch(call["id"], call["name"], batch.turn, tool.spec.effect, call["input"])
        self._ledger.start(receipt)
        result, answered = await self._work(tool, receipt, batch)
        # In the batch before any hook runs: an abort during a hook must not take the result away.
        batch.results.append(result)
        if answered:
            await self._after(receipt, result, batch, words)

    async def _admit(self, call: Block, batch: ToolBatch) -> tuple[Tool, HookWords]:
        """Everything that may refuse a call, in the order of the contract (N1)."""
        name, arguments = call["name"], call["input"]
        tool = self._tools.get(name)
        if tool is None:
            known = ", ".join(sorted(self._tools))
            raise RefusedCallError(ToolFailure.UNKNOWN_TOOL, f"there is no tool {name}; there are: {known}")
        if call["id"] in batch.unreadable:
            raise RefusedCallError(ToolFailure.UNREADABLE_INPUT, f"the input for {name} is not a whole JSON object")
        wrong = problems(tool.spec.input_schema, arguments)
        if wrong:
            raise RefusedCallError(ToolFailure.INVALID_INPUT, f"invalid input for {name}: {'; '.join(wrong)}")
        words = await self._hooks.run(HookEvent.PRE_TOOL_USE, name, tool_input=arguments, tool_use_id=call["id"])
        self._check_hooks(name, words, batch)
        denial = None if words.first(HookOutcome.ALLOW) else self._permissions.denial(tool.spec)
        if denial is not None:
            self.permission_denials.append({"tool_name": name, "tool_use_id": call["id"], "tool_input": arguments})
            raise RefusedCallError(ToolFailure.DENIED_BY_PERMISSION, denial)
        self._check_barrier(call, tool)
        if tool.unavailable_because is not None:
            raise RefusedCallError(ToolFailure.SERVER_UNAVAILABLE, f"{name} is not there: {tool.unavailable_because}")
        return tool, words

    def _check_hooks(self, name: str, words: HookWords, batch: ToolBatch) -> None:
        denied, stopped = words.first(HookOutcome.DENY), words.first(HookOutcome.STOP_RUN)
        if denied is not None:
            raise RefusedCallError(ToolFailure.DENIED_BY_HOOK, f"a hook denied {name}: {denied.detail}")
        if stopped is not None:
            batch.hooks, batch.stop_reason = HookVerdict.STOPPED, stopped.detail
            raise RefusedCallError(
                ToolFailure.DENIED_BY_HOOK, f"a hook stopped the run before {name}: {stopped.detail}"
            )

    def _check_barrier(self, call: Block, tool: Tool) -> None:
        """Hold writes while the outcome of an earlier write is unknown (N5), and repeats of confirmed ones (N6)."""
        if tool.spec.effect is Effect.READ_ONLY:
            return
        unknown = self._ledger.unknown_writes()
        if unknown:
            self.writes_held += 1
            first = unknown[0]
            raise RefusedCallError(
                ToolFailure.HELD_BY_BARRIER,
                f"This write is held back. The outcome of call {first.call_id} of tool {first.tool} is unknown: it may "
                "have happened. Writes are held until a person confirms it; read-only tools still work.",
            )
        confirmed = self._ledger.confirmed_by_user(call["name"], call["input"])
        if confirmed is not None:
            raise RefusedCallError(
                ToolFailure.ALREADY_CONFIRMED,
                f"A person confirmed that call {confirmed.call_id} of this tool with these arguments took effect; it "
                "is not repeated. Its output is not known.",
            )

    async def _work(self, tool: Tool, receipt: Receipt, batch: ToolBatch) -> tuple[dict[str, Any], bool]:
        """Run the tool and save how it ended; the flag says whether the tool itself answered."""
        identity = CallIdentity(receipt.call_id, receipt.attempt_id, receipt.idempotency_key)
        try:
            answer = await tool.run(receipt.arguments, identity)
        except ToolInterruptedError as interruption:
            return self._interrupted(receipt, interruption.failure, str(interruption)), False
        except asyncio.CancelledError:
            batch.results.append(self._interrupted(receipt, ToolFailure.CANCELLED, "the run was aborted"))
            raise
        except Exception as error:  # noqa: BLE001 - whatever a tool raises is a result for the model (F1)
            message = f"the tool broke off with {type(error).__name__}: {error}"
            return self._interrupted(receipt, ToolFailure.TOOL_EXCEPTION, message), False
        record = ReceiptRecord.RESULT_CONFIRMED
        if answer.is_error:
            row = TOOL_FAILURES.decide(failure=ToolFailure.TOOL_ERROR, effect=receipt.effect)
            record = row.decision.record or record
        self._ledger.finish(receipt, record, answer.content, is_error=answer.is_error)
        return _result(receipt.call_id, answer), True

    def _interrupted(self, receipt: Receipt, failure: ToolFailure, message: str) -> dict[str, Any]:
        decision = TOOL_FAILURES.decide(failure=failure, effect=receipt.effect).decision
        assert decision.record is not None
        text = unknown_outcome_text(receipt.call_id, receipt.tool, message) if decision.unknown else message
        result = _error(receipt.call_id, text)
        self._ledger.finish(receipt, decision.record, tuple(result["content"]), is_error=True)
        return result

    async def _after(self, receipt: Receipt, result: dict[str, Any], batch: ToolBatch, before: HookWords) -> None:
        """Run PostToolUse and let it replace the output, add feedback, or stop the run; it never hides a success."""
        words = await self._hooks.run(
            HookEvent.POST_TOOL_USE,
            receipt.tool,
            tool_input=receipt.arguments,
            tool_response=result["content"],
            tool_use_id=receipt.call_id,
        )
        replaced = words.first(HookOutcome.REPLACE_OUTPUT)
        if replaced is not None:
            result["content"] = [{"type": "text", "text": replaced.detail or "(no output)"}]
        notes = [f"A hook says: {text}" for text in words.texts(HookOutcome.BLOCK)]
        notes += [
            f"Hook error: {text}"
            for text in (*before.texts(HookOutcome.HOOK_ERROR), *words.texts(HookOutcome.HOOK_ERROR))
        ]
        result["content"] = [*result["content"], *({"type": "text", "text": note} for note in notes)]
        for text in words.texts(HookOutcome.HOOK_ERROR):
            self._sink.emit(system_frame("warning", message=f"PostToolUse hook of {receipt.tool}: {text}"))
        stopped = words.first(HookOutcome.STOP_RUN)
        if stopped is not None:
            batch.hooks, batch.stop_reason = HookVerdict.STOPPED, stopped.detail


def unknown_outcome_text(call_id: str, tool: str, why: str) -> str:
    """What the model is told of a write whose outcome is unknown (N4, N5)."""
    return (
        f"The outcome of call {call_id} of tool {tool} is unknown: {why}. It may have happened. Writes of this session "
        "are held until a person confirms it; read-only tools still work."
    )


def _result(call_id: str, answer: ToolAnswer) -> dict[str, Any]:
    result: dict[str, Any] = {"type": "tool_result", "tool_use_id": call_id, "content": list(answer.content)}
    return {**result, "is_error": True} if answer.is_error else result


def _error(call_id: str, text: str) -> dict[str, Any]:
    content = [{"type": "text", "text": text}]
    return {"type": "tool_result", "tool_use_id": call_id, "content": content, "is_error": True}
