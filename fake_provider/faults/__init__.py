"""Faults, one file a kind: frozen data that rewrites a reply, or a draft into wire actions; and the register of kinds.

A fault is pure. It says whether it can be reached and what then happens; it never touches a connection and never
decides by chance.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar, Protocol, TypeAlias, runtime_checkable

from fake_provider.document import Node, nearest
from fake_provider.faults.close import CloseFault
from fake_provider.faults.cut import CutFault
from fake_provider.faults.error_event import ErrorEventFault
from fake_provider.faults.reset import ResetFault
from fake_provider.faults.stall import StallFault
from fake_provider.replies import Reply
from fake_provider.wire import Action, Draft

if TYPE_CHECKING:
    from fake_provider.dialects import Dialect

__all__ = ["FAULTS", "Fault", "FaultKind", "ReplyFault", "WireFault", "read_fault"]


@runtime_checkable
class ReplyFault(Protocol):
    """A fault in what the model says: it rewrites the neutral reply, before any dialect encodes it.

    It counts as fired once the whole reply has left and the peer's kernel has acknowledged it.
    """

    kind: ClassVar[str]

    def unsayable(self, reply: Reply) -> str | None:
        """Return why the fault does not fit this reply, or nothing if it does."""

    def reshape(self, reply: Reply) -> Reply:
        """Return the reply with the fault in it; only called where ``unsayable`` returned nothing."""


@runtime_checkable
class WireFault(Protocol):
    """A fault on the wire: it rewrites a draft into actions."""

    kind: ClassVar[str]

    def unreachable(self, draft: Draft) -> str | None:
        """Return why the fault cannot strike in this draft, or nothing if it can."""

    def strike(self, draft: Draft, dialect: Dialect) -> tuple[Action, ...]:
        """Return what happens on the wire, with one ``Fired`` at its place.

        Only called where ``unreachable`` returned nothing.
        """


Fault: TypeAlias = ReplyFault | WireFault


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
