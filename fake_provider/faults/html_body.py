"""``html_body``: a page of HTML where the reply should be, as a gateway sends it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from fake_provider.document import Node
from fake_provider.faults.rewriting import struck_at_end, with_body, with_header, without_body
from fake_provider.wire import Action, Draft

if TYPE_CHECKING:
    from fake_provider.dialects import Dialect


PAGE = (
    "<!DOCTYPE html>\n<html>\n<head><title>Service check</title></head>\n"
    "<body><h1>One moment</h1><p>The gateway is looking at this connection.</p></body>\n</html>\n"
)


@dataclass(frozen=True, slots=True)
class HtmlBodyFault:
    """Send a page of HTML with the status that the reply has.

    A client may wrongly conclude that the model answered, because the status is 200; or show the page to a person as
    the model's words.
    """

    kind: ClassVar[str] = "html_body"
    page: str = PAGE

    @classmethod
    def read(cls, node: Node) -> HtmlBodyFault:
        """Read ``{page}``."""
        fields = node.fields("html_body", ("page",))
        return cls(fields["page"].text() if "page" in fields else PAGE)

    def unreachable(self, draft: Draft) -> str | None:
        """Return that there is no body to be replaced, or nothing if there is."""
        return without_body(draft)

    def strike(self, draft: Draft, dialect: Dialect) -> tuple[Action, ...]:
        """Send the page."""
        headers = with_header(draft.headers, "content-type", "text/html; charset=utf-8")
        return struck_at_end(with_body(draft, self.page.encode("utf-8"), headers), self.kind, "instead of the body")
