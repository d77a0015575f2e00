"""Presets: scripts for what one most often wants to see, each a file that says in its first line what it does.

They are ordinary scripts that work in every dialect. This module finds and loads them; it never serves anything.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from fake_provider.document import load_document, nearest
from fake_provider.script import Script, parse_script

_FOLDER = Path(__file__).parent


class UnknownPresetError(LookupError):
    """There is no preset of that name; the message names those there are."""


def descriptions() -> Mapping[str, str]:
    """Return what each preset does, by its name, in the order of their names."""
    return {path.stem: _first_line(path) for path in sorted(_FOLDER.glob("*.yaml"))}


def preset_path(name: str) -> Path:
    """Return the file of a preset.

    Raises:
        UnknownPresetError: There is no such preset.
    """
    names = [path.stem for path in _FOLDER.glob("*.yaml")]
    if name not in names:
        raise UnknownPresetError(f"no preset '{name}'{nearest(name, names)}")
    return _FOLDER / f"{name}.yaml"


def load_preset(name: str) -> Script:
    """Read a preset.

    Raises:
        UnknownPresetError: There is no such preset.
    """
    return parse_script(load_document(preset_path(name), shown_as=f"preset {name}"))


def _first_line(path: Path) -> str:
    with path.open(encoding="utf-8") as opened:
        return opened.readline().removeprefix("#").strip()
