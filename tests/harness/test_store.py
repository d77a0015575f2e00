"""The store loses nothing and holds no half run, whatever stops a write.

Method: an error is injected at each step of keeping a run; processes are killed between file and row; several processes
write at once. Afterwards the store is opened and read by the same code that users run.
"""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from harness.model.evidence import Evidence, encode
from harness.model.outcome import Outcome
from harness.store import FORMAT_VERSION, Store, StoreError, write_whole
from tests.harness.histories import evidence, made

REPOSITORY = Path(__file__).parents[2]


def run(name: str, captured_at: str = "2026-11-30T20:30:15Z") -> Evidence:
    return evidence(made(), run=name, captured_at=captured_at)


def kept(store: Store, *names: str) -> Store:
    for second, name in enumerate(names):
        store.keep(run(name, f"2026-11-30T20:30:{second:02}Z"), b"{}\n", "tool.one", 0.5)
    return store


def test_what_was_kept_is_read_back(tmp_path: Path) -> None:
    store = Store(tmp_path / "store")
    path = store.keep(run("20261130-203015-aa"), b'{"entry":"x"}\n', "tool.one", 0.5)
    assert path.read_bytes() == encode(run("20261130-203015-aa"))
    assert (path.parent / "journal.jsonl").read_bytes() == b'{"entry":"x"}\n'
    [row] = store.rows()
    assert (row.run, row.probe, row.scenario, row.outcome) == (
        "20261130-203015-aa",
        "tool.one",
        "tool.one",
        Outcome.INCONCLUSIVE,
    )
    assert (row.runtime, row.version, row.duration_seconds) == ("reference", "0.1.0", 0.5)
    assert store.evidence("20261130-203015-aa") == run("20261130-203015-aa")


def test_a_store_that_is_not_there_is_empty_and_stays_not_there(tmp_path: Path) -> None:
    assert Store(tmp_path / "store").rows() == []
    assert not (tmp_path / "store").exists()


def test_rows_come_in_the_order_of_time(tmp_path: Path) -> None:
    store = Store(tmp_path)
    store.keep(run("b", "2026-11-30T20:30:02Z"), b"", None, 0.0)
    store.keep(run("a", "2026-11-30T20:30:03Z"), b"", None, 0.0)
    store.keep(run("c", "2026-11-30T20:30:01Z"), b"", None, 0.0)
    assert [row.run for row in store.rows()] == ["c", "b", "a"]
    assert store.evidence("last").run == "a"


def test_ids_sort_by_time_and_do_not_meet(tmp_path: Path) -> None:
    store = Store(tmp_path)
    names = {store.new_run("2026-11-30T20:30:15Z") for _ in range(3000)}
    assert len(names) == 3000
    assert all(name.startswith("20261130-203015-") for name in names)


LOOK_UPS: dict[str, tuple[tuple[str, ...], str, str]] = {
    "none yet": ((), "last", "no run begins with 'last' in {}. Newest: none yet; run: crashcart run"),
    "no match": (("ab", "cd"), "x", "no run begins with 'x' in {}. Newest: ab, cd"),
    "two match": (("ab1", "ab2", "cd"), "ab", "2 runs begin with 'ab' in {}. Newest: ab1, ab2"),
    "many": (
        tuple(f"ab{n}" for n in range(8)),
        "ab",
        "8 runs begin with 'ab' in {}. Newest: ab3, ab4, ab5, ab6, ab7",
    ),
}


@pytest.mark.parametrize("name", LOOK_UPS)
def test_a_prefix_that_names_no_single_run(name: str, tmp_path: Path) -> None:
    runs, prefix, words = LOOK_UPS[name]
    store = kept(Store(tmp_path), *runs)
    with pytest.raises(StoreError) as caught:
        store.evidence(prefix)
    assert str(caught.value) == words.format(tmp_path)


def test_a_whole_id_wins_over_a_longer_one(tmp_path: Path) -> None:
    assert kept(Store(tmp_path), "ab", "abc").evidence("ab").run == "ab"


def test_one_id_is_kept_once(tmp_path: Path) -> None:
    store = kept(Store(tmp_path), "ab")
    before = (tmp_path / "runs" / "ab" / "evidence.json").read_bytes()
    with pytest.raises(StoreError, match="the run ab could not be stored"):
        store.keep(evidence(made(), run="ab", reproduce="other"), b"", None, 0.0)
    assert (tmp_path / "runs" / "ab" / "evidence.json").read_bytes() == before
    assert len(store.rows()) == 1


DAMAGE = {
    "no JSON": b"{half",
    "no evidence": b'{"format": 1}',
    "newer": b'{"format": 2}',
    "no object": b"[]",
}


@pytest.mark.parametrize("name", DAMAGE)
def test_damaged_evidence_is_an_error_that_names_the_file(name: str, tmp_path: Path) -> None:
    store = kept(Store(tmp_path), "ab")
    path = tmp_path / "runs" / "ab" / "evidence.json"
    path.write_bytes(DAMAGE[name])
    with pytest.raises(StoreError) as caught:
        store.evidence("ab")
    assert str(caught.value).startswith(f"{path} cannot be read: ")


