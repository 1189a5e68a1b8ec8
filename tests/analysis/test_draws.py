import random

import pytest

from analysis.draws import UNKNOWN, Unit, known_draw, mean_bounds, nested_bootstrap
from analysis.statistics import Bounds, Interval, NotEstimable


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
    found = interval(unit("a", 0.5, 0.5), unit("b", 0.5, sampled=False))
    assert (found.low, found.high) == (0.5, 0.5)


def test_the_interval_says_that_single_draws_have_no_spread_within() -> None:
    single = interval(unit("a", 0), unit("b", 1, 1))
    assert "without the variation within an episode" in single.method
    # Two tasks of one value: 0, 1/2 and 1 in 1, 2 and 1 of four resamples.
    assert (single.low, single.high) == (0.0, 1.0)
    logged = interval(unit("a", 0, sampled=False), unit("b", 1, sampled=False))
    assert logged.method == "percentile bootstrap over 2 tasks"


def test_the_interval_of_bounds_reaches_from_the_worst_case_to_the_best() -> None:
    known = [unit(task, 0.5) for task in "abc"]
    found = interval(*known, unit("d", None))
    # With d picked never to four times: mean from 0 to 1/2 at worst, 1/2 to 1 at best.
    assert 0 <= found.low < 0.375
    assert 0.625 < found.high <= 1


def test_the_order_of_episodes_has_no_part_in_the_interval() -> None:
    units = [unit(task, 0.01 * i**2, 0.07 * i, 0.5) for i, task in enumerate("abcdefghi")]
    assert interval(*units) == interval(*reversed(units))
    assert interval(*units) != interval(*units, seed=1)


def test_one_task_has_no_interval() -> None:
    found = nested_bootstrap([unit("a", 0, 1)], seed=0)
    assert found == NotEstimable("all observations are of one task")


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
