"""Questions 1, 2, 4 and 7: every fallback order, other ways to break ties, other electorates, and
the raw replies of the votes, read again by a stricter and a more lenient reader.

The winner under an order is the first of the turn's undecided set, so the counts of those sets are
sufficient. Cost depends on the number of distinct sets (at most 2^m) and orders, never on the
number of turns.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from functools import cache, partial
from itertools import permutations, product
from math import factorial
from typing import Final, NamedTuple

import numpy as np

from tutorsim.analysis.ballots.vote_arrays_and_profiles import (
    count,
    count_rows,
    distinct_rows,
    fold,
    own_candidates,
    set_columns,
)
from tutorsim.analysis.counting.winners_as_logged_and_with_votes_changed import leaders_of
from tutorsim.analysis.recount.decided_turns_of_one_format_and_outcome_counts import (
    AnyVoter,
    Electorate,
    Ended,
    OutcomeTables,
    RecountCounts,
    StageVotes,
    TurnGroup,
    outcome_tables,
)
from tutorsim.analysis.recount.recount_plan_and_own_rules import Plan
from tutorsim.analysis.recount.result_models import (
    ElectorateRow,
    Interval,
    OrderRow,
    OrderTable,
    PolicyRow,
    ReadingRow,
    RoleWins,
)
from tutorsim.analysis.runs.branch_counts_turns_siblings_share import without_shared_turns
from tutorsim.analysis.statistics import by_key
from tutorsim.analysis.statistics.array_types import Bools, Ints
from tutorsim.ballot_reading_and_decisions import (
    Decision,
    cast_as,
    decide,
    leaders,
    masses_of,
    read_ballot,
    repair_ballot,
    resolve,
    tally,
)
from tutorsim.records import BallotRecord, EpisodeRecord, Turn
from tutorsim.vocabularies import MAX_ROLES, READINGS, Reading

TiedSets = Mapping[tuple[str, ...], int]
"""Turns by what counting left, which is one candidate unless an order decides: all that a sweep
over orders needs."""

LISTED_ORDERS: Final = 720
"""Orders that a table lists one by one: all of six candidates."""
LISTED_VOTERS: Final = 12
"""Voters that get a row each in `leave_one_out`; with more there is only the row of any one."""
COUNTED_ORDERS: Final = 18
"""Candidates whose orders are counted in digits: 18! is the last below 2^53."""


def tied_sets(ended: Mapping[Ended, int]) -> TiedSets:
    """Turns by tied set, whatever the protocol."""
    sets = Counter[tuple[str, ...]]()
    for turn, n in ended.items():
        sets[turn.undecided] += n
    return sets


def sweep_orders(tied: TiedSets, *, order: Sequence[str]) -> tuple[Ints, Ints]:
    """Turns that each candidate wins under every order, and turns with another winner than logged.

    `order`: the logged order, of at most eight candidates. Orders are lexicographic in it, so that
    it comes first. Shapes (orders, candidates) and (orders,).
    """
    place = {c: i for i, c in enumerate(order)}
    places = _places(len(order))
    wins = np.zeros(places.shape, dtype=np.int64)
    changed = np.zeros(len(places), dtype=np.int64)
    for undecided, n in tied.items():
        members = np.array([place[c] for c in undecided])
        first = members[places[:, members].argmin(axis=1)]
        wins[np.arange(len(places)), first] += n
        changed += n * (first != first[0])
    return wins, changed


@cache
def _places(m: int) -> Ints:
    """The place of each of m candidates in every order, shape (orders, m)."""
    orders = np.array(list(permutations(range(m))), dtype=np.int8)
    return orders.argsort(axis=1).astype(np.int8)


def order_table(
    tied: TiedSets, *, order: Sequence[str], protocol: str | None, logged: bool = True
) -> OrderTable:
    """The table of one protocol's turns, or of all with `None`.

    `logged`: whether the order decided any turn: what another one changes is counted against it.
    """
    place = {c: i for i, c in enumerate(order)}
    sizes, won = Counter[int](), Counter[str]()
    own = {c: Counter[int]() for c in order}
    for members, n in tied.items():
        sizes[len(members)] += n
        won[min(members, key=place.__getitem__)] += n
        for c in members:
            own[c][len(members)] += n
    turns, m = sizes.total(), len(order)
    swept = sweep_orders(tied, order=order) if 0 < m <= MAX_ROLES else None
    most = int(swept[1].max()) if swept is not None and logged else None
    listed: tuple[OrderRow, ...] = ()
    if swept is not None and len(swept[0]) <= LISTED_ORDERS:
        listed = tuple(
            OrderRow(
                order=one,
                wins=dict(zip(order, wins, strict=True)),
                changed=changed if logged else None,
            )
            for one, wins, changed in zip(
                permutations(order), *(column.tolist() for column in swept), strict=True
            )
        )
    return OrderTable(
        protocol=protocol,
        logged_order=tuple(order) if logged else (),
        turns=turns,
        decided_by_order=turns - sizes[1],
        candidates=tuple(_role_wins(c, own[c], won[c] if logged else None) for c in order),
        changed_expected=turns - _by_lot(sizes) if logged else None,
        changed_most=most,
        orders=factorial(m) if m <= COUNTED_ORDERS else f"{m}!",
        listed=listed,
    )


def _by_lot(sizes: Mapping[int, int]) -> Fraction:
    """What one member of each set wins on average when lots are drawn."""
    return sum((Fraction(n, size) for size, n in sizes.items()), Fraction(0))


def _role_wins(candidate: str, sizes: Counter[int], logged: int | None) -> RoleWins:
    """Extremes without a sweep: an order that puts the candidate first, or last.

    `sizes`: how many are in the candidate's tied sets → turns. `logged`: its wins as logged.
    """
    alone = sizes[1]
    return RoleWins(
        candidate=candidate,
        logged=logged,
        least=alone,
        most=sizes.total(),
        expected=_by_lot(sizes),
        robust=alone,
        by_order=None if logged is None else logged - alone,
        share_by_order=Fraction(logged - alone, logged) if logged else None,
    )


# --- Questions 2 and 4: tie policies and electorates ---------------------------------------------

_POLICIES: Final[Mapping[str, Callable[[Ended], tuple[str, ...]]]] = {
    "logged": lambda ended: (str(ended.logged),),
    "tie_round": lambda ended: ended.undecided[:1],
    "no_tie_round": lambda ended: ended.led[:1],
    "random": lambda ended: ended.undecided,
    "random_no_tie_round": lambda ended: ended.led,
}
"""Policy → those among whom a lot is drawn."""
_LOTS: Final = ("random", "random_no_tie_round")


def ended_counts(group: TurnGroup) -> Counter[Ended]:
    """How turns end under the order recounted under."""
    final, decided = group.final, group.decided
    members = [*set_columns(decided.led), *set_columns(decided.undecided)]
    found = Counter[Ended]()
    for row, n in _alike([*members, final.candidates[1], group.logged]):
        led, undecided = (final.names(who, row) for who in (decided.led, decided.undecided))
        found[Ended(final.protocol, led, undecided, group.logged_name(row))] += n
    return found


def _alike(columns: Sequence[Ints]) -> Iterator[tuple[int, int]]:
    """One row for those that are alike in all columns, and how many there are."""
    first, number = distinct_rows(columns)
    yield from zip(first.tolist(), np.bincount(number).tolist(), strict=True)


def policy_rows(by_protocol: Mapping[str | None, RecountCounts], plan: Plan) -> Iterator[PolicyRow]:
    """Every policy for every protocol; `None` among the protocols means all turns.

    Without a logged order only lots break ties.
    """
    ordered = plan.own_order is not None
    for policy, (protocol, counts) in product(_POLICIES if ordered else _LOTS, by_protocol.items()):
        wins = dict.fromkeys(plan.order, Fraction(0))
        changed, compared = Fraction(0), 0
        for turn, n in counts.ended.items():
            lot = _POLICIES[policy](turn)
            for candidate in lot:
                wins[candidate] += Fraction(n, len(lot))
            if turn.logged is not None:
                compared += n
                changed += n * (1 - Fraction(lot.count(turn.logged), len(lot)))
        yield PolicyRow(
            policy=policy,
            protocol=protocol,
            turns=counts.turns,
            wins=wins,
            changed=changed,
            compared=None if ordered else compared,
        )


def electorate_counts(group: TurnGroup) -> RecountCounts:
    """How turns end under each electorate that their ballots alone can show.

    Without own votes a voter's mass on its own candidate is not counted; its other masses stay as
    they are. So a ranking still gives m - 1 to its first place, and a simple vote for oneself is
    lost. Ties of first votes were never put to a round.
    """
    final, decided = group.final, group.decided
    found = Counter[Electorate]()
    for first in group.firsts:
        found += _standing(group, first, "without_deliberation", leaders_of(first.rounds))
    voters = final.rounds.voters
    if voters.shape[1] <= LISTED_VOTERS:
        for seat, out in enumerate(voters.T):
            left = decided.without(seat).standing
            found += _standing(group, final, "leave_one_out", left, voters=out)
    same = own_candidates(final.rounds, group.votes)
    own = np.flatnonzero(fold(np.logical_or, fold(np.logical_or, same, 2), 1))
    if len(own):
        standing = decided.without_own(same).standing
        found += _standing(group, final, "no_own_votes", standing, some=own)
    named = sorted({group.votes.voters[v] for v in np.unique(voters).tolist()})
    return RecountCounts(
        electorates=found,
        any_voter=_any_voter(group),
        voters={final.protocol: frozenset(named[: LISTED_VOTERS + 1])},
    )


def _standing(
    group: TurnGroup,
    votes: StageVotes,
    scenario: str,
    standing: Bools,
    *,
    voters: Ints | None = None,
    some: Ints | None = None,
) -> Counter[Electorate]:
    """Votes by who may have won under one electorate.

    `standing`: shape (votes, candidates). `voters`: whom each vote is counted for. `some`: which of
    the votes are counted, by default all.
    """
    turn_of, lists = votes.rows, group.final.candidates[1]
    columns = [*set_columns(standing), votes.candidates[1], lists[turn_of], group.logged[turn_of]]
    columns += [] if voters is None else [voters]
    some = np.arange(len(turn_of)) if some is None else some
    found = Counter[Electorate]()
    for one, n in _alike([column[some] for column in columns]):
        row = some[one]
        voter = None if voters is None else group.votes.voters[voters[row]]
        names, logged = votes.names(standing, row), group.logged_name(turn_of[row])
        found[Electorate(votes.protocol, scenario, voter, names, logged)] += n
    return found


def _any_voter(group: TurnGroup) -> Counter[AnyVoter]:
    """What the absence of some one voter does to turns."""
    turns = len(group.logged)
    rows, compared = np.arange(turns), group.logged >= 0
    flags = np.zeros((4, turns), dtype=np.bool_)
    for seat in range(group.final.rounds.voters.shape[1]):
        ended = group.decided.without(seat)
        several = count(ended.standing, 1) > 1
        lost = compared & ~ended.standing[rows, group.logged]
        point = compared & (ended.winner != group.logged)
        flags |= np.stack([several, lost, point, compared & several | lost])
    found = Counter[AnyVoter]()
    for row, n in count_rows([compared, *flags]):
        known, open_, lower, point, upper = map(bool, row)
        found[AnyVoter(group.final.protocol, known, open_, (lower, point, upper))] = n
    return found


def electorate_rows(
    by_protocol: Mapping[str | None, RecountCounts], plan: Plan
) -> Iterator[ElectorateRow]:
    """Every scenario for every protocol; `None` among the protocols means all turns."""
    for protocol, counts in by_protocol.items():
        any_voter = counts.any_voter.items()
        without_any = OutcomeTables(
            turns=sum(n for _, n in any_voter),
            compared=sum(n for one, n in any_voter if one.compared),
            open_ties=sum(n for one, n in any_voter if one.open),
            wins={},
            changed=Interval.of((one.changed, n) for one, n in any_voter),
        )
        ends = by_key(
            ((one.scenario, one.voter), (one.standing, one.logged, n))
            for one, n in counts.electorates.items()
        )
        voters = sorted(frozenset[str]().union(*counts.voters.values()))
        listed = voters if len(voters) <= LISTED_VOTERS else []
        scenarios: list[tuple[str, str | None]] = [("without_deliberation", None)]
        scenarios += [("leave_one_out", voter) for voter in listed]
        scenarios += [("no_own_votes", None), ("confidence_weighted", None)]
        found = [(*one, outcome_tables(ends.get(one, ()), plan.order)) for one in scenarios]
        for scenario, voter, counted in (*found, ("leave_one_out", None, without_any)):
            yield ElectorateRow(
                scenario=scenario,
                voter=voter,
                protocol=protocol,
                turns=counted.turns,
                not_computable=without_any.turns - counted.turns,
                open_ties=counted.open_ties,
                wins={c: _by_order(won, plan) for c, won in counted.wins.items()},
                changed=_by_order(counted.changed, plan),
                compared=counted.compared if plan.own_order is None else None,
            )


def _by_order(found: Interval, plan: Plan) -> Interval:
    """Bounds whose point is the order's; without one it is a figure only where they meet."""
    if plan.own_order is not None or found.lower == found.upper:
        return found
    return found.model_copy(update={"point": None})


