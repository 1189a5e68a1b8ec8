"""Means over episodes of which some are known in part."""

from tutorsim.analysis.statistics.intervals_and_tests import (
    UNKNOWN,
    Bounds,
    Interval,
    NotEstimable,
    Unit,
    interval_of_mean,
    known_draw,
    mean_bounds,
    mean_over_tasks,
    too_few_tasks,
)


def unit(task, *draws):
    return Unit(task, tuple(map(known_draw, draws)))


def test_an_episode_counts_by_the_mean_of_its_draws():
    # (0 + 1 + 1 + 1)/4 and 1/2, over two episodes.
    units = [unit("a", 0, 1, 1, 1), unit("b", 0.5)]
    assert mean_bounds(units) == Bounds(0.625, 0.625, 2)
    assert not units[0].is_open


def test_what_is_not_known_is_anything_from_0_to_1():
    # a: (1 + 0)/2 to (1 + 1)/2; b: 0 to 1; c: 1.
    units = [unit("a", 1, None), unit("b", None), unit("c", 1)]
    assert mean_bounds(units) == Bounds(1.5 / 3, 1.0, 3)
    assert [u.is_open for u in units] == [True, True, False]
    assert units[1].draws == (UNKNOWN,)


def test_known_episodes_have_the_interval_of_their_mean_over_tasks():
    units = [unit(task, i / 8, 0.5) for i, task in enumerate("aabcdef")]
    whole = mean_over_tasks([u.low for u in units], [u.task for u in units], ends=(0, 1))
    assert interval_of_mean(units) == interval_of_mean(units[::-1]) == whole.interval  # type: ignore[union-attr]


def test_the_interval_of_bounds_reaches_from_the_worst_case_to_the_best():
    known = [unit(task, 0.5 + 0.01 * i) for i, task in enumerate("abcde")]
    found = interval_of_mean([*known, unit("f", None)])
    assert isinstance(found, Interval)
    worst, best = (interval_of_mean([*known, unit("f", value)]) for value in (0, 1))
    assert (found.low, found.high) == (worst.low, best.high)


def test_too_few_tasks_and_a_scale_without_ends_have_none():
    assert interval_of_mean([unit("a", 0, 1)]) == too_few_tasks(1)
    alike = [unit(task, 0.5) for task in "abcdef"]
    found = interval_of_mean(alike, ends=(0, float("inf")))
    assert found == NotEstimable("all 6 tasks have the same mean")
