"""``python -m reference_runtime.web --home DIR [--port N]``: serves the session page on loopback until it is stopped.

Exit codes: 0 stopped by Ctrl-C, 2 usage (no such home, port taken, a host that is not loopback). It never listens
anywhere else: the page has no authentication.
"""

from __future__ import annotations

import argparse
import asyncio
import ipaddress
import os
import socket
import sys
from pathlib import Path

import uvicorn

from reference_runtime.web.application import guarded_application


class UsageError(Exception):
    """What was asked for cannot be served; the message says what was allowed."""


def main(arguments: list[str] | None = None) -> int:
    """Serve until interrupted.

    Args:
        arguments: The words of the command line without the program's name; those of the process when None.

    Returns:
        The exit code.
    """
    parser = argparse.ArgumentParser(
        prog="python -m reference_runtime.web", description="Shows the runtime's sessions."
    )
    parser.add_argument("--home", type=Path, default=_default_home(), help="the runtime's home (default: %(default)s)")
    parser.add_argument("--host", default="127.0.0.1", help="a loopback address (default: %(default)s)")
    parser.add_argument("--port", type=int, default=8321, help="0 takes a free one (default: %(default)s)")
    options = parser.parse_args(arguments)
    try:
        if not options.home.is_dir():
            raise UsageError(f"no folder {options.home}; --home names the home of a runtime that has run")
        listening = listen(options.host, options.port)
    except UsageError as error:
        sys.stderr.write(f"reference_runtime.web: {error}\n")
        return 2
    port = listening.getsockname()[1]
    shown = f"[{options.host}]" if ":" in options.host else options.host
    sys.stdout.write(f"http://{shown}:{port}/\n")
    sys.stdout.flush()
    # A websocket or lifespan implementation would be imported and never used.
    served = guarded_application(options.home, port)
    config = uvicorn.Config(served, http="h11", ws="none", lifespan="off", log_level="warning", server_header=False)
    try:
        asyncio.run(uvicorn.Server(config).serve(sockets=[listening]))
    except KeyboardInterrupt:
        return 0
    return 0


def listen(host: str, port: int) -> socket.socket:
    """Open a listening socket on loopback.

    Args:
        host: ``localhost`` or a loopback address.
        port: TCP port from 0 (any free one) to 65535.

    Raises:
        UsageError: The host is not loopback, or the port is taken or impossible.
    """
    try:
        address = ipaddress.ip_address("127.0.0.1" if host == "localhost" else host)
    except ValueError:
        address = None
    if address is None or not address.is_loopback:
        raise UsageError(f"host '{host}' is not loopback; the page has no authentication. Allowed: 127.0.0.1, ::1")
    family = socket.AF_INET6 if address.version == 6 else socket.AF_INET
    try:
        return socket.create_server((str(address), port), family=family)
    except (OSError, OverflowError) as error:
        raise UsageError(f"port {port} on {host} cannot be used ({error}); --port 0 takes a free one") from error


def _default_home() -> Path:
    return Path(os.environ.get("CRASHCART_HOME") or Path.home() / ".crashcart-runtime")


if __name__ == "__main__":
    sys.exit(main())
