import random

import pytest

from tutorsim.analysis.statistics.intervals_and_tests import Estimate, PermutationTest
from tutorsim.analysis.systems.oversight.scores_by_group import (
    METRICS,
    Judged,
    baselines,
    differences,
    evaluate,
)


def items(n, *, replies=8, right=0.7, seed=0, copies=1):
    """Items of n dialogues, each dialogue `copies` times, so that copies are of one cluster."""
    rng = random.Random(seed)
    made = []
    for dialogue in range(n):
        for reply in range(replies):
            gold = (rng.randrange(2), rng.randrange(3))
            said = tuple(g if rng.random() < right else 0 for g in gold)
            made += [
                Judged(f"{dialogue}-{copy}-{reply}", f"d{dialogue}", gold, said)
                for copy in range(copies)
            ]
    return made


def width(estimate):
    assert isinstance(estimate, Estimate)
    return estimate.high - estimate.low


def test_intervals_resample_dialogues_and_not_rows_or_replies():
    # As in V2: 200 rows of 195 conversations, where five conversations have two rows.
    made = items(195, replies=8) + [
        Judged(f"again-{i}", f"d{i % 5}", (1, 2), (1, 2)) for i in range(45)
    ]
    found = evaluate({"all": made}, seed=1)["all"]
    assert (found.items, found.dialogues) == (1605, 195)
    for estimate in found.metrics.values():
        assert estimate.interval.method == "percentile bootstrap over 195 dialogues, 10,000 draws"


@pytest.mark.costly
def test_copies_of_a_dialogue_leave_the_interval_as_wide_as_it_is():
    once = evaluate({"all": items(40)}, seed=1)["all"].metrics
    nine = evaluate({"all": items(40, copies=9)}, seed=1)["all"].metrics
    for name in METRICS:
        assert nine[name].value == pytest.approx(once[name].value)
        assert width(nine[name]) == pytest.approx(width(once[name]))
    narrow = evaluate({"all": items(40, copies=9)}, seed=1, over="items")["all"].metrics
    # Nine copies as nine clusters each: a third of the width.
    assert width(narrow["headline"]) == pytest.approx(width(once["headline"]) / 3, rel=0.2)
    assert "too narrow" in narrow["headline"].interval.method


def test_the_order_of_the_items_changes_no_digit():
    made = items(12)
    shuffled = random.Random(1).sample(made, len(made))
    one, other = (evaluate({"all": m}, seed=1)["all"].metrics for m in (made, shuffled))
    assert one == other


def test_groups_of_other_dialogues_are_scored_as_if_alone():
    groups = {"a": items(10), "b": items(7, seed=3), "none": []}
    together = evaluate(groups, seed=1)
    assert together.keys() == {"a", "b"}
    for name in together:
        assert together[name].metrics == evaluate({name: groups[name]}, seed=1)[name].metrics


def test_unjudged_items_are_wrong_and_counted():
    made = [Judged("a", "d", (1, 2), (None, None)), Judged("b", "e", (1, 2), (1, 2))]
    found = evaluate({"all": made}, seed=1)["all"]
    assert found.labels["mistake"].unjudged == 1
    assert found.labels["guidance"].accuracy == 0.5


def test_trivial_baselines_are_of_the_same_gold():
    made = [Judged(str(i), str(i), (int(i > 0), 2 if i > 1 else 0), (1, 0)) for i in range(4)]
    found = baselines(made)
    assert found["always yes"].accuracy == 0.75
    assert found["always effective"].accuracy == 0.5


def test_differences_are_paired_on_items_and_corrected():
    good, bad = items(20, right=1.0), items(20, right=0.2)
    rows = differences({"good": good, "bad": bad, "same": good}, seed=1)
    by_pair = {(row.first, row.second): row for row in rows}
    assert isinstance(by_pair["good", "bad"].test, PermutationTest)
    assert by_pair["good", "bad"].test.difference > 0.3
    assert by_pair["good", "same"].test.difference == 0
    assert by_pair["good", "bad"].p_holm >= by_pair["good", "bad"].test.p_value
    against = differences({"good": good, "bad": bad, "same": good}, seed=1, against="bad")
    assert {(row.first, row.second) for row in against} == {("good", "bad"), ("same", "bad")}
    [none] = differences({"a": good, "b": items(2, seed=9)[:0]}, seed=1)
    assert (none.items, none.p_holm) == (0, None)