def weighted_counts(
    groups: Iterable[TurnGroup], episodes: Sequence[EpisodeRecord]
) -> Counter[Electorate]:
    """Every mass times the confidence, 0 to 100, that the voter stated for its revised proposal.

    Only turns in which everybody who cast a ballot stated one.
    """
    found = Counter[Electorate]()
    stated = {
        (episode.episode_id, turn.turn): {
            role: proposal.confidence for role, proposal in turn.proposals_final.items()
        }
        for episode in episodes
        for turn in episode.turns
    }
    for group in groups:
        final = group.final.rounds
        keys = group.votes.turns.select("episode_id", "turn").rows()
        voted = final.cast | (group.decided.again_by.sum(axis=2) > 0)
        weights = np.zeros(voted.shape, dtype=np.int64)
        known = np.zeros(len(voted), dtype=np.bool_)
        for row, turn in enumerate(final.turn.tolist()):
            said = stated.get(keys[turn], {})
            given = [said.get(group.votes.voters[voter]) for voter in final.voters[row].tolist()]
            weights[row] = [weight or 0 for weight in given]
            silent = np.array([weight is None for weight in given])
            known[row] = not (silent & voted[row]).any()
        if known.any():
            standing, some = group.decided.weighted(weights).standing, np.flatnonzero(known)
            found += _standing(group, group.final, "confidence_weighted", standing, some=some)
    return found


