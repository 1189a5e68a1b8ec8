"""Clients bound to one cassette, for programs that are no study of ours: of the SDK, or of HTTP.

Nothing in the process is patched: the cassette belongs to the client's own transport, so any
number of clients play or record side by side. Format, redaction, errors and journal are those of
our own recordings, and written by the same parts.

The transports under the clients answer from a session, and put on its tape what they ask. An event
stream is handed on as it comes, is kept as it was received once it ended as its protocol says, and
is played event by event.
"""

import os
import re
import sys
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, AbstractContextManager, contextmanager
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any, Final, Generic, TypeVar

import httpx2

from tutorsim.errors import ChangedCallError, TutorsimError, UsageError
from tutorsim.model import CALL_HEADER
from tutorsim.model.sdk_model_and_reasons_of_failed_calls import (
    AsyncClient,
    Client,
    HttpTransport,
    SyncHttpTransport,
    open_client,
    open_sync_client,
    patience,
)
from tutorsim.replay.any_sdk_session_keys_refuses_plays_records import (
    MODES,
    STAGE,
    Claim,
    RecordMode,
    Session,
    has_cassette,
)
from tutorsim.replay.recorded_calls_event_streams_and_mismatches import (
    RESPONSE_HEADERS,
    STOPPED_HEADER,
    cassette_name,
    is_ended,
    is_event_stream,
    kept,
    split_events,
)

# --- Transports ----------------------------------------------------------------------------------


class Transport(httpx2.BaseTransport):
    """Answers from the session; what it does not hold goes to the network, and on the tape."""

    def __init__(self, session: Session, network: httpx2.BaseTransport) -> None:
        self._session = session
        self._network = network

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        request.read()
        with _errors_of_the_sdk(request):
            asked = _copy(request)
            claim = self._session.claim(asked)
            try:
                held = self._session.answer(asked, claim.key)
                if held is not None:
                    return _played(self._session.name, claim.key, held)
                asked.headers["accept-encoding"] = "identity"
                response = self._network.handle_request(asked)
                if response.is_success and _is_events(response):
                    return _received(self._session, asked, claim, response)
                received = response.read()
                if response.is_success:
                    return self._session.record(asked, response, received)
            except BaseException:
                self._session.give_back(asked, claim)
                raise
            self._session.give_back(asked, claim)
            return response

    def close(self) -> None:
        self._network.close()


class AsyncTransport(httpx2.AsyncBaseTransport):
    """Transport for asynchronous clients; see `Transport`."""

    def __init__(self, session: Session, network: httpx2.AsyncBaseTransport) -> None:
        self._session = session
        self._network = network

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        await request.aread()
        with _errors_of_the_sdk(request):
            asked = _copy(request)
            claim = self._session.claim(asked)
            try:
                held = self._session.answer(asked, claim.key)
                if held is not None:
                    return _played(self._session.name, claim.key, held)
                asked.headers["accept-encoding"] = "identity"
                response = await self._network.handle_async_request(asked)
                if response.is_success and _is_events(response):
                    return _received(self._session, asked, claim, response)
                received = await response.aread()
                if response.is_success:
                    return self._session.record(asked, response, received)
            except BaseException:
                self._session.give_back(asked, claim)
                raise
            self._session.give_back(asked, claim)
            return response

    async def aclose(self) -> None:
        await self._network.aclose()


def _copy(request: httpx2.Request) -> httpx2.Request:
    """A copy to put the call's key on: SDKs and redirects send the same request object again."""
    return httpx2.Request(
        request.method,
        request.url,
        headers=request.headers,
        content=request.content,
        extensions=request.extensions,
    )


def _is_events(response: httpx2.Response) -> bool:
    return is_event_stream(response.headers.get("content-type", ""))


