"""From turns to a summary, and from a summary to the tables of a recount."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import polars as pl

from analysis.identify import TabledIdentifier
from analysis.profiles import Profile, TurnKey, Turns
from analysis.recount.answers import Named, Recounter, gather_named
from analysis.recount.cases import Case, Cases, decided, gather
from analysis.recount.combos import (
    AnyVoter,
    Electorate,
    Policy,
    RuleCombo,
    RuleKey,
    Summary,
    few,
)
from analysis.recount.electorates import (
    Weighted,
    any_voter_of,
    electorate_rows,
    electorates_of,
    policy_of,
    policy_rows,
)
from analysis.recount.orders import order_table
from analysis.recount.per_turn import PER_TURN_SCHEMA
from analysis.recount.result import ReadingRow, RecountResult
from analysis.recount.targets import combos_of, rule_rows
from analysis.rules import Target
from analysis.tally import TiedSet, TiedSets
from tutorsim.types import BallotFormat

__all__ = [
    "Plan",
    "Told",
    "logged_winners",
    "recounter_for",
    "result_of",
    "rules_of",
    "summary_of_turns",
    "tied_set_of",
]


@dataclass(frozen=True)
class Plan:
    """What a recount asks, the same for every partition."""

    order: tuple[str, ...]
    """The order recounted under: every candidate of every partition."""
    own_order: tuple[str, ...]
    """The source's own order, which decided the logged winners."""
    budget: int
    targets: tuple[Target, ...]
    exempt: tuple[int, ...]
    limit: int


@dataclass(frozen=True)
class Told:
    """What the tables say besides counts."""

    source: str
    provenance: str
    notes: tuple[str, ...]
    readings: tuple[ReadingRow, ...] = ()
    weighted: Weighted | None = None
    per_turn: pl.DataFrame | None = None


def logged_winners(cases: Cases, own_order: Sequence[str]) -> dict[Case, str]:
    """The winner that each case had under the source's own order."""
    return {case: decided(case, order=own_order).winner for case in cases}


def summary_of_turns(turns: Turns, plan: Plan, *, recounter: Recounter | None = None) -> Summary:
    """Count turns case by case: any turns, of any size.

    Args:
        turns: Read under the plan's order.
        plan: What is asked.
        recounter: Answers questions, and remembers them; a new one by default.
    """
    cases = gather(turns)
    logged = logged_winners(cases, plan.own_order)
    named = gather_named(cases, logged)
    if recounter is None:
        recounter = recounter_for(named, plan)
    policies, electorates = Counter[Policy](), Counter[Electorate]()
    any_voter, tied = Counter[AnyVoter](), Counter[TiedSet]()
    for case, keys in cases.items():
        n, won = len(keys), logged[case]
        policy = policy_of(case, order=plan.order, logged=won)
        policies[policy] += n
        tied[tied_set_of(policy, held=case.tie is not None)] += n
        for ended in electorates_of(case, order=plan.order, logged=won):
            electorates[ended] += n
        any_voter[any_voter_of(case, order=plan.order, logged=won)] += n
    counts = TiedSets(dict(sorted(tied.items())))
    rules = rules_of(named, recounter, plan)
    return Summary(counts, policies, electorates, any_voter, _voters(cases), rules)


def rules_of(
    named: Mapping[Named, Sequence[TurnKey]], recounter: Recounter, plan: Plan
) -> dict[RuleKey, Counter[RuleCombo]]:
    """What turns add to each row of the rules' table, counted."""
    rules: dict[RuleKey, Counter[RuleCombo]] = {}
    for one, keys in named.items():
        for key, combo in combos_of(one, recounter, targets=plan.targets, exempt=plan.exempt):
            rules.setdefault(key, Counter())[combo] += len(keys)
    return rules


def recounter_for(named: Iterable[Named], plan: Plan) -> Recounter:
    """Answers questions about these turns, small panels all at once."""
    identifier = TabledIdentifier(budget=plan.budget, limit=plan.limit)
    identifier.learn(_profiles(named), plan.targets)
    return Recounter(budget=plan.budget, identifier=identifier)


def _profiles(turns: Iterable[Named]) -> Iterator[Profile]:
    for named in turns:
        yield named.shape.final
        if named.shape.initial is not None:
            yield named.shape.initial


def _voters(cases: Cases) -> dict[BallotFormat, frozenset[str]]:
    found: dict[BallotFormat, set[str]] = {}
    for case in cases:
        found.setdefault(case.protocol, set()).update(case.final.voters)
    return {protocol: few(names) for protocol, names in found.items()}


def tied_set_of(policy: Policy, *, held: bool) -> TiedSet:
    """What an order can tell of a turn."""
    outcome = policy.outcome
    left = tuple(sorted(outcome.undecided))
    by_round = held and len(outcome.led) > 1
    by = "fallback" if len(left) > 1 else "tie_round" if by_round else "vote"
    return TiedSet(policy.protocol, by, left)


def result_of(summary: Summary, plan: Plan, told: Told) -> RecountResult:
    """The tables of a recount."""
    protocols = (None, *sorted({policy.protocol for policy in summary.policies}))
    empty = pl.DataFrame(schema=PER_TURN_SCHEMA)
    return RecountResult(
        source=told.source,
        provenance=told.provenance,
        fallback_order=plan.order,
        budget=plan.budget,
        exempt=plan.exempt,
        turns=summary.turns,
        orders=tuple(
            order_table(summary.tied, order=plan.own_order, protocol=p) for p in protocols
        ),
        policies=policy_rows(summary.policies, order=plan.order, protocols=protocols),
        electorates=electorate_rows(
            summary, order=plan.order, protocols=protocols, weighted=told.weighted or {}
        ),
        readings=told.readings,
        rules=rule_rows(summary.rules, order=plan.order, targets=plan.targets, exempt=plan.exempt),
        notes=told.notes,
        per_turn=empty if told.per_turn is None else told.per_turn,
    )
