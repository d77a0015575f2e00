"""Drives the reference runtime of this repository, or another source tree of it.

``reference`` is the runtime as installed; ``reference@FOLDER`` is the package ``reference_runtime`` in FOLDER, which is
how mutants and older checkouts are run. It is started as a program and never imported.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import importlib.util
import json
import sys
from pathlib import Path
from typing import Any

from harness.model.capability import Capability
from harness.model.history import Ending
from harness.runtimes.adapter import Installation, Launch, RuntimeUnavailableError, Start
from harness.runtimes.configuration import hook_settings, mcp_settings
from harness.runtimes.frames import ending_of_result_frame

PACKAGE = "reference_runtime"


class ReferenceAdapter:
    """Adapter of the reference runtime."""

    name = "reference"
    default_version = "installed"
    capabilities = frozenset(Capability)
    settings = frozenset({"model", "fallback_models", "max_retries", "max_turns", "stream_idle_timeout_seconds"})

    def install(self, version: str, cache: Path) -> Installation:
        """Find the package; nothing is fetched, and ``cache`` is not used."""
        environment = {}
        if version == self.default_version:
            spec = importlib.util.find_spec(PACKAGE)
            if spec is None or spec.origin is None:
                raise RuntimeUnavailableError(f"the package {PACKAGE} is not installed; run: make demo")
            package = Path(spec.origin).parent
            shown = importlib.metadata.version("crashcart")
        else:
            package = Path(version).expanduser().resolve() / PACKAGE
            if not (package / "__main__.py").is_file():
                raise RuntimeUnavailableError(
                    f"reference@{version}: no {PACKAGE}/__main__.py in that folder; "
                    f"allowed: reference, or reference@FOLDER with FOLDER/{PACKAGE} in it"
                )
            environment["PYTHONPATH"] = str(package.parent)
            shown = f"tree-{tree_sha256(package)[:12]}"
        return Installation(
            runtime=self.name,
            version=shown,
            program=(sys.executable, "-P", "-m", PACKAGE),
            sha256=tree_sha256(package),
            environment=environment,
        )

    def versions(self) -> list[str]:
        """Return the one version that is always there."""
        return [self.default_version]

    def launch(self, installation: Installation, start: Start) -> Launch:
        """Translate a phase into the runtime's command line; see ``python -m reference_runtime --help``."""
        settings = start.settings
        files: dict[Path, str] = {}
        argv = [
            *installation.program,
            "-p",
            start.text,
            "--output-format",
            "stream-json",
            "--permission-mode",
            "bypass",
        ]
        argv += ["--resume" if start.resume else "--session-id", start.session]
        if settings.model is not None:
            argv += ["--model", settings.model]
        if settings.fallback_models:
            argv += ["--fallback-model", ",".join(settings.fallback_models)]
        if settings.max_retries is not None:
            argv += ["--max-retries", str(settings.max_retries)]
        if settings.max_turns is not None:
            argv += ["--max-turns", str(settings.max_turns)]
        if start.hook_commands:
            path = start.control_folder / "settings.json"
            files[path] = json.dumps({"hooks": hook_settings(start)})
            argv += ["--settings", str(path)]
        if start.effect_server is not None:
            path = start.control_folder / "mcp.json"
            files[path] = json.dumps(mcp_settings(start))
            argv += ["--mcp-config", str(path)]
        environment = {
            **start.environment,
            **installation.environment,
            "CRASHCART_BASE_URL": start.provider_url,
            "CRASHCART_API_KEY": "fake-key",
        }
        if settings.stream_idle_timeout_seconds is not None:
            environment["CRASHCART_STREAM_IDLE_TIMEOUT_SECONDS"] = str(settings.stream_idle_timeout_seconds)
        return Launch(tuple(argv), environment, files)

    def tool_call(
        self, tool: str, arguments: dict[str, Any], effect_tools: frozenset[str]
    ) -> tuple[str, dict[str, Any]]:
        """Name an effect tool after its server; built-in tools keep their names."""
        return (f"mcp__effects__{tool}" if tool in effect_tools else tool), arguments

    def ending(self, output: str) -> Ending:
        """Read the result frame."""
        return ending_of_result_frame(output)


def tree_sha256(folder: Path) -> str:
    """Return the sha256 over the paths and contents of a folder's Python files, in order."""
    digest = hashlib.sha256()
    for path in sorted(folder.rglob("*.py")):
        digest.update(f"{path.relative_to(folder)}\0".encode())
        digest.update(path.read_bytes())
    return digest.hexdigest()
