"""Questions 2 and 4: other ways to break ties, and other electorates."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Final

from analysis.profiles import TurnKey
from analysis.recount.cases import (
    Ballots,
    Case,
    Cases,
    Change,
    Outcome,
    cast_by,
    decided,
    decided_without_each,
    group_by_case,
    leading,
    outcome_tables,
)
from analysis.recount.result import ElectorateRow, Exact, Interval, PolicyRow
from tutorsim.records import EpisodeRecord
from tutorsim.voting import first_in_order

__all__ = ["LISTED_VOTERS", "electorate_rows", "policy_rows"]

LISTED_VOTERS: Final = 12
"""Voters that get a row each in `leave_one_out`; with more there is only the row of any one."""

_POLICIES: Final[Mapping[str, Callable[[Outcome, Sequence[str]], tuple[str, ...]]]] = {
    "tie_round": lambda outcome, _: (outcome.winner,),
    "no_tie_round": lambda outcome, order: (first_in_order(outcome.led, order),),
    "random": lambda outcome, _: outcome.undecided,
    "random_no_tie_round": lambda outcome, _: outcome.led,
}
"""Policy → those among whom a lot is drawn."""

Found = list[tuple[Outcome, str, int]]


def policy_rows(
    cases: Cases,
    *,
    order: Sequence[str],
    logged: Mapping[Case, str],
    protocols: Sequence[str | None],
) -> tuple[PolicyRow, ...]:
    """Every policy for every protocol; `None` among the protocols means all turns."""
    outcomes = {case: decided(case, order=order) for case in cases}
    lots: dict[str, dict[Case, tuple[str, ...]]] = {
        policy: {case: draw(outcome, order) for case, outcome in outcomes.items()}
        for policy, draw in _POLICIES.items()
    }
    lots["logged"] = {case: (winner,) for case, winner in logged.items()}
    return tuple(
        _policy_row(policy, protocol, group_by_case(cases, protocol), lots[policy], logged, order)
        for policy in ("logged", *_POLICIES)
        for protocol in protocols
    )


def _policy_row(
    policy: str,
    protocol: str | None,
    grouped: Sequence[tuple[Case, int]],
    lots: Mapping[Case, tuple[str, ...]],
    logged: Mapping[Case, str],
    order: Sequence[str],
) -> PolicyRow:
    wins = dict.fromkeys(order, Fraction(0))
    turns, changed = 0, Fraction(0)
    for case, n in grouped:
        lot = lots[case]
        for candidate in lot:
            wins[candidate] += Fraction(n, len(lot))
        turns += n
        changed += n * (1 - Fraction(lot.count(logged[case]), len(lot)))
    exact = {candidate: Exact.of(won) for candidate, won in wins.items()}
    return PolicyRow(
        policy=policy, protocol=protocol, turns=turns, wins=exact, changed=Exact.of(changed)
    )


def electorate_rows(
    cases: Cases,
    *,
    order: Sequence[str],
    logged: Mapping[Case, str],
    protocols: Sequence[str | None],
    episodes: Sequence[EpisodeRecord] = (),
) -> tuple[ElectorateRow, ...]:
    """Every scenario for every protocol; confidences come from the episodes."""
    rows: list[ElectorateRow] = []
    stated = _stated(episodes)
    for protocol in protocols:
        grouped = group_by_case(cases, protocol)
        scenarios = [
            ("without_deliberation", None, _first_vote(grouped, logged, order)),
            *_left_out(grouped, logged, order),
            ("no_own_votes", None, _without_own(grouped, logged, order)),
            ("confidence_weighted", None, _weighted(grouped, cases, logged, order, stated)),
        ]
        turns = sum(n for _, n in grouped)
        for scenario, voter, found in scenarios:
            rows.append(_row(scenario, voter, protocol, turns, found, order))
        rows.append(_any_left_out(grouped, logged, order, protocol))
    return tuple(rows)


def _row(
    scenario: str,
    voter: str | None,
    protocol: str | None,
    turns: int,
    found: Found,
    order: Sequence[str],
) -> ElectorateRow:
    counted = outcome_tables(found, order)
    return ElectorateRow(
        scenario=scenario,
        voter=voter,
        protocol=protocol,
        turns=counted.turns,
        not_computable=turns - counted.turns,
        open_ties=counted.open_ties,
        wins=counted.wins,
        changed=counted.changed,
    )


def _first_vote(
    grouped: Sequence[tuple[Case, int]], logged: Mapping[Case, str], order: Sequence[str]
) -> Found:
    """The winner of the first vote. Its ties were never put to a round."""
    found: Found = []
    for case, n in grouped:
        if case.initial is not None:
            tied = leading(cast_by(case.initial), case.initial.candidates)
            outcome = Outcome(tied, first_in_order(tied, order), tied, tied, tied)
            found.append((outcome, logged[case], n))
    return found


def _left_out(
    grouped: Sequence[tuple[Case, int]], logged: Mapping[Case, str], order: Sequence[str]
) -> Iterator[tuple[str, str, Found]]:
    """One scenario per voter, where the voters are few enough to list."""
    voters = sorted({voter for case, _ in grouped for voter in case.final.voters})
    if len(voters) <= LISTED_VOTERS:
        for voter in voters:
            found = [
                (decided(case, order=order, change=_without(voter)), logged[case], n)
                for case, n in grouped
                if voter in case.final.voters
            ]
            yield "leave_one_out", voter, found


def _any_left_out(
    grouped: Sequence[tuple[Case, int]],
    logged: Mapping[Case, str],
    order: Sequence[str],
    protocol: str | None,
) -> ElectorateRow:
    """Turns that the absence of some one voter changes."""
    counts: Counter[str] = Counter()
    for case, n in grouped:
        outcomes = decided_without_each(case, order=order)
        winner = logged[case]
        counts["turns"] += n
        counts["open"] += n * any(len(o.standing) > 1 for o in outcomes)
        counts["lower"] += n * any(winner not in o.standing for o in outcomes)
        counts["point"] += n * any(o.winner != winner for o in outcomes)
        counts["upper"] += n * any(o.standing != (winner,) for o in outcomes)
    return ElectorateRow(
        scenario="leave_one_out",
        voter=None,
        protocol=protocol,
        turns=counts["turns"],
        not_computable=0,
        open_ties=counts["open"],
        wins={},
        changed=Interval(lower=counts["lower"], point=counts["point"], upper=counts["upper"]),
    )


def _without(voter: str) -> Change:
    return lambda ballots: [(who, masses) for who, masses in ballots if who != voter]


def _without_own(
    grouped: Sequence[tuple[Case, int]], logged: Mapping[Case, str], order: Sequence[str]
) -> Found:
    """A voter's mass on its own candidate is not counted; its other masses stay as they are.

    So a ranking still gives m - 1 to its first place, and a simple vote for oneself is lost.
    A turn whose voters are no candidates has no own votes to leave out.
    """

    def others_only(ballots: Ballots) -> Ballots:
        return [(who, {c: x for c, x in masses.items() if c != who}) for who, masses in ballots]

    return [
        (decided(case, order=order, change=others_only), logged[case], n)
        for case, n in grouped
        if set(case.final.voters) & set(case.final.candidates)
    ]


Stated = Mapping[tuple[str, int], Mapping[str, int | None]]


def _stated(episodes: Sequence[EpisodeRecord]) -> Stated:
    """Episode and turn → role → confidence in its revised proposal."""
    return {
        (episode.episode_id, turn.turn): {
            role: proposal.confidence for role, proposal in turn.proposals_final.items()
        }
        for episode in episodes
        for turn in episode.turns
    }


def _weighted(
    grouped: Sequence[tuple[Case, int]],
    cases: Cases,
    logged: Mapping[Case, str],
    order: Sequence[str],
    stated: Stated,
) -> Found:
    """Every mass times the confidence, 0 to 100, that the voter stated for its revised proposal."""
    weighed: Counter[tuple[Case, tuple[tuple[str, int], ...]]] = Counter()
    for case, _ in grouped:
        for key in cases[case]:
            weights = _confidences(case, key, stated)
            if weights is not None:
                weighed[case, weights] += 1
    return [
        (decided(case, order=order, change=_times(dict(weights))), logged[case], n)
        for (case, weights), n in weighed.items()
    ]


def _confidences(case: Case, key: TurnKey, stated: Stated) -> tuple[tuple[str, int], ...] | None:
    """The confidence of everybody who cast a ballot, or `None` where one is missing."""
    said = stated.get((key.episode_id, key.turn), {})
    voters = {who for stage in (case.final, case.tie) if stage for who, _ in cast_by(stage)}
    found = tuple((voter, said.get(voter)) for voter in sorted(voters))
    known = tuple((voter, weight) for voter, weight in found if weight is not None)
    return known if len(known) == len(found) else None


def _times(weights: Mapping[str, int]) -> Change:
    return lambda ballots: [
        (who, {c: x * weights[who] for c, x in masses.items()}) for who, masses in ballots
    ]
