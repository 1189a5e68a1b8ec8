"""The model judge beside people."""

import numpy as np
import pytest
from scipy import stats

from tests.analysis.ratings.test_rater_agreement import gathered
from tutorsim.analysis.ratings.item_scores_and_agreement_of_raters_and_judge import (
    _ranks,
    _weighted_correlation,
    beside_judge,
)
from tutorsim.analysis.ratings.rubrics_rating_sheets_and_filled_sheets import reply_rubric
from tutorsim.analysis.statistics.intervals_and_tests import Interval, NotEstimable
from tutorsim.records.ratings import Rubric

JUDGES = Rubric(name="judge", question="?", scale=(0.0, 0.5, 1.0), threshold=0.75, of_judge=True)
JUDGED = [0.0, 0.1, 0.2, 0.5, 0.7, 0.75, 0.9, 1.0]
PEOPLE = [(0, 0), (0, 0.5), (0.5, 0.5), (0.5, 0.5), (0.5, 1), (1, 1), (0.5, 0.5), (1, 1)]
MEANS = [0, 0.25, 0.5, 0.5, 0.75, 1, 0.5, 1]


def test_bias_and_correlation_are_those_counted_by_hand_and_by_scipy():
    """Differences 0, −0.15, −0.3, 0, −0.05, −0.25, 0.4, 0: their sum is −0.35 over 8 items."""
    found = beside_judge(gathered(PEOPLE, rubric=JUDGES, kind="answers", judged=JUDGED))
    assert found["items"] == 8
    assert found["bias"].value == pytest.approx(-0.35 / 8)
    assert found["distance"].value == pytest.approx(1.15 / 8)
    assert found["pearson"].value == pytest.approx(stats.pearsonr(JUDGED, MEANS)[0])
    assert found["spearman"].value == pytest.approx(stats.spearmanr(JUDGED, MEANS)[0])
    assert isinstance(found["bias"].interval, Interval)
    assert found["pearson"].interval.low < found["pearson"].value < found["pearson"].interval.high


def test_bands_hold_every_item_once_with_the_last_one_closed():
    found = beside_judge(gathered(PEOPLE, rubric=JUDGES, kind="answers", judged=JUDGED))
    values = [(b["low"], b["high"], b["items"]) for b in found["bands"]]
    assert values == [(0.0, 0.2, 2), (0.2, 0.4, 1), (0.4, 0.6, 1), (0.6, 0.8, 2), (0.8, 1.0, 2)]
    assert found["bands"][0]["judge"] == pytest.approx(0.05)
    assert found["bands"][0]["people"] == pytest.approx(0.125)


def test_there_is_no_bias_against_another_text_or_another_scale():
    of_replies = beside_judge(gathered(PEOPLE, rubric=JUDGES, judged=JUDGED, itself=False))
    assert "not the reply" in of_replies["bias"].reason
    assert of_replies["bands"] == []
    assert of_replies["spearman"].value > 0
    own = JUDGES.model_copy(update={"of_judge": False})
    other = beside_judge(gathered(PEOPLE, rubric=own, kind="answers", judged=JUDGED))
    assert other["bias"] == NotEstimable("people rated on another scale than the judge")
    assert other["bands"] == []


def test_labels_of_replies_are_held_against_people_on_their_own_scale():
    people = [(0,), (1,), (2,), (2,), (1,), (0,)]
    rubric = reply_rubric(labelled=True)
    found = beside_judge(gathered(people, rubric=rubric, judged=[0, 1, 2, 2, 2, 1]))
    assert found["bias"].value == pytest.approx(2 / 6)
    names = ("low", "high", "items", "people")
    assert [tuple(band[name] for name in names) for band in found["bands"]] == [
        (0, 0.4, 1, 0),
        (0.8, pytest.approx(1.2), 2, 0.5),
        (1.6, 2, 3, pytest.approx(5 / 3)),
    ]


def test_unjudged_items_are_left_out_and_nothing_judged_is_nothing():
    some = [None, *JUDGED[1:]]
    assert beside_judge(gathered(PEOPLE, rubric=JUDGES, judged=some))["items"] == 7
    assert beside_judge(gathered(PEOPLE, rubric=JUDGES)) is None


def test_scores_that_do_not_vary_have_no_correlation():
    found = beside_judge(gathered(PEOPLE, rubric=JUDGES, kind="answers", judged=[0.5] * 8))
    assert found["pearson"] == NotEstimable("all scores of one side are the same")


def test_weights_count_an_observation_as_often_as_it_was_drawn():
    first, second = np.array([1.0, 2.0, 2.0, 5.0]), np.array([3.0, 1.0, 4.0, 4.0])
    weights = np.array([[2, 1, 1, 0], [1, 0, 1, 2], [0, 3, 0, 1]], dtype=float)
    ranks = [_ranks(one, weights) for one in (first, second)]
    plain = _weighted_correlation(first, second, weights)
    ranked = _weighted_correlation(*ranks, weights)
    for times, pearson, spearman in zip(weights.astype(int), plain, ranked, strict=True):
        drawn = [np.repeat(one, times) for one in (first, second)]
        assert pearson == pytest.approx(stats.pearsonr(*drawn)[0])
        assert spearman == pytest.approx(stats.spearmanr(*drawn)[0])
