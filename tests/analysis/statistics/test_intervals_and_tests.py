"""Intervals and tests over tasks: against scipy, plain forms and hand counts."""

from dataclasses import dataclass
from itertools import product
from math import inf, isclose, sqrt
from typing import Any
from zlib import crc32

import numpy as np
import pytest
from scipy import stats

from tests.reference.intervals import dense_variance, flips_one_by_one, labels_one_by_one
from tutorsim.analysis.statistics import intervals_and_tests
from tutorsim.analysis.statistics.intervals_and_tests import (
    DRAWS,
    UNKNOWN,
    Bounds,
    Estimate,
    Interval,
    NotEstimable,
    PermutationTest,
    Unit,
    corrected,
    detectable,
    detectable_by,
    fewest_tasks,
    flips_by_task,
    holm,
    interval_of_mean,
    known_draw,
    labels_within_pairs,
    mean_bounds,
    mean_of_numbered,
    mean_over_tasks,
    share_of_sums,
    share_over_tasks,
    spread_to_expect,
    statistic_over_tasks,
    student_t,
    tasks_for,
    to_json,
    too_few_tasks,
)

RNG = np.random.default_rng(24)
SIZES = [3, 1, 7, 12, 5, 5, 2]


def estimate(value):
    assert isinstance(value, Estimate)
    return value


def uneven():
    """Values of tasks of unequal size."""
    tasks = [f"t{i}" for i, size in enumerate(SIZES) for _ in range(size)]
    return RNG.normal(size=len(tasks)).tolist(), tasks


@pytest.mark.parametrize("df", [1, 1.4, 2, 3.7, 5, 19, 250, 40_000])
@pytest.mark.parametrize("level", [0.1, 0.6, 0.95, 0.99])
def test_quantiles_of_students_t_are_those_of_scipy(df, level):
    assert student_t(df, level) == pytest.approx(stats.t.ppf((1 + level) / 2, df), rel=1e-8)