# --- Question 7: replies read again --------------------------------------------------------------

Masses = dict[str, int]


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
    read = partial(read_ballot, labels=labels, form=ballot.protocol, budget=budget, reading=reading)
    choice = next((one for one in map(read, replies) if one is not None), None)
    if choice is None and reading != "strict":
        choice = repair_ballot(ballot.raw, labels, form=ballot.protocol, budget=budget)
    named = None if choice is None else resolve(choice, ballot.labels)
    if named is not None:
        named = cast_as(named, form=ballot.protocol, protocol=ballot.rule)
    return masses_of(named, candidates, protocol=ballot.rule)


def reading_rows(
    episodes: Sequence[EpisodeRecord], plan: Plan, protocols: Iterable[str | None]
) -> Iterator[ReadingRow]:
    """Every reading for every protocol; nothing where there are no episodes."""
    complete = [e for e in without_shared_turns(episodes) if e.status == "complete"]
    panel = [(turn, turn.decision) for e in complete for turn in e.turns if turn.decision]
    for reading in READINGS if episodes else ():
        reread = [_reread(turn, decision, reading, plan) for turn, decision in panel]
        for protocol in protocols:
            of = [one for one in reread if protocol in (None, one.protocol)]
            found = [one for one in of if one.standing]
            turns = [(one.standing, one.logged, 1) for one in found]
            counted = outcome_tables(turns, plan.order)
            yield ReadingRow(
                reading=reading,
                protocol=protocol,
                turns=counted.turns,
                not_computable=len(of) - len(found),
                ballots=sum(one.ballots for one in found),
                ballots_changed=sum(one.changed for one in found),
                abstained=sum(one.abstained for one in found),
                open_ties=counted.open_ties,
                wins=counted.wins,
                changed=counted.changed,
            )


