"""Ties, fallback and flips to expect if every ballot were drawn at random, for a panel's size.

Voters are independent, and each draws its ballot uniformly from all that a protocol allows: a
label, an order, a split of the points, a set (the empty one too). All candidates are then alike,
so that how many of m lead a vote of n ballots says everything: the chance that exactly s lead, for
each s. From it follow

* *tied*: two or more lead the final vote;
* *fallback*: two or more are still left after the tie round, which is a vote of the same n voters
  among those tied;
* *flip*: the leader of a first vote, a tie going to the fallback order, is not the winner of
  an independent final vote with its tie round and the order behind it.

The chances are exact, from a count of ballots, where that is feasible; for the larger panels of
ranked and cumulative voting they come from seeded draws, and `exact` says so.
"""

from dataclasses import asdict, dataclass
from functools import lru_cache
from math import comb, factorial, fsum
from typing import Final, Literal

import numpy as np
import numpy.typing as npt

from tutorsim.vocabularies import CUMULATIVE_BUDGET, Protocol

__all__ = ["DRAWS", "Leaders", "UniformChance", "leaders_by_chance", "uniform_chance"]

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

DRAWS: Final = 40_000
"""Votes drawn where counting takes too much: the standard error of a share is at most 0.0025."""
_CELLS: Final = 1 << 21
"""Cells of the lattice of totals up to which ballots are counted."""
_SEED: Final = 0


@dataclass(frozen=True)
class UniformChance:
    """What random ballots give, for n voters on as many candidates under one protocol."""

    protocol: Protocol
    size: int
    tied: float
    fallback: float
    flip: float
    exact: bool
    """Counted; otherwise drawn, with a standard error of at most 0.0025."""

    def share(self, measure: Literal["tied", "fallback", "flip"]) -> float:
        """One of the three by name."""
        return {"tied": self.tied, "fallback": self.fallback, "flip": self.flip}[measure]

    def to_json(self) -> dict[str, object]:
        return asdict(self)


@dataclass(frozen=True)
class Leaders:
    """How many candidates lead a vote of random ballots."""

    shares: tuple[float, ...]
    """Chance that exactly s lead, s from 1."""
    exact: bool


@lru_cache(maxsize=256)
def uniform_chance(
    protocol: Protocol,
    size: int,
    *,
    budget: int = CUMULATIVE_BUDGET,
    tie_round: bool = True,
) -> UniformChance:
    """Tie, fallback and flip of a panel under uniformly random ballots.

    Args:
        protocol: How votes are cast and counted.
        size: Voters, and candidates.
        budget: Points of a cumulative ballot.
        tie_round: Whether a tied final vote goes to another round.
    """
    final = leaders_by_chance(protocol, size, size, budget=budget)
    left = list(final.shares)
    exact = final.exact
    if tie_round:
        left = [final.shares[0]] + [0.0] * (size - 1)
        for tied, share in enumerate(final.shares[1:], start=2):
            again = leaders_by_chance(protocol, size, tied, budget=budget)
            exact = exact and again.exact
            for s, part in enumerate(again.shares):
                left[s] += share * part
    led, won = _first(final.shares, size), _first(left, size)
    return UniformChance(
        protocol=protocol,
        size=size,
        tied=1 - final.shares[0],
        fallback=1 - left[0],
        flip=1 - fsum(led * won),
        exact=exact,
    )


@lru_cache(maxsize=256)
def leaders_by_chance(
    protocol: Protocol, voters: int, candidates: int, *, budget: int = CUMULATIVE_BUDGET
) -> Leaders:
    """How many lead a vote of uniformly random ballots.

    Args:
        protocol: How votes are cast and counted.
        voters: Ballots.
        candidates: On each ballot.
        budget: Points of a cumulative ballot.
    """
    if protocol == "simple":
        return Leaders(_of_choices(voters, candidates), True)
    if protocol == "approval":
        return Leaders(_of_sets(voters, candidates), True)
    most = budget if protocol == "cumulative" else candidates - 1
    if (voters * most + 1) ** (candidates - 1) <= _CELLS:
        return Leaders(_counted(protocol, voters, candidates, budget), True)
    return Leaders(_drawn(protocol, voters, candidates, budget), False)


