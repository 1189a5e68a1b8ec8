"""Conditions, or two runs, against one another, paired on task and persona."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import combinations
from operator import itemgetter
from typing import Final, NamedTuple, cast

import polars as pl

from tutorsim.analysis.ballots.recount_source import Source
from tutorsim.analysis.counting.winners_and_vote_shift_by_turn import (
    clusters_of,
    places_of,
    turn_table,
)
from tutorsim.analysis.pages.cells_and_tables import (
    Table,
    absent,
    estimate,
    number,
    p_value,
    plain,
    present,
)
from tutorsim.analysis.pages.declared_tables_and_charts import Row, table
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
    flips_by_task,
    holm,
    labels_within_pairs,
    mean_of,
    mean_over_tasks,
    paired_difference,
    share_over_tasks,
    spread_to_expect,
    tasks_for,
)
from tutorsim.analysis.systems.paired_comparison import (
    NAMED,
    and_more,
    chance_words,
    contrast_headline,
    difference_words,
    p_words,
)
from tutorsim.analysis.systems.panel.student_outcomes import (
    ENDS,
    OUTCOMES,
    Outcome,
    Pair,
    cells_of,
    mean_by_pair,
    outcome_of,
    paired_values,
    runs_by_pair,
)
from tutorsim.analysis.systems.system_view import SystemRun, framed
from tutorsim.errors import UsageError

# --- Condition contrasts -------------------------------------------------------------------------

Runs = Mapping[Pair, Sequence[float]]
"""Pair → the outcome of each of its repeats."""


@dataclass(frozen=True)
class Contrast:
    """Two conditions on one outcome, paired on task and persona: `second` − `first`."""

    benchmark: str
    outcome: Outcome
    first: str
    second: str
    test: PermutationTest | NotEstimable
    p_holm: float | None
    """Corrected over all contrasts asked for; `None` without a test."""
    p_alone: float | None
    """For these tasks and personas alone, corrected; `None` where the tasks are enough for more."""
    difference: Estimate | NotEstimable
    detectable: float | NotEstimable
    """The least difference that so many tasks with this spread would show with 80 % power."""


def contrasts(
    source: Source, outcomes: Sequence[Outcome], *, reference: str | None = None
) -> list[Contrast]:
    """Conditions against one another on some outcomes, per benchmark.

    First attempts are drawn separately in each condition, so pairs share task and persona and
    nothing else. Repeats of a pair are averaged.

    `outcomes`: what to compare; see `outcome_of`. Tests are of programs alone. `reference`: compare
    the others with this condition only; by default every two conditions.
    """
    rows: list[Contrast] = []
    sides: list[tuple[Runs, Runs]] = []
    for outcome in outcomes:
        for (benchmark,), episodes in cells_of(source.episodes, "benchmark"):
            if outcome in ("final_code", "code_gain") and benchmark != "humaneval":
                continue
            names = list(dict.fromkeys(e.condition for e in episodes))
            runs = runs_by_pair(
                episodes, partial(outcome_of, outcome=outcome), by=lambda e: e.condition
            )
            for a, b in combinations(names, 2):
                if reference not in (None, a, b):
                    continue
                first, second = (b, a) if b == reference else (a, b)
                one, two = runs.get(first, {}), runs.get(second, {})
                test, difference = paired_difference(
                    mean_by_pair(one),
                    mean_by_pair(two),
                    cluster=itemgetter(1),
                    seed=SEED,
                    ends=ENDS[outcome],
                )
                cell = benchmark, outcome, first, second
                rows.append(Contrast(*cell, test, None, None, difference, NotEstimable("no pairs")))
                sides.append((one, two))
    return _alone(corrected(rows), sides)


def _alone(rows: Sequence[Contrast], sides: Sequence[tuple[Runs, Runs]]) -> list[Contrast]:
    """The rows with what they say of these tasks alone, where tasks are too few for more."""
    tested = [i for i, row in enumerate(rows) if isinstance(row.test, PermutationTest)]
    most = max((row.test.tasks for row in rows if isinstance(row.test, PermutationTest)), default=0)
    if not tested or most >= fewest_tasks(len(tested)):
        return list(rows)
    found = {}
    for i in tested:
        one, two = sides[i]
        shared = [pair for pair in one if pair in two]
        found[i] = labels_within_pairs(
            [one[pair] for pair in shared], [two[pair] for pair in shared], seed=SEED
        )
    values = holm(found)
    return [replace(row, p_alone=values.get(i)) for i, row in enumerate(rows)]


HEAD_OUTCOMES: Final[tuple[Outcome, ...]] = ("success", "final_score")
"""What conditions are compared on first."""

OUTCOME_NAMES: Final[dict[Outcome, str]] = {
    "success": "success",
    "final_score": "last judge score",
    "score_gain": "gain in judge score",
    "final_code": "tests passed at the end",
    "code_gain": "gain in tests passed",
    "turns": "tutoring turns",
}


def contrasts_of(source: Source, outcomes: Sequence[Outcome] = HEAD_OUTCOMES) -> list[Contrast]:
    """Conditions on some outcomes: against the single tutor where there is one, else all pairs.

    `outcomes`: what to compare; all that is asked for is one family.
    """
    conditions = {episode.condition for episode in source.episodes}
    reference = "baseline" if "baseline" in conditions else None
    return contrasts(source, outcomes, reference=reference)


class Family(NamedTuple):
    """Contrasts to be shown, of those that were corrected together."""

    rows: Sequence[Contrast]
    whole: int

    @property
    def alone(self) -> bool:
        """Whether tasks are so few that something is said of them alone."""
        return any(row.p_alone is not None for row in self.rows)


_ALONE: Final = (
    "These tasks alone: p of another claim, that the same tasks and personas, run again, would "
    "differ; labels permuted within task and persona, Holm's correction too. "
)


@table(
    "contrasts",
    "One condition against another",
    secondary=("detectable",),
    family=lambda of: of.whole,
    alone=lambda of: _ALONE if of.alone else "",
)
def contrast_table(of: Family) -> Iterator[Row]:
    """Mean difference [95 % interval over tasks], paired on task and persona; first attempts are
    drawn separately in each condition. p: signs flipped by task, all pairs of a task together,
    exact unless marked ~ (then with the error of the draws), with Holm's correction over {family}
    contrasts. {alone}Detectable: the least mean difference that so many tasks with this spread
    would show with 80 % power."""
    for row in of.rows:
        alone = number(None, digits=3) if row.p_alone is None else p_value(row.p_alone)
        yield {
            "difference of": f"{row.second} − {row.first} {_measured(row)}",
            "difference": estimate(row.difference, signed=True),
            "p": p_words(row),
            "pairs": row.difference.n,
            "tasks": getattr(row.test, "tasks", 0),
            **({"these tasks alone": alone} if of.alone else {}),
            "detectable": plain(row.detectable),
        }


def contrasts_shown(found: Sequence[Contrast]) -> Table | None:
    """Every contrast of a family in a table; `None` without any."""
    return contrast_table(Family(found, len(found)))


def contrast_words(found: Sequence[Contrast]) -> str:
    """Which differences are beyond chance, and what could have been seen at all."""
    told = chance_words(found, _told, _measured, largest=1, shown=_shown(found))
    alone = [row for row in found if row.p_alone is not None and row.p_alone < ALPHA]
    if not alone:
        return told
    alone.sort(key=lambda row: row.p_alone or 0)
    named = [f"{_told(row)}, p = {p_value(row.p_alone or 0)}" for row in alone[:NAMED]]
    return (
        f"{told} On these tasks and personas alone, were they run again: "
        f"{and_more(named, len(alone))} For that, labels are permuted within task and persona, "
        f"with Holm's correction over {counted(len(found), 'contrast')}."
    )


def _shown(found: Sequence[Contrast]) -> str:
    """How many tasks would show a difference of 0.3 in success, before any is known."""
    runs = [row.test.n / row.test.tasks for row in found if isinstance(row.test, PermutationTest)]
    if not runs:
        return ""
    tasks = tasks_for(0.3, spread_to_expect(max(1, round(max(runs)))), len(runs))
    return (
        f" About {tasks} would show a difference of 0.3 in success. That is with 80 % power: see "
        "`tutorsim guide statistics`."
    )


def _told(row: Contrast) -> str:
    return difference_words(f"{row.second} − {row.first}", row.difference, _measured(row))


def _measured(row: Contrast) -> str:
    return f"in {OUTCOME_NAMES[row.outcome]} ({row.benchmark})"


def contrasts_frame(source: Source, outcomes: Sequence[str]) -> pl.DataFrame:
    """Contrasts with a column for each number; `UsageError` if there is no outcome of a name."""
    unknown = [name for name in outcomes if name not in OUTCOMES]
    if unknown:
        raise UsageError(
            f"{unknown[0]!r} is no outcome.", hint=f"Outcomes are {', '.join(OUTCOMES)}."
        )
    found = contrasts_of(source, tuple(cast("Outcome", name) for name in outcomes))
    return pl.DataFrame(list(map(_contrast_row, found)), schema=_CONTRASTS)


_CONTRASTS: Final = {
    "benchmark": pl.String,
    "outcome": pl.String,
    "first": pl.String,
    "second": pl.String,
    "pairs": pl.Int64,
    "difference": pl.Float64,
    "low": pl.Float64,
    "high": pl.Float64,
    "p": pl.Float64,
    "p_holm": pl.Float64,
    "detectable": pl.Float64,
}


def _contrast_row(row: Contrast) -> Mapping[str, object]:
    test = row.test if isinstance(row.test, PermutationTest) else None
    return {
        "benchmark": row.benchmark,
        "outcome": row.outcome,
        "first": row.first,
        "second": row.second,
        "pairs": test.n if test else 0,
        "difference": row.difference.value,
        "low": row.difference.low,
        "high": row.difference.high,
        "p": test and test.p_value,
        "p_holm": row.p_holm,
        "detectable": None if isinstance(row.detectable, NotEstimable) else row.detectable,
    }


# --- Document of conditions ----------------------------------------------------------------------


def conditions_document(run: SystemRun) -> Document:
    """The conditions of a run against one another, on every outcome."""
    found = contrasts_of(run.source, OUTCOMES)
    success = [row for row in found if row.outcome == "success"]
    every = present(contrasts_shown(found))
    headline, words = contrast_headline(found), contrast_words(found)
    return framed(
        run,
        summary=f"The conditions of {run.name} against one another.",
        answers=(Answer("Do the conditions differ?", headline, words, "differences"),),
        sections=(Section("differences", "Every outcome", "", tables=every),),
        brief=present(contrast_table(Family(success, len(found)))),
        values=lambda: {"contrasts": found},
    )


# --- Two runs ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class OutcomeDifference:
    """One outcome under one condition: second run − first run, over the pairs they share."""

    benchmark: str
    condition: str
    """With the panel behind it, `ranked.four`, where the runs compare panels."""
    outcome: Outcome
    first: float | NotEstimable
    """Mean over the shared pairs."""
    second: float | NotEstimable
    difference: Estimate | NotEstimable
    test: PermutationTest | NotEstimable
    p_holm: float | None
    """Corrected over all rows of the comparison; `None` without a test."""
    differing: int
    """Pairs whose outcome is not the same in both runs."""


@dataclass(frozen=True)
class Comparison:
    """Two runs, paired."""

    first: str
    second: str
    pairs: int
    """Benchmark, task, persona and condition that both runs have complete."""
    only_first: int
    only_second: int
    outcomes: tuple[OutcomeDifference, ...]
    same_winner: Mapping[str, Estimate | NotEstimable]
    """Protocol → share of first turns of the same episode that both runs gave to one role."""
    format_invariance: Mapping[str, FormatInvariance | NotEstimable]
    """As `format_invariance_of_two` gives it."""
    caption: str


def compare_runs(first: Source, second: Source) -> Comparison:
    """Compare two sources, outcome by outcome and winner by winner.

    Repeats of a pair are averaged. First attempts may differ between recordings, so the pairs
    share their place in the grid and nothing else.

    Raises `UsageError` if they share no pair that both have complete.
    """
    if not _pairs(first) & _pairs(second):
        raise UsageError(
            f"{first.name} and {second.name} share no episode that both have complete.",
            why="Runs are compared in pairs of the same benchmark, task, persona and condition.",
            hint="Compare runs over the same tasks, or read the two with `tutorsim summary`.",
        )
    a, b = _cells(first), _cells(second)
    rows = [
        _difference(cell, outcome, a, b)
        for cell in a
        if cell in b
        for outcome in OUTCOMES
        if cell[0] == "humaneval" or outcome not in ("final_code", "code_gain")
    ]
    one, two = _pairs(first), _pairs(second)
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


Cells = Mapping[tuple[str, str], Mapping[Outcome, Mapping[Pair, float]]]


def _cells(source: Source) -> Cells:
    """Benchmark and arm → outcome → pair → value."""
    found: dict[tuple[str, str], dict[Outcome, Mapping[Pair, float]]] = {}
    for (benchmark, arm), episodes in cells_of(source.episodes, "benchmark", "arm"):
        for outcome in OUTCOMES:
            value = partial(outcome_of, outcome=outcome)
            own = paired_values(episodes, value, by=lambda e: e.arm).get(arm, {})
            found.setdefault((benchmark, arm), {})[outcome] = own
    return found


_NO_PAIR: Final = "no pair with this outcome in both"


def _pairs(source: Source) -> set[tuple[str, ...]]:
    return {
        (e.benchmark, e.task_id, e.persona, e.arm)
        for e in source.episodes
        if e.status == "complete"
    }


def _difference(cell: tuple[str, str], outcome: Outcome, a: Cells, b: Cells) -> OutcomeDifference:
    one, two = a[cell][outcome], b[cell][outcome]
    shared = [pair for pair in one if pair in two]
    differences = [two[pair] - one[pair] for pair in shared]
    tasks = [task for _, task, _ in shared]
    return OutcomeDifference(
        *cell,
        outcome,
        mean_of([one[pair] for pair in shared], _NO_PAIR),
        mean_of([two[pair] for pair in shared], _NO_PAIR),
        mean_over_tasks(differences, tasks, ends=ENDS[outcome]),
        flips_by_task(differences, tasks, seed=SEED),
        None,
        sum(difference != 0 for difference in differences),
    )


def _same_winner(first: Source, second: Source) -> dict[str, Estimate | NotEstimable]:
    one, other = (_first_winners(source) for source in (first, second))
    both = other.join(one, on=["episode_id", "protocol"], maintain_order="left")
    alike = both.with_columns(same=pl.col("winner") == pl.col("winner_right"))
    return {
        str(protocol): share_over_tasks(rows["same"].to_list(), clusters_of(rows))
        for (protocol,), rows in alike.group_by("protocol", maintain_order=True)
    }


def _first_winners(source: Source) -> pl.DataFrame:
    """The winner of each episode's first turn, with its benchmark and task."""
    table = turn_table(source)
    places = places_of(table.votes).select("benchmark", "task")
    return pl.concat([table.winners(), places], how="horizontal").filter(turn=1)


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
            "benchmark": row.benchmark,
            "condition": row.condition,
            "outcome": OUTCOME_NAMES[row.outcome],
            "pairs": row.difference.n,
            "first": plain(row.first),
            "second": plain(row.second),
            "difference": estimate(row.difference, signed=True),
            "p": p_words(row),
        }


