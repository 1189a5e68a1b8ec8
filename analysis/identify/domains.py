"""What a voter may have cast under a target, given the ballot it cast.

Every logged ballot shows a weak order of the candidates: a single choice above the rest, a
strict ranking, points, or the approved above the others. Consistent ballots follow from it:

* simple: any candidate of the top level
* ranked: any linear extension
* cumulative: points that never rise from a level to the next
* approval: an upper set of levels, at least one; where the ballot was a single choice, any set
  that holds it

A ballot already in the target's format is only itself. Candidates are numbers here, in
the role-priority order.

For one candidate `c` most consistent ballots need not be looked at, because another one serves
`c` at least as well against every rival. What is left is a few *options* per voter: integer
vectors whose sums decide whether `c` wins. The functions below give them, each with the
argument why nothing is lost.
"""

from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import combinations, permutations, product
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from analysis.profiles import Masses
from analysis.rules import Target
from tutorsim.types import Protocol

__all__ = [
    "Domain",
    "Levels",
    "Options",
    "approval_options",
    "borda_options",
    "bucklin_options",
    "condorcet_options",
    "cumulative_options",
    "domain_of",
    "extensions",
    "free",
    "levels_of",
    "pair_options",
    "pairs",
    "simple_options",
    "single_minded",
]

Ints = NDArray[np.int32]


class Options(NamedTuple):
    """What one voter can add to the sums that decide whether a candidate wins."""

    rows: Ints
    """One row per option, one column per quantity."""
    low: Ints
    """The least of each column."""
    high: Ints
    """The most of each column."""

    @staticmethod
    def of(rows: Ints) -> "Options":
        """Options with their bounds."""
        return Options(rows, rows.min(axis=0), rows.max(axis=0))


Levels = tuple[tuple[int, ...], ...]


class Domain(NamedTuple):
    """The ballots that one voter may have cast; equal domains are interchangeable voters."""

    kind: Literal["order", "choice", "exact"]
    """A weak order; a single choice whose rivals may share an approval; the ballot itself."""
    data: Levels | Masses
    """Levels, best first, or the masses of an exact ballot."""

    @property
    def levels(self) -> Levels:
        """The weak order, also of an exact ballot."""
        return levels_of(self.data) if self.kind == "exact" else self.data  # type: ignore[return-value,arg-type]


def levels_of(masses: Masses) -> Levels:
    """The weak order of masses: equal masses share a level."""
    grades = sorted(set(masses), reverse=True)
    return tuple(tuple(c for c, mass in enumerate(masses) if mass == grade) for grade in grades)


def domain_of(ballot: Masses, *, protocol: Protocol, target: Target) -> Domain:
    """What the voter may have cast under `target`."""
    if target in ("cumulative", "approval") and protocol == target:
        return Domain("exact", ballot)
    kind: Literal["order", "choice"] = (
        "choice" if (protocol, target) == ("simple", "approval") else "order"
    )
    return Domain(kind, levels_of(ballot))


def free(m: int) -> Domain:
    """Any order at all: the domain of an exempt voter."""
    return Domain("order", (tuple(range(m)),))


def single_minded(c: int, m: int, mass: int) -> Domain:
    """The ballot that gives `c` all there is: an exempt voter's best for `c`."""
    return Domain("exact", tuple(mass if d == c else 0 for d in range(m)))


def pairs(m: int) -> list[tuple[int, int]]:
    """The pairs a < b, in the order that pairwise options have."""
    return list(combinations(range(m), 2))


def extensions(levels: Levels, top: int | None = None) -> Iterator[tuple[int, ...]]:
    """Linear extensions of a weak order, with `top` first in its level if given."""
    parts: list[list[tuple[int, ...]]] = []
    for level in levels:
        if top in level:
            rest = [d for d in level if d != top]
            parts.append([(top, *tail) for tail in permutations(rest)])
        else:
            parts.append(list(permutations(level)))
    for chosen in product(*parts):
        yield tuple(d for part in chosen for d in part)


@lru_cache(maxsize=1 << 16)
def simple_options(domain: Domain, c: int, m: int) -> Options:
    """Votes of `c` less votes of each other candidate.

    A voter that can name `c` names it: any other vote is worse for `c` against everybody.
    """
    top = domain.levels[0]
    if c in top:
        return _against(c, [[1] * m])
    return _against(c, [[-int(d == named) for d in range(m)] for named in top])


@lru_cache(maxsize=1 << 16)
def approval_options(domain: Domain, c: int, m: int) -> Options:
    """Approvals of `c` less approvals of each other candidate: one option.

    The smallest consistent set with `c` beats every set without it: candidates in both cost
    `c` nothing more, and against all others `c` gains.
    """
    if domain.kind == "exact":
        return _exact(domain, c, m)
    levels = domain.levels
    approved = {c, *levels[0]} if domain.kind == "choice" else set[int]()
    if domain.kind == "order":
        for level in levels:
            approved |= set(level)
            if c in level:
                break
    return _against(c, [[int(d not in approved) for d in range(m)]])


