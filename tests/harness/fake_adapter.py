"""The adapter of the small agent in ``fake_agent.py``; it declares whatever a test wants it to."""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.model.capability import Capability
from harness.model.history import Ending
from harness.runtimes.adapter import Installation, Launch, Start
from harness.runtimes.frames import ending_of_result_frame

AGENT = Path(__file__).with_name("fake_agent.py")
INSTALLATION = Installation("fake", "1.0", (sys.executable,), "ef" * 32)


@dataclass(frozen=True)
class FakeAdapter:
    """Starts the agent with one behaviour."""

    behaviour: str
    on_term: str = "dies"
    capabilities: frozenset[Capability] = frozenset(Capability)
    settings: frozenset[str] = frozenset({"model", "max_retries"})
    name: str = "fake"
    default_version: str = "1.0"

    def install(self, version: str, cache: Path) -> Installation:
        return INSTALLATION

    def versions(self) -> list[str]:
        return [self.default_version]

    def launch(self, installation: Installation, start: Start) -> Launch:
        told = {
            "text": start.text,
            "resume": start.resume,
            "session": start.session,
            "model": start.settings.model or "m",
            "provider": start.provider_url.removeprefix("http://"),
            "on_term": self.on_term,
            "effect_server": start.effect_server,
            "hooks": dict(start.hook_commands),
        }
        argv = (*installation.program, "-I", "-S", str(AGENT), self.behaviour, json.dumps(told))
        return Launch(argv, dict(start.environment))

    def tool_call(
        self, tool: str, arguments: dict[str, Any], effect_tools: frozenset[str]
    ) -> tuple[str, dict[str, Any]]:
        return (f"fx_{tool}" if tool in effect_tools else tool), arguments

    def ending(self, output: str) -> Ending:
        return ending_of_result_frame(output)
