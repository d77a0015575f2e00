"""The decisions that the contract states outright, each pinned by its clause, so that a changed row is seen."""

from typing import Any

import pytest

from reference_runtime.recovery.errors import (
    ATTEMPTS,
    MODELS,
    AttemptDecision,
    Directive,
    FailureKind,
    ModelDecision,
    directive_of,
    kind_of_status,
    kind_of_stream_error,
)
from reference_runtime.recovery.hooks import HOOKS, HookEvent, HookOutcome, HookReading, reading_of
from reference_runtime.recovery.receipts import AFTER_RESTART, TRANSITIONS, CallVerdict, ReceiptRecord, ReceiptState
from reference_runtime.recovery.terminals import ENDINGS, Terminal
from reference_runtime.recovery.tools import TOOL_FAILURES, ToolFailure
from reference_runtime.recovery.turns import AFTER_REPLY, AFTER_STOP_HOOKS, AFTER_TOOLS, TurnDecision, stop_of


@pytest.mark.parametrize(
    ("status", "error_type", "message", "kind"),
    [
        (529, "overloaded_error", "Overloaded", FailureKind.OVERLOADED),
        (500, "overloaded_error", "Overloaded", FailureKind.OVERLOADED),
        (500, "api_error", "", FailureKind.SERVER_ERROR),
        (503, "", "<html>", FailureKind.SERVER_ERROR),
        (408, "", "", FailureKind.REQUEST_TIMEOUT),
        (409, "", "", FailureKind.CONFLICT),
        (429, "rate_limit_error", "", FailureKind.RATE_LIMITED),
        (400, "invalid_request_error", "messages: no", FailureKind.INVALID_REQUEST),
        (401, "authentication_error", "", FailureKind.AUTHENTICATION),
        (402, "billing_error", "", FailureKind.BILLING),
        (403, "permission_error", "", FailureKind.PERMISSION),
        (404, "not_found_error", "model: x", FailureKind.MODEL_UNAVAILABLE),
        (400, "invalid_request_error", "prompt is too long: 9 tokens > 8 maximum", FailureKind.PROMPT_TOO_LONG),
        (413, "request_too_large", "", FailureKind.PROMPT_TOO_LONG),
        (418, "", "", FailureKind.INVALID_REQUEST),
    ],
)
def test_a_status_has_a_kind(status: int, error_type: str, message: str, kind: FailureKind) -> None:
    assert kind_of_status(status, error_type, message) is kind


def test_a_stream_error_has_the_kind_of_its_type() -> None:
    assert kind_of_stream_error("overloaded_error", "Overloaded") is FailureKind.OVERLOADED
    assert kind_of_stream_error("invalid_request_error", "Prompt is too long") is FailureKind.PROMPT_TOO_LONG
    assert kind_of_stream_error("something_new", "") is FailureKind.SERVER_ERROR


def test_the_providers_directive_is_read_strictly() -> None:
    assert directive_of({"x-should-retry": "true"}) is Directive.RETRY
    assert directive_of({"x-should-retry": "False"}) is Directive.NO_RETRY
    assert directive_of({"x-should-retry": "maybe"}) is Directive.NONE
    assert directive_of({}) is Directive.NONE


RETRY, GIVE_UP = AttemptDecision.RETRY, AttemptDecision.GIVE_UP


@pytest.mark.parametrize(
    ("kind", "directive", "attempts_left", "stream_fallback", "decision"),
    [
        ("overloaded", "none", "yes", "available", RETRY),
        ("overloaded", "none", "no", "available", GIVE_UP),
        ("server_error", "none", "yes", "unavailable", RETRY),
        ("connection", "none", "yes", "available", RETRY),
        ("rate_limited", "none", "yes", "available", RETRY),
        ("malformed_response", "none", "yes", "available", RETRY),
        ("authentication", "none", "yes", "available", GIVE_UP),
        ("permission", "none", "yes", "available", GIVE_UP),
        ("invalid_request", "none", "yes", "available", GIVE_UP),
        ("model_unavailable", "none", "yes", "available", GIVE_UP),
        ("invalid_request", "retry", "yes", "available", RETRY),
        ("invalid_request", "retry", "no", "available", GIVE_UP),
        ("overloaded", "no_retry", "yes", "available", GIVE_UP),
        ("stream_cut", "none", "no", "available", AttemptDecision.STREAM_FALLBACK),
        ("stream_stall", "none", "yes", "available", AttemptDecision.STREAM_FALLBACK),
        ("stream_stall", "none", "yes", "unavailable", RETRY),
        ("stream_cut", "no_retry", "yes", "available", GIVE_UP),
    ],
)
def test_what_follows_a_failed_attempt(
    kind: str, directive: str, attempts_left: str, stream_fallback: str, decision: AttemptDecision
) -> None:
    facts = {"kind": kind, "directive": directive, "attempts_left": attempts_left, "stream_fallback": stream_fallback}
    assert ATTEMPTS.decide(**facts).decision is decision


