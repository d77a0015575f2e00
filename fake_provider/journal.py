"""What arrived, what left, when, and what the client did: an append-only list of frozen entries.

The journal is a witness. It records and tells listeners; it never decides, and nothing in it is changed. It holds
everything, unless it is told to keep only the newest entries; the counts are of everything in any case.
Entries encode with msgspec, one JSON object each, with the entry's name under ``entry``.
"""

from __future__ import annotations

import re
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice
from threading import Lock
from typing import Any, Literal, TypeVar
from urllib.parse import unquote_plus

import msgspec

REDACTED = "[redacted]"
_SECRET_WORDS = re.compile(r"key|token|secret|auth|cookie|signature|credential|password", re.IGNORECASE)
_NO_SECRETS = frozenset({"idempotency-key", "x-stainless-auth"})


def is_secret(name: str) -> bool:
    """Whether a header or a parameter of that name may hold a key; gateways have too many names for a list."""
    return _SECRET_WORDS.search(name) is not None and name.lower() not in _NO_SECRETS


# Entries hold no cycles, and a long journal would make each run of the collector long.
class Entry(msgspec.Struct, frozen=True, kw_only=True, tag=True, tag_field="entry", gc=False):
    """One thing that happened.

    Attributes:
        at_seconds: Monotonic time since the journal's start.
    """

    at_seconds: float


class ConnectionOpened(Entry, frozen=True, kw_only=True, gc=False):
    """A client connected; connections count from 1."""

    connection: int


class ConnectionClosed(Entry, frozen=True, kw_only=True, gc=False):
    """A connection is gone; it is the last entry of a connection and of its requests.

    Attributes:
        connection: The connection's number.
        by: Who ended it first.
        reset: Whether it broke, by the client's reset as a rule, instead of being closed.
        unused_bytes: How many bytes came from the client that belong to no complete request, or to one after the last
            that was read.
    """

    connection: int
    by: Literal["client", "provider"] = "client"
    reset: bool = False
    unused_bytes: int = 0


class RequestReceived(Entry, frozen=True, kw_only=True, gc=False):
    """A request has been read completely; requests count from 1 over all connections and lanes.

    Attributes:
        request: The request's number.
        connection: The connection it came on.
        lane: The lane it was routed to; nothing for a side request and for one that could not be decoded or routed.
        step: The label of the step that answers it; nothing where no step does.
        method: The verb.
        path: The path without its query.
        query: What stood behind the question mark, keys redacted.
        headers: Names in lower case, keys redacted.
        body: The decoded JSON, or the text where it is none.
        model: The model asked for, where it was decoded.
        stream: Whether a stream was asked for.
        side: Whether it is a side request, outside any lane.
        dialect: The dialect that claimed it; nothing where none did.
    """

    request: int
    connection: int
    lane: str | None
    step: str | None
    method: str
    path: str
    query: str = ""
    headers: Mapping[str, str]
    body: Any
    model: str | None
    stream: bool
    side: bool
    dialect: str | None = None


class RequestMismatch(Entry, frozen=True, kw_only=True, gc=False):
    """The request is not what the step that answers it expects; it is answered all the same.

    Attributes:
        request: The request's number.
        step: The step's label.
        differences: One sentence each: what was expected, what was found.
    """

    request: int
    step: str
    differences: tuple[str, ...]


class RequestRefused(Entry, frozen=True, kw_only=True, gc=False):
    """The real API would refuse this request, and so did this one; it used up no step.

    Attributes:
        request: The request's number.
        rules: The names of the rules that spoke, in order.
        problems: Their messages, in the same order; the client got the first.
    """

    request: int
    rules: tuple[str, ...]
    problems: tuple[str, ...]


class UnexpectedRequest(Entry, frozen=True, kw_only=True, gc=False):
    """A valid request for which the script has nothing."""

    request: int
    lane: str | None
    reason: str


class ReplyStarted(Entry, frozen=True, kw_only=True, gc=False):
    """The first bytes of a reply are about to leave."""

    request: int
    status: int


class ReplyEnded(Entry, frozen=True, kw_only=True, gc=False):
    """No more of a reply will leave.

    Attributes:
        request: The request's number.
        status: The status sent, or nothing where no byte was sent.
        frames: Complete events sent, counted by name.
        bytes: Bytes handed to the kernel, HTTP framing included.
        complete: Whether the reply ended properly by HTTP's own rules.
    """

    request: int
    status: int | None
    frames: Mapping[str, int]
    bytes: int
    complete: bool


class FaultFired(Entry, frozen=True, kw_only=True, gc=False):
    """The fault of the step struck, at the place that ``detail`` names."""

    request: int
    kind: str
    detail: str


class FaultSkipped(Entry, frozen=True, kw_only=True, gc=False):
    """The fault of the step did not strike; a verdict that rests on it is inconclusive."""

    request: int
    kind: str
    reason: str


class HoldReached(Entry, frozen=True, kw_only=True, gc=False):
    """The client is being kept waiting at the place of a hold."""

    request: int
    position: str
    detail: str


class HoldReleased(Entry, frozen=True, kw_only=True, gc=False):
    """A hold was released and the reply goes on."""

    request: int
    position: str


class HoldSkipped(Entry, frozen=True, kw_only=True, gc=False):
    """The request that a hold waits for came, but the place does not exist in its reply."""

    request: int
    position: str
    reason: str


