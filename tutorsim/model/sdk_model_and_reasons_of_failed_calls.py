"""The one place that uses the SDK: a `Model` that calls the Messages API, and clients for others.

Why a call failed on its way is said in words that are the same on every machine.
"""

import asyncio
import re
import ssl
import urllib.request
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from functools import cached_property, partial
from typing import Any, Final, TypeVar

import anthropic
import httpx2
from anthropic.resources.messages import DEPRECATED_MODELS

from tutorsim.errors import Away, CallFailed, UsageError
from tutorsim.model import CALL_HEADER, Call, Reply, json_value

# --- Failure causes ------------------------------------------------------------------------------

_NOBODY: Final = "The connection failed: nothing answers at the endpoint's address"
_CLOSED: Final = "The connection failed: it was closed without a reply"
_CUT: Final = "The connection failed: the reply was cut off"
_BROKEN: Final = "The connection failed: it broke"
_BEFORE: Final = "The connection failed or the reply was cut off"
"""What earlier versions said of all of these."""
_BUSY: Final = (429, 503, 529)
"""Statuses by which an endpoint says that it has too much to do."""
_PASSING: Final = (408, 409)
"""Further statuses below 500 that are of the moment and not of the call."""
STATUS_OF_ERROR: Final = {
    "invalid_request_error": 400,
    "authentication_error": 401,
    "billing_error": 402,
    "permission_error": 403,
    "not_found_error": 404,
    "request_too_large": 413,
    "rate_limit_error": 429,
    "api_error": 500,
    "timeout_error": 504,
    "overloaded_error": 529,
}
"""The status that a direct call gets with each type of error."""
_DATE: Final = re.compile(r"-(?:[0-9]{8}|latest)$")
OF_THE_MOMENT: Final = (
    *(_NOBODY, _CLOSED, _CUT, _BROKEN, _BEFORE),
    *(f"HTTP {status}" for status in (*_PASSING, 429)),
    "HTTP 5",
)
"""How the error of an episode begins that may not fail when the same call is made later."""


def status_told_in(body: bytes) -> int | None:
    """The status that an error has which came as a success; `None` where the body tells of none.

    An endpoint may answer `overloaded_error` with HTTP 200, as once it has begun to reply.
    """
    try:
        return STATUS_OF_ERROR.get(json_value(body)["error"]["type"])
    except (ValueError, TypeError, LookupError):
        return None


class NotAMessage(httpx2.RemoteProtocolError):
    """A reply that is whole and no message."""

    def __init__(self, body: bytes, content_type: str, request: httpx2.Request) -> None:
        page = "html" in content_type.lower() or body.lstrip()[:1] == b"<"
        self.what = "The reply is not a message" + (" but a page" if page else "")
        super().__init__(self.what, request=request)


def connection_text(cause: BaseException | None) -> str:
    """What came between a request and its reply, without host or time."""
    match cause:
        case NotAMessage():
            return cause.what
        case httpx2.ConnectError() | httpx2.ConnectTimeout():
            return _NOBODY
        case httpx2.RemoteProtocolError():
            return _CUT if "incomplete" in str(cause) or "complete" in str(cause) else _CLOSED
        case _:
            return _BROKEN


def away(cause: BaseException | None, status: int = 0) -> Away | None:
    """Why the same call may be answered later; `None` where it may not.

    `cause` is what came between, `None` if a reply came; `status` is the reply's, 0 if none came.
    """
    if status in _BUSY:
        return "busy"
    match cause:
        case NotAMessage() | httpx2.ReadTimeout():
            return None
        case httpx2.ConnectError() | httpx2.ConnectTimeout():
            return "nobody"
        case httpx2.TransportError():
            return "broken"
    return "broken" if status >= 500 or status in _PASSING else None


# --- Sdk model -----------------------------------------------------------------------------------

C = TypeVar("C", anthropic.Anthropic, anthropic.AsyncAnthropic)

DEFAULT_HOST: Final = "api.anthropic.com"
MESSAGES_PATH: Final = "/v1/messages"
MESSAGE_LIMIT: Final = 300
"""Characters kept of an error message that an endpoint wrote."""
_NO_CREDIT: Final = "credit balance is too low"
"""What the endpoint says of an account without credit, as of a request that is wrong (HTTP 400)."""
SECRET_HEADERS: Final = (
    "authorization",
    "x-api-key",
    "proxy-authorization",
    "x-goog-api-key",
    "api-key",
)
SECRET_LENGTH: Final = 12
"""Shorter credentials are placeholders for a local server, and occur in ordinary text."""


