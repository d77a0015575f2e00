"""Fixtures for pytest: ``fake_provider`` for one test, ``fake_provider_session`` for all of them.

The plugin loads with pytest wherever the package is installed, so it imports nothing of it until a fixture is used.
Each provider has a thread and a free port of its own, which makes it safe under xdist.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from fake_provider.handle import ProviderHandle

FIXTURES = ("fake_provider", "fake_provider_session")


@pytest.fixture
def fake_provider() -> Iterator[ProviderHandle]:
    """A scripted provider for this test alone.

    At the test's end it fails when its script is strict and something was unexpected, or when a fault did not strike or
    no request came for it; ``lenient()`` turns that off.
    """
    from fake_provider.handle import ProviderHandle

    with ProviderHandle() as provider:
        yield provider
        complaint = provider.complaint()
    if complaint is not None:
        pytest.fail(complaint, pytrace=False)


@pytest.fixture(scope="session")
def fake_provider_session() -> Iterator[ProviderHandle]:
    """A scripted provider for all tests of this process; each loads its own script, and nothing is judged."""
    from fake_provider.handle import ProviderHandle

    with ProviderHandle() as provider:
        yield provider


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, Any, Any]:
    """Show what the provider saw beneath a test that failed."""
    report = yield
    if report.when == "call" and report.failed:
        for name in FIXTURES:
            provider = getattr(item, "funcargs", {}).get(name)
            if provider is not None:
                report.sections.append((f"what {name} saw", provider.table()))
    return report
