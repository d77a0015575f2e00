"""Replaces what differs between two runs of one behaviour by placeholders: paths, ports, ids, times.

The rules are a table. They work on text, so that a path inside a prompt or an output line is found as well. A rule that
replaced too much would hide a difference in behaviour, so each one names a form that cannot carry behaviour.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Rule:
    """One form that varies; each distinct match gets the next number when ``numbered``."""

    name: str
    pattern: re.Pattern[str]
    replacement: str
    numbered: bool = False


RULES: tuple[Rule, ...] = (
    Rule(
        "uuid",
        re.compile(r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b", re.IGNORECASE),
        "<uuid-{number}>",
        numbered=True,
    ),
    Rule(
        "timestamp",
        re.compile(r"\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:\d\d)?"),
        "<time>",
    ),
    Rule("date", re.compile(r"\b20\d\d[-/](?:0\d|1[0-2])[-/](?:[0-2]\d|3[01])\b"), "<date>"),
    Rule(
        "measured number in JSON",
        re.compile(
            r"(?P<key>\\?\"[a-z_]*(?:duration|latency|elapsed|delay|ttft|_ms|_at|_seconds|_per_second)[a-z_]*\\?\":\s*)"
            r"-?\d+(?:\.\d+)?(?:e-?\d+)?",
            re.IGNORECASE,
        ),
        r"\g<key>0",
    ),
    Rule("process id", re.compile(r"(?P<key>\b(?:pid|PID)\\?\"?[ :=]+)\d+"), r"\g<key>0"),
    Rule("sha1-sized id", re.compile(r"\b[0-9a-f]{40}\b"), "<hex40-{number}>", numbered=True),
    Rule("device id", re.compile(r"(?P<key>device_id\\*\":\s*\\*\")[0-9a-f]{64}"), r"\g<key><device>"),
    Rule("temporary name", re.compile(r"\btmp[a-z0-9_]{8}\b"), "<tmp>"),
)


def normalised(text: str, literals: Mapping[str, str]) -> str:
    """Return text with placeholders.

    Args:
        text: Any text; evidence is handed over as JSON.
        literals: Exact texts of this run and what stands for each, such as the sandbox's folder.
    """
    for literal in sorted(literals, key=len, reverse=True):
        text = text.replace(literal, literals[literal])
    for rule in RULES:
        text = _numbered(rule, text) if rule.numbered else rule.pattern.sub(rule.replacement, text)
    return text


def sandbox_literals(root: str, port: int) -> dict[str, str]:
    """Return what stands for a run's folder and port; a folder's slug, as agents name files after it, too."""
    return {root: "<sandbox>", root.replace("/", "-"): "<sandbox>", f"127.0.0.1:{port}": "127.0.0.1:<port>"}


def _numbered(rule: Rule, text: str) -> str:
    seen: dict[str, int] = {}

    def placeholder(match: re.Match[str]) -> str:
        number = seen.setdefault(match.group(0).lower(), len(seen) + 1)
        return rule.replacement.format(number=number)

    return rule.pattern.sub(placeholder, text)
