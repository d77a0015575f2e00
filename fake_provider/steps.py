"""The steps of a lane: what requests are answered with, read from a script and checked before anything runs.

A step is frozen data, and so is a repeat, which holds steps. Reading one never serves anything; playing one is
``fake_provider.playback``'s.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeAlias, cast

from fake_provider.dialects import DIALECTS, Dialect, Served
from fake_provider.document import DocumentError, Node, Place, listed, nearest
from fake_provider.expectations import RequestExpectation
from fake_provider.faults import Fault, ReplyFault, read_fault
from fake_provider.faults.error_event import ErrorEventFault
from fake_provider.policies import POLICIES, Policy
from fake_provider.renaming import Rename, renamed_call
from fake_provider.replies import ERROR_WORDS, ErrorReply, Reply, ToolUse
from fake_provider.reply_words import CALL_KEYS, SHORT_KEYS, called, read_reply, read_short, read_status
from fake_provider.templates import answer_holds_values, holds_values
from fake_provider.wire import Draft, Frame

Answer: TypeAlias = Reply | ErrorReply | Policy

REPEATS_LEVELS_MAX = 20


@dataclass(frozen=True, slots=True)
class HoldStep:
    """Keep the client waiting until somebody releases the hold by its name.

    Attributes:
        name: What it is released by.
        event: After which event of the reply it is kept, by the dialect's name or a place; before anything is answered
            where it is nothing.
        nth: Which event of that name, from 1.
    """

    name: str
    event: str | None = None
    nth: int = 1


@dataclass(frozen=True, slots=True)
class Step:
    """One step: a label for people, the answer, and what happens to it.

    The fault and the hold of a policy strike its first ask only, so that it can go on to see a success.

    Attributes:
        label: What the journal calls it.
        answer: What is answered, or the policy that decides it.
        fault: What goes wrong with the answer.
        fault_place: Where the fault stands in the file.
        hold: Where the client is kept waiting.
        expectation: What the request should be like.
        steps: The inner steps of a policy.
        templated: Whether texts of the answer hold values from the request.
        place: Where the step stands in the file.
    """

    label: str
    answer: Answer
    fault: Fault | None = None
    fault_place: Place | None = None
    hold: HoldStep | None = None
    expectation: RequestExpectation | None = None
    steps: tuple[Entry, ...] = ()
    templated: bool = False
    place: Place | None = field(default=None, compare=False)

    @property
    def policy(self) -> Policy | None:
        """The policy, where the step is one."""
        return None if isinstance(self.answer, Reply | ErrorReply) else self.answer

    @property
    def sample(self) -> Reply | ErrorReply | None:
        """The answer that a fault would strike, or nothing where that depends on the request."""
        return self.answer if isinstance(self.answer, Reply | ErrorReply) else self.answer.sample()

    def renamed(self, rename: Rename, spoken: Spoken) -> Step:
        """Return the step with every tool called as the runtime under test calls it.

        Raises:
            DocumentError: The fault's place does not exist in the renamed reply.
        """
        expectation = self.expectation.renamed(rename) if self.expectation is not None else None
        inner = tuple(renamed(entry, rename, spoken) for entry in self.steps)
        step = replace(self, answer=_renamed_answer(self.answer, rename), expectation=expectation, steps=inner)
        check_step(step, spoken)
        return step


def _renamed_answer(answer: Answer, rename: Rename) -> Answer:
    if isinstance(answer, ErrorReply):
        return answer
    if not isinstance(answer, Reply):
        return answer.renamed(rename)
    blocks = tuple(renamed_call(block, rename) if isinstance(block, ToolUse) else block for block in answer.blocks)
    return replace(answer, blocks=blocks)


@dataclass(frozen=True, slots=True)
class Repeat:
    """Steps that are played several times in a row; ``times`` is nothing where they are played for ever."""

    steps: tuple[Entry, ...]
    times: int | None


Entry: TypeAlias = Step | Repeat


def renamed(entry: Entry, rename: Rename, spoken: Spoken) -> Entry:
    """Return an entry of a lane with every tool called as the runtime under test calls it."""
    if isinstance(entry, Repeat):
        return replace(entry, steps=tuple(renamed(inner, rename, spoken) for inner in entry.steps))
    return entry.renamed(rename, spoken)


def endless(entry: Entry) -> bool:
    """Whether no step after this one can ever be reached."""
    if isinstance(entry, Repeat):
        return entry.times is None or any(endless(inner) for inner in entry.steps)
    policy = entry.policy
    return policy is not None and (policy.endless or any(endless(inner) for inner in entry.steps))


def in_order(entries: Sequence[Entry], rounds_at_most: int) -> Iterator[Step]:
    """Yield the steps in the order of play, a repeat's so many times at most, a policy and its inner steps once."""
    for entry in entries:
        if isinstance(entry, Repeat):
            times = rounds_at_most if entry.times is None else min(entry.times, rounds_at_most)
            for _ in range(times):
                yield from in_order(entry.steps, rounds_at_most)
        else:
            yield entry
            yield from in_order(entry.steps, rounds_at_most)