@contextmanager
def _errors_of_the_sdk(request: httpx2.Request) -> Iterator[None]:
    """Let errors of ours reach the caller under their own class, whatever SDK is between.

    That of Anthropic retries and renames what is no error of its own, so there ours is one too.
    """
    try:
        yield
    except TutorsimError as error:
        sdk = sys.modules.get("anthropic") if "anthropic-version" in request.headers else None
        if sdk is None:
            raise
        renamed = _also(type(error), sdk.AnthropicError)(error.what)
        renamed.__dict__.update(error.__dict__)
        raise renamed.with_traceback(error.__traceback__) from error.__cause__


def _also(ours: type[TutorsimError], theirs: type[Exception]) -> type[TutorsimError]:
    """A class of errors that is both."""
    return type(ours.__name__, (ours, theirs), {"__module__": ours.__module__})


def _played(cassette: str, key: str, held: httpx2.Response) -> httpx2.Response:
    if not _is_events(held):
        return held
    stopped = cassette_name(cassette) if STOPPED_HEADER in held.headers else None
    events = _played_events(split_events(held.content), key, stopped)
    return httpx2.Response(held.status_code, headers=held.headers, stream=_Played(events))


def _played_events(events: list[bytes], key: str, stopped: str | None) -> Iterator[bytes]:
    yield from events
    if stopped is not None:
        raise ChangedCallError(
            f"{stopped}: the stream of call {key} ends here.",
            why="While recording its reader stopped after these events, and no more was kept.",
            hint='Record the cassette again, mode="all", with a program that reads on.',
        )


class _Played(httpx2.SyncByteStream, httpx2.AsyncByteStream):
    """A recorded event stream, event by event."""

    def __init__(self, events: Iterator[bytes]) -> None:
        self._events = events

    def __iter__(self) -> Iterator[bytes]:
        return self._events

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for event in self._events:
            yield event


def _received(
    session: Session, asked: httpx2.Request, claim: Claim, response: httpx2.Response
) -> httpx2.Response:
    """The response as a replay has it, its stream kept while it is read."""
    headers = kept(dict(response.headers.items()), RESPONSE_HEADERS)
    stream = _Received(session, asked, claim, response)
    return httpx2.Response(response.status_code, headers=headers, stream=stream)


class _Received(httpx2.SyncByteStream, httpx2.AsyncByteStream):
    """An event stream that is handed on, and kept once it ended.

    It is passed once: SDKs take a stream up again after its last event, to drain it.
    """

    def __init__(
        self, session: Session, asked: httpx2.Request, claim: Claim, response: httpx2.Response
    ) -> None:
        self._session = session
        self._asked = asked
        self._claim = claim
        self._response = response
        self._parts: list[bytes] = []
        self._source: Any = None
        session.reading[claim.key] = self._keep_what_was_read

    def __iter__(self) -> Iterator[bytes]:
        return self

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self

    def __next__(self) -> bytes:
        if self._source is None:
            self._source = self._response.iter_bytes()
        with self._taking():
            self._parts.append(next(self._source))
        return self._parts[-1]

    async def __anext__(self) -> bytes:
        if self._source is None:
            self._source = self._response.aiter_bytes()
        with self._taking():
            self._parts.append(await anext(self._source))
        return self._parts[-1]

    @contextmanager
    def _taking(self) -> Iterator[None]:
        try:
            yield
        except (StopIteration, StopAsyncIteration):
            self._keep(self._response, b"".join(self._parts))
            raise
        except BaseException:
            if self._session.reading.pop(self._claim.key, None) is not None:
                self._session.give_back(self._asked, self._claim)
            raise

    def close(self) -> None:
        self._response.close()
        self._keep_where_ended()

    async def aclose(self) -> None:
        await self._response.aclose()
        self._keep_where_ended()

    def _keep_where_ended(self) -> None:
        """Keep what a reader closes after the last event, without waiting for the body's end."""
        received = b"".join(self._parts)
        if is_ended(received):
            self._keep(self._response, received)

    def _keep_what_was_read(self) -> None:
        """Keep the whole events of a stream whose reader stopped, marked so."""
        events = split_events(b"".join(self._parts))
        if events and not events[-1].endswith((b"\n\n", b"\r\n\r\n", b"\r\r")):
            events.pop()
        headers = {**dict(self._response.headers.items()), STOPPED_HEADER: "by its reader"}
        marked = httpx2.Response(self._response.status_code, headers=headers)
        self._keep(marked, b"".join(events))

    def _keep(self, response: httpx2.Response, received: bytes) -> None:
        if self._session.reading.pop(self._claim.key, None) is None:
            return
        try:
            with _errors_of_the_sdk(self._asked):
                self._session.record(self._asked, response, received)
        except BaseException:
            self._session.give_back(self._asked, self._claim)
            raise


