"""Where another rule would have left the logged path, and what that leaves known."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import compress
from math import fsum
from typing import Any, Final, cast

import numpy as np
import polars as pl

from tutorsim.analysis.ballots.reading_options_and_column_words import checked_order
from tutorsim.analysis.ballots.recount_source import Source
from tutorsim.analysis.ballots.vote_arrays_and_profiles import first_of
from tutorsim.analysis.counting.names_and_parameters_of_rules import Target, conventions_of
from tutorsim.analysis.counting.turns_winner_step_and_first_to_final_shift import (
    TurnTable,
    places_of,
    turn_table,
)
from tutorsim.analysis.counting.winners_as_logged_and_with_votes_changed import DecidedTurns, only
from tutorsim.analysis.pages.cells_and_tables import DASH, Written, bounds, plain
from tutorsim.analysis.pages.decorators_to_declare_tables_and_charts import Row, table
from tutorsim.analysis.recount import recount
from tutorsim.analysis.recount.recount_plan_and_own_rules import (
    FunctionRule,
    checked_rules,
    convention_words,
    installed_rules,
    refuse_shadowed,
)
from tutorsim.analysis.runs.branch_counts_turns_siblings_share import shared_turns
from tutorsim.analysis.statistics.array_types import Bools
from tutorsim.analysis.statistics.intervals_and_tests import Bounds, NotEstimable, mean_of, to_json
from tutorsim.analysis.systems.contrasts_of_any_sides_in_words_and_of_runs import BASELINE
from tutorsim.analysis.systems.panel.student_outcomes import Outcome, outcome_of
from tutorsim.analysis.systems.system_view_opened_run_and_cost import Leaving
from tutorsim.errors import UsageError
from tutorsim.records import EpisodeRecord

# --- Where other rules diverge -------------------------------------------------------------------

Alternatives = pl.DataFrame
"""`episode_id`, `turn` and `winners`: who may win under the alternative. A turn that is not in it
is not settled."""

_NO_OUTCOME: Final = "no episode with a logged outcome"
BOUNDED: Final[tuple[Outcome, ...]] = ("success", "final_score", "final_code")
"""Outcomes that lie between 0 and 1."""

DIVERGENCE_SCHEMA: Final = pl.Schema(
    {
        "episode_id": pl.String(),
        "benchmark": pl.String(),
        "condition": pl.String(),  # protocol, for ballots from elsewhere
        "turns": pl.Int64(),  # logged voting turns
        "path": pl.String(),  # covered, possible or divergent
        "first_possible": pl.Int64(),  # first turn whose winner may differ; null where covered
        "first_certain": pl.Int64(),  # first turn whose winner differs; null unless divergent
        "logged_winner": pl.String(),  # of the first turn that may differ
        "alternatives": pl.List(pl.String()),  # its other possible winners, null: not settled
    }
)
"""One row per episode with a panel."""


@dataclass(frozen=True)
class Coverage:
    """One benchmark and condition: how far the log speaks for the alternative."""

    benchmark: str | None
    condition: str | None
    episodes: int
    covered: int
    """No turn can have another winner."""
    divergent: int
    """Some turn has another winner for certain."""
    coverage: Bounds
    """Share of episodes without a divergent turn: lowest if all `possible` ones diverge."""
    on_covered: Mapping[str, float | NotEstimable]
    """Outcome → its mean over covered episodes, which are a selected part of all."""
    bounds: Mapping[str, Bounds | NotEstimable]
    """Outcome → worst-case bounds of its mean over all episodes."""
    logged: Mapping[str, float | NotEstimable]
    """Outcome → its mean as logged, over all episodes."""


@dataclass(frozen=True)
class Divergence:
    """What an alternative would have done to a source's episodes."""

    question: str
    """What was asked, for captions."""
    episodes: pl.DataFrame
    """`DIVERGENCE_SCHEMA`."""
    coverage: tuple[Coverage, ...]
    caption: str

    def to_json(self) -> dict[str, object]:
        return {**to_json(vars(self)), "episodes": self.episodes.to_dicts()}


