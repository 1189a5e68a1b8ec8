"""Clients of the SDK for other people's programs, bound to a transport.

Whatever the transport raises that is no fault of the network reaches the caller as it is: it
passes the SDK as an error of its own kind, so that it is not tried again, and is unwrapped in a
middleware, the last place that an error passes.
"""

from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

import anthropic
import httpx2

from tutorsim.model.sdk_model import Carried, open_client, proxy_for, with_credentials

__all__ = ["AsyncClient", "Client", "SyncHttpTransport", "open_async_client", "open_sync_client"]

Client = anthropic.Anthropic
AsyncClient = anthropic.AsyncAnthropic


class SyncHttpTransport(httpx2.BaseTransport):
    """Plain HTTP, opened at the first request, through the environment's proxy if there is one."""

    def __init__(self) -> None:
        self._opened: httpx2.HTTPTransport | None = None

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        if self._opened is None:
            self._opened = httpx2.HTTPTransport(proxy=proxy_for(request.url))
        return self._opened.handle_request(request)

    def close(self) -> None:
        if self._opened is not None:
            self._opened.close()


def open_sync_client(
    transport: httpx2.BaseTransport, *, max_retries: int, timeout: float, placeholder: str | None
) -> Client:
    """The SDK's client over a transport.

    Args:
        transport: What answers; plain HTTP may stand behind it.
        max_retries: The SDK's own retries of one call.
        timeout: Seconds that one attempt may take.
        placeholder: A stand-in for credentials, for a transport that sends nothing.

    Raises:
        UsageError: If the environment holds no credentials, or unusable ones.
    """
    limit = httpx2.Timeout(timeout, connect=min(timeout, 10.0), pool=None)
    http_client = httpx2.Client(transport=_Carrying(transport), timeout=limit)
    make = partial(
        anthropic.Anthropic,
        http_client=http_client,
        timeout=limit,
        max_retries=max_retries,
        middleware=[_unwrap],
    )
    return with_credentials(make, placeholder)


def open_async_client(
    transport: httpx2.AsyncBaseTransport,
    *,
    max_retries: int,
    timeout: float,
    placeholder: str | None,
) -> AsyncClient:
    """As `open_sync_client`, for the SDK's asynchronous client."""
    client = open_client(
        transport, max_retries=max_retries, timeout=timeout, placeholder=placeholder
    )
    return client.with_middleware(_unwrap_async)


class _Carrying(httpx2.BaseTransport):
    """Takes errors that are not the network's through the client."""

    def __init__(self, inner: httpx2.BaseTransport) -> None:
        self._inner = inner

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        try:
            return self._inner.handle_request(request)
        except (httpx2.HTTPError, OSError):
            raise
        except Exception as error:
            raise Carried(error) from error

    def close(self) -> None:
        self._inner.close()


def _unwrap(request: Any, following: Callable[[Any], Any]) -> Any:
    try:
        return following(request)
    except Carried as error:
        raise error.carried from None


async def _unwrap_async(request: Any, following: Callable[[Any], Awaitable[Any]]) -> Any:
    try:
        return await following(request)
    except Carried as error:
        raise error.carried from None
