"""The file tools: atomic, verified, over the version that was seen or not at all (K3)."""

import hashlib
from pathlib import Path
from typing import Any

import pytest

from reference_runtime.tools.files import (
    EditTool,
    FileTool,
    KnownVersions,
    ReadTool,
    ToolRefusedError,
    WriteTool,
    replace_file,
)
from reference_runtime.tools.tool import CallIdentity

IDENTITY = CallIdentity("t1", "a1", "k1")


class Bench:
    """The three tools over one folder."""

    def __init__(self, folder: Path) -> None:
        versions = KnownVersions()
        self.read, self.write = ReadTool(folder, versions), WriteTool(folder, versions)
        self.edit = EditTool(folder, versions)


async def ask(tool: FileTool, **arguments: Any) -> tuple[bool, str]:
    answer = await tool.run(arguments, IDENTITY)
    return answer.is_error, answer.content[0]["text"]


async def test_write_read_edit(tmp_path: Path) -> None:
    bench, path = Bench(tmp_path), tmp_path / "new" / "a.txt"
    assert await ask(bench.write, file_path="new/a.txt", content="one\ntwo\n") == (False, f"{path} created: 8 bytes")
    assert await ask(bench.read, file_path=str(path), offset=2) == (False, "     2\ttwo")
    assert await ask(bench.edit, file_path="new/a.txt", old_string="one", new_string="1") == (
        False,
        f"{path} edited: 1 replaced",
    )
    assert path.read_text() == "1\ntwo\n"
    assert [entry.name for entry in path.parent.iterdir()] == ["a.txt"], "no temporary file stays"


async def test_the_mode_and_a_link_stay(tmp_path: Path) -> None:
    real, link = tmp_path / "real", tmp_path / "link"
    real.write_text("a")
    real.chmod(0o750)
    link.symlink_to(real)
    assert not (await ask(Bench(tmp_path).write, file_path="link", content="b"))[0]
    assert (real.read_text(), real.stat().st_mode & 0o7777, link.is_symlink()) == ("b", 0o750, True)


@pytest.mark.parametrize(
    ("old", "more", "told"),
    [
        ("x", {}, "the text to replace does not occur in"),
        ("", {}, "the text to replace does not occur in"),
        ("a", {}, "the text to replace occurs 2 times in"),
        ("b", {"expected_version": "0"}, "has version"),
    ],
)
async def test_an_edit_that_does_not_fit_changes_nothing(
    tmp_path: Path, old: str, more: dict[str, Any], told: str
) -> None:
    path = tmp_path / "f"
    path.write_text("aba")
    is_error, text = await ask(Bench(tmp_path).edit, file_path="f", old_string=old, new_string="z", **more)
    assert is_error
    assert told in text
    assert path.read_text() == "aba"


async def test_every_occurrence_and_the_expected_version(tmp_path: Path) -> None:
    path = tmp_path / "f"
    path.write_text("aba")
    version = hashlib.sha256(b"aba").hexdigest()
    edit = {"file_path": "f", "old_string": "a", "new_string": "z", "replace_all": True, "expected_version": version}
    assert await ask(Bench(tmp_path).edit, **edit) == (False, f"{path} edited: 2 replaced")
    assert path.read_text() == "zbz"


@pytest.mark.parametrize("tool", ["write", "edit"])
async def test_a_version_not_seen_is_never_replaced(tmp_path: Path, tool: str) -> None:
    path, bench = tmp_path / "f", Bench(tmp_path)
    path.write_text("seen")
    await ask(bench.read, file_path="f")
    path.write_text("seen and changed")
    change = {"content": "x"} if tool == "write" else {"old_string": "seen", "new_string": "x"}
    is_error, text = await ask(getattr(bench, tool), file_path="f", **change)
    assert (is_error, path.read_text()) == (True, "seen and changed")
    assert "changed since it was last read" in text
    await ask(bench.read, file_path="f")
    assert not (await ask(getattr(bench, tool), file_path="f", **change))[0]


def test_a_failed_rename_leaves_the_old_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "f"
    path.write_text("old")

    def fail(self: Path, target: Path) -> Path:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(Path, "replace", fail)
        with pytest.raises(OSError, match="No space"):
            replace_file(path, b"new", b"old")
    assert path.read_text() == "old"
    assert [entry.name for entry in tmp_path.iterdir()] == ["f"]


@pytest.mark.parametrize("expected", [b"other", None])
def test_bytes_that_were_not_expected_are_not_replaced(tmp_path: Path, expected: bytes | None) -> None:
    path = tmp_path / "f"
    path.write_text("old")
    with pytest.raises(ToolRefusedError, match="changed while it was being written"):
        replace_file(path, b"new", expected)
    assert path.read_text() == "old"
    assert [entry.name for entry in tmp_path.iterdir()] == ["f"]


async def test_an_error_of_the_system_is_an_answer(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    assert await ask(bench.read, file_path="none") == (True, f"'{tmp_path}/none': No such file or directory")
    assert (await ask(bench.read, file_path="."))[0]
    assert (await ask(bench.edit, file_path="none", old_string="a", new_string="b"))[0]
    (tmp_path / "f").write_text("")
    assert (await ask(bench.write, file_path="f/g", content=""))[0]
    assert (await ask(bench.read, file_path="a\x00b"))[0]
    assert await ask(bench.read, file_path="f") == (False, "(the file has no such lines)")
