import math

import numpy as np
import pytest

from tutorsim.analysis.systems.oversight.label_scores import (
    UNJUDGED,
    accuracy,
    always,
    class_f1,
    confusion_cells,
    headline,
    lenient_guidance,
    macro_f1,
    scores_of,
)


def matrix(*rows):
    """Rows actual, columns predicted, nothing unjudged."""
    return np.array([[*row, 0] for row in rows])


def test_the_printed_confusion_matrix_gives_its_scores():
    # Table 3 of the oversight study; its text says accuracy .89 and F1 .83.
    scores = scores_of(matrix((382, 41, 8), (56, 298, 32), (12, 39, 346)))
    assert scores.n == 1214
    assert round(scores.accuracy, 4) == 0.8451
    assert [round(f1, 4) for f1 in scores.f1] == [0.8672, 0.7801, 0.8838]
    assert round(scores.macro_f1, 4) == 0.8437


# Published file → label, class given, counts per class, accuracy and macro-F1 to four digits.
TRIVIAL = [
    ("V2 mistake lenient", 1, (233, 1422), 0.8592, 0.4621),
    ("V2 guidance plain", 2, (304, 391, 960), 0.5801, 0.2447),
    ("V2 guidance revealed", 2, (536, 343, 776), 0.4689, 0.2128),
    ("V3 mistake strict", 1, (370 + 174, 1932), 0.7803, 0.4383),
    ("V3 guidance plain", 2, (566, 503, 1407), 0.5683, 0.2416),
]


@pytest.mark.parametrize(("name", "value", "counts", "right", "macro"), TRIVIAL)
def test_trivial_baselines_have_their_four_digits(name, value, counts, right, macro):
    actual = [cls for cls, count in enumerate(counts) for _ in range(count)]
    scores = always(value, actual, classes=len(counts))
    assert (round(scores.accuracy, 4), round(scores.macro_f1, 4)) == (right, macro)


def test_an_unjudged_item_is_wrong_and_no_false_positive():
    # Actual 0, 0, 1; predicted 0, none, 1. F1 of 0: 2·1/(2 + 1 missed) = 2/3; of 1: 1.
    cells = confusion_cells(
        np.array([0, 0, 1]), np.array([0, UNJUDGED, 1]), np.zeros(3, dtype=int), classes=2
    )
    scores = scores_of(cells[0])
    assert scores.unjudged == 1
    assert scores.accuracy == pytest.approx(2 / 3)
    assert scores.f1 == pytest.approx((2 / 3, 1.0))


def test_a_class_neither_actual_nor_predicted_is_left_out_of_the_mean():
    scores = scores_of(matrix((2, 0, 0), (1, 1, 0), (0, 0, 0)))
    assert math.isnan(scores.f1[2])
    # F1 of 0: 4/5; of 1: 2/3.
    assert scores.macro_f1 == pytest.approx((4 / 5 + 2 / 3) / 2)


def test_no_items_have_no_scores():
    scores = scores_of(matrix((0, 0), (0, 0)))
    assert math.isnan(scores.accuracy)
    assert math.isnan(scores.macro_f1)
    assert math.isnan(float(headline(matrix((0, 0), (0, 0)), matrix((0,) * 3, (0,) * 3, (0,) * 3))))


def test_lenient_guidance_takes_partial_and_effective_together():
    whole = np.array([[5, 1, 2, 3], [4, 6, 7, 0], [1, 2, 3, 4]])
    assert lenient_guidance(whole).tolist() == [[5, 3, 3], [5, 18, 4]]


def test_many_matrices_are_scored_like_one():
    rng = np.random.default_rng(1)
    many = rng.integers(0, 9, (4, 3, 4))
    for score in (accuracy, macro_f1, class_f1):
        each = [score(one) for one in many]
        assert np.allclose(score(many), each, equal_nan=True)


def test_scores_are_those_of_the_definition_item_by_item():
    rng = np.random.default_rng(2)
    actual, predicted = rng.integers(0, 3, 200), rng.integers(-1, 3, 200)
    cells = confusion_cells(actual, predicted, np.zeros(200, dtype=int), classes=3)
    for cls in range(3):
        tp = int(((actual == cls) & (predicted == cls)).sum())
        fp = int(((actual != cls) & (predicted == cls)).sum())
        fn = int(((actual == cls) & (predicted != cls)).sum())
        assert class_f1(cells[0])[cls] == pytest.approx(2 * tp / (2 * tp + fp + fn))
    assert accuracy(cells[0]) == pytest.approx((actual == predicted).mean())
