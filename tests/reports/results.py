"""Hand-made results for the reports: one cell of each outcome, from evidence that no machine had a part in.

Texts in them are as hostile as a runtime's output may be: control characters, markup, bidirectional overrides.
"""

from __future__ import annotations

from harness.model.event import Source
from harness.model.evidence import Evidence
from harness.model.outcome import CheckResult, Outcome, Role
from harness.model.result import Deviation, ProbeResult
from tests.harness.histories import (
    BY_ITSELF,
    CRASHED,
    answering,
    asking,
    assistant,
    event,
    evidence,
    fired,
    hook,
    in_phase,
    made,
    refused,
    reply,
    request,
    side_request,
    tool,
    unexpected,
    user,
)

HOSTILE = "[bold]x[/bold] \x1b[2J\x07 \u202e\u2028 \ud83d ünï \ufffe <&>\"'\r\n\ttwo"


def crash() -> Evidence:
    """A run with one event of every kind that a timeline tells."""
    history = made(
        event(Source.PROCESS, "process.started", phase=1),
        side_request(1),
        request(2, user("Deploy release 7 " + "and so on " * 20)),
        *reply(2),
        tool("called", "deploy", 1, release="7 ü"),
        tool("committed", "deploy", 1, release="7 ü"),
        event(Source.PROVIDER, "hold.reached", request=2, position="tool.committed", detail="call 1 of deploy"),
        fired("phase 1: SIGTERM at tool.committed"),
        event(Source.PROVIDER, "client.left", request=2, connection=1, bytes_sent=17),
        event(Source.PROCESS, "process.killed", reason="it outlived SIGTERM by 15 s"),
        event(Source.PROCESS, "process.exited", code=None, signal="SIGKILL", ended=False),
        *in_phase(
            2,
            event(Source.PROCESS, "process.started", phase=2),
            request(3, user("Go."), assistant(asking("t1")), user([answering("t1", HOSTILE, error=True)])),
            refused(3, "messages.1: tool_use ids must be unique", "another"),
            *reply(3, 400),
            request(4, body="not JSON", stream=False, model=None),
            unexpected(4, "the script of lane 'main' is used up"),
            *reply(4, None, complete=False),
            event(Source.PROVIDER, "fault.skipped", fault="lane main: say: cut", reason="not streamed"),
            event(Source.PROVIDER, "hold.skipped", position="reply.streaming", fault="x", reason="no such event"),
            tool("answered", "deploy", 1, release="7 ü"),
            hook("stop", "Once more."),
            hook("pre_tool"),
            event(Source.PROCESS, "process.overdue", wall_seconds=60.0),
            event(Source.PROCESS, "process.exited", code=None, signal=None, ended=False),
            event(Source.PROCESS, "process.exited", code=3, signal=None, ended=True),
            event(Source.RUNTIME, "output.line", stream="stdout", text="left out"),
        ),
        ends=(CRASHED, BY_ITSELF),
    )
    checks = (
        CheckResult("faults.all-fired", Outcome.PASS, [], [], Role.PRECONDITION),
        CheckResult("effects.exactly-once.deploy", Outcome.FAIL, 1, 2),
        CheckResult("ending.answer", Outcome.FAIL, "an answer", "long " * 200),
        CheckResult("tools.results", Outcome.FAIL, [{"tool": "deploy"}], HOSTILE, detail=f"detail: {HOSTILE}"),
        CheckResult("ending.turns", Outcome.WARN, 1, 2, detail="it should count one"),
    )
    observed = {"requests": 3, "effects": {"deploy": 2}, "exit": 3}
    return evidence(history, checks, observed=observed)


def single(outcome: Outcome, detail: str = "") -> Evidence:
    """A short run whose one check says this."""
    check = CheckResult("some.check", outcome, "this", "that", Role.CLAIM, detail)
    history = made(event(Source.PROCESS, "process.exited", code=0, signal=None, ended=True))
    return evidence(history, (check,), run=f"20261130-203015-{outcome.value}")


def result(
    probe: str, outcome: Outcome, *evidences: Evidence, runtime: str = "fake@1.0", **more: object
) -> ProbeResult:
    """One cell."""
    deviation = more.get("deviation")
    assert deviation is None or isinstance(deviation, Deviation)
    claim = str(more.get("claim", f"It is {outcome}."))
    return ProbeResult(probe, claim, ("N4", "N5"), runtime, outcome, evidences, 1.25, deviation)


KNOWN = Deviation("tool.crash", Outcome.FAIL, frozenset({"effects.exactly-once.deploy"}), "It forgets the call.")


def results() -> list[ProbeResult]:
    """One cell of each outcome, on two runtimes."""
    return [
        result("tool.crash", Outcome.FAIL, crash(), deviation=KNOWN),
        result("request.fine", Outcome.PASS, single(Outcome.PASS)),
        result("request.nearly", Outcome.WARN, single(Outcome.WARN, "it should")),
        result("request.unsure", Outcome.INCONCLUSIVE, single(Outcome.PASS), single(Outcome.INCONCLUSIVE, "no fault")),
        result("session.absent", Outcome.UNSUPPORTED, single(Outcome.UNSUPPORTED, "it has no resume")),
        result("session.broken", Outcome.HARNESS_ERROR, single(Outcome.HARNESS_ERROR, "KeyError: 'x'")),
        result("request.fine", Outcome.PASS, single(Outcome.PASS), runtime="reference"),
    ]
