"""Real agents for tests: installed from the registry into the user's cache, once for all tests."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.cli import cache_folder
from harness.probe import Session
from harness.store import Store

VERSION = "2.1.235"


@pytest.fixture(scope="session")
def session(tmp_path_factory: pytest.TempPathFactory) -> Session:
    return Session(Store(tmp_path_factory.mktemp("store")), cache_folder())


@pytest.fixture(scope="session")
def root() -> Path:
    return Path(__file__).resolve().parent.parent.parent
