from itertools import product
from math import comb, isclose, sqrt

import numpy as np
import pytest

from tutorsim.analysis.statistics.intervals_and_tests import (
    FEWEST_TASKS,
    LEVEL,
    Estimate,
    Interval,
    NotEstimable,
    PermutationTest,
    cluster_bootstrap,
    holm,
    minimum_detectable_effect,
    paired_permutation,
    to_json,
    too_few_tasks,
    wilson,
)


def estimate(value: object) -> Estimate:
    assert isinstance(value, Estimate)
    return value


def width(value: Estimate) -> float:
    assert isinstance(value.interval, Interval)
    return value.interval.high - value.interval.low


def test_wilson_gives_the_textbook_interval() -> None:
    # 8 of 10: (0.8 + z²/20 ± z sqrt(0.016 + z²/400)) / (1 + z²/10) with z = 1.959964
    found = estimate(wilson(8, 10))
    assert (round(found.low, 4), round(found.high, 4), found.n) == (0.4902, 0.9433, 10)
    none, every = estimate(wilson(0, 10)), estimate(wilson(10, 10))
    assert (none.low, every.high) == (0.0, 1.0)
    assert isclose(none.high, 0.27753, abs_tol=1e-5)
    assert isclose(none.high, 1 - every.low)


def test_wilson_agrees_with_scipy() -> None:
    from scipy.stats import binomtest

    for k, n in [(0, 1), (1, 1), (3, 7), (60, 60), (17, 60)]:
        theirs = binomtest(k, n).proportion_ci(0.95, method="wilson")
        ours = estimate(wilson(k, n))
        assert isclose(ours.low, theirs.low, abs_tol=1e-12)
        assert isclose(ours.high, theirs.high, abs_tol=1e-12)


def test_holm_steps_down_and_keeps_the_order_of_the_family() -> None:
    # 0.01 × 4, 0.02 × 3, max(0.06, 0.03 × 2), max(0.06, 0.04 × 1)
    assert holm({"d": 0.04, "a": 0.01, "c": 0.03, "b": 0.02}) == pytest.approx(
        {"d": 0.06, "a": 0.04, "c": 0.06, "b": 0.06}
    )
    assert holm({"a": 0.9, "b": 0.8}) == {"a": 1.0, "b": 1.0}
    assert holm({}) == {}


def test_a_small_sign_flip_test_is_enumerated() -> None:
    # Of 8 sign patterns of (1, 2, 3) only +++ and --- reach |mean| = 2.
    assert paired_permutation([1, 2, 3], seed=1) == PermutationTest(2.0, 0.25, 3, exact=True)
    # Mean ½ of (1, 0, 1, 0): zeros do not matter; ++ and -- of 4 patterns.
    assert paired_permutation([1, 0, 1, 0], seed=1) == PermutationTest(0.5, 0.5, 4, exact=True)


def test_a_large_sign_flip_test_of_few_different_values_is_exact() -> None:
    differences = [1.0] * 10 + [-1.0] * 4
    # |sum| >= 6 of 14 fair signs: 10 or more heads, or 10 or more tails.
    exact = 2 * sum(comb(14, k) for k in range(10, 15)) / 2**14
    found = paired_permutation(differences, seed=3)
    assert isinstance(found, PermutationTest)
    assert found.exact
    assert found.p_value == pytest.approx(exact, abs=1e-12)
    assert found == paired_permutation(differences[::-1], seed=3)