def test_a_mean_over_equal_tasks_has_the_t_interval_of_their_means():
    means = RNG.normal(size=8)
    values = [mean + extra for mean in means for extra in (-0.5, 0.5)]
    found = estimate(mean_over_tasks(values, [i // 2 for i in range(16)]))
    theirs = stats.ttest_1samp(means, 0).confidence_interval(0.95)
    assert (found.low, found.high) == pytest.approx((theirs.low, theirs.high), abs=1e-9)
    assert (found.n, found.interval.method) == (16, "Student's t over 8 tasks")


def test_the_variance_and_degrees_of_uneven_tasks_are_those_of_the_dense_matrices():
    values, tasks = uneven()
    mean, variance, df = dense_variance(values, tasks)
    found = estimate(mean_over_tasks(values, tasks))
    half = stats.t.ppf(0.975, df) * sqrt(variance)
    assert (found.value, found.low, found.high) == pytest.approx((mean, mean - half, mean + half))


def test_a_share_is_wilsons_with_the_number_that_the_variance_leaves():
    # Eight tasks of ten turns, as by coins: the variance between tasks, half a task of the
    # greatest added, leaves so many turns; Wilson's interval of them with t in place of z.
    hits = [4, 6, 5, 3, 7, 5, 4, 6]
    values = [float(i < hit) for hit in hits for i in range(10)]
    found = estimate(share_over_tasks(values, [i // 10 for i in range(80)]))
    between = np.var(np.array(hits) / 10, ddof=1) / 8
    left = 0.25 / ((7 * between + 0.5 * 0.25 / 8) / 7.5)
    x = stats.t.ppf(0.975, 7) ** 2 / left
    half = sqrt(x * 0.25 + x * x / 4) / (1 + x)
    assert (found.value, found.low, found.high) == pytest.approx((0.5, 0.5 - half, 0.5 + half))
    same = share_of_sums(np.array(hits, dtype=float), np.full(8, 10.0))
    assert to_json(same) == to_json(found)


@pytest.mark.parametrize("tasks", [4, 6, 20])
def test_where_all_tasks_are_alike_their_number_bounds_the_share(tasks):
    names = [i % tasks for i in range(5 * tasks)]
    none, every = (estimate(share_over_tasks([v] * len(names), names)) for v in (0.0, 1.0))
    assert (none.low, every.high) == (0.0, 1.0)
    # So many tasks show none of a kind that has this share once in forty times.
    assert isclose((1 - none.high) ** tasks, 0.025)
    assert isclose(none.high, 1 - every.low)
    bounded = estimate(mean_over_tasks([0.0] * len(names), names, ends=(-1, 1)))
    assert (bounded.low, bounded.high) == pytest.approx((-none.high, none.high))
    free = estimate(mean_over_tasks([0.1] * len(names), names))
    assert free.interval == NotEstimable(f"all {tasks} tasks have the same mean")


def test_few_hits_are_less_sure_than_none():
    none, one = (
        estimate(share_over_tasks([hit] + [0.0] * 59, [i % 6 for i in range(60)]))
        for hit in (0.0, 1.0)
    )
    assert one.low > 0
    assert one.high < none.high  # one success shows that not every task is all or nothing


def test_with_under_four_tasks_there_is_a_value_and_no_interval():
    for made in (share_over_tasks, mean_over_tasks):
        found = estimate(made([1.0, 0.0, 1.0], "abc", over="scenarios"))
        assert found.interval == too_few_tasks(3, "scenarios")
        assert made([], []) == NotEstimable("no observations")
    assert to_json(found)["interval"] == {
        "not_estimable": "too few scenarios for an interval: 3, it takes 4"
    }


def test_an_interval_stays_on_its_scale_and_holds_its_value():
    for hits in product((0, 1, 4), repeat=4):
        values = [float(i < hit) for hit in hits for i in range(4)]
        tasks = [i // 4 for i in range(16)]
        for found in (share_over_tasks(values, tasks), mean_over_tasks(values, tasks, ends=(0, 1))):
            made = estimate(found)
            assert made.low is not None
            assert made.high is not None
            assert 0 <= made.low <= made.value <= made.high <= 1


def test_the_order_of_the_input_has_no_part_in_the_digits():
    values, tasks = uneven()
    assert mean_over_tasks(values, tasks) == mean_over_tasks(values[::-1], tasks[::-1])
    tested = flips_by_task(values, tasks, seed=1)
    assert tested == flips_by_task(values[::-1], tasks[::-1], seed=1)


def test_a_statistic_has_the_spread_of_its_values_without_a_task():
    values, tasks = uneven()
    given = np.array(values)

    def mean(weights):
        return weights @ given / weights.sum(axis=1)

    found = statistic_over_tasks(mean, tasks)
    assert isinstance(found, Interval)
    names = sorted(set(tasks))
    without = [given[[t != name for t in tasks]].mean() for name in names]
    variance = 6 / 7 * sum((one - given.mean()) ** 2 for one in without)
    half = stats.t.ppf(0.975, dense_variance(values, tasks)[2]) * sqrt(variance)
    assert (found.low, found.high) == pytest.approx((given.mean() - half, given.mean() + half))
    held = statistic_over_tasks(mean, tasks, ends=(given.mean() - 0.01, inf))
    assert held.low == given.mean() - 0.01


@pytest.mark.parametrize(
    ("statistic", "tasks", "why"),
    [
        (lambda w: w[:, 0], "aab", "too few items for an interval: 2, it takes 4"),
        (lambda w: np.where(w[:, 0], 1, np.nan), "abcde", "not defined without one of the items"),
        (lambda w: np.ones(len(w)), "abcde", "the same without any of the 5 items"),
    ],
)  # fmt: skip
def test_a_statistic_without_an_interval_says_why(statistic, tasks, why):
    assert statistic_over_tasks(statistic, list(tasks), over="items") == NotEstimable(why)


def test_tasks_with_numbers_have_the_mean_of_tasks_with_names():
    random = np.random.default_rng(3)
    tasks, values = random.integers(0, 7, 60) * 11, random.random(60)
    named = mean_over_tasks(values.tolist(), [f"t{n:02}" for n in tasks.tolist()], ends=(0, 1))
    assert mean_of_numbered(tasks, values, ends=(0, 1)) == named
    assert isinstance(mean_of_numbered(tasks[:0], values[:0]), NotEstimable)


def test_signs_flip_by_task():
    # Sums of three tasks: 3, 3 and 2. Of 8 sign patterns only +++ and --- reach 8.
    found = flips_by_task([1, 2, 3, 1, 1], "aabcc", seed=1)
    assert found == PermutationTest(
        1.6, 0.25, 5, True, 0.0, 3, pytest.approx(np.std([1.5, 3, 1], ddof=1))
    )
    assert flips_by_task([], [], seed=1) == NotEstimable("no pairs")
    # One task, however many pairs, says nothing; nor do pairs of which none differs.
    assert flips_by_task([1.0] * 6, "aaaaaa", seed=1).p_value == 1.0
    assert flips_by_task([0.0] * 6, "abcdef", seed=1).p_value == 1.0


@pytest.mark.parametrize("tasks", [2, 5, 9])
def test_counted_signs_are_those_of_every_pattern_one_by_one(tasks):
    differences = RNG.integers(-3, 4, 3 * tasks).tolist()
    names = [i % tasks for i in range(3 * tasks)]
    found = flips_by_task(differences, names, seed=0)
    assert found.p_value == flips_one_by_one(differences, names)
    assert found.p_value >= 2.0 ** (1 - tasks)


@pytest.mark.parametrize("tasks", [21, 24, 300])
def test_a_drawn_sign_is_one_random_bit_of_its_own(tasks):
    """The p is that of signs drawn one by one and multiplied out, whatever tasks make a byte."""
    differences = [n if n % 2 else -n for n in range(1, tasks + 1)]
    units = np.arange(1, tasks + 1) * 10**9
    seen = abs(sum(differences)) * 10**9
    random = np.random.default_rng([5, crc32(units.tobytes()), crc32(str(seen).encode())])
    reached, batch = 0, 2_000_000 // tasks
    for start in range(0, DRAWS, batch):
        signs = random.integers(0, 2, (min(batch, DRAWS - start), tasks), dtype=np.int8)
        reached += (np.abs((2 * signs - 1) @ units) >= seen).sum()
    told = flips_by_task(differences, range(tasks), seed=5)
    assert told.p_value == (reached + 1) / (DRAWS + 1)


def test_a_sum_that_no_draw_reaches_has_the_p_that_drawing_would_give(monkeypatch):
    """Of 100 signs 95 alike, and of 81 all, are 9 deviations away; 60 and 61 of 100 are 2."""
    for one_way, other in ((95, 5), (81, 0), (60, 40), (61, 39)):
        differences = [1.0] * one_way + [-1.0] * other
        told = flips_by_task(differences, range(one_way + other), seed=8)
        monkeypatch.setattr(intervals_and_tests, "_NEVER", 0.0)
        intervals_and_tests._drawn_flips.cache_clear()
        assert told == flips_by_task(differences, range(one_way + other), seed=8)
        monkeypatch.undo()
        assert (told.p_value == 1 / (DRAWS + 1)) is (one_way > 80)


def test_signs_are_drawn_unless_a_sum_is_out_of_every_draws_reach(monkeypatch):
    """90 of 100 alike are 8 deviations away, 95 are 9."""
    bytes_drawn, lengths = intervals_and_tests._random_bytes, []
    monkeypatch.setattr(
        intervals_and_tests,
        "_random_bytes",
        lambda seeds, length: lengths.append(length) or bytes_drawn(seeds, length),
    )
    for one_way in (90, 95):
        flips_by_task([1.0] * one_way + [-1.0] * (100 - one_way), range(100), seed=31)
    assert len(lengths) == 1


def test_drawn_signs_come_close_to_counted_ones(monkeypatch):
    differences = (RNG.normal(size=14) + 0.4).tolist()
    exact = flips_by_task(differences, range(14), seed=1)
    monkeypatch.setattr(intervals_and_tests, "EXACT_UP_TO", 13)
    drawn = flips_by_task(differences, range(14), seed=1)
    assert (exact.exact, drawn.exact) == (True, False)
    assert abs(drawn.p_value - exact.p_value) < 4 * drawn.error
    assert drawn.error == sqrt(drawn.p_value * (1 - drawn.p_value) / DRAWS)
    assert flips_by_task([1.0, -1.0] * 15, range(30), seed=1).p_value == 1.0  # as every draw
    assert drawn != flips_by_task(differences, range(14), seed=2)


def test_labels_permuted_within_pairs_are_those_of_every_permutation():
    for first, second in (
        ([[0, 1], [0, 0], [1, 0]], [[1, 1], [0, 1], [1, 1]]),
        ([[0, 0, 1], [0], [1, 0]], [[1], [1, 1, 0], [1, 1]]),
    ):
        assert labels_within_pairs(first, second, seed=1) == pytest.approx(
            labels_one_by_one(first, second), abs=0.02
        )
    # One run each is a flip of its pair: five pairs of five, all one way.
    assert labels_within_pairs([[0]] * 5, [[1]] * 5, seed=1) == pytest.approx(2 / 32, abs=0.01)


def test_holm_steps_down_and_keeps_the_order_of_the_family():
    # 0.01 × 4, 0.02 × 3, max(0.06, 0.03 × 2), max(0.06, 0.04 × 1)
    assert holm({"d": 0.04, "a": 0.01, "c": 0.03, "b": 0.02}) == pytest.approx(
        {"d": 0.06, "a": 0.04, "c": 0.06, "b": 0.06}
    )
    assert holm({"a": 0.9, "b": 0.8}) == {"a": 1.0, "b": 1.0}
    assert holm({}) == {}


def test_a_larger_family_needs_more_tasks():
    assert [fewest_tasks(m) for m in (1, 4, 16)] == [6, 8, 10]
    assert all(
        m * 2.0 ** (1 - fewest_tasks(m)) < 0.05 < m * 2.0 ** (2 - fewest_tasks(m))
        for m in range(1, 99)
    )
    assert isinstance(detectable(5, 0.3), NotEstimable)
    # Six tasks must all differ one way, which each does with 0.8^(1/6); seven may by t alone.
    six, t = stats.norm.ppf(0.8 ** (1 / 6)) + 0.2, stats.t(6)
    assert detectable(6, 2.0) == pytest.approx(2 * six)
    assert detectable(7, 2.0) == pytest.approx(2 * (t.ppf(0.975) + t.ppf(0.8)) * sqrt(1.1 / 6))
    assert detectable(20, 0.3) < detectable(20, 0.3, 16)
    # What `tutorsim guide statistics` prints of six personas and of one.
    assert [round(spread_to_expect(runs), 2) for runs in (6, 1)] == [0.31, 0.62]
    assert [tasks_for(size, 0.31) for size in (0.1, 0.2, 0.3)] == [86, 24, 13]
    alike = flips_by_task([1.0] * 8, range(8), seed=0)
    assert detectable_by(alike) == NotEstimable("all 8 tasks have the same difference")
    assert isinstance(detectable_by(flips_by_task([1.0] * 2, "ab", seed=0)), NotEstimable)


def test_results_become_plain_json_values():
    one = Estimate(0.5, 2, Interval(0.25, 0.75, "by hand"))
    assert to_json({"a": (one, NotEstimable("none"), 3, None)}) == {
        "a": [
            {"value": 0.5, "n": 2, "interval": {"low": 0.25, "high": 0.75, "method": "by hand"}},
            {"not_estimable": "none"},
            3,
            None,
        ]
    }


# --- Paired differences --------------------------------------------------------------------------


@dataclass(frozen=True)
class Row:
    test: Any
    p_holm: float | None = None
    detectable: Any = None


def made(p, tasks=10):
    return PermutationTest(0.5, p, tasks, exact=True, error=0.0, tasks=tasks, spread=0.4)


def test_a_family_is_corrected_together_and_a_row_without_a_test_is_left():
    """Holm: 3 · 0.01, then 2 · 0.04, then 0.5."""
    missing = Row(NotEstimable("no pairs"))
    rows = corrected([Row(made(0.04)), missing, Row(made(0.01)), Row(made(0.5))])
    assert [row.p_holm for row in rows] == [pytest.approx(0.08), None, pytest.approx(0.03), 0.5]
    assert rows[1] is missing


def test_the_rows_of_a_family_say_what_it_could_show():
    [one, other] = corrected([Row(made(0.04)), Row(made(0.2))])
    assert one.detectable == other.detectable == detectable_by(made(0.04), 2)


# --- Means over episodes of which some are known in part -----------------------------------------


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
