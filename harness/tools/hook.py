"""A hook program that a runtime starts: it denies or blocks as the scenario says, and keeps a log of being asked.

It runs as ``python -I -S hook.py CONFIG EVENT`` with the runtime's JSON on standard input, in the shape that Claude
Code and the reference runtime share. CONFIG is a JSON file: ``log`` (path) and ``rules`` (event, reason, tool, times).
It uses the standard library only, since it starts once for every tool call.
"""

from __future__ import annotations

import fcntl
import json
import os
import sys
import time
from typing import Any


def decided(rules: list[dict[str, Any]], log: list[dict[str, Any]], event: str, tool: str | None) -> int | None:
    """Return the place of the first rule that still has occasions left for this event and tool, else ``None``."""
    for number, rule in enumerate(rules):
        if rule["event"] == event and rule["tool"] in (None, tool):
            spent = sum(entry["rule"] == number for entry in log)
            if spent < rule["times"]:
                return number
    return None


def spoken(event: str, reason: str | None) -> dict[str, Any] | None:
    """Return the JSON answer for a decision; ``None`` lets the runtime go on."""
    if reason is None:
        return None
    if event == "pre_tool":
        return {
            "hookSpecificOutput": {
                "hookEventName": "PreToolUse",
                "permissionDecision": "deny",
                "permissionDecisionReason": reason,
            }
        }
    return {"decision": "block", "reason": reason}


def main(config_path: str, event: str) -> None:
    """Read the question, decide under a lock of the log, append to the log, answer."""
    question = json.load(sys.stdin)
    with open(config_path, encoding="utf-8") as file:
        config = json.load(file)
    with open(config["log"], "a+", encoding="utf-8") as log:
        fcntl.flock(log, fcntl.LOCK_EX)
        log.seek(0)
        earlier = [json.loads(line) for line in log]
        tool = question.get("tool_name")
        rule = decided(config["rules"], earlier, event, tool)
        reason = str(config["rules"][rule]["reason"]) if rule is not None else None
        entry = {
            "at_seconds": time.monotonic(),
            "event": event,
            "tool": tool,
            "rule": rule,
            "reason": reason,
            "stop_hook_active": question.get("stop_hook_active"),
        }
        log.write(json.dumps(entry) + "\n")
        log.flush()
        os.fsync(log.fileno())
    if (answer := spoken(event, reason)) is not None:
        sys.stdout.write(json.dumps(answer))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
