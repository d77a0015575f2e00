"""What ends or continues a run: after a reply, after its tools, after the Stop hooks (B1, D2, D4, D5, G3, L1, N5).

Never counts a turn or spends a budget; it says which one is to be spent.
"""

from enum import StrEnum

from reference_runtime.recovery.table import Answer, Budget, Table, row

OUTPUT_CONTINUATIONS_MAX = 3
MALFORMED_RETRIES_MAX = 1
THINKING_NUDGES_MAX = 1
STOP_HOOK_BLOCK_CAP = 8


class Stop(StrEnum):
    """Why the model stopped; OTHER is a reason that this program does not know."""

    END_TURN = "end_turn"
    STOP_SEQUENCE = "stop_sequence"
    TOOL_USE = "tool_use"
    MAX_TOKENS = "max_tokens"
    CONTEXT_WINDOW = "model_context_window_exceeded"
    REFUSAL = "refusal"
    OTHER = "other"


class Content(StrEnum):
    """What a finished reply holds; TOOLS means at least one complete tool call whose input parses (B1)."""

    TOOLS = "tools"
    BROKEN_TOOL = "broken_tool"
    TEXT = "text"
    THINKING_ONLY = "thinking_only"
    EMPTY = "empty"


class HookVerdict(StrEnum):
    """What the hooks of one moment said together."""

    ACCEPTED = "accepted"
    BLOCKED = "blocked"
    STOPPED = "stopped"


class Barrier(StrEnum):
    """Whether the write barrier refused a write in this run."""

    CLEAR = "clear"
    REFUSED_A_WRITE = "refused_a_write"


class TurnDecision(StrEnum):
    """What the agent loop does next."""

    RUN_TOOLS = "run_tools"
    CONTINUE_OUTPUT = "continue_output"
    CORRECT_TOOL_USE = "correct_tool_use"
    NUDGE = "nudge"
    OFFER_STOP = "offer_stop"
    NEXT_TURN = "next_turn"
    END_COMPLETED = "end_completed"
    END_MAX_TURNS = "end_max_turns"
    END_HOOK_STOPPED = "end_hook_stopped"
    END_MAX_OUTPUT = "end_max_output_exhausted"
    END_MALFORMED = "end_malformed_tool_use_exhausted"
    END_REFUSED = "end_refused"
    END_RECOVERY_REQUIRED = "end_recovery_required"


def stop_of(reason: str) -> Stop:
    """The fact for a provider's stop reason."""
    return Stop(reason) if reason in tuple(Stop) else Stop.OTHER


_NOT_REFUSED = tuple(stop for stop in Stop if stop is not Stop.REFUSAL)
_TRUNCATED = (Stop.MAX_TOKENS, Stop.CONTEXT_WINDOW)
_ENDED = (Stop.END_TURN, Stop.STOP_SEQUENCE, Stop.OTHER)
_NO_TOOLS = tuple(content for content in Content if content is not Content.TOOLS)

AFTER_REPLY: Table[TurnDecision] = Table(
    name="after_reply",
    question="A reply is complete: what follows it?",
    clauses=("B1", "D2", "D4", "D5"),
    facts={
        "stop": tuple(Stop),
        "content": tuple(Content),
        "continuations": tuple(Budget),
        "corrections": tuple(Budget),
        "nudges": tuple(Budget),
    },
    rows=(
        row(
            "refused",
            TurnDecision.END_REFUSED,
            "The model declined; what it wrote before is not to be acted on.",
            stop=(Stop.REFUSAL,),
        ),
        row(
            "tools",
            TurnDecision.RUN_TOOLS,
            "A complete call must be answered, whatever the stop reason claims.",
            stop=_NOT_REFUSED,
            content=(Content.TOOLS,),
        ),
        row(
            "continue",
            TurnDecision.CONTINUE_OUTPUT,
            "The output was cut by its limit; asking to go on from the exact point costs no turn.",
            stop=_TRUNCATED,
            content=_NO_TOOLS,
            continuations=(Budget.LEFT,),
        ),
        row(
            "output-exhausted",
            TurnDecision.END_MAX_OUTPUT,
            "Continuing did not bring the output to its end within its budget.",
            stop=_TRUNCATED,
            content=_NO_TOOLS,
            continuations=(Budget.SPENT,),
        ),
        row(
            "correct-missing-call",
            TurnDecision.CORRECT_TOOL_USE,
            "The reply says that it calls a tool and holds no complete call; nothing ran, so one retry is safe.",
            stop=(Stop.TOOL_USE,),
            content=_NO_TOOLS,
            corrections=(Budget.LEFT,),
        ),
        row(
            "missing-call-again",
            TurnDecision.END_MALFORMED,
            "The model repeated the broken protocol; retrying for ever would not mend it.",
            stop=(Stop.TOOL_USE,),
            content=_NO_TOOLS,
            corrections=(Budget.SPENT,),
        ),
        row(
            "correct-broken-call",
            TurnDecision.CORRECT_TOOL_USE,
            "The only call's input does not parse; nothing ran, so one retry is safe.",
            stop=_ENDED,
            content=(Content.BROKEN_TOOL,),
            corrections=(Budget.LEFT,),
        ),
        row(
            "broken-call-again",
            TurnDecision.END_MALFORMED,
            "The model repeated the broken call; retrying for ever would not mend it.",
            stop=_ENDED,
            content=(Content.BROKEN_TOOL,),
            corrections=(Budget.SPENT,),
        ),
        row(
            "nudge",
            TurnDecision.NUDGE,
            "The model thought and said nothing; one reminder may bring the visible answer.",
            stop=_ENDED,
            content=(Content.THINKING_ONLY,),
            nudges=(Budget.LEFT,),
        ),
        row(
            "silent-end",
            TurnDecision.OFFER_STOP,
            "The model was reminded once; its silence is accepted as the end.",
            stop=_ENDED,
            content=(Content.THINKING_ONLY,),
            nudges=(Budget.SPENT,),
        ),
        row(
            "said",
            TurnDecision.OFFER_STOP,
            "The model ended its turn and asks for nothing.",
            stop=_ENDED,
            content=(Content.TEXT, Content.EMPTY),
        ),
    ),
)

