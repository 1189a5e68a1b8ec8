"""The summary of turns in arrays: the same counts as case by case, thousands of turns at a time.

Each step is that of `analysis.recount.cases` and `analysis.recount.answers`, on sets of bits: bit c
is the c-th candidate of the order. For outcomes bit 0 is nobody and bit c + 1 a candidate. Turns
are packed into a number each, and what is equal is counted once.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cache
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from analysis.identify import READINGS_OF_TIES, Possible, TieReading
from analysis.identify.domains import domain_of
from analysis.identify.leading import ProjectedPanels
from analysis.identify.panels import Winners, covered
from analysis.identify.tabled import numbered, possible_of
from analysis.profiles import Masses
from analysis.recount.answers import Answer, Projection
from analysis.recount.cases import Outcome
from analysis.recount.combos import (
    LISTED_VOTERS,
    AnyVoter,
    Electorate,
    Policy,
    RuleCombo,
    RuleKey,
    Summary,
    few,
)
from analysis.recount.summed import Plan, tied_set_of
from analysis.rules import Target
from analysis.tally import TiedSet, TiedSets
from analysis.turnarrays import TurnArrays

__all__ = ["fits", "leading_sets", "summary_of_arrays"]

Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]

_NEVER: Final = 31
"""Packed instead of a breakdown point where there is none."""
_FEW: Final = 1 << 20
"""Numbers up to which each has a place in a table of counts."""
_LARGEST: Final = 1 << 63


def fits(turns: TurnArrays, plan: Plan) -> bool:
    """Whether every question about turns of this size can be answered by table."""
    m, n = len(turns.candidates), len(turns.voters)
    if not 1 < m <= 4 or n >= _NEVER:
        return False
    _, ballots = numbered(turns.final)
    return all(
        covered(
            target,
            m,
            n,
            budget=plan.budget,
            domains=[domain_of(b, protocol=turns.protocol, target=target) for b in ballots],
        )
        for target in plan.targets
    )


class _Ended(NamedTuple):
    """How each turn ends, as sets of bits."""

    standing: Ints
    winner: Ints
    """A single bit."""
    led: Ints
    undecided: Ints


class _Votes(NamedTuple):
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
    def of(turns: TurnArrays) -> "_Votes":
        final, tie = _by_cell(turns.final), _by_cell(turns.tie)
        totals = _totals(final)
        return _Votes(final, tie, turns.held, _leaders(totals), totals, _totals(tie))

    def decided(self, final: Ints, tie: Ints) -> _Ended:
        """`analysis.recount.cases.redecided` for some totals, shape (candidates, turns).

        A tie as logged goes to the tie round, then to the order.
        """
        led = _leaders(final)
        as_logged = led == self.logged
        again = as_logged & self.held & (np.bitwise_count(led) > 1)
        undecided = np.where(again, _leaders(tie, led), led)
        winner = _lowest(undecided)
        return _Ended(np.where(as_logged, winner, led), winner, led, undecided)

    def without(self, voter: int) -> _Ended:
        """The end without one voter."""
        return self.decided(self.totals - self.final[voter], self.tie_totals - self.tie[voter])

    def without_cells(self, cells: Sequence[tuple[int, int]]) -> _Ended:
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


def summary_of_arrays(turns: TurnArrays, plan: Plan) -> Summary:
    """Count turns of one shape; only where `fits`."""
    votes = _Votes.of(turns)
    ended = votes.decided(votes.totals, votes.tie_totals)
    own = [plan.own_order.index(c) for c in turns.candidates]
    logged = _firsts(ended.undecided, own)
    policies, tied = _policies(turns, ended, logged)
    electorates = Counter[Electorate]()
    for scenario, voter, other in _electorates(turns, votes):
        electorates.update(_electorate(turns, scenario, voter, other, logged))
    return Summary(
        tied,
        policies,
        electorates,
        _any_voter(turns, votes, logged),
        {turns.protocol: few(turns.voters)},
        _rules(turns, plan, ended.winner, logged),
    )


def _lowest(sets: Ints) -> Ints:
    """The first candidate of each set, as a set."""
    return sets & -sets


def _firsts(sets: Ints, places: Sequence[int]) -> Ints:
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


def _policies(turns: TurnArrays, ended: _Ended, logged: Ints) -> tuple[Counter[Policy], TiedSets]:
    policies, tied = Counter[Policy](), Counter[TiedSet]()
    columns = [ended.led, ended.undecided, ended.winner, logged, turns.held]
    for (led, undecided, winner, won, held), n in _counted(columns):
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


def _counted(columns: Sequence[NDArray[np.generic]]) -> Iterator[tuple[tuple[int, ...], int]]:
    """Different rows over columns of small numbers, with how often each occurs."""
    packed = _packed(columns)
    if int(packed.max(initial=0)) < _FEW:
        counts = np.bincount(packed)
        values = np.flatnonzero(counts)
        counts = counts[values]
    else:
        values, counts = np.unique(packed, return_counts=True)
    yield from zip(_unpacked(values, columns), counts.tolist(), strict=True)


def _packed(columns: Sequence[NDArray[np.generic]]) -> Ints:
    """The rows of some columns as a number each."""
    packed = np.zeros(len(columns[0]), dtype=np.int64)
    for column, width in zip(columns, _widths(columns), strict=True):
        packed <<= width
        packed |= column.astype(np.int64)
    return packed


def _unpacked(values: Ints, columns: Sequence[NDArray[np.generic]]) -> list[tuple[int, ...]]:
    """What some numbers stand for: from each column one value."""
    found = []
    for width in reversed(_widths(columns)):
        found.append((values & (1 << width) - 1).tolist())
        values = values >> width
    return list(zip(*reversed(found), strict=True))


def _widths(columns: Sequence[NDArray[np.generic]]) -> list[int]:
    return [int(column.max(initial=0)).bit_length() for column in columns]


def _electorates(turns: TurnArrays, votes: _Votes) -> Iterator[tuple[str, str | None, _Ended]]:
    if turns.initial is not None:
        led = leading_sets(turns.initial)
        yield "without_deliberation", None, _Ended(led, _lowest(led), led, led)
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


def _electorate(
    turns: TurnArrays, scenario: str, voter: str | None, ended: _Ended, logged: Ints
) -> dict[Electorate, int]:
    found: dict[Electorate, int] = {}
    for (standing, winner, won), n in _counted([ended.standing, ended.winner, logged]):
        first = turns.candidates[winner.bit_length() - 1]
        outcome = Outcome(_names(turns, standing), first, (), (), ())
        name = turns.candidates[won.bit_length() - 1]
        found[Electorate(turns.protocol, scenario, voter, outcome, name)] = n
    return found


def _any_voter(turns: TurnArrays, votes: _Votes, logged: Ints) -> Counter[AnyVoter]:
    flags = np.zeros((4, len(logged)), dtype=np.bool_)
    for voter in range(len(turns.voters)):
        ended = votes.without(voter)
        flags[0] |= np.bitwise_count(ended.standing) > 1
        flags[1] |= ended.standing & logged == 0
        flags[2] |= ended.winner != logged
        flags[3] |= ended.standing != logged
    found = Counter[AnyVoter]()
    for row, n in _counted(list(flags)):
        found[AnyVoter(turns.protocol, *(bool(flag) for flag in row))] += n
    return found


class _Panels(NamedTuple):
    """The different panels of one stage; who of its voters cast what makes no difference."""

    numbers: Ints
    """Shape (panels, voters): numbers of ballots, rising."""
    ballots: list[Masses]
    of: Ints
    """Shape (turns,): the panel of each turn."""

    @staticmethod
    def found(masses: Ints) -> "_Panels":
        numbers, ballots = numbered(masses)
        rising = np.sort(numbers, axis=1)
        turns, voters = rising.shape
        if (len(ballots) + 1) ** voters >= _LARGEST:
            return _Panels(rising, ballots, np.arange(turns))
        packed = np.zeros(turns, dtype=np.int64)
        for voter in range(voters):
            packed = packed * (len(ballots) + 1) + rising[:, voter] + 1
        _, first, of = np.unique(packed, return_index=True, return_inverse=True)
        return _Panels(rising[first], ballots, of)


class _Stage(NamedTuple):
    """The panels of one stage under one target."""

    winners: Winners
    projected: ProjectedPanels
    led: Ints
    """The projection's leaders."""


