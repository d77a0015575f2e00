"""The interface of a tool: what it declares, what it is given, what it answers, how it can fail. No I/O."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from reference_runtime.recovery.receipts import Effect
from reference_runtime.recovery.tools import ToolFailure


@dataclass(frozen=True)
class ToolSpec:
    """What a tool declares: its name and description for the model, its input's JSON schema, its effect."""

    name: str
    description: str
    input_schema: Mapping[str, Any]
    effect: Effect


@dataclass(frozen=True)
class CallIdentity:
    """Who is calling, for tools that can tell a repeat by it."""

    call_id: str
    attempt_id: str
    idempotency_key: str


@dataclass(frozen=True)
class ToolAnswer:
    """What the tool itself answered: content blocks of the provider's shape, and whether it says that it failed."""

    content: tuple[Mapping[str, Any], ...]
    is_error: bool = False


class ToolInterruptedError(Exception):
    """The tool gave no answer: the wait ended or the connection to it was lost."""

    def __init__(self, failure: ToolFailure, message: str) -> None:
        super().__init__(message)
        self.failure = failure


class Tool(Protocol):
    """One tool."""

    @property
    def spec(self) -> ToolSpec:
        """What the tool declares."""

    @property
    def unavailable_because(self) -> str | None:
        """Why it cannot be called now, or None when it can."""

    async def run(self, arguments: Mapping[str, Any], identity: CallIdentity) -> ToolAnswer:
        """Do the work. Raises ToolInterruptedError when there is no answer."""


def text_answer(text: str, *, is_error: bool = False) -> ToolAnswer:
    """An answer of one text; an empty text becomes a remark, since providers refuse empty text."""
    return ToolAnswer(({"type": "text", "text": text if text.strip() else "(no output)"},), is_error)