class ClientLeft(Entry, frozen=True, kw_only=True, gc=False):
    """The client closed or reset the connection before the reply was over."""

    request: int
    connection: int
    bytes_sent: int


class ConnectionsRefused(Entry, frozen=True, kw_only=True, gc=False):
    """From now on no new connection is taken.

    Attributes:
        how: ``refused`` or ``full``; see ``wire.Refuse``.
        seconds: For how long, in scripted seconds.
    """

    how: str
    seconds: float


class ConnectionsTaken(Entry, frozen=True, kw_only=True, gc=False):
    """New connections are taken again."""


class HandshakeFailed(Entry, frozen=True, kw_only=True, gc=False):
    """A client that connected did not finish the TLS handshake; with a bad certificate that is what it should do."""

    certificate: str
    reason: str


class GarbageReceived(Entry, frozen=True, kw_only=True, gc=False):
    """What arrived is not an HTTP request, or is half of one."""

    connection: int
    reason: str


class ControlRequested(Entry, frozen=True, kw_only=True, gc=False):
    """Somebody asked or told the provider something through its control API; such a request has no number.

    Attributes:
        method: The verb.
        path: The path without its query.
        query: What stood behind the question mark.
        status: HTTP status code of the answer.
    """

    method: str
    path: str
    query: str
    status: int


AnyEntry = (
    ConnectionOpened
    | ConnectionClosed
    | RequestReceived
    | RequestMismatch
    | RequestRefused
    | UnexpectedRequest
    | ReplyStarted
    | ReplyEnded
    | FaultFired
    | FaultSkipped
    | HoldReached
    | HoldReleased
    | HoldSkipped
    | ClientLeft
    | ConnectionsRefused
    | ConnectionsTaken
    | HandshakeFailed
    | GarbageReceived
    | ControlRequested
)

Listener = Callable[[AnyEntry], None]
EntryT = TypeVar("EntryT", bound=Entry)


class Journal:
    """The list. One event loop appends; any thread may read.

    Args:
        listener: Called with each entry right after it was appended, in the appending thread.
        start_seconds: The ``time.monotonic()`` value that is second 0; now, where none is given.
        keep: How many of the newest entries are held; all where it is nothing. A provider that runs for days keeps some
            thousands; a run whose verdict rests on the journal keeps all.
    """

    def __init__(
        self, listener: Listener | None = None, *, start_seconds: float | None = None, keep: int | None = None
    ) -> None:
        self.start_seconds = time.monotonic() if start_seconds is None else start_seconds
        self._entries: deque[AnyEntry] = deque(maxlen=keep)
        self._appended = 0
        self._listener = listener
        self._lock = Lock()

    def now(self) -> float:
        """Return the seconds since the start."""
        return time.monotonic() - self.start_seconds

    def append(self, entry: AnyEntry) -> None:
        """Append an entry and tell the listener."""
        with self._lock:
            self._entries.append(entry)
            self._appended += 1
        if self._listener is not None:
            self._listener(entry)

    def extend(self, entries: Sequence[AnyEntry]) -> None:
        """Append entries that happened at one moment, in order."""
        with self._lock:
            self._entries.extend(entries)
            self._appended += len(entries)
        if self._listener is not None:
            for entry in entries:
                self._listener(entry)

    def clear(self) -> None:
        """Forget every entry; numbers of requests and connections go on."""
        with self._lock:
            self._entries.clear()
            self._appended = 0

    @property
    def dropped(self) -> int:
        """How many entries are not held any more."""
        with self._lock:
            return self._appended - len(self._entries)

    @property
    def entries(self) -> tuple[AnyEntry, ...]:
        """A copy of all entries so far, oldest first."""
        with self._lock:
            return tuple(self._entries)

    def of(self, kind: type[EntryT]) -> tuple[EntryT, ...]:
        """Return all entries of one kind, oldest first."""
        return tuple(entry for entry in self.entries if isinstance(entry, kind))

    def since(self, index: int) -> tuple[AnyEntry, ...]:
        """Return the entries from the one with this index on, counted from 0 over everything ever appended."""
        with self._lock:
            first = self._appended - len(self._entries)
            return tuple(islice(self._entries, max(0, index - first), None))

    def lines(self) -> Iterator[bytes]:
        """Yield each entry as one JSON object, without a newline."""
        for entry in self.entries:
            yield encode_entry(entry)


def encode_entry(entry: AnyEntry) -> bytes:
    """Encode one entry as one JSON object."""
    return msgspec.json.encode(entry)


def decode_entry(line: bytes) -> AnyEntry:
    """Decode what ``encode_entry`` made.

    Raises:
        msgspec.ValidationError: The line is no entry.
    """
    return _DECODER.decode(line)


_DECODER: msgspec.json.Decoder[AnyEntry] = msgspec.json.Decoder(AnyEntry)


def redacted_query(query: str) -> str:
    """Return a query with the values of keys replaced; Gemini's clients may send their key there."""
    return "&".join(_redacted_pair(pair) for pair in query.split("&"))


def _redacted_pair(pair: str) -> str:
    name, equals, _ = pair.partition("=")
    return f"{name}={REDACTED}" if equals and is_secret(unquote_plus(name)) else pair


def redacted(headers: Mapping[str, str]) -> dict[str, str]:
    """Return headers with the values of keys replaced."""
    return {name: REDACTED if is_secret(name) else value for name, value in headers.items()}
