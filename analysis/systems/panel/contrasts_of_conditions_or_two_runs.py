"""Conditions, or two runs, against one another, paired on task and persona."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from operator import attrgetter, itemgetter
from typing import Any, Final, NamedTuple, cast

import polars as pl

from tutorsim.analysis.ballots.recount_source import Source
from tutorsim.analysis.counting.turns_winner_step_and_first_to_final_shift import (
    clusters_of,
    places_of,
    turn_table,
)
from tutorsim.analysis.pages.cells_and_tables import absent, estimate, present
from tutorsim.analysis.pages.decorators_to_declare_tables_and_charts import Row, table
from tutorsim.analysis.pages.document import Answer, Document, Section
from tutorsim.analysis.pages.words_and_safe_text import counted
from tutorsim.analysis.recount.same_voter_in_two_formats import (
    FormatInvariance,
    format_invariance_of_two,
    formats_section,
)
from tutorsim.analysis.statistics.intervals_and_tests import (
    ALPHA,
    SEED,
    Estimate,
    NotEstimable,
    PermutationTest,
    corrected,
    fewest_tasks,
    holm,
    labels_within_pairs,
    share_over_tasks,
    spread_to_expect,
    tasks_for,
)
from tutorsim.analysis.systems.contrasts_of_any_sides_in_words_and_of_runs import (
    BASELINE,
    Contrast,
    against,
    chance_words,
    contrast_headline,
    contrasts_between,
    frame_of,
    named_differences,
)
from tutorsim.analysis.systems.panel.student_outcomes import (
    ENDS,
    OUTCOME_NAMES,
    OUTCOMES,
    Outcome,
    cells_of,
    outcome_of,
    repeats_of,
)
from tutorsim.analysis.systems.system_view_opened_run_and_cost import SystemRun, framed
from tutorsim.errors import UsageError
from tutorsim.records import EpisodeRecord

# --- Condition contrasts -------------------------------------------------------------------------

HEAD_OUTCOMES: Final[tuple[Outcome, ...]] = ("success", "final_score")
"""What conditions are compared on first."""


def contrasts_of(source: Source, outcomes: Sequence[Outcome] = HEAD_OUTCOMES) -> list[Contrast]:
    """Conditions on some outcomes: against the single tutor where there is one, else all pairs.

    First attempts are drawn separately in each condition, so pairs share task and persona and
    nothing else. Repeats of a pair are averaged.

    `outcomes`: what to compare; see `outcome_of`. Tests are of programs alone; all that is asked
    for is one family.
    """
    alone = any(episode.condition == BASELINE for episode in source.episodes)
    rows: list[Contrast] = []
    for outcome in outcomes:
        for (benchmark,), episodes in cells_of(source.episodes, "benchmark"):
            sides = {name: own for (name,), own in cells_of(episodes, "condition")}
            pairs = against(sides, BASELINE if alone else None)
            rows += _on_outcome(outcome, benchmark, sides, pairs)
    return _alone(corrected(rows))


def _on_outcome(
    outcome: Outcome,
    benchmark: str,
    sides: Mapping[str, Sequence[EpisodeRecord]],
    pairs: Sequence[tuple[str, str]],
    where: str = "",
    **place: Any,
) -> Iterator[Contrast]:
    """Contrasts of sides on one outcome of one benchmark; none of tests where there are none."""
    if benchmark != "humaneval" and outcome in ("final_code", "code_gain"):
        return iter(())
    value = partial(outcome_of, outcome=outcome)
    return contrasts_between(
        {name: repeats_of(own, value) for name, own in sides.items()},
        pairs,
        cluster=itemgetter(1),
        ends=ENDS[outcome],
        measured=f"in {OUTCOME_NAMES[outcome]}{where} ({benchmark})",
        benchmark=benchmark,
        outcome=outcome,
        **place,
    )


def _alone(rows: Sequence[Contrast]) -> list[Contrast]:
    """The rows with what they say of these tasks alone, where tasks are too few for more."""
    tested = {i: row for i, row in enumerate(rows) if isinstance(row.test, PermutationTest)}
    if not tested or max(row.tasks for row in tested.values()) >= fewest_tasks(len(tested)):
        return list(rows)
    values = holm({i: labels_within_pairs(*row.repeats, seed=SEED) for i, row in tested.items()})
    return [replace(row, p_alone=values.get(i)) for i, row in enumerate(rows)]


_ALONE: Final = (
    "These tasks alone: p of another claim, that the same tasks and personas, run again, would "
    "differ; labels permuted within task and persona, Holm's correction too. "
)


class Family(NamedTuple):
    """Contrasts that are corrected together, of which those on some outcomes are shown."""

    contrasts: Sequence[Contrast]
    outcomes: Sequence[str] = OUTCOMES

    @property
    def shown(self) -> list[Contrast]:
        """The contrasts on these outcomes."""
        return [row for row in self.contrasts if row.outcome in self.outcomes]

    @property
    def few(self) -> bool:
        """Whether tasks are so few that some of those shown are told of these tasks alone."""
        return any(row.p_alone is not None for row in self.shown)


@table(
    "contrasts",
    "One condition against another",
    secondary=("detectable",),
    every=lambda of: len(of.contrasts),
    alone=lambda of: _ALONE if of.few else "",
)
def contrasts_table(of: Family) -> Iterator[Row]:
    """Mean difference [95 % interval over tasks], paired on task and persona; first attempts are
    drawn separately in each condition. p: signs flipped by task, all pairs of a task together,
    exact unless marked ~ (then with the error of the draws), with Holm's correction over {every}
    contrasts. {alone}Detectable: the least mean difference that so many tasks with this spread
    would show with 80 % power."""
    alone = ("these tasks alone",) if of.few else ()
    columns = ("difference", "p", "pairs", "tasks", *alone, "detectable")
    for row in of.shown:
        yield {"difference of": f"{row.name} {row.measured}", **row.cells(*columns)}


def contrast_words(found: Sequence[Contrast]) -> str:
    """Which differences are beyond chance, and what could have been seen at all."""
    told = chance_words(found, largest=1, shown=_shown(found))
    alone = [row for row in found if row.p_alone is not None and row.p_alone < ALPHA]
    if not alone:
        return told
    return (
        f"{told} On these tasks and personas alone, were they run again: "
        f"{named_differences(alone, attrgetter('p_alone'))} For that, labels are permuted within "
        f"task and persona, with Holm's correction over {counted(len(found), 'contrast')}."
    )


def _shown(found: Sequence[Contrast]) -> str:
    """How many tasks would show a difference of 0.3 in success, before any is known."""
    runs = [row.pairs / row.tasks for row in found if row.pairs]
    if not runs:
        return ""
    tasks = tasks_for(0.3, spread_to_expect(max(1, round(max(runs)))), len(runs))
    return (
        f" About {tasks} would show a difference of 0.3 in success. That is with 80 % power: see "
        "`tutorsim guide statistics`."
    )


def contrasts_frame(run: SystemRun, outcomes: Sequence[str]) -> pl.DataFrame:
    """Contrasts with a column for each number; `UsageError` if there is no outcome of a name."""
    unknown = [name for name in outcomes if name not in OUTCOMES]
    if unknown:
        raise UsageError(
            f"{unknown[0]!r} is no outcome.", hint=f"Outcomes are {', '.join(OUTCOMES)}."
        )
    found = contrasts_of(run.source, tuple(cast("Outcome", name) for name in outcomes))
    named = ("benchmark", "outcome", "first", "second", "pairs")
    return frame_of(found, *named, "difference", "low", "high", "p", "p_holm", "detectable")


def contrast_values(found: Sequence[Contrast]) -> list[dict[str, object]]:
    """Contrasts of conditions as JSON has them."""
    place = ("benchmark", "outcome", "first", "second")
    tested = ("test", "p_holm", "p_alone", "difference", "detectable")
    return [row.values(*place, *tested) for row in found]


# --- Document of conditions ----------------------------------------------------------------------


def conditions_document(run: SystemRun) -> Document:
    """The conditions of a run against one another, on every outcome."""
    found = contrasts_of(run.source, OUTCOMES)
    every = present(contrasts_table(Family(found)))
    headline, words = contrast_headline(found), contrast_words(found)
    return framed(
        run,
        summary=f"The conditions of {run.name} against one another.",
        answers=(Answer("Do the conditions differ?", headline, words, "differences"),),
        sections=(Section("differences", "Every outcome", "", tables=every),),
        brief=present(contrasts_table(Family(found, ("success",)))),
        values=lambda: {"contrasts": contrast_values(found)},
    )


# --- Two runs ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Comparison:
    """Two runs, paired."""

    first: str
    second: str
    pairs: int
    """Benchmark, task, persona and condition that both runs have complete."""
    only_first: int
    only_second: int
    outcomes: tuple[Contrast, ...]
    """Contrasts of conditions, with the panel behind them, `ranked.four`, if runs compare
    panels."""
    same_winner: Mapping[str, Estimate | NotEstimable]
    """Protocol → share of first turns of the same episode that both runs gave to one role."""
    format_invariance: Mapping[str, FormatInvariance | NotEstimable]
    """Format invariance by place, from `format_invariance_of_two`."""
    caption: str


def compare_runs(first: Source, second: Source) -> Comparison:
    """Compare two sources, outcome by outcome and winner by winner.

    Repeats of a pair are averaged. First attempts may differ between recordings, so the pairs
    share their place in the grid and nothing else.

    Raises `UsageError` if they share no pair that both have complete.
    """
    a, b = (dict(cells_of(source.episodes, "benchmark", "arm")) for source in (first, second))
    one, two = (
        {(*cell, e.task_id, e.persona) for cell, own in cells.items() for e in own}
        for cells in (a, b)
    )
    if not one & two:
        raise UsageError(
            f"{first.name} and {second.name} share no episode that both have complete.",
            why="Runs are compared in pairs of the same benchmark, task, persona and condition.",
            hint="Compare runs over the same tasks, or read the two with `tutorsim summary`.",
        )
    rows: list[Contrast] = []
    for benchmark, arm in filter(b.__contains__, a):
        sides = {"first": a[benchmark, arm], "second": b[benchmark, arm]}
        for outcome in OUTCOMES:
            under = {"where": f" under {arm}", "condition": arm, "title": ""}
            rows += _on_outcome(outcome, benchmark, sides, [("first", "second")], **under)
    return Comparison(
        first=first.name,
        second=second.name,
        pairs=len(one & two),
        only_first=len(one - two),
        only_second=len(two - one),
        outcomes=tuple(corrected(rows)),
        same_winner=_same_winner(first, second),
        format_invariance=format_invariance_of_two(first, second),
        caption=(
            f"{second.name} − {first.name}, paired on benchmark, task, persona and condition. "
            f"First: {first.provenance}. Second: {second.provenance}."
        ),
    )


def _same_winner(first: Source, second: Source) -> dict[str, Estimate | NotEstimable]:
    one, other = (turn_table(source) for source in (first, second))
    places = places_of(other.votes).select("benchmark", "task")
    turns = pl.concat([other.winners(), places], how="horizontal").filter(turn=1)
    both = turns.join(one.winners(), on=["episode_id", "turn", "protocol"], maintain_order="left")
    alike = both.with_columns(same=pl.col("winner") == pl.col("winner_right"))
    return {
        str(protocol): share_over_tasks(rows["same"].to_list(), clusters_of(rows))
        for (protocol,), rows in alike.group_by("protocol", maintain_order=True)
    }


# --- Document of two runs ------------------------------------------------------------------------


@table(
    "differences",
    "Second run − first run",
    absent=lambda of: absent(row.difference for row in of.outcomes),
)
def differences_table(of: Comparison) -> Iterator[Row]:
    """Means over the pairs that both runs share; difference [95 % interval over tasks]. p: signs
    flipped by task, exact unless marked ~, with Holm's correction over all rows. Gains are of
    tutored episodes.{absent}"""
    places = list(OUTCOME_NAMES)
    for row in sorted(of.outcomes, key=lambda row: places.index(row.outcome)):
        yield {
            **row.cells("benchmark", "condition"),
            "outcome": OUTCOME_NAMES[row.outcome],
            **row.cells("pairs", "first", "second", "difference", "p"),
        }


@table("same-winner", "Same winner in the first turn")
def same_winner_table(of: Comparison) -> Iterator[Row]:
    """Share of shared episodes [95 % interval over tasks]. {caption}{absent}"""
    for protocol, share in of.same_winner.items():
        yield {"protocol": protocol, "same winner": estimate(share)}


def comparison_words(found: Comparison) -> tuple[str, str]:
    """Whether two runs differ, in a few words, and where and how sure."""
    apart = [row for row in found.outcomes if row.differing]
    same = all(rate.value == 1 for rate in found.same_winner.values() if isinstance(rate, Estimate))
    if not apart:
        winners = " and every first turn has the same winner" if same else ""
        return "Nothing differs", f"Every paired outcome is equal{winners}."
    words = chance_words(found.outcomes, between="runs")
    return f"Means differ in {len(apart)} of {len(found.outcomes)} outcomes", words


def runs_document(first: SystemRun, second: SystemRun) -> Document:
    """Two runs beside one another, outcome by outcome and winner by winner."""
    found = compare_runs(first.source, second.source)
    headline, words = comparison_words(found)
    telling = [row for row in found.outcomes if row.outcome == "success" and row.differing]
    brief = differences_table(replace(found, outcomes=tuple(telling)))
    tables = present(differences_table(found), same_winner_table(found))
    return framed(
        second,
        summary=f"{second.name} beside {first.name}: {counted(found.pairs, 'pair')} in both runs. "
        f"Only in the first: {found.only_first}; only in the second: {found.only_second}.",
        answers=(Answer("Do the runs differ?", headline, words, "differences"),),
        sections=(
            Section("differences", "Outcomes of both runs", found.caption, tables=tables),
            formats_section(found.format_invariance),
        ),
        brief=present(brief),
        values=lambda: {**vars(found), "outcomes": list(map(_outcome_values, found.outcomes))},
    )


def _outcome_values(row: Contrast) -> dict[str, object]:
    means = {"first": row.first_mean, "second": row.second_mean}
    place = row.values("benchmark", "condition", "outcome")
    return {**place, **means, **row.values("difference", "test", "p_holm", "differing")}
