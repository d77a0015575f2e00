"""The control API: what a person or a test can ask of a running provider and tell it, under ``/__crashcart__/``.

It is there only where a provider is made with ``control=True``, and never where a runtime under test could reach it
without being a party to the test. A request that a web page may have sent is refused: one with an ``Origin``, or with a
``Host`` that is no loopback name. Its requests are journalled as ``ControlRequested``; they have no number, use up no
step and meet no fault.
"""

from __future__ import annotations

import asyncio
import ipaddress
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Any
from urllib.parse import parse_qsl

import msgspec

from fake_provider.clock import Clock
from fake_provider.document import DocumentError, parse_document
from fake_provider.journal import ControlRequested, encode_entry, redacted_query
from fake_provider.playback import UnknownLaneError
from fake_provider.presets import UnknownPresetError, descriptions, load_preset
from fake_provider.requests import Received
from fake_provider.script import Script, parse_script
from fake_provider.server import CONTROL_PREFIX, Provider, ProviderError
from fake_provider.wire import PlainReply

WAIT_SECONDS_DEFAULT = 30.0
WAIT_SECONDS_MAX = 600.0
SINCE_DIGITS_MAX = 15
SCRIPT_BYTES_MAX = 1024 * 1024


class _RefusedError(Exception):
    """A control request that is not carried out."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


@dataclass(frozen=True, slots=True)
class Asked:
    """A control request: its parameters, its body, and the event of its client's leaving."""

    parameters: Mapping[str, str]
    body: bytes
    left: asyncio.Event

    def parameter(self, name: str) -> str:
        """Return a parameter of the query that has to be there."""
        value = self.parameters.get(name)
        if not value:
            raise _RefusedError(400, f"needs ?{name}=…")
        return value


@dataclass(frozen=True, slots=True)
class Endpoint:
    """One thing that can be asked or told.

    Attributes:
        method: The verb.
        name: The path behind the prefix.
        parameters: The parameters of the query, for the index.
        words: What it does, for the index.
        carry_out: Does it.
    """

    method: str
    name: str
    parameters: str
    words: str
    carry_out: Callable[[Control, Asked], Awaitable[PlainReply]]


class Control:
    """The control API of one provider."""

    def __init__(self, provider: Provider) -> None:
        self._provider = provider
        # What a person waits for is real time, whatever the script's time scale.
        self._clock = Clock()

    async def answer(self, received: Received, left: asyncio.Event) -> PlainReply:
        """Carry out one request and journal it.

        Args:
            received: A request whose path begins with ``CONTROL_PREFIX``.
            left: Set once its client is gone.
        """
        try:
            reply = await self._answer(received, left)
        except _RefusedError as error:
            reply = _text(str(error), error.status)
        except Exception as error:  # noqa: BLE001 - a mistake here must not end a provider that others are using
            reply = _text(f"the control API failed: {type(error).__name__}: {error}", 500)
        journal = self._provider.journal
        journal.append(
            ControlRequested(
                at_seconds=journal.now(),
                method=received.method,
                path=received.path,
                query=redacted_query(received.query),
                status=reply.status,
            )
        )
        return reply

    async def _answer(self, received: Received, left: asyncio.Event) -> PlainReply:
        _check_sender(received.headers)
        name = received.path.removeprefix(CONTROL_PREFIX)
        named = [endpoint for endpoint in ENDPOINTS if endpoint.name == name]
        if not named:
            raise _RefusedError(404, f"no {received.path}; GET {CONTROL_PREFIX} lists what there is")
        endpoint = next((one for one in named if one.method == received.method), None)
        if endpoint is None:
            raise _RefusedError(405, f"{received.path} takes {named[0].method}, found {received.method}")
        parameters = dict(parse_qsl(received.query, keep_blank_values=True))
        return await endpoint.carry_out(self, Asked(parameters, received.body, left))

    async def _index(self, asked: Asked) -> PlainReply:
        lines = [f"{one.method:<4}  {CONTROL_PREFIX + one.name + one.parameters:<48}  {one.words}" for one in ENDPOINTS]
        return _text("\n".join(["The control API of a scripted provider.", "", *lines]))

    async def _journal(self, asked: Asked) -> PlainReply:
        text = asked.parameters.get("since", "0")
        if not (text.isascii() and text.isdecimal() and len(text) <= SINCE_DIGITS_MAX):
            raise _RefusedError(400, f"since counts entries from 0, found '{text}'")
        journal = self._provider.journal
        entries = journal.since(int(text))
        following = journal.dropped + len(journal.entries)
        body = b"".join(encode_entry(entry) + b"\n" for entry in entries)
        headers = (("content-type", "application/jsonl"), ("crashcart-next", str(following)))
        return PlainReply(200, headers, body)

    async def _state(self, asked: Asked) -> PlainReply:
        provider = self._provider
        return _json(
            {
                "lanes": [asdict(state) for state in provider.playback.state()],
                "holds": dict(provider.named_holds.waiting),
                "script": {
                    "dialects": list(provider.script.dialects),
                    "strict": provider.script.strict,
                    "window_tokens": provider.script.window_tokens,
                },
            }
        )

    async def _script(self, asked: Asked) -> PlainReply:
        if len(asked.body) > SCRIPT_BYTES_MAX:
            raise _RefusedError(413, f"a script is at most {SCRIPT_BYTES_MAX} bytes, found {len(asked.body)}")
        try:
            text = asked.body.decode("utf-8")
            # Reading a long script takes its time, and others are being served.
            script = await asyncio.to_thread(lambda: parse_script(parse_document(text, "script")))
        except UnicodeDecodeError as error:
            raise _RefusedError(400, f"script:1: not UTF-8: {error.reason}") from error
        except DocumentError as error:
            raise _RefusedError(400, str(error)) from error
        return await self._loaded(script, asked)

    async def _preset(self, asked: Asked) -> PlainReply:
        try:
            script = load_preset(asked.parameter("name"))
        except UnknownPresetError as error:
            raise _RefusedError(404, str(error)) from error
        return await self._loaded(script, asked)

    async def _loaded(self, script: Script, asked: Asked) -> PlainReply:
        try:
            self._provider.load(script)
        except ProviderError as error:
            raise _RefusedError(409, str(error)) from error
        return await self._state(asked)

    async def _skip(self, asked: Asked) -> PlainReply:
        try:
            self._provider.playback.skip(asked.parameter("lane"))
        except UnknownLaneError as error:
            raise _RefusedError(404, str(error)) from error
        return await self._state(asked)

    async def _release(self, asked: Asked) -> PlainReply:
        return _json({"released": self._provider.named_holds.release(asked.parameter("hold"))})

    async def _reset(self, asked: Asked) -> PlainReply:
        self._provider.playback.reset()
        for name in tuple(self._provider.named_holds.waiting):
            self._provider.named_holds.release(name)
        self._provider.journal.clear()
        return await self._state(asked)

    async def _presets(self, asked: Asked) -> PlainReply:
        return _json(dict(descriptions()))

    async def _wait(self, asked: Asked) -> PlainReply:
        name = asked.parameter("hold")
        seconds = _seconds(asked.parameters.get("timeout_seconds"))
        reached = asyncio.ensure_future(self._provider.named_holds.reached(name))
        over = asyncio.Event()
        reached.add_done_callback(lambda _: over.set())
        try:
            await self._clock.wait(seconds, over, asked.left)
        finally:
            reached.cancel()
        waiting = self._provider.named_holds.waiting.get(name, 0)
        if not waiting:
            raise _RefusedError(408, f"no client waits at hold '{name}' after {seconds:g} s")
        return _json({"waiting": waiting})


