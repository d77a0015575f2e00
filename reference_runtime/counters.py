"""The recovery counters of one run: each kind of doing something again is counted by itself. Decides nothing."""

from dataclasses import asdict, dataclass


@dataclass
class Counters:
    """How often each recovery happened; `http_attempts` counts every HTTP request for the model, also the first."""

    http_attempts: int = 0
    stream_fallbacks: int = 0
    model_fallbacks: int = 0
    output_continuations: int = 0
    malformed_retries: int = 0
    reactive_compacts: int = 0
    stop_hook_blocks: int = 0
    thinking_nudges: int = 0

    def as_fields(self) -> dict[str, int]:
        """The counters as they go into the result."""
        return asdict(self)
