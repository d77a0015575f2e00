"""A recording written as a script: whole or not at all, and never over a file that is there unless asked to."""

from __future__ import annotations

import contextlib
import os
import re
import tempfile
from collections.abc import Collection, Iterator, Mapping
from io import StringIO
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.representer import SafeRepresenter

from fake_provider.journal import REDACTED

SECRET_CHARACTERS_MIN = 6


_WIDTH_CHARACTERS = 10_000
_UNPLAIN = re.compile("[^\\x20-\\x7e\\xa0-\\u2027\\u202a-\\ud7ff\\ue000-\\ufefe\\uff00-\\ufffd\\U00010000-\\U0010ffff]")
"""Characters that only a text in double quotes carries through YAML unchanged."""


class _Representer(SafeRepresenter):
    """Writes texts so that each character comes back."""


def _represent_text(representer: _Representer, text: str) -> Any:
    style = '"' if _UNPLAIN.search(text) else None
    return representer.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_Representer.add_representer(str, _represent_text)


class NotWrittenError(Exception):
    """The file cannot be written; the message says why."""


def script_text(lanes: Mapping[str, Any], dialects: Collection[str]) -> str:
    """Return a script.

    Args:
        lanes: As data.
        dialects: In which they were recorded; a script of one dialect serves that alone.
    """
    script: dict[str, Any] = {"dialect": next(iter(dialects))} if len(dialects) == 1 else {}
    script["lanes"] = lanes
    yaml = YAML(typ="safe", pure=True)
    yaml.Representer = _Representer
    yaml.width = _WIDTH_CHARACTERS
    yaml.default_flow_style = False
    yaml.allow_unicode = True
    yaml.sort_base_mapping_type_on_output = False  # type: ignore[assignment]
    written = StringIO()
    yaml.dump(script, written)
    return f"# Recorded from a real provider.\n{written.getvalue()}"


def without_secrets(value: Any, secrets: Collection[str]) -> Any:
    """Return data in which no text holds a secret."""
    if isinstance(value, str):
        for secret in secrets:
            value = value.replace(secret, REDACTED)
        return value
    if isinstance(value, Mapping):
        return {key: without_secrets(item, secrets) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [without_secrets(item, secrets) for item in value]
    return value


def check_writable(path: Path, *, force: bool) -> None:
    """Find out what can be found out before anything is recorded.

    Raises:
        NotWrittenError: The file is there, or its folder is not.
    """
    if path.exists() and not force:
        raise NotWrittenError(f"{path} exists; choose another file, or say --force to replace it")
    if not path.parent.is_dir():
        raise NotWrittenError(f"cannot write {path}: there is no folder {path.parent}")


def write_script(path: Path, text: str, *, force: bool) -> None:
    """Write the file at once.

    Raises:
        NotWrittenError: It cannot be written, or it has come to be since.
    """
    try:
        with _beside(path) as draft:
            draft.write_text(text, encoding="utf-8")
            if force:
                draft.replace(path)
            else:
                os.link(draft, path)
    except FileExistsError as error:
        raise NotWrittenError(f"{path} exists; choose another file, or say --force to replace it") from error
    except OSError as error:
        raise NotWrittenError(f"cannot write {path}: {error.strerror}") from error


@contextlib.contextmanager
def _beside(path: Path) -> Iterator[Path]:
    """Give a temporary file in the same folder, and remove what is left of it."""
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    os.close(handle)
    draft = Path(name)
    try:
        yield draft
    finally:
        draft.unlink(missing_ok=True)
