import random

import pytest

from tutorsim.analysis.statistics.intervals_and_tests import (
    Bounds,
    Interval,
    NotEstimable,
    too_few_tasks,
)
from tutorsim.analysis.statistics.partly_known_means import (
    UNKNOWN,
    Unit,
    known_draw,
    mean_bounds,
    nested_bootstrap,
)


def unit(task: str, *draws: float | None, sampled: bool = True) -> Unit:
    return Unit(f"episode of {task}", task, tuple(map(known_draw, draws)), sampled)


def interval(*units: Unit, seed: int = 0) -> Interval:
    found = nested_bootstrap(units, seed=seed)
    assert isinstance(found, Interval)
    return found


def test_an_episode_counts_by_the_mean_of_its_draws() -> None:
    # (0 + 1 + 1 + 1)/4 and 1/2, over two episodes.
    units = [unit("a", 0, 1, 1, 1), unit("b", 0.5, sampled=False)]
    assert mean_bounds(units) == Bounds(0.625, 0.625, 2)
    assert not units[0].is_open


def test_what_is_not_known_is_anything_from_0_to_1() -> None:
    # a: (1 + 0)/2 to (1 + 1)/2; b: 0 to 1; c: 1.
    units = [unit("a", 1, None), unit("b", None), unit("c", 1)]
    assert mean_bounds(units) == Bounds(1.5 / 3, 1.0, 3)
    assert [u.is_open for u in units] == [True, True, False]
    assert units[1].draws == (UNKNOWN,)


def test_draws_that_differ_within_alike_episodes_give_a_width() -> None:
    # Every resample has sixteen draws of a fair coin, whatever tasks were picked: the quantiles
    # of a binomial of 16 at 2.5 and 97.5 % are 4 and 12.
    found = interval(*(unit(task, 0, 1) for task in "abcdefgh"))
    assert (found.low, found.high) == (0.25, 0.75)
    assert found.method == "percentile bootstrap over 8 tasks and over the draws of an episode"


def test_alike_draws_of_alike_episodes_give_none() -> None:
    units = [unit(task, 0.5, 0.5) for task in "abcdef"]
    found = nested_bootstrap(units, seed=0)
    assert found == NotEstimable("all 6 tasks have the same mean")


def test_the_interval_says_that_single_draws_have_no_spread_within() -> None:
    single = interval(*(unit(task, 0) for task in "abc"), *(unit(task, 1, 1) for task in "def"))
    assert "without the variation within an episode" in single.method
    # Six tasks of one value: k of them 1 with chance C(6, k) / 64; 1/64 is below 2.5 %, 7/64 above.
    assert (single.low, single.high) == pytest.approx((1 / 6, 5 / 6))
    logged = interval(*(unit(task, int(task > "c"), sampled=False) for task in "abcdef"))
    assert logged.method == "percentile bootstrap over 6 tasks"


def test_the_interval_of_bounds_reaches_from_the_worst_case_to_the_best() -> None:
    known = [unit(task, 0.5) for task in "abcde"]
    found = interval(*known, unit("f", None))
    # The mean is 5/12 to 7/12 as it is; with f picked up to six times it reaches from 0 to 1.
    assert 0 <= found.low < 5 / 12
    assert 7 / 12 < found.high <= 1


def test_the_order_of_episodes_has_no_part_in_the_interval() -> None:
    units = [unit(task, 0.01 * i**2, 0.07 * i, 0.5) for i, task in enumerate("abcdefghi")]
    assert interval(*units) == interval(*reversed(units))
    assert interval(*units) != interval(*units, seed=1)


def test_one_task_has_no_interval() -> None:
    found = nested_bootstrap([unit("a", 0, 1)], seed=0)
    assert found == too_few_tasks(1)


@pytest.mark.slow
def test_the_interval_holds_the_mean_about_as_often_as_it_says() -> None:
    # 12 tasks of two episodes, each drawn three times at the task's own chance, 1/2 on average.
    held = 0
    for seed in range(200):
        rng = random.Random(seed)
        chances = {f"t{i}": rng.betavariate(2, 2) for i in range(12)}
        units = [
            Unit(f"{task}.{n}", task, tuple(_toss(rng, p) for _ in range(3)), sampled=True)
            for task, p in chances.items()
            for n in range(2)
        ]
        found = interval(*units, seed=seed)
        held += found.low <= 0.5 <= found.high
    # Somewhat more often than 95 %: both stages are resampled.
    assert 0.93 <= held / 200 <= 0.995


def _toss(rng: random.Random, chance: float) -> tuple[float, float]:
    return known_draw(float(rng.random() < chance))
