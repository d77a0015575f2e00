"""A provider in a thread of its own, driven from plain or asynchronous code alike.

It is what the pytest fixtures hand out, and it needs no pytest. Every method may be called from any thread; those whose
name begins with ``async_`` wait without blocking the caller's event loop. It serves on loopback, on a free port.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine, Mapping, Sequence
from concurrent.futures import CancelledError, Future
from concurrent.futures import TimeoutError as FutureTimeoutError
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeAlias, TypeVar

from fake_provider import assertions, clients
from fake_provider.document import Node, Place, load_document, nearest, parse_document
from fake_provider.journal import AnyEntry, Journal, RequestReceived
from fake_provider.presets import load_preset
from fake_provider.script import SCRIPT_KEYS, Script, parse_lanes, parse_script
from fake_provider.server import Provider

Source: TypeAlias = str | Path | Sequence[Any] | Mapping[str, Any] | Script
"""A script: YAML text, a path, a list of steps, a mapping of lanes, a whole script as data, or a ``Script``."""

TIMEOUT_SECONDS_DEFAULT = 30.0

ResultT = TypeVar("ResultT")


class NotReachedError(AssertionError):
    """What was waited for did not happen in time; the message shows what did."""


def script_from(source: Source, *, strict: bool | None = None) -> Script:
    """Return the script that a source holds.

    Args:
        source: Text is a path where it is one line that ends in ``.yaml`` or ``.yml``, and YAML otherwise. A list is
            the steps of the lane ``main``; a mapping without ``lanes`` maps lanes to steps.
        strict: Whether an unexpected request is a mistake; as the script says where it is nothing. One that says
            nothing is strict here: a test that an unexpected request cannot fail proves little.

    Raises:
        DocumentError: The script has a mistake.
    """
    if isinstance(source, Script):
        return source if strict is None else replace(source, strict=strict)
    if isinstance(source, Path) or (isinstance(source, str) and _is_path(source)):
        node = load_document(Path(source))
    elif isinstance(source, str):
        node = parse_document(source, "script")
    else:
        node = Node(source, Place("script", 1), "")
    value = node.value
    if isinstance(value, Mapping) and not set(value).isdisjoint(SCRIPT_KEYS):
        script = parse_script(node)
        said = script.strict if "strict" in value else True
        return replace(script, strict=said if strict is None else strict)
    lanes = value if isinstance(value, Mapping) else {"main": value}
    return parse_lanes(Node(lanes, node.place, ""), strict=strict is not False)


def _is_path(text: str) -> bool:
    return "\n" not in text and text.endswith((".yaml", ".yml"))


class ProviderHandle:
    """A provider that listens while the block runs.

    Args:
        source: What to answer; nothing at all, strictly, where none is given.
        strict: See ``script_from``.
        time_scale: Scripted waits are divided by this.
        control: Whether the provider has its control API.
    """

    def __init__(
        self,
        source: Source = (),
        *,
        strict: bool | None = None,
        time_scale: float = 1.0,
        control: bool = True,
    ) -> None:
        self._changed = threading.Condition()
        self._provider = Provider(
            script_from(source if source != () else [], strict=strict),
            journal=Journal(self._notice),
            time_scale=time_scale,
            control=control,
        )
        self._loop: asyncio.AbstractEventLoop
        self._stopped = asyncio.Event()
        self._listening: Future[str] = Future()
        self._thread = threading.Thread(target=self._run, name="fake provider", daemon=True)
        self._failure: BaseException | None = None
        self._url = ""
        self._lenient = False
        self._witnessed: list[AnyEntry] = []
        self._earlier: list[str] = []

    def __enter__(self) -> Self:
        """Begin to listen.

        Raises:
            ProviderError: It cannot.
        """
        self._loop = asyncio.new_event_loop()
        self._thread.start()
        self._url = self._listening.result()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """End every connection and the thread; a failure inside the provider is raised here."""
        self._loop.call_soon_threadsafe(self._stopped.set)
        self._thread.join()
        if self._failure is not None and error is None:
            raise self._failure

    def _run(self) -> None:
        try:
            with asyncio.Runner(loop_factory=lambda: self._loop) as runner:
                runner.run(self._serve())
        except BaseException as error:  # noqa: BLE001 - raised again in the thread that waits for it
            self._failure = error
            if not self._listening.done():
                self._listening.set_exception(error)

    async def _serve(self) -> None:
        async with self._provider.listening():
            self._listening.set_result(self._provider.url)
            await self._stopped.wait()

    def _notice(self, entry: AnyEntry) -> None:
        # The judgement rests on a list of its own, because whoever is under test can clear the journal.
        self._witnessed.append(entry)
        with self._changed:
            self._changed.notify_all()

    def _call(self, act: Callable[[], ResultT]) -> ResultT:
        """Do something in the provider's thread, and return what it returned."""

        async def acting() -> ResultT:
            return act()

        return self._start(acting()).result()

    def _start(self, work: Coroutine[Any, Any, ResultT]) -> Future[ResultT]:
        return asyncio.run_coroutine_threadsafe(work, self._loop)

    @property
    def url(self) -> str:
        """The provider's address, without a path."""
        return self._url

    @property
    def control_url(self) -> str:
        """The address of its control API."""
        return f"{self._url}/__crashcart__/"

    @property
    def authority_pem(self) -> bytes | None:
        """The authority that a client of a TLS provider has to trust, in PEM; nothing without TLS."""
        return self._provider.authority_pem

    def base_url(self, dialect: str) -> str:
        """Return the base URL to give to the official client of a dialect.

        Raises:
            LookupError: There is no such dialect.
        """
        if dialect not in clients.BASE_URLS:
            raise LookupError(f"no dialect '{dialect}'{nearest(dialect, clients.BASE_URLS)}")
        return clients.base_url(dialect, self.url)

    def environment(self, client: str) -> dict[str, str]:
        """Return the variables from which an official client reads its address and its key.

        Args:
            client: A dialect, or ``anthropic``, ``openai`` or ``google-genai``.

        Raises:
            LookupError: There is no such client, or it reads them from a file.
        """
        known = {**{name: name for name in clients.BASE_URLS}, **clients.SDK_DIALECTS}
        if client not in known:
            raise LookupError(f"no client '{client}' that is set up by variables alone{nearest(client, known)}")
        return clients.environment(known[client], self.url)

    @property
    def time_scale(self) -> float:
        """Scripted waits are divided by this; may be set before a request is made."""
        return self._provider.time_scale

    @time_scale.setter
    def time_scale(self, scale: float) -> None:
        self._provider.time_scale = scale

    def script(self, source: Source, *, strict: bool | None = None) -> ProviderHandle:
        """Play a script from its beginning and forget what the journal holds; see ``script_from``.

        What the script before it proved too little about is kept for ``complaint``, and its waiting clients are let go.

        Raises:
            DocumentError: The script has a mistake; the old one stays.
            ProviderError: The script asks for another way to listen, which needs a provider of its own.
        """
        script = script_from(source, strict=strict)

        def load() -> None:
            self._earlier += self._found()
            for name in tuple(self._provider.named_holds.waiting):
                self._provider.named_holds.release(name)
            self._provider.load(script)
            self._provider.journal.clear()
            self._witnessed.clear()

        self._call(load)
        return self

    def preset(self, name: str) -> ProviderHandle:
        """Play a preset from its beginning; see ``script``.

        Raises:
            UnknownPresetError: There is no such preset.
        """
        return self.script(load_preset(name))

    @property
    def journal(self) -> Journal:
        """What happened so far."""
        return self._provider.journal

    def release(self, name: str) -> int:
        """Let the clients go on that wait at a hold, and return how many that were."""
        return self._call(lambda: self._provider.named_holds.release(name))

    def wait_for_hold(self, name: str, timeout_seconds: float = TIMEOUT_SECONDS_DEFAULT) -> None:
        """Wait until a client waits at a hold.

        Raises:
            NotReachedError: None did in time, in real seconds.
        """
        reached = self._start(self._provider.named_holds.reached(name))
        try:
            reached.result(timeout_seconds)
        except (FutureTimeoutError, CancelledError):
            reached.cancel()
            raise self._not_reached(f"no client waits at hold '{name}'", timeout_seconds) from None

    async def async_wait_for_hold(self, name: str, timeout_seconds: float = TIMEOUT_SECONDS_DEFAULT) -> None:
        """Wait until a client waits at a hold; see ``wait_for_hold``."""
        reached = asyncio.wrap_future(self._start(self._provider.named_holds.reached(name)))
        try:
            await asyncio.wait_for(reached, timeout_seconds)
        except TimeoutError:
            raise self._not_reached(f"no client waits at hold '{name}'", timeout_seconds) from None

    def wait_for_attempts(
        self, count: int, lane: str | None = None, timeout_seconds: float = TIMEOUT_SECONDS_DEFAULT
    ) -> tuple[RequestReceived, ...]:
        """Wait until so many attempts have arrived, and return them.

        Raises:
            NotReachedError: They did not in time, in real seconds.
        """
        with self._changed:
            if not self._changed.wait_for(lambda: len(self.attempts(lane)) >= count, timeout_seconds):
                raise self._not_reached(f"{len(self.attempts(lane))} attempts of {count} arrived", timeout_seconds)
        return self.attempts(lane)

    async def async_wait_for_attempts(
        self, count: int, lane: str | None = None, timeout_seconds: float = TIMEOUT_SECONDS_DEFAULT
    ) -> tuple[RequestReceived, ...]:
        """Wait until so many attempts have arrived; see ``wait_for_attempts``."""
        return await asyncio.to_thread(self.wait_for_attempts, count, lane, timeout_seconds)

    def _not_reached(self, what: str, timeout_seconds: float) -> NotReachedError:
        return NotReachedError(f"{what} after {timeout_seconds:g} s\n\n{self.table()}")

    def attempts(self, lane: str | None = None) -> tuple[RequestReceived, ...]:
        """See ``assertions.attempts``."""
        return assertions.attempts(self.journal.entries, lane)

    def gaps(self, lane: str | None = None) -> tuple[float, ...]:
        """See ``assertions.gaps``."""
        return assertions.gaps(self.journal.entries, lane, self.time_scale)

    def models(self, lane: str | None = None) -> tuple[str | None, ...]:
        """See ``assertions.models``."""
        return assertions.models(self.journal.entries, lane)

    def pairing(self, lane: str | None = None) -> tuple[str, ...]:
        """See ``assertions.pairing``."""
        return assertions.pairing(self.journal.entries, lane)

    def statuses(self, lane: str | None = None) -> tuple[int | None, ...]:
        """See ``assertions.statuses``."""
        return assertions.statuses(self.journal.entries, lane)

    def refusals(self, lane: str | None = None) -> tuple[str, ...]:
        """See ``assertions.refusals``."""
        return assertions.refusals(self.journal.entries, lane)

    def faults(self, lane: str | None = None) -> tuple[str, ...]:
        """See ``assertions.faults``."""
        return assertions.faults(self.journal.entries, lane)

    def table(self) -> str:
        """See ``assertions.table``."""
        return assertions.table(self.journal.entries)

    def expect(self, lane: str | None = None, *, attempts: int | None = None, **wanted: Sequence[Any]) -> None:
        """Check several things at once.

        Args:
            lane: The lane that is meant; all where it is nothing.
            attempts: How many there were.
            wanted: What ``models``, ``statuses``, ``pairing``, ``refusals`` or ``faults`` returns.

        Raises:
            AssertionError: Something is otherwise; the message says all of it and shows the journal as a table.
            TypeError: There is no such thing to check.
        """
        unknown = set(wanted) - set(_EXPECTABLE)
        if unknown:
            raise TypeError(f"cannot expect '{min(unknown)}'{nearest(min(unknown), ('attempts', *_EXPECTABLE))}")
        found: list[str] = []
        count = len(self.attempts(lane))
        if attempts is not None and attempts != count:
            found.append(f"attempts: expected {attempts}, found {count}")
        for name, expected in wanted.items():
            actual = _EXPECTABLE[name](self.journal.entries, lane)
            if tuple(expected) != actual:
                found.append(f"{name}: expected {list(expected)}, found {list(actual)}")
        if found:
            raise AssertionError("\n".join([*found, "", self.table()]))

    def lenient(self) -> ProviderHandle:
        """Let the test pass whatever was unexpected and whichever fault did not strike."""
        self._lenient = True
        return self

    def complaint(self) -> str | None:
        """Return why a test that used this provider cannot be trusted, with what to do, or nothing if it can."""
        found = [*self._earlier, *self._found()]
        if self._lenient or not found:
            return None
        advice = "Script an answer for each request and reach each fault, or call lenient() in the test."
        if not any(lane.steps for lane in self._provider.script.lanes):
            advice = "No script was loaded: call script(...) or preset(...) before the first request."
        return "\n".join([*found, "", self.table(), "", advice])

    def _found(self) -> list[str]:
        script, entries = self._provider.script, tuple(self._witnessed)
        unexpected = assertions.unexpected(entries) if script.strict else ()
        return [*unexpected, *assertions.skipped(entries), *assertions.unreached(entries, script)]


_EXPECTABLE: Mapping[str, Callable[[assertions.Entries, str | None], tuple[Any, ...]]] = {
    "faults": assertions.faults,
    "models": assertions.models,
    "pairing": assertions.pairing,
    "refusals": assertions.refusals,
    "statuses": assertions.statuses,
}
