"""Mutants of the reference runtime: small wrong changes, each of which a probe has to turn red.

A mutant is data: edits whose text stands exactly once in its file. It is built into a folder of its own and run as
``reference@FOLDER``; the runtime in the repository is never touched.
"""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path

from fake_provider.document import Node, load_document

ROOT = Path(__file__).resolve().parent.parent.parent
RUNTIME = ROOT / "reference_runtime"
CATALOGUE = Path(__file__).with_name("mutants.yaml")


@dataclass(frozen=True)
class Edit:
    """One replacement in one file of the reference runtime."""

    file: str
    find: str
    replace: str


@dataclass(frozen=True)
class Mutant:
    """A wrong change with its reason."""

    id: str
    because: str
    edits: tuple[Edit, ...]

    def build(self, folder: Path) -> Path:
        """Write the changed runtime below ``folder`` and return the folder for ``reference@FOLDER``.

        Raises:
            ValueError: An edit's text does not stand exactly once in its file.
        """
        target = folder / self.id
        shutil.copytree(RUNTIME, target / "reference_runtime", ignore=shutil.ignore_patterns("__pycache__"))
        for edit in self.edits:
            path = target / "reference_runtime" / edit.file
            text = path.read_text(encoding="utf-8")
            count = text.count(edit.find)
            if count != 1:
                raise ValueError(
                    f"mutant {self.id}: its text stands {count} times in reference_runtime/{edit.file}, and must stand "
                    f"once: {edit.find!r}; change {CATALOGUE.name} to fit the file"
                )
            path.write_text(text.replace(edit.find, edit.replace), encoding="utf-8")
        return target


def catalogue() -> dict[str, Mutant]:
    """Return all mutants by id.

    Raises:
        DocumentError: The catalogue has a mistake.
    """
    return {name: _mutant(name, node) for name, node in load_document(CATALOGUE).entries("mutants").items()}


def _mutant(name: str, node: Node) -> Mutant:
    fields = node.fields("mutant", {"because", "edits"}, required=("because", "edits"))
    return Mutant(name, fields["because"].text(), tuple(_edit(item) for item in fields["edits"].items("edits")))


def _edit(node: Node) -> Edit:
    fields = node.fields("edit", {"file", "find", "replace"}, required=("file", "find", "replace"))
    return Edit(fields["file"].text(), fields["find"].text(), fields["replace"].text())
