"""Outages: while nothing answers, wait with growing pauses, and end early where nothing works."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from tutorsim.errors import CallFailed, TutorsimError
from tutorsim.runner.recording_stop import Stop

__all__ = ["Outage"]

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
        limit: Seconds for which it may answer nothing; with 0 nothing is waited for.
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
    _failures: list[str] = field(default_factory=list)
    """What was said of failed calls before any worked."""

    def answered(self) -> None:
        """Note a reply."""
        self.answers += 1
        if self._since is not None:
            self.note("the endpoint answers again.")
        self._since = None

    async def may_be_over(self, error: CallFailed, *, answers_before: int, again: bool) -> bool:
        """Wait for the endpoint after a failed call, if it is away.

        A call that fails for the first time may have been made before the outage began, so that
        others were answered meanwhile; it is made again like those that came later.

        Args:
            error: How the call failed.
            answers_before: Number of replies when it was made.
            again: Whether it failed before, with a pause between.

        Returns:
            Whether the call should be made again; otherwise it failed on its own.

        Raises:
            TutorsimError: If nothing works from the start, or has answered for too long.
        """
        if not self.answers:
            self._end_if_nothing_works(error)
        if not (error.unreachable and self.limit):
            return False
        if self.answers != answers_before:
            if not again:
                await self.stop.pause(SHORTEST)
            return not again
        now = time.monotonic()
        if self._since is None:
            self._since = now
            self.note(f"{error.what} Waiting for it, at most {self.limit:,.0f} seconds.")
        lasted = now - self._since
        if lasted >= self.limit:
            raise _ended(error, f"It has been away for {lasted:,.0f} seconds.")
        pause = min(max(SHORTEST, lasted / 2), LONGEST, self.limit - lasted)
        await self.stop.pause(pause)
        return True

    def _end_if_nothing_works(self, error: CallFailed) -> None:
        if error.unreachable and self.limit:
            raise _ended(error, "No call has been answered since the command began.")
        self._failures.append(error.what)
        if len(self._failures) >= ALIKE and len(set(self._failures)) == 1:
            raise _ended(error, f"The first {ALIKE} calls all failed like this.")


def _ended(error: CallFailed, why: str) -> TutorsimError:
    return TutorsimError(
        error.what,
        why=why,
        hint="Check ANTHROPIC_BASE_URL, the network and the endpoint, then give the same command "
        "again: it goes on from here, and everything paid for is kept.",
    )