@pytest.mark.parametrize("kind", FailureKind)
def test_only_the_models_own_trouble_falls_back(kind: FailureKind) -> None:
    falls_back = MODELS.decide(kind=kind, fallback_left="yes").decision is ModelDecision.FALL_BACK
    assert falls_back == (kind in ("overloaded", "server_error", "model_unavailable"))


@pytest.mark.parametrize(
    ("stop", "content", "continuations", "corrections", "nudges", "decision"),
    [
        ("end_turn", "text", "left", "left", "left", TurnDecision.OFFER_STOP),
        ("end_turn", "tools", "left", "left", "left", TurnDecision.RUN_TOOLS),
        ("max_tokens", "tools", "left", "left", "left", TurnDecision.RUN_TOOLS),
        ("max_tokens", "text", "left", "left", "left", TurnDecision.CONTINUE_OUTPUT),
        ("max_tokens", "broken_tool", "left", "left", "left", TurnDecision.CONTINUE_OUTPUT),
        ("max_tokens", "text", "spent", "left", "left", TurnDecision.END_MAX_OUTPUT),
        ("model_context_window_exceeded", "text", "left", "left", "left", TurnDecision.CONTINUE_OUTPUT),
        ("tool_use", "text", "left", "left", "left", TurnDecision.CORRECT_TOOL_USE),
        ("tool_use", "broken_tool", "left", "spent", "left", TurnDecision.END_MALFORMED),
        ("end_turn", "thinking_only", "left", "left", "left", TurnDecision.NUDGE),
        ("end_turn", "thinking_only", "left", "left", "spent", TurnDecision.OFFER_STOP),
        ("refusal", "tools", "left", "left", "left", TurnDecision.END_REFUSED),
    ],
)
def test_what_follows_a_reply(
    stop: str, content: str, continuations: str, corrections: str, nudges: str, decision: TurnDecision
) -> None:
    row = AFTER_REPLY.decide(
        stop=stop, content=content, continuations=continuations, corrections=corrections, nudges=nudges
    )
    assert row.decision is decision


def test_a_stop_reason_from_the_future_is_other() -> None:
    assert stop_of("end_turn") == "end_turn"
    assert stop_of("pause_turn") == "other"


def test_turns_end_after_tools_and_after_stop_hooks() -> None:
    assert AFTER_TOOLS.decide(hooks="accepted", turns="left").decision is TurnDecision.NEXT_TURN
    assert AFTER_TOOLS.decide(hooks="accepted", turns="spent").decision is TurnDecision.END_MAX_TURNS
    assert AFTER_TOOLS.decide(hooks="stopped", turns="spent").decision is TurnDecision.END_HOOK_STOPPED
    facts = {"cap": "left", "turns": "left", "barrier": "clear"}
    assert AFTER_STOP_HOOKS.decide(**facts, hooks="accepted").decision is TurnDecision.END_COMPLETED
    assert AFTER_STOP_HOOKS.decide(**facts, hooks="blocked").decision is TurnDecision.NEXT_TURN
    held = {**facts, "barrier": "refused_a_write"}
    assert AFTER_STOP_HOOKS.decide(**held, hooks="accepted").decision is TurnDecision.END_RECOVERY_REQUIRED
    spent = {**facts, "cap": "spent"}
    assert AFTER_STOP_HOOKS.decide(**spent, hooks="blocked").decision is TurnDecision.END_HOOK_STOPPED
    last = {**facts, "turns": "spent"}
    assert AFTER_STOP_HOOKS.decide(**last, hooks="blocked").decision is TurnDecision.END_MAX_TURNS


