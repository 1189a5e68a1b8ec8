"""Counterfactuals from logged ballots: what other orders, tie policies and rules would elect.

`recount` answers the questions that ballots can answer, for single turns: every fallback
order (1), tie policies (2), every target rule (3), other electorates (4) and other readings
of the replies (7). All of them hold the logged dialogue fixed.

There is one path, whatever the size: ballots become arrays, turns are decided as arrays, what is
asked about a rule is asked once about each different panel, and turns look the answers up.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache, partial
from types import MappingProxyType
from typing import Final

import numpy as np

from tutorsim.analysis.ballots.recount_source import Source
from tutorsim.analysis.counting.rule_definitions import TARGETS, Approvals, RankScores
from tutorsim.analysis.identify.reachable_vote_sums import WORK_LIMIT
from tutorsim.analysis.recount.counted_turns import (
    AllVotes,
    Electorate,
    RecountCounts,
    TurnGroup,
    all_votes,
    few,
    turn_groups,
)
from tutorsim.analysis.recount.electorates import (
    Weighted,
    any_voter_counts,
    electorate_counts,
    electorate_rows,
    policy_counts,
    policy_rows,
    weighted_counts,
)
from tutorsim.analysis.recount.fallback_orders import Sweep, order_table, sweep_orders
from tutorsim.analysis.recount.per_turn_table import PER_TURN_SCHEMA, per_turn_frame
from tutorsim.analysis.recount.possible_winners_by_rule import (
    approval_rows,
    numbers_approved,
    rule_counts,
    rule_rows,
)
from tutorsim.analysis.recount.recount_plan import (
    NOBODY_NAME,
    TABLES,
    CastBallots,
    Plan,
    Progress,
    RecountTable,
    ScoreFunction,
    check_sizes,
    make_plan,
)
from tutorsim.analysis.recount.reply_readings import read_again, reading_rows
from tutorsim.analysis.recount.result_models import (
    HELD_FIXED,
    SCHEMA_VERSION,
    ElectorateRow,
    Exact,
    Interval,
    OrderRow,
    OrderTable,
    PolicyRow,
    ReadingRow,
    RecountResult,
    RoleWins,
    RuleRow,
)

__all__ = [
    "HELD_FIXED",
    "NOBODY_NAME",
    "NO_ORDER",
    "PER_TURN_SCHEMA",
    "SCHEMA_VERSION",
    "TABLES",
    "CastBallots",
    "ElectorateRow",
    "Exact",
    "Interval",
    "OrderRow",
    "OrderTable",
    "Plan",
    "PolicyRow",
    "Progress",
    "ReadingRow",
    "RecountCounts",
    "RecountResult",
    "RecountTable",
    "RoleWins",
    "RuleRow",
    "ScoreFunction",
    "Sweep",
    "count_groups",
    "count_turns",
    "groups_of",
    "make_plan",
    "order_table",
    "possible_winners",
    "read_again",
    "recount",
    "recount_rules",
    "result_of",
    "sweep_orders",
]

NO_ORDER: Final = (
    "No order is logged. A vote that ends in a tie has no logged winner: it is in no comparison "
    "with logged winners, and ties stay open. --fallback-order sets an order."
)


def recount(
    source: Source,
    *,
    targets: Sequence[str] = TARGETS,
    exempt: Sequence[int] = (0, 1, 2),
    order: Sequence[str] | None = None,
    limit: int = WORK_LIMIT,
    tables: Sequence[RecountTable] = TABLES,
    progress: Progress | None = None,
    rules: Mapping[str, RankScores | ScoreFunction] = MappingProxyType({}),
    approves: Approvals | None = None,
) -> RecountResult:
    """Recount every turn of a source.

    Args:
        source: A run, or ballots from elsewhere.
        targets: Rules to recount under, from `analysis.counting.rule_definitions.TARGETS`.
        exempt: Numbers of voters that may have cast any ballot of a target's format.
        order: The fallback order to recount under, by default the source's own. It may
            leave candidates out; they stand behind it. Changes are always counted against the
            winners that the source's own order gave; a source that has none takes this one. With
            neither, a turn that counting leaves tied has no logged winner but a set: it is in
            every figure but the comparisons with logged winners, and ties stay open.
        limit: Units of work allowed for the possible winners of one panel under one target, and
            again for their breakdown points; a turn that needs more is counted as not settled.
        tables: What to count; the other tables stay empty.
        progress: Is told how many turns are counted, those under each rule again.
        rules: Own rules by name, counted beside the targets: scores by rank, with possible winners
            as under any target, or functions from ballots to scores, with a point alone.
        approves: How many candidates each voter approves of under `approval`, an assumption beside
            the preferences; by default any number, and `approvals` has the answer along some.

    Raises:
        UsageError: If a target is unknown, a number of exempt voters is negative, the order
            names a stranger or somebody twice, or a candidate is called `none` while the
            Condorcet winner is asked for; or if an own rule has a target's name, does not fit the
            number of candidates, or fails.
    """
    votes = source.votes
    plan = make_plan(
        votes.order,
        source.budget,
        targets=targets,
        exempt=exempt,
        order=order,
        limit=limit,
        top=source.top,
        logged=source.ordered,
        tables=tables,
        rules=rules,
        approves=approves,
    )
    groups = groups_of(source, plan.order, plan.own_order)
    weighted = Counter[Electorate]()
    for group in groups if source.episodes and "electorates" in plan.tables else ():
        weighted.update(weighted_counts(group, votes.turns, source.episodes))
    result = result_of(
        count_groups(groups, plan, progress),
        plan,
        name=source.name,
        provenance=source.provenance,
        notes=source.notes,
        readings=lambda protocols: reading_rows(
            source.episodes, order=plan.order, budget=source.budget, protocols=protocols
        ),
        weighted=weighted,
    )
    return result.keep(per_turn=partial(per_turn_frame, groups, votes.turns, plan))


def possible_winners(source: Source) -> dict[tuple[str, int], dict[str, tuple[str, ...]]]:
    """Episode and turn → rule → candidates that could have won.

    A tie leaves all of the tied; a rule under which that is not settled is left out. Rules that
    may elect nobody are not among them.
    """
    rules = [rule for rule in TARGETS if rule != "condorcet"]
    rows = recount(source, targets=rules, exempt=(0,), tables=()).per_turn
    settled = rows.filter("settled").filter(reading="set")
    found: dict[tuple[str, int], dict[str, tuple[str, ...]]] = {}
    columns = ("episode_id", "turn", "target", "possible_winners")
    for episode, turn, rule, winners in settled.select(columns).iter_rows():
        found.setdefault((episode, turn), {})[rule] = tuple(winners)
    return found


def recount_rules(
    source: Source, *, targets: Sequence[str] = TARGETS, exempt: Sequence[int] = (0, 1, 2)
) -> tuple[RuleRow, ...]:
    """The rules' table of `recount` alone."""
    votes = source.votes
    plan = make_plan(
        votes.order,
        source.budget,
        targets=targets,
        exempt=exempt,
        top=source.top,
        logged=source.ordered,
    )
    counts = RecountCounts.empty()
    for group in groups_of(source, plan.order, plan.own_order):
        rules, flips, _ = rule_counts(group, plan)
        counts += replace(RecountCounts.empty(), rules=rules, flips=flips)
    return rule_rows(counts, plan)