def _first(shares: list[float] | tuple[float, ...], size: int) -> Floats:
    """Chance of each place of the order to be the first of the set that is left.

    A set of s from m candidates, all alike, has place i first in C(m - 1 - i, s - 1) of C(m, s)
    cases.
    """
    return np.array(
        [
            sum(share * comb(size - 1 - i, s) / comb(size, s + 1) for s, share in enumerate(shares))
            for i in range(size)
        ]
    )


def _of_choices(n: int, m: int) -> tuple[float, ...]:
    """One label a ballot: the ways to give s candidates the most, and the others fewer."""
    found = [0] * m
    for most in range(1, n + 1):
        for s in range(1, min(m, n // most) + 1):
            rest = n - s * most
            ways = factorial(n) // (factorial(most) ** s * factorial(rest))
            found[s - 1] += comb(m, s) * ways * _below(rest, m - s, most)
    return tuple(ways / m**n for ways in found)


@lru_cache(maxsize=4096)
def _below(n: int, m: int, bound: int) -> int:
    """Ways to spread n ballots over m candidates, fewer than `bound` on each."""
    if m == 0:
        return int(n == 0)
    return sum(comb(n, k) * _below(n - k, m - 1, bound) for k in range(min(n, bound - 1) + 1))


def _of_sets(n: int, m: int) -> tuple[float, ...]:
    """A set a ballot: each candidate's total is binomial, independent of the others'."""
    ways = [comb(n, k) for k in range(n + 1)]
    fewer = [sum(ways[:k]) for k in range(n + 1)]
    return tuple(
        sum(comb(m, s) * ways[k] ** s * fewer[k] ** (m - s) for k in range(n + 1)) / 2 ** (n * m)
        for s in range(1, m + 1)
    )


def _counted(protocol: Protocol, n: int, m: int, budget: int) -> tuple[float, ...]:
    """Totals of all but the last candidate on a lattice, from the transform of one ballot's.

    The last one's total is what is left of the whole mass.
    """
    most = budget if protocol == "cumulative" else m - 1
    side = n * most + 1
    one = np.zeros((side,) * (m - 1))
    ballots = np.indices((most + 1,) * m).reshape(m, -1)
    if protocol == "cumulative":
        ballots = ballots[:, ballots.sum(axis=0) == budget]
    else:
        ballots = ballots[:, (np.sort(ballots, axis=0) == np.arange(m)[:, None]).all(axis=0)]
    one[tuple(ballots[:-1])] = 1 / ballots.shape[1]
    axes = tuple(range(m - 1))
    chance = np.fft.irfftn(np.fft.rfftn(one, axes=axes) ** n, s=one.shape, axes=axes)
    totals = np.indices(one.shape).reshape(m - 1, -1)
    whole = n * int(ballots[:, 0].sum())
    every = np.concatenate([totals, whole - totals.sum(axis=0, keepdims=True)])
    possible = every[-1] >= 0
    led = (every == every.max(axis=0)).sum(axis=0)[possible]
    shares = np.bincount(led, weights=chance.reshape(-1)[possible], minlength=m + 1)[1:]
    return tuple(np.maximum(shares, 0.0).tolist())


def _drawn(protocol: Protocol, n: int, m: int, budget: int) -> tuple[float, ...]:
    draw = np.random.default_rng(_SEED)
    totals: Ints = np.zeros((DRAWS, m), dtype=np.int64)
    for _ in range(n):
        if protocol == "cumulative":  # every split of the points is as likely as every other
            totals += draw.multinomial(budget, draw.dirichlet(np.ones(m), size=DRAWS))
        else:
            totals += draw.permuted(np.tile(np.arange(m), (DRAWS, 1)), axis=1)
    led = (totals == totals.max(axis=1, keepdims=True)).sum(axis=1)
    return tuple((np.bincount(led, minlength=m + 1)[1:] / DRAWS).tolist())
