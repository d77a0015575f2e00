"""The repository as data: the path and text of every file that git knows, and what the rules need to read out of them.

A rule gets a tree and never touches the disk, so a test can hand it a broken repository of three lines. Only
``checkout`` reads files; it asks git, so an untracked draft breaks no rule before it is added.
"""

from __future__ import annotations

import ast
import re
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

PACKAGES = ("fake_provider", "reference_runtime", "harness", "probes", "reports")


@dataclass(frozen=True)
class Fence:
    """One fenced block of a Markdown page; ``line`` counts from 1 and is that of the opening fence."""

    page: str
    line: int
    language: str
    lines: tuple[str, ...]


@dataclass(frozen=True)
class Tree:
    """Files of a repository: path with forward slashes, relative to the root, to text."""

    files: Mapping[str, str]

    def text(self, path: str) -> str:
        """Return the text of a file, empty when there is no such file."""
        return self.files.get(path, "")

    def under(self, *folders: str) -> Iterator[str]:
        """Yield the paths below any of the folders, in order."""
        for path in sorted(self.files):
            if path.startswith(tuple(f"{folder}/" for folder in folders)):
                yield path

    def python(self) -> Iterator[tuple[str, ast.Module]]:
        """Yield each Python file and its syntax tree."""
        for path in sorted(self.files):
            if path.endswith(".py"):
                yield path, _parsed(path, self.files[path])

    def pages(self) -> Iterator[tuple[str, str]]:
        """Yield each Markdown page and its text."""
        for path in sorted(self.files):
            if path.endswith(".md"):
                yield path, self.files[path]

    def fences(self) -> Iterator[Fence]:
        """Yield each fenced block of each page."""
        for page, text in self.pages():
            yield from fences_of(page, text)

    def modules(self) -> dict[str, ast.Module]:
        """Return first-party modules by dotted name, tests left out."""
        found = {}
        for path, module in self.python():
            if path.split("/")[0] in PACKAGES:
                name = path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
                found[name] = module
        return found


@cache
def _parsed(path: str, text: str) -> ast.Module:
    return ast.parse(text, path)


def fences_of(page: str, text: str) -> Iterator[Fence]:
    """Yield the fenced blocks of one Markdown text."""
    opened: tuple[int, str, list[str]] | None = None
    for number, line in enumerate(text.splitlines(), 1):
        if line.lstrip().startswith("```"):
            if opened is None:
                opened = (number, line.strip().removeprefix("```").strip(), [])
            else:
                yield Fence(page, opened[0], opened[1], tuple(opened[2]))
                opened = None
        elif opened is not None:
            opened[2].append(line)


def without_fences(text: str) -> str:
    """Return a Markdown text with the lines of its fenced blocks emptied, so that line numbers stay."""
    kept, inside = [], False
    for line in text.splitlines():
        fence = line.lstrip().startswith("```")
        kept.append("" if inside or fence else line)
        inside = inside != fence
    return "\n".join(kept)


def defined_names(module: ast.Module) -> set[str]:
    """Return the classes, functions and constants that a module defines at its top level."""
    names: set[str] = set()
    for statement in module.body:
        if isinstance(statement, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            names.add(statement.name)
        elif isinstance(statement, ast.Assign):
            names.update(target.id for target in statement.targets if isinstance(target, ast.Name))
        elif isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):
            names.add(statement.target.id)
    return names


def make_targets(makefile: str) -> dict[str, str]:
    """Return the targets of a Makefile and the text that ``make help`` shows for each, empty where there is none."""
    found = {}
    for match in re.finditer(r"^([a-z][a-z-]*):(?!=)[^#\n]*(?:## (.*))?$", makefile, re.MULTILINE):
        found[match[1]] = match[2] or ""
    return found


@cache
def checkout() -> Tree:
    """Read every text file that git knows in this checkout."""
    # The folder may belong to another user, which git refuses unless told otherwise on its command line.
    listing = subprocess.run(
        ["git", "-c", f"safe.directory={ROOT}", "ls-files", "-z"], cwd=ROOT, check=True, capture_output=True, text=True
    )
    files = {}
    for name in filter(None, listing.stdout.split("\0")):
        path = ROOT / name
        if path.is_file():
            try:
                files[name] = path.read_text(encoding="utf-8")
            except UnicodeDecodeError:
                files[name] = ""
    return Tree(files)