def answers_at_least(entries: Sequence[Entry]) -> int:
    """Return how many requests finite steps answer; a policy counts as one."""
    count = 0
    for entry in entries:
        if isinstance(entry, Repeat):
            count += (entry.times or 1) * answers_at_least(entry.steps)
        else:
            count += answers_at_least(entry.steps) or 1
    return count


@dataclass(frozen=True, slots=True)
class Spoken:
    """The dialects in which a script can be asked.

    Attributes:
        names: Words of ``DIALECTS``.
        each: Whether every step has to work in each of them, or in one at least.
    """

    names: tuple[str, ...]
    each: bool

    def reason(self, reasons: Mapping[str, str | None]) -> str | None:
        """Return why something does not work, from the reason of each dialect, or nothing if it does."""
        found = [(name, reason) for name, reason in reasons.items() if reason is not None]
        if not found or (not self.each and len(found) < len(reasons)):
            return None
        name, reason = found[0]
        return reason if len(reasons) == 1 else f"in {name}, {reason}"


_SAMPLE_BODIES: tuple[Mapping[str, object], ...] = ({}, {"stream_options": {"include_usage": True}})
"""Bodies that a reply may repeat or follow; the second asks for every event that a client can ask for."""


def _sample_served(dialect: Dialect, body: Mapping[str, object]) -> Served:
    return Served(dialect.message_id(1, 1), dialect.request_id(1), "", 0, 0, body)


def _with_sample_ids(reply: Reply, dialect: Dialect) -> Reply:
    blocks = tuple(
        replace(block, id=block.id or dialect.call_id(1, number)) if isinstance(block, ToolUse) else block
        for number, block in enumerate(reply.blocks, start=1)
    )
    return replace(reply, blocks=blocks)


def sample_frames(step: Step, dialect: str) -> tuple[Frame, ...]:
    """Return the events that a step streams, with sample identifiers; none where it answers with a status."""
    sample = step.sample
    if not isinstance(sample, Reply):
        return ()
    speaking = DIALECTS[dialect]
    return speaking.frames(_with_sample_ids(sample, speaking), _sample_served(speaking, {}))


def sample_drafts(answer: Reply | ErrorReply, dialect: Dialect) -> tuple[Draft, ...]:
    """Return the ways in which a dialect would send an answer: streamed first, then whole."""
    if isinstance(answer, ErrorReply):
        return (Draft.of_plain(dialect.error(answer, _sample_served(dialect, {}))),)
    reply = _with_sample_ids(answer, dialect)
    drafts = []
    for body in _SAMPLE_BODIES:
        served = _sample_served(dialect, body)
        frames = dialect.frames(reply, served)
        drafts.append(Draft(200, dialect.stream_headers(served), frames, streamed=True, transfer="chunked"))
    return (*drafts, Draft.of_plain(dialect.whole(reply, _sample_served(dialect, {}))))


def check_step(step: Step, spoken: Spoken) -> None:
    """Refuse a reply that cannot be said, and a fault or a hold that cannot be reached.

    What depends on values from the request is left to the run.

    Raises:
        DocumentError: It names the reason, and the dialect where there are several.
    """
    sample = step.sample
    if sample is None or step.templated or step.place is None:
        return
    if isinstance(sample, Reply):
        reason = spoken.reason({name: DIALECTS[name].unsayable(sample) for name in spoken.names})
        if reason is not None:
            raise DocumentError(step.place, f"step '{step.label}' cannot be said: {reason}")
    if step.fault is not None:
        reason = spoken.reason({name: _unreachable(step.fault, sample, name) for name in spoken.names})
        if reason is not None:
            raise DocumentError(
                step.fault_place or step.place,
                f"fault '{step.fault.kind}' cannot be reached in step '{step.label}': {reason}",
            )
    if step.hold is not None and step.hold.event is not None:
        reason = spoken.reason({name: _hold_unreachable(step.hold, sample, name) for name in spoken.names})
        if reason is not None:
            raise DocumentError(
                step.place, f"hold '{step.hold.name}' cannot be reached in step '{step.label}': {reason}"
            )


