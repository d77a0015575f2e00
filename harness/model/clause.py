"""The recovery contract's clauses, each in one sentence; docs/contract.md is rendered from this table.

The number of a clause is its name and is never reused. This table says what is owed, never how a runtime does it.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Clause:
    """One numbered duty of an agent runtime towards its user when something fails."""

    id: str
    duty: str


SECTIONS: dict[str, str] = {
    "A": "Request layer",
    "B": "Stream layer",
    "C": "Model fallback",
    "D": "Model output",
    "E": "Context",
    "F": "Tools",
    "G": "Hooks",
    "H": "MCP",
    "I": "Subagents and background tasks",
    "J": "Session",
    "K": "File checkpoints",
    "L": "Terminal reasons and lifecycle",
    "M": "Observability",
    "N": "Durable tool execution",
    "O": "Recovery API",
    "P": "Recovery card",
    "Q": "Limited retry",
}

DUTIES: dict[str, str] = {
    "A1": "Overload, server and connection errors, idle timeouts, 408, 409 and 429 are retried; other 4xx never are.",
    "A2": "max_retries=N allows N attempts after the first.",
    "A3": "Backoff is exponential, jittered and capped; Retry-After, retry-after-ms and x-should-retry are obeyed.",
    "A4": "An attempt never raises the turn count and keeps the identity of its logical request.",
    "A5": "Each attempt can be told apart by ids, session, turn, attempt, models, stop reason and timing.",
    "A6": "A field or beta that the provider rejects is dropped once, remembered for the session, and recorded.",
    "A7": "A reply that is no valid message is retried within a bound, then ends in a typed terminal reason.",
    "A8": "A missing or blocked model goes to the fallback policy, not to the retry loop.",
    "B1": "A tool runs only from a complete block whose input parses; half a JSON never executes.",
    "B2": "Text may be shown while it streams; shown is not yet part of the transcript.",
    "B3": "A stream without an event for the idle limit is aborted and counted as a stall.",
    "B4": "A failed stream may be asked again without streaming, once a request, raising no turn.",
    "B5": "A failure after a finished tool discards the answer, keeps the effect, and never runs the action twice.",
    "B6": "An error event inside a 200 stream is classed as the same error with a status code is.",
    "C1": "When overload or unavailability has spent the primary, the next model of the chain takes over.",
    "C2": "At the switch the provisional branch is tombstoned and unfinished tools are aborted.",
    "C3": "A visible refusal asks the user; accepted, the session's model changes; declined, the reason is kept.",
    "C4": "A silent refusal spends a one-time credit and may salvage shown text, naming what it supersedes.",
    "C5": "A serving model changed by the server must be allowed; only swap_session changes the session's model.",
    "C6": "A tombstone removes messages from later requests and undoes nothing outside.",
    "D1": "A recoverable error is withheld from the user while recovery runs, and never from telemetry.",
    "D2": "A truncated output is continued up to three times by its own counter; max_tokens is never raised.",
    "D3": "One incomplete signed thinking block is resumed as it stands, behind a switch.",
    "D4": "stop_reason tool_use without a complete block is retried once, then ends in a typed terminal reason.",
    "D5": "A reply of thinking alone gets one nudge; the second time the end is accepted.",
    "E1": "Every over-length signal becomes one internal 'prompt is too long'.",
    "E2": "Compaction is decided in a fixed order of breaker, usefulness, eligibility, swap, success and failure.",
    "E3": "Reactive compaction happens at most once a turn; the summary's own over-length is bounded inside it.",
    "E4": "A compaction never splits a tool call from its result.",
    "E5": "A compaction runs no tool, rolls nothing back, and keeps receipts of unresolved writes.",
    "E6": "With auto-compaction off, the error at the limit says how to turn it on.",
    "E7": "A cache miss is not a context recovery; usage reports the cache apart.",
    "F1": "Every kind of tool failure becomes a structured error result with the original id, and the loop goes on.",
    "F2": "Every tool call sent to a provider is followed by its result.",
    "F3": "The runtime never re-runs a tool by itself unless it is declared read-only.",
    "G1": "Every kind of hook failure has a defined outcome; a bad PostToolUse output keeps the tool's result.",
    "G2": "A PreToolUse deny keeps the tool from running and gives the model the reason in a paired error result.",
    "G3": "A Stop block keeps the output, adds the feedback, raises the turn, and is capped.",
    "H1": "A server's death fails the call or removes its tools; reconnecting lists them again.",
    "H2": "A changed tool list is seen by the next request assembled, never by one in flight.",
    "H3": "After a reconnect the next request carries the new schema.",
    "I1": "A subagent's launch acknowledgement is not its result.",
    "I2": "A background task does not survive a restart and is reported as lost.",
    "J1": "Resume rebuilds the conversation from the transcript.",
    "J2": "Resume does not revive connections, caches, child processes or background tasks.",
    "J3": "An unknown session id ends with 'No conversation found', exit 1 and no request.",
    "J4": "A damaged transcript loads what is intact and reports the repair.",
    "J5": "A fork has a new id and keeps summary and history.",
    "K1": "Old bytes of changed files are kept; rewind restores bytes and modes without a model request.",
    "K2": "Rewind covers tracked files only, and says so.",
    "K3": "Writes are atomic, check the expected version, and are verified.",
    "L1": "Every run ends with one typed terminal reason.",
    "L2": "The structured result carries subtype, turns, usage, terminal reason, counters; exit codes are documented.",
    "L3": "A command's lifecycle is another layer than the terminal reason.",
    "M1": "Events let a reader find the layer of a symptom without the source.",
    "M2": "Prompts and tool arguments are redacted by default.",
    "N1": "Argument check, target resolution and permission come before anything durable.",
    "N2": "The receipt is saved, then tool_started is appended and fsynced, and only then the tool runs.",
    "N3": "The result updates the same attempt; failure, not started, cancelled and timed out are different.",
    "N4": "After a restart, started without a confirmed result is unknown; dispatched without start is not_started.",
    "N5": "An unknown write blocks every later write of the session; the model is told why.",
    "N6": "The same tool and arguments, once confirmed by the user, do not run again.",
    "N7": "A confirmation is recorded as such; no successful output is made up.",
    "N8": "Compaction and history rewriting keep unresolved receipts.",
    "N9": "A file postcondition proves the present state, not the history.",
    "N10": "Records carry a version; a newer format is refused, an older one read conservatively.",
    "O1": "One controller serves local and remote recovery alike.",
    "O2": "A snapshot carries identity, calls and counts derived from evidence, and no arguments.",
    "O3": "An action carries the snapshot's identity and is refused when stale or while running.",
    "O4": "Inspection returns the stored arguments and one of four findings; arguments never reach the model.",
    "O5": "Confirm and reject need an inspection of the same attempt; two confirmations resolve once.",
    "O6": "An error makes the client read the snapshot again and never replay the action.",
    "P1": "Each unresolved call is listed; buttons open only after inspection.",
    "P2": "Stored arguments show only after an explicit inspection.",
    "P3": "When no call is left, Continue submits an ordinary turn.",
    "P4": "A late response never changes another session's view.",
    "P5": "The card works by keyboard, screen reader, light, dark and narrow, and survives a reload.",
    "Q1": "Retry is off unless the owning host enables it.",
    "Q2": "Retry uses new ids, the original key and the stored arguments, once.",
    "Q3": "A write is retried only when it is proven absent and fenced right before.",
    "Q4": "A tool can deduplicate by the idempotency key; shell and unknown tools stay unknown.",
    "Q5": "Turning retry off deletes no evidence.",
}

CLAUSES: dict[str, Clause] = {name: Clause(name, duty) for name, duty in DUTIES.items()}


def render_page() -> str:
    """Return the contract as a Markdown page."""
    lines = [
        "# Recovery contract",
        "",
        "What an agent runtime owes its user when something fails. A probe or a scenario that serves a clause",
        "cites its number. This page is rendered by `make docs` from `harness/model/clause.py`.",
        "",
    ]
    for letter, title in SECTIONS.items():
        lines += [f"## {letter}. {title}", ""]
        lines += [f"- **{clause.id}** {clause.duty}" for clause in CLAUSES.values() if clause.id[0] == letter]
        lines.append("")
    return "\n".join(lines)