# --- Clients -------------------------------------------------------------------------------------

MODE_VARIABLE: Final = "TUTORSIM_RECORD"
"""Environment variable with the mode of clients that are given none."""
_ENDING: Final = ".json"
_PLACEHOLDER: Final = "nothing is sent"
_AGENT: Final = re.compile(r"[A-Za-z0-9_.:@-]+(?: [A-Za-z0-9_.:@-]+)*")
_STAGE: Final = re.compile(r"[a-z][a-z0-9_]*")

C = TypeVar("C")
S = TypeVar("S", bound=AbstractContextManager[Any])
A = TypeVar("A", bound=AbstractAsyncContextManager[Any])


def keyed(agent: str, *, stage: str = STAGE, turn: int | None = None) -> dict[str, str]:
    """Headers that name a call: `client.messages.create(…, extra_headers=keyed("critic"))`.

    A client with these as default headers names every call of an agent:
    `critic = client.with_options(default_headers=keyed("critic"))`. Agents that ask side by side
    then do not disturb each other's keys.

    Args:
        agent: Who asks.
        stage: What for: a lower-case word.
        turn: The call's number among those of its agent and stage, from 0. When left out, calls
            are counted from 1 in the order asked.

    Raises:
        UsageError: If a name or number cannot stand in a key.
    """
    number = turn is None or turn >= 0
    if not _AGENT.fullmatch(agent) or not _STAGE.fullmatch(stage) or not number:
        raise UsageError(
            f"No call can have the key of agent {agent!r}, stage {stage!r}, turn {turn!r}.",
            why="An agent is of A-Za-z0-9_.:@- and single spaces, a stage a lower-case word, a "
            "turn a number from 0.",
            hint='For example: keyed("critic", stage="review").',
        )
    return {CALL_HEADER: f"{stage}/{agent}" if turn is None else f"{turn}/{stage}/{agent}/1"}


def recorded(
    path: str | os.PathLike[str],
    *,
    mode: RecordMode | None = None,
    partial: bool = False,
    max_retries: int = 2,
    timeout: float = 600.0,
    record_in_ci: bool = False,
) -> "Recorded":
    """A client of the SDK bound to one cassette.

    `with recorded("x.json") as client` gives an `anthropic.Anthropic`, `async with` an
    `anthropic.AsyncAnthropic`. A block that ends with an error writes no cassette; what was paid
    for waits in a journal, and the next recording goes on from there.

    Args:
        path: The cassette, `NAME.json`; `NAME.json.zst` beside it is played where it is not there.
        mode: `none`: everything is answered from the cassette, and no connection can be opened.
            `once`: as `none` where there is a cassette; else one is recorded. `new`: what the
            cassette does not hold is asked and added. `all`: everything is asked again, and the
            old cassette is replaced at the end. When left out, the environment variable
            `TUTORSIM_RECORD` decides, and it is `none` without one.
        partial: Let a replay end with recorded calls that were never asked for.
        max_retries: The SDK's own retries of one call, while recording.
        timeout: Seconds that one attempt may take, while recording.
        record_in_ci: Record although `CI` is set.

    Raises:
        UsageError: If the path is no cassette's, or there is no such mode.
    """
    return Recorded(
        path,
        mode=mode,
        partial=partial,
        max_retries=max_retries,
        timeout=timeout,
        record_in_ci=record_in_ci,
    )


