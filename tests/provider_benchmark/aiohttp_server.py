"""A bare aiohttp server that gives the same reply: what a test suite writes for itself in twenty lines.

``python -m tests.provider_benchmark.aiohttp_server event|whole``: it prints its port. An event at a time is how a
stream is written; ``whole`` hands the same bytes over in one write, which no server of real streams does.
"""

from __future__ import annotations

import asyncio
import sys

from aiohttp import web

from tests.provider_benchmark.exchange import events, whole


def application(flush: str) -> web.Application:
    """Return the application; the reply is encoded before the first request, as the provider's is."""
    stream, body = events(), whole()
    pieces = stream if flush == "event" else (b"".join(stream),)

    async def answer(request: web.Request) -> web.StreamResponse:
        asked = await request.json()
        if not asked.get("stream"):
            return web.Response(body=body, content_type="application/json")
        reply = web.StreamResponse(headers={"content-type": "text/event-stream"})
        await reply.prepare(request)
        for piece in pieces:
            await reply.write(piece)
        await reply.write_eof()
        return reply

    app = web.Application()
    app.router.add_post("/v1/messages", answer)
    return app


async def main(flush: str) -> None:
    """Serve until the process is ended."""
    runner = web.AppRunner(application(flush), access_log=None)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    print(runner.addresses[0][1], flush=True)
    await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
