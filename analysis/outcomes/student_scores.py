"""What became of the students: scores, code verdicts, success and rounds.

Failed episodes are left out and counted. A score or verdict that is missing is never zero: an
episode without it is left out of that quantity's mean, and counted as unscored. The
*tutor-fired* subset is the episodes with at least one tutoring turn.

In a branch, continuations of one episode are draws of its future and count together as one
episode: by the mean of those whose outcome is known.
"""

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import fsum, inf
from typing import Final, Literal, get_args

from tutorsim.analysis.ballots.recount_source import Source
from tutorsim.analysis.runs.branch_continuations import by_origin
from tutorsim.analysis.statistics.intervals_and_tests import (
    Estimate,
    NotEstimable,
    mean_over_tasks,
    share_over_tasks,
    to_json,
)
from tutorsim.records import EpisodeRecord

__all__ = [
    "ENDS",
    "OUTCOMES",
    "Gain",
    "Outcome",
    "Pair",
    "Rounds",
    "Success",
    "SuccessRate",
    "cells_of",
    "complete_episodes",
    "episode_counts",
    "gains",
    "mean_by_pair",
    "outcome_of",
    "paired_outcomes",
    "paired_values",
    "rounds",
    "runs_by_pair",
    "success_rates",
    "successes",
    "unit_means",
]

Measure = Literal["score", "code"]
MEASURES: Final[tuple[Measure, ...]] = get_args(Measure)

Outcome = Literal["final_score", "score_gain", "final_code", "code_gain", "success", "turns"]
"""What conditions are contrasted on; gains are over the tutor-fired subset."""
OUTCOMES: Final[tuple[Outcome, ...]] = get_args(Outcome)
ENDS: Final[dict[Outcome, tuple[float, float]]] = {
    outcome: (-inf, inf) if outcome == "turns" else (-1.0, 1.0) for outcome in OUTCOMES
}
"""Between what the difference of an outcome between two conditions must lie."""
_GAINS: Final[dict[Measure, Outcome]] = {"score": "score_gain", "code": "code_gain"}

Pair = tuple[str, str, str]
"""Benchmark, task, persona: what is held fixed between conditions."""


@dataclass(frozen=True)
class Gain:
    """One row of the gains table: a measure under one condition, tutor-fired episodes."""

    benchmark: str
    condition: str
    measure: Measure
    """`score` of the judge, or `code` verdict (1 passed, 0 not)."""
    n: int
    """Episodes with the first and the last value."""
    unscored: int
    """Tutor-fired episodes without one of them."""
    initial: Estimate | NotEstimable
    final: Estimate | NotEstimable
    gain: Estimate | NotEstimable
    """Mean of final − initial, before any rounding."""

    def to_json(self) -> dict[str, object]:
        return {name: to_json(value) for name, value in vars(self).items()}


@dataclass(frozen=True)
class Success:
    """Success rate of one persona under one condition, all complete episodes."""

    benchmark: str
    persona: str
    condition: str
    successes: float
    """In a branch not always whole: an episode counts by the share of its draws."""
    unscored: int
    """Complete episodes whose success is not known; not in the rate."""
    rate: Estimate | NotEstimable

    def to_json(self) -> dict[str, object]:
        return {name: to_json(value) for name, value in vars(self).items()}


@dataclass(frozen=True)
class SuccessRate:
    """Success rate under one condition, all complete episodes."""

    benchmark: str
    condition: str
    episodes: int
    unscored: int
    """Complete episodes whose success is not known; not in the rate."""
    rate: Estimate | NotEstimable
    """Over episodes, with an interval over tasks."""

    def to_json(self) -> dict[str, object]:
        return {name: to_json(value) for name, value in vars(self).items()}


@dataclass(frozen=True)
class Rounds:
    """Tutoring turns of the complete episodes under one condition."""

    benchmark: str
    condition: str
    episodes: int
    fired: int
    """Episodes with at least one turn."""
    mean: Estimate | NotEstimable
    """Over all episodes; those solved at once have 0."""
    mean_fired: Estimate | NotEstimable

    def to_json(self) -> dict[str, object]:
        return {name: to_json(value) for name, value in vars(self).items()}


