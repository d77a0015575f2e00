"""HTTP by httpx, with httpx's own retries off. It carries bytes and never looks into them.

Importing httpx costs a quarter of a second, so only the command line imports this module, when a run begins.
"""

from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import asynccontextmanager

import httpx

from reference_runtime.requests import Response, TransportError

CONNECT_TIMEOUT_SECONDS = 30.0


class HttpResponse:
    """A response of httpx behind the narrow interface of the request runner."""

    def __init__(self, response: httpx.Response) -> None:
        self._response = response
        self.status = response.status_code
        self.headers: Mapping[str, str] = {name.lower(): value for name, value in response.headers.items()}

    async def chunks(self) -> AsyncGenerator[bytes, None]:
        """The body as it arrives.

        Raises:
            TransportError: The connection ended before the body did, or the body cannot be decoded.
        """
        try:
            async for chunk in self._response.aiter_bytes():
                yield chunk
        except httpx.HTTPError as error:
            raise TransportError(f"{type(error).__name__}: {error}") from error


class HttpTransport:
    """One client for one provider; connections are kept and reused."""

    def __init__(
        self, base_url: str, api_key: str, connect_timeout_seconds: float, inner: httpx.AsyncBaseTransport | None = None
    ) -> None:
        # Certificates are loaded only where they are used; loading them costs more than a short run.
        verify = base_url.lower().startswith("https:")
        self._client = httpx.AsyncClient(
            base_url=base_url,
            headers={"x-api-key": api_key, "anthropic-version": "2023-06-01", "content-type": "application/json"},
            timeout=httpx.Timeout(None, connect=connect_timeout_seconds),
            transport=inner or httpx.AsyncHTTPTransport(retries=0, verify=verify),
            trust_env=False,
        )

    @asynccontextmanager
    async def post(self, path: str, headers: Mapping[str, str], body: bytes) -> AsyncIterator[Response]:
        """Send one request and enter with the response's head.

        Raises:
            TransportError: There is no response.
        """
        request = self._client.build_request("POST", path, headers=dict(headers), content=body)
        try:
            response = await self._client.send(request, stream=True)
        except httpx.HTTPError as error:
            raise TransportError(f"{type(error).__name__}: {error}") from error
        try:
            yield HttpResponse(response)
        finally:
            await response.aclose()

    async def close(self) -> None:
        """Close every connection."""
        await self._client.aclose()
