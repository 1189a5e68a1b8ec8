"""Studies of which the truth is known, put to the product's own intervals, tests and sentences.

A success has a logit: a task's effect, a persona's, that of both together, and a task's effect
under each condition, which is the one that a contrast over tasks has to live with (standard
deviation `sd`, in logits). On average no condition is better unless `shown` says so.

    python -m tests.reference.simulated_studies 400    # the tables of `tutorsim guide statistics`
"""

import sys
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import product
from unittest.mock import patch

import numpy as np

from tutorsim.analysis.statistics import intervals_and_tests
from tutorsim.analysis.statistics.intervals_and_tests import (
    Estimate,
    NotEstimable,
    share_of_sums,
    tasks_for,
)
from tutorsim.analysis.systems.panel.contrasts_of_conditions_or_two_runs import (
    contrast_words,
    contrasts_of,
)
from tutorsim.analysis.systems.panel.student_outcomes import success_rates

TASKS = (2, 4, 6, 10, 20, 60)
SPREADS = (0.0, 0.75, 1.5)
RATES = (0.05, 0.2, 0.5, 0.8)
CONDITIONS = ("baseline", "simple", "ranked", "cumulative", "approval")

_NODES, _WEIGHTS = np.polynomial.hermite_e.hermegauss(61)


def _logistic(x):
    return np.asarray(1 / (1 + np.exp(-x)), dtype=np.float64)


def _centre(rate, sd):
    """The logit around which normal effects of this standard deviation have this mean rate."""
    low, high = -12.0, 12.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if _mean(middle, sd) < rate else (low, middle)
    return (low + high) / 2


def _mean(centre, sd):
    """The mean rate of normal effects of this standard deviation around a logit."""
    return float((_WEIGHTS * _logistic(centre + sd * _NODES)).sum() / _WEIGHTS.sum())


@dataclass(frozen=True)
class Episode:
    """What contrasts and rates read of an episode."""

    episode_id: str
    task_id: str
    persona: str
    condition: str
    success: bool
    final_correctness: float
    benchmark: str = "sciq"
    status: str = "complete"
    code_passed: None = None
    turns_taken: int = 1
    branch: None = None


@dataclass(frozen=True)
class Study:
    """A source of such episodes."""

    episodes: tuple[Episode, ...]
    rate: float
    """Of success over all tasks, with these personas, under conditions that are no better."""


def study(rng, tasks, sd, *, personas=6, repeats=1, conditions=CONDITIONS, shown=0.0):
    """One study; all conditions succeed half the time on average, the second by `shown` more."""
    spread = (1.5 + sd * sd) ** 0.5
    logits = np.full((len(conditions), 1, 1), _centre(0.5 - shown / 2, spread))
    logits[1] = _centre(0.5 + shown / 2, spread)
    persona = rng.normal(0, 0.5, (1, 1, personas))
    logits = logits + rng.normal(0, 1, (1, tasks, 1)) + persona
    logits = logits + rng.normal(0, 0.5, (1, tasks, personas))
    chances = _logistic(logits + sd * rng.normal(0, 1, (len(conditions), tasks, 1)))
    runs = rng.random((*chances.shape, repeats)) < chances[..., None]
    scores = np.clip(chances[..., None] + rng.normal(0, 0.15, runs.shape), 0, 1)
    return Study(
        tuple(
            Episode(
                f"{c}.{t}.{p}.{r}", str(t), str(p), name, bool(runs[c, t, p, r]),
                float(scores[c, t, p, r]),
            )
            for c, name in enumerate(conditions)
            for t, p, r in product(range(tasks), range(personas), range(repeats))
        ),
        float(np.mean([_mean(one, (1.25 + sd * sd) ** 0.5) for one in persona.flat])),
    )  # fmt: skip


def share_held(tasks, sd, rate, studies):
    """How often the interval of a share of turns holds it; `None` where there is none.

    A task has 13 to 60 turns over six personas; tasks differ by `sd`, and personas of a task by
    half of it.
    """
    rng = np.random.default_rng([tasks, int(4 * sd), int(100 * rate)])
    centre, held = _centre(rate, sd * 1.25**0.5), 0
    for _ in range(studies):
        turns = rng.integers(13, 61, tasks)
        chances = _logistic(
            centre + sd * (rng.normal(0, 1, (tasks, 1)) + rng.normal(0, 0.5, (tasks, 6)))
        )
        sizes = turns[:, None] // 6 + (np.arange(6) < turns[:, None] % 6)
        hits = rng.binomial(sizes, chances).sum(axis=1)
        found = share_of_sums(hits.astype(np.float64), turns.astype(np.float64))
        if isinstance(found.interval, NotEstimable):
            return None
        held += found.interval.low <= rate <= found.interval.high
    return held / studies


