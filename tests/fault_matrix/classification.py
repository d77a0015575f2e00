"""What an observation amounts to: words for it, and the misreadings in it. Nothing is judged by hand."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass

from tests.fault_matrix.cases import Case
from tests.fault_matrix.observation import OWN_MODULES, Cell, Observed

MISREADINGS: Mapping[str, str] = {
    "truncated": "takes a text that was cut for a whole one, and raises nothing",
    "altered": "hands out a text that was never said, and raises nothing",
    "call": "hands out a tool call that was never made in this form, and raises nothing",
    "nothing": "takes a reply that never came for an empty one, and raises nothing",
    "foreign": "hands out a body that is no reply as if it were one",
    "stranger": "sends the caller's key to an address that the caller never named",
    "gave_up": "gives up a reply that is good by the rules of HTTP and of event streams",
    "untyped": "raises an error that is not of its own kind",
}
"""Every way to take a fault wrongly, the worst first."""


@dataclass(frozen=True)
class Verdict:
    """What an observation amounts to: words for people, words of ``MISREADINGS``, and the error that was raised."""

    words: str
    misreadings: tuple[str, ...] = ()
    error: str | None = None


def judge(case: Case, cell: Cell, good: Observed, observed: Observed) -> Verdict:
    """Compare what a cell did with what it does where nothing is wrong."""
    if observed.error is not None:
        return Verdict(_raised(good, observed), _misread_by_raising(case, cell, observed), observed.error)
    return Verdict(_returned(case, good, observed), _misread_by_returning(case, good, observed))


def is_timeout(error: str) -> bool:
    """Whether an error says that the client's patience ended."""
    return error.rpartition(".")[2].endswith(("Timeout", "TimeoutError"))


def _raised(good: Observed, observed: Observed) -> str:
    error = observed.error or ""
    words = f"hung until its timeout (`{error}`)" if is_timeout(error) else f"raised `{error}`"
    given = [_text(good, observed)] if observed.text else []
    given += [_calls(good, observed)] if observed.calls else []
    return f"{words} after {' and '.join(given)}" if given else words


def _text(good: Observed, observed: Observed) -> str:
    if observed.text == good.text:
        return "the whole text"
    if not observed.text:
        return "no text"
    if good.text.startswith(observed.text):
        return "truncated text"
    return f"altered text: “{observed.text}”"


def _calls(good: Observed, observed: Observed) -> str:
    if observed.calls == good.calls:
        return "the whole tool call" if len(good.calls) == 1 else "both tool calls"
    if not observed.calls:
        return "no tool call"
    return ", ".join(f"a tool call with arguments `{arguments or '(empty)'}`" for _, arguments in observed.calls)


def _returned(case: Case, good: Observed, observed: Observed) -> str:
    if observed.other_type is not None:
        return f"returned a `{observed.other_type}` with the body in it"
    parts = []
    if case.longer and len(observed.text) > len(good.text):
        parts.append("the long text")
    elif good.text or observed.text:
        parts.append(_text(good, observed))
    parts += [_calls(good, observed)] if good.calls or observed.calls else []
    if observed.stop is None:
        parts.append("no stop reason")
    elif observed.stop != good.stop:
        parts.append(f"stop reason `{observed.stop}`")
    if case.counts:
        counts = "no counts" if observed.usage is None else "counts {} and {}".format(*observed.usage)
        parts.append(counts)
    words = f"returned {', '.join(parts)}"
    return f"{words}; sent the key to the stranger" if observed.key_went_elsewhere else words


def _misread_by_raising(case: Case, cell: Cell, observed: Observed) -> tuple[str, ...]:
    own = (observed.error or "").partition(".")[0] == OWN_MODULES[cell.client]
    found = ["stranger"] if observed.key_went_elsewhere else []
    found += ["gave_up"] if case.harmless else []
    found += [] if own else ["untyped"]
    return tuple(found)


def _misread_by_returning(case: Case, good: Observed, observed: Observed) -> tuple[str, ...]:
    if observed.key_went_elsewhere:
        return ("stranger",)
    if observed.other_type is not None:
        return ("foreign",)
    if case.said_by_model:
        # What the model said is what is to be handed out; only a client that makes another thing of it misreads it.
        whole = case.arguments is None or all(
            _parses(case.arguments) or not _parses(text) for _, text in observed.calls
        )
        return () if whole else ("call",)
    if (good.text and not observed.text) or (good.calls and not observed.calls):
        return ("nothing",)
    found = []
    if good.text != observed.text and not case.longer:
        found.append("truncated" if good.text.startswith(observed.text) else "altered")
    if good.calls != observed.calls:
        found.append("call")
    return tuple(found)


def _parses(text: str) -> bool:
    try:
        json.loads(text)
    except ValueError:
        return False
    return True
