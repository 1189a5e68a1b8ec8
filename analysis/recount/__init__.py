"""Counterfactuals from logged ballots: what other orders, tie policies and rules would elect.

`recount` answers the questions that ballots can answer, for single turns: every fallback
order (1), tie policies (2), every target rule (3), other electorates (4) and other readings
of the replies (7). All of them hold the logged dialogue fixed.
"""

from collections.abc import Sequence

from analysis.identify.search import WORK_LIMIT
from analysis.profiles import read_turns, standing_order
from analysis.recount.answers import Recounter, gather_named
from analysis.recount.cases import gather
from analysis.recount.combos import Summary
from analysis.recount.electorates import weighted_outcomes
from analysis.recount.orders import Sweep, order_table, sweep_orders
from analysis.recount.per_turn import NOBODY_NAME, PER_TURN_SCHEMA, per_turn_frame
from analysis.recount.readings import read_again, reading_rows
from analysis.recount.result import (
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
from analysis.recount.summed import (
    Plan,
    Told,
    logged_winners,
    recounter_for,
    result_of,
    rules_of,
    summary_of_turns,
)
from analysis.recount.targets import rule_rows
from analysis.rules import TARGETS, Target, check_targets
from analysis.sources import Source
from tutorsim.errors import UsageError

__all__ = [
    "HELD_FIXED",
    "NOBODY_NAME",
    "PER_TURN_SCHEMA",
    "SCHEMA_VERSION",
    "ElectorateRow",
    "Exact",
    "Interval",
    "OrderRow",
    "OrderTable",
    "Plan",
    "PolicyRow",
    "ReadingRow",
    "RecountResult",
    "Recounter",
    "RoleWins",
    "RuleRow",
    "Summary",
    "Sweep",
    "make_plan",
    "order_table",
    "read_again",
    "recount",
    "recount_rules",
    "sweep_orders",
]


def recount(
    source: Source,
    *,
    targets: Sequence[str] = TARGETS,
    exempt: Sequence[int] = (0, 1, 2),
    order: Sequence[str] | None = None,
    limit: int = WORK_LIMIT,
) -> RecountResult:
    """Recount every turn of a source.

    Args:
        source: A run, or ballots from elsewhere.
        targets: Rules to recount under, from `analysis.rules.TARGETS`.
        exempt: Numbers of voters that may have cast any ballot of a target's format.
        order: The role-priority order to recount under, by default the source's own. It may
            leave candidates out; they stand behind it. Changes are always counted against the
            winners that the source's own order gave.
        limit: Work allowed for one question about one profile, in numbers computed; a turn
            that needs more is counted as not settled.

    Raises:
        UsageError: If a target is unknown, a number of exempt voters is negative, the order
            names a stranger or somebody twice, or a candidate is called `none` where the
            Condorcet winner is asked for.
    """
    wanted = check_targets(targets)
    own_order = standing_order(source.ballots, source.fallback_order)
    plan = make_plan(
        own_order, source.budget, targets=wanted, exempt=exempt, order=order, limit=limit
    )
    turns = read_turns(source.ballots, fallback_order=plan.order)
    cases = gather(turns)
    logged = logged_winners(cases, own_order)
    named = gather_named(cases, logged)
    recounter = recounter_for(named, plan)
    summary = summary_of_turns(turns, plan, recounter=recounter)
    protocols = (None, *sorted({case.protocol for case in cases}))
    told = Told(
        source.name,
        source.provenance,
        source.notes,
        readings=reading_rows(
            source.episodes, order=plan.order, budget=source.budget, protocols=protocols
        ),
        weighted=weighted_outcomes(
            cases, order=plan.order, logged=logged, episodes=source.episodes
        ),
        per_turn=per_turn_frame(
            named, recounter, keys=tuple(turns.final), targets=wanted, exempt=plan.exempt
        ),
    )
    return result_of(summary, plan, told)


def recount_rules(
    source: Source, *, targets: Sequence[str] = TARGETS, exempt: Sequence[int] = (0, 1, 2)
) -> tuple[RuleRow, ...]:
    """The rules' table of `recount` alone."""
    order = standing_order(source.ballots, source.fallback_order)
    plan = make_plan(order, source.budget, targets=targets, exempt=exempt)
    cases = gather(read_turns(source.ballots, fallback_order=plan.order))
    named = gather_named(cases, logged_winners(cases, order))
    rules = rules_of(named, recounter_for(named, plan), plan)
    return rule_rows(rules, order=plan.order, targets=plan.targets, exempt=plan.exempt)


def make_plan(
    own_order: Sequence[str],
    budget: int,
    *,
    targets: Sequence[str] = TARGETS,
    exempt: Sequence[int] = (0, 1, 2),
    order: Sequence[str] | None = None,
    limit: int = WORK_LIMIT,
) -> Plan:
    """What to ask of the turns of a source; see `recount`.

    Args:
        own_order: The source's own order, over all its candidates.
        budget: Points of a cumulative ballot.
        targets: Rules.
        exempt: Numbers of exempt voters.
        order: The order to recount under.
        limit: Work allowed for one question.

    Raises:
        UsageError: As `recount`.
    """
    wanted = check_targets(targets)
    used = _checked_order(order, own_order)
    _check(wanted, exempt, own_order)
    return Plan(used, tuple(own_order), budget, wanted, tuple(sorted(set(exempt))), limit)


def _checked_order(order: Sequence[str] | None, standing: Sequence[str]) -> tuple[str, ...]:
    if order is None:
        return tuple(standing)
    strangers = [c for c in order if c not in standing]
    if strangers or len(set(order)) != len(order):
        raise UsageError(
            f"The order {', '.join(order)} cannot be used.",
            why=f"{strangers[0]!r} is no candidate."
            if strangers
            else "A candidate is in it twice.",
            hint=f"The candidates are {', '.join(standing)}.",
        )
    return (*order, *(c for c in standing if c not in order))


def _check(targets: Sequence[Target], exempt: Sequence[int], candidates: Sequence[str]) -> None:
    negative = [k for k in exempt if k < 0]
    if negative:
        raise UsageError(f"{negative[0]} voters cannot be exempt.", hint="Use 0, 1, 2, ….")
    if "condorcet" in targets and NOBODY_NAME in candidates:
        raise UsageError(
            f"A candidate is called {NOBODY_NAME!r}.",
            why="That is how the recount names the absence of a Condorcet winner.",
            hint="Rename the candidate, or leave the target condorcet out.",
        )
