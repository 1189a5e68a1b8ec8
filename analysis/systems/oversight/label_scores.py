"""Scores of labels against gold: accuracy, F1 per class, macro-F1 and the headline.

Everything is counted from confusion matrices, rows actual and columns predicted, with one more
column for the unjudged: an item without a label is wrong for every score and no false positive
of any class. A confusion array has shape (…, k, k + 1) for k classes, and every function here
takes any leading axes, so that one item set and ten thousand resamples are scored alike.
"""

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

__all__ = [
    "CLASS_COUNTS",
    "HEADLINE",
    "UNJUDGED",
    "Counts",
    "Scores",
    "accuracy",
    "always",
    "class_f1",
    "confusion_cells",
    "headline",
    "lenient_guidance",
    "macro_f1",
    "scores_of",
]

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Counts = npt.NDArray[np.float64] | npt.NDArray[np.int64]
"""Shape (…, k, k + 1)."""

CLASS_COUNTS: Final[Mapping[str, int]] = {"mistake": 2, "guidance": 3}
"""Label → number of its fixed classes, which are 0, 1, …"""
UNJUDGED: Final = -1
"""A prediction that is none."""
HEADLINE: Final = "mean of the macro-F1 of both labels"


class Scores(NamedTuple):
    """Scores of one label; `nan` where the data cannot give one."""

    n: int
    """Items with gold."""
    unjudged: int
    accuracy: float
    macro_f1: float
    f1: tuple[float, ...]
    """Per class; `nan` for a class that is neither actual nor predicted."""


def confusion_cells(actual: Ints, predicted: Ints, groups: Ints, *, classes: int) -> Ints:
    """Confusion matrices of groups of items.

    Args:
        actual: Shape (n,): the gold class of each item.
        predicted: Shape (n,): the predicted class, `UNJUDGED` for none.
        groups: Shape (n,): the group of each item, numbered from 0 without gaps.
        classes: Number of classes.

    Returns:
        Shape (groups, classes, classes + 1).
    """
    count = int(groups.max()) + 1 if len(groups) else 0
    column = np.where(predicted == UNJUDGED, classes, predicted)
    code = (groups * classes + actual) * (classes + 1) + column
    size = count * classes * (classes + 1)
    return np.bincount(code, minlength=size).reshape(count, classes, classes + 1).astype(np.int64)


def lenient_guidance(confusion: Counts) -> Counts:
    """Three classes of guidance as two: 0, and 1 or 2 together. Shape (…, 2, 3)."""
    rows = np.stack((confusion[..., 0, :], confusion[..., 1, :] + confusion[..., 2, :]), axis=-2)
    helped = rows[..., 1] + rows[..., 2]
    return np.stack((rows[..., 0], helped, rows[..., 3]), axis=-1)


def accuracy(confusion: Counts) -> Floats:
    """Share of items with the right label. Shape (…)."""
    right = np.trace(confusion, axis1=-2, axis2=-1)
    return _ratio(right, confusion.sum(axis=(-2, -1)))


def class_f1(confusion: Counts) -> Floats:
    """2TP / (2TP + FP + FN) of each class; `nan` if it is neither actual nor predicted.

    Returns:
        Shape (…, k).
    """
    hits = np.diagonal(confusion, axis1=-2, axis2=-1)
    actual = confusion.sum(axis=-1)
    predicted = confusion.sum(axis=-2)[..., :-1]
    return _ratio(2 * hits, actual + predicted)


def macro_f1(confusion: Counts) -> Floats:
    """Mean of the F1 of the classes that have one. Shape (…)."""
    f1 = class_f1(confusion)
    there = ~np.isnan(f1)
    return _ratio(np.where(there, f1, 0).sum(axis=-1), there.sum(axis=-1))


def headline(mistake: Counts, guidance: Counts) -> Floats:
    """Mean of the two macro-F1. Shape (…)."""
    return (macro_f1(mistake) + macro_f1(guidance)) / 2


def scores_of(confusion: Ints) -> Scores:
    """All scores of one confusion matrix of shape (k, k + 1)."""
    return Scores(
        n=int(confusion.sum()),
        unjudged=int(confusion[:, -1].sum()),
        accuracy=float(accuracy(confusion)),
        macro_f1=float(macro_f1(confusion)),
        f1=tuple(map(float, class_f1(confusion))),
    )


def always(value: int, actual: Sequence[int], *, classes: int) -> Scores:
    """Scores of the trivial baseline that gives every item one class."""
    gold = np.asarray(actual, dtype=np.int64)
    groups = np.zeros(len(gold), dtype=np.int64)
    cells = confusion_cells(gold, np.full(len(gold), value), groups, classes=classes)
    return scores_of(cells.sum(axis=0))


def _ratio(top: npt.ArrayLike, bottom: npt.ArrayLike) -> Floats:
    """Quotients, `nan` where the lower number is 0."""
    above, below = np.asarray(top, dtype=np.float64), np.asarray(bottom, dtype=np.float64)
    missing = np.full(np.broadcast_shapes(above.shape, below.shape), np.nan)
    quotients: Floats = np.divide(above, below, out=missing, where=below != 0)
    return quotients
