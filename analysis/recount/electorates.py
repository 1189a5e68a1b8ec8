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
    leading,
    outcome_tables,
)
from analysis.recount.combos import (
    LISTED_VOTERS,
    AnyVoter,
    Electorate,
    Policy,
    Summary,
)
from analysis.recount.result import ElectorateRow, Exact, Interval, PolicyRow
from tutorsim.records import EpisodeRecord
from tutorsim.voting import first_in_order

__all__ = [
    "Weighted",
    "any_voter_of",
    "electorate_rows",
    "electorates_of",
    "policy_of",
    "policy_rows",
    "weighted_outcomes",
]

_POLICIES: Final[Mapping[str, Callable[[Outcome, Sequence[str]], tuple[str, ...]]]] = {
    "tie_round": lambda outcome, _: (outcome.winner,),
    "no_tie_round": lambda outcome, order: (first_in_order(outcome.led, order),),
    "random": lambda outcome, _: outcome.undecided,
    "random_no_tie_round": lambda outcome, _: outcome.led,
}
"""Policy → those among whom a lot is drawn."""

Found = list[tuple[Outcome, str, int]]
Weighted = Mapping[Electorate, int]
"""Turns by how they end with votes weighted by confidence."""


def policy_of(case: Case, *, order: Sequence[str], logged: str) -> Policy:
    """How a case ends under the order, as the policies need it."""
    ended = decided(case, order=order)
    return Policy(case.protocol, ended._replace(tied_set=()), logged)


def policy_rows(
    policies: Mapping[Policy, int], *, order: Sequence[str], protocols: Sequence[str | None]
) -> tuple[PolicyRow, ...]:
    """Every policy for every protocol; `None` among the protocols means all turns."""
    return tuple(
        _policy_row(
            policy,
            protocol,
            [(p, n) for p, n in policies.items() if protocol in (None, p.protocol)],
            order,
        )
        for policy in ("logged", *_POLICIES)
        for protocol in protocols
    )


def _policy_row(
    policy: str,
    protocol: str | None,
    turns: Sequence[tuple[Policy, int]],
    order: Sequence[str],
) -> PolicyRow:
    wins = dict.fromkeys(order, Fraction(0))
    changed = Fraction(0)
    for ended, n in turns:
        draw = _POLICIES.get(policy)
        lot = draw(ended.outcome, order) if draw else (ended.logged,)
        for candidate in lot:
            wins[candidate] += Fraction(n, len(lot))
        changed += n * (1 - Fraction(lot.count(ended.logged), len(lot)))
    exact = {candidate: Exact.of(won) for candidate, won in wins.items()}
    return PolicyRow(
        policy=policy,
        protocol=protocol,
        turns=sum(n for _, n in turns),
        wins=exact,
        changed=Exact.of(changed),
    )


def electorates_of(case: Case, *, order: Sequence[str], logged: str) -> Iterator[Electorate]:
    """How a case ends under each electorate that its ballots alone can show."""

    def ending(scenario: str, voter: str | None, outcome: Outcome) -> Electorate:
        short = Outcome(outcome.standing, outcome.winner, (), (), ())
        return Electorate(case.protocol, scenario, voter, short, logged)

    if case.initial is not None:
        yield ending("without_deliberation", None, _first_vote(case, order))
    if len(case.final.voters) <= LISTED_VOTERS:
        for voter in case.final.voters:
            without = decided(case, order=order, change=_without(voter))
            yield ending("leave_one_out", voter, without)
    if set(case.final.voters) & set(case.final.candidates):
        yield ending("no_own_votes", None, decided(case, order=order, change=_others_only))


def _first_vote(case: Case, order: Sequence[str]) -> Outcome:
    """The winner of the first vote. Its ties were never put to a round."""
    initial = case.initial or case.final
    tied = leading(cast_by(initial), initial.candidates)
    return Outcome(tied, first_in_order(tied, order), tied, tied, tied)


def _without(voter: str) -> Change:
    return lambda ballots: [(who, masses) for who, masses in ballots if who != voter]