def _stage(panels: _Panels, turns: TurnArrays, target: Target, plan: Plan, exempt: int) -> _Stage:
    numbers, ballots, _ = panels
    m = len(turns.candidates)
    winners = possible_of(
        numbers, ballots, turns.protocol, target, m=m, exempt=exempt, budget=plan.budget
    )
    projected = ProjectedPanels(
        numbers, ballots, m=m, protocol=turns.protocol, target=target, budget=plan.budget
    )
    return _Stage(winners, projected, projected.leaders((1 << m) - 1))


class _Coded(NamedTuple):
    """What turns add to a row of the rules' table, by number."""

    of: Ints
    """Shape (turns,)."""
    meaning: list[tuple[int, ...]]


def _coded(columns: Sequence[Ints], of: Ints | None = None) -> _Coded:
    """Different rows over columns of small numbers; of panels, where turns have panels."""
    values, number = np.unique(_packed(columns), return_inverse=True)
    return _Coded(number if of is None else number[of], _unpacked(values, columns))


def _rules(
    turns: TurnArrays, plan: Plan, winner: Ints, logged: Ints
) -> dict[RuleKey, Counter[RuleCombo]]:
    n = len(turns.voters)
    final = _Panels.found(turns.final)
    initial = None if turns.initial is None else _Panels.found(turns.initial)
    won = _coded([logged])
    found: dict[RuleKey, Counter[RuleCombo]] = {}
    for target in plan.targets:
        last = _stage(final, turns, target, plan, n)
        most = max(plan.exempt, default=0)
        first = None if initial is None else _stage(initial, turns, target, plan, most)
        for reading in READINGS_OF_TIES:
            for k in plan.exempt:
                if target == turns.protocol:
                    parts = [_coded(_own(last, final, winner << 1, reading, min(k, n))), won]
                else:
                    lost = _breakdown(last.winners, reading)
                    parts = [_coded([*_answers(last, reading, min(k, n)), lost], final.of), won]
                if first is not None and initial is not None:
                    parts.append(_coded(_answers(first, reading, min(k, n)), initial.of))
                found[RuleKey(turns.protocol, target, reading, k)] = _combos(turns, parts)
    return found


