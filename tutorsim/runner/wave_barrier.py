"""Telling when everyone waits: all episodes, for replies that come together.

Counted are those who are *on their way*: episodes that compute or judge, and calls that have not
yet reached the place where they wait. The count is exact, so no timer decides when a wave goes.
"""

import asyncio
from collections.abc import Awaitable, Iterator
from contextlib import contextmanager
from typing import TypeVar

__all__ = ["Muster", "RoundMuster"]

T = TypeVar("T")


class Muster:
    """Counts who is on the way."""

    def __init__(self) -> None:
        self._moving = 0
        self._complete = asyncio.Event()
        self._complete.set()

    def moves(self, number: int) -> None:
        """So many more set out; as many fewer, where it is negative."""
        self._moving += number
        if self._moving:
            self._complete.clear()
        else:
            self._complete.set()

    async def complete(self) -> None:
        """Return when nobody is on the way."""
        await self._complete.wait()

    def heard(self) -> None:
        """Let `complete` return only when somebody has set out and arrived once more."""
        self._complete.clear()

    @contextmanager
    def waiting(self) -> Iterator[None]:
        """Who is in the block is not on the way."""
        self.moves(-1)
        try:
            yield
        finally:
            self.moves(1)

    def round(self, calls: int) -> "RoundMuster":
        """An episode gives way to the calls of its round, of which there is at least one."""
        self.moves(calls - 1)
        return RoundMuster(self, calls)


class RoundMuster:
    """The calls of one round. When the last has come back, its episode goes on in its place.

    Args:
        muster: Where they are counted.
        calls: How many there are.
    """

    def __init__(self, muster: Muster, calls: int) -> None:
        self._muster = muster
        self._left = calls

    async def call(self, asked: Awaitable[T]) -> T:
        """Make one call of the round."""
        try:
            return await asked
        finally:
            self._left -= 1
            if self._left:
                self._muster.moves(-1)
