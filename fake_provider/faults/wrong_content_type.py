"""``wrong_content_type``: a good body under a content type that it has not."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar

from fake_provider.document import Node
from fake_provider.faults.rewriting import struck_at_end, with_header, without_body
from fake_provider.reply_words import check_header
from fake_provider.wire import Action, Draft

if TYPE_CHECKING:
    from fake_provider.dialects import Dialect


@dataclass(frozen=True, slots=True)
class WrongContentTypeFault:
    """Exchange the content type, or leave it out where ``type`` is nothing, and send the body as it is.

    A client may wrongly conclude that the body is text, and hand the JSON or the events to a person as the model's
    words; or never look at the type, and never see that a gateway answered.
    """

    kind: ClassVar[str] = "wrong_content_type"
    type: str | None = "text/plain; charset=utf-8"

    @classmethod
    def read(cls, node: Node) -> WrongContentTypeFault:
        """Read ``{type: "text/plain; charset=utf-8"}``; ``type: null`` leaves the header out.

        Raises:
            DocumentError: The type is no header's value.
        """
        fields = node.fields("wrong_content_type", ("type",))
        if "type" not in fields:
            return cls()
        if fields["type"].value is None:
            return cls(None)
        content_type = fields["type"].text()
        check_header(fields["type"], "content-type", content_type)
        return cls(content_type)

    def unreachable(self, draft: Draft) -> str | None:
        """Return that there is no body or that it has this type anyway, or nothing if it has another."""
        if not draft.has_body:
            return without_body(draft)
        if dict(draft.headers).get("content-type") == self.type:
            return f"'{self.type}' is the content type that this reply has"
        return None

    def strike(self, draft: Draft, dialect: Dialect) -> tuple[Action, ...]:
        """Send the reply with the other type."""
        changed = replace(draft, headers=with_header(draft.headers, "content-type", self.type))
        return struck_at_end(changed, self.kind, f"content-type: {self.type}" if self.type else "no content-type")
