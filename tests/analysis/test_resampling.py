"""Intervals and tests held to scipy, which is their oracle."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from analysis.resampling import RESAMPLES, bca, linearised, sign_flip_p

clusters = st.lists(
    st.tuples(st.floats(-1, 1, width=16), st.integers(1, 4)), min_size=3, max_size=9
).filter(lambda found: len({round(mean, 3) for mean, _ in found}) > 1)


@settings(max_examples=15, deadline=None)
@given(clusters, st.integers(0, 5))
def test_the_bootstrap_interval_is_that_of_scipy(found: list[tuple[float, int]], seed: int) -> None:
    counts = np.array([float(n) for _, n in found])
    sums = np.array([mean for mean, _ in found]) * counts

    def ratio(s: Any, n: Any, axis: int) -> Any:
        return s.sum(axis=axis) / n.sum(axis=axis)

    theirs = stats.bootstrap(
        (sums, counts),
        ratio,
        paired=True,
        vectorized=True,
        n_resamples=RESAMPLES,
        method="BCa",
        rng=np.random.default_rng(seed),
    ).confidence_interval
    ours = bca(sums, counts, level=0.95, seed=seed)
    assert ours == pytest.approx((theirs.low, theirs.high), abs=1e-12)


@settings(max_examples=15, deadline=None)
@given(
    st.lists(st.integers(-8, 8).map(lambda k: k / 4), min_size=2, max_size=20), st.integers(0, 5)
)
def test_the_sign_flip_test_is_that_of_scipy(differences: list[float], seed: int) -> None:
    values = np.sort(np.array(differences))
    theirs = stats.permutation_test(
        (values,),
        lambda x, axis: x.mean(axis=axis),
        permutation_type="samples",
        vectorized=True,
        n_resamples=RESAMPLES,
        rng=np.random.default_rng(seed),
    )
    assert sign_flip_p(values, seed=seed) == (theirs.pvalue, len(values) <= 12)


def test_very_many_clusters_have_the_interval_that_resampling_them_would_give() -> None:
    rng = np.random.default_rng(7)
    counts = rng.integers(1, 4, 4000).astype(float)
    sums = rng.random(4000) * counts
    resampled = bca(sums, counts, level=0.95, seed=0)
    straight = linearised(sums, counts, level=0.95)
    width = resampled[1] - resampled[0]
    assert straight == pytest.approx(resampled, abs=0.05 * width)


def test_few_clusters_are_drawn_once_a_seed(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[int] = []
    generator = np.random.default_rng
    monkeypatch.setattr(np.random, "default_rng", lambda seed: made.append(seed) or generator(seed))
    counts = np.ones(7)
    for last in range(2, 6):
        bca(np.array([0, 1, 0, 1, 0, 1, last], dtype=float), counts, level=0.95, seed=4321)
    assert made == [4321]
