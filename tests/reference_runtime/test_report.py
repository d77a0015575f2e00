"""Usage, cost and the result frame."""

import pytest

from reference_runtime.recovery.terminals import Signal, Terminal
from reference_runtime.report import RunOutcome, Usage
from reference_runtime.settings import ModelPrice


def test_cost_is_known_while_every_model_has_a_price() -> None:
    usage = Usage({"m": ModelPrice(3, 15)})
    assert usage.cost_usd == 0
    usage.add("m", {"input_tokens": 1000, "output_tokens": 100, "cache_read_input_tokens": None})
    assert usage.cost_usd == pytest.approx(0.0045)
    usage.add("other", {"input_tokens": 1})
    assert usage.cost_usd is None
    usage.add("m", {"input_tokens": 1})
    assert usage.cost_usd is None, "what is unknown stays unknown"
    assert usage.tokens["input_tokens"] == 1002


def test_the_frame_says_everything_that_a_caller_needs() -> None:
    outcome = RunOutcome(Terminal.ABORTED_TOOLS, "s", Usage({}), signal=Signal.INTERRUPT, num_turns=2, errors=("x",))
    frame = outcome.frame()
    assert list(frame) == [
        "type",
        "subtype",
        "is_error",
        "num_turns",
        "result",
        "stop_reason",
        "terminal_reason",
        "session_id",
        "usage",
        "total_cost_usd",
        "permission_denials",
        "counters",
        "errors",
    ]
    assert (frame["subtype"], frame["is_error"], outcome.ending.exit_code) == ("error_during_execution", True, 130)
    assert set(frame["counters"]) == {
        "http_attempts",
        "stream_fallbacks",
        "model_fallbacks",
        "output_continuations",
        "malformed_retries",
        "reactive_compacts",
        "stop_hook_blocks",
        "thinking_nudges",
    }
