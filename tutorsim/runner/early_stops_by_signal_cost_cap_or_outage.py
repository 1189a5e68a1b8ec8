"""What ends a recording early: the cost cap, an outage of the endpoint, a person's interrupt.

Nothing new is sent then, and what is under way arrives.
"""

import asyncio
import signal
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Final

import httpx2

from tutorsim.errors import BudgetReached, CallFailed, Interrupted, TutorsimError, UsageError
from tutorsim.kernel.cost_plan import PriceTable
from tutorsim.model import Call, Reply

# --- Recording stop ------------------------------------------------------------------------------

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
    the endpoint says when to try again, the next attempt waits for that, up to `LONGEST_WAIT`; the
    client on its own would ignore all that is over a minute. `seconds` is the limit of one attempt;
    nothing is waited for after the last of `max_retries`.
    """

    def __init__(
        self,
        inner: httpx2.AsyncBaseTransport,
        stop: Stop,
        seconds: float,
        *,
        max_retries: int = 0,
        longest_wait: float = LONGEST_WAIT,
        note: Callable[[str], None] = lambda _: None,
    ) -> None:
        self._inner = inner
        self._stop = stop
        self._seconds = seconds
        self._max_retries = max_retries
        self._longest_wait = min(longest_wait, LONGEST_WAIT)
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
        wait = min(wanted, self._longest_wait)
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


def stopping(replies: int | None) -> str:
    """What the first signal to stop says: so many replies under way; `None` for batches."""
    if replies is None:
        return "stopping; batches that were sent go on, and the same command reads their results."
    return (
        f"stopping; {replies} replies are under way and kept if they arrive. "
        "Ctrl-C once more gives them up."
    )


@contextmanager
def stop_on_interrupt(stop: Stop, on_first: Callable[[], None]) -> Iterator[None]:
    """The first Ctrl-C stops new calls and lets those under way arrive; a second one is final.

    SIGTERM and SIGHUP, by which other programs end this one, leave replies under way a few seconds;
    whoever sent them kills what stays. `on_first` says what is waited for; the second raises
    `Interrupted`.
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


# --- Cost cap ------------------------------------------------------------------------------------


@dataclass
class Budget:
    """Counts tokens and cost of the calls of a recording, and reserves before each new one.

    A reservation is the most that a call can cost: one token for each byte of its text and the
    whole of its `max_tokens`. The cap can therefore not be passed, and the last part of it stays
    unspent.
    """

    prices: PriceTable
    max_usd: float | None = None
    """Cap over everything in the recording, calls of earlier sessions among them; `None`: none."""
    calls: int = 0
    """Replies counted."""
    reused: int = 0
    """Replies taken over from the recording that a branch continues; they cost nothing."""
    input_tokens: int = 0
    output_tokens: int = 0
    spent: float = 0.0
    """US dollars, models without a price left out."""
    unpriced: set[str] = field(default_factory=set)
    """Models that were called and have no price."""
    _committed: float = 0.0
    """Paid in this and in earlier sessions; kept up only where there is a cap."""
    _reserved: float = 0.0

    def check_models(self, models: Iterable[str]) -> None:
        """Refuse a cap that could not be kept.

        With a cap every model of the study needs a price.
        """
        unknown = sorted(name for name in set(models) if self.prices.price(name) is None)
        if self.max_usd is not None and unknown:
            raise UsageError(
                f"--max-usd cannot be kept: the price of {unknown[0]!r} is unknown.",
                why=f"The price table of {self.prices.as_of} does not have it.",
                hint="Give a table that has it with `--prices FILE`.",
            )

    def reserve(self, call: Call) -> float:
        """Set aside what a call can cost at most.

        The reservation, in US dollars, is given back to `release`. `BudgetReached` if the call
        could pass the cap.
        """
        if self.max_usd is None:
            return 0.0
        request = call.request
        tokens = len((request.system + request.user).encode()) + 64
        most = self.prices.cost(request.model, tokens, request.max_tokens) or 0.0
        if self._committed + self._reserved + most > self.max_usd:
            cap = f"{self.max_usd:.2f}" if self.max_usd >= 0.1 else f"{self.max_usd:g}"
            raise BudgetReached(
                f"The next call could pass the cap of {cap} US dollars.",
                why=f"{self._committed:.4f} are spent, {self._reserved:.4f} are set aside for "
                f"calls under way, and the next one takes at most {most:.4f}.",
                hint="Everything paid for is kept. Give the same command with a higher --max-usd.",
            )
        self._reserved += most
        return most

    def release(self, reservation: float) -> None:
        """Give a reservation back."""
        self._reserved -= reservation

    def count_earlier(self, model: str, reply: Reply) -> None:
        """Count a reply of an earlier session towards the cap."""
        self._committed += self._cost(model, reply) or 0.0

    def count(self, model: str, reply: Reply, *, new: bool) -> None:
        """Count a reply of the recording. `new`: paid for in this session."""
        self.calls += 1
        self.input_tokens += reply.input_tokens
        self.output_tokens += reply.output_tokens
        cost = self._cost(model, reply)
        if cost is None:
            self.unpriced.add(model)
            return
        self.spent += cost
        if new:
            self._committed += cost

    def _cost(self, model: str, reply: Reply) -> float | None:
        return self.prices.cost(model, reply.input_tokens, reply.output_tokens)


