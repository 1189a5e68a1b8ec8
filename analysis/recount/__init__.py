"""Counterfactuals from logged ballots: what other orders, tie policies and rules would elect.

    result = recount(open_source(path), targets=["ranked", "copeland"], exempt=(0, 1))
    result.rules                # bounds and points of every target, over all turns
    result.per_turn             # the same turn by turn

The questions are those that ballots can answer, for single turns: every fallback order (1), tie
policies (2), every target rule (3), other electorates (4) and other readings of the replies (7).
All of them hold the logged dialogue fixed.

How a recount goes
------------------
There is one path, whatever the size. A `Source` gives its votes in *parts* of whole turns: a run
and a small file are one part, a large Parquet file is many, and a cluster counts the parts of one
file each. What turns add to the tables are counts (`RecountCounts`), which add up in any order.

1. *A part becomes groups.* `turn_groups` puts turns of one ballot format, one rule and one size
   together, so that every vote of a `TurnGroup` is a row of arrays of one shape: masses of
   (turns, voters, candidates). Each group is decided at once, as it was in the run.
2. *Votes become panels.* Voters are alike, and most votes occur many times: `DistinctPanels` holds
   every different multiset of ballots once, with the panel of each turn. Everything that is asked
   about a rule is asked about panels; turns look their answers up.
3. *A panel has possible winners.* Its voters may have cast, under the target, any ballot that
   agrees with theirs; k *exempt* voters may have cast any at all. `identify` says which outcomes
   are reachable, in arrays of (readings of ties, numbers of exempt voters, panels, outcomes), the
   first outcome being nobody; by table for small panels, by search for others.
4. *Who was decided by the target itself* has a logged winner: then rows are panels with their
   winner, nobody exempt leaves that winner alone, and exempt voters add others.
5. *Equal answers are counted once.* `DifferentAnswers` are the distinct answers and the number of
   each vote's; `rule_counts` counts turns by answer, logged winner and whether the leader of the
   first vote could lose. `rule_rows` adds these counts up to a row of the table.

Bounds are counts of what is certain and of what is possible; the point is that of a named
projection of the ballots, and is left out where no ballots that agree with them could give it.
The same questions are asked in plain loops by `tests/reference`, which is the specification.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from types import MappingProxyType
from typing import Final, cast
from weakref import WeakKeyDictionary

import polars as pl

from tutorsim.analysis.ballots.malformed_rows import notes_together
from tutorsim.analysis.ballots.parquet_batches import ParquetBatches, Part, Runner
from tutorsim.analysis.ballots.recount_source import Source
from tutorsim.analysis.counting.names_and_parameters_of_rules import TARGETS, Approvals, Target
from tutorsim.analysis.identify.possible_winners import WORK_LIMIT
from tutorsim.analysis.recount.decided_turns_of_one_format_and_outcome_counts import (
    RecountCounts,
    TurnGroup,
    turn_groups,
)
from tutorsim.analysis.recount.possible_winners_of_every_protocol_by_rule import (
    PER_TURN_SCHEMA,
    per_turn_frames,
    rule_counts,
    rule_rows,
)
from tutorsim.analysis.recount.recount_plan_and_own_rules import (
    TABLES,
    Plan,
    Progress,
    RankScores,
    RecountTable,
    ScoreFunction,
    check_sizes,
    make_plan,
)
from tutorsim.analysis.recount.result_models import RecountResult
from tutorsim.analysis.recount.winners_under_other_orders_ties_electorates_readings import (
    electorate_counts,
    electorate_rows,
    ended_counts,
    order_table,
    policy_rows,
    reading_rows,
    tied_sets,
    weighted_counts,
)

__all__ = ["NO_ORDER", "count_parts", "possible_winners", "recount"]

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
    run: Runner | None = None,
) -> RecountResult:
    """Recount every turn of a source.

    Args:
        source: A run, or ballots from elsewhere.
        targets: Rules to recount under, from the `TARGETS` of `analysis.counting`.
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
        run: Counts the source's Parquet files somewhere else, one by one; by default they are
            counted here.

    Raises:
        UsageError: If a target is unknown, a number of exempt voters is negative, the order
            names a stranger or somebody twice, or a candidate is called `none` while the
            Condorcet winner is asked for; or if an own rule has a target's name, does not fit the
            number of candidates, or fails.
    """
    plan = make_plan(
        source,
        targets=targets,
        exempt=exempt,
        order=order,
        limit=limit,
        tables=tables,
        rules=rules,
        approves=approves,
    )
    tick = _ticker(progress, plan.units * source.turns)
    if run is None:
        counts = count_parts(source.parts(), plan, tick)
    else:
        counts = _elsewhere(source, plan, run, tick)
    asked, logged = plan.tables, plan.own_order is not None
    if source.episodes and "electorates" in asked:
        groups = (group for part in source.parts() for group in _groups_of(part, plan))
        counts += RecountCounts(electorates=weighted_counts(groups, source.episodes))
    by_protocol = counts.by_protocol
    under_rules, approvals = rule_rows(counts, plan)
    notes = notes_together(counts.notes)
    return RecountResult(
        source=source.name,
        provenance=source.provenance,
        fallback_order=plan.order if logged else (),
        budget=plan.budget,
        exempt=plan.exempt,
        turns=counts.turns,
        orders=tuple(
            order_table(
                tied_sets(of.ended),
                order=plan.own_order or plan.order,
                protocol=protocol,
                logged=logged,
            )
            for protocol, of in by_protocol.items()
            if "orders" in asked
        ),
        policies=tuple(policy_rows(by_protocol, plan) if "policies" in asked else ()),
        electorates=tuple(electorate_rows(by_protocol, plan) if "electorates" in asked else ()),
        readings=tuple(
            reading_rows(source.episodes, plan, by_protocol) if "readings" in asked else ()
        ),
        rules=under_rules,
        approvals=approvals,
        approved=dict(sorted(counts.approved.items())),
        notes=notes if logged else (*notes, NO_ORDER),
    ).keep(partial(_each_turn, source, plan), counts.agreed)


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


_GROUPS: Final[WeakKeyDictionary[Part, dict[object, tuple[TurnGroup, ...]]]] = WeakKeyDictionary()
"""Parts → orders → their turns, since a report asks about several sets of targets."""


def _groups_of(part: Part, plan: Plan) -> tuple[TurnGroup, ...]:
    """The turns of a part, decided, with their panels; held as long as the part is."""
    held = _GROUPS.setdefault(part, {})
    key = plan.order, plan.own_order
    if key not in held:
        found = turn_groups(part.votes, part.rich, order=plan.order, own_order=plan.own_order)
        held[key] = tuple(found)
    return held[key]


def count_parts(
    parts: Iterable[Part], plan: Plan, tick: Callable[[int], None] = lambda _: None
) -> RecountCounts:
    """What turns add to every table but those that need a run's logs.

    `tick`: is told how many turns are counted, those under each rule again.
    """
    total = RecountCounts()
    for part in parts:
        counts, groups = RecountCounts(notes=tuple(part.notes)), _groups_of(part, plan)
        check_sizes(groups, plan.rules)
        for group in groups:
            counts += RecountCounts(ended=ended_counts(group))
            if "electorates" in plan.tables:
                counts += electorate_counts(group)
            tick(len(group.logged))
            if not {"rules", "kept"}.isdisjoint(plan.tables):
                counts += rule_counts(group, plan, tick)
        total += counts
    return total


def _elsewhere(
    source: Source, plan: Plan, run: Runner, tick: Callable[[int], None]
) -> RecountCounts:
    """What turns add, each file counted where the runner does; notes in an order of their own."""
    total = RecountCounts()
    for counts in run(partial(_count_files, plan=plan), source.by_file()):
        total += counts
        tick(plan.units * counts.turns)
    return replace(total, notes=tuple(sorted(total.notes)))


def _count_files(files: ParquetBatches, plan: Plan) -> RecountCounts:
    return count_parts(files.parts(), plan)


def _ticker(progress: Progress | None, units: int) -> Callable[[int], None]:
    done = 0

    def tick(turns: int) -> None:
        nonlocal done
        done += turns
        if progress is not None:
            progress(done, units)

    return tick


def _each_turn(source: Source, plan: Plan, only: str | None) -> Iterator[pl.DataFrame]:
    """Frames of the per-turn table, whole or under one target, nobody exempt, without breakdown
    points."""
    some = replace(plan, tables=("rules",))
    if only is not None:
        some = replace(
            plan, rules={only: plan.rules.get(only, cast("Target", only))}, exempt=(0,), tables=()
        )
    yield PER_TURN_SCHEMA.to_frame()
    for part in source.parts(together=_TOLD_TOGETHER):
        yield from per_turn_frames(_groups_of(part, plan), part.votes.turns, some)


_TOLD_TOGETHER: Final = 25_000
"""Turns of a part where every turn is told: what is said of different turns is held until it is."""
