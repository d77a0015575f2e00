"""What stands between the network and the application: who may ask, and what every answer tells the browser.

A page on loopback is in reach of every site the same browser shows. A name that an attacker rebinds to 127.0.0.1
arrives with its own Host header, so an unknown Host is refused (421); a script of another site sends its Origin, so a
foreign Origin is refused (403). The guard never looks at a path or a body.
"""

from __future__ import annotations

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

HEADERS = {
    "content-security-policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; "
        "trusted-types 'none'"
    ),
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
    "cache-control": "no-store",
}


class Guard:
    """ASGI middleware: refuses foreign hosts and origins, and puts the security headers on every answer.

    Args:
        application: What answers a request that passes.
        port: The port that the server listens on, which Host and Origin must name.
    """

    def __init__(self, application: ASGIApp, port: int) -> None:
        self._application = application
        names = ("127.0.0.1", "localhost", "[::1]")
        self._hosts = frozenset(f"{name}:{port}" for name in names) | (frozenset(names) if port == 80 else frozenset())
        self._origins = frozenset(f"http://{host}" for host in self._hosts)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request; anything that is no HTTP request is dropped."""
        if scope["type"] != "http":
            return

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).update(HEADERS)
            await send(message)

        refusal = self._refusal(Headers(scope=scope))
        await (refusal or self._application)(scope, receive, send_with_headers)

    def _refusal(self, headers: Headers) -> JSONResponse | None:
        host, origin = headers.get("host", ""), headers.get("origin")
        if host.lower() not in self._hosts:
            allowed = ", ".join(sorted(self._hosts))
            return JSONResponse({"error": f"host '{host}' is not this server; allowed: {allowed}"}, 421)
        if origin is not None and origin.lower() not in self._origins:
            return JSONResponse({"error": f"origin '{origin}' may not ask; only the server's own page may"}, 403)
        return None
