"""Runs and conditions of a system side by side, over the outcomes that its view names."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import combinations
from math import fsum
from typing import Any, NamedTuple

import polars as pl

from tutorsim.analysis.report.document import Answer, Document, Section, Table
from tutorsim.analysis.statistics.intervals_and_tests import (
    Estimate,
    Interval,
    PermutationTest,
    cluster_bootstrap,
    holm,
    paired_permutation,
)
from tutorsim.analysis.systems.system_view import SystemRun, framed
from tutorsim.errors import UsageError

__all__ = ["compare_conditions", "compare_system_runs"]

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
    seed: int = 0,
) -> Document:
    """Compare two runs, paired on benchmark, task, variant and condition.

    Repeats of a pair are averaged. Intervals resample tasks; p-values carry Holm's correction
    over all rows.

    Args:
        first: One run.
        second: Another run of the same system.
        outcomes: Name → outcome of a record.
        cluster: What a record is resampled and swapped together with; its task, and for the test
            the pair alone, when left out.
        seed: Of the resampling.

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
    same = all(row["difference"] in (0, None) for row in rows)
    words = "Nothing differs" if same else "Second minus first, over the pairs that both share"
    return framed(
        second,
        summary=f"{second.name} beside {first.name}.",
        answers=(
            Answer("What differs?", words, f"{len(rows)} outcomes were compared.", "differences"),
        ),
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
    run: SystemRun, outcomes: Outcomes, *, cluster: Cluster | None = None, seed: int = 0
) -> Document:
    """Compare the conditions of a run, paired on benchmark, task and variant.

    Every condition is compared with the baseline, where the run has one, and else with every
    other. Repeats of a pair are averaged; p-values carry Holm's correction over all rows.

    Args:
        run: The run.
        outcomes: Name → outcome of a record.
        cluster: What a record is resampled and swapped together with; its task, and for the test
            the pair alone, when left out.
        seed: Of the resampling.
    """
    clusters = _clusters(run, cluster, _place)
    rows = _tested(_of_conditions(run, outcomes), clusters, seed)
    beyond = [row for row in rows if row["holm"] is not None and row["holm"] < _ALPHA]
    differences = [
        f"{row['condition']} {row['difference']:+.2f} in {row['outcome']} ({row['benchmark']})"
        for row in sorted(beyond, key=lambda row: float(row["holm"]))
    ]
    more = f" and {len(beyond) - _NAMED} more" if len(beyond) > _NAMED else ""
    words = "; ".join(differences[:_NAMED]) + more if beyond else "None of them"
    left = "" if beyond else " That does not show that there is none."
    return framed(
        run,
        summary=f"The conditions of {run.name} against one another.",
        answers=(
            Answer(
                f"Which differences are beyond chance (Holm, p < {_ALPHA})?",
                words,
                f"{len(rows)} differences were tested.{left}",
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
_ALPHA = 0.05
_NAMED = 3
"""Differences that the answer names."""

_CAPTION = (
    "Paired on benchmark, task and variant, of two runs on condition too; repeats are averaged. "
    "Intervals at 95 % resample tasks, or what the system takes together with a task, such as a "
    "dialogue; p from a permutation of whole pairs, or of all that is taken together, corrected by "
    "Holm over all rows."
)
_SCHEMA = {
    **{name: pl.String() for name in ("benchmark", "condition", "outcome")},
    "pairs": pl.Int64(),
    **{
        name: pl.Float64() for name in ("first", "second", "difference", "low", "high", "p", "holm")
    },
}


def _frame(rows: list[dict[str, Any]]) -> pl.DataFrame:
    return pl.DataFrame(rows, schema=_SCHEMA)


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


def _tested(
    compared: Iterable[_Compared], clusters: Mapping[Key, str], seed: int
) -> list[dict[str, Any]]:
    """A row for each comparison, p-values corrected over all."""
    rows: list[dict[str, Any]] = []
    tested: dict[int, float] = {}
    for each in compared:
        row, p = _row(list(each.one), each.one, each.two, clusters, seed)
        if p is not None:
            tested[len(rows)] = p
        words = {"benchmark": each.benchmark, "condition": each.condition}
        rows.append({**words, "outcome": each.outcome, **row})
    corrected = holm(tested)
    return [{**row, "holm": corrected.get(i)} for i, row in enumerate(rows)]


def _row(
    shared: list[Key],
    one: Mapping[Key, float],
    two: Mapping[Key, float],
    clusters: Mapping[Key, str],
    seed: int,
) -> tuple[dict[str, Any], float | None]:
    differences = [two[pair] - one[pair] for pair in shared]
    names = [clusters.get(pair, pair[1]) for pair in shared]
    estimate = cluster_bootstrap(differences, names, seed=seed)
    test = paired_permutation(_swapped_together(differences, names, clusters), seed=seed)
    interval = estimate.interval if isinstance(estimate, Estimate) else None
    bounds = interval if isinstance(interval, Interval) else None
    p = test.p_value if isinstance(test, PermutationTest) else None
    row = {
        "pairs": len(shared),
        "first": fsum(one[pair] for pair in shared) / len(shared),
        "second": fsum(two[pair] for pair in shared) / len(shared),
        "difference": fsum(differences) / len(shared),
        "low": bounds.low if bounds else None,
        "high": bounds.high if bounds else None,
        "p": p,
    }
    return row, p


def _swapped_together(
    differences: Sequence[float], names: Sequence[str], clusters: Mapping[Key, str]
) -> list[float]:
    """What a test flips: every pair, or the sum of each cluster where there are clusters."""
    if not clusters:
        return list(differences)
    sums: dict[str, list[float]] = {}
    for difference, name in zip(differences, names, strict=True):
        sums.setdefault(name, []).append(difference)
    return [fsum(of_cluster) for of_cluster in sums.values()]


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
