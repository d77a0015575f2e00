"""Scripts: lanes of steps, read from YAML. Which reply a request gets is all decided by this data.

Frozen data. Loading a script checks all of it and starts nothing; a running provider's position in it is
``fake_provider.playback``'s.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal, TypeAlias

from fake_provider.dialects import DIALECTS
from fake_provider.document import DocumentError, Node, load_document
from fake_provider.listen import Listen
from fake_provider.matchers import Condition, read_matcher
from fake_provider.renaming import Rename
from fake_provider.replies import RedactedThinking, Reply, Thinking
from fake_provider.requests import ModelRequest
from fake_provider.steps import Entry, Spoken, Step, read_steps, renamed

WINDOW_TOKENS_DEFAULT = 200_000

Flushing: TypeAlias = Literal["whole", "event"]
"""Whether a streamed reply is handed to the kernel at once, or event by event."""


@dataclass(frozen=True, slots=True)
class Lane:
    """A queue of steps for the requests that its matcher takes; an empty matcher takes what no other lane does."""

    name: str
    matcher: tuple[Condition, ...]
    steps: tuple[Entry, ...]

    def takes(self, request: ModelRequest) -> bool:
        """Whether every condition holds."""
        return all(condition.holds(request) for condition in self.matcher)


@dataclass(frozen=True, slots=True)
class Script:
    """Everything a provider needs to know.

    Attributes:
        dialects: The wire protocols, words of ``fake_provider.dialects.DIALECTS``; the first that claims a request
            answers it.
        window_tokens: The context window, in tokens by the dialect's counting rule.
        lanes: In the order of the file.
        strict: Whether a request that the script has no answer for makes the run inconclusive.
        require_key: Whether a request without a key is refused.
        flush: How streamed replies are handed over.
        listen: How its provider listens.
        every_dialect: Whether each step has to work in each dialect; else in one of them at least.
    """

    dialects: tuple[str, ...]
    window_tokens: int
    lanes: tuple[Lane, ...]
    strict: bool = False
    require_key: bool = True
    flush: Flushing = "whole"
    listen: Listen = field(default_factory=Listen)
    every_dialect: bool = True

    @property
    def reasons(self) -> bool:
        """Whether any of its replies holds reasoning; what a policy answers by itself holds none."""
        return any(_reasons(entry) for lane in self.lanes for entry in lane.steps)

    def lane_for(self, request: ModelRequest) -> Lane | None:
        """Return the first lane whose matcher takes the request, else the default lane, else nothing."""
        default = None
        for lane in self.lanes:
            if not lane.matcher:
                default = lane
            elif lane.takes(request):
                return lane
        return default

    def renamed_tools(self, rename: Rename) -> Script:
        """Return the script with neutral tool names and arguments as the runtime under test writes them.

        Raises:
            DocumentError: A fault's place does not exist in the renamed reply.
        """
        spoken = Spoken(self.dialects, self.every_dialect)
        lanes = tuple(
            replace(
                lane,
                matcher=tuple(condition.renamed(rename) for condition in lane.matcher),
                steps=tuple(renamed(entry, rename, spoken) for entry in lane.steps),
            )
            for lane in self.lanes
        )
        return replace(self, lanes=lanes)


def _reasons(entry: Entry) -> bool:
    if any(_reasons(inner) for inner in entry.steps):
        return True
    answer = entry.answer if isinstance(entry, Step) else None
    return isinstance(answer, Reply) and any(isinstance(block, Thinking | RedactedThinking) for block in answer.blocks)


SCRIPT_KEYS = ("dialect", "window_tokens", "strict", "require_key", "flush", "listen", "lanes")


def load_script(path: Path) -> Script:
    """Read a script file; see ``parse_script``.

    Raises:
        DocumentError: The file cannot be read, or something in it is wrong.
    """
    return parse_script(load_document(path))


def parse_script(node: Node) -> Script:
    """Read a whole script: ``lanes``, and optionally the other ``SCRIPT_KEYS``.

    Raises:
        DocumentError: Something in it is wrong.
    """
    fields = node.fields("script", SCRIPT_KEYS, ["lanes"])
    window = fields["window_tokens"].integer(minimum=1) if "window_tokens" in fields else WINDOW_TOKENS_DEFAULT
    script = parse_lanes(
        fields["lanes"],
        window_tokens=window,
        dialects=_dialects(fields["dialect"]) if "dialect" in fields else None,
    )
    return replace(
        script,
        strict=fields["strict"].flag() if "strict" in fields else False,
        require_key=fields["require_key"].flag() if "require_key" in fields else True,
        flush=_flushing(fields["flush"]) if "flush" in fields else "whole",
        listen=Listen.read(fields["listen"]) if "listen" in fields else Listen(),
    )


def _dialects(node: Node) -> tuple[str, ...]:
    items = node.items("dialects") if isinstance(node.value, list) else [node]
    names = tuple(dict.fromkeys(item.choice("dialect", DIALECTS) for item in items))
    if not names:
        raise node.error("dialect is an empty list; leave it out to serve all")
    return names


def _flushing(node: Node) -> Flushing:
    return "event" if node.choice("way to flush", ("whole", "event")) == "event" else "whole"


def parse_lanes(
    node: Node,
    *,
    window_tokens: int = WINDOW_TOKENS_DEFAULT,
    dialects: Sequence[str] | None = None,
    strict: bool = False,
) -> Script:
    """Read a mapping of lane names to steps, or to ``{match, steps}``.

    Args:
        node: The mapping.
        window_tokens: The context window, in tokens.
        dialects: The wire protocols, in each of which every step has to work; all that there are, in one of which it
            has to, where it is nothing.
        strict: Whether an unexpected request makes the run inconclusive.

    Raises:
        DocumentError: Something in the mapping is wrong.
    """
    spoken = Spoken(tuple(DIALECTS if dialects is None else dialects), each=dialects is not None)
    lanes = [_read_lane(name, child, spoken) for name, child in node.entries("lanes").items()]
    if not lanes:
        raise node.error("expected at least one lane")
    defaults = [lane.name for lane in lanes if not lane.matcher]
    if len(defaults) > 1:
        second = node.entries("lanes")[defaults[1]]
        raise DocumentError(
            second.place,
            f"lane '{defaults[1]}' can never be reached: '{defaults[0]}' is the default lane. Give it a 'match'",
        )
    return Script(spoken.names, window_tokens, tuple(lanes), strict=strict, every_dialect=spoken.each)


def _read_lane(name: str, node: Node, spoken: Spoken) -> Lane:
    if isinstance(node.value, Mapping):
        fields = node.fields("lane", ("match", "steps"), ["steps"])
        matcher = read_matcher(fields["match"]) if "match" in fields else ()
        listing = fields["steps"]
    else:
        matcher, listing = (), node
    return Lane(name, matcher, read_steps(listing, f"steps of lane '{name}'", spoken))