@lru_cache(maxsize=1 << 16)
def cumulative_options(domain: Domain, c: int, m: int, budget: int) -> Options:
    """Points of `c` less points of each other candidate.

    Let `u` candidates be `c` and all in levels above it. Each of them has at least what `c`
    has, so `c` gets at most q = ⌊budget / u⌋. A ballot that gives `c` less can be changed to
    give it one point more and nobody more than one point more, so `c` gets q without loss;
    what varies is only where the remaining budget - u·q < u points go.
    """
    if domain.kind == "exact":
        return _exact(domain, c, m)
    levels = domain.levels
    place = next(i for i, level in enumerate(levels) if c in level)
    upper = {c, *(d for level in levels[:place] for d in level)}
    share, left = divmod(budget, len(upper))
    rivals = [d for d in range(m) if d != c]
    rows = []
    for extra in _compositions(left, len(rivals)):
        points = [share if d in upper else 0 for d in range(m)]
        for d, more in zip(rivals, extra, strict=True):
            points[d] += more
        if _never_rises(points, levels):
            rows.append([share - mass for mass in points])
    return _against(c, rows)


@lru_cache(maxsize=1 << 14)
def borda_options(domain: Domain, c: int, m: int) -> Options:
    """Borda points of `c` less those of each other candidate.

    `c` stands first in its level: moving it up costs the passed candidate a point each time.
    """
    return _against(c, [_below(order, c, m) for order in extensions(domain.levels, c)])


@lru_cache(maxsize=1 << 16)
def condorcet_options(domain: Domain, c: int, m: int) -> Options:
    """Margin of `c` over each other candidate, `c` first in its level: one option."""
    above: set[int] = set()
    for level in domain.levels:
        if c in level:
            break
        above |= set(level)
    return _against(c, [[-1 if d in above else 1 for d in range(m)]])


@lru_cache(maxsize=1 << 14)
def bucklin_options(domain: Domain, c: int, m: int, depth: int) -> Options:
    """What makes `c` win Bucklin's count at `depth`, `c` first in its level.

    Columns: for each other `d`, minus (twice its presence in the first depth-1 places less one),
    so that a sum of 0 or more says that `d` had no majority earlier; for `c`, twice its presence
    in the first `depth` places less one, so that 1 or more is a majority; for each other
    `d`, presence of `c` less presence of `d` in the first `depth` places.
    """
    rivals = [d for d in range(m) if d != c]
    rows = set()
    for before, now in _openings(domain.levels, c, depth):
        rows.add(
            (
                *(1 - 2 * (d in before) for d in rivals),
                2 * (c in now) - 1,
                *((c in now) - (d in now) for d in rivals),
            )
        )
    return Options.of(np.array(sorted(rows), dtype=np.int32))


def _openings(levels: Levels, top: int, depth: int) -> Iterator[tuple[set[int], set[int]]]:
    """The first depth - 1 and the first `depth` places of extensions, `top` first in its level."""
    above: set[int] = set()
    for level in levels:
        inside = depth - 1 - len(above)
        if inside < len(level):
            break
        above |= set(level)
    for chosen in combinations(level, inside):
        if top in level and inside and top not in chosen:
            continue
        before = above | set(chosen)
        following = [top] if top in level and not inside else level
        for d in following:
            if d not in before:
                yield before, before | {d}


@lru_cache(maxsize=1 << 14)
def pair_options(domain: Domain, c: int | None, m: int) -> Options:
    """Who is above whom, +1 or -1 for each pair a < b.

    With `c` given it stands first in its level. Copeland, minimax and Schulze allow that:
    raising a winner changes only its own pairs, in its favour, keeps it a winner and makes
    no other candidate one.
    """
    rows = []
    for order in extensions(domain.levels, c):
        place = {d: i for i, d in enumerate(order)}
        rows.append([1 if place[a] < place[b] else -1 for a, b in pairs(m)])
    return Options.of(np.array(rows, dtype=np.int32).reshape(len(rows), -1))


def _against(c: int, rows: Sequence[Sequence[int]]) -> Options:
    """Rows over all candidates without the column of `c`, each row once."""
    found = np.delete(np.array(rows, dtype=np.int32), c, axis=1)
    return Options.of(np.unique(found, axis=0) if len(found) > 1 else found)


def _exact(domain: Domain, c: int, m: int) -> Options:
    masses = domain.data
    return _against(c, [[masses[c] - masses[d] for d in range(m)]])  # type: ignore[operator]


def _below(order: tuple[int, ...], c: int, m: int) -> list[int]:
    """How many places each candidate stands below `c`."""
    place = {d: i for i, d in enumerate(order)}
    return [place[d] - place[c] for d in range(m)]


def _compositions(total: int, parts: int) -> Iterator[tuple[int, ...]]:
    """All ways to write `total` as `parts` non-negative integers."""
    if parts == 0:
        if total == 0:
            yield ()
        return
    if parts == 1:
        yield (total,)
        return
    for first in range(total + 1):
        for rest in _compositions(total - first, parts - 1):
            yield (first, *rest)


def _never_rises(points: Sequence[int], levels: Levels) -> bool:
    """Whether no candidate has more points than one in a level above."""
    least: float = float("inf")
    for level in levels:
        if max(points[d] for d in level) > least:
            return False
        least = min(points[d] for d in level)
    return True
