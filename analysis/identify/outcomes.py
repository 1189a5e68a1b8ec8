"""Every election of a small panel, counted beforehand: ballots in, tied winners out.

A panel of few voters and candidates can cast only so many combinations of simple votes,
approvals or rankings. Each is counted once, by `analysis.rules` or by its sums, into a table:
combination → set of tied winners, as bits. Rules that read rankings treat candidates alike, so
one count answers for all ways to rename them.
"""

from functools import cache
from itertools import combinations_with_replacement, permutations
from math import factorial
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from analysis.identify.domains import Domain, extensions
from analysis.rules import RANKING_RULES, Ranking, Target, ballot_format
from tutorsim.types import Protocol

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
    alike = _alike(m, n)
    counted = np.array([_counted(target, panel, m) for panel in alike.panels], dtype=np.int64)
    sets = _sets_renamed(m)[alike.names, counted[alike.counted]].astype(np.uint8)
    return np.asarray(sets[alike.sorted])


class _Alike(NamedTuple):
    """Panels that differ by the order of voters or the names of candidates only."""

    panels: list[tuple[Ranking, ...]]
    """One of each kind, with which every rule has to be counted."""
    counted: NDArray[np.int64]
    """Per panel with its ballots in order: its kind."""
    names: NDArray[np.int64]
    """And how its candidates are renamed to get there."""
    sorted: NDArray[np.int32]
    """Per combination of ballots: that panel with its ballots in order."""


@cache
def _alike(m: int, n: int) -> _Alike:
    orders = list(permutations(range(m)))
    panels = np.array(list(combinations_with_replacement(range(len(orders)), n)), dtype=np.int64)
    weights = len(orders) ** np.arange(n - 1, -1, -1)
    images = np.stack([np.sort(row[panels], axis=1) @ weights for row in _renamed(orders)])
    codes, counted = np.unique(images.min(axis=0), return_inverse=True)
    number = np.zeros(len(orders) ** n, dtype=np.int32)
    number[panels @ weights] = np.arange(len(panels))
    every = np.arange(len(number))[:, None] // weights % len(orders)
    shown = [tuple((str(c),) for c in order) for order in orders]
    kinds = codes[:, None] // weights % len(orders)
    return _Alike(
        [tuple(shown[ballot] for ballot in kind) for kind in kinds.tolist()],
        counted,
        images.argmin(axis=0),
        number[np.sort(every, axis=1) @ weights],
    )


def _renamed(orders: list[tuple[int, ...]]) -> NDArray[np.int64]:
    """Row g: the number of each order when candidate c is called orders[g][c]."""
    number = {order: i for i, order in enumerate(orders)}
    return np.array([[number[tuple(g[c] for c in order)] for order in orders] for g in orders])


@cache
def _sets_renamed(m: int) -> NDArray[np.int64]:
    """Row g: each set of renamed candidates under its own names again."""
    orders = permutations(range(m))
    return np.array(
        [[sum((bits >> g[c] & 1) << c for c in range(m)) for bits in range(1 << m)] for g in orders]
    )


def _counted(target: Target, rankings: tuple[Ranking, ...], m: int) -> int:
    won = RANKING_RULES[target](rankings, [str(c) for c in range(m)])
    return sum(1 << int(c) for c in won)
