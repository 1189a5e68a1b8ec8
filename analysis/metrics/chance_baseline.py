"""How much flip and shift chance alone would give, and agreement beyond it.

Chance: the final votes of a protocol's turns are permuted among those turns, so initial and
final votes are drawn independently, each from what was cast. The expectation over all
permutations is the mean over all pairs of one turn's first vote and another's (or its own)
final vote, and is computed exactly. Only turns with the same candidates are permuted.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from math import fsum
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from tutorsim.analysis.ballots.recount_source import Source
from tutorsim.analysis.ballots.vote_arrays import Bools, Ints, Rounds
from tutorsim.analysis.counting.turn_winners import largest
from tutorsim.analysis.metrics.shift_flip_tie_fallback_rates import NO_LEADER
from tutorsim.analysis.metrics.turn_table import TurnTable, turn_table
from tutorsim.analysis.statistics.intervals_and_tests import NotEstimable, to_json
from tutorsim.vocabularies import BallotFormat

__all__ = ["ChanceBaseline", "chance_baselines"]

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class _Counts:
    """R counted votes over m candidates each."""

    turn: Ints
    candidates: Ints
    """Shape (R, m)."""
    totals: Ints
    """Shape (R, m)."""

    def of(self, rows: Ints) -> "_Counts":
        return _Counts(self.turn[rows], self.candidates[rows], self.totals[rows])


@dataclass(frozen=True, eq=False)
class _Alike:
    """Turns of one protocol with the same candidates in both votes."""

    before: _Counts
    after: _Counts
    """Final votes, turn by turn those of `before`."""

    @property
    def turns(self) -> int:
        return len(self.after.turn)


@dataclass(frozen=True)
class ChanceBaseline:
    """One protocol: what was observed, and what independent votes would give."""

    protocol: BallotFormat
    turns: int
    """Turns with a first vote."""
    flip: float | NotEstimable
    """Observed share; a tied first vote is led by the fallback order's pick."""
    flip_expected: float | NotEstimable
    flip_set: float | NotEstimable
    """Observed share of winners outside the set of first leaders."""
    flip_set_expected: float | NotEstimable
    shift: float | NotEstimable
    """Observed mean, over turns where it is defined."""
    shift_expected: float | NotEstimable
    kappa: float | NotEstimable
    """Cohen's κ between first leader and winner: 1 - flip / expected flip."""

    def to_json(self) -> dict[str, object]:
        return {name: to_json(value) for name, value in vars(self).items()}


def chance_baselines(source: Source) -> list[ChanceBaseline]:
    """The chance baseline of each protocol that has voting turns.

    Without a logged order that of the shift alone: a flip needs a leader of every first vote.
    """
    table = turn_table(source)
    found = [_of(protocol, table, own & table.voted) for protocol, own in table.protocols()]
    return found if source.ordered else [replace(row, **_NO_FLIP) for row in found]


_NO_FLIP: Final[Mapping[str, Any]] = dict.fromkeys(
    ("flip", "flip_expected", "flip_set", "flip_set_expected", "kappa"), NO_LEADER
)


def _of(protocol: BallotFormat, table: TurnTable, own: Bools) -> ChanceBaseline:
    turns = int(own.sum())
    if turns < 2:
        few = NotEstimable(f"{turns} turns with a first vote; permuting takes two")
        return ChanceBaseline(protocol, turns, few, few, few, few, few, few, few)
    groups = _groups(table, own)
    flip = Fraction(int(table.flip[own].sum()), turns)
    expected = _weighted([(_expected_flip(table, group), group.turns) for group in groups])
    kappa: float | NotEstimable = NotEstimable("every first leader and every winner is the same")
    if expected:
        kappa = float(1 - flip / expected)
    outside = [(_expected_outside(table, group), group.turns) for group in groups]
    return ChanceBaseline(
        protocol=protocol,
        turns=turns,
        flip=float(flip),
        flip_expected=float(expected),
        flip_set=int(table.outside[own].sum()) / turns,
        flip_set_expected=float(_weighted(outside)),
        shift=_observed_shift(table.shift[own]),
        shift_expected=_expected_shift(groups),
        kappa=kappa,
    )


def _groups(table: TurnTable, own: Bools) -> list[_Alike]:
    """Turns by the candidates of their two votes."""
    found = []
    for first in _counted(table.votes.initial, own):
        for last in _counted(table.votes.final, own):
            _, one, two = np.intersect1d(
                first.turn, last.turn, assume_unique=True, return_indices=True
            )
            before, after = first.of(one), last.of(two)
            stood = np.concatenate([before.candidates, after.candidates], axis=1)
            found += [_Alike(before.of(rows), after.of(rows)) for rows in _same_rows(stood)]
    return found