def test_a_newer_database_is_refused_and_untouched(tmp_path: Path) -> None:
    store = kept(Store(tmp_path), "ab")
    with sqlite3.connect(tmp_path / "store.sqlite") as database:
        database.execute(f"PRAGMA user_version = {FORMAT_VERSION + 1}")
    database.close()
    expected = (
        f"{tmp_path / 'store.sqlite'} has format 2, and this program knows up to 1; "
        "use the newer crashcart, or another folder with CRASHCART_STORE"
    )
    for act in (store.rows, lambda: store.evidence("ab"), lambda: kept(store, "cd")):
        with pytest.raises(StoreError) as caught:
            act()
        assert str(caught.value) == expected
    assert [path.name for path in (tmp_path / "runs").iterdir()] == ["ab"], "nothing was added to it"


def test_a_file_that_is_no_database_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "store.sqlite").write_bytes(b"x" * 4096)
    with pytest.raises(StoreError, match=r"store\.sqlite cannot be read: file is not a database"):
        Store(tmp_path).rows()
    with pytest.raises(StoreError, match="the run ab could not be stored"):
        kept(Store(tmp_path), "ab")


class FullDisk:
    """Fails the nth of the operations that write, and counts them."""

    def __init__(self, fail_at: int, monkeypatch: pytest.MonkeyPatch) -> None:
        self.count = 0
        self.fail_at = fail_at
        for owner, name in ((Path, "mkdir"), (Path, "open"), (os, "fsync"), (Path, "rename"), (sqlite3, "connect")):
            monkeypatch.setattr(owner, name, self.failing(getattr(owner, name)))

    def failing(self, real: Any) -> Any:
        def operation(*arguments: Any, **words: Any) -> Any:
            self.count += 1
            if self.count == self.fail_at:
                raise OSError(28, "No space left on device")
            return real(*arguments, **words)

        return operation


def steps_of_keeping(folder: Path) -> int:
    store = kept(Store(folder), "first")
    with pytest.MonkeyPatch.context() as patch:
        disk = FullDisk(0, patch)
        kept(store, "second")
        return disk.count


def test_a_disk_that_is_full_at_any_step_loses_nothing(tmp_path: Path) -> None:
    steps = steps_of_keeping(tmp_path / "count")
    assert steps >= 8
    for step in range(1, steps + 1):
        folder = tmp_path / str(step)
        store = kept(Store(folder), "first")
        with pytest.MonkeyPatch.context() as patch:
            FullDisk(step, patch)
            with pytest.raises(StoreError) as caught:
                kept(store, "second")
        assert "the run second could not be stored" in str(caught.value)
        assert "No space left on device" in str(caught.value)
        assert [row.run for row in store.rows()] == ["first"]
        assert [path.name for path in (folder / "runs").iterdir()] == ["first"], f"step {step} left something"
        assert [row.run for row in kept(store, "second").rows()] == ["first", "second"], "space again, and it goes on"


WRITER = """
import sys
from pathlib import Path
from harness.store import Store
from tests.harness.test_store import run
store = Store(Path(sys.argv[1]))
sys.stdin.read(1)
for number in range(5):
    store.keep(run(f"{sys.argv[2]}{number}"), b"", None, 0.0)
"""


def test_several_processes_write_at_once(tmp_path: Path) -> None:
    writers = [
        subprocess.Popen(
            [sys.executable, "-c", WRITER, str(tmp_path), name], stdin=subprocess.PIPE, cwd=REPOSITORY, text=True
        )
        for name in "abc"
    ]
    for writer in writers:
        assert writer.stdin is not None
        writer.stdin.write("g")
        writer.stdin.close()
    assert [writer.wait() for writer in writers] == [0, 0, 0]
    store = Store(tmp_path)
    assert {row.run for row in store.rows()} == {f"{name}{number}" for name in "abc" for number in range(5)}
    assert all(store.evidence(row.run).run == row.run for row in store.rows())


KILLED = """
import os, signal, sys
from pathlib import Path
import harness.store
from tests.harness.test_store import run
place, folder = sys.argv[1:]
def die(*arguments, **words):
    os.kill(os.getpid(), signal.SIGKILL)
if place == "before the rename":
    Path.rename = die
elif place == "between file and row":
    harness.store.Store._database = die
elif place == "inside the transaction":
    real = harness.store.Store._database
    import contextlib
    @contextlib.contextmanager
    def database(self):
        with real(self) as opened:
            class Dying:
                def execute(self, *arguments):
                    opened.execute(*arguments)
                    die()
            yield Dying()
    harness.store.Store._database = database
harness.store.Store(Path(folder)).keep(run("killed"), b"", None, 0.0)
"""


@pytest.mark.parametrize("place", ["before the rename", "between file and row", "inside the transaction"])
def test_a_kill_at_any_moment_leaves_a_store_that_opens(place: str, tmp_path: Path) -> None:
    store = kept(Store(tmp_path), "first")
    killed = subprocess.run([sys.executable, "-c", KILLED, place, str(tmp_path)], cwd=REPOSITORY, check=False)
    assert killed.returncode == -signal.SIGKILL
    assert [row.run for row in store.rows()] == ["first"]
    assert [row.run for row in kept(store, "second").rows()] == ["first", "second"]
    assert store.evidence("second").run == "second"


def test_a_file_is_whole_or_not_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "file"
    write_whole(path, b"old")

    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        write_whole(path, b"new")
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]
