"""The transcript: each record durable before it counts, readable on both sides of damage, never silently migrated."""

import errno
import json
import os
from pathlib import Path

import pytest

from reference_runtime.transcript import (
    FORMAT_VERSION,
    JournalError,
    NewerFormatError,
    TranscriptWriter,
    read_transcript,
)


def write(path: Path, count: int) -> None:
    writer = TranscriptWriter(path)
    for number in range(count):
        writer.append("note", "2026-01-01T00:00:00+00:00", number=number, text="zwölf \ud800\n")
    writer.close()


def numbers(path: Path) -> list[int]:
    return [record.fields["number"] for record in read_transcript(path).records if record.kind == "note"]


def test_records_come_back_in_order(tmp_path: Path) -> None:
    path = tmp_path / "a" / "b" / "s.jsonl"
    write(path, 3)
    content = read_transcript(path)
    assert numbers(path) == [0, 1, 2]
    assert [record.line for record in content.records] == [1, 2, 3]
    assert {record.version for record in content.records} == {FORMAT_VERSION}
    assert content.damages == ()
    assert path.stat().st_mode & 0o077 == 0


def test_a_file_torn_at_any_byte_keeps_what_was_whole_and_can_be_continued(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "fsync", lambda _descriptor: None)
    path = tmp_path / "s.jsonl"
    write(path, 3)
    whole = path.read_bytes()
    ends = [at + 1 for at, byte in enumerate(whole) if byte == 0x0A]
    for size in range(len(whole)):
        path.write_bytes(whole[:size])
        intact = sum(end <= size or end == size + 1 for end in ends)
        assert len(numbers(path)) == intact
        torn = read_transcript(path).damages
        assert all(damage.at_end for damage in torn)
        writer = TranscriptWriter(path)
        writer.append("note", "", number=9)
        writer.close()
        assert numbers(path) == [*range(intact), 9]
        assert path.read_bytes().startswith(whole[:size]), "damage is never rewritten"


def test_damage_that_was_reported_keeps_how_it_was_found(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    write(path, 2)
    path.write_bytes(path.read_bytes()[:-5])
    writer = TranscriptWriter(path)
    writer.append("damage_seen", "", damages=[{"line": 2, "what": "torn", "at_end": True}])
    writer.close()
    content = read_transcript(path)
    assert [(damage.line, damage.at_end) for damage in content.damages] == [(2, True)]
    assert content.reported_lines == {2}


@pytest.mark.parametrize("garbage", [b"{", b"[]", b'{"version": 1}', b"\x00" * 40, b'{"a":1}{"b":2}', b"\xff\xfe"])
def test_damage_in_the_middle_hides_nothing_around_it(tmp_path: Path, garbage: bytes) -> None:
    path = tmp_path / "s.jsonl"
    write(path, 3)
    first, second, third, _ = path.read_bytes().split(b"\n")
    path.write_bytes(b"\n".join([first, second, garbage, third, b""]))
    assert numbers(path) == [0, 1, 2]
    assert [(damage.line, damage.at_end) for damage in read_transcript(path).damages] == [(3, False)]


def test_a_newer_format_is_refused_and_an_older_one_is_read(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    path.write_text(json.dumps({"kind": "note", "number": 5}) + "\n")
    assert read_transcript(path).records[0].version == 0
    path.write_text(json.dumps({"version": FORMAT_VERSION + 1, "kind": "note"}) + "\n")
    with pytest.raises(NewerFormatError, match=r"s\.jsonl:1: record format 2 is newer than 1"):
        read_transcript(path)


def test_each_record_is_synced_before_append_returns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "s.jsonl"
    synced: list[int] = []
    real = os.fsync

    def sync(descriptor: int) -> None:
        real(descriptor)
        synced.append(os.fstat(descriptor).st_size)

    monkeypatch.setattr(os, "fsync", sync)
    writer = TranscriptWriter(path)
    for number in range(3):
        writer.append("note", "", number=number)
        assert synced[-1] == path.stat().st_size
    writer.close()


def test_every_new_folder_and_the_new_file_have_durable_entries(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[int] = []
    monkeypatch.setattr(os, "fsync", lambda descriptor: synced.append(os.fstat(descriptor).st_ino))
    TranscriptWriter(tmp_path / "a" / "b" / "s.jsonl").close()
    assert synced == [folder.stat().st_ino for folder in (tmp_path, tmp_path / "a", tmp_path / "a" / "b")]


def test_a_failed_sync_is_never_retried_as_if_it_had_worked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    writer = TranscriptWriter(tmp_path / "s.jsonl")

    def fail(_descriptor: int) -> None:
        raise OSError(errno.EIO, "Input/output error")

    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", fail)
        with pytest.raises(JournalError, match="cannot record note"):
            writer.append("note", "", number=1)
    with pytest.raises(JournalError, match="not written any more"):
        writer.append("note", "", number=2)
    writer.close()


def test_a_short_write_is_no_record(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "s.jsonl"
    writer = TranscriptWriter(path)
    real = os.write
    with monkeypatch.context() as patched:
        patched.setattr(os, "write", lambda fd, data: real(fd, data[:7]))
        with pytest.raises(JournalError, match="only 7 of"):
            writer.append("note", "", number=1)
    writer.close()
    assert numbers(path) == []


def test_only_one_process_at_a_time_may_write(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    writer = TranscriptWriter(path)
    with pytest.raises(JournalError, match="in use by another process"):
        TranscriptWriter(path)
    writer.close()
    TranscriptWriter(path).close()


def test_a_place_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(JournalError, match="cannot open"):
        TranscriptWriter(tmp_path / "file" / "s.jsonl")
