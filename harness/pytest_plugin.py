"""Runs probes under pytest: ``pytest probes --runtime=NAME[@VERSION]`` gives the same evidence as ``crashcart run``.

A declared probe in a collected module becomes one item for each runtime. The plugin loads with pytest wherever
crashcart is installed, so it imports nothing of the harness until a probe or its option is met.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from harness.model.result import ProbeResult
    from harness.probe import Probe, Session
    from harness.runtimes.register import RuntimeChoice


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add ``--runtime``."""
    group = parser.getgroup("crashcart", "probes of agent runtimes")
    group.addoption(
        "--runtime",
        action="append",
        default=[],
        metavar="NAME[@VERSION]",
        help="runtime under test for probes; reference when absent; repeatable",
    )


class ProbeFailedError(Exception):
    """A probe that is not green; its text is the whole report."""


class ProbeItem(pytest.Item):
    """One probe on one runtime."""

    def __init__(self, *, which: Probe, choice: RuntimeChoice, **keywords: Any) -> None:
        super().__init__(**keywords)
        self.which = which
        self.choice = choice

    def runtest(self) -> None:
        """Run the probe.

        Raises:
            ProbeFailedError: Its outcome is neither pass nor warn.
        """
        from fake_provider.document import DocumentError
        from harness.model.outcome import Outcome
        from harness.runtimes.adapter import RuntimeUnavailableError
        from harness.store import StoreError

        try:
            result = session_of(self.config).run(self.which, self.choice)
        except (DocumentError, RuntimeUnavailableError, StoreError) as error:
            raise ProbeFailedError(f"crashcart: {error}") from None
        if result.outcome is Outcome.UNSUPPORTED:
            pytest.skip(f"unsupported: {result.evidences[0].checks[0].detail}")
        if result.outcome not in (Outcome.PASS, Outcome.WARN):
            raise ProbeFailedError(report_text(result))

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        """Show a probe's report without a traceback of the plugin."""
        if isinstance(excinfo.value, ProbeFailedError):
            return str(excinfo.value)
        return super().repr_failure(excinfo, style)

    def reportinfo(self) -> tuple[Any, int, str]:
        """Name the item after the probe and the runtime."""
        return self.path, self.which.function.__code__.co_firstlineno - 1, f"{self.which.id} on {self.choice}"


def pytest_pycollect_makeitem(collector: Any, name: str, obj: object) -> Iterable[pytest.Item] | None:
    """Turn a declared probe into items."""
    if type(obj).__name__ != "Probe" or type(obj).__module__ != "harness.probe":
        return None
    from harness.runtimes.register import UnknownRuntimeError, chosen

    items = []
    for text in collector.config.getoption("--runtime") or ["reference"]:
        try:
            choice = chosen(text)
        except UnknownRuntimeError as error:
            raise pytest.UsageError(str(error)) from None
        items.append(ProbeItem.from_parent(collector, name=f"{name}[{choice}]", which=obj, choice=choice))
    return items


def pytest_collect_file(file_path: Any, parent: pytest.Collector) -> pytest.Collector | None:
    """Collect the modules of the probe suite, whose names do not begin with ``test_``."""
    if file_path.suffix == ".py" and file_path.parent.name == "probes" and file_path.name != "__init__.py":
        module: pytest.Collector = pytest.Module.from_parent(parent, path=file_path)
        return module
    return None


def session_of(config: pytest.Config) -> Session:
    """Return the store and the installed runtimes that all items of one pytest run share."""
    from harness.cli import cache_folder, store_folder
    from harness.probe import Session
    from harness.store import Store

    session: Session = config.stash.setdefault(SESSION, Session(Store(store_folder()), cache_folder()))
    return session


def report_text(result: ProbeResult) -> str:
    """Return a result in full, as the command line prints it."""
    from io import StringIO

    from rich.console import Console

    from reports.table import failure

    written = StringIO()
    Console(file=written, width=160, no_color=True, highlight=False).print(failure(result), soft_wrap=True)
    return written.getvalue()


SESSION: pytest.StashKey[Any] = pytest.StashKey()
