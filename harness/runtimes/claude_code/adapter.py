"""Drives Claude Code, installed by version from the npm registry and pointed at the fake provider.

Settings, environment and output are those of the program's own documentation for headless runs. The binary is asked for
its version and must report the one that was asked for.
"""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

from harness.model.capability import Capability
from harness.model.history import Ending
from harness.runtimes.adapter import Installation, Launch, RuntimeUnavailableError, Start
from harness.runtimes.configuration import hook_settings, mcp_settings
from harness.runtimes.frames import ending_of_result_frame
from harness.runtimes.npm import installed, registry_versions

PACKAGE = "@anthropic-ai/claude-code"
PROGRAM = "node_modules/@anthropic-ai/claude-code-linux-x64/claude"
VERSION_SECONDS = 60
DEFAULT_MODEL = "claude-sonnet-4-5"


class ClaudeCodeAdapter:
    """Adapter of Claude Code in print mode."""

    name = "claude-code"
    default_version = "2.1.235"
    capabilities = frozenset(Capability) - {Capability.STREAM_IDLE_LIMIT}
    settings = frozenset({"model", "fallback_models", "max_retries", "max_turns"})

    def install(self, version: str, cache: Path) -> Installation:
        """Install from npm and ask the binary for its version."""
        path, record = installed(PACKAGE, version, PROGRAM, cache)
        reported = reported_version(path)
        if reported != version:
            raise RuntimeUnavailableError(f"claude-code@{version}: the installed binary reports version {reported}")
        return Installation(self.name, version, (str(path),), record.sha256)

    def versions(self) -> list[str]:
        """Return all versions on the registry."""
        return registry_versions(PACKAGE)

    def launch(self, installation: Installation, start: Start) -> Launch:
        """Translate a phase into Claude Code's headless command line."""
        settings = start.settings
        argv = [*installation.program, "-p", start.text, "--output-format", "stream-json", "--verbose"]
        argv += ["--model", settings.model or DEFAULT_MODEL, "--dangerously-skip-permissions"]
        argv += ["--resume" if start.resume else "--session-id", start.session]
        if settings.fallback_models:
            argv += ["--fallback-model", ",".join(settings.fallback_models)]
        if settings.max_turns is not None:
            argv += ["--max-turns", str(settings.max_turns)]
        if start.hook_commands:
            argv += ["--settings", json.dumps({"hooks": hook_settings(start)})]
        files: dict[Path, str] = {}
        if start.effect_server is not None:
            path = start.control_folder / "mcp.json"
            files[path] = json.dumps(mcp_settings(start))
            argv += ["--mcp-config", str(path), "--strict-mcp-config"]
        environment = {
            **start.environment,
            "ANTHROPIC_BASE_URL": start.provider_url,
            "ANTHROPIC_API_KEY": "sk-ant-fake",
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "DISABLE_AUTOUPDATER": "1",
            "IS_SANDBOX": "1",
        }
        if settings.max_retries is not None:
            environment["CLAUDE_CODE_MAX_RETRIES"] = str(settings.max_retries)
        return Launch(tuple(argv), environment, files)

    def tool_call(
        self, tool: str, arguments: dict[str, Any], effect_tools: frozenset[str]
    ) -> tuple[str, dict[str, Any]]:
        """Name an effect tool after its server; the scenarios' built-in names are Claude Code's own."""
        return (f"mcp__effects__{tool}" if tool in effect_tools else tool), arguments

    def ending(self, output: str) -> Ending:
        """Read the result frame."""
        return ending_of_result_frame(output)


def reported_version(path: Path) -> str:
    """Return what the binary prints for ``--version``, without its name.

    Raises:
        RuntimeUnavailableError: It does not start, or gives no answer in time.
    """
    environment = {"PATH": os.defpath, "HOME": "/nonexistent", "LANG": "C.UTF-8", "DISABLE_AUTOUPDATER": "1"}
    try:
        done = subprocess.run(
            [str(path), "--version"],
            capture_output=True,
            text=True,
            timeout=VERSION_SECONDS,
            stdin=subprocess.DEVNULL,
            env=environment,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise RuntimeUnavailableError(f"{path} --version does not answer: {error}") from error
    return done.stdout.partition(" ")[0].strip() or f"nothing (exit {done.returncode})"
