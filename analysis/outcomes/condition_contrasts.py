"""Conditions against one another, paired on task and persona.

First attempts are drawn separately in each condition, so a pair shares its task and persona and
nothing else. The family of Holm's correction is all that was asked for together, whatever its
benchmark and outcome: it is what one sentence or table shows.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import combinations
from typing import Any, NamedTuple, TypeVar

from tutorsim.analysis.ballots.recount_source import Source
from tutorsim.analysis.outcomes.student_scores import (
    ENDS,
    Outcome,
    Pair,
    cells_of,
    mean_by_pair,
    outcome_of,
    runs_by_pair,
)
from tutorsim.analysis.statistics.intervals_and_tests import (
    Estimate,
    NotEstimable,
    PermutationTest,
    detectable_by,
    fewest_tasks,
    flips_by_task,
    holm,
    labels_within_pairs,
    mean_over_tasks,
    to_json,
)

__all__ = ["Contrast", "PairedDifference", "contrasts", "corrected", "paired_difference"]

Runs = Mapping[Pair, Sequence[float]]
"""Pair → the outcome of each of its repeats."""


class PairedDifference(NamedTuple):
    """What the pairs that two things share say of their difference."""

    test: PermutationTest | NotEstimable
    difference: Estimate | NotEstimable


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

    def to_json(self) -> dict[str, object]:
        return {name: to_json(value) for name, value in vars(self).items()}


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
                    mean_by_pair(one), mean_by_pair(two), ends=ENDS[outcome], seed=seed
                )
                cell = benchmark, outcome, first, second
                rows.append(Contrast(*cell, test, None, None, difference, NotEstimable("no pairs")))
                sides.append((one, two))
    return _alone(corrected(rows), sides, seed)


def paired_difference(
    first: Mapping[Pair, float],
    second: Mapping[Pair, float],
    *,
    ends: tuple[float, float],
    seed: int,
) -> PairedDifference:
    """Second minus first over the pairs that both have, which lies between `ends`."""
    shared = [pair for pair in first if pair in second]
    differences = [second[pair] - first[pair] for pair in shared]
    tasks = [task for _, task, _ in shared]
    return PairedDifference(
        flips_by_task(differences, tasks, seed=seed),
        mean_over_tasks(differences, tasks, ends=ends),
    )


Row = TypeVar("Row", bound=Any)


def corrected(rows: Sequence[Row]) -> list[Row]:
    """One family with Holm's correction in `p_holm`, and what it could show in `detectable`."""
    tested = {i: c.test for i, c in enumerate(rows) if isinstance(c.test, PermutationTest)}
    values = holm({i: test.p_value for i, test in tested.items()})
    return [
        replace(row, p_holm=values[i], detectable=detectable_by(tested[i], len(tested)))
        if i in tested
        else row
        for i, row in enumerate(rows)
    ]


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
