"""Conditions against one another, paired on task and persona: tests, a table, sentences."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import combinations
from operator import itemgetter
from typing import Final, cast

import polars as pl

from tutorsim.analysis.ballots.recount_source import Source
from tutorsim.analysis.pages.cells import (
    Table,
    estimate,
    number,
    p_value,
    plain,
    present,
    table,
)
from tutorsim.analysis.pages.document import Answer, Document, Section
from tutorsim.analysis.pages.words import counted
from tutorsim.analysis.statistics.intervals_and_tests import (
    ALPHA,
    Estimate,
    NotEstimable,
    PermutationTest,
    fewest_tasks,
    holm,
    labels_within_pairs,
    spread_to_expect,
    tasks_for,
)
from tutorsim.analysis.statistics.paired import corrected, paired_difference
from tutorsim.analysis.systems.paired_comparison import (
    NAMED,
    and_more,
    chance_words,
    contrast_headline,
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
    source: Source,
    outcomes: Sequence[Outcome],
    *,
    reference: str | None = None,
    seed: int = 0,
) -> list[Contrast]:
    """Conditions against one another on some outcomes, per benchmark.

    First attempts are drawn separately in each condition, so pairs share task and persona and
    nothing else. Repeats of a pair are averaged.

    Args:
        source: A run.
        outcomes: What to compare; see `outcome_of`. Tests are of programs alone.
        reference: Compare the others with this condition only; by default every two conditions.
        seed: Of the draws.
    """
    rows: list[Contrast] = []
    sides: list[tuple[Runs, Runs]] = []
    for outcome in outcomes:
        for (benchmark,), episodes in cells_of(source, "benchmark"):
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
                    seed=seed,
                    ends=ENDS[outcome],
                )
                cell = benchmark, outcome, first, second
                rows.append(Contrast(*cell, test, None, None, difference, NotEstimable("no pairs")))
                sides.append((one, two))
    return _alone(corrected(rows), sides, seed)


def _alone(
    rows: Sequence[Contrast], sides: Sequence[tuple[Runs, Runs]], seed: int
) -> list[Contrast]:
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
            [one[pair] for pair in shared], [two[pair] for pair in shared], seed=seed
        )
    values = holm(found)
    return [replace(row, p_alone=values.get(i)) for i, row in enumerate(rows)]


# --- Condition contrasts -------------------------------------------------------------------------

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


def contrasts_of(
    source: Source, outcomes: Sequence[Outcome] = HEAD_OUTCOMES, *, seed: int = 0
) -> list[Contrast]:
    """Conditions on some outcomes: against the single tutor where there is one, else all pairs.

    Args:
        source: A run; ballots from elsewhere have no outcomes, and so no contrasts.
        outcomes: What to compare; all that is asked for is one family.
        seed: Of draws.
    """
    conditions = {episode.condition for episode in source.episodes}
    reference = "baseline" if "baseline" in conditions else None
    return contrasts(source, outcomes, reference=reference, seed=seed)


def contrast_table(found: Sequence[Contrast], *, family: int | None = None) -> Table | None:
    """One row a contrast; `None` without any.

    Args:
        found: The rows.
        family: Contrasts that were corrected together, where the rows are some of them.
    """
    alone = any(row.p_alone is not None for row in found)
    rows = [
        (
            row.benchmark,
            OUTCOME_NAMES[row.outcome],
            f"{row.second} − {row.first}",
            getattr(row.difference, "n", 0),
            getattr(row.test, "tasks", 0),
            estimate(row.difference, signed=True),
            p_words(row),
            *((number(None, digits=3) if row.p_alone is None else p_value(row.p_alone),) * alone),
            plain(row.detectable),
        )
        for row in found
    ]
    return table(
        "contrasts",
        "One condition against another",
        "Mean difference [95 % interval over tasks], paired on task and persona; first attempts "
        "are drawn separately in each condition. p: signs flipped by task, all pairs of a task "
        "together, exact unless marked ~ (then with the error of the draws), with Holm's "
        f"correction over {family or len(found)} contrasts. "
        + (
            "These tasks alone: p of another claim, that the same tasks and personas, run again, "
            "would differ; labels permuted within task and persona, Holm's correction too. "
            if alone
            else ""
        )
        + "Detectable: the least mean difference that so many tasks with this spread would show "
        "with 80 % power.",
        [
            *("benchmark", "outcome", "difference of", "pairs", "tasks", "difference", "p"),
            *(("these tasks alone",) if alone else ()),
            "detectable",
        ],
        rows,
        secondary=("detectable",),
    )


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
        f"{and_more(named, len(alone))} (labels permuted within task and persona, Holm over "
        f"{counted(len(found), 'contrast')})."
    )


def _shown(found: Sequence[Contrast]) -> str:
    """How many tasks would show a difference of 0.3 in success, before any is known."""
    runs = [row.test.n / row.test.tasks for row in found if isinstance(row.test, PermutationTest)]
    if not runs:
        return ""
    tasks = tasks_for(0.3, spread_to_expect(max(1, round(max(runs)))), len(runs))
    return (
        f" About {tasks} would show one of 0.3 in success with 80 % power: see `tutorsim guide "
        "statistics`."
    )


def _told(row: Contrast) -> str:
    value = getattr(row.difference, "value", 0.0)
    return f"{row.second} − {row.first} {value:+.2f} {_measured(row)}".replace("-", "−")


def _measured(row: Contrast) -> str:
    return f"in {OUTCOME_NAMES[row.outcome]} ({row.benchmark})"


def contrasts_frame(source: Source, outcomes: Sequence[str]) -> pl.DataFrame:
    """Contrasts with a column for each number.

    Raises:
        UsageError: If there is no outcome of a name.
    """
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
    difference = row.difference if isinstance(row.difference, Estimate) else None
    return {
        "benchmark": row.benchmark,
        "outcome": row.outcome,
        "first": row.first,
        "second": row.second,
        "pairs": test.n if test else 0,
        "difference": difference and difference.value,
        "low": difference and difference.low,
        "high": difference and difference.high,
        "p": test and test.p_value,
        "p_holm": row.p_holm,
        "detectable": None if isinstance(row.detectable, NotEstimable) else row.detectable,
    }


# --- Document ------------------------------------------------------------------------------------


def conditions_document(run: SystemRun) -> Document:
    """The conditions of a run against one another, on every outcome."""
    found = contrasts_of(run.source, OUTCOMES)
    success = [row for row in found if row.outcome == "success"]
    every = present(contrast_table(found))
    headline, words = contrast_headline(found), contrast_words(found)
    return framed(
        run,
        summary=f"The conditions of {run.name} against one another.",
        answers=(Answer("Do the conditions differ?", headline, words, "differences"),),
        sections=(Section("differences", "Every outcome", "", tables=every),),
        brief=present(contrast_table(success, family=len(found))),
        values=lambda: {"contrasts": found},
    )
