"""Results as JUnit XML, in the shape that CI servers read: a suite a runtime, a case a probe.

A fail is a ``failure``; inconclusive and harness errors are an ``error``, since nothing was proved; unsupported is
``skipped``. Nothing is left out, so that a case that is missing means a probe that was not run.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from xml.etree import ElementTree as ET

from harness.model.outcome import Outcome
from harness.model.result import ProbeResult
from reports import timeline
from reports.table import check_words

ELEMENTS = {
    Outcome.FAIL: "failure",
    Outcome.INCONCLUSIVE: "error",
    Outcome.HARNESS_ERROR: "error",
    Outcome.UNSUPPORTED: "skipped",
}


NO_CHARACTERS = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def document(results: Sequence[ProbeResult]) -> bytes:
    """Return the whole document, UTF-8."""
    root = ET.Element("testsuites", name="crashcart")
    for runtime in dict.fromkeys(result.runtime for result in results):
        root.append(suite(runtime, [result for result in results if result.runtime == runtime]))
    ET.indent(root)
    return bytes(ET.tostring(root, encoding="utf-8", xml_declaration=True)) + b"\n"


def suite(runtime: str, results: Sequence[ProbeResult]) -> ET.Element:
    """Return one runtime's suite."""
    kinds = [ELEMENTS.get(result.outcome) for result in results]
    element = ET.Element(
        "testsuite",
        name=printable(runtime),
        tests=str(len(results)),
        failures=str(kinds.count("failure")),
        errors=str(kinds.count("error")),
        skipped=str(kinds.count("skipped")),
        time=f"{sum(result.duration_seconds for result in results):.3f}",
    )
    for result in results:
        element.append(case(result))
    return element


def case(result: ProbeResult) -> ET.Element:
    """Return one probe's case, with its checks and timeline when it is not green."""
    element = ET.Element(
        "testcase",
        classname=printable(f"{result.runtime}.{result.probe.partition('.')[0]}"),
        name=printable(result.probe),
        time=f"{result.duration_seconds:.3f}",
    )
    if (kind := ELEMENTS.get(result.outcome)) is not None:
        detail = ET.SubElement(element, kind, message=printable(f"{result.outcome}: {result.claim}"))
        words = [words for check in result.unmet for words in check_words(check)]
        for evidence in result.evidences:
            words += [*timeline.lines(evidence), f"  reproduce: {evidence.reproduce}"]
        detail.text = printable("\n".join(words))
    return element


def printable(text: str) -> str:
    """Return text without the characters that XML 1.0 does not allow (its production 2, Char)."""
    return NO_CHARACTERS.sub("", text)