def recorded_http(
    path: str | os.PathLike[str],
    *,
    mode: RecordMode | None = None,
    partial: bool = False,
    timeout: float = 600.0,
    record_in_ci: bool = False,
) -> "RecordedHttp":
    """An HTTP client bound to one cassette, for any SDK that takes one, or for none.

    `with recorded_http("x.json") as http` gives an `httpx2.Client` and `async with` an
    `httpx2.AsyncClient`: `openai.OpenAI(http_client=http)`. An SDK that takes one of each gets
    both: `tape = recorded_http("x.json")`, and inside `with tape:` or `async with tape:`
    `mistralai.client.Mistral(client=tape.client, async_client=tape.async_client)`. What takes
    clients of httpx 1 gets `tape.httpx1_client` and `tape.httpx1_async_client`.

    Args:
        path: As for `recorded`.
        mode: As for `recorded`.
        partial: As for `recorded`.
        timeout: Seconds that one request may take, while recording, unless the SDK says it.
        record_in_ci: As for `recorded`.

    Raises:
        UsageError: If the path is no cassette's, or there is no such mode.
    """
    return RecordedHttp(
        path, mode=mode, partial=partial, timeout=timeout, record_in_ci=record_in_ci
    )


def record_mode(name: str) -> RecordMode:
    """The record mode of a name.

    Raises:
        UsageError: If there is none.
    """
    for mode in MODES:
        if mode == name:
            return mode
    raise UsageError(
        f"There is no record mode {name!r}.",
        why=f"Modes are {', '.join(MODES)}.",
        hint="`tutorsim guide panel` says what each does.",
    )


class BoundCassette(ABC, Generic[S, A]):
    """A cassette that can be entered as a client, once at a time.

    `with` gives the synchronous client and `async with` the asynchronous one. While it is entered
    `client` and `async_client` are both, for an SDK that takes one of each.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        mode: RecordMode | None,
        partial: bool,
        timeout: float,
        record_in_ci: bool,
    ) -> None:
        self.path = Path(path)
        if self.path.suffix != _ENDING:
            raise UsageError(
                f"{self.path} is not the name of a cassette.",
                why=f"A cassette is a file NAME{_ENDING}.",
                hint=f"Name it {str(self.path.with_suffix(_ENDING))!r}."
                if self.path.name
                else f"For example cassettes/panel{_ENDING}.",
            )
        self.mode = record_mode(mode or os.environ.get(MODE_VARIABLE) or "none")
        self._partial = partial
        self._timeout = timeout
        self._record_in_ci = record_in_ci
        self._session: Session | None = None
        self._entered = False
        self._client: S | None = None
        self._async_client: A | None = None

    @abstractmethod
    def _sync(self, session: Session) -> S:
        """A synchronous client over the session."""

    @abstractmethod
    def _async(self, session: Session, network: HttpTransport) -> A:
        """An asynchronous client over the session."""

    @property
    def replays(self) -> bool:
        """Whether every call is answered from the cassette or refused."""
        there = self.mode == "once" and has_cassette(self.path.parent, self.path.stem)
        return self.mode == "none" or there

    def unused(self) -> tuple[str, ...]:
        """Keys of the cassette that were not asked for so far; none before it is entered."""
        return self._session.unused() if self._session else ()

    @property
    def client(self) -> S:
        """The synchronous client.

        Raises:
            UsageError: If the cassette is not entered.
        """
        if self._client is None:
            self._client = self._sync(self._opened())
        return self._client

    @property
    def async_client(self) -> A:
        """The asynchronous client, over the same session as `client`; raises as that does."""
        if self._async_client is None:
            self._async_client = self._async(self._opened(), HttpTransport(kept_open=False))
        return self._async_client

    def _opened(self) -> Session:
        if not self._entered or self._session is None:
            raise UsageError(
                f"{self.path} is not entered.",
                why="A client plays or records inside a block.",
                hint="Write `with` or `async with` before it.",
            )
        return self._session

    def __enter__(self) -> S:
        session = self._enter()
        try:
            return self.client
        except BaseException:
            self._leave(session)
            raise

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if self._client is not None:
            self._client.__exit__(None, None, None)
        self._end(error)

    async def __aenter__(self) -> A:
        session = self._enter()
        try:
            self._async_client = self._async(session, HttpTransport())
        except BaseException:
            self._leave(session)
            raise
        return self._async_client

    async def __aexit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if self._async_client is not None:
            await self._async_client.__aexit__(None, None, None)
        self.__exit__(kind, error, trace)

    def _enter(self) -> Session:
        if self._entered:
            raise UsageError(
                f"{self.path} is entered already.",
                why="One block plays or records a cassette at a time.",
                hint="Share the client, or give each its own cassette.",
            )
        self._session = Session(
            self.path.parent, self.path.stem, mode=self.mode, record_in_ci=self._record_in_ci
        )
        self._entered = True
        return self._session

    def _leave(self, session: Session) -> None:
        self._entered, self._client, self._async_client = False, None, None
        session.close()

    def _end(self, error: BaseException | None) -> None:
        session = self._opened()
        try:
            if error is None:
                session.finish(partial=self._partial)
        finally:
            self._leave(session)


class Recorded(BoundCassette[Client, AsyncClient]):
    """A cassette that can be entered as a client of the Anthropic SDK; see `recorded`."""

    def __init__(
        self, path: str | os.PathLike[str], *, max_retries: int = 2, **options: Any
    ) -> None:
        super().__init__(path, **options)
        self._max_retries = max_retries

    def _sync(self, session: Session) -> Client:
        transport = Transport(session, SyncHttpTransport())
        return self._with_credentials(partial(open_sync_client, transport), session)

    def _async(self, session: Session, network: HttpTransport) -> AsyncClient:
        transport = AsyncTransport(session, network)
        return self._with_credentials(partial(open_client, transport), session)

    def _with_credentials(self, opened: Callable[..., C], session: Session) -> C:
        """The client with the environment's credentials, or without where none may be needed."""
        make = partial(opened, max_retries=self._max_retries, timeout=self._timeout)
        if session.replays:
            return make(placeholder=_PLACEHOLDER)
        try:
            return make(placeholder=None)
        except UsageError as error:
            if self.mode != "new":
                raise
            session.cannot_send = error
            return make(placeholder=_PLACEHOLDER)