@table(
    "same-winner",
    "Same winner in the first turn",
    of=lambda of: of.caption,
    absent=lambda of: absent(of.same_winner.values()),
)
def same_winner_table(of: Comparison) -> Iterator[Row]:
    """Share of shared episodes [95 % interval over tasks]. {of}{absent}"""
    for protocol, share in of.same_winner.items():
        yield {"protocol": protocol, "same winner": estimate(share)}


def comparison_words(found: Comparison) -> tuple[str, str]:
    """Whether two runs differ, in a few words, and where and how sure."""
    apart = [row for row in found.outcomes if row.differing]
    same = all(rate.value == 1 for rate in found.same_winner.values() if isinstance(rate, Estimate))
    if not apart:
        winners = " and every first turn has the same winner" if same else ""
        return "Nothing differs", f"Every paired outcome is equal{winners}."
    words = chance_words(found.outcomes, _run_difference, _run_outcome, between="runs")
    return f"Means differ in {len(apart)} of {len(found.outcomes)} outcomes", words


def _run_difference(row: OutcomeDifference) -> str:
    return difference_words("", row.difference, _run_outcome(row))


def _run_outcome(row: OutcomeDifference) -> str:
    return f"in {OUTCOME_NAMES[row.outcome]} under {row.condition} ({row.benchmark})"


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
        values=lambda: vars(found),
    )
