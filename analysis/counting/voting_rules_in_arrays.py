"""Who leads under a rule, for many panels at once.

A ballot's part in a count is a row of numbers that depends on the ballot alone: its masses, who is
above whom, places up to a depth, a first place among those standing. Panels are sums of such rows.
Shares are scaled to integers, so that nothing is rounded, and whatever 64 bits do not hold is a
whole number of Python. Several columns of small numbers are added up as one number. Every rule
gives its tied winners, shape (m, panels), of m candidates. Tests hold the rules to
`tests.reference.plain_rules`, which counts ballot by ballot.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import compress
from math import lcm
from typing import Final

import numpy as np

from tutorsim.analysis.ballots.vote_arrays_and_profiles import LEFT_OUT, Masses
from tutorsim.analysis.counting.ballot_format_conversion import counted_form, projected_masses
from tutorsim.analysis.counting.names_and_parameters_of_rules import Rule
from tutorsim.analysis.counting.winners_as_logged_and_with_votes_changed import largest_mean
from tutorsim.analysis.statistics.array_types import Bools, Ints
from tutorsim.vocabularies import PROTOCOLS, Protocol

_BITS: Final = 62
"""Bits of a number in which columns are added up together."""


def winners(
    rule: Rule, ballots: Sequence[Mapping[str, int]], candidates: Sequence[str]
) -> tuple[str, ...]:
    """The tied winners of one vote; nobody where a rule elects nobody.

    `ballots`: what the rule counts, of every candidate: masses, or, for a rule of rankings, numbers
    of which a larger one stands above.
    """
    cast = [tuple(ballot[c] for c in candidates) for ballot in ballots]
    held = CountedPanels(whole(cast, len(candidates)), np.arange(len(cast))[None])
    return tuple(compress(candidates, held.leaders(rule)[0]))


def projected_leaders(
    panels: Ints,
    ballots: Sequence[Masses],
    *,
    m: int,
    protocol: Protocol,
    target: Rule,
    budget: int,
) -> Bools:
    """Shape (panels, candidates): the tied winners where ballots are projected into a target's
    format; a ranking of scores has those left out on its last level.

    `panels`: shape (panels, voters): numbers of ballots, -1 for an abstention. `ballots`: what the
    numbers stand for, under `protocol`.
    """
    if target not in OF_RANKINGS:
        form = counted_form(target)
        ballots = [projected_masses(ballot, protocol, form, budget) for ballot in ballots]
    return CountedPanels(whole(ballots, m), panels).leaders(target)


def whole(ballots: Sequence[Masses], m: int) -> Ints:
    """Shape (ballots, m): ballots in 64 bits, or as Python's numbers where these are too few."""
    largest = max(map(max, ballots), default=0)
    bits = np.int64 if largest < 1 << _BITS else object
    return np.array(ballots, dtype=bits).reshape(len(ballots), m)


