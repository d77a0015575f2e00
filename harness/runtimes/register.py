"""The written-out register of adapters, and the reading of ``NAME[@VERSION]``."""

from __future__ import annotations

from dataclasses import dataclass

from fake_provider.document import nearest
from harness.runtimes.adapter import Adapter
from harness.runtimes.claude_code.adapter import ClaudeCodeAdapter
from harness.runtimes.reference.adapter import ReferenceAdapter

ADAPTERS: dict[str, Adapter] = {adapter.name: adapter for adapter in (ReferenceAdapter(), ClaudeCodeAdapter())}


class UnknownRuntimeError(ValueError):
    """A word after ``--runtime`` that names no adapter."""


@dataclass(frozen=True)
class RuntimeChoice:
    """An adapter and a version of its runtime, as chosen on the command line."""

    adapter: Adapter
    version: str

    def __str__(self) -> str:
        if self.version == self.adapter.default_version and self.adapter.name == "reference":
            return self.adapter.name
        return f"{self.adapter.name}@{self.version}"


def chosen(text: str) -> RuntimeChoice:
    """Read ``NAME`` or ``NAME@VERSION``.

    Raises:
        UnknownRuntimeError: There is no such adapter; the message names the nearest one.
    """
    name, _, version = text.partition("@")
    if name not in ADAPTERS:
        raise UnknownRuntimeError(f"unknown runtime '{name}'{nearest(name, ADAPTERS)}")
    return RuntimeChoice(ADAPTERS[name], version or ADAPTERS[name].default_version)