@lru_cache(maxsize=2)  # a report asks about several sets of targets
def groups_of(
    source: Source, order: tuple[str, ...], own_order: tuple[str, ...] | None
) -> tuple[TurnGroup, ...]:
    """The turns of a source, decided, with their panels."""
    return tuple(turn_groups(all_votes(source.votes, source.rich, order), own_order))


def count_turns(every: AllVotes, plan: Plan) -> RecountCounts:
    """What turns add to every table but those that need a run's logs."""
    return count_groups(turn_groups(every, plan.own_order), plan)


def count_groups(
    groups: Iterable[TurnGroup], plan: Plan, progress: Progress | None = None
) -> RecountCounts:
    """The same of turns in groups."""
    total, every = RecountCounts.empty(), list(groups)
    check_sizes(every, plan.rank_scores)
    units = (1 + len(plan.targets) + len(plan.dialled)) * sum(len(group.logged) for group in every)
    done = 0

    def tick(turns: int) -> None:
        nonlocal done
        done += turns
        if progress is not None:
            progress(done, units)

    for group in every:
        policies, tied = policy_counts(group)
        counts = replace(RecountCounts.empty(), tied=tied, policies=policies)
        if "electorates" in plan.tables:
            named = {group.voters[v] for v in np.unique(group.decided.final.voters).tolist()}
            counts = replace(
                counts,
                electorates=electorate_counts(group),
                any_voter=any_voter_counts(group),
                voters={group.protocol: few(named)},
            )
        tick(len(group.logged))
        if "rules" in plan.tables:
            rules, flips, agreed = rule_counts(group, plan, tick)
            approved = numbers_approved(group) if plan.dial else {}
            counts = replace(counts, rules=rules, flips=flips, agreed=agreed, approved=approved)
        total += counts
    return total


def result_of(
    counts: RecountCounts,
    plan: Plan,
    *,
    name: str,
    provenance: str,
    notes: tuple[str, ...],
    readings: Callable[[Sequence[str | None]], tuple[ReadingRow, ...]] = lambda _: (),
    weighted: Weighted | None = None,
) -> RecountResult:
    """The tables of a recount.

    Args:
        counts: Of all turns.
        plan: What was asked.
        name: Of the source.
        provenance: Of the source.
        notes: What reading it took.
        readings: Other readings of raw replies, for some protocols.
        weighted: Turns by how they end with votes weighted by confidence.
    """
    protocols = (None, *sorted({policy.protocol for policy in counts.policies}))
    logged, asked = plan.own_order is not None, plan.tables
    return RecountResult(
        source=name,
        provenance=provenance,
        fallback_order=plan.order if logged else (),
        budget=plan.budget,
        exempt=plan.exempt,
        turns=counts.turns,
        orders=tuple(
            order_table(counts.tied, order=plan.own_order or plan.order, protocol=p, logged=logged)
            for p in protocols
            if "orders" in asked
        ),
        policies=policy_rows(counts.policies, plan, protocols if "policies" in asked else ()),
        electorates=electorate_rows(
            counts,
            plan,
            protocols=protocols if "electorates" in asked else (),
            weighted=weighted or {},
        ),
        readings=readings(protocols) if "readings" in asked else (),
        rules=rule_rows(counts, plan),
        approvals=approval_rows(counts, plan),
        approved=dict(sorted(counts.approved.items())),
        notes=notes if logged else (*notes, NO_ORDER),
    ).keep(agreed=counts.agreed)
