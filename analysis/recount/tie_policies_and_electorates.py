"""Questions 2 and 4: other ways to break ties, and other electorates."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Any, Final

import numpy as np
import polars as pl
from numpy.typing import NDArray

from tutorsim.analysis.ballots.vote_arrays import distinct_rows, own_candidates, set_columns
from tutorsim.analysis.counting.decisions_in_arrays import Outcomes, leaders_of
from tutorsim.analysis.recount.recount_plan import Plan
from tutorsim.analysis.recount.result_models import ElectorateRow, Exact, Interval, PolicyRow
from tutorsim.analysis.recount.turn_groups import (
    LISTED_VOTERS,
    AnyVoter,
    Electorate,
    Outcome,
    Policy,
    RecountCounts,
    TiedSet,
    TiedSets,
    TurnGroup,
    outcome_tables,
)
from tutorsim.analysis.statistics.array_types import Bools, Ints
from tutorsim.records import EpisodeRecord
from tutorsim.voting import first_in_order

_POLICIES: Final[Mapping[str, Callable[[Outcome, Sequence[str]], tuple[str, ...]]]] = {
    "tie_round": lambda outcome, _: (outcome.winner,),
    "no_tie_round": lambda outcome, order: (first_in_order(outcome.led, order),),
    "random": lambda outcome, _: outcome.undecided,
    "random_no_tie_round": lambda outcome, _: outcome.led,
}
"""Policy → those among whom a lot is drawn."""
_LOTS: Final = ("random", "random_no_tie_round")

Found = list[tuple[Outcome, str | None, int]]
Weighted = Mapping[Electorate, int]
"""Turns by how they end with votes weighted by confidence."""


def policy_counts(group: TurnGroup) -> tuple[Counter[Policy], TiedSets]:
    """How turns end under the order recounted under, and the sets that an order decides."""
    decided = group.decided
    ended = decided.outcomes()
    several = ended.led.sum(axis=1) > 1
    policies, tied = Counter[Policy](), Counter[TiedSet]()
    columns = [*set_columns(ended.led), *set_columns(ended.undecided), decided.held]
    for row, logged, n in _alike(group, columns):
        outcome = _outcome(group, ended, row, ties=True)
        policies[Policy(group.protocol, outcome, logged)] += n
        left = tuple(sorted(outcome.undecided))
        by_round = bool(decided.held[row] and several[row])
        by = "fallback" if len(left) > 1 else "tie_round" if by_round else "vote"
        tied[TiedSet(group.protocol, by, left)] += n
    return policies, TiedSets(dict(sorted(tied.items())))


def _alike(
    group: TurnGroup, columns: Sequence[NDArray[Any]], rows: Ints | None = None
) -> Iterator[tuple[int, str | None, int]]:
    """Turns that are alike in some columns, candidates and logged winner: one, who, how many."""
    every = [*columns, group.candidates[1], group.logged]
    if rows is not None:
        every = [column[rows] for column in every]
    first, number = distinct_rows(every)
    counts = np.bincount(number, minlength=len(first)).tolist()
    if rows is not None:
        first = rows[first]
    for row, n in zip(first.tolist(), counts, strict=True):
        yield row, group.logged_name(row), n


def _outcome(group: TurnGroup, ended: Outcomes, row: int, *, ties: bool = False) -> Outcome:
    names, of_names = group.candidates
    candidates = names[of_names[row]]

    def of(members: Bools) -> tuple[str, ...]:
        return tuple(candidates[c] for c in np.flatnonzero(members[row]).tolist())

    winner = candidates[int(ended.undecided[row].argmax())]
    if not ties:
        return Outcome(of(ended.standing), winner)
    return Outcome(of(ended.standing), winner, of(ended.led), of(ended.undecided))


def policy_rows(
    policies: Mapping[Policy, int], plan: Plan, protocols: Sequence[str | None]
) -> tuple[PolicyRow, ...]:
    """Every policy for every protocol; `None` among the protocols means all turns.

    Without a logged order only lots break ties.
    """
    return tuple(
        _policy_row(
            policy,
            protocol,
            [(p, n) for p, n in policies.items() if protocol in (None, p.protocol)],
            plan,
        )
        for policy in (_LOTS if plan.own_order is None else ("logged", *_POLICIES))
        for protocol in protocols
    )


def _policy_row(
    policy: str,
    protocol: str | None,
    turns: Sequence[tuple[Policy, int]],
    plan: Plan,
) -> PolicyRow:
    wins = dict.fromkeys(plan.order, Fraction(0))
    changed, compared = Fraction(0), 0
    for ended, n in turns:
        draw = _POLICIES.get(policy)
        lot = draw(ended.outcome, plan.order) if draw else (str(ended.logged),)
        for candidate in lot:
            wins[candidate] += Fraction(n, len(lot))
        if ended.logged is not None:
            compared += n
            changed += n * (1 - Fraction(lot.count(ended.logged), len(lot)))
    exact = {candidate: Exact.of(won) for candidate, won in wins.items()}
    return PolicyRow(
        policy=policy,
        protocol=protocol,
        turns=sum(n for _, n in turns),
        wins=exact,
        changed=Exact.of(changed),
        compared=compared if plan.own_order is None else None,
    )


def electorate_counts(group: TurnGroup) -> Counter[Electorate]:
    """How turns end under each electorate that their ballots alone can show.

    Without own votes a voter's mass on its own candidate is not counted; its other masses stay as
    they are. So a ranking still gives m - 1 to its first place, and a simple vote for oneself is
    lost.
    """
    found = Counter[Electorate]()
    for first in group.firsts:
        led = leaders_of(first.rounds)
        found += _first_votes(group, first.rows, first.candidates, led)
    voters = group.decided.final.voters
    if voters.shape[1] <= LISTED_VOTERS:
        for seat in range(voters.shape[1]):
            found += _ended(group, "leave_one_out", group.decided.without(seat), voters[:, seat])
    same = own_candidates(group.decided.final, group.order, group.voters, group.turns, group.own)
    own = np.flatnonzero(same.any(axis=(1, 2)))
    if len(own):
        found += _ended(group, "no_own_votes", group.decided.without_own(same), rows=own)
    return found


def _first_votes(
    group: TurnGroup, rows: Ints, candidates: tuple[list[tuple[str, ...]], Ints], led: Bools
) -> Counter[Electorate]:
    """The winners of first votes. Their ties were never put to a round."""
    lists, of_lists = candidates
    found = Counter[Electorate]()
    columns = [*set_columns(led), of_lists, group.candidates[1][rows], group.logged[rows]]
    first, number = distinct_rows(columns)
    counts = np.bincount(number, minlength=len(first)).tolist()
    for one, n in zip(first.tolist(), counts, strict=True):
        tied = tuple(lists[of_lists[one]][c] for c in np.flatnonzero(led[one]).tolist())
        outcome, logged = Outcome(tied, tied[0]), group.logged_name(rows[one])
        found[Electorate(group.protocol, "without_deliberation", None, outcome, logged)] += n
    return found


def _ended(
    group: TurnGroup,
    scenario: str,
    ended: Outcomes,
    voters: Ints | None = None,
    rows: Ints | None = None,
) -> Counter[Electorate]:
    """How turns end under one electorate; with the voter that each is counted for."""
    found = Counter[Electorate]()
    columns = [*set_columns(ended.standing), ended.winner, *([] if voters is None else [voters])]
    for row, logged, n in _alike(group, columns, rows):
        voter = None if voters is None else group.voters[voters[row]]
        outcome = _outcome(group, ended, row)
        found[Electorate(group.protocol, scenario, voter, outcome, logged)] += n
    return found


def any_voter_counts(group: TurnGroup) -> Counter[AnyVoter]:
    """What the absence of some one voter does to turns."""
    turns = len(group.logged)
    rows, known = np.arange(turns), group.logged >= 0
    flags = np.zeros((5, turns), dtype=np.bool_)
    flags[0] = known
    for seat in range(group.decided.final.voters.shape[1]):
        ended = group.decided.without(seat)
        several = ended.standing.sum(axis=1) > 1
        lost = known & ~ended.standing[rows, group.logged]
        point = known & (ended.winner != group.logged)
        flags[1:] |= np.stack([several, lost, point, known & several | lost])
    first, number = distinct_rows(list(flags))
    counts = np.bincount(number, minlength=len(first)).tolist()
    return Counter(
        {
            AnyVoter(group.protocol, *flags[:, row].tolist()): n
            for row, n in zip(first.tolist(), counts, strict=True)
        }
    )


def electorate_rows(
    counts: RecountCounts,
    plan: Plan,
    *,
    protocols: Sequence[str | None],
    weighted: Weighted,
) -> tuple[ElectorateRow, ...]:
    """Every scenario for every protocol; turns weighted by confidence come from a run's logs."""
    rows: list[ElectorateRow] = []
    for protocol in protocols:
        turns = sum(n for p, n in counts.policies.items() if protocol in (None, p.protocol))
        found: dict[tuple[str, str | None], Found] = {("without_deliberation", None): []}
        found |= {("leave_one_out", voter): [] for voter in _listed(counts, protocol)}
        found |= {("no_own_votes", None): [], ("confidence_weighted", None): []}
        for ended, n in (*counts.electorates.items(), *weighted.items()):
            group = found.get((ended.scenario, ended.voter))
            if group is not None and protocol in (None, ended.protocol):
                group.append((ended.outcome, ended.logged, n))
        rows += [
            _row(scenario, voter, protocol, turns, group, plan)
            for (scenario, voter), group in found.items()
        ]
        rows.append(_any_left_out(counts.any_voter, protocol, plan))
    return tuple(rows)


