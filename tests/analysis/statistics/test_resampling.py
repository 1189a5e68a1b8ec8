"""Intervals and tests held to scipy, which is their oracle."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from tutorsim.analysis.statistics.resampling import (
    RESAMPLES,
    SignFlips,
    bca,
    linearised,
    sign_flip_p,
)

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
    found = sign_flip_p(values, seed=seed)
    assert (found.exact, found.error) == (True, 0.0)
    if len(values) <= 12:  # theirs is drawn for more
        assert found.p_value == pytest.approx(theirs.pvalue, abs=1e-12)
    else:
        assert found.p_value == pytest.approx(theirs.pvalue, abs=0.05)


def test_a_difference_of_zero_has_no_sign() -> None:
    # 10 of 24 pairs differ, by 1 each, 6 up and 4 down: 2 P(at least 6 of 10 heads) = 2 × 386/1024.
    values = np.array([0.0] * 14 + [1.0] * 6 + [-1.0] * 4)
    assert sign_flip_p(values, seed=0) == SignFlips(pytest.approx(2 * 386 / 1024), True, 0.0)
    assert sign_flip_p(np.zeros(5), seed=0) == SignFlips(1.0, True, 0.0)


def test_signs_are_drawn_where_sums_are_too_many_and_the_error_is_told() -> None:
    rng = np.random.default_rng(3)
    values = rng.normal(0.1, 1, 40)
    found = sign_flip_p(values, seed=1)
    assert not found.exact
    assert found.error == pytest.approx((found.p_value * (1 - found.p_value) / RESAMPLES) ** 0.5)
    normal = 2 * stats.norm.sf(abs(values.sum()) / np.sqrt((values**2).sum()))
    assert found.p_value == pytest.approx(normal, abs=0.03)


def test_rows_of_equal_size_do_not_share_their_draws() -> None:
    rng = np.random.default_rng(5)
    one, other = rng.normal(0.1, 1, 40), rng.normal(0.1, 1, 40)
    drawn: list[object] = []
    generator = np.random.default_rng
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(
            np.random, "default_rng", lambda seed: drawn.append(seed) or generator(seed)
        )
        sign_flip_p(one, seed=0)
        sign_flip_p(other, seed=0)
        sign_flip_p(one, seed=0)
    assert drawn[0] != drawn[1]
    assert drawn[0] == drawn[2]


@pytest.mark.costly
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
