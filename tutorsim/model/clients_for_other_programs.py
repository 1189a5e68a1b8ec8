"""Clients of the SDK for other people's programs, bound to a transport."""

from functools import partial

import anthropic
import httpx2

from tutorsim.model.sdk_model import patience, proxy_for, with_credentials

__all__ = ["AsyncClient", "Client", "SyncHttpTransport", "open_sync_client"]

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
    limit = patience(timeout)
    http_client = httpx2.Client(transport=transport, timeout=limit)
    make = partial(
        anthropic.Anthropic,
        http_client=http_client,
        timeout=limit,
        max_retries=max_retries,
    )
    return with_credentials(make, placeholder)
