"""The result of a run: usage, cost and the one result frame with which every run ends (L2). Sends nothing itself."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from reference_runtime.counters import Counters
from reference_runtime.recovery.terminals import ENDINGS, Ending, Signal, Terminal
from reference_runtime.settings import ModelPrice

USAGE_FIELDS = ("input_tokens", "output_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")


@dataclass
class Usage:
    """Tokens of every reply of a run, and what they cost where the settings give a price."""

    prices: Mapping[str, ModelPrice]
    tokens: dict[str, int] = field(default_factory=lambda: dict.fromkeys(USAGE_FIELDS, 0))
    cost_usd: float | None = 0.0

    def add(self, model: str, usage: Mapping[str, Any]) -> None:
        """Count one reply. A model without a price makes the cost unknown, and unknown it stays."""
        counts = {name: int(usage.get(name) or 0) for name in USAGE_FIELDS}
        for name, count in counts.items():
            self.tokens[name] += count
        price = self.prices.get(model)
        if price is None or self.cost_usd is None:
            self.cost_usd = None
            return
        self.cost_usd += counts["input_tokens"] * price.input_usd / 1_000_000
        self.cost_usd += counts["output_tokens"] * price.output_usd / 1_000_000


@dataclass
class RunOutcome:
    """How a run ended and everything that its result frame says."""

    terminal: Terminal
    session_id: str
    usage: Usage
    counters: Counters = field(default_factory=Counters)
    signal: Signal = Signal.NONE
    num_turns: int = 0
    text: str = ""
    stop_reason: str | None = None
    permission_denials: Sequence[Mapping[str, Any]] = ()
    errors: Sequence[str] = ()

    @property
    def ending(self) -> Ending:
        """Subtype and exit code."""
        return ENDINGS.decide(terminal=self.terminal, signal=self.signal).decision

    def frame(self) -> dict[str, Any]:
        """The result frame. `total_cost_usd` is null when a model that answered has no price in the settings."""
        return {
            "type": "result",
            "subtype": self.ending.subtype,
            "is_error": self.ending.exit_code != 0,
            "num_turns": self.num_turns,
            "result": self.text,
            "stop_reason": self.stop_reason,
            "terminal_reason": self.terminal,
            "session_id": self.session_id,
            "usage": self.usage.tokens,
            "total_cost_usd": self.usage.cost_usd,
            "permission_denials": list(self.permission_denials),
            "counters": self.counters.as_fields(),
            "errors": list(self.errors),
        }