def episode_counts(source: Source) -> dict[str, int]:
    """`episodes`, `complete`, `failed`, `tutor_fired` and `unscored` (no last score)."""
    complete = complete_episodes(source)
    return {
        "episodes": len(source.episodes),
        "complete": len(complete),
        "failed": len(source.episodes) - len(complete),
        "tutor_fired": sum(e.turns_taken > 0 for e in complete),
        "unscored": sum(e.final_correctness is None for e in complete),
    }


def gains(source: Source) -> list[Gain]:
    """Initial, final and gain by benchmark, condition and measure, tutor-fired episodes."""
    return [
        _gain(cell, episodes, measure)
        for cell, episodes in cells_of(source, "benchmark", "condition")
        for measure in MEASURES
        if measure == "score" or cell[0] == "humaneval"
    ]


def successes(source: Source) -> list[Success]:
    """Success by benchmark, persona and condition."""
    found = []
    for (benchmark, persona, condition), episodes in cells_of(
        source, "benchmark", "persona", "condition"
    ):
        units = unit_means(episodes, _success)
        known = _known(units)
        won, unscored = fsum(value for value, _ in known), len(units) - len(known)
        whole = int(won) if won.is_integer() else won
        rate = share_over_tasks(*_apart(known))
        found.append(Success(benchmark, persona, condition, whole, unscored, rate))
    return found


def success_rates(source: Source) -> list[SuccessRate]:
    """Success by benchmark and condition, over all personas and tasks."""
    found = []
    for (benchmark, condition), episodes in cells_of(source, "benchmark", "condition"):
        units = unit_means(episodes, _success)
        known = _known(units)
        unscored = len(units) - len(known)
        rate = share_over_tasks(*_apart(known))
        found.append(SuccessRate(benchmark, condition, len(units), unscored, rate))
    return found


def rounds(source: Source) -> list[Rounds]:
    """Tutoring turns per episode by benchmark and condition."""
    found = []
    for (benchmark, condition), episodes in cells_of(source, "benchmark", "condition"):
        taken = _known_means(episodes, _turns_taken)
        fired = _known_means([e for e in episodes if e.turns_taken], _turns_taken)
        found.append(
            Rounds(
                benchmark,
                condition,
                len(taken),
                len(fired),
                mean_over_tasks(*_apart(taken)),
                mean_over_tasks(*_apart(fired)),
            )
        )
    return found


def outcome_of(episode: EpisodeRecord, outcome: Outcome) -> float | None:
    """One outcome of a complete episode; `None` where unscored, or a gain without tutoring.

    Success is unknown where the last score, or a programming task's last verdict, is missing,
    unless the program failed, which settles it.
    """
    e = episode
    if outcome == "final_score":
        return e.final_correctness
    if outcome == "final_code":
        return _number(e.code_passed)
    if outcome == "turns":
        return float(e.turns_taken)
    if outcome == "success":
        judged = e.code_passed is not None or e.benchmark != "humaneval"
        known = (e.final_correctness is not None and judged) or e.code_passed is False
        return _number(e.success) if known else None
    first, last = _ends(e, "score" if outcome == "score_gain" else "code")
    fired = e.turns_taken > 0 and first is not None and last is not None
    return last - first if fired and first is not None and last is not None else None


def paired_outcomes(
    episodes: Iterable[EpisodeRecord], outcome: Outcome
) -> dict[str, dict[Pair, float]]:
    """Condition → (benchmark, task, persona) → mean outcome over repeats, unscored left out."""
    return paired_values(episodes, lambda e: outcome_of(e, outcome), by=lambda e: e.condition)


def paired_values(
    episodes: Iterable[EpisodeRecord],
    value: Callable[[EpisodeRecord], float | None],
    *,
    by: Callable[[EpisodeRecord], str],
) -> dict[str, dict[Pair, float]]:
    """What is compared → (benchmark, task, persona) → mean value over repeats, `None` left out."""
    runs = runs_by_pair(episodes, value, by=by)
    return {name: mean_by_pair(pairs) for name, pairs in runs.items()}


