"""Conditions against one another, paired on task and persona.

First attempts are drawn anew in each condition, so a pair shares its task and persona and
nothing else. The family of Holm's correction is the contrasts of one benchmark and outcome.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, TypeVar

from tutorsim.analysis.ballots.recount_source import Source
from tutorsim.analysis.outcomes.student_scores import (
    Outcome,
    Pair,
    cells_of,
    paired_outcomes,
)
from tutorsim.analysis.statistics.intervals_and_tests import (
    Estimate,
    NotEstimable,
    PermutationTest,
    cluster_bootstrap,
    holm,
    minimum_detectable_effect,
    paired_permutation,
    to_json,
)

__all__ = ["Contrast", "PairedDifference", "contrasts", "corrected", "paired_difference"]


class PairedDifference(NamedTuple):
    """What the pairs that two things share say of their difference."""

    test: PermutationTest | NotEstimable
    difference: Estimate | NotEstimable
    detectable: float | NotEstimable


@dataclass(frozen=True)
class Contrast:
    """Two conditions on one outcome, paired on task and persona: `second` − `first`."""

    benchmark: str
    outcome: Outcome
    first: str
    second: str
    test: PermutationTest | NotEstimable
    p_holm: float | None
    """Corrected over all contrasts of this benchmark and outcome; `None` without a test."""
    difference: Estimate | NotEstimable
    detectable: float | NotEstimable
    """The smallest difference that these pairs would show at level 0.05 with power 0.8."""

    def to_json(self) -> dict[str, object]:
        return {name: to_json(value) for name, value in vars(self).items()}


def contrasts(
    source: Source, outcome: Outcome, *, reference: str | None = None, seed: int = 0
) -> list[Contrast]:
    """Conditions against one another on one outcome, per benchmark.

    First attempts are drawn anew in each condition, so pairs share task and persona and
    nothing else. Repeats of a pair are averaged.

    Args:
        source: A run.
        outcome: What to compare; see `outcome_of`.
        reference: Compare the others with this condition only; by default every two conditions.
        seed: Of the draws.
    """
    found = []
    for (benchmark,), episodes in cells_of(source, "benchmark"):
        values = paired_outcomes(episodes, outcome)
        names = list(dict.fromkeys(e.condition for e in episodes))
        family = [
            (a, b) for i, a in enumerate(names) for b in names[i + 1 :] if reference in (None, a, b)
        ]
        ordered = [(b, a) if b == reference else (a, b) for a, b in family]
        found += _contrasted(benchmark, outcome, values, ordered, seed)
    return found


def _contrasted(
    benchmark: str,
    outcome: Outcome,
    values: Mapping[str, Mapping[Pair, float]],
    family: Sequence[tuple[str, str]],
    seed: int,
) -> list[Contrast]:
    rows: list[Contrast] = []
    for first, second in family:
        test, difference, detectable = paired_difference(
            values.get(first, {}), values.get(second, {}), seed=seed
        )
        rows.append(Contrast(benchmark, outcome, first, second, test, None, difference, detectable))
    return corrected(rows)


def paired_difference(
    first: Mapping[Pair, float], second: Mapping[Pair, float], *, seed: int
) -> PairedDifference:
    """Second minus first over the pairs that both have."""
    shared = [pair for pair in first if pair in second]
    differences = [second[pair] - first[pair] for pair in shared]
    tasks = [task for _, task, _ in shared]
    return PairedDifference(
        paired_permutation(differences, seed=seed),
        cluster_bootstrap(differences, tasks, seed=seed),
        minimum_detectable_effect(differences, tasks),
    )


Row = TypeVar("Row", bound=Any)


def corrected(rows: Sequence[Row]) -> list[Row]:
    """One family of contrasts with Holm's correction in `p_holm`."""
    tested = {i: c.test.p_value for i, c in enumerate(rows) if isinstance(c.test, PermutationTest)}
    values = holm(tested)
    return [replace(c, p_holm=values.get(i)) for i, c in enumerate(rows)]
