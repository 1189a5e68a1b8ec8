"""Folding over a small axis is reducing over it."""

import numpy as np
import pytest

from tutorsim.analysis.ballots.vote_arrays import count, fold, summed


@pytest.mark.parametrize("shape", [(3, 4, 2), (5, 1, 1), (0, 3, 2), (2, 0, 3), (2, 20, 3)])
@pytest.mark.parametrize("axis", [1, 2])
def test_a_fold_is_the_reduction(shape, axis):
    numbers = np.random.default_rng(1).integers(-9, 9, shape)
    truths = numbers > 0
    assert (summed(numbers, axis) == numbers.sum(axis=axis)).all()
    assert (count(truths, axis) == truths.sum(axis=axis)).all()
    assert (fold(np.logical_or, truths, axis) == truths.any(axis=axis)).all()
    assert (fold(np.logical_and, truths, axis) == truths.all(axis=axis)).all()
    if shape[axis]:
        assert (fold(np.maximum, numbers, axis) == numbers.max(axis=axis)).all()
