"""Scripts: lanes of steps, read from YAML. Which reply a request gets is all decided by this data.

Frozen data. Loading a script checks all of it and starts nothing; a running provider's position in it is
``fake_provider.playback``'s.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from fake_provider.dialects import DIALECT_DEFAULT, DIALECTS
from fake_provider.document import DocumentError, Node, load_document
from fake_provider.matchers import Condition, read_matcher
from fake_provider.requests import ModelRequest
from fake_provider.steps import Rename, Step, read_step

WINDOW_TOKENS_DEFAULT = 200_000


@dataclass(frozen=True, slots=True)
class Lane:
    """A queue of steps for the requests that its matcher takes; an empty matcher takes what no other lane does."""

    name: str
    matcher: tuple[Condition, ...]
    steps: tuple[Step, ...]

    def takes(self, request: ModelRequest) -> bool:
        """Whether every condition holds."""
        return all(condition.holds(request) for condition in self.matcher)


@dataclass(frozen=True, slots=True)
class Script:
    """Everything a provider needs to know.

    Attributes:
        dialect: The wire protocol, a word of ``fake_provider.dialects.DIALECTS``.
        window_tokens: The context window, in tokens by the dialect's counting rule.
        lanes: In the order of the file.
    """

    dialect: str
    window_tokens: int
    lanes: tuple[Lane, ...]

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
        lanes = tuple(
            replace(lane, steps=tuple(step.renamed(rename, self.dialect) for step in lane.steps)) for lane in self.lanes
        )
        return replace(self, lanes=lanes)


def load_script(path: Path) -> Script:
    """Read a script file: ``lanes``, and optionally ``dialect`` and ``window_tokens``.

    Raises:
        DocumentError: The file cannot be read, or something in it is wrong.
    """
    fields = load_document(path).fields("script", ("dialect", "window_tokens", "lanes"), ["lanes"])
    dialect = fields["dialect"].choice("dialect", DIALECTS) if "dialect" in fields else DIALECT_DEFAULT
    window = fields["window_tokens"].integer(minimum=1) if "window_tokens" in fields else WINDOW_TOKENS_DEFAULT
    return parse_lanes(fields["lanes"], window_tokens=window, dialect=dialect)


def parse_lanes(node: Node, *, window_tokens: int = WINDOW_TOKENS_DEFAULT, dialect: str = DIALECT_DEFAULT) -> Script:
    """Read a mapping of lane names to steps, or to ``{match, steps}``.

    Args:
        node: The mapping.
        window_tokens: The context window, in tokens.
        dialect: The wire protocol.

    Raises:
        DocumentError: Something in the mapping is wrong.
    """
    lanes = [_read_lane(name, child, dialect) for name, child in node.entries("lanes").items()]
    if not lanes:
        raise node.error("expected at least one lane")
    defaults = [lane.name for lane in lanes if not lane.matcher]
    if len(defaults) > 1:
        second = node.entries("lanes")[defaults[1]]
        raise DocumentError(
            second.place,
            f"lane '{defaults[1]}' can never be reached: '{defaults[0]}' is the default lane. Give it a 'match'",
        )
    return Script(dialect, window_tokens, tuple(lanes))


def _read_lane(name: str, node: Node, dialect: str) -> Lane:
    if isinstance(node.value, Mapping):
        fields = node.fields("lane", ("match", "steps"), ["steps"])
        matcher = read_matcher(fields["match"]) if "match" in fields else ()
        listing = fields["steps"]
    else:
        matcher, listing = (), node
    steps = [step for item in listing.items(f"steps of lane '{name}'") for step in read_step(item, dialect)]
    return Lane(name, matcher, tuple(steps))
