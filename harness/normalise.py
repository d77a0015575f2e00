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


# Where a form may begin and end. The text is JSON, so a letter may belong to an escaped line feed or tab before it.
BEGIN = r"(?:(?<![0-9A-Za-z])|(?<=\\[nrt]))"
END = r"(?![0-9A-Za-z])"

# A measured number is known by its key: by a word, or by a unit at the end of a part ("http_attempts" has none).
MEASURED = r"[a-z0-9_]*(?:duration|latency|elapsed|delay|ttft|_(?:ms|at|seconds|per_second)(?![a-z0-9]))[a-z0-9_]*"

RULES: tuple[Rule, ...] = (
    Rule(
        "uuid",
        re.compile(BEGIN + r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}" + END, re.IGNORECASE),
        "<uuid-{number}>",
        numbered=True,
    ),
    Rule(
        "timestamp",
        re.compile(BEGIN + r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d+)?(?:Z|[+-]\d\d:?\d\d)?"),
        "<time>",
    ),
    Rule("date", re.compile(BEGIN + r"20\d\d[-/](?:0\d|1[0-2])[-/](?:[0-2]\d|3[01])" + END), "<date>"),
    Rule(
        "measured number in JSON",
        re.compile(r"(?P<key>\\*\"" + MEASURED + r"\\*\":\s*)-?\d+(?:\.\d+)?(?:e[+-]?\d+)?", re.IGNORECASE),
        r"\g<key>0",
    ),
    Rule("process id", re.compile(r"(?P<key>" + BEGIN + r"(?:pid|PID)\\*\"?[ :=]+)\d+"), r"\g<key>0"),
    Rule("sha1-sized id", re.compile(BEGIN + r"[0-9a-f]{40}" + END), "<hex40-{number}>", numbered=True),
    Rule("device id", re.compile(r"(?P<key>device_id\\*\":\s*\\*\")[0-9a-f]{64}" + END), r"\g<key><device>"),
    Rule("temporary name", re.compile(BEGIN + r"tmp[a-z0-9_]{8}(?![0-9A-Za-z_])"), "<tmp>"),
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