def diverge(source: Source, alternatives: Alternatives, *, question: str) -> Divergence:
    """First divergent turns, coverage and outcome bounds under an alternative.

    Without a logged order, turns that counting leaves tied have no winner to diverge from.

    `alternatives`: the possible winners of each turn.
    """
    complete = (e for e in source.episodes if e.status == "complete")
    records = {e.episode_id: e for e in complete if e.condition != "baseline"}
    columns = ("episode_id", "benchmark", "condition")
    rows = [[getattr(e, name) for name in columns] for e in records.values()]
    known = pl.DataFrame(rows, dict.fromkeys(columns, pl.String), orient="row")
    found = _episodes(source, alternatives)
    unknown = found.select(columns).join(known, on="episode_id", how="anti", maintain_order="left")
    path = (
        pl.when(pl.col("first_certain").is_not_null())
        .then(pl.lit("divergent"))
        .when(pl.col("first_possible").is_not_null())
        .then(pl.lit("possible"))
        .otherwise(pl.lit("covered"))
    )
    frame = (
        pl.concat([known, unknown])
        .join(found.drop(columns[1:]), on="episode_id", how="left", maintain_order="left")
        .with_columns(pl.col("turns").fill_null(0), path=path)
        .select(pl.col(name).cast(kind) for name, kind in DIVERGENCE_SCHEMA.items())
    )
    cells = frame.group_by("benchmark", "condition", maintain_order=True)
    coverage = tuple(_cell(key, own, records) for key, own in cells)
    return Divergence(question, frame, coverage, _caption(source, question, frame))


def under_order(source: Source, order: Sequence[str]) -> Alternatives:
    """Winners under another fallback order; exact.

    Candidates that the order leaves out stand behind it, in the source's own order.
    """
    table = turn_table(source)
    places = [order.index(c) if c in order else len(order) for c in table.order]

    def first(panel: DecidedTurns) -> Bools:
        rank = np.where(panel.undecided, np.array(places)[panel.final.candidates], len(order) + 1)
        return only(rank.argmin(axis=1), rank.shape[1])

    return _alternatives(table, first)


def without_tie_round(source: Source) -> Alternatives:
    """Winners if a tied final vote had gone straight to the fallback order; exact."""
    return _alternatives(
        turn_table(source), lambda panel: only(first_of(panel.led), panel.led.shape[1])
    )


def with_random_ties(source: Source) -> Alternatives:
    """Winners that a random pick could give where the fallback order decided."""
    return _alternatives(turn_table(source), lambda panel: panel.undecided)


def alternatives_of(turns: pl.DataFrame) -> Alternatives:
    """Possible winners from a recount's per-turn table.

    `turns`: rows of one question, with `episode_id`, `turn`, `possible_winners` (a list) and
    `settled`; turns that are not settled are left out.
    """
    return turns.filter("settled").select("episode_id", "turn", winners="possible_winners")


def _alternatives(table: TurnTable, winners: Callable[[DecidedTurns], Bools]) -> Alternatives:
    """What an alternative that is exact says of every turn."""
    named = table.lists([(panel.final, winners(panel)) for panel in table.panels])
    return table.votes.turns.select("episode_id", "turn", winners=named)


def _turns(source: Source) -> pl.DataFrame:
    """The voting turns of each episode, those that a continuation shares with another too.

    `holder` is the episode that the turn's ballots are logged in.
    """
    table = turn_table(source)
    condition = pl.coalesce(pl.col("condition").replace("", None), "protocol")
    turns = places_of(table.votes).select(
        "episode_id", "turn", "benchmark", condition, winner=table.names(table.winner)
    )
    if not source.ordered:
        turns = turns.filter(~table.fallback)
    shared = [(e, n, holder) for (e, n), holder in shared_turns(source.episodes).items()]
    held = pl.DataFrame(
        shared, {"other": pl.String, "turn": pl.Int64, "holder": pl.String}, orient="row"
    )
    again = turns.rename({"episode_id": "holder"}).join(held, on=["holder", "turn"])
    columns = [*turns.columns, "holder"]
    own = turns.with_columns(holder="episode_id")
    return pl.concat([own, again.rename({"other": "episode_id"}).select(columns)])


def _episodes(source: Source, alternatives: Alternatives) -> pl.DataFrame:
    """What an alternative says of the turns of each episode, in the order of their ballots."""
    winners, winner = pl.col("winners"), pl.col("winner")
    same = (winners.list.len() == 1) & (winners.list.first() == winner)
    judged = (
        _turns(source)
        .with_row_index("row")
        .join(
            alternatives.select(holder="episode_id", turn="turn", winners="winners"),
            on=["holder", "turn"],
            how="left",
        )
        .sort("turn", "row")
        .with_columns(
            may=~same.fill_null(value=False),
            must=~winners.list.contains(winner).fill_null(value=True),
        )
    )
    may = pl.col("may")
    others = winners.list.set_difference(pl.concat_list("winner")).list.sort()
    return (
        judged.with_columns(others=others)
        .group_by("episode_id", maintain_order=True)
        .agg(
            pl.col("benchmark", "condition").sort_by("row").first(),
            turns=pl.len(),
            first_possible=pl.col("turn").filter(may).first(),
            first_certain=pl.col("turn").filter("must").first(),
            logged_winner=winner.filter(may).first(),
            alternatives=pl.col("others").filter(may).first(),
            row=pl.col("row").min(),
        )
        .sort("row")
    )


