"""The summary of turns in arrays: the same counts as case by case, thousands of turns at a time.

Each step is that of `analysis.recount.answers`, on sets of bits: bit 0 is nobody and bit c + 1 is
the c-th candidate of the order. Different panels are answered once, and turns that add the same to
a row are counted once.
"""

from collections import Counter
from collections.abc import Sequence
from functools import cache
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from analysis.identify import READINGS_OF_TIES, Possible, TieReading
from analysis.identify.leading import ProjectedPanels
from analysis.identify.numbering import distinct_rows, numbered
from analysis.identify.panels import Winners, covered
from analysis.identify.tabled import domains_for, possible_of
from analysis.profiles import Masses
from analysis.recount.answers import Answer, Projection
from analysis.recount.combos import RuleCombo, RuleKey, Summary, few
from analysis.recount.packing import counted, packed, unpacked
from analysis.recount.summed import Plan
from analysis.recount.tallied import (
    TurnVotes,
    any_voter_of,
    electorates_of,
    firsts,
    lowest,
    policies_of,
)
from analysis.rules import Target
from analysis.turnarrays import TurnArrays

__all__ = ["fits", "summary_of_arrays"]

Ints = NDArray[np.int64]

_NEVER: Final = 31
"""Packed instead of a breakdown point where there is none."""


def fits(turns: TurnArrays, plan: Plan) -> bool:
    """Whether every question about turns of this size can be answered by table."""
    m, n = len(turns.candidates), len(turns.voters)
    if not 1 < m <= 4 or n >= _NEVER:
        return False
    ballots = _ballots(turns) if "cumulative" in plan.targets else ()
    return all(
        covered(
            target,
            m,
            n,
            budget=plan.budget,
            domains=domains_for(ballots, turns.protocol, target),
        )
        for target in plan.targets
    )


def _ballots(turns: TurnArrays) -> tuple[Masses, ...]:
    """The different ballots of both votes."""
    stages = [stage for stage in (turns.final, turns.initial) if stage is not None]
    return tuple(dict.fromkeys(ballot for stage in stages for ballot in numbered(stage)[1]))


def summary_of_arrays(turns: TurnArrays, plan: Plan) -> Summary:
    """Count turns of one shape; only where `fits`."""
    votes = TurnVotes.of(turns)
    ended = votes.decided(votes.totals, votes.tie_totals)
    own = [plan.own_order.index(c) for c in turns.candidates]
    logged = firsts(ended.undecided, own)
    ends, tied = policies_of(turns, ended, logged)
    return Summary(
        tied,
        ends,
        electorates_of(turns, votes, logged),
        any_voter_of(turns, votes, logged),
        {turns.protocol: few(turns.voters)},
        _rules(turns, plan, ended.winner, logged),
    )


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
        rows, of = distinct_rows(np.sort(numbers, axis=1))
        return _Panels(rows, ballots, of)


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
    values, number = np.unique(packed(columns), return_inverse=True)
    return _Coded(number if of is None else number[of], unpacked(values, columns))


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
    chosen = led if reading == "set" else lowest(led)
    return np.where(led == 0, 1, chosen << 1)


def _combos(turns: TurnArrays, parts: Sequence[_Coded]) -> Counter[RuleCombo]:
    """Combinations of a final vote's answers, the logged winner, and a first vote's answers."""
    found = Counter[RuleCombo]()
    for (last, won, *rest), n in counted([part.of for part in parts]):
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
