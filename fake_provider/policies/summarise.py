"""``summarise``: answer a compaction request with a summary of the conversation, and leave out what the script says.

The summary is made from the request alone, by rule; there is no model behind it. What it leaves out is what a real
summary loses: a finished call, the files, what was still open, what nobody knows.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from fake_provider.document import Node
from fake_provider.matchers import Condition, read_matcher
from fake_provider.policies.policy import UNKNOWN_OUTCOME, Decision, Occasion, Wraps
from fake_provider.renaming import Rename, renamed_tool
from fake_provider.replies import Reply, Text, ToolUse
from fake_provider.requests import Message, ModelRequest, ToolResult, canonical_arguments

ABOUT = ("files", "tools", "unfinished", "unknown")
"""What a summary can leave out as a whole; any other word of ``leave_out`` is a tool's name."""

_TASK = re.compile(r"summar|compact|checkpoint", re.IGNORECASE)
_OBJECT = re.compile(r"conversation|history|context|session|hand-?off", re.IGNORECASE)
_PHRASES = re.compile(
    r"summar\w+ (?:of )?(?:the|this|our|your) (?:\w+ )?(?:conversation|chat|dialogue)\b"
    r"|summar\w+ (?:of )?(?:the|this|our) session(?: so far| above|\s*(?:[.,:!\n]|$))"
    r"|conversation to summari[sz]e|continuing (?:the|our) conversation|chat history into"
    r"|(?:compact|condense) (?:the|this|our) (?:conversation|history|context|session)\b"
    r"|context compaction|checkpoint (?:compaction|summary)|(?:continuation|hand-?off) summary|<state_snapshot>",
    re.IGNORECASE,
)
"""How clients word a compaction request that still offers their tools."""

_TAG = re.compile(r"<(summary|state_snapshot)>")
_FILE_KEYS = re.compile(r"(?:^|_)(?:file|path|filename)s?(?:$|_)", re.IGNORECASE)
_QUOTED_CHARACTERS = 200


def is_compaction(request: ModelRequest) -> bool:
    """Whether a request asks for a summary of the conversation, by the default rule.

    It offers no tools, and its last user text or its system prompt speaks of summarising, compacting or a checkpoint,
    and of the conversation, its history, its context, the session or a handoff. With tools, which ordinary work has
    too, its last user text holds one of the phrases that clients ask with.
    """
    if request.tools:
        return _PHRASES.search(request.last_user_text) is not None
    return _asks(request.last_user_text) or _asks(request.system)


def _asks(text: str) -> bool:
    return _TASK.search(text) is not None and _OBJECT.search(text) is not None


@dataclass(frozen=True, slots=True)
class Summarise:
    """Answer compaction requests; everything else is for the inner steps, or for the next step where there are none.

    Attributes:
        when: What a compaction request is; by ``is_compaction`` where the script does not say.
        leave_out: Words of ``ABOUT``, and names of tools whose calls are not told.
    """

    word: ClassVar[str] = "summarise"
    wraps: ClassVar[Wraps] = "optional"
    takes_fault: ClassVar[bool] = False
    keys: ClassVar[tuple[str, ...]] = ("when", "leave_out")
    required: ClassVar[tuple[str, ...]] = ()
    one_of: ClassVar[tuple[str, ...]] = ()

    when: tuple[Condition, ...] = ()
    leave_out: frozenset[str] = frozenset()

    @classmethod
    def read(cls, fields: Mapping[str, Node]) -> Summarise:
        """Read ``{when: {…}, leave_out: […]}``."""
        when = read_matcher(fields["when"]) if "when" in fields else ()
        items = fields["leave_out"].items("leave_out") if "leave_out" in fields else []
        return cls(when, frozenset(item.text() for item in items))

    @property
    def label(self) -> str:
        """The policy."""
        return "summarise"

    @property
    def endless(self) -> bool:
        """Never: other requests pass."""
        return False

    def start(self) -> None:
        """No state."""
        return

    def decide(self, occasion: Occasion, state: None) -> Decision:
        """Answer, or let pass."""
        request = occasion.request
        asked = all(condition.holds(request) for condition in self.when) if self.when else is_compaction(request)
        if not asked:
            return Decision(None, None)
        return Decision(Reply((Text(self._summary(request)),), "end_turn"), None)

    def _summary(self, request: ModelRequest) -> str:
        conversation = _without_the_request_itself(request)
        text = "\n".join(self._lines(conversation))
        tag = _TAG.search(f"{request.last_user_text}\n{request.system}")
        return f"<{tag[1]}>\n{text}\n</{tag[1]}>" if tag else text

    def _lines(self, request: ModelRequest) -> Iterator[str]:
        yield "Summary of the conversation so far."
        asked = [_quoted(text) for message in request.messages if message.role == "user" for text in _texts(message)]
        yield f"The user said: {' / '.join(asked) or 'nothing'}"
        results = {result.tool_use_id: result for result in request.tool_results}
        told = [call for call in request.tool_calls.values() if not {"tools", call.name} & self.leave_out]
        for call in told:
            line = self._line_of(call, results.get(call.id or ""))
            if line is not None:
                yield line
        files = sorted({path for call in told for path in _paths(call.input)})
        if files and "files" not in self.leave_out:
            yield f"Files: {', '.join(files)}"
        said = [text for message in request.messages if message.role == "assistant" for text in _texts(message)]
        if said:
            yield f"The assistant last said: {_quoted(said[-1])}"

    def _line_of(self, call: ToolUse, result: ToolResult | None) -> str | None:
        arguments = call.input
        if "files" in self.leave_out:
            arguments = {key: value for key, value in arguments.items() if not _FILE_KEYS.search(key)}
        what = f"{call.name} {canonical_arguments(arguments)}"
        if result is None:
            return None if "unfinished" in self.leave_out else f"Unfinished: {what} has no result"
        if UNKNOWN_OUTCOME.search(result.text):
            return None if "unknown" in self.leave_out else f"Unknown: {what}: {_quoted(result.text)}"
        return f"{'Failed' if result.is_error else 'Done'}: {what}: {_quoted(result.text)}"

    def sample(self) -> None:
        """Nothing: all depends on the request."""
        return

    def renamed(self, rename: Rename) -> Summarise:
        """Return it with its tools renamed."""
        tools = frozenset(word if word in ABOUT else renamed_tool(word, rename) for word in self.leave_out)
        return replace(self, when=tuple(condition.renamed(rename) for condition in self.when), leave_out=tools)


def _without_the_request_itself(request: ModelRequest) -> ModelRequest:
    """Return the conversation without the last user text, which asks for the summary and is no part of it."""
    messages = list(request.messages)
    for index in range(len(messages) - 1, -1, -1):
        if messages[index].role == "user" and _texts(messages[index]):
            kept = tuple(block for block in messages[index].blocks if not isinstance(block, Text))
            messages[index] = replace(messages[index], blocks=kept)
            break
    return replace(request, messages=tuple(messages))


def _texts(message: Message) -> list[str]:
    return [block.text for block in message.blocks if isinstance(block, Text)]


def _quoted(text: str) -> str:
    plain = " ".join(text.split())
    return plain if len(plain) <= _QUOTED_CHARACTERS else f"{plain[:_QUOTED_CHARACTERS]}…"


def _paths(arguments: Mapping[str, Any]) -> Iterator[str]:
    for key, value in arguments.items():
        if isinstance(value, str) and _FILE_KEYS.search(key):
            yield value
