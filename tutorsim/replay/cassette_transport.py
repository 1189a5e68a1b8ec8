"""Transports of an HTTP client that answer from a session, and put on its tape what they ask.

An event stream is handed on as it comes, is kept as it was received once it ended as its protocol
says, and is played event by event.
"""

import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from typing import Any

import httpx2

from tutorsim.errors import ChangedCallError, TutorsimError
from tutorsim.replay.client_session import Claim, Session
from tutorsim.replay.event_streams import STOPPED_HEADER, is_ended, is_event_stream, split_events
from tutorsim.replay.recorded_call import RESPONSE_HEADERS, cassette_name, kept


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
    """As `Transport`, for asynchronous clients."""

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
            hint='Record the cassette anew with a program that reads on: mode="all".',
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
