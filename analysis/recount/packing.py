"""Rows over columns of small numbers: packed into a number each, so that equal ones meet."""

from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

__all__ = ["counted", "packed", "unpacked"]

Ints = NDArray[np.int64]

_FEW: Final = 1 << 20
"""Numbers up to which each has a place in a table of counts."""


def counted(columns: Sequence[NDArray[np.generic]]) -> Iterator[tuple[tuple[int, ...], int]]:
    """Different rows over columns of small numbers, with how often each occurs."""
    numbers = packed(columns)
    if int(numbers.max(initial=0)) < _FEW:
        counts = np.bincount(numbers)
        values = np.flatnonzero(counts)
        counts = counts[values]
    else:
        values, counts = np.unique(numbers, return_counts=True)
    yield from zip(unpacked(values, columns), counts.tolist(), strict=True)


def packed(columns: Sequence[NDArray[np.generic]]) -> Ints:
    """The rows of some columns as a number each."""
    numbers = np.zeros(len(columns[0]), dtype=np.int64)
    for column, width in zip(columns, _widths(columns), strict=True):
        numbers <<= width
        numbers |= column.astype(np.int64)
    return numbers


def unpacked(values: Ints, columns: Sequence[NDArray[np.generic]]) -> list[tuple[int, ...]]:
    """What some numbers stand for: from each column one value."""
    found = []
    for width in reversed(_widths(columns)):
        found.append((values & (1 << width) - 1).tolist())
        values = values >> width
    return list(zip(*reversed(found), strict=True))


def _widths(columns: Sequence[NDArray[np.generic]]) -> list[int]:
    return [int(column.max(initial=0)).bit_length() for column in columns]