def _cell(
    key: tuple[object, ...], rows: pl.DataFrame, records: Mapping[str, EpisodeRecord]
) -> Coverage:
    paths, of = rows["path"].to_list(), [records.get(name) for name in rows["episode_id"]]
    n, covered, divergent = len(paths), paths.count("covered"), paths.count("divergent")
    kept = [path == "covered" for path in paths]
    values = {name: [outcome_of(e, name) if e else None for e in of] for name in BOUNDED}
    benchmark, condition = (None if value is None else str(value) for value in key)
    return Coverage(
        benchmark=benchmark,
        condition=condition,
        episodes=n,
        covered=covered,
        divergent=divergent,
        coverage=Bounds(covered / n, (n - divergent) / n, n),
        on_covered={name: _mean(compress(vs, kept)) for name, vs in values.items()},
        bounds={name: _worst_case(vs, kept) for name, vs in values.items()},
        logged={name: _mean(vs) for name, vs in values.items()},
    )


def _mean(values: Iterable[float | None]) -> float | NotEstimable:
    return mean_of([value for value in values if value is not None], _NO_OUTCOME)


def _worst_case(values: Sequence[float | None], kept: Sequence[bool]) -> Bounds | NotEstimable:
    """Bounds where every outcome that is not known may be 0 or 1, unscored ones among them."""
    if all(value is None for value in values):
        return NotEstimable(_NO_OUTCOME)
    known = [value for value in compress(values, kept) if value is not None]
    n = len(values)
    return Bounds(fsum(known) / n, (fsum(known) + n - len(known)) / n, n)


def _caption(source: Source, question: str, frame: pl.DataFrame) -> str:
    drawn = any(e.branch is not None for e in source.episodes)
    return (
        f"{question}: {frame.height} episodes with a panel, {frame['turns'].sum()} voting turns; "
        f"{source.provenance}. The logged dialogue is held fixed up to the first divergent turn; "
        "outcomes after it are not identified, and the bounds let each be 0 or 1."
        + " Each draw of a branch counts as an episode."
        * drawn
    )


# --- Tables of divergence ------------------------------------------------------------------------

_COVERAGE: Final = (
    "Covered: no turn can have another winner, so the logged outcome is the alternative's too; "
    "any other episode leaves the log at its first turn that diverges."
)
_BOUNDS: Final = "its bounds let every outcome after a turn that may diverge be a success or none."


@table(
    "divergence",
    "How far the recording speaks for another rule",
    covered=_COVERAGE,
    bounds=_BOUNDS,
)
def alternatives_table(of: Any) -> Iterator[Row]:
    """Episodes with a panel. {covered} Success is the share of all these episodes; {bounds}"""
    panels = [row for row in of.successes if row.condition != BASELINE]
    n = sum(row.rate.n for row in panels)
    logged = f"{sum(row.successes for row in panels) / n:.2f}" if n else DASH
    for one in of.divergences:
        if one.coverage:
            success = {f"success: {logged} as logged, bounds": _pooled(one.coverage)}
            known = success if of.source.run is not None else {}
            yield {"alternative": one.question, **_counts(one.coverage), **known}


@table(
    "coverage",
    "How far the recording speaks for it",
    secondary=("success, on covered",),
    covered=_COVERAGE,
    bounds=_BOUNDS,
)
def coverage_table(of: Divergence) -> Iterator[Row]:
    """Episodes with a panel. {covered} Coverage: share of episodes that are covered. Success is the
    share of all episodes; {bounds} Covered episodes are a selected part of all. {caption}"""
    known = any(not isinstance(row.logged["success"], NotEstimable) for row in of.coverage)
    for row in of.coverage:
        success = {
            "success, bounds": bounds(row.bounds["success"]),
            "success, logged": plain(row.logged["success"]),
            "success, on covered": plain(row.on_covered["success"]),
        }
        yield {
            "benchmark": row.benchmark or "",
            "condition": row.condition or "",
            **_counts([row]),
            "coverage": bounds(row.coverage),
            **(success if known else {}),
        }


