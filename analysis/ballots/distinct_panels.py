"""The different panels among many turns.

A *panel* is the ballots of one stage of a turn; who of its voters cast what makes no difference.
However many turns there are, different panels are few.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from tutorsim.analysis.ballots.distinct_rows import distinct_rows
from tutorsim.analysis.ballots.turn_profiles import Masses
from tutorsim.analysis.ballots.vote_arrays import Bools, Ints
from tutorsim.vocabularies import Protocol

__all__ = ["DistinctPanels"]


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
