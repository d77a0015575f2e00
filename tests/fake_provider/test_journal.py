"""The journal keeps what happened, in order, and every kind of entry can be written down and read again."""

from __future__ import annotations

import typing
from threading import Thread
from typing import Any

import msgspec
import pytest

from fake_provider.journal import (
    AnyEntry,
    ClientLeft,
    ConnectionOpened,
    Entry,
    FaultFired,
    Journal,
    decode_entry,
    encode_entry,
    redacted,
    redacted_query,
)

KINDS: tuple[type[Entry], ...] = typing.get_args(AnyEntry)


def sample(kind: type[Entry]) -> AnyEntry:
    """An entry of a kind with a plausible value in each field."""
    samples = {int: 7, str: "text", float: 0.5, bool: True}
    fields: dict[str, Any] = {}
    for field in msgspec.structs.fields(kind):
        origin = typing.get_origin(field.type)
        if field.type in samples:
            fields[field.name] = samples[field.type]
        elif origin is typing.Literal:
            fields[field.name] = typing.get_args(field.type)[-1]
        elif origin is tuple:
            fields[field.name] = ("a", "b")
        elif origin is not None and "Mapping" in str(field.type):
            fields[field.name] = {"a": 1} if "int" in str(field.type) else {"a": "b"}
        else:
            fields[field.name] = None
    return kind(**fields)  # type: ignore[return-value]


@pytest.mark.parametrize("kind", KINDS)
def test_an_entry_is_one_line_that_can_be_read_again(kind: type[Entry]) -> None:
    entry = sample(kind)
    line = encode_entry(entry)
    assert b"\n" not in line
    assert line.startswith(b'{"entry":"%b"' % kind.__name__.encode())
    assert decode_entry(line) == entry


def test_every_kind_of_entry_is_in_the_union() -> None:
    assert set(KINDS) == set(Entry.__subclasses__())


def test_entries_are_frozen() -> None:
    entry = ConnectionOpened(at_seconds=0.0, connection=1)
    with pytest.raises(AttributeError):
        entry.connection = 2  # type: ignore[misc]


def test_a_listener_hears_each_entry_after_it_was_kept() -> None:
    heard: list[int] = []
    journal: Journal = Journal(lambda entry: heard.append(len(journal.entries)))
    journal.append(ConnectionOpened(at_seconds=journal.now(), connection=1))
    journal.append(ClientLeft(at_seconds=journal.now(), request=1, connection=1, bytes_sent=0))
    assert heard == [1, 2]
    assert [type(entry) for entry in journal.of(ClientLeft)] == [ClientLeft]
    assert len(list(journal.lines())) == 2


def test_time_is_relative_to_a_start_that_the_caller_may_give() -> None:
    first = Journal()
    later = Journal(start_seconds=first.start_seconds - 100)
    assert 0 <= first.now() < later.now()
    assert later.now() >= 100


def test_another_thread_reads_a_copy() -> None:
    journal = Journal()
    seen: list[int] = []
    journal.append(FaultFired(at_seconds=0.0, request=1, kind="cut", detail="x"))
    reader = Thread(target=lambda: seen.append(len(journal.entries)))
    reader.start()
    reader.join()
    assert seen == [1]


SECRET_HEADERS = (
    *("authorization", "x-api-key", "api-key", "x-goog-api-key", "openai-api-key", "x-litellm-api-key", "cookie"),
    *("proxy-authorization", "ocp-apim-subscription-key", "helicone-auth", "cf-aig-authorization", "x-auth-token"),
    *("x-amz-security-token",),
)
OPEN_HEADERS = ("host", "content-type", "user-agent", "anthropic-version", "anthropic-beta", "x-stainless-retry-count")


def test_keys_are_redacted_by_name() -> None:
    headers = dict.fromkeys((*SECRET_HEADERS, *OPEN_HEADERS), "value")
    assert [name for name, value in redacted(headers).items() if value == "value"] == list(OPEN_HEADERS)


@pytest.mark.parametrize("name", ["key", "api-key", "api_key", "apiKey", "token", "auth", "%6bey", "access_token"])
def test_keys_in_a_query_are_redacted_however_they_are_written(name: str) -> None:
    assert redacted_query(f"alt=sse&{name}=hidden&x=1") == f"alt=sse&{name}=[redacted]&x=1"
