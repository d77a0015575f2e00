"""The faults that the clients are shown, as data: what is said, what happens to it, and how it is asked for."""

from __future__ import annotations

from dataclasses import dataclass

TEXT = "Release seven is deployed and every check of it is green."
SAY = f"say: {TEXT}"
ARGUMENTS = "{target: production, release: 7000}"
CALL = f"call: deploy, with: {ARGUMENTS}"
CALLS = f"calls: [{{call: deploy, with: {ARGUMENTS}}}, {{call: notify, with: {{text: done}}}}]"


@dataclass(frozen=True)
class Case:
    """One fault.

    Attributes:
        id: A word; the model of each request begins with it.
        sent: What is on the wire, for people.
        fault: As a script writes it.
        step: What it strikes.
        first: Whether the fault strikes the first of two requests on one connection or client; nothing for one request.
        for_ever: Whether it strikes again, however often a client asks; else the step follows undisturbed.
        tls: The certificate.
        alone: Whether it needs a provider of its own, because it touches more than one connection.
        in_vain: Whether the client is to wait for something that does not come, and so is impatient.
        said_by_model: Whether the fault lies in what the model says, so that no client can know of it.
        harmless: Whether the reply is good by the rules of HTTP and of event streams.
        counts: Whether the token counts are looked at.
        longer: Whether far more is said than the step says.
        arguments: The arguments that the model gives, where they are no JSON.
    """

    id: str
    sent: str
    fault: str
    step: str = SAY
    first: bool | None = None
    for_ever: bool = False
    tls: str | None = None
    alone: bool = False
    in_vain: bool = False
    said_by_model: bool = False
    harmless: bool = False
    counts: bool = False
    longer: bool = False
    arguments: str | None = None

    @property
    def steps(self) -> list[str]:
        """The steps of its lane."""
        struck = f"{self.step}, fault: {self.fault}" if self.fault else self.step
        if self.for_ever:
            return [f"{struck}, forever: true"]
        return [self.step, struck] if self.first is False else [struck, self.step]

    @property
    def timeout_seconds(self) -> float:
        """How long the client waits."""
        return 2.0 if self.in_vain else 30.0

    @property
    def requests(self) -> int:
        """How often a client is made to ask; what it does the last time is looked at."""
        return 1 if self.first is None else 2


GOOD = (
    Case("good-say", "A text, undisturbed.", ""),
    Case("good-call", "A tool call, undisturbed.", "", CALL),
    Case("good-calls", "Two tool calls, undisturbed.", "", CALLS),
)

ENDS = (
    Case("close", "Closed before the first byte.", "close"),
    Case(
        "close-kept",
        "A good reply, and then the kept connection is closed under the next request.",
        "close",
        first=False,
    ),
    Case("cut-head", "Closed after the headers.", "{cut: {event: head}}"),
    Case("cut-text", "Closed after the first piece of text.", "{cut: {event: text}}"),
    Case("cut-stop", "Closed after the stop reason, before the terminal event.", "{cut: {event: stop}}"),
    Case("cut-terminal", "Closed after the last event.", "{cut: {event: terminal}}"),
    Case("cut-body", "A whole body that is closed halfway.", "{cut: {event: body, byte: 150}}"),
    Case(
        "cut-arguments", "Closed inside the arguments of a tool call.", "{cut: {event: tool_arguments, nth: 2}}", CALL
    ),
    Case("reset-text", "Reset after the first piece of text.", "{reset: {event: text}}"),
    Case("early-end-head", "A proper end of the body right after the headers.", "{early_end: {event: head}}"),
    Case("early-end-text", "A proper end of the body after the first piece of text.", "{early_end: {event: text}}"),
    Case(
        "early-end-inside",
        "A proper end of the body inside the second piece of text.",
        "{early_end: {event: text, nth: 2, byte: 30}}",
    ),
    Case(
        "early-end-arguments",
        "A proper end of the body inside the arguments of a tool call.",
        "{early_end: {event: tool_arguments, nth: 2}}",
        CALL,
    ),
    Case("early-end-call", "A proper end of the body after a whole tool call.", "{early_end: {event: tool_end}}", CALL),
    Case("no-terminal", "Everything but the terminal event.", "{no_terminal: {}}"),
    Case("no-last-chunk", "Everything but the last chunk.", "{no_last_chunk: {}}"),
    Case("http10", "An HTTP/1.0 answer that ends with its connection.", "{http10: {}}", harmless=True),
    Case("http10-text", "The same, and the connection ends after the first piece of text.", "{http10: {event: text}}"),
    Case("http10-body", "The same, and the connection ends inside a whole body.", "{http10: {event: body, byte: 150}}"),
    Case(
        "hang-up-fin",
        "A good reply, then a FIN on the kept connection, then the next request.",
        "{hang_up: {}}",
        first=True,
        harmless=True,
    ),
    Case(
        "hang-up-rst",
        "A good reply, then a RST on the kept connection, then the next request.",
        "{hang_up: {how: rst}}",
        first=True,
    ),
)

