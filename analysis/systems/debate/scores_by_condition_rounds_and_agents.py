"""How well and how fast debates answer: by condition, by the turn of votes, by number of agents."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import mean, stdev
from typing import Final

from tutorsim.analysis.statistics import by_key
from tutorsim.analysis.statistics.intervals_and_tests import Estimate, NotEstimable, mean_over_tasks
from tutorsim.analysis.systems.debate.outcomes_under_every_protocol import (
    Changes,
    Debate,
    Rule,
    percent_over_tasks,
    score_bounds,
)
from tutorsim.records.debate import DebateRecord

Key = tuple[str, str, str]
"""Benchmark, variant and condition."""
PLACE: Final = ("benchmark", "variant", "condition")


def grouped(records: Iterable[DebateRecord]) -> dict[Key, list[DebateRecord]]:
    """Records by benchmark, variant and condition, in the order of the grid."""
    return by_key(((one.benchmark, one.variant, one.condition), one) for one in records)


def mean_score(complete: Sequence[DebateRecord]) -> Estimate | NotEstimable:
    """Mean score in percent, with an interval over tasks."""
    scored = [(100 * one.score, one.task_id) for one in complete if one.score is not None]
    return percent_over_tasks([score for score, _ in scored], [task for _, task in scored])


def deviation(complete: Sequence[DebateRecord]) -> float | None:
    """Deviation of the repeats' mean scores in percent (n - 1); `None` with one repeat."""
    scores = ((one.repeat, 100 * one.score) for one in complete if one.score is not None)
    means = [mean(values) for values in by_key(scores).values()]
    return stdev(means) if len(means) > 1 else None


def trivial_baselines(records: Sequence[DebateRecord]) -> list[tuple[str, float]]:
    """Accuracies in percent, on the same choice questions, of answers that read none of them."""
    letter, times = Counter(gold for record in records for gold in record.gold).most_common(1)[0]
    lot = mean(len(record.gold) / len(record.options) for record in records)
    return [(f"always {letter}", 100 * times / len(records)), ("a lot", 100 * lot)]


def turn_shares(complete: Sequence[DebateRecord]) -> dict[int, float]:
    """Turn → percent of debates that ended in it; the last turn holds undecided ones too."""
    debates = [record for record in complete if record.turns]
    last = max((record.setup.max_turns or record.turns_taken for record in debates), default=0)
    return {
        turn: 100 * mean(record.turns_taken == turn for record in debates)
        for turn in range(1, last + 1)
    }


@dataclass(frozen=True)
class Slope:
    """How a mean score changes with a number, on the same tasks."""

    name: str
    points: Mapping[int, float]
    """The number → mean score in percent."""
    slope: Estimate | NotEstimable
    """Least squares, in points per unit, with an interval over tasks."""
    tasks: int


def slope(name: str, scores: Iterable[tuple[str, int, float]]) -> Slope | None:
    """The line through the means of tasks that have a score at every number.

    The slope of the means is the mean of the tasks' slopes, as all share the same numbers.

    `scores`: task, number and score in percent; those of one task and number count by their mean.
    Returns `None` if there are fewer than two numbers.
    """
    means: dict[str, dict[int, float]] = {}
    for (task, number), held in by_key(((task, n), score) for task, n, score in scores).items():
        means.setdefault(task, {})[number] = mean(held) if len(held) > 1 else held[0]
    numbers = sorted({number for values in means.values() for number in values})
    whole = {task: values for task, values in means.items() if sorted(values) == numbers}
    if len(numbers) < 2 or not whole:
        return None
    middle = mean(numbers)
    spread = sum((number - middle) ** 2 for number in numbers)
    slopes = {
        task: sum((number - middle) * values[number] for number in numbers) / spread
        for task, values in whole.items()
    }
    return Slope(
        name,
        {number: mean(values[number] for values in whole.values()) for number in numbers},
        mean_over_tasks(list(slopes.values()), list(slopes)),
        len(whole),
    )


def rounds_slopes(debates: Sequence[Debate], rules: Sequence[Rule]) -> list[Slope]:
    """Scores of voting by the first turn of a vote, each rule on the same debates of a variant."""
    variants = by_key((debate.record.variant, debate) for debate in debates)
    found = []
    for variant, group in variants.items():
        last = min(debate.record.turns_taken for debate in group)
        begun = [Changes(vote_from=turn) for turn in range(1, last + 1)]
        for rule in rules:
            scores = [
                (_task(debate.record), turn, score_bounds(debate, outcome)[0])
                for debate in group
                for turn, changes in enumerate(begun, start=1)
                if (outcome := debate.recounted(rule, changes)).certainty == "exact"
            ]
            found.append(slope(f"{rule} ({variant})" if len(variants) > 1 else rule, scores))
    return [one for one in found if one is not None]


def agents_slopes(records: Sequence[DebateRecord]) -> list[Slope]:
    """Scores by number of agents, per condition, over variants that differ in nothing else."""
    debated = [r for r in records if r.status == "complete" and r.turns and r.score is not None]
    told = _differing_settings(debated)
    groups = by_key(
        (
            (one.condition, *(f"{name} = {getattr(one.setup, name)}" for name in told)),
            (_task(one), one.setup.agents, 100 * (one.score or 0)),
        )
        for one in debated
    )
    found = [
        slope(f"{name} ({', '.join(settings)})" if settings else name, scores)
        for (name, *settings), scores in groups.items()
    ]
    return [one for one in found if one is not None]


def _differing_settings(records: Sequence[DebateRecord]) -> list[str]:
    """Settings other than the number of agents in which some debates differ."""
    setups = [record.setup.model_dump(exclude={"agents"}) for record in records]
    return [name for name in (setups[0] if setups else ()) if len({s[name] for s in setups}) > 1]


def _task(record: DebateRecord) -> str:
    return f"{record.benchmark}.{record.task_id}"