def credentials_in(headers: Mapping[str, str]) -> list[str]:
    """The credentials that a request carries, without placeholders for a local server.

    Headers go by name in lower case, or are the client's own.
    """
    sent = (headers.get(name, "").rsplit(" ", 1)[-1] for name in SECRET_HEADERS)
    return [secret for secret in sent if len(secret) >= SECRET_LENGTH]


class HttpTransport(httpx2.AsyncBaseTransport):
    """Plain HTTP, opened at the first request, through the environment's proxy if there is one.

    Each connection has a pool of its own: at the beginning and at the end of each request a pool
    looks at all of its connections, and asks the system about those that wait. A connection waits
    for a further request if it is `kept_open`; otherwise nothing has to be closed in the loop that
    opened it.
    """

    def __init__(self, max_connections: int = 100, *, kept_open: bool = True) -> None:
        self._max_connections = max_connections
        self._limits = httpx2.Limits(max_connections=1, max_keepalive_connections=int(kept_open))
        self._requests: dict[httpx2.AsyncHTTPTransport, int] = {}
        """Connection → its requests under way; those beyond the first wait."""

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        connection = self._least_busy(request.url)
        self._requests[connection] += 1
        try:
            response = await connection.handle_async_request(request)
        except BaseException:
            self._end(connection)
            raise
        assert isinstance(response.stream, httpx2.AsyncByteStream)
        response.stream = _Ending(response.stream, partial(self._end, connection))
        return response

    def _least_busy(self, url: httpx2.URL) -> httpx2.AsyncHTTPTransport:
        least = min(self._requests, key=self._requests.__getitem__, default=None)
        if least is not None and (
            not self._requests[least] or len(self._requests) >= self._max_connections
        ):
            return least
        opened = httpx2.AsyncHTTPTransport(self._ssl, limits=self._limits, proxy=proxy_for(url))
        self._requests[opened] = 0
        return opened

    @cached_property
    def _ssl(self) -> ssl.SSLContext:
        """Whom to trust, read once for all connections."""
        return httpx2.create_ssl_context()

    def _end(self, connection: httpx2.AsyncHTTPTransport) -> None:
        self._requests[connection] -= 1

    async def aclose(self) -> None:
        for connection in self._requests:
            await connection.aclose()


class _Ending(httpx2.AsyncByteStream):
    """A response's body, which says once that it is closed."""

    def __init__(self, inner: httpx2.AsyncByteStream, end: Callable[[], None]) -> None:
        self._inner = inner
        self._end = end
        self._is_closed = False

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self._inner.__aiter__()

    async def aclose(self) -> None:
        try:
            await self._inner.aclose()
        finally:
            if not self._is_closed:
                self._is_closed = True
                self._end()


class ToldOnce:
    """Hands on each sentence the first time that it comes."""

    def __init__(self, on_warning: Callable[[str], None]) -> None:
        self._on_warning = on_warning
        self._told: set[str] = set()

    def __call__(self, said: str | None) -> None:
        if said is not None and said not in self._told:
            self._told.add(said)
            self._on_warning(said)


class SdkModel:
    """Answers calls through the SDK's asynchronous client.

    Args:
        transport: What carries the requests; plain HTTP unless given. A recorder or a player
            is bound here, to this one client.
        max_connections: Calls in flight at once; further ones wait.
        max_retries: The SDK's own retries of one call.
        timeout: Seconds that one attempt may take.
        on_warning: Receives one sentence for each model that retires, or answers for another.
        placeholder: A stand-in for credentials, for transports that send nothing. Real ones are
            never passed: they come from the SDK's environment.

    Raises:
        UsageError: If the environment holds no credentials, or unusable ones.
    """

    def __init__(
        self,
        *,
        transport: httpx2.AsyncBaseTransport | None = None,
        max_connections: int = 16,
        max_retries: int = 4,
        timeout: float = 120.0,
        on_warning: Callable[[str], None] = lambda _: None,
        placeholder: str | None = None,
    ) -> None:
        self._client = open_client(
            transport or HttpTransport(max_connections),
            max_retries=max_retries,
            timeout=timeout,
            placeholder=placeholder,
        )
        self._free = asyncio.Semaphore(max_connections)
        self._tell = ToldOnce(on_warning)

    @property
    def secrets(self) -> list[str]:
        """The credentials that its calls carry, as far as they are known before a call."""
        headers = self._client.default_headers
        return credentials_in({name.lower(): str(value) for name, value in headers.items()})

    async def __aenter__(self) -> "SdkModel":
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Close the client and its connections."""
        await self._client.close()

    async def reply(self, episode_id: str, call: Call) -> Reply:
        self._tell(retirement(call.request.model))
        async with self._free:
            response = await self._send(episode_id, call)
        try:
            reply = Reply.from_body(json_value(response.content))
        except ValueError as error:
            raise call_failed(call, "The reply is not a message") from error
        self._tell(another_model(call.request.model, reply.model))
        return reply

    async def _send(self, episode_id: str, call: Call) -> httpx2.Response:
        text = call.request.text
        try:
            return await self._client.post(
                MESSAGES_PATH,
                cast_to=httpx2.Response,
                body=call.request.body() if text is None else None,
                content=None if text is None else text.encode(),
                options={"headers": {CALL_HEADER: f"{episode_id}/{call.key}"}},
            )
        except anthropic.APIStatusError as error:
            refused = refusal(error.status_code, told(error), call.request.model)
            why = away(None, error.status_code)
            raise refused or call_failed(call, error_text(error), why) from error
        except anthropic.AnthropicError as error:
            why = away(error.__cause__)
            raise carried_by(error) or call_failed(call, error_text(error), why) from error


class Carried(anthropic.AnthropicError):
    """Takes an error through the client, which would retry any other and give it a new name."""

    def __init__(self, carried: Exception) -> None:
        super().__init__(str(carried))
        self.carried = carried


def carried_by(error: anthropic.AnthropicError) -> Exception | None:
    """The error that only passed through the client, where it did."""
    return error.carried if isinstance(error, Carried) else None


class _Unwrapping(httpx2.AsyncBaseTransport):
    """Lets errors that are not the network's reach the caller as they are."""

    def __init__(self, inner: httpx2.AsyncBaseTransport) -> None:
        self._inner = inner

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        try:
            return await self._inner.handle_async_request(request)
        except (httpx2.HTTPError, OSError, anthropic.AnthropicError):
            raise
        except Exception as error:
            raise Carried(error) from error

    async def aclose(self) -> None:
        await self._inner.aclose()


