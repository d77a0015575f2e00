"""``obedient``: do what the last instruction in the conversation says.

An instruction is a line of its own: ``call TOOL {"json": "object"}`` or ``say TEXT``. It never guesses: a line of any
other form is no instruction.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from fake_provider.document import Node
from fake_provider.policies.policy import Decision, Occasion, Wraps
from fake_provider.renaming import Rename
from fake_provider.replies import Reply, Text, ToolUse
from fake_provider.requests import Message, ModelRequest, NotJsonError, ToolResult, decode_json

_CALL = re.compile(r"call (?P<tool>[\w.-]+) (?P<arguments>\{.*\})")
_SAY = re.compile(r"say (?P<text>.+)")
NOTHING_TO_SAY = "(nothing)"
"""What it says to a request that holds no text: most dialects have no empty text."""


@dataclass(frozen=True, slots=True)
class Obedient:
    """Follow the last instruction of the newest message; echo what holds none.

    After a tool call, when the newest messages are results, it says their texts, unless a text beside them instructs it
    anew.

    Attributes:
        at_most: How many requests it answers; ``None`` is all.
    """

    word: ClassVar[str] = "obedient"
    wraps: ClassVar[Wraps] = "never"
    takes_fault: ClassVar[bool] = False
    keys: ClassVar[tuple[str, ...]] = ("at_most",)
    required: ClassVar[tuple[str, ...]] = ()
    one_of: ClassVar[tuple[str, ...]] = ()

    at_most: int | None = None

    @classmethod
    def read(cls, fields: Mapping[str, Node]) -> Obedient:
        """Read ``{at_most}``, or nothing."""
        return cls(fields["at_most"].integer(minimum=1) if "at_most" in fields else None)

    @property
    def label(self) -> str:
        """The policy."""
        return "obedient"

    @property
    def endless(self) -> bool:
        """Whether no number of answers was given."""
        return self.at_most is None

    def start(self) -> int:
        """No answer so far."""
        return 0

    def decide(self, occasion: Occasion, state: int) -> Decision:
        """Answer; the state is the number of answers."""
        answered = state + 1
        answer = _obeyed(occasion.request)
        return Decision(answer, answered, done=self.at_most is not None and answered >= self.at_most)

    def sample(self) -> None:
        """Nothing: all depends on the request."""
        return

    def renamed(self, rename: Rename) -> Obedient:
        """Return itself: the user names the tool."""
        return self


def _obeyed(request: ModelRequest) -> Reply:
    results = list(_newest_results(request))
    text = _newest_text(request) if results else request.last_user_text
    for line in reversed(text.splitlines()):
        instructed = _instructed(line.strip())
        if instructed is not None:
            return instructed
    echo = "\n".join(result.text for result in results) if results else text
    return Reply((Text(echo.strip() or NOTHING_TO_SAY),), "end_turn")


def _newest_results(request: ModelRequest) -> Iterator[ToolResult]:
    """Yield the results that came with this request: those of the last messages up to the model's own."""
    for message in _newest_messages(request):
        yield from (block for block in message.blocks if isinstance(block, ToolResult))


def _newest_text(request: ModelRequest) -> str:
    return "\n".join(
        block.text for message in _newest_messages(request) for block in message.blocks if isinstance(block, Text)
    )


def _newest_messages(request: ModelRequest) -> list[Message]:
    """Return the messages after the last tool call, oldest first."""
    newest: list[Message] = []
    for message in reversed(request.messages):
        if any(isinstance(block, ToolUse) for block in message.blocks):
            break
        newest.append(message)
    return newest[::-1]


def _instructed(line: str) -> Reply | None:
    call = _CALL.fullmatch(line)
    if call:
        arguments = _json_object(call["arguments"])
        return None if arguments is None else Reply((ToolUse(call["tool"], arguments),), "tool_use")
    say = _SAY.fullmatch(line)
    return Reply((Text(say["text"]),), "end_turn") if say else None


def _json_object(text: str) -> dict[str, Any] | None:
    try:
        value = decode_json(text.encode("utf-8", "replace"))
    except NotJsonError:
        return None
    return value if isinstance(value, dict) else None
