import math

import pytest

from tests.analysis.systems.oversight.conftest import debated, make_run
from tutorsim.analysis.systems.oversight.debate_effect_calibration_aggregation_skip_curve import (
    RULES,
    adaptive_curve,
    aggregated,
    brier,
    calibration,
    debate_shares,
    phases,
)
from tutorsim.analysis.systems.oversight.label_accuracy import Judged, evaluate, pair_of
from tutorsim.records import CallRecord


def test_brier_and_calibration_are_of_both_labels():
    right = debated(*((1, 2),) * 5, sure=(80, 0.9), name="a")
    wrong = debated(*((1, 1),) * 5, sure=(80, 0.6), name="b")
    unjudged = debated(*((1, 2),) * 4, None, name="c")
    records = [right, wrong, unjudged]
    assert brier(records) == pytest.approx((0.1**2 + 0.6**2) / 2)
    bins = calibration(records)
    values = [(b.low, b.items, b.stated, b.right) for b in bins]
    assert values == [(0.6, 1, 0.6, 0.0), (0.8, 1, 0.9, 1.0)]
    assert brier([]) is None
    assert calibration([unjudged]) == []


def test_full_confidence_is_in_the_last_bin():
    [bin_] = calibration([debated(*((1, 2),) * 5, sure=(80, 1.0))])
    assert (bin_.low, bin_.high) == (0.8, 1.0)


def test_sycophancy_is_a_seen_mistake_that_was_not_identified():
    records = [
        debated(*((1, 0),) * 5, gold=(0, 0)),
        debated(*((0, 0),) * 5, gold=(0, 0)),
        debated(*((1, 2),) * 5, gold=(1, 2)),
        debated(*((1, 2),) * 4, None, gold=(0, 2)),
    ]
    hits = debate_shares(records)["label sees a mistake identified that was not"]
    assert sorted(hits) == [False, False, True]


def test_shares_of_a_played_debate_are_of_its_items(played):
    records = [r for r in played.episodes if r.condition == "hpo"]
    found = debate_shares(records)
    pressed = sum("permissive" in r.press.presses for r in records)
    assert sum(found["permissive: defence unmet, and pressed"]) == pressed
    wins = [hits for name, hits in found.items() if name.endswith(" wins") and "shown" not in name]
    assert sum(map(sum, wins)) == len(wins[0])
    assert debate_shares([]) == {}


def test_severity_stands_beside_errors():
    wrong = debated(*((1, 1),) * 5)
    right = debated(*((1, 2),) * 5)
    hits = debate_shares([wrong, right, right])["severity 1: a label is wrong"]
    assert sorted(hits) == [False, False, True]


def test_calls_are_counted_by_phase():
    stages = ("brief", "quick", "open", "cross", "judge", "stress", "lead", "lead", "sample")
    calls = tuple(
        CallRecord(
            key=f"0/{s}/x/1", stage=s, model="m", stop_reason=None, input_tokens=2, output_tokens=1
        )
        for s in stages
    )
    record = debated(*((1, 2),) * 5).model_copy(update={"calls": calls})
    assert [(phase, *spent) for phase, spent in phases([record]).items()] == [
        ("briefing", 1, 2, 1),
        ("quick", 1, 2, 1),
        ("debate", 2, 4, 2),
        ("judgment", 4, 8, 4),
        ("alone", 1, 2, 1),
    ]


# What permissive, strict, judge, stress and lead say | the labels under each of RULES, in its
# order: lead, judge, majority of five, majority of three, critics agree, confidence weighted, most
# cautious. Labels are mistake and guidance; `--` is unread. Counted by hand.
TABLE = """
12 12 12 12 12 | 12 12 12 12 12 12 12

# Guidance 2 0 1 1 2: tie of 1 and 2 in five, 1 in three (1 1 2), cautious 0.
# Weights: 2: .5 + .8; 1: .8 + .5; equal, so the lead's. Mistake 0: .5.
12 00 11 11 12 | 12 11 12 11 12 12 00

# Guidance 2 0 0 1 2: 2 and 0 tie in five; three all differ: tie; weights 2 1.3, 0 1.3.
# Weights of mistake 1: .5 + .8 = 1.3; 0: .5 + .8 + .5 = 1.8.
12 00 00 01 12 | 12 00 02 02 12 02 00

# The critics agree against the rest.
01 01 12 12 12 | 12 12 12 12 01 12 01

# The lead is unread: 2 0 2 2 decides where it has no say.
12 00 12 12 -- | -- 12 12 12 -- 12 00

# Nobody is read.
-- -- -- -- -- | -- -- -- -- -- -- --

# The judge is unread, critics differ: 2 0 . 1 1.
# Weights of guidance 1: .5 + .8; mistake 0: .5 + .5 + .8 against .5.
12 00 -- 01 01 | 01 -- 01 01 01 01 00

# The lead alone says 1, others 0 2 0 2: a tie goes to the lead, which said neither.
# Weights of 0: .5 + .8; 2: .5 + .5; 1: .8.
10 12 10 12 11 | 11 10 11 11 11 10 10

# All but strict say 0.
00 11 00 00 00 | 00 00 00 00 00 00 00

# A critic is unread: the other cannot agree with it.
# Weights of guidance 2: .5 + .8; 1: .8 + .5: tie; mistake alike.
-- 12 01 01 12 | 12 01 12 01 12 12 01

# Three to two. Weights of 1: .5 + .5 + .8 = 1.8; 2: .8 + .5 = 1.3.
11 11 02 02 11 | 11 02 11 02 11 11 01

# Two to two with one apart. Weights of guidance 0: 1.0; 2: 1.3; 1: .8; mistake 0: 1.8; 1: 1.3.
00 00 12 12 01 | 01 12 01 12 00 02 00
"""