@dataclass(frozen=True)
class Sentences:
    """What studies without a difference on average were told, as shares of studies."""

    alarms: float
    """The first sentence named a difference."""
    alone: float
    """A difference on these tasks alone was named; an alarm only if `sd` is 0."""
    differences: float | None
    """Printed intervals of differences that held 0; `None` where none was printed."""
    rates: float | None
    """Printed intervals of success rates that held the true one."""


def told(tasks, sd, personas, repeats, studies):
    """What the product says of studies in which no condition is better."""
    rng = np.random.default_rng([tasks, int(4 * sd), personas, repeats])
    alarms = alone = 0
    differences: list[bool] = []
    rates: list[bool] = []
    for _ in range(studies):
        made = study(rng, tasks, sd, personas=personas, repeats=repeats)
        found = contrasts_of(made)
        words = contrast_words(found)
        alarms += words.startswith("Beyond chance over tasks")
        alone += "On these tasks and personas alone" in words
        differences += _held([row.difference for row in found], 0.0)
        rates += _held([row.rate for row in success_rates(made)], made.rate)
    return Sentences(alarms / studies, alone / studies, _share(differences), _share(rates))


def _held(estimates, truth):
    for one in estimates:
        if isinstance(one, Estimate) and one.low is not None and one.high is not None:
            yield one.low <= truth <= one.high


def _share(held):
    return sum(held) / len(held) if held else None


def power(shown, sd, spread, studies):
    """The tasks that are said to show a difference between two conditions, and how often they do.

    Args:
        shown: The difference in success.
        sd: Of a task's effects under each condition.
        spread: Of the tasks' differences that this gives.
        studies: How many.
    """
    tasks = tasks_for(shown, spread, 2)  # of success and of the score
    rng = np.random.default_rng([int(100 * shown), int(4 * sd)])
    named = 0
    for _ in range(studies):
        found = contrasts_of(study(rng, tasks, sd, conditions=CONDITIONS[:2], shown=shown))
        [success, _] = found
        named += success.p_holm is not None and success.p_holm < 0.05
    return tasks, named / studies


@contextmanager
def fewer_draws():
    """A tenth of the draws of tests that are not counted, for many studies in little time."""
    with (
        patch.object(intervals_and_tests, "DRAWS", 9_999),
        patch.object(intervals_and_tests, "DRAWS_WITHIN", 999),
    ):
        yield


def _percent(share):
    return "none" if share is None else f"{100 * share:.1f}"


def _tables(studies):
    yield "| tasks | " + " | ".join(map(str, TASKS)) + " |"
    yield "|---" * (len(TASKS) + 1) + "|"
    least = [
        [share_held(tasks, sd, rate, 5 * studies) for sd, rate in product(SPREADS, RATES)]
        for tasks in TASKS
    ]
    worst = [None if None in cells else min(filter(None, cells)) for cells in least]
    yield "| shares of turns | " + " | ".join(map(_percent, worst)) + " |"
    for personas, repeats, sd in product((1, 6), (1, 3), SPREADS):
        cells = [told(tasks, sd, personas, repeats, studies) for tasks in TASKS]
        name = f"{personas} × {repeats}, sd {sd:g}"
        yield f"| {name}: alarms | " + " | ".join(_percent(c.alarms) for c in cells) + " |"
        if sd == 0:
            yield f"| {name}: alone | " + " | ".join(_percent(c.alone) for c in cells) + " |"
        yield (
            f"| {name}: differences | " + " | ".join(_percent(c.differences) for c in cells) + " |"
        )
        yield f"| {name}: rates | " + " | ".join(_percent(c.rates) for c in cells) + " |"
    for shown, (sd, spread) in product((0.2, 0.3), ((0.0, 0.25), (0.75, 0.31), (1.5, 0.4))):
        tasks, named = power(shown, sd, spread, studies)
        yield f"power: {shown}, sd {sd:g}: {tasks} tasks, {_percent(named)} %"


if __name__ == "__main__":
    with fewer_draws():
        for line in _tables(int(sys.argv[1])):
            print(line, flush=True)  # noqa: T201 - the table is what this is run for