@dataclass(frozen=True, eq=False)
class CountedPanels:
    """Panels of one size, and the sums over their ballots that rules count."""

    ballots: Ints = field(repr=False)
    """Shape (ballots, m): masses, or, for rules of rankings, numbers of which a larger one stands
    above."""
    panels: Ints = field(repr=False)
    """Shape (panels, voters): numbers of ballots, -1 for an abstention."""

    @staticmethod
    def of_elections(cast: Ints, votes: Bools) -> "CountedPanels":
        """Panels that share no ballot.

        `cast`: shape (panels, voters, m). `votes`: shape (panels, voters): false for an abstention.
        """
        number = np.where(votes, np.arange(votes.size).reshape(votes.shape), -1)
        return CountedPanels(cast.reshape(-1, cast.shape[2]), number)

    def leaders(self, rule: Rule) -> Bools:
        """Shape (panels, m): the tied winners of each panel."""
        count = _COUNTS[rule] if isinstance(rule, str) else _by_mass
        return np.asarray(count(self).T)

    @property
    def m(self) -> int:
        """How many candidates there are."""
        return int(self.ballots.shape[1])

    def masses(self) -> Ints:
        """Shape (m, panels): totals."""
        return _summed(self.ballots, self.panels)

    def mean_places(self) -> tuple[Ints, Ints]:
        """Shape (m, panels): twice the sum of places less one, below 0 so that the largest mean is
        the best, and how many ballots name it; equal candidates share their places."""
        above, equal = self._levels
        named = self.ballots != LEFT_OUT
        return -_summed((2 * above + equal) * named, self.panels), _summed(named, self.panels)

    def scores(self) -> tuple[Ints, Ints]:
        """Shape (m, panels): sums of the scores given, and how many are."""
        given = self.ballots != LEFT_OUT
        return _summed(self.ballots * given, self.panels), _summed(given, self.panels)

    def medians(self) -> Ints:
        """Shape (m, panels): the lower median of the scores given; below all without any."""
        every = np.concatenate([self.ballots, np.full((1, self.m), LEFT_OUT)])
        panels = np.pad(self.panels, ((0, 0), (0, 1)), constant_values=-1)
        cells = np.sort(every[panels], axis=1)  # those left out come first
        there = (cells != LEFT_OUT).sum(axis=1)
        place = cells.shape[1] - there + (there - 1) // 2
        return np.take_along_axis(cells, place[:, None], axis=1)[:, 0].T

    def margins(self) -> Ints:
        """Shape (m, m, panels): who is above whom, less the reverse."""
        first, second = np.triu_indices(self.m, 1)
        a, b = self.ballots[:, first], self.ballots[:, second]
        by_pair = _summed((a > b).astype(np.int8) - (a < b), self.panels)
        found = np.zeros((self.m, self.m, len(self.panels)), dtype=np.int64)
        found[first, second], found[second, first] = by_pair, -by_pair
        return found

    def cast(self) -> Ints:
        """Shape (panels,): the votes of all ballots, in the parts that ballots are split into."""
        return np.asarray((self.panels >= 0).sum(axis=1) * self._vote)

    def firsts(self, rows: Ints, standing: Sequence[int]) -> Ints:
        """Shape (standing, rows): each ballot's vote in equal parts to its best standing."""
        some = self.ballots[:, standing]
        best = some == some.max(axis=1, keepdims=True)
        share = self._vote // best.sum(axis=1, keepdims=True)
        return _summed(best * share, self.panels[rows])

    def places(self, depth: int) -> Ints:
        """Shape (m, panels): how often among the first places; a level shares its own."""
        above, equal = self._levels
        inside = np.clip(depth - above, 0, equal)
        return _summed(inside * (self._vote // equal), self.panels)

    @cached_property
    def _levels(self) -> tuple[Ints, Ints]:
        """Shape (ballots, m): how many stand above each candidate, and how many on its level."""
        above, equal = np.zeros((2, *self.ballots.shape), dtype=np.int64)
        for c in range(self.m):
            own = self.ballots[:, c, None]
            above[:, c], equal[:, c] = (self.ballots > own).sum(1), (self.ballots == own).sum(1)
        return above, equal

    @cached_property
    def _vote(self) -> Ints:
        """Shape (): one vote, in parts that every level can share out."""
        parts = lcm(*range(1, int(self._levels[1].max(initial=1)) + 1))
        fits = parts * (self.panels.shape[1] + 1) < 1 << _BITS
        return np.array(parts, dtype=np.int64 if fits else object)


def _summed(table: Ints | Bools, panels: Ints) -> Ints:
    """Shape (columns, panels): sums of the rows of a panel's ballots."""
    table = np.concatenate([table, np.zeros((1, table.shape[1]), dtype=table.dtype)])  # of -1
    turns, n = panels.shape
    low = int(table.min(initial=0))
    bits = max(1, (n * (int(table.max(initial=0)) - low)).bit_length())
    if bits > _BITS:
        return np.asarray(sum(table[panels.T].astype(object), np.zeros((turns, 1), object)).T)
    together = _BITS // bits
    found = np.empty((table.shape[1], turns), dtype=np.int64)
    for start in range(0, len(found), together):
        columns = table[:, start : start + together].astype(np.int64) - low
        shifts = bits * np.arange(columns.shape[1])
        words = (columns << shifts).sum(axis=1)
        total = np.zeros(turns, dtype=np.int64)
        for voter in range(n):
            total += words.take(panels[:, voter], mode="wrap")
        for column, shift in enumerate(shifts.tolist(), start=start):
            found[column] = (total >> shift & (1 << bits) - 1) + n * low
    return found


def _largest(score: Ints) -> Bools:
    """Shape (m, panels), as `score`: candidates of the largest score."""
    return np.asarray(score == score.max(axis=0))


def _by_mass(of: CountedPanels) -> Bools:
    """Shape (m, panels): candidates of the largest mass."""
    return _largest(of.masses())


def _minimax(of: CountedPanels) -> Bools:
    """Shape (m, panels): candidates whose worst margin is the best."""
    margins, own = of.margins(), np.arange(of.m)
    if of.m > 1:
        margins[own, own] = margins.max(initial=0) + 1
    return _largest(margins.min(axis=1))


def _schulze(of: CountedPanels) -> Bools:
    """Shape (m, panels): candidates to whom nobody has a stronger path than they have back."""
    path, own = of.margins(), range(of.m)
    for via in own:
        np.maximum(path, np.minimum(path[:, via, None], path[None, via]), out=path)
    path[own, own] = 0
    return np.asarray((path >= path.transpose(1, 0, 2)).all(axis=1))


def _condorcet(of: CountedPanels) -> Bools:
    """Shape (m, panels): the candidate who beats every other, or nobody."""
    beats, own = of.margins() > 0, np.arange(of.m)
    beats[own, own] = True
    return np.asarray(beats.all(axis=1))


def _bucklin(of: CountedPanels) -> Bools:
    """Shape (m, panels): who has most votes at the first depth at which somebody has a majority."""
    cast = of.cast()
    led = np.ones((of.m, len(cast)), dtype=np.bool_)
    open_ = np.ones(len(cast), dtype=np.bool_)
    for above in range(of.m):
        counts = of.places(above + 1)
        now = open_ & (2 * counts.max(axis=0) > cast)
        led[:, now] = _largest(counts)[:, now]
        open_ &= ~now
    return led


def _instant_runoff(of: CountedPanels) -> Bools:
    """Shape (m, panels): winners; candidates still standing are the bits of a number."""
    names = np.arange(of.m)
    bits = np.array([1 << c for c in range(of.m)], dtype=np.int64 if of.m <= _BITS else object)
    left = np.full(len(of.panels), bits.sum(), dtype=bits.dtype)
    open_ = np.ones(len(left), dtype=np.bool_)
    while open_.any():
        for among in np.unique(left[open_]):
            rows = np.flatnonzero(open_ & (left == among))
            standing = names[(bits & among) > 0]
            firsts = of.firsts(rows, standing)
            stay = firsts > firsts.min(axis=0)
            done = ~stay.any(axis=0)
            open_[rows[done]] = False
            left[rows[~done]] = bits[standing] @ stay[:, ~done]
    return np.asarray((bits[:, None] & left) > 0)


OF_RANKINGS: Final[dict[Rule, Callable[[CountedPanels], Bools]]] = {
    "copeland": lambda of: _largest(np.sign(of.margins()).sum(axis=1)),
    "minimax": _minimax,
    "schulze": _schulze,
    "condorcet": _condorcet,
    "bucklin": _bucklin,
    "instant_runoff": _instant_runoff,
}
"""The rules that read rankings: of a ballot only who stands above whom."""

_COUNTS: Final[dict[Rule, Callable[[CountedPanels], Bools]]] = {
    **OF_RANKINGS,
    **dict.fromkeys(PROTOCOLS, _by_mass),
    "mean_position": lambda of: largest_mean(*of.mean_places()),
    "score": lambda of: largest_mean(*of.scores()),
    "median_score": lambda of: _largest(of.medians()),
}
