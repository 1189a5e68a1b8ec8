"""Percentile intervals, held against scipy's bootstrap."""

import numpy as np
import pytest
from scipy import stats

from tutorsim.analysis.statistics.intervals_and_tests import Interval, NotEstimable
from tutorsim.analysis.statistics.percentile_intervals import percentile_interval

VALUES = np.array([0.1, 0.9, 0.4, 0.35, 0.8, 0.7, 0.2, 0.55, 0.6, 0.15])


def mean(weights):
    return weights @ VALUES / weights.sum(axis=1)


def test_the_interval_of_a_mean_is_that_of_another_bootstrap_of_it():
    found = percentile_interval(mean, range(10), seed=1)
    other = stats.bootstrap(
        (VALUES,), np.mean, n_resamples=9999, method="percentile", rng=np.random.default_rng(2)
    ).confidence_interval
    assert isinstance(found, Interval)
    assert (found.low, found.high) == pytest.approx(tuple(other), abs=0.015)
    assert percentile_interval(mean, range(10), seed=1) == found


def test_observations_of_a_cluster_are_drawn_together():
    """With two equal values a cluster the interval is that of one value a cluster."""
    doubled = np.repeat(VALUES, 2)
    together = percentile_interval(
        lambda w: w @ doubled / w.sum(axis=1), np.repeat(range(10), 2).tolist(), seed=1
    )
    assert together == percentile_interval(mean, range(10), seed=1)


def test_few_clusters_and_undefined_resamples_give_a_reason():
    few = percentile_interval(mean, [0, 0, 1, 1, 2, 2, 3, 3, 4, 4], seed=0)
    assert few == NotEstimable("too few tasks for an interval: 5, it takes 6")
    never = percentile_interval(lambda w: np.full(len(w), np.nan), range(10), seed=0)
    assert never == NotEstimable("not defined in 4,999 of 4,999 resamples")


def test_resamples_that_are_all_alike_give_no_interval_of_no_width():
    same = percentile_interval(lambda w: np.ones(len(w)), range(10), seed=0, unit="items")
    assert same == NotEstimable("every resample of the 10 items has the same value")
