"""Who leads under a rule, for many panels at once: `analysis.counting.rule_definitions` in arrays.

A ballot's part in a count is a row of numbers that depends on the ballot alone: masses as they
are projected, who is above whom, places up to a depth, a first place among those standing. Panels
are sums of such rows. Shares are scaled to integers, so that nothing is rounded. Several columns
of small numbers are added up as one number. The plain rules are the definition, and tests hold
these to them.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property, lru_cache
from itertools import combinations, permutations
from math import lcm
from typing import Final
from typing import Protocol as Interface

import numpy as np

from tutorsim.analysis.ballots.vote_arrays import LEFT_OUT, Masses, levels_of
from tutorsim.analysis.counting.ballot_format_conversion import (
    Projected,
    counted_form,
    projected_masses,
    projected_winners,
)
from tutorsim.analysis.counting.rule_definitions import Approvals, RankVector, Rule, rank_scores
from tutorsim.analysis.counting.turn_winners_in_arrays import largest_mean
from tutorsim.analysis.statistics.array_types import Bools, Ints
from tutorsim.vocabularies import Protocol

_BITS: Final = 62
"""Of a number in which columns are added up together."""
MOST_RANKED: Final = 62
"""Candidates in an election by rankings: those standing are the bits of a number."""
_SHARED: Final = 32
"""Candidates up to which one vote in equal shares, and the sum of thousands, fits into 62 bits."""


class Countable(Interface):
    """Sums over the ballots of panels that rules of rankings count.

    `panels`: as the class names them, by their ballots or by number. `standing`: the candidates
    that are counted.
    """

    @property
    def candidates(self) -> int:
        """How many there are, standing or not."""

    def cast(self, panels: Ints) -> Ints:
        """Shape (panels,): the votes of all ballots, in the parts that ballots are split into."""

    def margins(self, panels: Ints, standing: Sequence[int]) -> Ints:
        """Shape (standing, standing, panels): who is above whom, less the reverse."""

    def firsts(self, panels: Ints, standing: Sequence[int]) -> Ints:
        """Shape (standing, panels): each ballot's vote in equal parts to its best standing."""

    def places(self, panels: Ints, standing: Sequence[int], depth: int) -> Ints:
        """Shape (standing, panels): how often among the first places; a level shares its own."""