def _unreachable(fault: Fault, answer: Reply | ErrorReply, name: str) -> str | None:
    dialect = DIALECTS[name]
    if isinstance(fault, ReplyFault):
        if isinstance(answer, ErrorReply):
            return "the step answers with an error, and this fault rewrites what the model says"
        return fault.unsayable(answer) or dialect.unsayable(fault.reshape(answer))
    if isinstance(answer, Reply) and dialect.unsayable(answer) is not None:
        return dialect.unsayable(answer)
    return _reason_of_all(fault.unreachable, sample_drafts(answer, dialect))


def _hold_unreachable(hold: HoldStep, answer: Reply | ErrorReply, name: str) -> str | None:
    dialect = DIALECTS[name]
    if isinstance(answer, Reply) and dialect.unsayable(answer) is not None:
        return dialect.unsayable(answer)

    def unreachable(draft: Draft) -> str | None:
        count = sum(frame.is_at(hold.event or "") for frame in draft.frames)
        if count >= hold.nth:
            return None
        if count:
            return f"the reply has {count} '{hold.event}' events, so there is no number {hold.nth}"
        return f"the reply has no event '{hold.event}'. Its events: {_names(draft)}"

    return _reason_of_all(unreachable, sample_drafts(answer, dialect))


def _names(draft: Draft) -> str:
    return ", ".join(dict.fromkeys(frame.name for frame in draft.frames))


def _reason_of_all(unreachable: Callable[[Draft], str | None], drafts: Sequence[Draft]) -> str | None:
    """Return the first draft's reason where the place is in none of them."""
    reasons = [unreachable(draft) for draft in drafts]
    return reasons[0] if all(reason is not None for reason in reasons) else None


FAULT_SHORTHANDS = ("close", "cut", "error_event", "reset", "stall")
"""Kinds of fault that can stand in a step as keys of their own."""

_HAPPENS_KEYS = ("fault", *FAULT_SHORTHANDS, "hold")
_COMMON_KEYS = (*_HAPPENS_KEYS, "expect_request", "times", "forever", "name")
_KIND_KEYS = ("status", "error", "reply", *POLICIES, "repeat", "calls", "call", "say", "block")
STEP_KEYS = tuple(dict.fromkeys((*_KIND_KEYS, *SHORT_KEYS, *CALL_KEYS, *_COMMON_KEYS)))


def read_steps(node: Node, kind: str, spoken: Spoken, level: int = 0) -> tuple[Entry, ...]:
    """Read a list of steps.

    Args:
        node: The list.
        kind: What it is, for messages.
        spoken: The dialects in which the steps have to work.
        level: How many lists of steps are around it.

    Raises:
        DocumentError: A word or key is unknown, a value has the wrong type, or something can never be reached.
    """
    if level > REPEATS_LEVELS_MAX:
        raise node.error(f"steps are nested more than {REPEATS_LEVELS_MAX} levels deep")
    entries: list[Entry] = []
    waiting: tuple[HoldStep, Node] | None = None
    for item in node.items(kind):
        if entries and endless(entries[-1]):
            raise item.error("this step can never be reached: the one before it goes on for ever")
        alone = _hold_alone(item)
        if alone is not None:
            if waiting is not None:
                raise item.error(f"hold '{alone.name}' follows another hold; put a step between them")
            waiting = (alone, item)
            continue
        read = _read_entry(item, spoken, level)
        if waiting is not None:
            read = _held(read, waiting[0], item, spoken)
            waiting = None
        entries += read
    if waiting is not None:
        raise waiting[1].error(f"hold '{waiting[0].name}' has no step after it that answers once it is released")
    return tuple(entries)


def _hold_alone(node: Node) -> HoldStep | None:
    if not isinstance(node.value, Mapping) or set(node.value) != {"hold"}:
        return None
    return _read_hold(node.entries("step")["hold"])


