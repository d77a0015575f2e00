"""What a policy is: a step that looks at the request and decides, as a pure function with an explicit state.

A policy never sees a connection, never makes an identifier and never reads a clock: all of these come with the
occasion. What it decided so far is a value that it hands out and gets back.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, Protocol, TypeAlias

from fake_provider.document import Node
from fake_provider.limits import Limits
from fake_provider.renaming import Rename
from fake_provider.replies import ErrorReply, Reply
from fake_provider.requests import ModelRequest

UNKNOWN_OUTCOME = re.compile(r"\bunknown\b", re.IGNORECASE)
"""What a result says whose outcome nobody knows."""

Wraps: TypeAlias = Literal["never", "optional", "always"]
"""Whether a policy has inner ``steps:``, which answer what the policy itself lets pass."""


@dataclass(frozen=True, slots=True)
class Occasion:
    """One request to decide about.

    Attributes:
        request: The request.
        seconds: The provider's clock; only differences mean anything.
        call_id: An identifier for a tool call that is used nowhere in the conversation.
    """

    request: ModelRequest
    seconds: float
    call_id: str


@dataclass(frozen=True, slots=True)
class Decision:
    """What a policy does with one request.

    Attributes:
        answer: What it says, or nothing where it lets the request pass to its inner steps or to the next step.
        state: What it wants back at the next request.
        done: Whether this was its last answer.
        first_ask: Whether the fault and the hold of the step strike this answer.
        limits: The account's limits, where the policy keeps them; they go with whatever is answered.
        window_tokens: The context window that the answer speaks of, where it is not the script's.
    """

    answer: Reply | ErrorReply | None
    state: Any
    done: bool = False
    first_ask: bool = False
    limits: Limits | None = None
    window_tokens: int | None = None


class Policy(Protocol):
    """One policy of a script, with its settings."""

    word: ClassVar[str]
    wraps: ClassVar[Wraps]
    takes_fault: ClassVar[bool]

    @property
    def label(self) -> str:
        """What the journal calls the step."""

    @property
    def endless(self) -> bool:
        """Whether it never lets a request pass to the step after it."""

    def start(self) -> Any:
        """Return the state before the first request."""

    def decide(self, occasion: Occasion, state: Any) -> Decision:
        """Decide about one request."""

    def sample(self) -> Reply | None:
        """Return the reply that a fault of the step would strike, or nothing where that depends on the request."""

    def renamed(self, rename: Rename) -> Policy:
        """Return the policy with every tool called as the runtime under test calls it."""


class PolicyKind(Protocol):
    """How a policy is read from a script."""

    word: ClassVar[str]
    wraps: ClassVar[Wraps]
    takes_fault: ClassVar[bool]
    keys: ClassVar[tuple[str, ...]]
    required: ClassVar[tuple[str, ...]]
    one_of: ClassVar[tuple[str, ...]]
    """Keys of which at least one has to stand there, where there are any."""

    @classmethod
    def read(cls, fields: Mapping[str, Node]) -> Policy:
        """Read the settings; ``fields`` holds only known keys, every required one, and no ``steps``.

        Raises:
            DocumentError: A setting is wrong.
        """
