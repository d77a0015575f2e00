"""The agent loop: one prompt to one terminal reason, over model requests, tools and Stop hooks (B1, D, G3, L1, N5).

It owns turns and the budgets of the output recoveries. Attempts belong to the request runner, receipts to the ledger;
what follows what is read from `recovery/turns.py`.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from reference_runtime.assembly import Reply
from reference_runtime.counters import Counters
from reference_runtime.frames import FrameSink, system_frame
from reference_runtime.graph import Block, Message, provider_view
from reference_runtime.hooks import HookRunner, HookWords
from reference_runtime.recovery.errors import ModelDecision
from reference_runtime.recovery.hooks import HookEvent, HookOutcome
from reference_runtime.recovery.receipts import CallVerdict
from reference_runtime.recovery.terminals import Signal, Terminal
from reference_runtime.recovery.turns import (
    AFTER_REPLY,
    AFTER_STOP_HOOKS,
    AFTER_TOOLS,
    MALFORMED_RETRIES_MAX,
    OUTPUT_CONTINUATIONS_MAX,
    THINKING_NUDGES_MAX,
    Barrier,
    Content,
    HookVerdict,
    TurnDecision,
    budget,
    stop_of,
)
from reference_runtime.report import RunOutcome, Usage
from reference_runtime.requests import LogicalRequest, ModelChain, RequestFailedError, RequestRunner
from reference_runtime.session import Session, new_id, orphan_calls
from reference_runtime.tool_runner import ToolBatch, ToolRunner
from reference_runtime.tools.tool import ToolSpec
from reference_runtime.transcript import JournalError

SYSTEM_PROMPT = (
    "You are an agent that works with tools in the folder {folder}. Use the tools to do what the user asks, look at "
    "what they return, and end with a short answer. When the outcome of a call is unknown, never claim that it did or "
    "did not happen."
)
CONTINUE_TEXT = (
    "Your output reached its limit. Go on from the exact point where it stopped, without an apology and without "
    "repeating anything."
)
CORRECT_TEXT = (
    "Your last answer announced a tool call but held no complete one, so nothing was run. Send the whole tool call, or "
    "answer without one."
)
NUDGE_TEXT = "You thought but wrote no answer that can be seen. Write your answer now."

_TERMINALS: Mapping[TurnDecision, Terminal] = {
    TurnDecision.END_COMPLETED: Terminal.COMPLETED,
    TurnDecision.END_MAX_TURNS: Terminal.MAX_TURNS,
    TurnDecision.END_HOOK_STOPPED: Terminal.HOOK_STOPPED,
    TurnDecision.END_MAX_OUTPUT: Terminal.MAX_OUTPUT_EXHAUSTED,
    TurnDecision.END_MALFORMED: Terminal.MALFORMED_TOOL_USE_EXHAUSTED,
    TurnDecision.END_REFUSED: Terminal.REFUSED,
    TurnDecision.END_RECOVERY_REQUIRED: Terminal.RECOVERY_REQUIRED,
}

_REQUEST_TERMINALS: Mapping[ModelDecision, Terminal] = {
    ModelDecision.END_API_ERROR: Terminal.API_ERROR,
    ModelDecision.END_MODEL_ERROR: Terminal.MODEL_ERROR,
    ModelDecision.END_PROMPT_TOO_LONG: Terminal.PROMPT_TOO_LONG,
}


@dataclass(frozen=True)
class RunLimits:
    """Budgets of a run; None for max_turns is no limit."""

    max_turns: int | None
    max_tokens: int
    stop_hook_block_cap: int
    malformed_tool_use_clean_retry: bool


@dataclass
class _OutputBudgets:
    """What the present turn has spent of its output recoveries."""

    continuations: int = 0
    corrections: int = 0
    nudges: int = 0


class AgentLoop:
    """Runs one prompt in one session."""

    def __init__(
        self,
        session: Session,
        requests: RequestRunner,
        chain: ModelChain,
        tools: ToolRunner,
        tool_specs: Sequence[ToolSpec],
        hooks: HookRunner,
        sink: FrameSink,
        counters: Counters,
        usage: Usage,
        limits: RunLimits,
        working_folder: str,
        abort_signal: Callable[[], Signal],
    ) -> None:
        self._session = session
        self._requests = requests
        self._chain = chain
        self._tools = tools
        self._tool_fields = [
            {"name": spec.name, "description": spec.description, "input_schema": dict(spec.input_schema)}
            for spec in tool_specs
        ]
        self._hooks = hooks
        self._sink = sink
        self._counters = counters
        self._usage = usage
        self._limits = limits
        self._system = SYSTEM_PROMPT.format(folder=working_folder)
        self._abort_signal = abort_signal
        self._turn = 1
        self._spent = _OutputBudgets()
        self._batch: ToolBatch | None = None
        self._text = ""
        self._continues = False
        self._stop_reason: str | None = None
        self._errors: list[str] = []

    async def run(self, prompt: str) -> RunOutcome:
        """Run a prompt to its end; whatever happens, there is an outcome and it is recorded."""
        signal = Signal.NONE
        try:
            self._recover_orphans()
            self._session.say("user", ({"type": "text", "text": prompt},), self._turn)
            terminal = await self._follow()
        except RequestFailedError as failed:
            terminal = _REQUEST_TERMINALS[failed.decision]
            self._errors.append(_request_error(failed))
        except JournalError as error:
            # What is not recorded cannot be recovered from, so nothing more may be done.
            terminal = Terminal.RECOVERY_REQUIRED
            self._errors.append(str(error))
        except asyncio.CancelledError:
            signal = self._abort_signal()
            terminal = self._abort()
        return self._outcome(terminal, signal)

    async def _follow(self) -> Terminal:
        while True:
            reply = self._accept(await self._ask())
            row = AFTER_REPLY.decide(
                stop=stop_of(reply.stop_reason),
                content=content_of(reply),
                continuations=budget(self._spent.continuations, OUTPUT_CONTINUATIONS_MAX),
                corrections=budget(self._spent.corrections, MALFORMED_RETRIES_MAX),
                nudges=budget(self._spent.nudges, THINKING_NUDGES_MAX),
            )
            message = self._keep(reply, row.decision)
            terminal = await self._act(row.decision, reply, message)
            if terminal is not None:
                return terminal

    async def _ask(self) -> Reply:
        request = LogicalRequest(
            request_id=new_id(),
            session_id=self._session.session_id,
            turn=self._turn,
            body={
                "max_tokens": self._limits.max_tokens,
                "system": self._system,
                "messages": provider_view(self._session.graph.active()),
                "tools": self._tool_fields,
            },
        )
        return await self._requests.run(request, self._chain)

    def _accept(self, reply: Reply) -> Reply:
        """Count a reply and give a fresh id to a tool call whose id was used before (a provider refuses repeats)."""
        self._usage.add(reply.model, reply.usage)
        self._stop_reason = reply.stop_reason
        self._text = (self._text if self._continues else "") + reply.text
        self._continues = False
        used = self._session.graph.tool_use_ids()
        blocks: list[Block] = []
        for block in reply.blocks:
            if block["type"] == "tool_use":
                if block["id"] in used:
                    fresh = f"toolu_{new_id().replace('-', '')}"
                    self._warn(f"the model repeated the tool call id {block['id']}; it is now {fresh}")
                    block = {**block, "id": fresh}
                used.add(block["id"])
            blocks.append(block)
        return Reply(reply.model, reply.stop_reason, tuple(blocks), reply.usage, reply.broken)

    def _keep(self, reply: Reply, decision: TurnDecision) -> Message | None:
        """Record the reply's blocks that may stay in the conversation, and show them."""
        runs_tools = decision is TurnDecision.RUN_TOOLS
        # A call stays only when it is going to be answered; a call that stays alone would make every later request
        # invalid.
        blocks = tuple(block for block in reply.blocks if runs_tools or block["type"] != "tool_use")
        if not blocks:
            return None
        details = {"model": reply.model, "stop_reason": reply.stop_reason, "usage": dict(reply.usage)}
        message = self._session.say("assistant", blocks, self._turn, details=details)
        self._sink.emit(
            {
                "type": "assistant",
                "uuid": message.uuid,
                "parent_uuid": message.parent_uuid,
                "message": {"role": "assistant", "content": list(blocks), **details},
                "session_id": self._session.session_id,
                "turn": self._turn,
            }
        )
        return message

    async def _act(self, decision: TurnDecision, reply: Reply, message: Message | None) -> Terminal | None:
        match decision:
            case TurnDecision.RUN_TOOLS:
                return await self._run_tools(reply)
            case TurnDecision.OFFER_STOP:
                return await self._offer_stop()
            case TurnDecision.CONTINUE_OUTPUT:
                self._spent.continuations += 1
                self._counters.output_continuations += 1
                self._continues = True
                self._prompt(CONTINUE_TEXT)
            case TurnDecision.CORRECT_TOOL_USE:
                self._spent.corrections += 1
                self._counters.malformed_retries += 1
                if self._limits.malformed_tool_use_clean_retry and message is not None:
                    discard_messages(self._session, self._sink, "malformed_tool_use", (message.uuid,))
                self._prompt(CORRECT_TEXT)
            case TurnDecision.NUDGE:
                self._spent.nudges += 1
                self._counters.thinking_nudges += 1
                self._prompt(NUDGE_TEXT)
            case TurnDecision.END_REFUSED:
                self._errors.append("the model refused to answer")
                return Terminal.REFUSED
            case _:
                self._errors.append(f"the model's output did not come to an end: {decision.removeprefix('end_')}")
                return _TERMINALS[decision]
        return None

    async def _run_tools(self, reply: Reply) -> Terminal | None:
        calls = tuple(block for block in reply.blocks if block["type"] == "tool_use")
        unreadable = frozenset(reply.blocks[index]["id"] for index in reply.broken)
        self._batch = ToolBatch(calls, unreadable, self._turn)
        await self._tools.run(self._batch)
        batch = self._close_batch(self._batch)
        row = AFTER_TOOLS.decide(hooks=batch.hooks, turns=budget(self._turn, self._limits.max_turns))
        if row.decision is TurnDecision.NEXT_TURN:
            self._next_turn()
            return None
        if batch.hooks is HookVerdict.STOPPED:
            self._errors.append(f"a hook stopped the run: {batch.stop_reason}")
        return _TERMINALS[row.decision]

    def _close_batch(self, batch: ToolBatch) -> ToolBatch:
        self._batch = None
        self._show_results(batch.results)
        return batch

    def _show_results(self, results: Sequence[Mapping[str, Any]]) -> None:
        message = self._session.say("user", tuple(results), self._turn)
        self._sink.emit(
            {
                "type": "user",
                "uuid": message.uuid,
                "message": {"role": "user", "content": list(results)},
                "session_id": self._session.session_id,
                "turn": self._turn,
            }
        )

    async def _offer_stop(self) -> Terminal | None:
        words = await self._hooks.run(HookEvent.STOP, stop_hook_active=self._counters.stop_hook_blocks > 0)
        verdict = _stop_verdict(words)
        row = AFTER_STOP_HOOKS.decide(
            hooks=verdict,
            cap=budget(self._counters.stop_hook_blocks, self._limits.stop_hook_block_cap),
            turns=budget(self._turn, self._limits.max_turns),
            barrier=Barrier.REFUSED_A_WRITE if self._tools.writes_held else Barrier.CLEAR,
        )
        for text in words.texts(HookOutcome.HOOK_ERROR):
            self._warn(f"Stop hook: {text}")
        feedback = "\n".join(words.texts(HookOutcome.BLOCK))
        if row.decision is TurnDecision.NEXT_TURN:
            self._counters.stop_hook_blocks += 1
            self._next_turn()
            self._prompt(f"A Stop hook sent you back: {feedback or 'it gave no reason'}")
            return None
        if verdict is HookVerdict.BLOCKED:
            self._warn(f"the Stop hook's objection is passed over ({row.label}: {row.because}): {feedback}")
        if row.decision is TurnDecision.END_RECOVERY_REQUIRED:
            self._errors.append(row.because)
        return _TERMINALS[row.decision]

    def _next_turn(self) -> None:
        self._turn += 1
        self._spent = _OutputBudgets()

    def _prompt(self, text: str) -> None:
        self._session.say("user", ({"type": "text", "text": text},), self._turn, hidden=True)

    def _recover_orphans(self) -> None:
        """Pair what an earlier run left open, before anything is asked (J4, N4, N5)."""
        orphans = orphan_calls(self._session)
        unknown = self._session.ledger.unknown_writes()
        if orphans or unknown or self._session.damages:
            self._sink.emit(
                system_frame(
                    "recovery",
                    unknown=[{"call_id": r.call_id, "tool": r.tool, "attempt_id": r.attempt_id} for r in unknown],
                    not_started=[o.call_id for o in orphans if o.verdict is CallVerdict.NOT_STARTED],
                    repairs=[f"line {damage.line}: {damage.what}" for damage in self._session.damages]
                    + [f"call {orphan.call_id} had no result" for orphan in orphans],
                )
            )
        if orphans:
            self._show_results([orphan.result for orphan in orphans])

    def _abort(self) -> Terminal:
        if self._batch is None:
            return Terminal.ABORTED_STREAMING
        try:
            self._tools.answer_rest(self._batch, "not started: the run was aborted")
            self._close_batch(self._batch)
        except JournalError as error:
            self._errors.append(str(error))
        return Terminal.ABORTED_TOOLS

    def _outcome(self, terminal: Terminal, signal: Signal) -> RunOutcome:
        try:
            self._session.append("run_ended", terminal_reason=terminal, num_turns=self._turn)
        except JournalError as error:
            terminal, signal = Terminal.RECOVERY_REQUIRED, Signal.NONE
            if str(error) not in self._errors:
                self._errors.append(str(error))
        return RunOutcome(
            terminal=terminal,
            session_id=self._session.session_id,
            usage=self._usage,
            counters=self._counters,
            signal=signal,
            num_turns=self._turn,
            text=self._text,
            stop_reason=self._stop_reason,
            permission_denials=self._tools.permission_denials,
            errors=self._errors,
        )

    def _warn(self, message: str) -> None:
        self._sink.emit(system_frame("warning", message=message))


