"""Intervals and tests that respect the design, each seeded: same input, same digits.

A quantity that the data cannot give is a `NotEstimable` with its reason, never a number that
is none; a mean over few tasks has a value and no interval. Observations are numbers: one that
is missing is left out before, by the caller, who also says how many there were.

Personas and conditions of one task are not independent, so intervals of means come from a
bootstrap over tasks. Contrasts are paired, and their tests flip the sign of whole pairs.
"""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import asdict, dataclass
from math import fsum, sqrt
from statistics import NormalDist
from typing import Any, Final, TypeVar

import numpy as np
import numpy.typing as npt

from tutorsim.analysis.statistics.resampling import LARGEST_RESAMPLED, bca, linearised, sign_flip_p

__all__ = [
    "FEWEST_TASKS",
    "LEVEL",
    "Bounds",
    "Estimate",
    "Interval",
    "NotEstimable",
    "PermutationTest",
    "cluster_bootstrap",
    "holm",
    "minimum_detectable_effect",
    "paired_permutation",
    "to_json",
    "too_few_tasks",
    "wilson",
]

K = TypeVar("K", bound=Hashable)

LEVEL: Final = 0.95
"""Level of every interval."""

FEWEST_TASKS: Final = 6
"""Tasks from which an interval over tasks is given.

The widest interval that n task means can support without assuming a shape runs from the least to
the greatest of them. It covers the median of tasks with probability 1 - 2^(1-n): 93.75 % with five
tasks, 96.9 % with six. So with fewer than six no interval over tasks can hold 95 %, and a
bootstrap, which stays inside that range, would only hide it.
"""


@dataclass(frozen=True)
class NotEstimable:
    """What the data cannot give, and why."""

    reason: str

    def to_json(self) -> dict[str, str]:
        return {"not_estimable": self.reason}


@dataclass(frozen=True)
class Interval:
    """Where the estimated quantity lies, at `LEVEL`."""

    low: float
    high: float
    method: str
    """How it was made."""

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True)
class Estimate:
    """A number, with its interval where the data give one."""

    value: float
    n: int
    """Observations behind the number."""
    interval: Interval | NotEstimable

    @property
    def low(self) -> float | None:
        return self.interval.low if isinstance(self.interval, Interval) else None

    @property
    def high(self) -> float | None:
        return self.interval.high if isinstance(self.interval, Interval) else None

    def to_json(self) -> dict[str, Any]:
        return {"value": self.value, "n": self.n, "interval": self.interval.to_json()}