def open_client(
    transport: httpx2.AsyncBaseTransport,
    *,
    max_retries: int,
    timeout: float,
    placeholder: str | None = None,
) -> anthropic.AsyncAnthropic:
    """The SDK's client over a transport; errors that are not the network's pass through it."""
    limit = patience(timeout)
    http_client = httpx2.AsyncClient(
        transport=_Unwrapping(transport), timeout=limit, follow_redirects=False
    )
    return with_credentials(
        partial(
            anthropic.AsyncAnthropic,
            http_client=http_client,
            timeout=limit,
            max_retries=max_retries,
        ),
        placeholder,
    )


def patience(timeout: float) -> httpx2.Timeout:
    """The limits of one attempt: seconds that it may take, of which connecting takes at most 10."""
    return httpx2.Timeout(timeout, connect=min(timeout, 10.0), pool=None)


def with_credentials(make: Callable[..., C], placeholder: str | None) -> C:
    """A client of the SDK with the environment's credentials, or with a stand-in for them.

    `UsageError` if the environment holds none, or unusable ones.
    """
    options: dict[str, Any] = {} if placeholder is None else {"api_key": placeholder}
    if placeholder is not None:
        options["base_url"] = f"https://{DEFAULT_HOST}"
    try:
        client = make(**options)
    except httpx2.InvalidURL as error:
        raise _bad_url("A part of it is none of a URL.") from error
    except (anthropic.AnthropicError, ValueError, OSError) as error:
        raise UsageError(
            "The credentials in the environment cannot be used.",
            why=str(error),
            hint="Set ANTHROPIC_API_KEY, or repair the profile that ANTHROPIC_PROFILE names.",
        ) from error
    if not _has_credentials(client):
        raise UsageError(
            "No credentials for the Messages API.",
            why="The SDK reads them from its environment variables, and none is set.",
            hint="Set ANTHROPIC_API_KEY; a server of your own behind ANTHROPIC_BASE_URL may take "
            "any value, but the SDK sends nothing without one. Replaying needs none.",
        )
    if placeholder is None:
        _check_usable(client)
    return client


def _check_usable(client: anthropic.Anthropic | anthropic.AsyncAnthropic) -> None:
    """Refuse what no request can be made of."""
    headers = {name.lower(): str(value) for name, value in client.default_headers.items()}
    for name in SECRET_HEADERS:
        value = headers.get(name, "").removeprefix("Bearer ")
        odd = next((char for char in value if not "!" <= char <= "~"), None)
        if odd is not None:
            raise UsageError(
                "The credential in the environment cannot be sent.",
                why=f"It contains {odd!r}, such as a line break at the end of a file that was "
                "read into the variable.",
                hint="Set ANTHROPIC_API_KEY to the key alone.",
            )
    url = client.base_url
    if url.scheme not in ("http", "https") or not url.host:
        raise _bad_url("It has no scheme, or no host." if url.scheme else "It has no scheme.")


