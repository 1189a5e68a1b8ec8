"""Clients of httpx 1 over a transport of httpx2, for SDKs and programs that take the older package.

Imported when such a client is asked for; nothing else of ours needs the package httpx.
"""

from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any

import httpx2

httpx: Any = import_module("httpx")


def httpx1_client(transport: httpx2.BaseTransport, timeout: float) -> Any:
    """An `httpx.Client` over a transport of httpx2; one request may take `timeout` seconds."""
    return httpx.Client(transport=_Transport(transport), timeout=_patience(timeout))


def httpx1_async_client(transport: httpx2.AsyncBaseTransport, timeout: float) -> Any:
    """An `httpx.AsyncClient` over a transport of httpx2; see `httpx1_client`."""
    return httpx.AsyncClient(transport=_AsyncTransport(transport), timeout=_patience(timeout))


def _patience(timeout: float) -> Any:
    return httpx.Timeout(timeout, connect=min(timeout, 10.0), pool=None)


class _Transport(httpx.BaseTransport):  # type: ignore[misc]  # the package may be absent
    """Hands requests of httpx 1 to a transport of httpx2, and its responses back."""

    def __init__(self, inner: httpx2.BaseTransport) -> None:
        self._inner = inner

    def handle_request(self, request: Any) -> Any:
        request.read()
        with _errors_of_httpx():
            return _answered(self._inner.handle_request(_asked(request)))

    def close(self) -> None:
        self._inner.close()


class _AsyncTransport(httpx.AsyncBaseTransport):  # type: ignore[misc]  # as above
    """Transport for asynchronous clients; see `_Transport`."""

    def __init__(self, inner: httpx2.AsyncBaseTransport) -> None:
        self._inner = inner

    async def handle_async_request(self, request: Any) -> Any:
        await request.aread()
        with _errors_of_httpx():
            return _answered(await self._inner.handle_async_request(_asked(request)))

    async def aclose(self) -> None:
        await self._inner.aclose()


def _asked(request: Any) -> httpx2.Request:
    return httpx2.Request(
        request.method,
        str(request.url),
        headers=request.headers.raw,
        content=request.content,
        extensions=request.extensions,
    )


def _answered(response: httpx2.Response) -> Any:
    stream = _Stream(response.stream)
    return httpx.Response(response.status_code, headers=response.headers.raw, stream=stream)


class _Stream(httpx.SyncByteStream, httpx.AsyncByteStream):  # type: ignore[misc]  # as above
    """The body of a response of httpx2."""

    def __init__(self, body: Any) -> None:
        self._body = body

    def __iter__(self) -> Iterator[bytes]:
        with _errors_of_httpx():
            yield from self._body

    async def __aiter__(self) -> AsyncIterator[bytes]:
        with _errors_of_httpx():
            async for part in self._body:
                yield part

    def close(self) -> None:
        self._body.close()

    async def aclose(self) -> None:
        await self._body.aclose()


@contextmanager
def _errors_of_httpx() -> Iterator[None]:
    """Errors of the network under the names that callers of httpx 1 catch."""
    try:
        yield
    except httpx2.TransportError as error:
        raise getattr(httpx, type(error).__name__)(str(error)) from error