def runs_by_pair(
    episodes: Iterable[EpisodeRecord],
    value: Callable[[EpisodeRecord], float | None],
    *,
    by: Callable[[EpisodeRecord], str],
) -> dict[str, dict[Pair, list[float]]]:
    """As `paired_values`, with the value of each repeat."""
    values: dict[str, dict[Pair, list[float]]] = {}
    for draws in by_origin(episodes):
        e, mean = draws[0], _mean_known([value(draw) for draw in draws])
        if mean is not None:
            pairs = values.setdefault(by(e), {})
            pairs.setdefault((e.benchmark, e.task_id, e.persona), []).append(mean)
    return values


def mean_by_pair(runs: Mapping[Pair, Sequence[float]]) -> dict[Pair, float]:
    """Pair → mean of its repeats."""
    return {pair: sum(values) / len(values) for pair, values in runs.items()}


def unit_means(
    episodes: Iterable[EpisodeRecord], value: Callable[[EpisodeRecord], float | None]
) -> list[tuple[float | None, str]]:
    """Value and task of each episode, continuations of one counting together by their mean."""
    return [
        (_mean_known([value(draw) for draw in draws]), draws[0].task_id)
        for draws in by_origin(episodes)
    ]


def complete_episodes(source: Source) -> list[EpisodeRecord]:
    """The episodes that were not cut short by a failed call."""
    return [e for e in source.episodes if e.status == "complete"]


def cells_of(source: Source, *fields: str) -> list[tuple[tuple[str, ...], list[EpisodeRecord]]]:
    """Complete episodes by the values of some fields, in order of first appearance."""
    cells: dict[tuple[str, ...], list[EpisodeRecord]] = {}
    for e in complete_episodes(source):
        cells.setdefault(tuple(getattr(e, field) for field in fields), []).append(e)
    return list(cells.items())


def _mean_known(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return fsum(known) / len(known) if known else None


def _known_means(
    episodes: Iterable[EpisodeRecord], value: Callable[[EpisodeRecord], float | None]
) -> list[tuple[float, Hashable]]:
    return _known(unit_means(episodes, value))


def _known(units: Iterable[tuple[float | None, str]]) -> list[tuple[float, Hashable]]:
    return [(value, task) for value, task in units if value is not None]


def _success(e: EpisodeRecord) -> float | None:
    return outcome_of(e, "success")


def _turns_taken(e: EpisodeRecord) -> float:
    return float(e.turns_taken)


def _number(value: bool | None) -> float | None:
    return None if value is None else float(value)


def _ends(e: EpisodeRecord, measure: Measure) -> tuple[float | None, float | None]:
    """First and last value of a measure."""
    if measure == "score":
        return e.initial_correctness, e.final_correctness
    return _number(e.initial_code_passed), _number(e.code_passed)


def _gain(cell: tuple[str, ...], episodes: Sequence[EpisodeRecord], measure: Measure) -> Gain:
    fired = [e for e in episodes if e.turns_taken > 0]
    known = [e for e in fired if None not in _ends(e, measure)]
    initial = _known_means(known, lambda e: _ends(e, measure)[0])
    final = _known_means(known, lambda e: _ends(e, measure)[1])
    gain = _known_means(known, lambda e: outcome_of(e, _GAINS[measure]))
    return Gain(
        benchmark=cell[0],
        condition=cell[1],
        measure=measure,
        n=len(final),
        unscored=len(by_origin(fired)) - len(final),
        initial=_level(initial, measure),
        final=_level(final, measure),
        gain=mean_over_tasks(*_apart(gain), ends=(-1, 1)),
    )


def _level(known: Sequence[tuple[float, Hashable]], measure: Measure) -> Estimate | NotEstimable:
    """A share of verdicts, or a mean score."""
    if measure == "code":
        return share_over_tasks(*_apart(known))
    return mean_over_tasks(*_apart(known), ends=(0, 1))


def _apart(known: Sequence[tuple[float, Hashable]]) -> tuple[list[float], list[Hashable]]:
    return [value for value, _ in known], [task for _, task in known]