ENDPOINTS: tuple[Endpoint, ...] = (
    Endpoint("GET", "", "", "this list", Control._index),
    Endpoint("GET", "journal", "?since=N", "entries from number N on, one JSON object a line", Control._journal),
    Endpoint("GET", "state", "", "where the lanes stand, which holds keep a client waiting", Control._state),
    Endpoint("POST", "script", "", "play the script in the body (YAML) from its beginning", Control._script),
    Endpoint("GET", "presets", "", "the names of the presets and what they do", Control._presets),
    Endpoint("POST", "preset", "?name=NAME", "play a preset from its beginning", Control._preset),
    Endpoint("POST", "skip", "?lane=NAME", "go to a lane's next step without a request", Control._skip),
    Endpoint("GET", "wait", "?hold=NAME&timeout_seconds=S", "answer once a client waits at a hold", Control._wait),
    Endpoint("POST", "release", "?hold=NAME", "let the clients go on that wait at a hold", Control._release),
    Endpoint("POST", "reset", "", "begin all lanes anew, release every hold, forget the journal", Control._reset),
)
"""Everything that there is, in the order of the index."""


def _check_sender(headers: Mapping[str, str]) -> None:
    if "origin" in headers:
        raise _RefusedError(403, "a request with an Origin comes from a web page, which may not control a provider")
    if headers.get("sec-fetch-site", "none") not in ("none", "same-origin"):
        raise _RefusedError(403, "a request from another site's page may not control a provider")
    host = headers.get("host", "")
    name = host.partition("]")[0].removeprefix("[") if host.startswith("[") else host.partition(":")[0]
    if name != "localhost" and not _is_loopback(name):
        raise _RefusedError(403, f"Host '{host}' is no loopback name; use 127.0.0.1")


def _is_loopback(name: str) -> bool:
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False


def _seconds(text: str | None) -> float:
    if text is None:
        return WAIT_SECONDS_DEFAULT
    try:
        seconds = float(text)
    except ValueError:
        seconds = -1.0
    if not 0 <= seconds <= WAIT_SECONDS_MAX:
        raise _RefusedError(400, f"timeout_seconds is a number from 0 to {WAIT_SECONDS_MAX:g}, found '{text}'")
    return seconds


def _text(text: str, status: int = 200) -> PlainReply:
    return PlainReply(status, (("content-type", "text/plain; charset=utf-8"),), text.encode() + b"\n")


def _json(value: Any) -> PlainReply:
    return PlainReply(200, (("content-type", "application/json"),), msgspec.json.encode(value) + b"\n")