def test_the_cluster_bootstrap_is_of_clusters_and_not_of_observations() -> None:
    values = [0.0] * 20 + [1.0] * 20 + [0.5] * 20
    few = estimate(cluster_bootstrap(values, [i // 10 for i in range(60)], seed=1))
    many = estimate(cluster_bootstrap(values, range(60), seed=1))
    assert few.value == many.value == 0.5
    assert width(few) > 2 * width(many)
    assert few.interval.method == "BCa bootstrap over 6 tasks"


@pytest.mark.costly
def test_the_bootstrap_interval_is_close_to_the_percentiles_of_all_resamples() -> None:
    # Symmetric cluster means 0, 1, …, 5: no bias, no acceleration, so BCa is the percentile.
    means = list(range(6))
    every = [np.mean(draw) for draw in product(means, repeat=6)]
    low, high = np.quantile(every, [0.025, 0.975])
    found = estimate(cluster_bootstrap(means, means, seed=5))
    assert found.low == pytest.approx(low, abs=0.2)
    assert found.high == pytest.approx(high, abs=0.2)


def test_the_same_seed_gives_the_same_digits_in_any_order_of_the_input() -> None:
    values = [0.1, 0.7, 0.4, 0.9, 0.3, 0.55, 0.8, 0.65, 0.25, 0.15]
    tasks = list("abaccdefgg")
    first = cluster_bootstrap(values, tasks, seed=2)
    assert first == cluster_bootstrap(values, tasks, seed=2)
    assert first == cluster_bootstrap(values[::-1], tasks[::-1], seed=2)
    assert first != cluster_bootstrap(values, tasks, seed=4)


def test_an_unbalanced_mean_is_over_observations() -> None:
    found = estimate(cluster_bootstrap([1, 1, 1, 0], ["a", "a", "a", "b"], seed=1))
    assert found.value == 0.75


def test_equal_clusters_give_no_interval_since_it_would_have_no_width() -> None:
    found = estimate(cluster_bootstrap([0.1] * 6, "abcdef", seed=1))
    assert found.value == pytest.approx(0.1)
    assert found.interval == NotEstimable("all 6 tasks have the same mean")


def test_the_range_of_too_few_task_means_cannot_hold_the_median_often_enough() -> None:
    assert 1 - 2 ** (1 - FEWEST_TASKS) >= LEVEL
    assert 1 - 2 ** (1 - (FEWEST_TASKS - 1)) < LEVEL
    few = estimate(cluster_bootstrap([0.0, 0.2, 0.4, 0.6, 1.0], "abcde", seed=1))
    assert few.interval == too_few_tasks(5)
    assert to_json(few)["interval"] == {
        "not_estimable": "too few tasks for an interval: 5, it takes 6"
    }


def test_too_little_data_is_not_estimable_and_says_why() -> None:
    assert cluster_bootstrap([], [], seed=1) == NotEstimable("no observations")
    one_task = too_few_tasks(1)
    assert cluster_bootstrap([0.5, 1.0], ["a", "a"], seed=1) == Estimate(0.75, 2, one_task)
    assert paired_permutation([], seed=1) == NotEstimable("no pairs")
    assert paired_permutation([0.5], seed=1) == NotEstimable("one pair has no distribution")
    assert wilson(0, 0) == NotEstimable("no observations")
    assert minimum_detectable_effect([], []) == NotEstimable("no pairs")
    assert minimum_detectable_effect([1.0], ["a"]) == too_few_tasks(1)
    assert minimum_detectable_effect([1.0] * 6, "abcdef") == NotEstimable(
        "all tasks have the same difference"
    )


def test_the_detectable_effect_is_a_multiple_of_the_standard_error_of_task_means() -> None:
    # Task means three times 0.0 and three times 0.2: sd sqrt(6 × 0.01 / 5), over six tasks;
    # 1.959964 + 0.841621 = 2.801585
    found = minimum_detectable_effect([-0.1, 0.1, 0, 0, 0.2, 0.2, 0.2], "aabcdef")
    assert found == pytest.approx(2.801585 * sqrt(0.012 / 6), abs=1e-6)


def test_results_become_plain_json_values() -> None:
    one = Estimate(0.5, 2, Interval(0.25, 0.75, "by hand"))
    assert to_json({"a": (one, NotEstimable("none"), 3, None)}) == {
        "a": [
            {"value": 0.5, "n": 2, "interval": {"low": 0.25, "high": 0.75, "method": "by hand"}},
            {"not_estimable": "none"},
            3,
            None,
        ]
    }