def read_labels(cells):
    return [None if cell == "--" else (int(cell[0]), int(cell[1])) for cell in cells.split()]


HAND = [[*map(read_labels, line.split("|"))] for line in TABLE.splitlines() if "|" in line]


@pytest.mark.parametrize(("said", "expected"), HAND)
def test_every_rule_gives_what_a_hand_count_gives(said, expected):
    found = aggregated(debated(*said))
    assert found.keys() == set(RULES)
    labels = [(found[rule].mistake, found[rule].guidance) for rule in RULES]
    assert labels == [one or (None, None) for one in expected]


def test_ties_are_counted_by_label():
    said, _ = HAND[2]
    found = {rule: one.ties for rule, one in aggregated(debated(*said)).items()}
    assert found["majority_of_five"] == 1
    assert found["confidence_weighted"] == 1
    assert found["lead"] == found["judge"] == found["most_cautious"] == 0


def test_stated_confidence_weighs():
    said = ((1, 0), (1, 0), (1, 2), (1, 2), (1, 1))
    assert aggregated(debated(*said, sure=(100, 1.0)))["confidence_weighted"].guidance == 2
    assert aggregated(debated(*said, sure=(10, 0.1)))["confidence_weighted"].guidance == 0


def test_without_a_debate_there_is_nothing_to_put_together():
    [record, *_] = make_run(["single"]).episodes
    assert aggregated(record) is None


@pytest.fixture
def adaptive():
    """Three items: the debate is right in all; quick labels of confidence .9 and .5 are wrong."""
    same = ((1, 2),) * 5
    calls = tuple(
        CallRecord(
            key=key, stage=stage, model="m", stop_reason=None, input_tokens=10, output_tokens=1
        )
        for key, stage in (("0/quick/lead/1", "quick"), ("6/lead/lead/1", "lead"))
    )
    quick = [((0, 0), 0.9), ((1, 2), 0.7), ((0, 0), 0.5)]
    made = [debated(*same, quick=q, name=str(i)) for i, q in enumerate(quick)]
    return [record.model_copy(update={"calls": calls}) for record in made]


def test_the_adaptive_curve_goes_from_full_debate_to_quick_labels(adaptive):
    curve = adaptive_curve(adaptive).points
    assert [point.threshold for point in curve] == [1.0, 0.7, 0.5, -1.0]
    assert [point.skipped for point in curve] == [0, 1, 2, 3]
    assert [point.calls_saved for point in curve] == [0, 1, 2, 3]
    assert [point.tokens_saved for point in curve] == [0, 11, 22, 33]
    # All right: both F1 are 1. One of three wrong: F1 of the actual class 4/5, of the other 0.
    assert curve[0].headline == 1
    assert curve[1].headline == pytest.approx(0.4)
    assert curve[2].headline == curve[1].headline


@pytest.mark.costly
def test_each_point_is_what_skipping_at_its_threshold_would_have_given(played):
    records = [r for r in played.episodes if r.condition == "hpo"]
    for point in adaptive_curve(records).points:
        skipped = [
            r
            for r in records
            if r.quick.confidence is not None and r.quick.confidence > point.threshold
        ]
        labels = [r.quick.labels if r in skipped else r.label for r in records]
        items = [
            Judged(r.task_id, r.conversation, (r.gold.mistake, r.gold.guidance), pair_of(label))
            for r, label in zip(records, labels, strict=True)
        ]
        found = evaluate({"all": items})["all"].metrics["headline"]
        assert point.skipped == len(skipped)
        assert point.headline == pytest.approx(found.value)


def test_the_curve_of_a_played_run_ends_at_its_quick_labels(played):
    records = [r for r in played.episodes if r.condition == "hpo"]
    curve = adaptive_curve(records).points
    sure = [r for r in records if r.quick.confidence is not None]
    assert (curve[0].skipped, curve[-1].skipped) == (0, len(sure))
    assert not math.isnan(curve[-1].headline)
