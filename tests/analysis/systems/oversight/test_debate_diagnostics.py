import pytest

from tests.analysis.systems.oversight.conftest import debated
from tutorsim.analysis.systems.oversight.effect_of_debate import (
    brier,
    calibration,
    debate_shares,
    phases,
    severity_errors,
    sycophancy,
)
from tutorsim.records import CallRecord


def test_brier_and_calibration_are_of_both_labels():
    right = debated(*((1, 2),) * 5, sure=(80, 0.9), name="a")
    wrong = debated(*((1, 1),) * 5, sure=(80, 0.6), name="b")
    unjudged = debated(*((1, 2),) * 4, None, name="c")
    records = [right, wrong, unjudged]
    assert brier(records) == pytest.approx((0.1**2 + 0.6**2) / 2)
    bins = calibration(records)
    assert [(b.low, b.items, b.stated, b.right) for b in bins] == [
        (0.6, 1, 0.6, 0.0),
        (0.8, 1, 0.9, 1.0),
    ]
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
    assert sycophancy(records)[1:] == (1, 3)
    assert sycophancy([]).share is None


def test_shares_of_a_played_debate_are_of_its_items(played):
    records = [r for r in played.episodes if r.condition == "hpo"]
    found = {share.name: share for share in debate_shares(records)}
    pressed = sum("permissive" in r.press.presses for r in records)
    assert found["permissive: defence unmet, and pressed"].hits == pressed
    wins = [
        share for name, share in found.items() if name.endswith(" wins") and "shown" not in name
    ]
    assert sum(share.hits for share in wins) == wins[0].of
    assert debate_shares([]) == []


def test_severity_stands_beside_errors():
    wrong = debated(*((1, 1),) * 5)
    right = debated(*((1, 2),) * 5)
    [share] = severity_errors([wrong, right, right])
    assert (share.name, share.hits, share.of) == ("severity 1: a label is wrong", 1, 3)


def test_calls_are_counted_by_phase():
    stages = ("brief", "quick", "open", "cross", "judge", "stress", "lead", "lead", "sample")
    calls = tuple(
        CallRecord(
            key=f"0/{s}/x/1", stage=s, model="m", stop_reason=None, input_tokens=2, output_tokens=1
        )
        for s in stages
    )
    record = debated(*((1, 2),) * 5).model_copy(update={"calls": calls})
    assert [tuple(phase) for phase in phases([record])] == [
        ("briefing", 1, 2, 1),
        ("quick", 1, 2, 1),
        ("debate", 2, 4, 2),
        ("judgment", 4, 8, 4),
        ("alone", 1, 2, 1),
    ]