WAITS = (
    Case("stall-nothing", "Silence instead of an answer.", "{stall: {event: nothing}}", in_vain=True),
    Case("stall-head", "Silence after the headers.", "{stall: {event: head}}", in_vain=True),
    Case("stall-text", "Silence after the first piece of text.", "{stall: {event: text}}", in_vain=True),
    Case(
        "stall-pings",
        "The same with pings, for longer than the client's timeout, and then the rest.",
        "{stall: {event: text, seconds: 3, ping_seconds: 0.1}}",
        in_vain=True,
        harmless=True,
    ),
    Case("dribble", "Eight bytes at a time.", "{dribble: {bytes: 8, seconds: 0.001}}", harmless=True),
    Case(
        "slow-headers",
        "The headers eight bytes at a time.",
        "{slow_headers: {bytes: 8, seconds: 0.001}}",
        harmless=True,
    ),
    Case(
        "length-over-wait",
        "A content-length of 5 bytes more than come, and the connection stays open.",
        "{wrong_content_length: {over: 5, wait: true}}",
        in_vain=True,
    ),
)

EVENTS = (
    Case("error-start", "An error event after the first event.", "{error_event: {event: start}}"),
    Case("error-text", "An error event after the first piece of text.", "{error_event: {event: text}}"),
    Case(
        "error-arguments",
        "An error event inside the arguments of a tool call.",
        "{error_event: {event: tool_arguments, nth: 2}}",
        CALL,
    ),
    Case("error-call", "An error event after a whole tool call.", "{error_event: {event: tool_end}}", CALL),
    Case(
        "malformed-json",
        "The JSON of the second piece of text lacks its last character.",
        "{malformed_frame: {event: text, nth: 2}}",
    ),
    Case(
        "malformed-utf8",
        "The second piece of text holds a byte that is no UTF-8.",
        "{malformed_frame: {event: text, nth: 2, how: utf8}}",
    ),
    Case(
        "malformed-bom",
        "A byte order mark before the second piece of text.",
        "{malformed_frame: {event: text, nth: 2, how: bom}}",
    ),
    Case(
        "bom-first",
        "A byte order mark before the first event, where it is allowed.",
        "{malformed_frame: {event: start, how: bom}}",
        harmless=True,
    ),
    Case(
        "malformed-field",
        "The data of the second piece of text stands in an unknown field.",
        "{malformed_frame: {event: text, nth: 2, how: field}}",
    ),
    Case(
        "malformed-line",
        "A line without a colon before the data of the second piece of text.",
        "{malformed_frame: {event: text, nth: 2, how: line}}",
        harmless=True,
    ),
    Case(
        "no-blank-line",
        "No blank line between the second piece of text and the next event.",
        "{malformed_frame: {event: text, nth: 2, how: no_blank_line}}",
    ),
    Case(
        "malformed-arguments",
        "The JSON of an event inside the arguments of a tool call lacks its last character.",
        "{malformed_frame: {event: tool_arguments, nth: 2}}",
        CALL,
    ),
    Case("duplicate-text", "The second piece of text twice.", "{duplicate_event: {event: text, nth: 2}}"),
    Case(
        "duplicate-arguments",
        "A piece of the arguments of a tool call twice.",
        "{duplicate_event: {event: tool_arguments, nth: 2}}",
        CALL,
    ),
    Case("drop-start", "The first event never comes.", "{drop_event: {event: start}}"),
    Case("drop-text", "The second piece of text never comes.", "{drop_event: {event: text, nth: 2}}"),
    Case(
        "drop-arguments",
        "A piece of the arguments of a tool call never comes.",
        "{drop_event: {event: tool_arguments, nth: 2}}",
        CALL,
    ),
    Case("drop-stop", "The event with the stop reason never comes.", "{drop_event: {event: stop}}"),
    Case(
        "reorder-text",
        "The second and the third piece of text change places.",
        "{reorder_events: {event: text, nth: 2}}",
    ),
    Case(
        "unknown-first",
        "An event of an unknown type before all others.",
        "{unknown_event: {event: head}}",
        harmless=True,
    ),
    Case(
        "unknown-text",
        "An event of an unknown type after the first piece of text.",
        "{unknown_event: {event: text}}",
        harmless=True,
    ),
)

