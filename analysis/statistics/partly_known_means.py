"""Means over episodes of which each is known by one value, by several draws, or not at all.

An episode's *unit* lists its draws, each as the lowest and the highest value that it may have:
equal where the value is known, 0 and 1 where it is not. A logged outcome is one known draw.
"""

from collections.abc import Sequence
from math import fsum
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from tutorsim.analysis.statistics.intervals_and_tests import (
    FEWEST_TASKS,
    LEVEL,
    Bounds,
    Interval,
    NotEstimable,
    too_few_tasks,
)
from tutorsim.analysis.statistics.resampling import RESAMPLES

__all__ = ["UNKNOWN", "Draw", "Unit", "known_draw", "mean_bounds", "nested_bootstrap"]

Draw = tuple[float, float]
"""Lowest and highest value that a draw may have."""

UNKNOWN: Final[Draw] = (0.0, 1.0)
"""A share or score of which nothing is known."""

_BATCH: Final = 5_000_000
"""Task indices held at once."""

Floats = npt.NDArray[np.float64]


class Unit(NamedTuple):
    """One logged episode."""

    name: str
    task: str
    """What is resampled first."""
    draws: tuple[Draw, ...]
    sampled: bool
    """The draws are some of many that might have been; a logged outcome is the only one."""

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


def nested_bootstrap(units: Sequence[Unit], *, seed: int) -> Interval | NotEstimable:
    """Percentile interval of the mean: tasks are resampled, and within an episode its draws.

    Where values are not known it reaches from the lower end for the worst case to the upper
    end for the best. Resampling both stages makes it somewhat wide, as the spread between
    tasks already has part of the spread between draws in it. An episode with one draw has no
    spread within, which the method's name then says.

    Args:
        units: Episodes; the order has no part in the draws.
        seed: Of the draws.
    """
    tasks = _by_task(units)
    if len(tasks) < FEWEST_TASKS:
        return too_few_tasks(len(tasks))
    rng = np.random.default_rng(seed)
    batch = max(1, _BATCH // len(tasks))
    sizes = [min(batch, RESAMPLES - start) for start in range(0, RESAMPLES, batch)]
    means = np.concatenate([_resampled(tasks, size, rng) for size in sizes])
    low = np.quantile(means[:, 0], (1 - LEVEL) / 2)
    high = np.quantile(means[:, 1], (1 + LEVEL) / 2)
    if low == high:
        return NotEstimable(f"all {len(tasks)} tasks have the same mean")
    return Interval(float(low), float(high), _method(units, len(tasks)))


def _by_task(units: Sequence[Unit]) -> list[list[Unit]]:
    found: dict[str, list[Unit]] = {}
    for unit in sorted(units, key=lambda u: (u.task, u.name)):
        found.setdefault(unit.task, []).append(unit)
    return list(found.values())


def _resampled(tasks: Sequence[Sequence[Unit]], size: int, rng: np.random.Generator) -> Floats:
    """Mean of the lowest and of the highest values in each of so many resamples."""
    picked = rng.integers(0, len(tasks), (size, len(tasks)))
    sums, counts = np.zeros((size, 2)), np.zeros(size)
    for i, task in enumerate(tasks):
        rows = np.nonzero(picked == i)[0]
        means = sum((_means_of_draws(unit, len(rows), rng) for unit in task), np.zeros((1, 2)))
        for end in (0, 1):
            sums[:, end] += np.bincount(rows, means[:, end], minlength=size)
        counts += len(task) * np.bincount(rows, minlength=size)
    return sums / counts[:, None]


def _means_of_draws(unit: Unit, size: int, rng: np.random.Generator) -> Floats:
    draws = np.asarray(unit.draws, dtype=np.float64)
    k = len(draws)
    if k == 1:
        return np.broadcast_to(draws[0], (size, 2))
    picked = rng.integers(0, k, (k, size))
    total = draws[picked[0]]
    for row in picked[1:]:
        total += draws[row]
    return np.asarray(total / k)


def _method(units: Sequence[Unit], tasks: int) -> str:
    sampled = [len(unit.draws) for unit in units if unit.sampled]
    words = f"percentile bootstrap over {tasks} tasks"
    if not sampled:
        return words
    if min(sampled) == 1:
        return f"{words}, without the variation within an episode, which has a single draw"
    return f"{words} and over the draws of an episode"
