"""Two runs side by side, paired on benchmark, task, persona and condition."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import fsum

from analysis.invariance import FormatInvariance, format_invariance_of_two
from analysis.metrics.outcomes import OUTCOMES, Outcome, Pair, paired_outcomes
from analysis.metrics.turns import decided_turns
from analysis.sources import Source
from analysis.statistics import (
    Estimate,
    NotEstimable,
    PermutationTest,
    cluster_bootstrap,
    holm,
    paired_permutation,
    to_json,
    wilson,
)
from tutorsim.records import EpisodeRecord

__all__ = ["Comparison", "OutcomeDifference", "compare_runs"]


@dataclass(frozen=True)
class OutcomeDifference:
    """One outcome under one condition: second run − first run, over the pairs they share."""

    benchmark: str
    condition: str
    outcome: Outcome
    first: float | NotEstimable
    """Mean over the shared pairs."""
    second: float | NotEstimable
    difference: Estimate | NotEstimable
    test: PermutationTest | NotEstimable
    p_holm: float | None
    """Corrected over all rows of the comparison; `None` without a test."""

    def to_json(self) -> dict[str, object]:
        return {name: to_json(value) for name, value in vars(self).items()}


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

    def to_json(self) -> dict[str, object]:
        return {name: to_json(value) for name, value in vars(self).items()}


def compare_runs(first: Source, second: Source, *, seed: int = 0) -> Comparison:
    """Compare two sources, outcome by outcome and winner by winner.

    Repeats of a pair are averaged. First attempts may differ between recordings, so the pairs
    share their place in the grid and nothing else.
    """
    a, b = _cells(first), _cells(second)
    rows = [
        _difference(cell, outcome, a, b, seed)
        for cell in a
        if cell in b
        for outcome in OUTCOMES
        if cell[0] == "humaneval" or outcome not in ("final_code", "code_gain")
    ]
    tested = {i: r.test.p_value for i, r in enumerate(rows) if isinstance(r.test, PermutationTest)}
    corrected = holm(tested)
    one, two = _pairs(first), _pairs(second)
    return Comparison(
        first=first.name,
        second=second.name,
        pairs=len(one & two),
        only_first=len(one - two),
        only_second=len(two - one),
        outcomes=tuple(replace(r, p_holm=corrected.get(i)) for i, r in enumerate(rows)),
        same_winner=_same_winner(first, second),
        format_invariance=format_invariance_of_two(first, second, seed=seed),
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
            groups.setdefault((e.benchmark, e.condition), []).append(e)
    return {
        cell: {o: paired_outcomes(episodes, o).get(cell[1], {}) for o in OUTCOMES}
        for cell, episodes in groups.items()
    }


def _pairs(source: Source) -> set[tuple[str, ...]]:
    return {
        (e.benchmark, e.task_id, e.persona, e.condition)
        for e in source.episodes
        if e.status == "complete"
    }


def _difference(
    cell: tuple[str, str], outcome: Outcome, a: Cells, b: Cells, seed: int
) -> OutcomeDifference:
    one, two = a[cell][outcome], b[cell][outcome]
    shared = [pair for pair in one if pair in two]
    differences = [two[pair] - one[pair] for pair in shared]
    return OutcomeDifference(
        *cell,
        outcome,
        _mean([one[pair] for pair in shared]),
        _mean([two[pair] for pair in shared]),
        cluster_bootstrap(differences, [task for _, task, _ in shared], seed=seed),
        paired_permutation(differences, seed=seed),
        None,
    )


def _mean(values: Sequence[float]) -> float | NotEstimable:
    return (
        fsum(values) / len(values) if values else NotEstimable("no pair with this outcome in both")
    )


def _same_winner(first: Source, second: Source) -> dict[str, Estimate | NotEstimable]:
    winners = {
        (t.key.episode_id, t.key.protocol): t.decision.winner
        for t in decided_turns(first)
        if t.key.turn == 1
    }
    same: dict[str, list[bool]] = {}
    for t in decided_turns(second):
        key = (t.key.episode_id, t.key.protocol)
        if t.key.turn == 1 and key in winners:
            same.setdefault(t.key.protocol, []).append(winners[key] == t.decision.winner)
    return {protocol: wilson(sum(hits), len(hits)) for protocol, hits in same.items()}
