"""The weak order that a ballot shows: candidates in levels, best first."""

from functools import lru_cache

from tutorsim.analysis.ballots.turn_profiles import Masses

__all__ = ["Levels", "levels_of"]

Levels = tuple[tuple[int, ...], ...]
"""Numbers of candidates by level, best first; equal candidates share a level."""


@lru_cache(maxsize=1 << 14)
def levels_of(masses: Masses) -> Levels:
    """The weak order of masses: equal masses share a level."""
    grades = sorted(set(masses), reverse=True)
    return tuple(tuple(c for c, mass in enumerate(masses) if mass == grade) for grade in grades)
