"""``redirect``: the answer is that the request should go elsewhere."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from fake_provider.document import Node
from fake_provider.faults.rewriting import struck_at_end
from fake_provider.wire import Action, Draft, Headers, PlainReply

if TYPE_CHECKING:
    from fake_provider.dialects import Dialect


STATUSES = (301, 302, 303, 307, 308)
GOALS = ("self", "elsewhere", "missing")


@dataclass(frozen=True, slots=True)
class RedirectFault:
    """Answer with a redirect and an empty body instead of the reply.

    ``to``: ``self`` names the same place again, so that the next step of the lane answers, and a step that repeats for
    ever is a loop; ``elsewhere`` another port of loopback, closed unless something listens at ``port``; ``missing``
    leaves the location out.

    A client may wrongly conclude that it should follow, and send the conversation and its key to whoever answers there;
    or follow a 301, 302 or 303 with a GET, and take what that says for the reply (RFC 9110, section 15.4).
    """

    kind: ClassVar[str] = "redirect"
    status: int = 307
    to: str = "self"
    port: int = 9

    @classmethod
    def read(cls, node: Node) -> RedirectFault:
        """Read ``{status: 307, to: self, port: 9}``.

        Raises:
            DocumentError: The status is no redirect, or there is a port where it means nothing.
        """
        fields = node.fields("redirect", ("status", "to", "port"))
        status = fields["status"].integer() if "status" in fields else 307
        if status not in STATUSES:
            raise fields["status"].error(f"{status} is no redirect. Allowed: {', '.join(map(str, STATUSES))}")
        to = fields["to"].choice("goal", GOALS) if "to" in fields else "self"
        if "port" in fields and to != "elsewhere":
            raise fields["port"].error(f"'port' means nothing beside 'to: {to}'")
        port = fields["port"].integer(minimum=1) if "port" in fields else 9
        if port > 65_535:
            raise fields["port"].error(f"expected a port of at most 65535, found {port}")
        return cls(status, to, port)

    def unreachable(self, draft: Draft) -> str | None:
        """Return nothing: every request can be redirected."""
        return None

    def strike(self, draft: Draft, dialect: Dialect) -> tuple[Action, ...]:
        """Send the redirect."""
        redirect = Draft.of_plain(PlainReply(self.status, self._headers(draft), b""))
        return struck_at_end(redirect, self.kind, f"{self.status} to {self.to}")

    def _headers(self, draft: Draft) -> Headers:
        if self.to == "missing":
            return ()
        request = draft.request
        target = "/" if request is None else request.path + (f"?{request.query}" if request.query else "")
        return (("location", target if self.to == "self" else f"http://127.0.0.1:{self.port}{target}"),)
