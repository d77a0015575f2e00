"""What one call of a client did, as data. It judges nothing."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, TypeAlias

Way: TypeAlias = Literal["whole", "events", "helper"]

WAYS: dict[Way, str] = {
    "whole": "one reply, not streamed",
    "events": "the stream, read event by event until it ends",
    "helper": "the stream, put together by the client",
}


@dataclass(frozen=True)
class Cell:
    """A client in one way of calling it."""

    client: str
    way: Way

    @property
    def id(self) -> str:
        return f"{self.client.replace(' ', '-')}-{self.way}"


CELLS = (
    Cell("anthropic", "whole"),
    Cell("anthropic", "events"),
    Cell("anthropic", "helper"),
    Cell("openai chat", "whole"),
    Cell("openai chat", "events"),
    Cell("openai chat", "helper"),
    Cell("openai responses", "whole"),
    Cell("openai responses", "events"),
    Cell("openai responses", "helper"),
    Cell("google-genai", "whole"),
    Cell("google-genai", "events"),
)

OWN_MODULES = {
    "anthropic": "anthropic",
    "openai chat": "openai",
    "openai responses": "openai",
    "google-genai": "google",
}


@dataclass
class Said:
    """What a caller has been given so far; a call that raises leaves what came before."""

    text: str = ""
    calls: list[tuple[str, str]] = field(default_factory=list)
    stop: str | None = None
    usage: tuple[int | None, int | None] | None = None
    other_type: str | None = None


@dataclass(frozen=True)
class Observed:
    """What one call did.

    Attributes:
        text: The visible text that the caller was given.
        calls: Names and arguments of the tool calls that the caller was given; arguments as text.
        stop: The stop reason, in the client's words.
        usage: Tokens of input and output.
        other_type: The type of what was returned, where it is not the client's own type of a reply.
        error: The type of what was raised, with its outermost module; nothing where the call returned.
        key_went_elsewhere: Whether the key was sent to an address that the caller did not name.
    """

    text: str = ""
    calls: tuple[tuple[str, str], ...] = ()
    stop: str | None = None
    usage: tuple[int | None, int | None] | None = None
    other_type: str | None = None
    error: str | None = None
    key_went_elsewhere: bool = False

    @classmethod
    def of(cls, said: Said, error: BaseException | None) -> Observed:
        """Freeze what was said, with what was raised."""
        raised = None if error is None else f"{type(error).__module__.partition('.')[0]}.{type(error).__name__}"
        return cls(said.text, tuple(said.calls), said.stop, said.usage, said.other_type, raised)
