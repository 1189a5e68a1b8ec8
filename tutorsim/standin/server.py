"""The stand-in as a server: in the foreground for the command, in a thread for tests."""

import asyncio
import threading
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final

from starlette.requests import ClientDisconnect, Request
from starlette.types import Receive, Scope, Send

from tutorsim.errors import UsageError
from tutorsim.replay.recorded_calls_event_streams_and_mismatches import STANDIN_HEADER
from tutorsim.standin.http_responses_and_faults import Fault, Response, error_response, parse_fault
from tutorsim.standin.messages_api_routes_and_replies import (
    BATCHES_PATH,
    LARGEST_BATCH,
    STANDIN_VERSION,
    Endpoint,
)

if TYPE_CHECKING:
    from uvicorn.server import ServerState


LARGEST_BODY: Final = 32 * 1024 * 1024
"""The API's own limit for a message."""
IDLE: Final = 3600
"""Seconds for which a connection may wait for its next request."""


async def serve(
    endpoint: Endpoint, *, host: str, port: int, ready: Callable[[str], None], stop: asyncio.Event
) -> None:
    """Serve until `stop` is set, then close every connection.

    `port`: port to listen on; 0 takes a free one. `ready`: called with the server's URL once it
    listens. `stop`: ends the server. Raises `UsageError` if the address cannot be used.
    """
    import uvicorn  # loaded by who serves, and by nobody who asks for help
    from uvicorn.server import ServerState

    state = ServerState()
    config = uvicorn.Config(
        _application(endpoint, state),
        log_config=None,
        access_log=False,
        server_header=False,
        timeout_keep_alive=IDLE,
        lifespan="off",
        ws="none",
        http="h11",
    )
    config.load()
    connection: Any = config.http_protocol_class
    try:
        server = await asyncio.get_running_loop().create_server(
            lambda: connection(config=config, server_state=state, app_state={}),
            host,
            port,
            backlog=1024,
        )
    except OSError as error:
        raise UsageError(
            f"The stand-in cannot listen on {host} port {port}.",
            why=error.strerror or str(error),
            hint="Choose another port, or 0 for a free one.",
        ) from error
    try:
        ready(_url(host, server.sockets[0].getsockname()[1]))
        await stop.wait()
    finally:
        server.close()
        for one in tuple(state.connections):
            _transport(one).abort()  # a reply that waits is not sent
        await asyncio.gather(*state.tasks)
        await server.wait_closed()


def _application(endpoint: Endpoint, state: "ServerState") -> Callable[..., Awaitable[None]]:
    """The endpoint as an ASGI application, with the faults that a whole response cannot have."""

    async def application(scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        try:
            response = await _answered(endpoint, request)
        except ClientDisconnect:
            return
        if response.delay and await _gone_within(response.delay, receive):
            return
        if response.kept:
            await send(_started(response))
            whole = response.kept == 1
            sent = response.body if whole else response.body[: len(response.body) // 2]
            await send({"type": "http.response.body", "body": sent, "more_body": not whole})
        if response.kept < 1:
            [own] = (c for c in state.connections if getattr(c, "client", None) == scope["client"])
            _transport(own).close()
            await receive()  # until it is closed: what is missing is meant to be

    return application


async def _answered(endpoint: Endpoint, request: Request) -> Response:
    """What the endpoint says to a whole body; `ClientDisconnect` if the client went away."""
    query = request.scope["query_string"].decode("latin-1")
    target = request.scope["raw_path"].decode("latin-1") + (f"?{query}" if query else "")
    largest = LARGEST_BATCH if target.startswith(BATCHES_PATH) else LARGEST_BODY
    content = bytearray()
    stated = request.headers.get("content-length", "0")
    async for chunk in request.stream():
        content += chunk
        if max(len(content), int(stated)) > largest:
            return error_response(413, f"The body is larger than {largest} bytes.", "req_unread")
    return endpoint.answer(request.method, target, request.headers, bytes(content))


async def _gone_within(seconds: float, receive: Receive) -> bool:
    """Wait so long; whether the client went away before the end."""
    with suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await receive()
            return True
    return False


def _started(response: Response) -> dict[str, Any]:
    fields = (
        ("content-type", response.content_type),
        ("content-length", str(len(response.body))),
        ("request-id", response.request_id),
        (STANDIN_HEADER, STANDIN_VERSION),
        *response.headers,
    )
    headers = [(name.encode(), value.encode()) for name, value in fields]
    return {"type": "http.response.start", "status": response.status, "headers": headers}


def _transport(connection: object) -> asyncio.Transport:
    """What carries a connection of the server."""
    found: asyncio.Transport = connection.transport  # type: ignore[attr-defined]
    return found


def _url(host: str, port: int) -> str:
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


class StandIn:
    """The stand-in in a thread of this process, as a context manager.

    Args:
        seed: Another seed is another model.
        faults: What shall go wrong; as `Fault` or as its text (see
        `tutorsim.standin.http_responses_and_faults`).
        steady: As for `Endpoint`.
    """

    def __init__(
        self, *, seed: int = 0, faults: Sequence[Fault | str] = (), steady: bool = False
    ) -> None:
        parsed = [parse_fault(fault) if isinstance(fault, str) else fault for fault in faults]
        self._endpoint = Endpoint(seed=seed, faults=parsed, steady=steady)
        self._loop = asyncio.new_event_loop()
        self._stop = asyncio.Event()
        self._ready = threading.Event()
        self._thread = threading.Thread(target=self._run, name="standin", daemon=True)
        self._failure: BaseException | None = None
        self.url = ""
        """Base URL, set while the server runs."""

    @property
    def requests(self) -> int:
        """Requests answered so far, refused and failed ones among them."""
        return self._endpoint.requests

    def __enter__(self) -> "StandIn":
        self._thread.start()
        self._ready.wait()
        self._check()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join()
        self._check()

    def _check(self) -> None:
        if self._failure is not None:
            raise self._failure

    def _run(self) -> None:
        try:
            self._loop.run_until_complete(
                serve(
                    self._endpoint, host="127.0.0.1", port=0, ready=self._listens, stop=self._stop
                )
            )
        except BaseException as failure:  # handed to the thread that waits for the server
            self._failure = failure
        finally:
            self._loop.close()
            self._ready.set()

    def _listens(self, url: str) -> None:
        self.url = url
        self._ready.set()
