"""Ending a recording early: nothing new is sent, and what is under way arrives.

A recording stops for Ctrl-C, SIGTERM or SIGHUP, for the cap, or for an error that no further call
can get around.
"""

import asyncio
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Final

import httpx2

from tutorsim.errors import Interrupted, TutorsimError

__all__ = ["Gate", "Stop", "stop_on_interrupt"]

ENDING: Final = {signal.SIGTERM, getattr(signal, "SIGHUP", signal.SIGTERM)}
"""Signals by which other programs end this one, and soon kill it; Windows has no SIGHUP."""
SIGNALS: Final = (signal.SIGINT, *ENDING)
GRACE: Final = 3.0
"""Seconds that replies under way have to arrive after such a signal."""
LONGEST_WAIT: Final = 300.0
"""Seconds for which the endpoint may hold a call back."""
TOLD: Final = 1.0
"""Seconds of a wait from which on it is told."""
RETRY_AFTER: Final = ("retry-after-ms", "retry-after")
RETRY_COUNT: Final = "x-stainless-retry-count"
"""Request header in which the client counts its retries of a call."""


@dataclass
class Stop:
    """Why a recording sends nothing more."""

    reason: TutorsimError | None = None
    """The first reason; `None` while it goes on."""
    _stopped: asyncio.Event = field(default_factory=asyncio.Event)

    def because(self, reason: TutorsimError) -> None:
        """Stop; a later reason does not take the place of the first."""
        self.reason = self.reason or reason
        self._stopped.set()

    def check(self) -> None:
        """Raise the reason, if there is one."""
        if self.reason is not None:
            raise self.reason

    async def wait(self) -> None:
        """Wait until there is a reason to stop."""
        await self._stopped.wait()

    async def pause(self, seconds: float) -> None:
        """Wait so long; raise the reason as soon as there is one."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._stopped.wait()
        self.check()


class Gate(httpx2.AsyncBaseTransport):
    """Lets an attempt at a call through unless the recording stops, and ends one that takes long.

    The client's own time limit is between two pieces of a reply; this one is for all of it. Where
    the endpoint says when to try again, the next attempt waits for that, up to `LONGEST_WAIT`;
    the client on its own would ignore all that is over a minute.

    Args:
        inner: What carries requests.
        stop: Holds further attempts back, those of calls that the client tries again among them.
        seconds: Limit of one attempt.
        max_retries: The client's retries of a call; nothing is waited for after the last.
        note: Receives a sentence when the endpoint asks to wait.
    """

    def __init__(
        self,
        inner: httpx2.AsyncBaseTransport,
        stop: Stop,
        seconds: float,
        *,
        max_retries: int = 0,
        note: Callable[[str], None] = lambda _: None,
    ) -> None:
        self._inner = inner
        self._stop = stop
        self._seconds = seconds
        self._max_retries = max_retries
        self._note = note
        self._told_until = 0.0
        """Clock of the loop until which a wait has been told."""

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        self._stop.check()
        try:
            async with asyncio.timeout(self._seconds):
                response = await self._inner.handle_async_request(request)
        except TimeoutError as error:
            raise httpx2.ReadTimeout("the reply took too long", request=request) from error
        if not response.is_success:
            await self._wait_as_told(request, response)
        return response

    async def _wait_as_told(self, request: httpx2.Request, response: httpx2.Response) -> None:
        """Wait before a retry for as long as the response says."""
        wanted = _retry_after(response)
        for name in RETRY_AFTER:
            response.headers.pop(name, None)  # the client would wait once more
        retries = request.headers.get(RETRY_COUNT, "0")
        if not wanted or not retries.isdecimal() or int(retries) >= self._max_retries:
            return
        wait = min(wanted, LONGEST_WAIT)
        self._tell(response.status_code, wanted, wait)
        await self._stop.pause(wait)

    def _tell(self, status: int, wanted: float, wait: float) -> None:
        now = asyncio.get_running_loop().time()
        if wait >= TOLD and now + wait > self._told_until + TOLD:
            self._told_until = now + wait
            less = f"; waiting {wait:,.0f}" if wait < wanted else ""
            self._note(f"the endpoint asks to wait {wanted:,.0f} seconds (HTTP {status}){less}.")

    async def aclose(self) -> None:
        await self._inner.aclose()


@contextmanager
def stop_on_interrupt(stop: Stop, on_first: Callable[[], None]) -> Iterator[None]:
    """The first Ctrl-C stops new calls and lets those under way arrive; a second one is final.

    SIGTERM and SIGHUP, by which other programs end this one, leave replies under way a few
    seconds; whoever sent them kills what stays.

    Args:
        stop: Stopped by the first.
        on_first: Called at the first, to say what is waited for.

    Raises:
        Interrupted: At the second.
    """
    loop = asyncio.get_running_loop()
    main = asyncio.current_task()
    assert main is not None
    given_up = False
    last: asyncio.TimerHandle | None = None
    # Whoever started the process may have it ignore a signal, as `nohup` does.
    heeded = [number for number in SIGNALS if signal.getsignal(number) is not signal.SIG_IGN]

    def give_up() -> None:
        nonlocal given_up
        if not given_up:
            given_up = True
            main.cancel()

    def interrupted() -> None:
        if stop.reason is None:
            stop.because(_interrupted("Every reply that arrived is kept."))
            on_first()
        else:
            give_up()

    def ended() -> None:
        nonlocal last
        if last is None:
            stop.because(_interrupted("Every reply that arrived is kept."))
            on_first()
            last = loop.call_later(GRACE, give_up)

    try:
        for number in heeded:
            loop.add_signal_handler(number, ended if number in ENDING else interrupted)
    except (ValueError, RuntimeError, NotImplementedError):
        yield  # not the main thread: nobody sends it a Ctrl-C
        return
    try:
        yield
    except asyncio.CancelledError:
        if not given_up:
            raise
        main.uncancel()
        raise _interrupted("Replies that were under way are lost; all others are kept.") from None
    finally:
        if last is not None:
            last.cancel()
        for number in heeded:
            loop.remove_signal_handler(number)


def _retry_after(response: httpx2.Response) -> float:
    """Seconds after which a response says to try again; 0 where it does not say it in numbers."""
    for name, unit in zip(RETRY_AFTER, (0.001, 1.0), strict=True):
        try:
            seconds = float(response.headers.get(name, "")) * unit
        except ValueError:
            continue
        if 0 < seconds < float("inf"):
            return seconds
    return _seconds_until(response.headers.get("retry-after", ""))


def _seconds_until(date: str) -> float:
    """Seconds until a date of HTTP; 0 for one that is past and for any other text."""
    try:
        return max((parsedate_to_datetime(date) - datetime.now(UTC)).total_seconds(), 0.0)
    except (ValueError, TypeError):
        return 0.0


def _interrupted(why: str) -> Interrupted:
    return Interrupted("Interrupted.", why=why, hint="The same command goes on from here.")