@dataclass(frozen=True)
class Bounds:
    """What a mean lies between whatever the unknown values are; no interval of chance."""

    low: float
    high: float
    n: int
    """Observations, known or not."""

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True)
class PermutationTest:
    """A mean difference within pairs, and how often chance gives one as large."""

    difference: float
    p_value: float
    """Two-sided."""
    n: int
    """Pairs."""
    exact: bool
    """All sign changes were counted; otherwise they were drawn."""
    error: float = 0.0
    """Standard error of a p-value from draws; 0 of an exact one."""

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def to_json(value: Any) -> Any:
    """A result as plain JSON values, `NotEstimable` as `{"not_estimable": reason}`."""
    if hasattr(value, "to_json"):
        return value.to_json()
    if isinstance(value, Mapping):
        return {str(key): to_json(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [to_json(item) for item in value]
    return value


def too_few_tasks(tasks: int) -> NotEstimable:
    """Why there is no interval over so few tasks."""
    return NotEstimable(f"too few tasks for an interval: {tasks}, it takes {FEWEST_TASKS}")


def cluster_bootstrap(
    values: Sequence[float], clusters: Sequence[Hashable], *, seed: int
) -> Estimate | NotEstimable:
    """Mean with a bias-corrected and accelerated (BCa) interval from resampled clusters.

    The mean is over observations, so a cluster counts as often as it has any. There is no
    interval over fewer than `FEWEST_TASKS` clusters, nor where every cluster has the same mean:
    it would have no width, and say that nothing is uncertain.

    Args:
        values: Observations.
        clusters: The task of each observation.
        seed: Of the draws.
    """
    if not values:
        return NotEstimable("no observations")
    sums, counts = _by_cluster(values, clusters)
    mean = fsum(values) / len(values)
    return Estimate(mean, len(values), _interval(sums, counts, mean, seed))


def _interval(
    sums: npt.NDArray[np.float64], counts: npt.NDArray[np.float64], mean: float, seed: int
) -> Interval | NotEstimable:
    if len(sums) < FEWEST_TASKS:
        return too_few_tasks(len(sums))
    method = f"BCa bootstrap over {len(sums)} tasks"
    if np.abs(sums - mean * counts).max() <= 1e-12:
        return NotEstimable(f"all {len(sums)} tasks have the same mean")
    if len(sums) > LARGEST_RESAMPLED:
        low, high = linearised(sums, counts, level=LEVEL)
        return Interval(low, high, f"normal, linearised over {len(sums)} tasks")
    return Interval(*bca(sums, counts, level=LEVEL, seed=seed), method)


def _by_cluster(
    values: Sequence[float], clusters: Sequence[Hashable]
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Sum and number of observations per cluster, in an order that the input's has no part in."""
    found: dict[Hashable, list[float]] = {}
    for value, cluster in zip(values, clusters, strict=True):
        found.setdefault(cluster, []).append(value)
    groups = [found[cluster] for cluster in sorted(found, key=repr)]
    return np.array([fsum(g) for g in groups]), np.array([float(len(g)) for g in groups])


def paired_permutation(
    differences: Sequence[float], *, seed: int
) -> PermutationTest | NotEstimable:
    """Test that a mean difference within pairs is zero, by flipping signs of pairs.

    Exact where the sums that signs can give are few enough; see `sign_flip_p`.

    Args:
        differences: One per pair.
        seed: Of the draws, where they are too many.
    """
    if not differences:
        return NotEstimable("no pairs")
    if len(differences) < 2:
        return NotEstimable("one pair has no distribution")
    ordered = np.sort(np.asarray(differences, dtype=np.float64))
    found = sign_flip_p(ordered, seed=seed)
    n = len(differences)
    return PermutationTest(fsum(differences) / n, found.p_value, n, found.exact, found.error)


def holm(p_values: Mapping[K, float]) -> dict[K, float]:
    """Holm's step-down correction over the family given, in the mapping's order.

    Returns:
        The same keys with the adjusted p-values.
    """
    adjusted: dict[K, float] = {}
    largest = 0.0
    for i, key in enumerate(sorted(p_values, key=lambda k: p_values[k])):
        largest = max(largest, min(1.0, (len(p_values) - i) * p_values[key]))
        adjusted[key] = largest
    return {key: adjusted[key] for key in p_values}


def wilson(successes: float, n: int) -> Estimate | NotEstimable:
    """A single rate with its Wilson score interval (Wilson 1927), without continuity correction.

    Successes need not be whole where an observation is itself a share.
    """
    if n == 0:
        return NotEstimable("no observations")
    z = NormalDist().inv_cdf((1 + LEVEL) / 2)
    rate = successes / n
    middle = rate + z * z / (2 * n)
    half = z * sqrt(rate * (1 - rate) / n + z * z / (4 * n * n))
    scale = 1 + z * z / n
    low = 0.0 if successes == 0 else (middle - half) / scale
    high = 1.0 if successes == n else (middle + half) / scale
    return Estimate(rate, n, Interval(low, high, "Wilson score"))


def minimum_detectable_effect(
    differences: Sequence[float],
    clusters: Sequence[Hashable],
    *,
    alpha: float = 0.05,
    power: float = 0.8,
) -> float | NotEstimable:
    """The smallest mean difference that a run of this size and spread would find.

    The normal approximation over task means: (z(1-alpha/2) + z(power)) × their standard error.

    Args:
        differences: One per pair.
        clusters: The task of each pair.
        alpha: Two-sided level of the test.
        power: Chance to find a difference of that size.
    """
    if not differences:
        return NotEstimable("no pairs")
    sums, counts = _by_cluster(differences, clusters)
    if len(sums) < FEWEST_TASKS:
        return too_few_tasks(len(sums))
    spread = float(np.std(sums / counts, ddof=1))
    if spread == 0:
        return NotEstimable("all tasks have the same difference")
    normal = NormalDist()
    return (normal.inv_cdf(1 - alpha / 2) + normal.inv_cdf(power)) * spread / sqrt(len(sums))