def _bad_url(why: str) -> UsageError:
    return UsageError(
        "The base URL of the endpoint cannot be used; as it may hold a password, it is not shown.",
        why=why,
        hint="Set ANTHROPIC_BASE_URL to a URL such as https://api.anthropic.com, or unset it.",
    )


def _has_credentials(client: anthropic.Anthropic | anthropic.AsyncAnthropic) -> bool:
    named = {name.lower() for name in client.default_headers}
    return client.credentials is not None or not named.isdisjoint({"authorization", "x-api-key"})


def retirement(model: str) -> str | None:
    """One sentence about a retiring model; `None` for others."""
    if model not in DEPRECATED_MODELS:
        return None
    day = DEPRECATED_MODELS[model]
    return f"The model {model} reaches its end of life on {day}; its recordings stay usable."


def another_model(asked: str, answered: str) -> str | None:
    """One sentence where another model answered than was asked; a date at its end is none."""
    if asked == answered or _DATE.sub("", asked) == _DATE.sub("", answered):
        return None
    return f"The endpoint answers calls to {asked} as {answered}; each recorded reply says so."


def refusal(status: int, said: str, model: str) -> UsageError | None:
    """The error that ends a recording, where no further call to the model can succeed."""
    if status == 401:
        return UsageError(
            f"The endpoint refused the credentials (HTTP 401{said}).",
            why="No call of the study can succeed with them.",
            hint="Check ANTHROPIC_API_KEY, then give the same command again.",
        )
    if status == 402 or (status == 400 and _NO_CREDIT in said.lower()):
        return UsageError(
            f"The endpoint wants to be paid first (HTTP {status}{said}).",
            why="No call of the study can succeed until the account has credit.",
            hint="Add credit, then give the same command again. Everything paid for is kept.",
        )
    if status == 403:
        return UsageError(
            f"The credentials may not be used to call {model!r} (HTTP 403{said}).",
            why="No call of the study to this model can succeed with them.",
            hint="Have the model permitted, or change ANTHROPIC_API_KEY; then give the same "
            "command again. Everything paid for is kept.",
        )
    if status == 404:
        return UsageError(
            f"The endpoint has no model {model!r} (HTTP 404{said}).",
            why="No call of the study to this model can succeed.",
            hint="Check the study's models, and ANTHROPIC_BASE_URL where it is set. Everything "
            "paid for is kept; with other models it is another study and another recording.",
        )
    return None


def error_text(error: anthropic.AnthropicError) -> str:
    """What went wrong, without request id, host or time."""
    if isinstance(error, anthropic.APIStatusError):
        return f"HTTP {error.status_code}{told(error)}"
    if isinstance(error, anthropic.APITimeoutError):
        return "No reply in time"
    if isinstance(error, anthropic.APIConnectionError):
        return connection_text(error.__cause__)
    return type(error).__name__


def told(error: anthropic.APIStatusError) -> str:
    """Type and message of an error body, on one line, without the credential."""
    return said_in(error.body, credentials_in(error.request.headers))


def said_in(body: object, secrets: Sequence[str]) -> str:
    """Type and message of an error body after a comma; empty where it says nothing.

    The secrets are never repeated.
    """
    inner = body.get("error") if isinstance(body, Mapping) else None
    inner = inner if isinstance(inner, Mapping) else {}
    text = _one_line(f"{inner.get('type', '')}: {inner.get('message', '')}").strip(" :")
    for secret in secrets:
        text = text.replace(secret, "[credential]")
    return f", {text[:MESSAGE_LIMIT]}" if text else ""


def _one_line(text: str) -> str:
    """The printable characters of a text, with single spaces between words."""
    return " ".join("".join(c if c.isprintable() else " " for c in text).split())


def call_failed(call: Call, reason: str, away: Away | None = None) -> CallFailed:
    """The error for a call that is given up."""
    return CallFailed(
        f"{reason}.",
        hint="Take the episode up again with "
        + ("the same command." if away else "`--retry-errors`."),
        key=str(call.key),
        away=away,
    )


def proxy_for(url: httpx2.URL) -> str | None:
    """The environment's proxy for a URL; none for this machine and for excepted hosts."""
    if url.host in ("localhost", "127.0.0.1", "::1") or urllib.request.proxy_bypass(url.host):
        return None
    proxies = urllib.request.getproxies()
    return proxies.get(url.scheme) or proxies.get("all")


# --- Clients for other programs ------------------------------------------------------------------

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
    """The SDK's client over a transport."""
    limit = patience(timeout)
    http_client = httpx2.Client(transport=transport, timeout=limit)
    make = partial(
        anthropic.Anthropic, http_client=http_client, timeout=limit, max_retries=max_retries
    )
    return with_credentials(make, placeholder)
