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
from fake_provider.faults.dribble import DribbleFault
from fake_provider.faults.drop_event import DropEventFault
from fake_provider.faults.duplicate_event import DuplicateEventFault
from fake_provider.faults.early_end import EarlyEndFault
from fake_provider.faults.empty_body import EmptyBodyFault
from fake_provider.faults.empty_message import EmptyMessageFault
from fake_provider.faults.error_event import ErrorEventFault
from fake_provider.faults.gzip import GzipFault
from fake_provider.faults.hang_up import HangUpFault
from fake_provider.faults.html_body import HtmlBodyFault
from fake_provider.faults.http10 import Http10Fault
from fake_provider.faults.huge_reply import HugeReplyFault
from fake_provider.faults.informational import InformationalFault
from fake_provider.faults.malformed_frame import MalformedFrameFault
from fake_provider.faults.no_last_chunk import NoLastChunkFault
from fake_provider.faults.no_terminal import NoTerminalFault
from fake_provider.faults.redirect import RedirectFault
from fake_provider.faults.refuse_connections import RefuseConnectionsFault
from fake_provider.faults.reorder_events import ReorderEventsFault
from fake_provider.faults.repeated_tool_id import RepeatedToolIdFault
from fake_provider.faults.reset import ResetFault
from fake_provider.faults.slow_headers import SlowHeadersFault
from fake_provider.faults.stall import StallFault
from fake_provider.faults.thinking_only import ThinkingOnlyFault
from fake_provider.faults.tool_arguments import ToolArgumentsFault
from fake_provider.faults.truncated_json import TruncatedJsonFault
from fake_provider.faults.unknown_event import UnknownEventFault
from fake_provider.faults.usage import UsageFault
from fake_provider.faults.wrong_content_length import WrongContentLengthFault
from fake_provider.faults.wrong_content_type import WrongContentTypeFault
from fake_provider.faults.wrong_stop_reason import WrongStopReasonFault
from fake_provider.replies import Reply
from fake_provider.wire import Action, Draft

if TYPE_CHECKING:
    from fake_provider.dialects import Dialect

__all__ = ["FAULTS", "Fault", "ReplyFault", "WireFault", "read_fault"]


@runtime_checkable
class ReplyFault(Protocol):
    """A fault in what the model says: it rewrites the neutral reply, before any dialect encodes it.

    It counts as fired once the whole reply has left and the peer's kernel has acknowledged it.
    """

    kind: ClassVar[str]

    @classmethod
    def read(cls, node: Node) -> ReplyFault:
        """Read the fault's settings.

        Raises:
            DocumentError: A setting is unknown, missing or of the wrong type.
        """

    def unsayable(self, reply: Reply) -> str | None:
        """Return why the fault does not fit this reply, or nothing if it does."""

    def reshape(self, reply: Reply) -> Reply:
        """Return the reply with the fault in it; only called where ``unsayable`` returned nothing."""


@runtime_checkable
class WireFault(Protocol):
    """A fault on the wire: it rewrites a draft into actions."""

    kind: ClassVar[str]

    @classmethod
    def read(cls, node: Node) -> WireFault:
        """Read the fault's settings.

        Raises:
            DocumentError: A setting is unknown, missing or of the wrong type.
        """

    def unreachable(self, draft: Draft) -> str | None:
        """Return why the fault cannot strike in this draft, or nothing if it can."""

    def strike(self, draft: Draft, dialect: Dialect) -> tuple[Action, ...]:
        """Return what happens on the wire, with one ``Fired`` at its place.

        Only called where ``unreachable`` returned nothing.
        """


Fault: TypeAlias = ReplyFault | WireFault


FAULTS: Mapping[str, type[ReplyFault | WireFault]] = {
    "close": CloseFault,
    "cut": CutFault,
    "dribble": DribbleFault,
    "drop_event": DropEventFault,
    "duplicate_event": DuplicateEventFault,
    "early_end": EarlyEndFault,
    "empty_body": EmptyBodyFault,
    "empty_message": EmptyMessageFault,
    "error_event": ErrorEventFault,
    "gzip": GzipFault,
    "hang_up": HangUpFault,
    "html_body": HtmlBodyFault,
    "http10": Http10Fault,
    "huge_reply": HugeReplyFault,
    "informational": InformationalFault,
    "malformed_frame": MalformedFrameFault,
    "no_last_chunk": NoLastChunkFault,
    "no_terminal": NoTerminalFault,
    "redirect": RedirectFault,
    "refuse_connections": RefuseConnectionsFault,
    "reorder_events": ReorderEventsFault,
    "repeated_tool_id": RepeatedToolIdFault,
    "reset": ResetFault,
    "slow_headers": SlowHeadersFault,
    "stall": StallFault,
    "thinking_only": ThinkingOnlyFault,
    "tool_arguments": ToolArgumentsFault,
    "truncated_json": TruncatedJsonFault,
    "unknown_event": UnknownEventFault,
    "usage": UsageFault,
    "wrong_content_length": WrongContentLengthFault,
    "wrong_content_type": WrongContentTypeFault,
    "wrong_stop_reason": WrongStopReasonFault,
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
