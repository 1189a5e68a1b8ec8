"""Where work in independent pieces runs besides this process: the address of a Dask cluster.

`dask://HOST:PORT` is a scheduler that is already running. `dask://local?workers=N` starts N
worker processes on this machine for as long as the connection is open. Dask is an optional
extra, and only this module imports it.
"""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import parse_qs, urlsplit

from tutorsim.errors import UsageError

if TYPE_CHECKING:
    from distributed import Client


_FORMS: Final = "dask://HOST:PORT or dask://local?workers=N"
_PATIENCE: Final = 10
"""Seconds to wait for a scheduler, and for its first worker."""


class EngineError(UsageError):
    """The engine's address, its software or its cluster cannot be used."""


@dataclass(frozen=True)
class Engine:
    """A parsed address."""

    scheduler: str | None
    """Address as Dask writes it, `tcp://HOST:PORT`; `None` starts workers on this machine."""
    workers: int
    """Processes to start on this machine; 0 where a scheduler is given."""

    def __str__(self) -> str:
        if self.scheduler is None:
            return f"dask://local?workers={self.workers}"
        return f"dask://{self.scheduler.removeprefix('tcp://')}"


def parse_engine(text: str) -> Engine:
    """Read an engine's address; `EngineError` if it has neither of the two forms."""
    try:
        parts = urlsplit(text)
        port = parts.port
        query = parse_qs(parts.query, keep_blank_values=True, strict_parsing=bool(parts.query))
    except ValueError as error:
        raise _no_address(text, str(error)) from error
    if parts.scheme != "dask" or not parts.hostname or parts.path.strip("/") or parts.fragment:
        raise _no_address(text, "It names no host behind dask://.")
    if parts.username is not None or parts.password is not None:
        raise _no_address(parts.scheme + "://…", "It holds a user name or a password.")
    if port is None and parts.hostname == "local":
        return Engine(scheduler=None, workers=_workers(text, query))
    if port is None:
        raise _no_address(text, "The scheduler's port is missing.")
    if query:
        raise _no_address(text, "A running cluster has the workers that it has.")
    host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    return Engine(scheduler=f"tcp://{host}:{port}", workers=0)


def _workers(text: str, query: dict[str, list[str]]) -> int:
    stated = query.pop("workers", ["2"])
    if query or len(stated) > 1 or not stated[0].isdecimal() or int(stated[0]) < 1:
        raise _no_address(text, "Behind the question mark stands workers= and a number from 1.")
    return int(stated[0])


def _no_address(text: str, why: str) -> EngineError:
    return EngineError(f"{text!r} is no engine.", why=why, hint=f"Use {_FORMS}.")


@contextmanager
def connect(engine: Engine) -> Iterator["Client"]:
    """A Dask client with at least one worker behind it; closed at the end.

    Workers started here are stopped here. A running cluster stays as it was.

    Raises `EngineError` if Dask is not installed, the scheduler does not answer, or has no worker.
    """
    if find_spec("distributed") is None:
        raise EngineError(
            "This engine needs Dask.",
            why="The package distributed is not installed.",
            hint="Install the extra: pip install 'tutorsim[dask]'.",
        )
    if engine.scheduler is None:
        with _started(engine.workers) as client:
            yield client
    else:
        with _reached(engine) as client:
            yield client


@contextmanager
def _started(workers: int) -> Iterator["Client"]:
    from distributed import Client, LocalCluster

    with (
        LocalCluster(
            n_workers=workers, threads_per_worker=1, processes=True, dashboard_address=None
        ) as cluster,
        Client(cluster) as client,
    ):
        yield client


@contextmanager
def _reached(engine: Engine) -> Iterator["Client"]:
    from distributed import Client

    try:
        client = Client(engine.scheduler, timeout=_PATIENCE)
    except (OSError, ValueError) as error:
        raise EngineError(
            f"There is no answer from {engine}.",
            why=str(error),
            hint="Start a scheduler there (dask scheduler), or use dask://local?workers=N.",
        ) from error
    with client:
        try:
            client.wait_for_workers(1, timeout=_PATIENCE)
        except TimeoutError as error:
            raise EngineError(
                f"{engine} has no workers.",
                why=f"None came within {_PATIENCE} seconds.",
                hint="Start some (dask worker ADDRESS), with tutorsim installed.",
            ) from error
        yield client


def scattered(client: "Client", function: Any, pieces: Iterable[Any]) -> Iterator[Any]:
    """Run a function on every piece; results as they come, in no fixed order.

    At most four pieces per worker thread are out at a time, so that neither the pieces nor the
    results pile up. The function and a piece travel by pickle. The first error of a piece is
    raised, and what is still out is cancelled.

    `pieces`: the pieces, taken as there is room for them.
    """
    from distributed import as_completed

    most = 4 * max(1, sum(client.nthreads().values()))
    waiting = iter(pieces)
    out = as_completed()
    futures = set()

    def send() -> None:
        for piece in waiting:
            future = client.submit(function, piece, pure=False)
            futures.add(future)
            out.add(future)
            if len(futures) >= most:
                return

    try:
        send()
        for future in out:
            result = future.result()
            futures.discard(future)
            send()
            yield result
    finally:
        with suppress(Exception):
            client.cancel(list(futures))