BODIES = (
    Case("empty-body", "The status 200, the headers, and no body.", "{empty_body: {}}"),
    Case("html-body", "A page of HTML with the status 200.", "{html_body: {}}"),
    Case("content-type", "A good body as `text/plain`.", "{wrong_content_type: {}}"),
    Case("no-content-type", "A good body without a content type.", "{wrong_content_type: {type: null}}"),
    Case("truncated-json", "Half of a whole body under a length that fits.", "{truncated_json: {}}"),
    Case("malformed-body", "A whole body without its last character.", "{malformed_frame: {event: body}}"),
    Case("length-over", "A content-length of 5 bytes more than come, and a FIN.", "{wrong_content_length: {over: 5}}"),
    Case("length-under", "A content-length of 40 bytes less than come.", "{wrong_content_length: {under: 40}}"),
    Case(
        "length-under-next",
        "The same, and then the next request of the client.",
        "{wrong_content_length: {under: 40}}",
        first=True,
    ),
    Case("gzip-fine", "Compressed, as the client asked.", "{gzip: {}}", harmless=True),
    Case("gzip-truncated", "Compressed, and the second half never comes.", "{gzip: {how: truncated}}"),
    Case("gzip-corrupt", "Compressed, and damaged in the middle.", "{gzip: {how: corrupt}}"),
    Case("gzip-lie", "Said to be compressed, and not compressed.", "{gzip: {how: not_gzip}}"),
    Case("huge", "50 kB of text more.", "{huge_reply: {bytes: 50000}}", harmless=True, longer=True),
)

ELSEWHERE = (
    Case("redirect-self", "A 307 to the same address, and then the reply.", "{redirect: {to: self}}", harmless=True),
    Case(
        "redirect-301",
        "A 301 to the same address, and then the reply for whoever posts again.",
        "{redirect: {status: 301}}",
    ),
    Case("redirect-missing", "A 307 without a location.", "{redirect: {to: missing}}"),
    Case(
        "redirect-elsewhere",
        "A 307 to another port, where a stranger answers.",
        "{redirect: {to: elsewhere, port: PORT}}",
    ),
    Case("redirect-loop", "A 307 to the same address, for ever.", "{redirect: {to: self}}", for_ever=True),
    Case("interim-103", "A 103 before the reply.", "{informational: {}}", harmless=True),
    Case("interim-100", "Three times 100 before the reply.", "{informational: {status: 100, times: 3}}", harmless=True),
    Case(
        "refused",
        "No answer, and then connections are refused.",
        "{refuse_connections: {seconds: 1000}}",
        first=True,
        alone=True,
    ),
    Case(
        "full",
        "No answer, and then the queue of the listening socket is full.",
        "{refuse_connections: {seconds: 1000, how: full}}",
        first=True,
        alone=True,
        in_vain=True,
    ),
    Case("tls-self-signed", "A self-signed certificate.", "", tls="self_signed", alone=True),
    Case("tls-expired", "A certificate that has expired.", "", tls="expired", alone=True),
    Case("tls-wrong-host", "A certificate for another host.", "", tls="wrong_host", alone=True),
)

WORDS = (
    Case(
        "stop-reason",
        "A whole tool call under a stop reason that says the reply was cut.",
        "{wrong_stop_reason: {reason: max_tokens}}",
        CALL,
        said_by_model=True,
    ),
    Case(
        "arguments-invalid",
        "Arguments with a comma too many.",
        "{tool_arguments: {how: invalid}}",
        CALL,
        said_by_model=True,
        arguments='{"target": "production", "release": 7000,}',
    ),
    Case(
        "arguments-cut",
        "The first half of the arguments.",
        "{tool_arguments: {how: cut}}",
        CALL,
        said_by_model=True,
        arguments='{"target": "producti',
    ),
    Case("arguments-empty", "No arguments at all.", "{tool_arguments: {how: empty}}", CALL, said_by_model=True),
    Case(
        "arguments-type",
        "The first argument as a list.",
        "{tool_arguments: {how: wrong_type}}",
        CALL,
        said_by_model=True,
    ),
    Case(
        "arguments-list", "The arguments as a list.", "{tool_arguments: {how: not_an_object}}", CALL, said_by_model=True
    ),
    Case(
        "arguments-accident",
        "Arguments that lack a piece and parse all the same.",
        "{tool_arguments: {how: valid_by_accident}}",
        CALL,
        said_by_model=True,
    ),
    Case("repeated-id", "Two tool calls with one id.", "{repeated_tool_id: {}}", CALLS, said_by_model=True),
    Case("empty-message", "A reply that says nothing.", "{empty_message: {}}", said_by_model=True),
    Case("thinking-only", "Reasoning and nothing else.", "{thinking_only: {}}", said_by_model=True),
    Case("usage-missing", "No token counts.", "{usage: {how: missing}}", said_by_model=True, counts=True),
    Case("usage-absurd", "Token counts of 2^53 + 1.", "{usage: {how: absurd}}", said_by_model=True, counts=True),
    Case("usage-negative", "Token counts of -1.", "{usage: {how: negative}}", said_by_model=True, counts=True),
)

SECTIONS: dict[str, tuple[Case, ...]] = {
    "Ends": ENDS,
    "Waits": WAITS,
    "Events": EVENTS,
    "Bodies": BODIES,
    "Addresses and connections": ELSEWHERE,
    "What the model says": WORDS,
}

FAULTY = tuple(case for cases in SECTIONS.values() for case in cases)


def good_of(case: Case) -> Case:
    """The undisturbed case with the same step."""
    return next(good for good in GOOD if good.step == case.step)
