"""Questions 1, 2, 4 and 7: every fallback order, other ways to break ties, other electorates, and
the raw replies of the votes, read again by a stricter and a more lenient reader.

The winner under an order is the first of the turn's undecided set, so the counts of those sets are
sufficient. Cost depends on the number of distinct sets (at most 2^m) and orders, never on the
number of turns.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from itertools import permutations
from math import factorial
from typing import Any, Final, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from tutorsim.analysis.ballots.vote_arrays import (
    count,
    distinct_rows,
    fold,
    own_candidates,
    set_columns,
)
from tutorsim.analysis.counting.turn_winners_in_arrays import Outcomes, leaders_of
from tutorsim.analysis.recount.recount_plan_and_own_rules import Plan
from tutorsim.analysis.recount.result_models import (
    ElectorateRow,
    Exact,
    Interval,
    OrderRow,
    OrderTable,
    PolicyRow,
    ReadingRow,
    RoleWins,
)
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
from tutorsim.analysis.runs.branch_origins_and_shared_turns import without_shared_turns
from tutorsim.analysis.statistics.array_types import Bools, Ints
from tutorsim.ballots_and_decisions import (
    Decision,
    cast_as,
    decide,
    first_in_order,
    leaders,
    masses_of,
    read_ballot,
    repair_ballot,
    resolve,
    tally,
)
from tutorsim.records import BallotRecord, EpisodeRecord, Turn
from tutorsim.vocabularies import MAX_ROLES, READINGS, Reading

LISTED_ORDERS: Final = 720
"""Orders that a table lists one by one: all of six candidates."""


class Sweep(NamedTuple):
    """Every order over the candidates that the order can decide between."""

    orders: tuple[tuple[str, ...], ...]
    """Lexicographic in the logged order, which comes first."""
    candidates: tuple[str, ...]
    wins: Ints
    """Shape (orders, candidates): turns won."""
    changed: Ints
    """Shape (orders,): turns with another winner than under the first order."""


def sweep_orders(tied: TiedSets, *, order: Sequence[str]) -> Sweep:
    """Winners of every turn under every order.

    `order`: the logged order, of at most eight candidates.
    """
    place = {c: i for i, c in enumerate(order)}
    places = _places(len(order))
    wins = np.zeros(places.shape, dtype=np.int64)
    changed = np.zeros(len(places), dtype=np.int64)
    for undecided, n in _by_set(tied).items():
        members = np.array([place[c] for c in undecided])
        first = members[places[:, members].argmin(axis=1)]
        wins[np.arange(len(places)), first] += n
        changed += n * (first != first[0])
    return Sweep(tuple(permutations(order)), tuple(order), wins, changed)


def _by_set(tied: TiedSets) -> Counter[tuple[str, ...]]:
    """Turns by what is undecided, whatever the protocol."""
    counts = Counter[tuple[str, ...]]()
    for turns, n in tied:
        counts[turns.undecided] += n
    return counts


@cache
def _places(m: int) -> NDArray[np.int8]:
    """The place of each of m candidates in every order, shape (orders, m)."""
    orders = np.array(list(permutations(range(m))), dtype=np.int8)
    return orders.argsort(axis=1).astype(np.int8)


def order_table(
    tied: TiedSets, *, order: Sequence[str], protocol: str | None, logged: bool = True
) -> OrderTable:
    """The table of one protocol's turns, or of all with `None`.

    `logged`: whether the order decided any turn: what another one changes is counted against it.
    """
    turns = tied if protocol is None else tied.of(protocol)
    sets = _by_set(turns)
    sizes = _by_size(sets)
    swept = sweep_orders(turns, order=order) if 0 < len(order) <= MAX_ROLES else None
    listed = swept is not None and len(swept.orders) <= LISTED_ORDERS
    return OrderTable(
        protocol=protocol,
        logged_order=tuple(order) if logged else (),
        turns=turns.turns,
        decided_by_order=turns.turns - sizes[1],
        candidates=tuple(_role_wins(sets, c, order if logged else None) for c in order),
        changed_expected=Exact.of(turns.turns - _by_lot(sizes)) if logged else None,
        changed_most=int(swept.changed.max()) if swept is not None and logged else None,
        orders=factorial(len(order)),
        listed=_rows(swept, logged=logged) if swept is not None and listed else (),
    )


def _rows(swept: Sweep, *, logged: bool) -> tuple[OrderRow, ...]:
    return tuple(
        OrderRow(
            order=order,
            wins=dict(zip(swept.candidates, wins, strict=True)),
            changed=changed if logged else None,
        )
        for order, wins, changed in zip(
            swept.orders, swept.wins.tolist(), swept.changed.tolist(), strict=True
        )
    )


def _by_size(sets: Mapping[tuple[str, ...], int]) -> Counter[int]:
    sizes = Counter[int]()
    for members, n in sets.items():
        sizes[len(members)] += n
    return sizes


def _by_lot(sizes: Mapping[int, int]) -> Fraction:
    """What one member of each set wins on average when lots are drawn."""
    return sum((Fraction(n, size) for size, n in sizes.items()), Fraction(0))


def _role_wins(
    sets: Mapping[tuple[str, ...], int], candidate: str, order: Sequence[str] | None
) -> RoleWins:
    """Extremes without a sweep: an order that puts the candidate first, or last."""
    within = {members: n for members, n in sets.items() if candidate in members}
    sizes = _by_size(within)
    alone = sizes[1]
    logged = None
    if order is not None:
        logged = sum(n for tied, n in within.items() if first_in_order(tied, order) == candidate)
    return RoleWins(
        candidate=candidate,
        logged=logged,
        least=alone,
        most=sizes.total(),
        expected=Exact.of(_by_lot(sizes)),
        robust=alone,
        by_order=None if logged is None else logged - alone,
        share_by_order=Exact.of(Fraction(logged - alone, logged)) if logged else None,
    )


# --- Questions 2 and 4: tie policies and electorates ---------------------------------------------

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
    several = count(ended.led, 1) > 1
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
    policy: str, protocol: str | None, turns: Sequence[tuple[Policy, int]], plan: Plan
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
    own = np.flatnonzero(fold(np.logical_or, fold(np.logical_or, same, 2), 1))
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
        several = count(ended.standing, 1) > 1
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
    counts: RecountCounts, plan: Plan, *, protocols: Sequence[str | None], weighted: Weighted
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
    scenario: str, voter: str | None, protocol: str | None, turns: int, found: Found, plan: Plan
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


# --- Question 7: replies read again --------------------------------------------------------------

Masses = dict[str, int]


@dataclass(frozen=True)
class _Reread:
    """One turn under one reading."""

    protocol: str
    logged: str
    outcome: Outcome
    ballots: int
    changed: int
    abstained: int


def read_again(
    ballot: BallotRecord, *, candidates: Sequence[str], reading: Reading, budget: int
) -> Masses:
    """A ballot's masses under another reading; empty where it cannot be read.

    The first reply that reads counts. Points that sum to another number are rescaled from the
    last reply as in a run, except under the strict reading, which never repairs. In a branch
    a ballot may count under another protocol than its format's; one that does not determine a
    ballot of that protocol has no mass.
    """
    labels = list(ballot.labels)
    replies = [reply for reply in (ballot.raw_first, ballot.raw) if reply is not None]
    choice = None
    for reply in replies:
        choice = read_ballot(reply, labels, form=ballot.protocol, budget=budget, reading=reading)
        if choice is not None:
            break
    if choice is None and reading != "strict":
        choice = repair_ballot(ballot.raw, labels, form=ballot.protocol, budget=budget)
    named = None if choice is None else resolve(choice, ballot.labels)
    if named is not None:
        named = cast_as(named, form=ballot.protocol, protocol=ballot.rule)
    return masses_of(named, candidates, protocol=ballot.rule)


def reading_rows(
    episodes: Sequence[EpisodeRecord],
    *,
    order: Sequence[str],
    budget: int,
    protocols: Sequence[str | None],
) -> tuple[ReadingRow, ...]:
    """Every reading for every protocol; nothing where there are no episodes."""
    if not episodes:
        return ()
    complete = [e for e in without_shared_turns(episodes) if e.status == "complete"]
    panel = [(turn, turn.decision) for e in complete for turn in e.turns if turn.decision]
    readable = [(turn, decision) for turn, decision in panel if _has_raw(turn)]
    rows = []
    for reading in READINGS:
        reread = [
            _reread(turn, decision, reading=reading, order=order, budget=budget)
            for turn, decision in readable
        ]
        for protocol in protocols:
            found = [r for r in reread if protocol in (None, r.protocol)]
            turns = [t for t, _ in panel if protocol in (None, _protocol(t))]
            rows.append(_readings_row(reading, protocol, found, len(turns) - len(found), order))
    return tuple(rows)


def _readings_row(
    reading: Reading,
    protocol: str | None,
    found: Sequence[_Reread],
    not_computable: int,
    order: Sequence[str],
) -> ReadingRow:
    counted = outcome_tables([(r.outcome, r.logged, 1) for r in found], order)
    return ReadingRow(
        reading=reading,
        protocol=protocol,
        turns=counted.turns,
        not_computable=not_computable,
        ballots=sum(r.ballots for r in found),
        ballots_changed=sum(r.changed for r in found),
        abstained=sum(r.abstained for r in found),
        open_ties=counted.open_ties,
        wins=counted.wins,
        changed=counted.changed,
    )


def _reread(
    turn: Turn, decision: Decision, *, reading: Reading, order: Sequence[str], budget: int
) -> _Reread:
    def again(ballots: Sequence[BallotRecord], among: Sequence[str]) -> list[Masses]:
        return [
            read_again(ballot, candidates=among, reading=reading, budget=budget)
            for ballot in ballots
        ]

    held = () if turn.tie_round is None else turn.tie_round.ballots
    candidates = tuple(decision.tallies)
    final, tie = again(turn.ballots_final, candidates), again(held, decision.tied_in_vote)
    outcome = _decided(final, candidates, order=order, logged=decision, tie=tie if held else None)
    read, logged = [*final, *tie], [ballot.mass for ballot in _counted(turn)]
    return _Reread(
        protocol=_protocol(turn),
        logged=decision.winner,
        outcome=outcome,
        ballots=len(read),
        changed=sum(now != then for now, then in zip(read, logged, strict=True)),
        abstained=sum(not masses for masses in read),
    )


def _decided(
    final: Sequence[Masses],
    candidates: Sequence[str],
    *,
    order: Sequence[str],
    logged: Decision,
    tie: Sequence[Masses] | None,
) -> Outcome:
    """Decide from ballots read again.

    A tied set that the log put to a tie round is decided by that round, read likewise; one that
    the log itself left to the order goes to the order. Any other tie stays open.
    """
    led = leaders(tally(final, candidates))
    as_logged = set(led) == set(leaders(logged.tallies))
    decided = decide(final, candidates, order=order, tie_round=tie if as_logged else None)
    return Outcome((decided.winner,) if as_logged else led, decided.winner)


def _counted(turn: Turn) -> Iterator[BallotRecord]:
    """The ballots that decide: final and tie round."""
    yield from turn.ballots_final
    if turn.tie_round is not None:
        yield from turn.tie_round.ballots


def _protocol(turn: Turn) -> str:
    """The protocol of the deciding ballots as tables name it."""
    ballot = turn.ballots_final[0]
    return "rich" if ballot.protocol == "rich" else ballot.rule


def _has_raw(turn: Turn) -> bool:
    """Whether replies were kept: a ballot that counted has text behind it."""
    ballots = list(_counted(turn))
    return any(b.raw for b in ballots) and all(b.raw or not b.mass for b in ballots)
