"""Resampling of clusters and of signs, seeded, in numpy alone.

The bias-corrected and accelerated (BCa) interval follows Efron (1987) and the sign-flip test
Fisher's; `scipy.stats` is the oracle of both in the tests. Importing it would take longer than
most commands.
"""

from collections.abc import Iterable, Iterator
from functools import lru_cache
from statistics import NormalDist
from typing import Final, NamedTuple
from zlib import crc32

import numpy as np
import numpy.typing as npt

__all__ = ["LARGEST_RESAMPLED", "RESAMPLES", "SignFlips", "bca", "linearised", "sign_flip_p"]

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

RESAMPLES: Final = 4999
"""Draws of a bootstrap or of a permutation test that is not enumerated."""

LARGEST_RESAMPLED: Final = 5_000
"""Clusters up to which an interval is resampled; more are linearised."""

_BATCH: Final = 5_000_000
"""Indices held at once."""

_FEW: Final = 8
"""Clusters up to which resamples are drawn once a seed: many of them are the same."""


def bca(sums: Floats, counts: Floats, *, level: float, seed: int) -> tuple[float, float]:
    """BCa interval of a ratio of sums, from resampled clusters.

    Args:
        sums: Per cluster.
        counts: Observations per cluster.
        level: Of the interval.
        seed: Of the draws.
    """
    drawn = _resampled(sums, counts, seed)
    ratio = _ratio(sums, counts)
    at_most = np.count_nonzero(drawn < ratio) + np.count_nonzero(drawn <= ratio)
    normal = NormalDist()
    share = min(max(at_most / (2 * RESAMPLES), 1e-15), 1 - 1e-15)
    bias, speed = normal.inv_cdf(share), _acceleration(sums, counts)
    tails = [bias + normal.inv_cdf(tail) for tail in ((1 - level) / 2, (1 + level) / 2)]
    ordered = np.sort(drawn)
    low, high = (_quantile(ordered, normal.cdf(bias + z / (1 - speed * z))) for z in tails)
    return low, high


def _quantile(ordered: Floats, share: float) -> float:
    """As `np.quantile`, of numbers in order."""
    place = share * (len(ordered) - 1)
    below = min(int(place), len(ordered) - 2)
    part = place - below
    low, high = float(ordered[below]), float(ordered[below + 1])
    return low + (high - low) * part if part < 0.5 else high - (high - low) * (1 - part)


def linearised(sums: Floats, counts: Floats, *, level: float) -> tuple[float, float]:
    """Normal interval of a ratio of sums over very many clusters.

    The spread is that of the clusters' influence, sum − ratio × count. What a bootstrap would
    add to it shrinks with the number of clusters, and so does what it would correct.
    """
    ratio = _ratio(sums, counts)
    n = len(sums)
    spread = float(np.std(sums - ratio * counts, ddof=1)) * n**0.5 / float(counts.sum())
    half = NormalDist().inv_cdf((1 + level) / 2) * spread
    return ratio - half, ratio + half


class SignFlips(NamedTuple):
    """How often flipped signs give a mean as far from zero as the one seen."""

    p_value: float
    """Two-sided."""
    exact: bool
    """Every change of signs was counted; otherwise `RESAMPLES` were drawn."""
    error: float
    """Standard error of a p-value from draws; 0 of an exact one."""


def sign_flip_p(differences: Floats, *, seed: int) -> SignFlips:
    """Sign-flip test of a mean: exact where the sums that signs can give are few enough.

    A difference of zero has no sign, and takes no part. Sums are of whole billionths, so that
    equal sums are equal. Where they are too many, signs are drawn, with draws of their own for
    each set of differences; such a p-value counts the signs seen as one of the draws, so that
    it is never zero.

    Args:
        differences: One per pair.
        seed: Of the draws.
    """
    units = np.rint(differences / _UNIT).astype(np.int64)
    units = np.sort(np.abs(units[units != 0]))
    seen = abs(int(np.rint(differences / _UNIT).sum()))
    counted = _sums(units)
    if counted is not None:
        sums, weights = counted
        beyond = float(weights[sums >= seen].sum())
        return SignFlips(min(1.0, 2 * beyond), True, 0.0)
    rng = np.random.default_rng([seed, crc32(units.tobytes()), crc32(str(seen).encode())])
    drawn = _flipped(units, rng)
    hits = int(np.count_nonzero(np.abs(drawn) >= seen))
    share = (hits + 1) / (RESAMPLES + 1)
    return SignFlips(share, False, (share * (1 - share) / RESAMPLES) ** 0.5)


_UNIT: Final = 1e-9
"""Differences are told apart by this much."""
_MOST_SUMS: Final = 1 << 16
"""Different sums of signed differences up to which all are counted."""


def _sums(units: Ints) -> tuple[Ints, Floats] | None:
    """Every sum of the differences under all signs, and its probability; `None` if too many."""
    sums, weights = np.zeros(1, dtype=np.int64), np.ones(1)
    for unit in units.tolist():
        both = np.concatenate([sums - unit, sums + unit])
        sums, which = np.unique(both, return_inverse=True)
        weights = np.asarray(
            np.bincount(which, np.concatenate([weights, weights]) / 2), dtype=np.float64
        )
        if len(sums) > _MOST_SUMS:
            return None
    return sums, weights


def _flipped(units: Ints, rng: np.random.Generator) -> Ints:
    """The sum under each draw of signs, in batches as in `_resampled`."""
    n = len(units)
    batch = max(1, _BATCH // n)
    found = []
    for start in range(0, RESAMPLES, batch):
        signs = rng.integers(0, 2, (min(batch, RESAMPLES - start), n), dtype=np.int8) * 2 - 1
        found.append(signs @ units)
    return np.concatenate(found)


def _ratio(sums: Floats, counts: Floats) -> float:
    return float(sums.sum() / counts.sum())


class _Draws(NamedTuple):
    """Resamples of n clusters."""

    distinct: Ints
    """Shape (D, n): clusters by number; no row twice where n is small."""
    which: Ints
    """Per resample, its row."""


def _draws(n: int, seed: int) -> Iterator[_Draws]:
    """Every resample; batches bound the memory and leave the draws as they are."""
    rng = np.random.default_rng(seed)
    batch = max(1, _BATCH // n)
    for start in range(0, RESAMPLES, batch):
        drawn = rng.integers(0, n, (min(batch, RESAMPLES - start), n))
        yield _Draws(drawn, np.arange(len(drawn)))


@lru_cache(maxsize=16)
def _few_draws(n: int, seed: int) -> tuple[_Draws, ...]:
    """As `_draws`, once for all statistics of as many clusters."""
    found = []
    for drawn, _ in _draws(n, seed):
        code = drawn @ n ** np.arange(n)
        _, first, which = np.unique(code, return_index=True, return_inverse=True)
        found.append(_Draws(drawn[first], which))
    return tuple(found)


def _resampled(sums: Floats, counts: Floats, seed: int) -> Floats:
    """The ratio in each resample."""
    n = len(sums)
    draws: Iterable[_Draws] = _few_draws(n, seed) if n <= _FEW else _draws(n, seed)
    ratios = [(sums[d.distinct].sum(axis=-1) / counts[d.distinct].sum(axis=-1), d) for d in draws]
    return np.concatenate([ratio[d.which] for ratio, d in ratios])


def _acceleration(sums: Floats, counts: Floats) -> float:
    """From the jackknife: how the spread changes with the value."""
    left = (sums.sum() - sums) / (counts.sum() - counts)
    off = left.mean() - left
    return float((off**3).sum() / (6 * (off**2).sum() ** 1.5))