def _held(entries: list[Entry], hold: HoldStep, node: Node, spoken: Spoken) -> list[Entry]:
    """Return the entries with the hold in the first one's first play."""
    first = entries[0]
    if isinstance(first, Repeat) and len(first.steps) == 1 and isinstance(first.steps[0], Step):
        once = first.steps[0]
        left = None if first.times is None else first.times - 1
        following: list[Entry] = [] if left == 0 else [replace(first, times=left)]
        return [*_held([once], hold, node, spoken), *following, *entries[1:]]
    if isinstance(first, Repeat) or first.steps:
        raise node.error(f"hold '{hold.name}' cannot stand before steps that hold steps; put it inside")
    if first.hold is not None:
        raise node.error(f"hold '{hold.name}' stands before a step that has a hold of its own")
    held = replace(first, hold=hold)
    check_step(held, spoken)
    return [held, *entries[1:]]


def _read_entry(node: Node, spoken: Spoken, level: int) -> list[Entry]:
    if isinstance(node.value, str):
        return [_read_word(node, spoken)]
    if not isinstance(node.value, Mapping):
        raise node.expected("a step as a word or a mapping")
    fields = node.fields("step", set(STEP_KEYS))
    if "repeat" in fields:
        _only("repeat", fields, ["repeat"], ())
        return _read_repeat(fields["repeat"], spoken, level)
    step = _read_step(node, fields, spoken, level)
    times = _times(fields)
    return [step] if times == 1 else [Repeat((step,), times)]


def _read_word(node: Node, spoken: Spoken) -> Step:
    word = node.text()
    if word in FAULT_SHORTHANDS:
        step = Step(word, EMPTY_REPLY, read_fault(node), node.place, place=node.place)
    elif word in ERROR_WORDS:
        step = Step(word, ERROR_WORDS[word], place=node.place)
    else:
        words = [*ERROR_WORDS, *FAULT_SHORTHANDS]
        raise node.error(f"unknown step '{word}'{nearest(word, words)}; or a mapping with {listed(_KIND_KEYS)}")
    check_step(step, spoken)
    return step


def _read_repeat(node: Node, spoken: Spoken, level: int) -> list[Entry]:
    fields = node.fields("repeat", ("times", "forever", "steps", "then"), ["steps"])
    if "times" not in fields and not ("forever" in fields and fields["forever"].flag()):
        raise node.error("repeat has neither 'times: NUMBER' nor 'forever: true'")
    steps = read_steps(fields["steps"], "steps of repeat", spoken, level + 1)
    if not steps:
        raise fields["steps"].error("repeat has no steps; at least one is needed")
    repeat = Repeat(steps, _times(fields))
    if "then" not in fields:
        return [repeat]
    if endless(repeat):
        raise fields["then"].error("'then' can never be reached: the steps before it go on for ever")
    return [repeat, *read_steps(fields["then"], "steps of then", spoken, level + 1)]


def _times(fields: Mapping[str, Node]) -> int | None:
    """Return how often a step is played; nothing is for ever."""
    forever = "forever" in fields and fields["forever"].flag()
    times = fields["times"].integer(minimum=1) if "times" in fields else 1
    if forever and "times" in fields:
        raise fields["times"].error("'times' and 'forever' exclude each other")
    return None if forever else times


EMPTY_REPLY = Reply((), "end_turn")
"""What a fault strikes in a step that says nothing."""


def _read_step(node: Node, fields: Mapping[str, Node], spoken: Spoken, level: int) -> Step:
    kind = next((key for key in _KIND_KEYS if key in fields), None)
    fault, fault_place = _read_what_happens(fields, spoken)
    inner: tuple[Entry, ...] = ()
    if kind is None:
        if fault is None:
            raise node.error(f"step has none of {listed(_KIND_KEYS)}")
        _only(next(key for key in _HAPPENS_KEYS if key in fields), fields, (), _COMMON_KEYS)
        label, answer = fault.kind, cast("Answer", EMPTY_REPLY)
    elif kind in POLICIES:
        answer, inner = _read_policy(kind, fields, spoken, level)
        label = answer.label
    else:
        label, answer = _KINDS[kind](fields)
    step = Step(
        label=fields["name"].text() if "name" in fields else label,
        answer=answer,
        fault=fault,
        fault_place=fault_place,
        hold=_read_hold(fields["hold"]) if "hold" in fields else None,
        expectation=RequestExpectation.read(fields["expect_request"]) if "expect_request" in fields else None,
        steps=inner,
        templated=isinstance(answer, Reply | ErrorReply) and answer_holds_values(answer),
        place=node.place,
    )
    check_step(step, spoken)
    return step


