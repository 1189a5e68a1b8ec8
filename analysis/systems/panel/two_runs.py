"""Two runs side by side, paired on benchmark, task, persona and condition."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import fsum

import polars as pl

from tutorsim.analysis.ballots.recount_source import Source
from tutorsim.analysis.counting.all_voting_turns import clusters_of, places_of, turn_table
from tutorsim.analysis.pages.cells import absent, estimate, plain, present
from tutorsim.analysis.pages.declared import Row, table
from tutorsim.analysis.pages.document import Answer, Document, Section
from tutorsim.analysis.pages.words import counted
from tutorsim.analysis.recount.format_invariance import (
    FormatInvariance,
    format_invariance_of_two,
    formats_section,
)
from tutorsim.analysis.statistics.intervals_and_tests import (
    Estimate,
    NotEstimable,
    PermutationTest,
    flips_by_task,
    mean_over_tasks,
    share_over_tasks,
)
from tutorsim.analysis.statistics.paired import corrected
from tutorsim.analysis.systems.paired_comparison import chance_words, p_words
from tutorsim.analysis.systems.panel.contrasts import OUTCOME_NAMES
from tutorsim.analysis.systems.panel.student_outcomes import (
    ENDS,
    OUTCOMES,
    Outcome,
    Pair,
    paired_outcomes,
)
from tutorsim.analysis.systems.system_view import SystemRun, framed
from tutorsim.errors import UsageError
from tutorsim.records import EpisodeRecord

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


def compare_runs(first: Source, second: Source, *, seed: int = 0) -> Comparison:
    """Compare two sources, outcome by outcome and winner by winner.

    Repeats of a pair are averaged. First attempts may differ between recordings, so the pairs
    share their place in the grid and nothing else.

    Raises:
        UsageError: If they share no pair that both have complete.
    """
    if not _pairs(first) & _pairs(second):
        raise UsageError(
            f"{first.name} and {second.name} share no episode that both have complete.",
            why="Runs are compared in pairs of the same benchmark, task, persona and condition.",
            hint="Compare runs over the same tasks, or read the two with `tutorsim summary`.",
        )
    a, b = _cells(first), _cells(second)
    rows = [
        _difference(cell, outcome, a, b, seed)
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
    """Benchmark and condition → outcome → pair → value."""
    groups: dict[tuple[str, str], list[EpisodeRecord]] = {}
    for e in source.episodes:
        if e.status == "complete":
            groups.setdefault((e.benchmark, e.arm), []).append(e)
    return {
        cell: {o: _only_arm(episodes, o) for o in OUTCOMES} for cell, episodes in groups.items()
    }


def _only_arm(episodes: Sequence[EpisodeRecord], outcome: Outcome) -> Mapping[Pair, float]:
    """The outcomes of episodes of one arm."""
    found = paired_outcomes(episodes, outcome)
    return next(iter(found.values()), {})


def _pairs(source: Source) -> set[tuple[str, ...]]:
    return {
        (e.benchmark, e.task_id, e.persona, e.arm)
        for e in source.episodes
        if e.status == "complete"
    }


def _difference(
    cell: tuple[str, str], outcome: Outcome, a: Cells, b: Cells, seed: int
) -> OutcomeDifference:
    one, two = a[cell][outcome], b[cell][outcome]
    shared = [pair for pair in one if pair in two]
    differences = [two[pair] - one[pair] for pair in shared]
    tasks = [task for _, task, _ in shared]
    return OutcomeDifference(
        *cell,
        outcome,
        _mean([one[pair] for pair in shared]),
        _mean([two[pair] for pair in shared]),
        mean_over_tasks(differences, tasks, ends=ENDS[outcome]),
        flips_by_task(differences, tasks, seed=seed),
        None,
        sum(difference != 0 for difference in differences),
    )


def _mean(values: Sequence[float]) -> float | NotEstimable:
    return (
        fsum(values) / len(values) if values else NotEstimable("no pair with this outcome in both")
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


# --- Tables and document --------------------------------------------------------------------------


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
            "pairs": getattr(row.difference, "n", 0),
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
    words = chance_words(found.outcomes, _told, _measured, between="runs")
    return f"Means differ in {len(apart)} of {len(found.outcomes)} outcomes", words


def _told(row: OutcomeDifference) -> str:
    value = row.difference.value if isinstance(row.difference, Estimate) else 0.0
    return f"{value:+.2f} {_measured(row)}".replace("-", "−")


def _measured(row: OutcomeDifference) -> str:
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