@pytest.mark.parametrize(
    ("state", "record_format", "effect", "verdict"),
    [
        ("started", "current", "write", CallVerdict.UNKNOWN_HOLDS_WRITES),
        ("started", "current", "read_only", CallVerdict.UNKNOWN_READ),
        ("dispatched", "current", "write", CallVerdict.NOT_STARTED),
        ("absent", "current", "write", CallVerdict.NOT_STARTED),
        ("absent", "older", "write", CallVerdict.UNKNOWN_HOLDS_WRITES),
        ("dispatched", "damaged", "write", CallVerdict.UNKNOWN_HOLDS_WRITES),
        ("confirmed", "current", "write", CallVerdict.SETTLED),
        ("failed", "older", "write", CallVerdict.SETTLED),
        ("timed_out", "current", "write", CallVerdict.UNKNOWN_HOLDS_WRITES),
        ("cancelled", "current", "write", CallVerdict.UNKNOWN_HOLDS_WRITES),
        ("lost", "current", "write", CallVerdict.UNKNOWN_HOLDS_WRITES),
        ("user_confirmed", "current", "write", CallVerdict.SETTLED),
    ],
)
def test_what_is_known_after_a_restart(state: str, record_format: str, effect: str, verdict: CallVerdict) -> None:
    assert AFTER_RESTART.decide(state=state, format=record_format, effect=effect).decision is verdict


def test_a_receipt_walks_from_dispatch_to_its_end() -> None:
    state = ReceiptState.ABSENT
    for record in (ReceiptRecord.RECEIPT, ReceiptRecord.TOOL_STARTED, ReceiptRecord.RESULT_LOST):
        state = TRANSITIONS.decide(state=state, record=record).decision
    assert state is ReceiptState.LOST
    assert TRANSITIONS.decide(state=state, record="user_confirmed").decision is ReceiptState.USER_CONFIRMED


@pytest.mark.parametrize("failure", ToolFailure)
def test_only_an_interrupted_write_is_unknown(failure: ToolFailure) -> None:
    interrupted = failure in ("cancelled", "timed_out", "connection_lost", "tool_exception")
    assert TOOL_FAILURES.decide(failure=failure, effect="write").decision.unknown == interrupted
    assert not TOOL_FAILURES.decide(failure=failure, effect="read_only").decision.unknown


@pytest.mark.parametrize("terminal", Terminal)
def test_only_a_completed_run_exits_with_0(terminal: Terminal) -> None:
    signal = "terminate" if terminal.startswith("aborted") else "none"
    ending = ENDINGS.decide(terminal=terminal, signal=signal).decision
    assert (ending.exit_code == 0) == (terminal is Terminal.COMPLETED)
    assert (ending.subtype == "success") == (terminal is Terminal.COMPLETED)


@pytest.mark.parametrize(
    ("event", "output", "reading"),
    [
        (HookEvent.STOP, {}, HookReading.NOTHING),
        (HookEvent.STOP, {"decision": "block", "reason": "more"}, HookReading.BLOCK),
        (HookEvent.STOP, {"decision": "approve"}, HookReading.WRONG_SCHEMA),
        (HookEvent.PRE_TOOL_USE, {"decision": "block"}, HookReading.WRONG_SCHEMA),
        (HookEvent.STOP, {"continue": False, "stopReason": "enough"}, HookReading.STOP_RUN),
        (HookEvent.STOP, [], HookReading.WRONG_SCHEMA),
        (HookEvent.PRE_TOOL_USE, {"hookSpecificOutput": {"permissionDecision": "allow"}}, HookReading.ALLOW),
        (HookEvent.PRE_TOOL_USE, {"hookSpecificOutput": {"permissionDecision": "deny"}}, HookReading.DENY),
        (HookEvent.PRE_TOOL_USE, {"hookSpecificOutput": {"permissionDecision": 3}}, HookReading.WRONG_SCHEMA),
        (HookEvent.PRE_TOOL_USE, {"hookSpecificOutput": {"hookEventName": "Stop"}}, HookReading.WRONG_SCHEMA),
        (HookEvent.PRE_TOOL_USE, {"hookSpecificOutput": "x"}, HookReading.WRONG_SCHEMA),
        (HookEvent.POST_TOOL_USE, {"hookSpecificOutput": {"updatedToolOutput": "new"}}, HookReading.NEW_OUTPUT),
        (HookEvent.POST_TOOL_USE, {"hookSpecificOutput": {"updatedToolOutput": 3}}, HookReading.WRONG_SCHEMA),
    ],
)
def test_what_a_hook_says(event: HookEvent, output: Any, reading: HookReading) -> None:
    assert reading_of(event, output)[0] is reading


@pytest.mark.parametrize("event", HookEvent)
def test_a_broken_hook_never_decides(event: HookEvent) -> None:
    for end in ("exit_other", "timed_out", "not_started"):
        assert HOOKS.decide(event=event, end=end, reading="nothing").decision is HookOutcome.HOOK_ERROR
    for reading in ("not_json", "wrong_schema"):
        assert HOOKS.decide(event=event, end="exit_zero", reading=reading).decision is HookOutcome.HOOK_ERROR
