import numpy as np
import pytest

from tutorsim.analysis.statistics.intervals_and_tests import Estimate, NotEstimable, PermutationTest
from tutorsim.analysis.systems.oversight.dialogue_intervals import (
    DRAWS,
    cluster_numbers,
    drawn_sums,
    interval_of,
    paired_swaps,
)


def paired_swap(first, second, score, *, seed):
    [test] = paired_swaps(first[:, None], second[:, None], score, seed=seed)
    return test


def share(cells):
    return cells[..., 0] / cells[..., 1]


def test_clusters_are_numbered_whatever_the_order_of_the_input():
    assert cluster_numbers(("b", "a", "b")).tolist() == [1, 0, 1]
    assert cluster_numbers(("a", "b", "b")).tolist() == [0, 1, 1]


def test_a_draw_has_as_many_clusters_as_there_are():
    cells = np.ones((7, 2), dtype=np.int64)
    drawn = drawn_sums(cells, seed=1)
    assert drawn.shape == (DRAWS, 2)
    assert (drawn == 7).all()


def test_the_spread_is_that_of_a_mean_over_clusters():
    rng = np.random.default_rng(3)
    hits = rng.integers(0, 2, 60)
    cells = np.stack((hits, np.ones(60, dtype=np.int64)), axis=1)
    drawn = share(drawn_sums(cells, seed=5))
    expected = np.std(hits) / 60**0.5
    assert np.std(drawn) == pytest.approx(expected, rel=0.05)


def test_the_same_seed_gives_the_same_digits():
    cells = np.arange(20, dtype=np.int64).reshape(10, 2)
    assert (drawn_sums(cells, seed=9) == drawn_sums(cells, seed=9)).all()


def test_items_as_clusters_say_that_they_are_too_narrow():
    drawn = np.linspace(0, 1, DRAWS)
    found = interval_of(0.5, drawn, n=8, clusters=8, over="items")
    assert isinstance(found, Estimate)
    assert "too narrow" in found.interval.method
    assert (round(found.low, 3), round(found.high, 3)) == (0.025, 0.975)


def test_few_dialogues_have_no_interval_and_no_gold_no_score():
    one = interval_of(0.5, np.full(DRAWS, 0.5), n=8, clusters=5, over="dialogues")
    assert isinstance(one.interval, NotEstimable)
    none = interval_of(float("nan"), np.full(DRAWS, np.nan), n=0, clusters=3, over="dialogues")
    assert isinstance(none, NotEstimable)


def test_swaps_of_few_dialogues_are_enumerated():
    # First right in all of 4 dialogues, second in none: 2 of 16 swaps are as far apart.
    first = np.array([[1, 1]] * 4)
    second = np.array([[0, 1]] * 4)
    test = paired_swap(first, second, share, seed=1)
    assert test == PermutationTest(1.0, 2 / 16, 4, exact=True)


def test_swaps_of_many_dialogues_find_a_difference_and_none():
    rng = np.random.default_rng(4)
    ones = np.ones(60, dtype=np.int64)
    first = np.stack((rng.integers(0, 2, 60), ones), axis=1)
    same = paired_swap(first, first, share, seed=1)
    assert (same.p_value, same.exact) == (1.0, False)
    better = np.stack((ones, ones), axis=1)
    assert paired_swap(better, first, share, seed=1).p_value < 0.001
    assert isinstance(paired_swap(first[:1], first[:1], share, seed=1), NotEstimable)


def test_pairs_over_the_same_dialogues_are_tested_as_if_alone():
    rng = np.random.default_rng(8)
    first, second = (
        np.stack((rng.integers(0, 2, (30, 3)), np.ones((30, 3), dtype=int)), axis=-1)
        for _ in range(2)
    )
    together = paired_swaps(first, second, share, seed=2)
    alone = [paired_swap(first[:, i], second[:, i], share, seed=2) for i in range(3)]
    assert together == alone
