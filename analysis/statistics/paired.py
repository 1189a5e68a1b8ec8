"""Differences within pairs: one of them, and a family that is tested together.

test, difference = paired_difference(before, after, cluster=lambda pair: pair.task, seed=0)
rows = corrected([Row(test=test), …])  # p-values by Holm over all rows
"""

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import replace
from math import inf
from typing import Any, NamedTuple, TypeVar

from tutorsim.analysis.statistics.intervals_and_tests import (
    Estimate,
    NotEstimable,
    PermutationTest,
    detectable_by,
    flips_by_task,
    holm,
    mean_over_tasks,
)

K = TypeVar("K", bound=Hashable)
"""What is paired, such as benchmark and task."""
Row = TypeVar("Row", bound=Any)
"""A frozen dataclass with `test` and `p_holm`."""


class PairedDifference(NamedTuple):
    """What the pairs that two things share say of their difference."""

    test: PermutationTest | NotEstimable
    difference: Estimate | NotEstimable


def paired_difference(
    first: Mapping[K, float],
    second: Mapping[K, float],
    *,
    cluster: Callable[[K], Hashable],
    seed: int,
    ends: tuple[float, float] = (-inf, inf),
) -> PairedDifference:
    """Second minus first over the pairs that both have.

    Args:
        first: Pair → value.
        second: Likewise.
        cluster: What a pair is taken together with, its task as a rule.
        seed: Of the draws of signs.
        ends: Least and greatest value that a difference can have.
    """
    shared = [pair for pair in first if pair in second]
    differences = [second[pair] - first[pair] for pair in shared]
    clusters = [cluster(pair) for pair in shared]
    return PairedDifference(
        flips_by_task(differences, clusters, seed=seed),
        mean_over_tasks(differences, clusters, ends=ends),
    )


def corrected(rows: Sequence[Row]) -> list[Row]:
    """One family with Holm's correction in `p_holm`; of rows that say what they could show, what
    the whole family could is in `detectable`."""
    tested = {i: row.test for i, row in enumerate(rows) if isinstance(row.test, PermutationTest)}
    values = holm({i: test.p_value for i, test in tested.items()})

    def of_family(i: int) -> dict[str, Any]:
        if not hasattr(rows[i], "detectable"):
            return {"p_holm": values[i]}
        return {"p_holm": values[i], "detectable": detectable_by(tested[i], len(tested))}

    return [replace(row, **of_family(i)) if i in tested else row for i, row in enumerate(rows)]
