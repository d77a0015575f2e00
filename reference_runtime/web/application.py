"""The routes of the session page: the page itself, the list of sessions, one session. Reads only; changes nothing.

``GET /`` and its two assets, ``GET /sessions``, ``GET /sessions/{id}``; anything else is answered with a JSON object
``{"error": sentence}`` and 404, 405, or 422 for a session that cannot be read. A session is read anew for each request,
so the page shows what is on disk.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path

import msgspec
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp

from reference_runtime.web.guard import Guard
from reference_runtime.web.sessions import UnreadableSessionError, list_sessions, view_session

PAGE = Path(__file__).parent / "page"

ASSETS = {
    "/": ("index.html", "text/html; charset=utf-8"),
    "/sessions.js": ("sessions.js", "text/javascript; charset=utf-8"),
    "/sessions.css": ("sessions.css", "text/css; charset=utf-8"),
}


def guarded_application(home: Path, port: int) -> ASGIApp:
    """Return the guarded application.

    Args:
        home: The runtime's home, whose sessions are shown.
        port: The port that the server listens on; requests that name another are refused.
    """

    async def sessions(_request: Request) -> Response:
        return _json({"sessions": await run_in_threadpool(list_sessions, home)})

    async def session(request: Request) -> Response:
        session_id = request.path_params["id"]
        try:
            view = await run_in_threadpool(view_session, home, session_id)
        except UnreadableSessionError as error:
            raise HTTPException(422, str(error)) from error
        if view is None:
            raise HTTPException(404, f"no session {session_id}")
        return _json(view)

    routes = [Route(path, partial(_asset, name, media_type)) for path, (name, media_type) in ASSETS.items()]
    routes += [Route("/sessions", sessions), Route("/sessions/{id}", session)]
    application = Starlette(routes=routes, exception_handlers={HTTPException: _refused})
    application.router.redirect_slashes = False
    return Guard(application, port)


async def _asset(name: str, media_type: str, _request: Request) -> Response:
    return Response((PAGE / name).read_bytes(), media_type=media_type)


def _json(value: object) -> Response:
    return Response(msgspec.json.encode(value), media_type="application/json")


async def _refused(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    sentences = {405: f"{request.method} is not answered here; this server only reads (GET, HEAD)"}
    if error.status_code == 404 and error.detail == "Not Found":
        sentences[404] = f"nothing at {request.url.path}; there are /, /sessions and /sessions/ID"
    return JSONResponse({"error": sentences.get(error.status_code, error.detail)}, error.status_code, error.headers)
