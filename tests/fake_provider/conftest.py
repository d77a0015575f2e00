"""The real Anthropic client, imported once a session: it takes about two seconds."""

from __future__ import annotations

import importlib
from types import ModuleType

import pytest


@pytest.fixture(scope="session")
def anthropic() -> ModuleType:
    """The official client library."""
    return importlib.import_module("anthropic")
