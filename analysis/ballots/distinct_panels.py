"""The different panels among many turns, and which rows of small whole numbers are equal."""

from collections.abc import Iterator, Sequence
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from tutorsim.analysis.ballots.vote_arrays import Masses
from tutorsim.analysis.statistics.arrays import Bools, Ints
from tutorsim.vocabularies import Protocol

# --- Distinct rows -------------------------------------------------------------------------------


_FEW: Final = 1 << 20
"""Codes up to which each has a place in a table of counts."""
_LARGEST: Final = 1 << 62
"""Codes stay below."""
_TOGETHER: Final = 30
"""Members of a set that one number holds."""


def encode_rows(columns: Sequence[npt.NDArray[Any]] | npt.NDArray[Any]) -> tuple[Ints, int]:
    """A code for each row, equal for equal rows, and how many codes there may be.

    Args:
        columns: One or more, shape (rows,) each, of whole numbers or truths from -1 on.
    """
    code, codes = np.zeros(len(columns[0]), dtype=np.int64), 1
    for column in columns:
        base = int(column.max(initial=0)) + 2
        if codes * base > _LARGEST:
            values, code = np.unique(code, return_inverse=True)
            codes = len(values)
        code = code * base
        code += column
        code += 1
        codes *= base
    return code, codes


def distinct_rows(columns: Sequence[npt.NDArray[Any]] | npt.NDArray[Any]) -> tuple[Ints, Ints]:
    """The first place of each different row, and the number of each row among the different ones.

    Different rows are numbered as their first columns rise.
    """
    code, codes = encode_rows(columns)
    if codes > max(_FEW, 4 * len(code)):
        _, first, number = np.unique(code, return_index=True, return_inverse=True)
        return first, number
    first = np.full(codes, -1, dtype=np.int64)
    first[code[::-1]] = np.arange(len(code) - 1, -1, -1)
    present = first >= 0
    number = np.cumsum(present) - 1
    return first[present], number[code]


def count_rows(columns: Sequence[npt.NDArray[Any]]) -> Iterator[tuple[tuple[int, ...], int]]:
    """Each different row with how often it occurs, in rising order."""
    first, number = distinct_rows(columns)
    counts = np.bincount(number, minlength=len(first))
    cells = [column[first].tolist() for column in columns]
    yield from zip(zip(*cells, strict=True), counts.tolist(), strict=True)


def set_columns(members: Bools) -> list[Ints]:
    """Sets as whole numbers: columns that are equal for equal sets.

    Args:
        members: Shape (rows, members).
    """
    parts = [members[:, i : i + _TOGETHER] for i in range(0, members.shape[1], _TOGETHER)]
    return [part @ (1 << np.arange(part.shape[1])) for part in parts]


# --- Distinct panels -----------------------------------------------------------------------------


class DistinctPanels(NamedTuple):
    """The different panels of many turns of one size, m candidates and n voters."""

    panels: Ints
    """Shape (panels, voters): numbers of ballots, rising; -1 for an abstention."""
    ballots: tuple[Masses, ...]
    """What the numbers stand for."""
    protocol: Protocol
    """Of the ballots."""
    m: int
    of: Ints
    """Shape (turns,): the panel of each turn."""

    @staticmethod
    def find(masses: Ints, cast: Bools, protocol: Protocol) -> "DistinctPanels":
        """The different panels among some.

        Args:
            masses: Shape (turns, voters, candidates).
            cast: Shape (turns, voters): false for an abstention.
            protocol: Of the ballots.
        """
        turns, n, m = masses.shape
        cells = masses.reshape(-1, m)
        rows = np.flatnonzero(cast.reshape(-1))
        numbers = np.full(turns * n, -1, dtype=np.int64)
        first, numbers[rows] = distinct_rows(cells[rows].T)
        ballots = tuple(tuple(ballot) for ballot in cells[rows][first].tolist())
        panels = np.sort(numbers.reshape(turns, n), axis=1)
        first, of = distinct_rows(panels.T) if n else (np.zeros(1, dtype=np.int64), 0 * cells[:, 0])
        return DistinctPanels(panels[first], ballots, protocol, m, of)

    def union(self, others: Sequence["DistinctPanels"]) -> tuple["DistinctPanels", list[Ints]]:
        """The different panels of several, and for each of them, itself first, where its own are.

        Args:
            others: Of the same size and protocol.
        """
        numbers: dict[Masses, int] = {}
        rows = []
        for one in (self, *others):
            of = [numbers.setdefault(ballot, len(numbers)) for ballot in one.ballots]
            rows.append(np.sort(np.array([*of, -1], dtype=np.int64)[one.panels], axis=1))
        every = np.concatenate(rows)
        first, place = distinct_rows(every.T)
        joint = DistinctPanels(every[first], tuple(numbers), self.protocol, self.m, place)
        ends = np.cumsum([len(part) for part in rows])[:-1]
        return joint, np.split(place, ends)