class RecordedHttp(BoundCassette[httpx2.Client, httpx2.AsyncClient]):
    """A cassette that can be entered as an HTTP client; see `recorded_http`."""

    _httpx1: Any = None

    def _sync(self, session: Session) -> httpx2.Client:
        transport = Transport(session, SyncHttpTransport())
        return httpx2.Client(transport=transport, timeout=patience(self._timeout))

    def _async(self, session: Session, network: HttpTransport) -> httpx2.AsyncClient:
        transport = AsyncTransport(session, network)
        return httpx2.AsyncClient(transport=transport, timeout=patience(self._timeout))

    @property
    def httpx1_client(self) -> Any:
        """An `httpx.Client`, of the package before httpx2, over the same session.

        Raises:
            UsageError: If the cassette is not entered, or that package is not installed.
        """
        session = self._opened()
        if self._httpx1 is None:
            transport = Transport(session, SyncHttpTransport())
            self._httpx1 = _httpx1_clients().httpx1_client(transport, self._timeout)
        return self._httpx1

    @property
    def httpx1_async_client(self) -> Any:
        """A new `httpx.AsyncClient`, which keeps no connection; raises as `httpx1_client`."""
        transport = AsyncTransport(self._opened(), HttpTransport(kept_open=False))
        return _httpx1_clients().httpx1_async_client(transport, self._timeout)

    def _leave(self, session: Session) -> None:
        if self._httpx1 is not None:
            self._httpx1.close()
        self._httpx1 = None
        super()._leave(session)


def _httpx1_clients() -> Any:
    try:
        return import_module("tutorsim.replay.httpx1_clients_over_httpx2")
    except ModuleNotFoundError as error:
        raise UsageError(
            "There is no client of httpx 1 here.",
            why="The package httpx is not installed.",
            hint="Install it, or give the SDK the client of httpx2: `tape.client`.",
        ) from error
