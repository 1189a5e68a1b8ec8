"""Every election of a small panel, counted beforehand: ballots in, tied winners out.

A panel of few voters and candidates can cast only so many combinations of simple votes,
approvals or rankings. Each is counted once, by its sums or as `analysis.identify.leading` counts,
into a table: combination → set of tied winners, as bits.
"""

from functools import cache
from itertools import combinations_with_replacement, permutations
from math import factorial
from typing import Final

import numpy as np
from numpy.typing import NDArray

from analysis.identify.domains import Domain, extensions
from analysis.identify.leading import ProjectedPanels
from analysis.rules import Target, ballot_format
from tutorsim.types import CUMULATIVE_BUDGET, Protocol

__all__ = ["MOST_CANDIDATES", "allowed", "ballots_of", "outcomes", "tabled"]

MOST_CANDIDATES: Final = 4
"""Sets of tied winners are the 16 bits of a family."""

_LARGEST: Final = 400_000
"""Combinations that a table may have: rankings of four voters over four candidates."""

Sets = NDArray[np.uint8]


def tabled(target: Target, m: int, n: int) -> bool:
    """Whether the elections of n voters over m candidates are few enough to count them all."""
    if target == "cumulative" or not 1 < m <= MOST_CANDIDATES:
        return False
    ballots = {"simple": m, "approval": 2**m}.get(ballot_format(target), factorial(m))
    return int(ballots**n) <= _LARGEST


@cache
def ballots_of(form: Protocol, m: int) -> NDArray[np.int64]:
    """Every ballot of a format as masses, one a row; not for points."""
    if form == "simple":
        return np.eye(m, dtype=np.int64)
    if form == "approval":
        return np.arange(1 << m)[:, None] >> np.arange(m) & 1
    rows = np.array(list(permutations(range(m))), dtype=np.int64)
    masses = np.empty_like(rows)
    np.put_along_axis(masses, rows, np.arange(m - 1, -1, -1)[None, :], axis=1)
    return masses


@cache
def allowed(domain: Domain, form: Protocol, m: int) -> NDArray[np.int64]:
    """Which rows of `ballots_of` a voter may have cast: the table of consistency, as it reads."""
    if domain.kind == "exact":
        masses = np.array(domain.data)
        return np.flatnonzero((ballots_of(form, m) == masses).all(axis=1))
    levels = domain.levels
    if form == "simple":
        return np.array(sorted(levels[0]))
    if form == "ranked":
        number = {order: i for i, order in enumerate(permutations(range(m)))}
        return np.array(sorted(number[order] for order in extensions(levels)))
    if domain.kind == "choice":
        chosen = sum(1 << c for c in levels[0])
        return np.flatnonzero(np.arange(1 << m) & chosen == chosen)
    upper = np.cumsum([sum(1 << c for c in level) for level in levels])
    return np.sort(upper)


@cache
def outcomes(target: Target, m: int, n: int) -> Sets:
    """Combination of ballots → tied winners, as bits; 0 where nobody wins.

    The combination of ballots b1 … bn has the number b1·Fⁿ⁻¹ + … + bn, F ballots of the format.
    """
    if target in ("simple", "approval", "ranked"):
        return _by_sums(ballots_of(target, m), n)
    return _by_rule(target, m, n)


def _by_sums(ballots: NDArray[np.int64], n: int) -> Sets:
    m = ballots.shape[1]
    sums = np.zeros((1, m), dtype=np.int64)
    for _ in range(n):
        sums = (sums[:, None] + ballots).reshape(-1, m)
    leading = sums == sums.max(axis=1, keepdims=True)
    return np.asarray((leading << np.arange(m)).sum(axis=1), dtype=np.uint8)


def _by_rule(target: Target, m: int, n: int) -> Sets:
    """Voters are alike: what their ballots give in order, they give in any order."""
    panels, place = _in_order(m, n)
    ballots = [tuple(ballot) for ballot in ballots_of("ranked", m).tolist()]
    counted = ProjectedPanels(
        panels, ballots, m=m, protocol="ranked", target=target, budget=CUMULATIVE_BUDGET
    )
    return np.asarray(counted.leaders((1 << m) - 1).astype(np.uint8)[place])


@cache
def _in_order(m: int, n: int) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """Every panel of rankings with its ballots in order, and which of them each combination is."""
    size = factorial(m)
    panels = np.array(list(combinations_with_replacement(range(size), n)), dtype=np.int64)
    weights = size ** np.arange(n - 1, -1, -1)
    place = np.zeros(size**n, dtype=np.int32)
    place[panels @ weights] = np.arange(len(panels))
    every = np.arange(len(place))[:, None] // weights % size
    return panels, place[np.sort(every, axis=1) @ weights]