def _listed(counts: RecountCounts, protocol: str | None) -> list[str]:
    """The voters of a protocol, where they are few enough to list."""
    of = [names for p, names in counts.voters.items() if protocol in (None, p)]
    voters = sorted(frozenset[str]().union(*of))
    return voters if len(voters) <= LISTED_VOTERS else []


def _row(
    scenario: str,
    voter: str | None,
    protocol: str | None,
    turns: int,
    found: Found,
    plan: Plan,
) -> ElectorateRow:
    counted, ordered = outcome_tables(found, plan.order), plan.own_order is not None
    return ElectorateRow(
        scenario=scenario,
        voter=voter,
        protocol=protocol,
        turns=counted.turns,
        not_computable=turns - counted.turns,
        open_ties=counted.open_ties,
        wins=counted.wins if ordered else {c: _open(won) for c, won in counted.wins.items()},
        changed=counted.changed if ordered else _open(counted.changed),
        compared=None if ordered else counted.compared,
    )


def _open(found: Interval) -> Interval:
    """Bounds whose point was the order's; without one they are a figure only where they meet."""
    return found.model_copy(update={"point": found.lower if found.lower == found.upper else None})


def _any_left_out(found: Mapping[AnyVoter, int], protocol: str | None, plan: Plan) -> ElectorateRow:
    """Turns that the absence of some one voter changes."""
    of = [(one, n) for one, n in found.items() if protocol in (None, one.protocol)]
    ordered = plan.own_order is not None
    changed = Interval(
        lower=sum(n for one, n in of if one.lower),
        point=sum(n for one, n in of if one.point),
        upper=sum(n for one, n in of if one.upper),
    )
    return ElectorateRow(
        scenario="leave_one_out",
        voter=None,
        protocol=protocol,
        turns=sum(n for _, n in of),
        not_computable=0,
        open_ties=sum(n for one, n in of if one.open),
        wins={},
        changed=changed if ordered else _open(changed),
        compared=None if ordered else sum(n for one, n in of if one.compared),
    )


