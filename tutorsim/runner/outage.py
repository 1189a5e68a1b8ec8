"""Outages: while the endpoint is away, wait with growing pauses; end early where nothing works."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from tutorsim.errors import CallFailed, TutorsimError
from tutorsim.runner.recording_stop import Stop

__all__ = ["Attempts", "Outage"]

ALIKE: Final = 8
"""Calls that fail in the same words, before any has worked, until nothing more is sent."""
SHORTEST: Final = 1.0
"""Seconds of the first pause."""
LONGEST: Final = 60.0
"""Seconds of the longest pause."""


@dataclass
class Outage:
    """What is known of whether the endpoint answers.

    Args:
        limit: Seconds for which it may be away; with 0 nothing is waited for.
        stop: Ends a pause.
        note: Receives a sentence when an outage begins and when it is over.
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

        A call that fails while others are answered may have been made before an outage began, so
        it is made once more; where the endpoint says that it has too much to do, for as long as
        an outage may last.

        Args:
            error: How the call failed.
            attempts: What is known of the call.

        Returns:
            Whether the call should be made again; otherwise it failed on its own.

        Raises:
            TutorsimError: If nothing works from the start, or has been answered for too long.
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
