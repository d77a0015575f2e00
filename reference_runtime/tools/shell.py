"""Bash: one shell command in a process group of its own, which never outlives the call.

Its effects outside the process are its own; nothing here can tell or undo them.
"""

import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from reference_runtime.clock import Clock
from reference_runtime.processes import run_process
from reference_runtime.recovery.receipts import Effect
from reference_runtime.recovery.tools import ToolFailure
from reference_runtime.tools.tool import CallIdentity, ToolAnswer, ToolInterruptedError, ToolSpec, text_answer

DEFAULT_TIMEOUT_SECONDS = 120.0
OUTPUT_CHARACTERS_MAX = 30_000
SECRET_VARIABLES = ("CRASHCART_API_KEY",)


class BashTool:
    """Runs a shell command."""

    spec = ToolSpec(
        name="Bash",
        description="Run a shell command and return what it prints.",
        input_schema={
            "type": "object",
            "properties": {
                "command": {"type": "string", "description": "The command."},
                "description": {"type": "string", "description": "What the command does, in a few words."},
                "timeout_seconds": {"type": "number", "description": "How long to wait; 120 when left out."},
            },
            "required": ["command"],
            "additionalProperties": False,
        },
        effect=Effect.WRITE,
    )
    unavailable_because: str | None = None

    def __init__(self, working_folder: Path, clock: Clock) -> None:
        self._working_folder = working_folder
        self._clock = clock

    async def run(self, arguments: Mapping[str, Any], identity: CallIdentity) -> ToolAnswer:
        """Run the command; an exit status other than 0 is an answer that says so.

        Raises:
            ToolInterruptedError: The command was killed at its time limit; what it did before is not known.
        """
        seconds = float(arguments.get("timeout_seconds", DEFAULT_TIMEOUT_SECONDS))
        environment = {name: value for name, value in os.environ.items() if name not in SECRET_VARIABLES}
        environment["CRASHCART_IDEMPOTENCY_KEY"] = identity.idempotency_key
        try:
            result = await run_process(
                (shutil.which("bash") or "/bin/sh", "-c", arguments["command"]),
                working_folder=str(self._working_folder),
                environment=environment,
                limit_seconds=self._clock.limit_for_work(seconds),
            )
        except (OSError, ValueError) as error:
            return text_answer(f"the command could not be started: {error}", is_error=True)
        if result.status is None:
            raise ToolInterruptedError(ToolFailure.TIMED_OUT, f"the command did not end within {seconds:g} s")
        printed = "\n".join(text for text in (result.output.rstrip(), result.errors.rstrip()) if text)
        printed = printed[:OUTPUT_CHARACTERS_MAX]
        if result.status != 0:
            return text_answer(f"exit status {result.status}\n{printed}".rstrip(), is_error=True)
        return text_answer(printed)