def _others_only(ballots: Ballots) -> Ballots:
    """A voter's mass on its own candidate is not counted; its other masses stay as they are.

    So a ranking still gives m - 1 to its first place, and a simple vote for oneself is lost.
    A turn whose voters are no candidates has no own votes to leave out.
    """
    return [(who, {c: x for c, x in masses.items() if c != who}) for who, masses in ballots]


def any_voter_of(case: Case, *, order: Sequence[str], logged: str) -> AnyVoter:
    """What the absence of some one voter does to a case."""
    outcomes = decided_without_each(case, order=order)
    return AnyVoter(
        case.protocol,
        any(len(o.standing) > 1 for o in outcomes),
        any(logged not in o.standing for o in outcomes),
        any(o.winner != logged for o in outcomes),
        any(o.standing != (logged,) for o in outcomes),
    )


def electorate_rows(
    summary: Summary,
    *,
    order: Sequence[str],
    protocols: Sequence[str | None],
    weighted: Weighted,
) -> tuple[ElectorateRow, ...]:
    """Every scenario for every protocol; turns weighted by confidence come from a run's logs."""
    rows: list[ElectorateRow] = []
    for protocol in protocols:
        turns = sum(n for p, n in summary.policies.items() if protocol in (None, p.protocol))
        found: dict[tuple[str, str | None], Found] = {("without_deliberation", None): []}
        found |= {("leave_one_out", voter): [] for voter in _listed(summary, protocol)}
        found |= {("no_own_votes", None): [], ("confidence_weighted", None): []}
        for ended, n in (*summary.electorates.items(), *weighted.items()):
            group = found.get((ended.scenario, ended.voter))
            if group is not None and protocol in (None, ended.protocol):
                group.append((ended.outcome, ended.logged, n))
        rows += [
            _row(scenario, voter, protocol, turns, group, order)
            for (scenario, voter), group in found.items()
        ]
        rows.append(_any_left_out(summary.any_voter, protocol))
    return tuple(rows)


def _listed(summary: Summary, protocol: str | None) -> list[str]:
    """The voters of a protocol, where they are few enough to list."""
    of = [names for p, names in summary.voters.items() if protocol in (None, p)]
    voters = sorted(frozenset[str]().union(*of))
    return voters if len(voters) <= LISTED_VOTERS else []


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


def _any_left_out(found: Mapping[AnyVoter, int], protocol: str | None) -> ElectorateRow:
    """Turns that the absence of some one voter changes."""
    of = [(one, n) for one, n in found.items() if protocol in (None, one.protocol)]
    return ElectorateRow(
        scenario="leave_one_out",
        voter=None,
        protocol=protocol,
        turns=sum(n for _, n in of),
        not_computable=0,
        open_ties=sum(n for one, n in of if one.open),
        wins={},
        changed=Interval(
            lower=sum(n for one, n in of if one.lower),
            point=sum(n for one, n in of if one.point),
            upper=sum(n for one, n in of if one.upper),
        ),
    )


Stated = Mapping[tuple[str, int], Mapping[str, int | None]]


def weighted_outcomes(
    cases: Cases,
    *,
    order: Sequence[str],
    logged: Mapping[Case, str],
    episodes: Sequence[EpisodeRecord],
) -> Weighted:
    """Every mass times the confidence, 0 to 100, that the voter stated for its revised proposal."""
    stated = _stated(episodes)
    weighed: Counter[tuple[Case, tuple[tuple[str, int], ...]]] = Counter()
    for case, keys in cases.items() if stated else ():
        for key in keys:
            weights = _confidences(case, key, stated)
            if weights is not None:
                weighed[case, weights] += 1
    found = Counter[Electorate]()
    for (case, weights), n in weighed.items():
        outcome = decided(case, order=order, change=_times(dict(weights)))
        short = Outcome(outcome.standing, outcome.winner, (), (), ())
        ended = Electorate(case.protocol, "confidence_weighted", None, short, logged[case])
        found[ended] += n
    return found


def _stated(episodes: Sequence[EpisodeRecord]) -> Stated:
    """Episode and turn → role → confidence in its revised proposal."""
    return {
        (episode.episode_id, turn.turn): {
            role: proposal.confidence for role, proposal in turn.proposals_final.items()
        }
        for episode in episodes
        for turn in episode.turns
    }


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
