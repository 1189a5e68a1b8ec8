"""A client of the SDK bound to one cassette, for programs that are no study of ours.

Nothing in the process is patched: the cassette belongs to the client's own transport, so any
number of clients play or record side by side. Format, redaction, errors and journal are those of
our own recordings, and written by the same parts.
"""

import os
import re
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Final, TypeVar

import httpx2

from tutorsim.errors import UsageError
from tutorsim.model import CALL_HEADER
from tutorsim.model.clients_for_other_programs import (
    AsyncClient,
    Client,
    SyncHttpTransport,
    open_async_client,
    open_sync_client,
)
from tutorsim.model.sdk_model import HttpTransport
from tutorsim.replay.client_session import MODES, STAGE, RecordMode, Session, has_cassette

__all__ = ["MODE_VARIABLE", "Recorded", "keyed", "record_mode", "recorded"]

MODE_VARIABLE: Final = "TUTORSIM_RECORD"
"""Environment variable with the mode of clients that are given none."""
_ENDING: Final = ".json"
_PLACEHOLDER: Final = "nothing is sent"
_AGENT: Final = re.compile(r"[A-Za-z0-9_.:@-]+(?: [A-Za-z0-9_.:@-]+)*")
_STAGE: Final = re.compile(r"[a-z][a-z0-9_]*")

C = TypeVar("C")


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
            cassette does not hold is asked and added. `all`: everything is asked anew, and the
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
        Path(path),
        mode=record_mode(mode or os.environ.get(MODE_VARIABLE) or "none"),
        partial=partial,
        max_retries=max_retries,
        timeout=timeout,
        record_in_ci=record_in_ci,
    )


def record_mode(name: str) -> RecordMode:
    """The record mode of a name.

    Raises:
        UsageError: If there is none.
    """
    for mode in MODES:
        if mode == name:
            return mode
    raise UsageError(f"There is no record mode {name!r}.", hint=f"Modes are {', '.join(MODES)}.")


class Recorded:
    """A cassette that can be entered as a client, once at a time; see `recorded`."""

    def __init__(
        self,
        path: Path,
        *,
        mode: RecordMode,
        partial: bool,
        max_retries: int,
        timeout: float,
        record_in_ci: bool,
    ) -> None:
        if path.suffix != _ENDING:
            raise UsageError(
                f"{path} is not the name of a cassette.",
                why=f"A cassette is a file NAME{_ENDING}.",
                hint=f"recorded({str(path.with_suffix(_ENDING))!r})",
            )
        self.path = path
        self.mode = mode
        self._partial = partial
        self._max_retries = max_retries
        self._timeout = timeout
        self._record_in_ci = record_in_ci
        self._session: Session | None = None
        self._client: Client | AsyncClient | None = None

    @property
    def replays(self) -> bool:
        """Whether every call is answered from the cassette or refused."""
        there = self.mode == "once" and has_cassette(self.path.parent, self.path.stem)
        return self.mode == "none" or there

    def unused(self) -> tuple[str, ...]:
        """Keys of the cassette that were not asked for so far; none before it is entered."""
        return self._session.unused() if self._session else ()

    def __enter__(self) -> Client:
        session = self._opened()
        transport = _Transport(session, SyncHttpTransport())
        client = self._over(session, lambda placeholder: self._sync(transport, placeholder))
        self._client = client
        return client

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        assert isinstance(self._client, Client)
        self._client.close()
        self._end(error)

    async def __aenter__(self) -> AsyncClient:
        session = self._opened()
        transport = _AsyncTransport(session, HttpTransport())
        client = self._over(session, lambda placeholder: self._async(transport, placeholder))
        self._client = client
        return client

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        assert isinstance(self._client, AsyncClient)
        await self._client.close()
        self._end(error)

    def _opened(self) -> Session:
        if self._client is not None:
            raise UsageError(
                f"{self.path} is entered already.",
                why="One client plays or records a cassette at a time.",
                hint="Share the client, or give each its own cassette.",
            )
        self._session = Session(
            self.path.parent,
            self.path.stem,
            mode=self.mode,
            record_in_ci=self._record_in_ci,
        )
        return self._session

    def _over(self, session: Session, opened: Callable[[str | None], C]) -> C:
        """The client with the environment's credentials, or without where none may be needed."""
        try:
            if session.replays:
                return opened(_PLACEHOLDER)
            try:
                return opened(None)
            except UsageError as error:
                if self.mode != "new":
                    raise
                session.cannot_send = error
                return opened(_PLACEHOLDER)
        except BaseException:
            session.close()
            raise

    def _sync(self, transport: httpx2.BaseTransport, placeholder: str | None) -> Client:
        return open_sync_client(
            transport,
            max_retries=self._max_retries,
            timeout=self._timeout,
            placeholder=placeholder,
        )

    def _async(self, transport: httpx2.AsyncBaseTransport, placeholder: str | None) -> AsyncClient:
        return open_async_client(
            transport,
            max_retries=self._max_retries,
            timeout=self._timeout,
            placeholder=placeholder,
        )

    def _end(self, error: BaseException | None) -> None:
        session, self._client = self._session, None
        assert session is not None
        if error is None:
            session.finish(partial=self._partial)
        else:
            session.close()


class _Transport(httpx2.BaseTransport):
    """Answers from the session; what it does not hold goes to the network, and on the tape."""

    def __init__(self, session: Session, network: httpx2.BaseTransport) -> None:
        self._session = session
        self._network = network

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        request.read()
        claim = self._session.claim(request)
        try:
            held = self._session.answer(request, claim.key)
            if held is not None:
                return held
            response = self._network.handle_request(request)
            received = response.read()
            if response.is_success:
                return self._session.record(request, response, received)
        except BaseException:
            self._session.give_back(request, claim)
            raise
        self._session.give_back(request, claim)
        return response

    def close(self) -> None:
        self._network.close()


class _AsyncTransport(httpx2.AsyncBaseTransport):
    """As `_Transport`, for the asynchronous client."""

    def __init__(self, session: Session, network: httpx2.AsyncBaseTransport) -> None:
        self._session = session
        self._network = network

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        await request.aread()
        claim = self._session.claim(request)
        try:
            held = self._session.answer(request, claim.key)
            if held is not None:
                return held
            response = await self._network.handle_async_request(request)
            received = await response.aread()
            if response.is_success:
                return self._session.record(request, response, received)
        except BaseException:
            self._session.give_back(request, claim)
            raise
        self._session.give_back(request, claim)
        return response

    async def aclose(self) -> None:
        await self._network.aclose()
