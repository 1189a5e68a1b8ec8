"""Runs and conditions of a system side by side, over the outcomes that its view names."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from math import fsum
from typing import Any, NamedTuple

import polars as pl

from tutorsim.analysis.pages.cells import Table
from tutorsim.analysis.pages.document import Answer, Document, Section
from tutorsim.analysis.statistics.intervals_and_tests import (
    ALPHA,
    Estimate,
    Interval,
    NotEstimable,
    PermutationTest,
    flips_by_task,
    holm,
    mean_over_tasks,
)
from tutorsim.analysis.systems.panel.contrasts import chance_words
from tutorsim.analysis.systems.system_view import SystemRun, framed
from tutorsim.errors import UsageError

Key = tuple[str, ...]
"""What is paired: benchmark, task and variant, and of two runs condition."""
Outcomes = Mapping[str, Callable[[Any], float | None]]
Cluster = Callable[[Any], str]


def compare_system_runs(
    first: SystemRun,
    second: SystemRun,
    outcomes: Outcomes,
    *,
    cluster: Cluster | None = None,
    over: str = "tasks",
    seed: int = 0,
) -> Document:
    """Compare two runs, paired on benchmark, task, variant and condition.

    Repeats of a pair are averaged. Intervals are over tasks, and tests flip signs by task; p-values
    carry Holm's correction over all rows.

    Args:
        first: One run.
        second: Another run of the same system.
        outcomes: Name → outcome of a record.
        cluster: What a record is taken together with; its task, when left out.
        over: What that is called.
        seed: Of the draws of signs.

    Raises:
        UsageError: If the runs are of different systems, or share nothing to compare.
    """
    if first.head.system != second.head.system:
        raise UsageError(
            f"{first.name} is of the system {first.head.system!r}, "
            f"{second.name} of {second.head.system!r}.",
            why="Their episodes have no outcome in common.",
            hint="Compare two runs of one system.",
        )
    clusters = _clusters(second, cluster, _pair)
    rows = _tested(_of_two_runs(first, second, outcomes), clusters, seed)
    if not rows:
        raise UsageError(
            f"{first.name} and {second.name} share no item that both have an outcome of.",
            why="Runs are compared in pairs of the same benchmark, task, variant and condition.",
            hint="Compare runs over the same tasks, or read the two with `tutorsim summary`.",
        )
    same = all(not row.difference for row in rows)
    words = "Nothing differs" if same else _beyond(rows)
    chance = chance_words(rows, _told, _measured, between="runs", over=over)
    return framed(
        second,
        summary=f"{second.name} beside {first.name}.",
        answers=(Answer("What differs beyond chance?", words, chance, "differences"),),
        sections=(
            Section(
                "differences",
                "Outcomes of both runs",
                f"First: {first.name}, {first.provenance}. Second: {second.name}, "
                f"{second.provenance}.",
                tables=(Table("differences", "Differences", _CAPTION, _frame(rows)),),
            ),
        ),
    )


def compare_conditions(
    run: SystemRun,
    outcomes: Outcomes,
    *,
    cluster: Cluster | None = None,
    over: str = "tasks",
    seed: int = 0,
) -> Document:
    """Compare the conditions of a run, paired on benchmark, task and variant.

    Every condition is compared with the baseline, where the run has one, and else with every
    other. Repeats of a pair are averaged; p-values carry Holm's correction over all rows.

    Args:
        run: The run.
        outcomes: Name → outcome of a record.
        cluster: What a record is taken together with; its task, when left out.
        over: What that is called.
        seed: Of the draws of signs.
    """
    clusters = _clusters(run, cluster, _place)
    rows = _tested(_of_conditions(run, outcomes), clusters, seed)
    return framed(
        run,
        summary=f"The conditions of {run.name} against one another.",
        answers=(
            Answer(
                "Which differences are beyond chance?",
                _beyond(rows),
                chance_words(rows, _told, _measured, over=over),
                "differences",
            ),
        ),
        sections=(
            Section(
                "differences",
                "One condition against another",
                "Second minus first, over the tasks that both have.",
                tables=(Table("differences", "Differences", _CAPTION, _frame(rows)),),
            ),
        ),
    )


_BASELINE = "baseline"
"""The condition that the others are compared with, in systems that have it."""
_NAMED = 3
"""Differences that the answer names."""

_CAPTION = (
    "Paired on benchmark, task and variant, of two runs on condition too; repeats are averaged. "
    "Intervals at 95 % are over tasks, or over what the system takes together with a task, such as "
    "a dialogue; p by flipping the signs of all that is taken together, corrected by Holm over all "
    "rows."
)
_SCHEMA = {
    **{name: pl.String() for name in ("benchmark", "condition", "outcome")},
    "pairs": pl.Int64(),
    "tasks": pl.Int64(),
    **{
        name: pl.Float64() for name in ("first", "second", "difference", "low", "high", "p", "holm")
    },
}


@dataclass(frozen=True)
class _Row:
    """One outcome on two sides, tested along with others."""

    benchmark: str
    condition: str
    outcome: str
    pairs: int
    first: float
    second: float
    difference: float
    interval: Interval | NotEstimable
    test: PermutationTest | NotEstimable
    p_holm: float | None = None


def _frame(rows: Sequence[_Row]) -> pl.DataFrame:
    return pl.DataFrame([_cells(row) for row in rows], schema=_SCHEMA, orient="row")


def _cells(row: _Row) -> tuple[object, ...]:
    ends = (row.interval.low, row.interval.high) if isinstance(row.interval, Interval) else ()
    tested = row.test if isinstance(row.test, PermutationTest) else None
    return (
        *(row.benchmark, row.condition, row.outcome, row.pairs, tested and tested.tasks),
        *(row.first, row.second, row.difference, *(ends or (None, None))),
        *(tested and tested.p_value, row.p_holm),
    )


def _beyond(rows: Sequence[_Row]) -> str:
    """The differences beyond chance, the surest first."""
    beyond = [row for row in rows if row.p_holm is not None and row.p_holm < ALPHA]
    told = [_told(row) for row in sorted(beyond, key=lambda row: row.p_holm or 0)]
    more = f" and {len(told) - _NAMED} more" if len(told) > _NAMED else ""
    return "; ".join(told[:_NAMED]) + more if told else "None"


def _told(row: _Row) -> str:
    return f"{row.condition} {row.difference:+.2f} {_measured(row)}".replace("-", "−")


def _measured(row: _Row) -> str:
    return f"in {row.outcome} ({row.benchmark})"


class _Compared(NamedTuple):
    """Values of one outcome on two sides, of one benchmark and one row of the table."""

    benchmark: str
    condition: str
    outcome: str
    one: Mapping[Key, float]
    two: Mapping[Key, float]


def _of_two_runs(first: SystemRun, second: SystemRun, outcomes: Outcomes) -> Iterator[_Compared]:
    """One row per outcome, benchmark and condition that both runs have."""
    for name, outcome in outcomes.items():
        one, two = _values(first, outcome, _pair), _values(second, outcome, _pair)
        cells: dict[tuple[str, str], list[Key]] = {}
        for pair in one:
            if pair in two:
                cells.setdefault((pair[0], pair[3]), []).append(pair)
        for (benchmark, condition), shared in cells.items():
            sides = ({pair: values[pair] for pair in shared} for values in (one, two))
            yield _Compared(benchmark, condition, name, *sides)


def _of_conditions(run: SystemRun, outcomes: Outcomes) -> Iterator[_Compared]:
    """One row per outcome, benchmark and two conditions that share a task."""
    conditions = list(dict.fromkeys(record.condition for record in run.episodes))
    benchmarks = list(dict.fromkeys(record.benchmark for record in run.episodes))
    compared = [
        (two, one) if two == _BASELINE else (one, two)
        for one, two in combinations(conditions, 2)
        if _BASELINE in (one, two) or _BASELINE not in conditions
    ]
    for name, outcome in outcomes.items():
        of = {c: _values(run, outcome, _place, condition=c) for c in conditions}
        for benchmark in benchmarks:
            for first, second in compared:
                shared = [p for p in of[first] if p in of[second] and p[0] == benchmark]
                if shared:
                    sides = ({place: of[c][place] for place in shared} for c in (first, second))
                    yield _Compared(benchmark, f"{second} − {first}", name, *sides)


def _tested(compared: Iterable[_Compared], clusters: Mapping[Key, str], seed: int) -> list[_Row]:
    """A row for each comparison, p-values corrected over all."""
    rows = [_row(each, clusters, seed) for each in compared]
    tested = {i: r.test.p_value for i, r in enumerate(rows) if isinstance(r.test, PermutationTest)}
    corrected = holm(tested)
    return [replace(row, p_holm=corrected.get(i)) for i, row in enumerate(rows)]


def _row(each: _Compared, clusters: Mapping[Key, str], seed: int) -> _Row:
    differences = [each.two[pair] - each.one[pair] for pair in each.one]
    tasks = [clusters.get(pair, f"{pair[0]}.{pair[1]}") for pair in each.one]
    estimate = mean_over_tasks(differences, tasks)
    assert isinstance(estimate, Estimate)
    n = len(differences)
    return _Row(
        *(each.benchmark, each.condition, each.outcome, n),
        first=fsum(each.one.values()) / n,
        second=fsum(each.two.values()) / n,
        difference=estimate.value,
        interval=estimate.interval,
        test=flips_by_task(differences, tasks, seed=seed),
    )


def _clusters(run: SystemRun, cluster: Cluster | None, key: Callable[[Any], Key]) -> dict[Key, str]:
    return {} if cluster is None else {key(record): cluster(record) for record in run.episodes}


def _place(record: Any) -> Key:
    return (record.benchmark, record.task_id, record.variant)


def _pair(record: Any) -> Key:
    return (*_place(record), record.condition)


def _values(
    run: SystemRun,
    outcome: Callable[[Any], float | None],
    key: Callable[[Any], Key],
    *,
    condition: str | None = None,
) -> dict[Key, float]:
    """Means over repeats, of complete episodes that have the outcome."""
    found: dict[Key, list[float]] = {}
    for record in run.episodes:
        if condition not in (None, record.condition) or record.status != "complete":
            continue
        value = outcome(record)
        if value is not None:
            found.setdefault(key(record), []).append(value)
    return {place: fsum(values) / len(values) for place, values in found.items()}
