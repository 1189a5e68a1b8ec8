"""Ending a recording early: nothing new is sent, and what is under way arrives.

A recording stops for Ctrl-C or SIGTERM, for the cap, or for an error that no further call can get
around.
"""

import asyncio
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field

import httpx2

from tutorsim.errors import Interrupted, TutorsimError

__all__ = ["Gate", "Stop", "stop_on_interrupt"]

SIGNALS = (signal.SIGINT, signal.SIGTERM)


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

    async def pause(self, seconds: float) -> None:
        """Wait so long; raise the reason as soon as there is one."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._stopped.wait()
        self.check()


class Gate(httpx2.AsyncBaseTransport):
    """Lets an attempt at a call through unless the recording stops, and ends one that takes long.

    The client's own time limit is between two pieces of a reply; this one is for all of it.

    Args:
        inner: What carries requests.
        stop: Holds further attempts back, those of calls that the client tries again among them.
        seconds: Limit of one attempt.
    """

    def __init__(self, inner: httpx2.AsyncBaseTransport, stop: Stop, seconds: float) -> None:
        self._inner = inner
        self._stop = stop
        self._seconds = seconds

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        self._stop.check()
        try:
            async with asyncio.timeout(self._seconds):
                return await self._inner.handle_async_request(request)
        except TimeoutError as error:
            raise httpx2.ReadTimeout("the reply took too long", request=request) from error

    async def aclose(self) -> None:
        await self._inner.aclose()


@contextmanager
def stop_on_interrupt(stop: Stop, on_first: Callable[[], None]) -> Iterator[None]:
    """The first Ctrl-C stops new calls and lets those under way arrive; a second one is final.

    SIGTERM, by which other programs end this one, counts as Ctrl-C.

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

    def interrupted() -> None:
        nonlocal given_up
        if stop.reason is None:
            stop.because(_interrupted("Every reply that arrived is kept."))
            on_first()
        elif not given_up:
            given_up = True
            main.cancel()

    try:
        for number in SIGNALS:
            loop.add_signal_handler(number, interrupted)
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
        for number in SIGNALS:
            loop.remove_signal_handler(number)


def _interrupted(why: str) -> Interrupted:
    return Interrupted("Interrupted.", why=why, hint="The same command goes on from here.")
