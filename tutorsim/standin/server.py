"""The stand-in as a server: in the foreground for the command, in a thread for tests."""

import asyncio
import threading
from collections.abc import Callable, Sequence
from types import TracebackType

from tutorsim.errors import UsageError
from tutorsim.standin.endpoint import Endpoint
from tutorsim.standin.faults_on_demand import Fault, parse_fault
from tutorsim.standin.http_connection import Connection

__all__ = ["StandIn", "serve"]


async def serve(
    endpoint: Endpoint,
    *,
    host: str,
    port: int,
    ready: Callable[[str], None],
    stop: asyncio.Event,
) -> None:
    """Serve until `stop` is set, then close every connection.

    Args:
        endpoint: What answers.
        host: Address to listen on.
        port: Port to listen on; 0 takes a free one.
        ready: Called with the server's URL once it listens.
        stop: Ends the server.

    Raises:
        UsageError: If the address cannot be used.
    """
    open_connections: set[Connection] = set()
    loop = asyncio.get_running_loop()
    try:
        server = await loop.create_server(
            lambda: Connection(endpoint, open_connections), host, port, backlog=1024
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
        for connection in tuple(open_connections):
            connection.close()
        await server.wait_closed()


def _url(host: str, port: int) -> str:
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


class StandIn:
    """The stand-in in a thread of this process, as a context manager.

    Args:
        seed: Another seed is another model.
        faults: What shall go wrong; as `Fault` or as its text (see
        `tutorsim.standin.faults_on_demand`).
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
