"""Intervals over dialogues, and paired tests between conditions.

Replies to one dialogue are not independent, so whole dialogues are drawn. Drawing items is what
the oversight study did; it stays as a choice and says of itself that it is too narrow.
"""

from collections.abc import Callable, Hashable, Iterator
from functools import lru_cache
from itertools import product
from typing import Final, Literal

import numpy as np
import numpy.typing as npt

from tutorsim.analysis.statistics.intervals_and_tests import (
    FEWEST_TASKS,
    LEVEL,
    Estimate,
    Interval,
    NotEstimable,
    PermutationTest,
)

__all__ = ["DRAWS", "Over", "cluster_numbers", "drawn_sums", "interval_of", "paired_swaps"]

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Over = Literal["dialogues", "items"]

DRAWS: Final = 10_000
_BATCH: Final = 500_000
"""Drawn clusters held at once: few megabytes, that an allocator hands out again and again."""
_NEAR: Final = 1e-12


@lru_cache(maxsize=8)
def cluster_numbers(names: tuple[Hashable, ...]) -> Ints:
    """Each name's number, from 0; the order of the input has no part in the numbers.

    Kept for the next group of the same items; nobody may write to it.
    """
    order = {name: number for number, name in enumerate(sorted(set(names), key=repr))}
    numbers = np.array([order[name] for name in names], dtype=np.int64)
    numbers.setflags(write=False)
    return numbers


def drawn_sums(cells: Ints, *, seed: int) -> Floats:
    """Sums of cells over resampled clusters.

    Args:
        cells: Shape (clusters, c): counts of each cluster.
        seed: Of the draws.

    Returns:
        Shape (`DRAWS`, c): as many clusters as there are, drawn with replacement.
    """
    weights = cells.astype(np.float64)
    return np.concatenate([times @ weights for times in _times(len(cells), seed)])


def _times(n: int, seed: int) -> Iterator[Floats]:
    """How often each of n clusters is drawn, in batches of draws; shape (batch, n)."""
    rng = np.random.default_rng(seed)
    batch = max(1, _BATCH // n)
    for start in range(0, DRAWS, batch):
        size = min(batch, DRAWS - start)
        drawn = rng.integers(0, n, (size, n))
        drawn += np.arange(size)[:, None] * n
        yield np.bincount(drawn.ravel(), minlength=size * n).reshape(size, n).astype(np.float64)


def interval_of(
    value: float, drawn: Floats, *, n: int, clusters: int, over: Over
) -> Estimate | NotEstimable:
    """A score with its percentile interval.

    Args:
        value: The score of all items; `nan` if the data cannot give it.
        drawn: Shape (`DRAWS`,): the score of each resample.
        n: Items behind the score.
        clusters: What was drawn.
        over: What a cluster is.
    """
    if np.isnan(value):
        return NotEstimable("no item with gold labels")
    if clusters < FEWEST_TASKS:
        why = f"too few {over} for an interval: {clusters}, it takes {FEWEST_TASKS}"
        return Estimate(value, n, NotEstimable(why))
    tails = [(1 - LEVEL) / 2, (1 + LEVEL) / 2]
    low, high = np.nanquantile(drawn, tails)
    method = f"percentile bootstrap over {clusters} {over}, {DRAWS:,} draws"
    if over == "items":
        method += "; too narrow, as replies to one dialogue are not independent"
    return Estimate(value, n, Interval(float(low), float(high), method))


def paired_swaps(
    first: Ints, second: Ints, score: Callable[[Floats], Floats], *, seed: int
) -> list[PermutationTest | NotEstimable]:
    """Test that two conditions score the same, by swapping them within whole dialogues.

    Enumerated if the swaps are no more than would be drawn. Several pairs of conditions over the
    same dialogues share their swaps.

    Args:
        first: Shape (clusters, pairs, c): counts of each dialogue under one condition.
        second: The same items under the other.
        score: Counts of shape (…, c) → scores of shape (…).
        seed: Of the draws.

    Returns:
        A test for each pair.
    """
    n, pairs, cells = first.shape
    if n < 2:
        return [NotEstimable("pairs of fewer than two dialogues have no distribution")] * pairs
    one, other = (side.sum(axis=0).astype(np.float64) for side in (first, second))
    observed = score(one) - score(other)
    gap = (second - first).reshape(n, -1).astype(np.float64)
    exact, made = 2**n <= DRAWS, 0
    beyond = np.zeros(pairs, dtype=np.int64)
    for swaps in _swaps(n, exact, seed):
        moved = (swaps @ gap).reshape(-1, pairs, cells)
        apart = np.abs(score(one + moved) - score(other - moved)) >= np.abs(observed) - _NEAR
        beyond += np.count_nonzero(apart, axis=0)
        made += len(swaps)
    extra = 0 if exact else 1
    return [
        NotEstimable("no item with gold labels")
        if np.isnan(difference)
        else PermutationTest(float(difference), (int(count) + extra) / (made + extra), n, exact)
        for difference, count in zip(observed, beyond, strict=True)
    ]


def _swaps(n: int, exact: bool, seed: int) -> Iterator[Floats]:
    """Which dialogues are swapped, in batches of shape (batch, n)."""
    if exact:
        yield np.array(list(product((0.0, 1.0), repeat=n)))
        return
    rng = np.random.default_rng(seed)
    batch = max(1, _BATCH // n)
    for start in range(0, DRAWS, batch):
        size = min(batch, DRAWS - start)
        yield rng.integers(0, 2, (size, n)).astype(np.float64)