Stated = Mapping[tuple[str, int], Mapping[str, int | None]]


def weighted_counts(
    group: TurnGroup, turns: pl.DataFrame, episodes: Sequence[EpisodeRecord]
) -> Weighted:
    """Every mass times the confidence, 0 to 100, that the voter stated for its revised proposal.

    Only turns in which everybody who cast a ballot stated one.
    """
    stated = _stated(episodes)
    final = group.decided.final
    weights = np.zeros(final.cast.shape, dtype=np.int64)
    known = np.zeros(len(final.turn), dtype=np.bool_)
    keys = turns.select("episode_id", "turn").rows() if stated else []
    again = group.decided.again_by.sum(axis=2) > 0
    for row, turn in enumerate(final.turn.tolist() if stated else ()):
        said = stated.get(keys[turn], {})
        names = [group.voters[voter] for voter in final.voters[row].tolist()]
        given = [said.get(name) for name in names]
        weights[row] = [weight or 0 for weight in given]
        silent = np.array([weight is None for weight in given])
        known[row] = not (silent & (final.cast[row] | again[row])).any()
    rows = np.flatnonzero(known)
    ended = group.decided.weighted(weights)
    return _ended(group, "confidence_weighted", ended, rows=rows) if len(rows) else {}


def _stated(episodes: Sequence[EpisodeRecord]) -> Stated:
    """Episode and turn → role → confidence in its revised proposal."""
    return {
        (episode.episode_id, turn.turn): {
            role: proposal.confidence for role, proposal in turn.proposals_final.items()
        }
        for episode in episodes
        for turn in episode.turns
    }
