"""Percentile intervals of statistics that take weights, from resampled clusters."""

from collections.abc import Callable, Hashable, Sequence
from typing import Final

import numpy as np
import numpy.typing as npt

from tutorsim.analysis.statistics.intervals_and_tests import (
    FEWEST_TASKS,
    LEVEL,
    Interval,
    NotEstimable,
)
from tutorsim.analysis.statistics.resampling import RESAMPLES

__all__ = ["Weighted", "percentile_interval"]

Floats = npt.NDArray[np.float64]

Weighted = Callable[[Floats], Floats]
"""From weights of observations, shape (draws, observations), to one number a draw; a number that
is not finite where the statistic is not defined."""

_MOST_UNDEFINED: Final = 0.05
"""Share of resamples without a value above which there is no interval."""

_NO_WIDTH: Final = 1e-12
"""Between the least and the greatest resample where all are the same but for rounding."""

_BATCH: Final = 2_000_000
"""Weights held at once."""


def percentile_interval(
    statistic: Weighted, clusters: Sequence[Hashable], *, seed: int, unit: str = "tasks"
) -> Interval | NotEstimable:
    """The interval between the tails of a statistic over resampled clusters.

    An observation's weight is how often its cluster was drawn.

    Args:
        statistic: Of weighted observations.
        clusters: What each observation is resampled with.
        seed: Of the draws.
        unit: What a cluster is called.

    Returns:
        The interval. None over fewer than `FEWEST_TASKS` clusters, none where more than one
        resample in twenty has no value, and none where all have the same: it would have no
        width, and say that nothing is uncertain.
    """
    names = {name: place for place, name in enumerate(sorted(set(clusters), key=repr))}
    n = len(names)
    if n < FEWEST_TASKS:
        return NotEstimable(f"too few {unit} for an interval: {n}, it takes {FEWEST_TASKS}")
    which = np.array([names[one] for one in clusters])
    rng, found = np.random.default_rng(seed), []
    batch = max(1, _BATCH // len(which))
    for start in range(0, RESAMPLES, batch):
        drawn = rng.multinomial(n, np.full(n, 1 / n), size=min(batch, RESAMPLES - start))
        found.append(statistic(drawn[:, which].astype(np.float64)))
    values = np.concatenate(found)
    defined = values[np.isfinite(values)]
    if len(defined) < (1 - _MOST_UNDEFINED) * RESAMPLES:
        lost = RESAMPLES - len(defined)
        return NotEstimable(f"not defined in {lost:,} of {RESAMPLES:,} resamples")
    if np.ptp(defined) <= _NO_WIDTH:
        return NotEstimable(f"every resample of the {n} {unit} has the same value")
    low, high = (float(end) for end in np.quantile(defined, [(1 - LEVEL) / 2, (1 + LEVEL) / 2]))
    return Interval(low, high, f"percentile bootstrap over {n} {unit}")
