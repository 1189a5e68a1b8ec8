"""Tallies of turns in arrays: how each ends, by its own rule and with votes left out.

Each step is that of `analysis.recount.cases`, on sets of bits: bit c is the c-th candidate of the
order.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from analysis.recount.cases import Outcome
from analysis.recount.combos import LISTED_VOTERS, AnyVoter, Electorate, Policy
from analysis.recount.packing import counted
from analysis.recount.summed import tied_set_of
from analysis.tally import TiedSet, TiedSets
from analysis.turnarrays import TurnArrays

__all__ = [
    "Ended",
    "TurnVotes",
    "any_voter_of",
    "electorates_of",
    "firsts",
    "leading_sets",
    "lowest",
    "policies_of",
]

Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]


class Ended(NamedTuple):
    """How each turn ends, as sets of bits."""

    standing: Ints
    winner: Ints
    """A single bit."""
    led: Ints
    undecided: Ints


class TurnVotes(NamedTuple):
    """The masses of turns, cell by cell, so that every step runs along the turns."""

    final: Ints
    """Shape (voters, candidates, turns); 0 in an abstention."""
    tie: Ints
    """Of the tie round, likewise; 0 where none was held."""
    held: Bools
    logged: Ints
    """Who led the final vote."""

    totals: Ints
    """Shape (candidates, turns)."""
    tie_totals: Ints

    @staticmethod
    def of(turns: TurnArrays) -> "TurnVotes":
        final, tie = _by_cell(turns.final), _by_cell(turns.tie)
        totals = _totals(final)
        return TurnVotes(final, tie, turns.held, _leaders(totals), totals, _totals(tie))

    def decided(self, final: Ints, tie: Ints) -> Ended:
        """`analysis.recount.cases.redecided` for some totals, shape (candidates, turns).

        A tie as logged goes to the tie round, then to the order.
        """
        led = _leaders(final)
        as_logged = led == self.logged
        again = as_logged & self.held & (np.bitwise_count(led) > 1)
        undecided = np.where(again, _leaders(tie, led), led)
        winner = lowest(undecided)
        return Ended(np.where(as_logged, winner, led), winner, led, undecided)

    def without(self, voter: int) -> Ended:
        """The end without one voter."""
        return self.decided(self.totals - self.final[voter], self.tie_totals - self.tie[voter])

    def without_cells(self, cells: Sequence[tuple[int, int]]) -> Ended:
        """The end without what some voters gave some candidates."""
        final, tie = self.totals.copy(), self.tie_totals.copy()
        for voter, candidate in cells:
            final[candidate] -= self.final[voter, candidate]
            tie[candidate] -= self.tie[voter, candidate]
        return self.decided(final, tie)


def _by_cell(masses: Ints) -> Ints:
    """Shape (voters, candidates, turns), in numbers as short as the totals allow."""
    most = int(masses.max(initial=0)) * masses.shape[1]
    kind = next(kind for kind in (np.int8, np.int16, np.int64) if most <= np.iinfo(kind).max)
    cells = np.maximum(masses, 0).astype(kind)
    return np.ascontiguousarray(cells.transpose(1, 2, 0))


def _totals(cells: Ints) -> Ints:
    return np.asarray(np.add.reduce(cells, axis=0, dtype=cells.dtype))


def lowest(sets: Ints) -> Ints:
    """The first candidate of each set, as a set."""
    return sets & -sets


def firsts(sets: Ints, places: Sequence[int]) -> Ints:
    """The member of each set that has the lowest place, as a set."""
    table = np.zeros(1 << len(places), dtype=np.int64)
    for bits in range(1, len(table)):
        members = [c for c in range(len(places)) if bits >> c & 1]
        table[bits] = 1 << min(members, key=places.__getitem__)
    return np.asarray(table[sets])


def leading_sets(masses: Ints) -> Ints:
    """Who has the largest total, as bits: the tally of all four protocols.

    Args:
        masses: Shape (turns, voters, candidates); below 0 where a voter abstained.
    """
    return _leaders(_totals(_by_cell(masses)))


def _leaders(totals: Ints, among: Ints | None = None) -> Ints:
    """Who has the largest of some totals, shape (candidates, turns), as bits.

    Args:
        totals: At least 0.
        among: Who stands in each turn, as bits; all by default.
    """
    if among is not None:
        bits = (1 << np.arange(len(totals)))[:, None]
        totals = np.where(among & bits > 0, totals, -1)
    top = totals.max(axis=0)
    led = np.zeros(totals.shape[1], dtype=np.int64)
    for c, own in enumerate(totals):
        led |= (own == top).astype(np.int64) << c
    return led


def policies_of(turns: TurnArrays, ended: Ended, logged: Ints) -> tuple[Counter[Policy], TiedSets]:
    """How turns ended, and the tied sets."""
    policies, tied = Counter[Policy](), Counter[TiedSet]()
    columns = [ended.led, ended.undecided, ended.winner, logged, turns.held]
    for (led, undecided, winner, won, held), n in counted(columns):
        names = [turns.candidates[winner.bit_length() - 1]]
        outcome = Outcome(tuple(names), names[0], _names(turns, led), _names(turns, undecided), ())
        if len(outcome.undecided) == 1:
            outcome = outcome._replace(undecided=(outcome.winner,))
        policy = Policy(turns.protocol, outcome, turns.candidates[won.bit_length() - 1])
        policies[policy] += n
        tied[tied_set_of(policy, held=bool(held))] += n
    return policies, TiedSets(dict(sorted(tied.items())))


def _names(turns: TurnArrays, bits: int) -> tuple[str, ...]:
    return tuple(c for i, c in enumerate(turns.candidates) if bits >> i & 1)


def electorates_of(turns: TurnArrays, votes: TurnVotes, logged: Ints) -> Counter[Electorate]:
    """How turns end under other electorates."""
    found = Counter[Electorate]()
    for scenario, voter, ended in _electorates(turns, votes):
        for (standing, winner, won), n in counted([ended.standing, ended.winner, logged]):
            first = turns.candidates[winner.bit_length() - 1]
            outcome = Outcome(_names(turns, standing), first, (), (), ())
            name = turns.candidates[won.bit_length() - 1]
            found[Electorate(turns.protocol, scenario, voter, outcome, name)] = n
    return found


def _electorates(turns: TurnArrays, votes: TurnVotes) -> Iterator[tuple[str, str | None, Ended]]:
    if turns.initial is not None:
        led = leading_sets(turns.initial)
        yield "without_deliberation", None, Ended(led, lowest(led), led, led)
    if len(turns.voters) <= LISTED_VOTERS:
        for voter, name in enumerate(turns.voters):
            yield "leave_one_out", name, votes.without(voter)
    own = [
        (v, turns.candidates.index(name))
        for v, name in enumerate(turns.voters)
        if name in turns.candidates
    ]
    if own:
        yield "no_own_votes", None, votes.without_cells(own)


def any_voter_of(turns: TurnArrays, votes: TurnVotes, logged: Ints) -> Counter[AnyVoter]:
    """What the absence of some one voter does to turns."""
    flags = np.zeros((4, len(logged)), dtype=np.bool_)
    for voter in range(len(turns.voters)):
        ended = votes.without(voter)
        flags[0] |= np.bitwise_count(ended.standing) > 1
        flags[1] |= ended.standing & logged == 0
        flags[2] |= ended.winner != logged
        flags[3] |= ended.standing != logged
    found = Counter[AnyVoter]()
    for row, n in counted(list(flags)):
        found[AnyVoter(turns.protocol, *(bool(flag) for flag in row))] += n
    return found
