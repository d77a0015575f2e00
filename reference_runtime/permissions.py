"""Who may call what without asking (N1). There is no dialog here, so what would need a question is denied."""

from dataclasses import dataclass
from enum import StrEnum

from reference_runtime.recovery.receipts import Effect
from reference_runtime.tools.tool import ToolSpec


class PermissionMode(StrEnum):
    """How permission is given."""

    ASK = "ask"
    BYPASS = "bypass"


@dataclass(frozen=True)
class Permissions:
    """The caller's word on tools; a pattern is a tool's name, or a beginning of names followed by `*`."""

    mode: PermissionMode
    allowed_tools: tuple[str, ...]

    def denial(self, tool: ToolSpec) -> str | None:
        """Why this tool may not be called, or None when it may."""
        if self.mode is PermissionMode.BYPASS or tool.effect is Effect.READ_ONLY:
            return None
        if any(_covers(pattern, tool.name) for pattern in self.allowed_tools):
            return None
        return f"permission to use {tool.name} was not given: it is not in --allowed-tools and nobody can be asked"


def _covers(pattern: str, name: str) -> bool:
    return name.startswith(pattern[:-1]) if pattern.endswith("*") else name == pattern