def discard_messages(session: Session, sink: FrameSink, reason: str, uuids: tuple[str, ...]) -> None:
    """Tombstone messages and say so; the uuid may be that of an answer which never became a message (C2, C6)."""
    session.tombstone(uuids, reason)
    sink.emit(system_frame("tombstone", uuids=list(uuids), reason=reason))


def content_of(reply: Reply) -> Content:
    """What a reply holds, as the decision table sees it."""
    kinds = [block["type"] for block in reply.blocks]
    calls = {index for index, kind in enumerate(kinds) if kind == "tool_use"}
    if calls - reply.broken:
        return Content.TOOLS
    if calls:
        return Content.BROKEN_TOOL
    if reply.text.strip():
        return Content.TEXT
    return Content.THINKING_ONLY if any("thinking" in kind for kind in kinds) else Content.EMPTY


def _stop_verdict(words: HookWords) -> HookVerdict:
    if words.first(HookOutcome.STOP_RUN):
        return HookVerdict.STOPPED
    return HookVerdict.BLOCKED if words.first(HookOutcome.BLOCK) else HookVerdict.ACCEPTED


def _request_error(failed: RequestFailedError) -> str:
    if failed.decision is ModelDecision.END_PROMPT_TOO_LONG:
        return "Prompt is too long"
    failure = failed.failure
    status = f"HTTP {failure.status}, " if failure.status is not None else ""
    return f"{status}{failure.kind}: {failure.message}"
