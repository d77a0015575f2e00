"""Wire faults, one file a kind: frozen data that rewrites frames into wire actions; and the register of kinds.

A fault is pure. It says whether it can be reached in given frames and what then happens on the wire; it never touches
a connection and never decides by chance.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import ClassVar, Protocol, TypeAlias

from fake_provider.document import Node, nearest
from fake_provider.faults.close import CloseFault
from fake_provider.faults.cut import CutFault
from fake_provider.faults.error_event import ErrorEventFault
from fake_provider.faults.reset import ResetFault
from fake_provider.faults.stall import StallFault
from fake_provider.wire import Action, Frame

__all__ = ["FAULTS", "Fault", "FaultKind", "read_fault"]

ErrorFrame: TypeAlias = Callable[[str, str], Frame]


class Fault(Protocol):
    """One fault, declared by a step."""

    kind: ClassVar[str]
    needs_stream: ClassVar[bool]

    def unreachable(self, frames: Sequence[Frame]) -> str | None:
        """Return why the fault cannot strike in these frames, or nothing if it can."""

    def rewrite(self, frames: Sequence[Frame], error_frame: ErrorFrame) -> tuple[Action, ...]:
        """Return what happens on the wire; only called where ``unreachable`` returned nothing."""


class FaultKind(Protocol):
    """How a kind of fault is read from a script."""

    kind: ClassVar[str]

    @classmethod
    def read(cls, node: Node) -> Fault:
        """Read the fault's settings.

        Raises:
            DocumentError: A setting is unknown, missing or of the wrong type.
        """


FAULTS: Mapping[str, type[CloseFault | CutFault | ErrorEventFault | ResetFault | StallFault]] = {
    "close": CloseFault,
    "cut": CutFault,
    "error_event": ErrorEventFault,
    "reset": ResetFault,
    "stall": StallFault,
}
"""The register of kinds, by the word that a script uses."""


def read_fault(node: Node) -> Fault:
    """Read ``fault: {KIND: {…}}``, or ``fault: KIND`` for a kind without settings.

    Raises:
        DocumentError: The kind is unknown, or its settings are wrong.
    """
    if isinstance(node.value, str):
        kind = node.choice("fault", FAULTS)
        return FAULTS[kind].read(Node({}, node.place, f"{node.path}.{kind}"))
    entries = node.entries("fault")
    for kind, settings in entries.items():
        if kind not in FAULTS:
            raise settings.error(f"unknown fault '{kind}'{nearest(kind, FAULTS)}")
    if len(entries) != 1:
        raise node.error(f"expected one fault, found {len(entries)}")
    [(kind, settings)] = entries.items()
    if settings.value is None:
        settings = Node({}, settings.place, settings.path)
    return FAULTS[kind].read(settings)
