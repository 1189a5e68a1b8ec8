"""Krippendorff's alpha: as the package `krippendorff` has it, by hand, and in resamples."""

import krippendorff
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tutorsim.analysis.ratings.item_scores_and_agreement_of_raters_and_judge import (
    METRICS,
    Gathered,
    _weighted_alpha,
    agreement,
)
from tutorsim.analysis.ratings.texts_to_rate_as_raters_see import Block, Item, Place
from tutorsim.analysis.statistics.intervals_and_tests import NotEstimable
from tutorsim.records.ratings import Rubric

RUBRIC = Rubric(name="own", question="?", scale=(1.0, 2.0, 3.0, 4.0, 5.0))


def gathered(table, *, tasks=None, rubric=RUBRIC, kind="replies", judged=None, itself=True):
    """Ratings of items: one row of values per item, `None` where a rater gave none."""
    items, scores = {}, {}
    for number, row in enumerate(table):
        name = f"item-{number:02d}"
        task = f"task-{number}" if tasks is None else tasks[number]
        score = None if judged is None else judged[number]
        place = Place(f"e{number}", 1, "a", "simple", task, judged=score)
        items[name] = Item(name, (Block("Task", name),), (place,))
        given_ = {("s", r): v for r, v in enumerate(row, start=1) if v is not None}
        if given_:
            scores[name] = given_
    return Gathered(kind, rubric, "people", items, scores, itself)


def test_alpha_is_that_of_the_textbook_with_missing_ratings():
    """The four coders and twelve units of Krippendorff's own example: 0.815 and 0.849."""
    coders = [
        [1, 2, 3, 3, 2, 1, 4, 1, 2, None, None, None],
        [1, 2, 3, 3, 2, 2, 4, 1, 2, 5, None, 3],
        [None, 3, 3, 3, 2, 3, 4, 2, 2, 5, 1, None],
        [1, 2, 3, 3, 2, 4, 4, 1, 2, 5, 1, None],
    ]
    found = agreement(gathered(list(zip(*coders, strict=True))))
    assert found["ordinal"].value == pytest.approx(0.815, abs=5e-4)
    assert found["interval"].value == pytest.approx(0.849, abs=5e-4)
    assert (found["raters"], found["items"], found["shared"]) == (4, 12, 11)


def test_alpha_is_not_estimable_without_shared_items_or_variation():
    alone = agreement(gathered([(1, None), (None, 2)]))
    assert alone["ordinal"] == NotEstimable("no item has two ratings")
    same = agreement(gathered([(2, 2), (2, 2)]))
    assert same["interval"] == NotEstimable("every rating is the same")


@given(
    st.lists(
        st.lists(st.sampled_from([1.0, 2.0, 3.0, 5.0]), min_size=2, max_size=4),
        min_size=2,
        max_size=9,
    ),
    st.integers(0, 2**32 - 1),
)
def test_the_figure_and_each_resample_have_the_alpha_that_the_package_gives(rows, seed):
    domain = np.array([1.0, 2.0, 3.0, 5.0])
    counts = np.array([[row.count(value) for value in domain] for row in rows])
    weights = np.random.default_rng(seed).multinomial(
        len(rows), [1 / len(rows)] * len(rows), size=5
    )
    weights = np.vstack([np.ones_like(weights[:1]), weights])  # the figure is the first
    for metric in METRICS:
        found = _weighted_alpha(counts, domain, metric)(weights.astype(float))
        for times, alpha in zip(weights, found, strict=True):
            drawn = np.repeat(counts, times, axis=0)
            if (drawn.sum(axis=0) > 0).sum() < 2:
                assert np.isnan(alpha)
                continue
            wanted = krippendorff.alpha(
                value_counts=drawn, value_domain=domain, level_of_measurement=metric
            )
            assert alpha == pytest.approx(wanted)


def test_intervals_are_over_tasks_and_over_items_apart():
    rows = [(1, 1), (2, 3), (3, 3), (4, 5), (5, 5), (1, 2), (2, 2), (4, 4)]
    few = agreement(gathered(rows, tasks=list("aaabbbcc")))["ordinal"]
    assert isinstance(few.over_tasks, NotEstimable)
    assert few.over_items.low < few.value <= few.over_items.high <= 1
    many = agreement(gathered(rows))["ordinal"]
    ends = [(one.low, one.high) for one in (many.over_tasks, many.over_items)]
    assert ends[0] == ends[1]
