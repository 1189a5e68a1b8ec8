"""Ballots of many turns by number: a few operations on whole arrays for each cell.

A ballot of four candidates with small masses is four bytes, and these are one number. What that
number stands for is looked up; each different ballot is named once, at first sight. Turns are
taken a few thousand at a time, so that what is in between stays in the processor's cache.
"""

from collections.abc import Callable
from threading import Lock
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from analysis.identify.chunks import in_chunks
from analysis.profiles import Masses

__all__ = ["RAISED", "BallotCells", "Book", "Entries", "Numbers", "distinct_rows", "numbered"]

Numbers = NDArray[np.int64]
"""Shape (turns, voters): ballots by number, -1 for an abstention."""

Entries = NDArray[np.int16] | NDArray[np.int32]
"""Shape (voters, turns): numbers raised by `RAISED`; 1 is an abstention, 0 is free."""

BallotCells = NDArray[np.signedinteger[Any]]
"""Masses, shape (turns, voters, candidates); below 0 where a voter abstained. Bytes are best."""

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
_LARGEST: Final = 1 << 62
"""Codes of rows are below."""
_BLOCK: Final = 2_048
"""Turns whose masses are read twice, from the processor's cache the second time."""
_FEW: Final = 1_024
"""Ballots that are looked at for new ones at a time."""


def numbered(masses: BallotCells) -> tuple[Numbers, list[Masses]]:
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
        self._m = m
        self._of_code: Entries = np.zeros(_CODES, dtype=np.int16)
        self._of_large: dict[Masses, int] = {}
        self._lock = Lock()

    def entries(self, masses: BallotCells) -> Entries:
        """Shape (voters, turns): the entry of each ballot."""
        cells = _cells(masses) if self._m <= _CELLS else None
        return self._searched(masses) if cells is None else self._packed(cells)

    def _packed(self, cells: NDArray[np.int8]) -> Entries:
        code = _codes(cells).T
        entries = self._of_code.take(code)
        if entries.min(initial=_ABSENT) == _NEW:
            voter, turn = np.nonzero(entries == _NEW)
            while len(turn):
                self._learn(code[voter[:_FEW], turn[:_FEW]], cells[turn[:_FEW], voter[:_FEW]])
                still = self._of_code[code[voter, turn]] == _NEW
                voter, turn = voter[still], turn[still]
            entries = self._of_code.take(code)
        return entries

    def _learn(self, code: NDArray[np.uint32], cells: NDArray[np.int8]) -> None:
        code, first = np.unique(code, return_index=True)
        ballots = cells[first, : self._m].astype(np.int64)
        entries = np.full(len(code), _ABSENT)
        with self._lock:
            new = self._of_code[code] == _NEW
            cast = new & (ballots[:, 0] != _LARGE)
            entries[cast] = self._name(ballots[cast]) + RAISED
            if entries.max(initial=0) > np.iinfo(self._of_code.dtype).max:
                self._of_code = self._of_code.astype(np.int32)
            self._of_code[code[new]] = entries[new]

    def _searched(self, masses: BallotCells) -> Entries:
        """The same where some masses are large, or candidates many."""
        rows = masses.reshape(-1, self._m).astype(np.int64)
        rows, index = np.unique(np.where(rows[:, :1] < 0, -1, rows), axis=0, return_inverse=True)
        entries = np.full(len(rows), _ABSENT, dtype=np.int32)
        small = (rows < _LARGE).all(axis=1) & (self._m <= _CELLS)
        if small.any():
            (entries[small],) = self.entries(rows[small, None])
        for row in np.flatnonzero(~small & (rows[:, 0] >= 0)).tolist():
            entries[row] = self._of_ballot(rows[row])
        return entries[index.reshape(masses.shape[:2]).T]

    def _of_ballot(self, row: Ints) -> int:
        with self._lock:
            ballot = tuple(row.tolist())
            if ballot not in self._of_large:
                self._of_large[ballot] = int(self._name(row[None])[0]) + RAISED
            return self._of_large[ballot]


def _cells(masses: BallotCells) -> NDArray[np.int8] | None:
    """Masses as four bytes a ballot, which they may be already; `None` where some are too large."""
    turns, voters, m = masses.shape
    bytes_already = masses.dtype == np.int8 and m == _CELLS and masses.flags.c_contiguous
    if bytes_already and _small(masses):
        return masses.view(np.int8)
    blank = np.empty if m == _CELLS else np.zeros
    cells = blank((turns, voters, _CELLS), dtype=np.int8)
    for start in range(0, turns, _BLOCK):
        part, into = masses[start : start + _BLOCK], cells[start : start + _BLOCK, :, :m]
        into[...] = part
        if not _small(part):
            if part.max() >= _LARGE:
                return None
            into[...] = np.maximum(part, -1) & _LARGE
    return cells


def _small(masses: BallotCells) -> bool:
    """Whether all masses can be packed, and nobody abstained."""
    unsigned = np.dtype(f"u{masses.itemsize}")
    return bool(masses.view(unsigned).max(initial=0) < _LARGE)


def _codes(cells: NDArray[np.int8]) -> NDArray[np.uint32]:
    """Shape (turns, voters): a code for the cells of each ballot."""
    return np.asarray(cells.view("<u4")[:, :, 0] * _SPREAD >> _SHIFT)


def distinct_rows(rows: Ints) -> tuple[Ints, Ints]:
    """The different rows, and where each row is among them."""
    base = int(rows.max(initial=0)) + 2
    code, codes = np.zeros(len(rows), dtype=np.int64), 1
    for column in rows.T:
        if codes * base > _LARGEST:
            found, code = np.unique(code, return_inverse=True)
            codes = len(found)
        code = code * base + column + 1
        codes *= base
    _, first, index = np.unique(code, return_index=True, return_inverse=True)
    return rows[first], index
