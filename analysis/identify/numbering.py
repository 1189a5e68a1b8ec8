"""Ballots of many turns by number: a few operations on whole arrays for each cell.

A ballot of four candidates with small masses is four bytes, and these are one number. What that
number stands for is looked up; each different ballot is named once, at first sight. Turns are
taken a few thousand at a time, so that what is in between stays in the processor's cache.
"""

from collections.abc import Callable
from threading import Lock
from typing import Final

import numpy as np
from numpy.typing import NDArray

from analysis.identify.chunks import in_chunks
from analysis.profiles import Masses

__all__ = ["RAISED", "Book", "Entries", "Numbers", "numbered"]

Numbers = NDArray[np.int64]
"""Shape (turns, voters): ballots by number, -1 for an abstention."""

Entries = NDArray[np.int32]
"""Shape (voters, turns): numbers raised by `RAISED`; 1 is an abstention, 0 is free."""

Ints = NDArray[np.int64]

RAISED: Final = 2
_NEW: Final = 0
_ABSENT: Final = 1
_CELLS: Final = 4
"""Candidates of a ballot that is packed."""
_LARGE: Final = 31
"""Masses from here on are not packed; in the cells of an abstention."""
_SPREAD: Final = np.uint32(18_472)
_SHIFT: Final = np.uint32(11)
"""What is left of the product, 21 bits, differs for all cells up to 31: tests try them all."""
_CODES: Final = 1 << 21


def numbered(masses: Ints) -> tuple[Numbers, list[Masses]]:
    """Ballots by number, and what the numbers stand for, in any order.

    Args:
        masses: Shape (turns, voters, candidates); below 0 where a voter abstained.
    """
    ballots: list[Masses] = []

    def name(new: Ints) -> Ints:
        ballots.extend(map(tuple, new.tolist()))
        return np.arange(len(ballots) - len(new), len(ballots))

    turns, voters, m = masses.shape
    numbers = np.empty((voters, turns), dtype=np.int64)
    book = Book(name, m)

    def enter(part: slice) -> None:
        np.subtract(book.entries(masses[part]), RAISED, out=numbers[:, part])

    in_chunks(turns, enter)
    return numbers.T, ballots


class Book:
    """The numbers of ballots, as they are met.

    Args:
        name: From different ballots, one a row, to their numbers; asked once about each ballot.
        m: Number of candidates.
    """

    def __init__(self, name: Callable[[Ints], Ints], m: int) -> None:
        self._name = name
        self._known: dict[Masses, int] = {(-1,) * m: _ABSENT}
        self._of_code = np.zeros(_CODES, dtype=np.int32)
        self._lock = Lock()

    def entries(self, masses: Ints) -> Entries:
        """Shape (voters, turns): the entry of each ballot."""
        turns, voters, m = masses.shape
        cells = np.zeros((turns, voters, max(m, _CELLS)), dtype=np.int8)
        if _cast(masses, cells[:, :, :m]):
            return self._by_code(_packed(cells), cells[:, :, :m])
        rows = masses.reshape(-1, m)
        rows, index = np.unique(np.where(rows[:, :1] < 0, -1, rows), axis=0, return_inverse=True)
        return self._named(rows)[index.reshape(turns, voters).T]

    def _by_code(self, code: NDArray[np.uint32], cells: NDArray[np.int8]) -> Entries:
        index = np.ascontiguousarray(code.T, dtype=np.intp)
        entries = self._of_code.take(index, mode="clip")
        if entries.min(initial=_ABSENT) == _NEW:
            unseen = entries == _NEW
            new, first, index = np.unique(index[unseen], return_index=True, return_inverse=True)
            rows = cells.transpose(1, 0, 2)[unseen][first].astype(np.int64)
            rows[rows[:, 0] == _LARGE] = -1
            self._of_code[new] = self._named(rows)
            entries[unseen] = self._of_code[new][index]
        return entries

    def _named(self, rows: Ints) -> Entries:
        """The entries of different ballots; new ones are named."""
        ballots = [tuple(row) for row in rows.tolist()]
        with self._lock:
            new = [ballot for ballot in ballots if ballot not in self._known]
            if new:
                names = (self._name(np.array(new)) + RAISED).tolist()
                self._known.update(zip(new, names, strict=True))
        return np.array([self._known[ballot] for ballot in ballots], dtype=np.int32)


def _cast(masses: Ints, cells: NDArray[np.int8]) -> bool:
    """Write masses as bytes; false where they are too many or too large."""
    if masses.shape[2] > _CELLS:
        return False
    cells[...] = masses
    if masses.view(np.uint64).max(initial=0) < _LARGE:
        return True
    if masses.max() >= _LARGE:
        return False
    cells[...] = np.maximum(masses, -1)
    cells &= _LARGE
    return True


def _packed(cells: NDArray[np.int8]) -> NDArray[np.uint32]:
    """Shape (turns, voters): a code for the cells of each ballot."""
    return np.asarray(cells.view("<u4")[:, :, 0] * _SPREAD >> _SHIFT)
