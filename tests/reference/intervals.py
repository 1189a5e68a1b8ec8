"""Plain forms of intervals and tests over tasks, one matrix or one pattern at a time."""

from collections.abc import Hashable
from itertools import permutations, product

import numpy as np


def _by_task(values, tasks):
    groups: dict[Hashable, list[float]] = {}
    for value, task in zip(values, tasks, strict=True):
        groups.setdefault(task, []).append(value)
    return groups


def dense_variance(values, tasks):
    """Mean, its variance and Satterthwaite's degrees of freedom, as quadratic forms of task sums.

    With residuals Qy of the sums y and weights W, the variance is yᵀBy with B = QᵀWQ / n²; the
    degrees are tr(BS)² / tr(BSBS), S the covariance of sums of which all observations agree.
    """
    groups = list(_by_task(values, tasks).values())
    y, sizes = np.array([sum(g) for g in groups]), np.array([float(len(g)) for g in groups])
    n = sizes.sum()
    residuals = np.eye(len(y)) - np.outer(sizes, np.ones(len(y))) / n
    form = residuals.T @ np.diag(1 / (1 - sizes / n)) @ residuals / n**2
    spread = form @ np.diag(sizes**2)
    return y.sum() / n, float(y @ form @ y), np.trace(spread) ** 2 / np.trace(spread @ spread)


def flips_one_by_one(differences, tasks):
    """Share of sign patterns of tasks whose sum is as far from zero as the one seen."""
    sums = [sum(g) for g in _by_task(differences, tasks).values()]
    far = [
        abs(sum(sign * one for sign, one in zip(signs, sums, strict=True))) >= abs(sum(sums)) - 1e-9
        for signs in product((-1, 1), repeat=len(sums))
    ]
    return sum(far) / len(far)


def labels_one_by_one(first, second):
    """Share of permutations of runs within pairs whose difference is as far from zero."""
    pairs = [(*one, *two) for one, two in zip(first, second, strict=True)]

    def difference(runs):
        parts = (
            (pair[: len(one)], pair[len(one) :]) for pair, one in zip(runs, first, strict=True)
        )
        return sum(sum(two) / len(two) - sum(one) / len(one) for one, two in parts)

    seen = abs(difference(pairs))
    far = [
        abs(difference(drawn)) >= seen - 1e-9
        for drawn in product(*(list(permutations(pair)) for pair in pairs))
    ]
    return sum(far) / len(far)
