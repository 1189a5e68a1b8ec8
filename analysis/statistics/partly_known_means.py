"""Means over episodes of which each is known by one value, by several draws, or not at all.

An episode's *unit* lists its draws, each as the lowest and the highest value that it may have:
equal where the value is known, 0 and 1 where it is not. A logged outcome is one known draw.
"""

from collections.abc import Sequence
from math import fsum
from typing import Final, NamedTuple

from tutorsim.analysis.statistics.intervals_and_tests import (
    Bounds,
    Estimate,
    Interval,
    NotEstimable,
    mean_over_tasks,
)

__all__ = ["UNKNOWN", "Draw", "Unit", "interval_of_mean", "known_draw", "mean_bounds"]

Draw = tuple[float, float]
"""Lowest and highest value that a draw may have."""

UNKNOWN: Final[Draw] = (0.0, 1.0)
"""A share or score of which nothing is known."""


class Unit(NamedTuple):
    """One logged episode."""

    task: str
    """What intervals are over."""
    draws: tuple[Draw, ...]

    @property
    def low(self) -> float:
        return fsum(low for low, _ in self.draws) / len(self.draws)

    @property
    def high(self) -> float:
        return fsum(high for _, high in self.draws) / len(self.draws)

    @property
    def is_open(self) -> bool:
        """Something about it is not known."""
        return any(low != high for low, high in self.draws)


def known_draw(value: float | None) -> Draw:
    """A draw of a value; of anything between 0 and 1 where it is missing."""
    return UNKNOWN if value is None else (value, value)


def mean_bounds(units: Sequence[Unit]) -> Bounds:
    """What the mean over units lies between, each by the mean of its draws."""
    n = len(units)
    return Bounds(fsum(u.low for u in units) / n, fsum(u.high for u in units) / n, n)


def interval_of_mean(
    units: Sequence[Unit], *, ends: tuple[float, float] = UNKNOWN
) -> Interval | NotEstimable:
    """Interval of the mean over tasks; the spread between tasks has that between draws in it.

    Where values are not known it reaches from the lower end for the worst case to the upper
    end for the best.

    Args:
        units: Episodes, at least one.
        ends: Least and greatest value that a draw can have.
    """
    tasks = [unit.task for unit in units]
    worst, best = (
        mean_over_tasks(values, tasks, ends=ends)
        for values in ([unit.low for unit in units], [unit.high for unit in units])
    )
    assert isinstance(worst, Estimate)
    assert isinstance(best, Estimate)
    if not isinstance(worst.interval, Interval) or not isinstance(best.interval, Interval):
        return worst.interval if isinstance(worst.interval, NotEstimable) else best.interval
    return Interval(worst.interval.low, best.interval.high, worst.interval.method)
