"""Runs hook commands and joins what the hooks of one moment say (G1, G2, G3).

What the end of a hook means is read from `recovery/hooks.py`; this module never decides it by itself.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from reference_runtime.clock import Clock
from reference_runtime.frames import FrameSink, system_frame
from reference_runtime.processes import run_process
from reference_runtime.recovery.hooks import HOOKS, HookEnd, HookEvent, HookOutcome, HookReading, reading_of
from reference_runtime.settings import HookCommand


@dataclass(frozen=True)
class HookWord:
    """What one hook said: the outcome and the text that goes with it."""

    outcome: HookOutcome
    detail: str


@dataclass(frozen=True)
class HookWords:
    """What all hooks of one moment said, in the order of the settings."""

    words: tuple[HookWord, ...] = ()

    def first(self, outcome: HookOutcome) -> HookWord | None:
        """The first hook that said this, or None."""
        return next((word for word in self.words if word.outcome is outcome), None)

    def texts(self, outcome: HookOutcome) -> list[str]:
        """The texts of every hook that said this."""
        return [word.detail for word in self.words if word.outcome is outcome]


class HookRunner:
    """Runs the hooks of one session."""

    def __init__(
        self, hooks: tuple[HookCommand, ...], clock: Clock, sink: FrameSink, session: Mapping[str, str]
    ) -> None:
        """Make a runner; `session` holds session_id, transcript_path and cwd, which every hook is given."""
        self._hooks = hooks
        self._clock = clock
        self._sink = sink
        self._session = session

    async def run(self, event: HookEvent, tool_name: str | None = None, **fields: Any) -> HookWords:
        """Run every hook of this event whose matcher fits the tool, one after the other."""
        words = []
        for hook in self._hooks:
            if hook.event is event and _fits(hook.matcher, tool_name):
                given = {**self._session, "hook_event_name": event, **fields}
                if tool_name is not None:
                    given["tool_name"] = tool_name
                word = await self._run_one(hook, given)
                self._sink.emit(system_frame("hook", event=event, outcome=word.outcome, detail=word.detail))
                words.append(word)
        return HookWords(tuple(words))

    async def _run_one(self, hook: HookCommand, given: Mapping[str, Any]) -> HookWord:
        end, reading, detail = HookEnd.NOT_STARTED, HookReading.NOTHING, ""
        try:
            result = await run_process(
                ("/bin/sh", "-c", hook.command),
                given=json.dumps(given).encode(),
                working_folder=self._session["cwd"],
                limit_seconds=self._clock.limit_for_work(hook.timeout_seconds),
            )
        except OSError as error:
            detail = f"the hook could not be started: {error.strerror}"
        else:
            end, detail = _end_of(result.status, result.errors, hook.timeout_seconds)
            if end is HookEnd.EXIT_ZERO:
                reading, detail = _read_output(hook.event, result.output)
        return HookWord(HOOKS.decide(event=hook.event, end=end, reading=reading).decision, detail)


def _fits(matcher: str | None, tool_name: str | None) -> bool:
    if matcher is None or matcher == "*" or tool_name is None:
        return True
    try:
        return re.fullmatch(matcher, tool_name) is not None
    except re.error:
        return matcher == tool_name


def _end_of(status: int | None, errors: str, timeout_seconds: float) -> tuple[HookEnd, str]:
    if status is None:
        return HookEnd.TIMED_OUT, f"the hook gave no answer within {timeout_seconds:g} s"
    if status == 0:
        return HookEnd.EXIT_ZERO, ""
    if status == 2:
        return HookEnd.EXIT_TWO, errors.strip() or "the hook gave no reason"
    return HookEnd.EXIT_OTHER, f"the hook ended with exit status {status}: {errors.strip()}"


def _read_output(event: HookEvent, output: str) -> tuple[HookReading, str]:
    if not output.strip():
        return HookReading.NOTHING, ""
    try:
        value = json.loads(output)
    except ValueError:
        return HookReading.NOT_JSON, f"the hook's output is not JSON: {output.strip()[:200]!r}"
    return reading_of(event, value)