class ProjectedPanels:
    """Panels of one size whose ballots are projected into a target's format.

    `panels`: shape (panels, voters): numbers of ballots, -1 for an abstention. `ballots`: what the
    numbers stand for, under `protocol`.
    """

    def __init__(
        self,
        panels: Ints,
        ballots: Sequence[Masses],
        *,
        m: int,
        protocol: Protocol,
        target: Rule,
        budget: int,
    ) -> None:
        if not isinstance(target, (RankVector, Approvals)) and target not in _COUNTS:
            raise NotImplementedError(
                f"The rule {target!r} is in analysis.counting.rule_definitions and not here."
            )
        self._panels = panels
        weak = [_ranks(ballot) for ballot in ballots]
        self._orders = list(dict.fromkeys(weak))
        number = {order: i for i, order in enumerate(self._orders)}
        self._order_of = np.array([number[order] for order in weak] + [-1])
        self._m = m
        self._target = target
        form = counted_form(target)
        projected = [projected_masses(b, protocol, form, budget) for b in ballots]
        self._projected = projected

    def leaders(self) -> Bools:
        """Shape (panels, candidates): the tied winners of each panel."""
        if self._m > _SHARED or self._largest_total >= 1 << _BITS:
            return self._one_by_one()
        scored = isinstance(self._target, (RankVector, Approvals))
        count = _by_mass if scored else _COUNTS[self._target]
        return np.asarray(count(self, self._panels, range(self._m)).T)

    @property
    def _largest_total(self) -> int:
        """What nobody's masses exceed together."""
        return int(self._panels.shape[1]) * max(map(max, self._projected), default=0)

    def _one_by_one(self) -> Bools:
        """The same by the plain rules: their whole numbers may be of any size."""
        led = np.zeros((len(self._panels), self._m), dtype=np.bool_)
        for row, panel in zip(led, self._panels.tolist(), strict=True):
            masses = tuple(self._projected[i] for i in panel if i >= 0)
            orders = [self._orders[self._order_of[i]] for i in panel if i >= 0]
            rankings = tuple(
                tuple(tuple(str(c) for c in level) for level in levels_of(order))
                for order in orders
            )
            projected = Projected(masses, rankings)
            row[list(projected_winners(projected, self._target, range(self._m)))] = True
        return led

    def masses(self, panels: Ints, standing: Sequence[int]) -> Ints:
        """Shape (standing, panels): totals."""
        table = np.array([*self._projected, (0,) * self._m], dtype=np.int64)
        return _summed(table[:, standing], panels)

    def margins(self, panels: Ints, standing: Sequence[int]) -> Ints:
        """Shape (standing, standing, panels): who is above whom, less the reverse."""
        pairs = list(combinations(range(len(standing)), 2))
        cells = [(standing[i], standing[j]) for i, j in pairs]
        rows = [[int(b[c] > b[d]) - int(b[c] < b[d]) for c, d in cells] for b in self._orders]
        found = np.zeros((len(standing), len(standing), len(panels)), dtype=np.int64)
        for (i, j), margin in zip(pairs, self._by_order(rows, len(pairs), panels), strict=True):
            found[i, j], found[j, i] = margin, -margin
        return found

    def mean_places(self, panels: Ints, standing: Sequence[int]) -> tuple[Ints, Ints]:
        """Shape (standing, panels): twice the sum of places less one, and how many ballots name it;
        equal candidates share their places."""
        ballots = self._cast(standing)
        own, others = ballots[:, :, None], ballots[:, None, :]
        named = ballots != LEFT_OUT
        above = 2 * (others > own).sum(axis=2) + (others == own).sum(axis=2)
        return _summed(above * named, panels), _summed(named.astype(np.int64), panels)

    def scores(self, panels: Ints, standing: Sequence[int]) -> tuple[Ints, Ints]:
        """Shape (standing, panels): sums of the scores given, and how many are."""
        given = self._cast(standing)
        there = given != LEFT_OUT
        return _summed(given * there, panels), _summed(there.astype(np.int64), panels)

    def medians(self, panels: Ints, standing: Sequence[int]) -> Ints:
        """Shape (standing, panels): the lower median of the scores given; below all without any."""
        cells = np.sort(self._cast(standing)[panels], axis=1)  # those left out come first
        there = (cells != LEFT_OUT).sum(axis=1)
        place = cells.shape[1] - there + (there - 1) // 2
        last = np.clip(place, 0, cells.shape[1] - 1)[:, None]
        return np.take_along_axis(cells, last, axis=1)[:, 0].T

    def _cast(self, standing: Sequence[int]) -> Ints:
        """Shape (ballots + 1, standing): the ballots, and one that leaves everybody out."""
        rows = [*self._projected, (LEFT_OUT,) * self._m]
        return np.array(rows, dtype=np.int64)[:, standing]

    def firsts(self, panels: Ints, standing: Sequence[int]) -> Ints:
        """Shape (standing, panels): each ballot's vote in equal parts to its best standing."""
        rows = [self._first(b, standing) for b in self._orders]
        return self._by_order(rows, len(standing), panels)

    def _first(self, ballot: Masses, standing: Sequence[int]) -> list[int]:
        best = max(ballot[c] for c in standing)
        tied = [c for c in standing if ballot[c] == best]
        return [_share(self._m) // len(tied) * (c in tied) for c in standing]

    def places(self, panels: Ints, standing: Sequence[int], depth: int) -> Ints:
        """Shape (standing, panels): how often among the first places; a level shares its own."""
        rows = [self._places(tuple(b[c] for c in standing), depth) for b in self._orders]
        return self._by_order(rows, len(standing), panels)

    def _places(self, ballot: Masses, depth: int) -> list[int]:
        found, above = [0] * len(ballot), 0
        for level in levels_of(ballot):
            inside = min(max(depth - above, 0), len(level))
            for c in level:
                found[c] = _share(self._m) * inside // len(level)
            above += len(level)
        return found

    def _by_order(self, rows: Sequence[Sequence[int]], width: int, panels: Ints) -> Ints:
        table = np.array([*rows, [0] * width], dtype=np.int64).reshape(len(rows) + 1, width)
        return _summed(table[self._order_of], panels)

    def cast(self, panels: Ints) -> Ints:
        """Shape (panels,): the votes of all ballots, in the parts that ballots are split into."""
        return np.asarray((panels >= 0).sum(axis=1) * _share(self._m))

    @property
    def candidates(self) -> int:
        """How many there are, standing or not."""
        return self._m


@dataclass(frozen=True, eq=False)
class RankedElections:
    """Elections of one size by strict rankings, counted under any rule of rankings.

    Of no more than `MOST_RANKED` candidates.
    """

    place: Ints = field(repr=False)
    """Shape (elections, voters, candidates): the place of each candidate, 0 the first."""
    votes: Bools = field(repr=False)
    """Shape (elections, voters): false for a voter who casts nothing."""

    def winners(self, target: Rule) -> frozenset[frozenset[int]]:
        """The different sets of tied winners."""
        every, standing = np.arange(len(self.place)), range(self.candidates)
        scores = rank_scores(target, self.candidates)
        if scores is None:
            led = _OF_RANKINGS[target](self, every, standing)
        else:
            given = np.array(scores)[self.place] * self.votes[:, :, None]
            led = _largest(given.sum(axis=1).T)
        return _different(led)

    def most_named(self, named: Ints) -> frozenset[frozenset[int]]:
        """The different sets of those who are named most, each ballot the first of its ranking.

        `named`: how many, shape (elections, voters).
        """
        marks = (self.place < named[:, :, None]) & self.votes[:, :, None]
        return _different(_largest(marks.sum(axis=1).T))

    @property
    def candidates(self) -> int:
        """How many there are, standing or not."""
        return int(self.place.shape[2])

    def cast(self, panels: Ints) -> Ints:
        """Shape (panels,): how many ballots are cast; a strict ranking is never split."""
        return np.asarray(self.votes[panels].sum(axis=1))

    def margins(self, panels: Ints, standing: Sequence[int]) -> Ints:
        """Shape (standing, standing, panels): who is above whom, less the reverse."""
        rows, columns = np.array(standing)[:, None, None], np.array(standing)[:, None]
        return np.asarray(self._margins[rows, columns, panels])

    @cached_property
    def _margins(self) -> Ints:
        above = self.place[:, :, :, None] < self.place[:, :, None, :]
        times = (above & self.votes[:, :, None, None]).sum(axis=1)
        return np.ascontiguousarray((times - times.transpose(0, 2, 1)).transpose(1, 2, 0))

    def firsts(self, panels: Ints, standing: Sequence[int]) -> Ints:
        """Shape (standing, panels): the votes of all for their best standing."""
        first = self.place[panels][:, :, standing].argmin(axis=2)[:, :, None]
        return self._times(first == np.arange(len(standing)), panels)

    def places(self, panels: Ints, standing: Sequence[int], depth: int) -> Ints:
        """Shape (standing, panels): how often among the first places of all candidates."""
        return self._times(self.place[panels][:, :, standing] < depth, panels)

    def _times(self, named: Bools, panels: Ints) -> Ints:
        return np.asarray((named & self.votes[panels][:, :, None]).sum(axis=1).T)


@lru_cache(maxsize=1 << 16)
def _ranks(ballot: Masses) -> Masses:
    """The weak order of a ballot as masses: 0 for the last level, 1 for the next, …."""
    level = {mass: i for i, mass in enumerate(sorted(set(ballot)))}
    return tuple(level[mass] for mass in ballot)


@cache
def _share(m: int) -> int:
    return lcm(*range(1, m + 1))


def _summed(table: Ints, panels: Ints) -> Ints:
    """Shape (columns, panels): sums of the voters' rows; the last row stands for -1."""
    turns, n = panels.shape
    low = int(table.min(initial=0))
    bits = max(1, (n * (int(table.max(initial=0)) - low)).bit_length())
    together = max(1, _BITS // bits)
    found = np.empty((table.shape[1], turns), dtype=np.int64)
    for start in range(0, len(found), together):
        columns = table[:, start : start + together] - low
        shifts = bits * np.arange(columns.shape[1])
        words = (columns << shifts).sum(axis=1)
        total = np.zeros(turns, dtype=np.int64)
        for voter in range(n):
            total += words.take(panels[:, voter], mode="wrap")
        for column, shift in enumerate(shifts.tolist(), start=start):
            found[column] = (total >> shift & (1 << bits) - 1) + n * low
    return found


def _different(led: Bools) -> frozenset[frozenset[int]]:
    """The different sets of leaders; `led`: shape (candidates, elections)."""
    rows = {tuple(row) for row in led.T.tolist()}
    return frozenset(frozenset(c for c, leads in enumerate(row) if leads) for row in rows)


def _largest(score: Ints) -> Bools:
    return np.asarray(score == score.max(axis=0))


def _by_mass(of: ProjectedPanels, panels: Ints, standing: Sequence[int]) -> Bools:
    return _largest(of.masses(panels, standing))


def _mean_position(of: ProjectedPanels, panels: Ints, standing: Sequence[int]) -> Bools:
    places, times = of.mean_places(panels, standing)
    return largest_mean(-places, times)


def _score(of: ProjectedPanels, panels: Ints, standing: Sequence[int]) -> Bools:
    return largest_mean(*of.scores(panels, standing))


def _median_score(of: ProjectedPanels, panels: Ints, standing: Sequence[int]) -> Bools:
    return _largest(of.medians(panels, standing))


def _copeland(of: Countable, panels: Ints, standing: Sequence[int]) -> Bools:
    return _largest(np.sign(of.margins(panels, standing)).sum(axis=1))


def _minimax(of: Countable, panels: Ints, standing: Sequence[int]) -> Bools:
    margins = of.margins(panels, standing)
    if len(standing) > 1:
        own = np.arange(len(standing))
        margins[own, own] = margins.max(initial=0) + 1
    return _largest(margins.min(axis=1))


def _schulze(of: Countable, panels: Ints, standing: Sequence[int]) -> Bools:
    path = of.margins(panels, standing)
    own = range(len(standing))
    for via, c, d in permutations(own, 3):
        np.maximum(path[c, d], np.minimum(path[c, via], path[via, d]), out=path[c, d])
    path[own, own] = 0
    return np.asarray((path >= path.transpose(1, 0, 2)).all(axis=1))


def _condorcet(of: Countable, panels: Ints, standing: Sequence[int]) -> Bools:
    beats = of.margins(panels, standing) > 0
    own = np.arange(len(standing))
    beats[own, own] = True
    return np.asarray(beats.all(axis=1))


def _bucklin(of: Countable, panels: Ints, standing: Sequence[int]) -> Bools:
    cast = of.cast(panels)
    led = np.ones((len(standing), len(panels)), dtype=np.bool_)
    open_ = np.ones(len(panels), dtype=np.bool_)
    for depth in range(1, len(standing) + 1):
        counts = of.places(panels, standing, depth)
        now = open_ & (2 * counts.max(axis=0) > cast)
        led[:, now] = _largest(counts)[:, now]
        open_ &= ~now
    return led


def _instant_runoff(of: Countable, panels: Ints, standing: Sequence[int]) -> Bools:
    bits = 1 << np.arange(of.candidates)
    left = np.full(len(panels), int(bits[list(standing)].sum()))
    open_ = np.ones(len(panels), dtype=np.bool_)
    while open_.any():
        for among in np.unique(left[open_]).tolist():
            rows = np.flatnonzero(open_ & (left == among))
            names = [c for c in range(of.candidates) if among >> c & 1]
            firsts = of.firsts(panels[rows], names)
            stay = firsts > firsts.min(axis=0)
            done = ~stay.any(axis=0)
            open_[rows[done]] = False
            left[rows[~done]] = bits[names] @ stay[:, ~done]
    return np.asarray((left >> np.array(standing)[:, None] & 1).astype(np.bool_))


_OF_RANKINGS: Final[dict[Rule, Callable[[Countable, Ints, Sequence[int]], Bools]]] = {
    "copeland": _copeland,
    "minimax": _minimax,
    "schulze": _schulze,
    "condorcet": _condorcet,
    "bucklin": _bucklin,
    "instant_runoff": _instant_runoff,
}
_COUNTS: Final[dict[Rule, Callable[[ProjectedPanels, Ints, Sequence[int]], Bools]]] = {
    **_OF_RANKINGS,
    "simple": _by_mass,
    "ranked": _by_mass,
    "cumulative": _by_mass,
    "approval": _by_mass,
    "mean_position": _mean_position,
    "score": _score,
    "median_score": _median_score,
}