class _Reread(NamedTuple):
    """One turn under one reading."""

    protocol: str
    """Protocol of the deciding ballots, as tables name it."""
    logged: str
    standing: tuple[str, ...] = ()
    """Who may have won, the first under the order; empty where no replies were kept."""
    ballots: int = 0
    changed: int = 0
    abstained: int = 0


def _reread(turn: Turn, logged: Decision, reading: Reading, plan: Plan) -> _Reread:
    """A turn from its ballots read again.

    A tied set that the log put to a tie round is decided by that round, read likewise; one that
    the log itself left to the order goes to the order. Any other tie stays open.
    """
    ballots, candidates = turn.ballots_final, tuple(logged.tallies)
    protocol = "rich" if ballots[0].protocol == "rich" else ballots[0].rule
    held = () if turn.tie_round is None else turn.tie_round.ballots
    counted = (*ballots, *held)
    kept = any(b.raw for b in counted) and all(b.raw or not b.mass for b in counted)
    if not kept:
        return _Reread(protocol, logged.winner)
    read = partial(read_again, reading=reading, budget=plan.budget)
    final = [read(ballot, candidates=candidates) for ballot in ballots]
    tie = [read(ballot, candidates=logged.tied_in_vote) for ballot in held]
    led = leaders(tally(final, candidates))
    standing = tuple(sorted(led, key=plan.order.index))
    if set(led) == set(leaders(logged.tallies)):
        decided = decide(final, candidates, order=plan.order, tie_round=tie if held else None)
        standing = (decided.winner,)
    now, then = [*final, *tie], [ballot.mass for ballot in counted]
    return _Reread(
        protocol,
        logged.winner,
        standing,
        ballots=len(now),
        changed=sum(one != other for one, other in zip(now, then, strict=True)),
        abstained=sum(not masses for masses in now),
    )