AFTER_TOOLS: Table[TurnDecision] = Table(
    name="after_tools",
    question="Every tool call of a reply has its result: is the model asked again?",
    clauses=("G3", "L1"),
    facts={"hooks": (HookVerdict.ACCEPTED, HookVerdict.STOPPED), "turns": tuple(Budget)},
    rows=(
        row(
            "next-turn",
            TurnDecision.NEXT_TURN,
            "The model has not yet seen what its tools returned.",
            hooks=(HookVerdict.ACCEPTED,),
            turns=(Budget.LEFT,),
        ),
        row(
            "turn-budget",
            TurnDecision.END_MAX_TURNS,
            "The tools of the last allowed turn finish; the model is not asked again.",
            hooks=(HookVerdict.ACCEPTED,),
            turns=(Budget.SPENT,),
        ),
        row(
            "hook-stopped",
            TurnDecision.END_HOOK_STOPPED,
            "A hook ended the run; its word stands above the turn budget.",
            hooks=(HookVerdict.STOPPED,),
        ),
    ),
)

AFTER_STOP_HOOKS: Table[TurnDecision] = Table(
    name="after_stop_hooks",
    question="The model wants to stop and the Stop hooks have spoken: does the run end?",
    clauses=("G3", "N5"),
    facts={
        "hooks": tuple(HookVerdict),
        "cap": tuple(Budget),
        "turns": tuple(Budget),
        "barrier": tuple(Barrier),
    },
    rows=(
        row(
            "completed",
            TurnDecision.END_COMPLETED,
            "The model is done and no hook objects.",
            hooks=(HookVerdict.ACCEPTED,),
            barrier=(Barrier.CLEAR,),
        ),
        row(
            "recovery-required",
            TurnDecision.END_RECOVERY_REQUIRED,
            "A write was held back in this run; only a person can settle the unknown outcome behind it.",
            hooks=(HookVerdict.ACCEPTED,),
            barrier=(Barrier.REFUSED_A_WRITE,),
        ),
        row(
            "re-enter",
            TurnDecision.NEXT_TURN,
            "A hook sends the model back to work with its feedback.",
            hooks=(HookVerdict.BLOCKED,),
            cap=(Budget.LEFT,),
            turns=(Budget.LEFT,),
        ),
        row(
            "turn-budget",
            TurnDecision.END_MAX_TURNS,
            "A hook wants another turn and none is left.",
            hooks=(HookVerdict.BLOCKED,),
            cap=(Budget.LEFT,),
            turns=(Budget.SPENT,),
        ),
        row(
            "block-cap",
            TurnDecision.END_HOOK_STOPPED,
            "A hook that always blocks must not lock the run for ever.",
            hooks=(HookVerdict.BLOCKED,),
            cap=(Budget.SPENT,),
        ),
        row(
            "hook-stopped",
            TurnDecision.END_HOOK_STOPPED,
            "A hook ended the run.",
            hooks=(HookVerdict.STOPPED,),
        ),
    ),
)


def budget(spent: int, most: int | None) -> Budget:
    """The fact for a counter against its limit; no limit is a budget that is never spent."""
    return Budget.LEFT if most is None or spent < most else Budget.SPENT


def answer(*, so: bool) -> Answer:
    """The fact for a truth value."""
    return Answer.YES if so else Answer.NO