def _counted(rounds: Sequence[Rounds], own: Bools) -> list[_Counts]:
    """Totals of the turns asked for, those over as many candidates together."""
    kept = [part.of(np.flatnonzero(own[part.turn])) for part in rounds]
    sizes = sorted({part.candidates.shape[1] for part in kept})
    alike = [[part for part in kept if part.candidates.shape[1] == m] for m in sizes]
    return [
        _Counts(
            np.concatenate([part.turn for part in parts]),
            *_by_place(
                np.concatenate([part.candidates for part in parts]),
                np.concatenate([part.totals for part in parts]),
            ),
        )
        for parts in alike
    ]


def _by_place(candidates: Ints, totals: Ints) -> tuple[Ints, Ints]:
    """Columns by candidate, where turns of one order stand beside those of another."""
    order = np.argsort(candidates, axis=1)
    return tuple(np.take_along_axis(part, order, axis=1) for part in (candidates, totals))  # type: ignore[return-value]


def _same_rows(array: Ints) -> list[Ints]:
    """Positions of equal rows, one array for each different row."""
    if (array == array[:1]).all():
        return [np.arange(len(array))] if len(array) else []
    _, number = np.unique(array, axis=0, return_inverse=True)
    order = np.argsort(number.reshape(-1), kind="stable")
    return list(np.split(order, np.cumsum(np.bincount(number.reshape(-1)))[:-1]))


def _weighted(means: Sequence[tuple[Fraction, int]]) -> Fraction:
    return sum((mean * n for mean, n in means), Fraction(0)) / sum(n for _, n in means)


def _expected_flip(table: TurnTable, group: _Alike) -> Fraction:
    return _apart(table, table.leader[group.after.turn], group)


def _expected_outside(table: TurnTable, group: _Alike) -> Fraction:
    totals = group.before.totals
    led = largest(totals)
    return _apart(table, group.before.candidates[led], group)


def _apart(table: TurnTable, led: Ints, group: _Alike) -> Fraction:
    """Share of pairs of turns in which the winner of one is no leader of the other."""
    size = len(table.order)
    leads = np.bincount(led, minlength=size).tolist()
    wins = np.bincount(table.winner[group.after.turn], minlength=size).tolist()
    same = sum(a * b for a, b in zip(leads, wins, strict=True))
    return 1 - Fraction(same, group.turns**2)


def _observed_shift(shifts: Floats) -> float | NotEstimable:
    defined = shifts[~np.isnan(shifts)]
    if not len(defined):
        return NotEstimable("no turn has mass in both votes")
    return fsum(defined.tolist()) / len(defined)


def _expected_shift(groups: Sequence[_Alike]) -> float | NotEstimable:
    means = []
    for group in groups:
        before, after = _shares(group.before), _shares(group.after)
        if before and after:
            means.append((_mean_distance(before, after), group.turns))
    if not means:
        return NotEstimable("no turn has mass in both votes")
    return sum(mean * n for mean, n in means) / sum(n for _, n in means)


def _shares(counts: _Counts) -> dict[int, Floats]:
    """Candidate → its share of the mass in each vote that has mass; empty where none has."""
    mass = counts.totals.sum(axis=1)
    shares = counts.totals[mass > 0] / mass[mass > 0, None]
    if not len(shares):
        return {}
    return dict(zip(counts.candidates[0].tolist(), shares.T, strict=True))


def _mean_distance(before: dict[int, Floats], after: dict[int, Floats]) -> float:
    """Mean of half the absolute differences over all pairs: a sum over single candidates."""
    some = next(iter(before.values())), next(iter(after.values()))
    none = [np.zeros(len(one)) for one in some]
    stood = sorted({*before, *after})
    apart = [_mean_gap(before.get(c, none[0]), after.get(c, none[1])) for c in stood]
    return fsum(apart) / 2


def _mean_gap(first: Floats, second: Floats) -> float:
    """Mean of |x - y| over all pairs of one number and another, without listing the pairs.

    Of n sorted numbers y with k below x, the sum of |x - y| is x (2k - n) + all - 2 × those below.
    """
    x, times = np.unique(first, return_counts=True)
    y = np.sort(second)
    below = np.searchsorted(y, x)
    sums = np.concatenate([[0.0], np.cumsum(y)])
    gaps = x * (2 * below - len(y)) + sums[-1] - 2 * sums[below]
    return fsum(gaps * times) / (len(first) * len(second))  # the same sum on every processor