def _sets(winners: Winners, reading: TieReading) -> NDArray[np.uint8]:
    return winners.tied if reading == "set" else winners.fallback


def _breakdown(winners: Winners, reading: TieReading) -> Ints:
    """See `analysis.recount.answers.Recounter`: 0 where several may win to begin with."""
    sets = _sets(winners, reading).astype(np.int64)
    return _point(sets, sets[:, 0])


def _point(sets: Ints, start: Ints) -> Ints:
    """The first number of exempt voters with which somebody else may win."""
    lost = (sets & ~start[:, None] != 0)[:, 1:]
    point = np.where(lost.any(axis=1), lost.argmax(axis=1) + 1, _NEVER)
    return np.where(np.bitwise_count(start) > 1, 0, point)


def _own(stage: _Stage, panels: _Panels, winner: Ints, reading: TieReading, k: int) -> list[Ints]:
    """Under a turn's own rule its winner is known, of which a tie round is part."""
    sets = _sets(stage.winners, reading).astype(np.int64)
    possible = sets[:, k][panels.of] | winner if k else winner
    lost = _point(sets[panels.of], winner)
    return [possible, winner, np.zeros_like(winner), lost]


def _answers(stage: _Stage, reading: TieReading, k: int) -> list[Ints]:
    """Possible outcomes, the projection's outcome, and whether that had to move."""
    possible = _sets(stage.winners, reading)[:, k].astype(np.int64)
    outcome = _outcome(stage.led, reading)
    moved = outcome & ~possible != 0
    for among in np.unique(possible[moved] >> 1).tolist():
        rows = np.flatnonzero(moved & (possible >> 1 == among))
        within = _outcome(stage.projected.leaders(among, rows), reading)
        standing = _outcome(np.full(len(rows), among), reading)
        outcome[rows] = np.where(within & ~possible[rows] == 0, within, standing)
    return [possible, outcome, moved.astype(np.int64)]


def _outcome(led: Ints, reading: TieReading) -> Ints:
    """Leaders as an outcome: nobody, the first of them, or all."""
    chosen = led if reading == "set" else _lowest(led)
    return np.where(led == 0, 1, chosen << 1)


def _combos(turns: TurnArrays, parts: Sequence[_Coded]) -> Counter[RuleCombo]:
    """Combinations of a final vote's answers, the logged winner, and a first vote's answers."""
    found = Counter[RuleCombo]()
    for (last, won, *rest), n in _counted([part.of for part in parts]):
        possible, outcome, moved, lost = parts[0].meaning[last]
        answer = Answer(
            _possible(possible), _projection(outcome, moved), None if lost == _NEVER else lost
        )
        led = None
        if rest:
            possible, outcome, moved = parts[2].meaning[rest[0]]
            led = _possible(possible), _projection(outcome, moved)
        logged = turns.candidates[parts[1].meaning[won][0].bit_length() - 1]
        found[RuleCombo(turns.candidates, logged, answer, led)] += n
    return found


@cache
def _possible(bits: int) -> Possible:
    return Possible(_members(bits), settled=True)


@cache
def _projection(bits: int, moved: int) -> Projection:
    return Projection((), _members(bits), moved=bool(moved))


def _members(bits: int) -> tuple[int, ...]:
    """Outcomes as `analysis.identify` numbers them: -1 is nobody."""
    return tuple(c - 1 for c in range(bits.bit_length()) if bits >> c & 1)