# --- Outage --------------------------------------------------------------------------------------

ALIKE: Final = 8
"""Calls that fail in the same words, before any has worked, until nothing more is sent."""
SHORTEST: Final = 1.0
"""Seconds of the first pause."""
LONGEST: Final = 60.0
"""Seconds of the longest pause."""


@dataclass
class Outage:
    """What is known of whether the endpoint answers.

    The endpoint may be away for `limit` seconds; with 0 nothing is waited for.
    """

    limit: float
    stop: Stop
    note: Callable[[str], None]
    answers: int = 0
    """Replies since the command began."""
    _since: float | None = None
    """When the first call failed after the latest reply."""
    _hit: list["Attempts"] = field(default_factory=list)
    """The calls that failed after the latest reply."""
    _failures: list[str] = field(default_factory=list)
    """What was said of failed calls before any worked."""

    def answered(self) -> None:
        """Note a reply."""
        self.answers += 1
        if self._since is not None:
            self.note("the endpoint answers again.")
        self._since = None
        self._hit.clear()

    async def may_be_over(self, error: CallFailed, attempts: "Attempts") -> bool:
        """Wait for the endpoint after a failed call, if it is away.

        A call that fails while others are answered may have been made before an outage began, so it
        is made once more; where the endpoint says that it has too much to do, for as long as an
        outage may last. Whether the call should be made again; otherwise it failed on its own.
        Raises if nothing works from the start, or was answered for too long.
        """
        if not self.answers:
            self._end_if_nothing_works(error)
        if not (error.away and self.limit):
            return False
        now = time.monotonic()
        if self.answers != attempts.answers_before:
            if attempts.alone_since is None:
                attempts.alone_since = now
            elif error.away != "busy" or now - attempts.alone_since >= self.limit:
                return False
            await self._pause(now - attempts.alone_since)
            return True
        if self._since is None:
            self._since = now
            self.note(f"{error.what} Waiting for it, at most {self.limit:,.0f} seconds.")
        if not any(attempts is other for other in self._hit):
            self._hit.append(attempts)
        lasted = now - self._since
        if lasted >= self.limit:
            if len(self._hit) == 1:  # the last call of all: whose fault it is cannot be told
                return False
            raise _ended(error, f"It has been away for {lasted:,.0f} seconds.")
        await self._pause(lasted)
        return True

    async def _pause(self, lasted: float) -> None:
        await self.stop.pause(min(max(SHORTEST, lasted / 2), LONGEST, self.limit - lasted))

    def _end_if_nothing_works(self, error: CallFailed) -> None:
        if self.limit and error.away == "busy":
            return
        if self.limit and error.away == "nobody":
            raise _ended(error, "No call has been answered since the command began.")
        self._failures.append(error.what)
        if len(self._failures) >= ALIKE and len(set(self._failures)) == 1:
            raise _ended(error, f"The first {ALIKE} calls all failed like this.")


@dataclass
class Attempts:
    """What is known of a call that is made again while it fails."""

    answers_before: int = 0
    """Number of replies to all calls when it was made last."""
    alone_since: float | None = None
    """When it first failed while others were answered."""


def _ended(error: CallFailed, why: str) -> TutorsimError:
    return TutorsimError(
        error.what,
        why=why,
        hint="Check ANTHROPIC_BASE_URL, the network and the endpoint, then give the same command "
        "again: it goes on from here, and everything paid for is kept.",
    )