def _read_what_happens(fields: Mapping[str, Node], spoken: Spoken) -> tuple[Fault | None, Place | None]:
    given = [key for key in ("fault", *FAULT_SHORTHANDS) if key in fields]
    if not given:
        return None, None
    if len(given) > 1:
        raise fields[given[1]].error(f"a step has one fault, found {listed(given)}")
    [key] = given
    child = fields[key]
    node = child if key == "fault" else Node({key: child.value}, child.place, child.path.rpartition(".")[0])
    fault = read_fault(node)
    if isinstance(fault, ErrorEventFault) and fault.error_type is not None:
        known = dict.fromkeys(word for name in spoken.names for word in DIALECTS[name].error_types)
        if fault.error_type not in known:
            raise DocumentError(
                child.place, f"unknown error type '{fault.error_type}'{nearest(fault.error_type, known)}"
            )
    return fault, child.place


def _read_hold(node: Node) -> HoldStep:
    if isinstance(node.value, str):
        hold = HoldStep(node.text())
    else:
        fields = node.fields("hold", ("name", "event", "nth"), ["name"])
        if "nth" in fields and "event" not in fields:
            raise fields["nth"].error("'nth' counts events, and this hold has no 'event'")
        hold = HoldStep(
            fields["name"].text(),
            fields["event"].text() if "event" in fields else None,
            fields["nth"].integer(minimum=1) if "nth" in fields else 1,
        )
    if not hold.name:
        raise node.error("a hold needs a name to be released by")
    return hold


def _read_policy(word: str, fields: Mapping[str, Node], spoken: Spoken, level: int) -> tuple[Policy, tuple[Entry, ...]]:
    kind = POLICIES[word]
    _only(word, fields, [word], _COMMON_KEYS if kind.takes_fault else ("name", "times", "forever"))
    node = fields[word]
    if node.value is None:
        node = Node({}, node.place, node.path)
    keys = (*kind.keys, "steps") if kind.wraps != "never" else kind.keys
    required = (*kind.required, "steps") if kind.wraps == "always" else kind.required
    inner = node.fields(word, keys, required)
    for key, child in inner.items():
        if key != "steps" and holds_values(child.data()):
            raise child.error(f"'{word}' takes no values from the request; say, call, reply and status do")
    if kind.one_of and not any(key in inner for key in kind.one_of):
        raise node.error(f"{word} has none of {listed(kind.one_of)}; it needs one at least")
    policy = kind.read({key: child for key, child in inner.items() if key != "steps"})
    if "steps" not in inner:
        return policy, ()
    steps = read_steps(inner["steps"], f"steps of {word}", spoken, level + 1)
    if not steps:
        raise inner["steps"].error(f"{word} has no steps; at least one is needed")
    return policy, steps


def _only(kind: str, fields: Mapping[str, Node], own: Collection[str], common: Collection[str]) -> None:
    """Refuse keys that are known but mean nothing beside this kind of step."""
    for key, child in fields.items():
        if key not in own and key not in common and key != kind:
            raise DocumentError(
                child.place, f"key '{key}' cannot stand beside '{kind}' in step. Allowed: {listed({*own, *common})}"
            )


def _read_status(fields: Mapping[str, Node]) -> tuple[str, Answer]:
    _only("status", fields, ["status"], _COMMON_KEYS)
    error = read_status(fields["status"])
    return f"status {error.status}", error


def _read_error(fields: Mapping[str, Node]) -> tuple[str, Answer]:
    _only("error", fields, ["error"], _COMMON_KEYS)
    word = fields["error"].choice("error", ERROR_WORDS)
    return word, ERROR_WORDS[word]


def _read_general(fields: Mapping[str, Node]) -> tuple[str, Answer]:
    _only("reply", fields, ["reply"], _COMMON_KEYS)
    return "reply", read_reply(fields["reply"])


def _read_short(kind: str, own: Collection[str]) -> Callable[[Mapping[str, Node]], tuple[str, Answer]]:
    def read(fields: Mapping[str, Node]) -> tuple[str, Answer]:
        _only(kind, fields, own, _COMMON_KEYS)
        reply = read_short(fields)
        tools = ", ".join(call.name for call in called(reply))
        return (f"call {tools}" if tools else kind), reply

    return read


_KINDS: Mapping[str, Callable[[Mapping[str, Node]], tuple[str, Answer]]] = {
    "status": _read_status,
    "error": _read_error,
    "reply": _read_general,
    "calls": _read_short("calls", ("calls", *SHORT_KEYS)),
    "call": _read_short("call", ("call", *CALL_KEYS, *SHORT_KEYS)),
    "say": _read_short("say", SHORT_KEYS),
    "block": _read_short("block", SHORT_KEYS),
}