@table("first-turns", "First turns that may differ")
def first_turns_table(of: Divergence) -> Iterator[Row]:
    """Of each episode that is not covered: the logged winner of that turn, and who may win it."""
    for row in of.episodes.to_dicts():
        if row["path"] != "covered":
            won = row["alternatives"]
            yield {
                "episode": row["episode_id"],
                "turn": row["first_possible"],
                "path": row["path"],
                "logged": row["logged_winner"],
                "alternative": " or ".join(won) if won else "not settled",
            }


def _counts(cells: Sequence[Coverage]) -> dict[str, int]:
    """Episodes of some cells, by whether they leave the log."""
    names = ("episodes", "covered", "divergent")
    whole, covered, certain = (sum(getattr(cell, name) for cell in cells) for name in names)
    may = {"may diverge": whole - covered - certain, "diverge for certain": certain}
    return {"episodes": whole, "covered": covered, **may}


def _pooled(cells: Sequence[Coverage]) -> Written:
    """Bounds of success over the cells in which it is known."""
    every = [cell.bounds["success"] for cell in cells]
    known = [one for one in every if isinstance(one, Bounds)]
    n = sum(one.n for one in known)
    if not n:
        return bounds(NotEstimable("no outcome is known"))
    low, high = (sum(getattr(one, end) * one.n for one in known) / n for end in ("low", "high"))
    return bounds(Bounds(low, high, n))


# --- One alternative ------------------------------------------------------------------------------


def divergence_under(source: Source, left: Leaving) -> Divergence:
    """What one rule, one order or one tie policy would have done to a source's episodes.

    Raises `UsageError` unless exactly one of rule, order and policy is given.
    """
    convention = "" if left.rule is None else _convention(left.rule, source)
    question, alternatives = _alternatives_under(source, left)
    found = diverge(source, alternatives, question=question)
    return replace(found, caption=f"{found.caption} {convention}".rstrip())


def _convention(rule: str, source: Source) -> str:
    """How a rule counts, where counts of its name differ; a function of the ballots is refused."""
    refuse_shadowed([rule])
    own = checked_rules(installed_rules([rule])).get(rule)
    if own is None:
        return conventions_of([cast("Target", rule)])
    if isinstance(own, FunctionRule):
        raise UsageError(
            f"The rule {rule!r} cannot be asked where episodes leave their path.",
            why="It is a function of the ballots, which gives a point; a turn leaves its path "
            "where the logged winner is certain not to win, or may not.",
            hint=f"`tutorsim recount RUN --targets {rule} --turns FILE.csv` gives its point for "
            "every turn.",
        )
    return convention_words(rule, own, {len(source.votes.order)})


def _alternatives_under(source: Source, left: Leaving) -> tuple[str, Alternatives]:
    """The question in words, and the possible winners of every turn."""
    if sum(option is not None for option in (left.rule, left.order, left.policy)) != 1:
        raise UsageError(
            "Name exactly one alternative.",
            why="Episodes diverge from the log under one rule, one order or one tie policy.",
            hint="Give --rule, --fallback-order or --tie-policy.",
        )
    if left.rule is None and (left.exempt or left.ties != "set"):
        raise UsageError(
            "--ties and --exempt go with --rule.",
            why="An order or a tie policy is recounted exactly from the logged ballots.",
            hint="Leave them out, or name a --rule.",
        )
    if left.ties == "fallback" and not source.ordered:
        raise UsageError(
            "Ties cannot go to an order.",
            why=f"No order is logged in {source.name}.",
            hint="Leave --ties out: then a tie leaves all its candidates possible.",
        )
    if left.rule is not None:
        exempt = (left.exempt,)
        turns = recount(
            source, targets=(left.rule,), exempt=exempt, tables=(), progress=left.progress
        ).per_turn
        words = "ties stay open" if left.ties == "set" else "ties go to the order"
        exempted = f", {left.exempt} exempt voters" if left.exempt else ""
        rows = turns.filter(reading=left.ties)
        return f"Rule {left.rule}, {words}{exempted}", alternatives_of(rows)
    if left.order is not None:
        order = checked_order(left.order, source.votes.order)
        return f"Fallback order {' > '.join(order)}", under_order(source, order)
    if left.policy == "random":
        return "A lot where the order decided", with_random_ties(source)
    return "Without the tie round", without_tie_round(source)
