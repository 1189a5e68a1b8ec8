import random

import numpy as np
import pytest

from tutorsim.analysis.statistics.intervals_and_tests import Estimate, NotEstimable, PermutationTest
from tutorsim.analysis.systems.oversight.label_accuracy import (
    METRICS,
    Judged,
    baselines,
    differences,
    evaluate,
    headline,
    headline_of,
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


def one_each(*pairs):
    """Items of as many dialogues, from the actual and the given guidance."""
    return [Judged(str(i), f"d{i}", (1, a), (1, g)) for i, (a, g) in enumerate(pairs)]


def labelled(*rows):
    """Items of a confusion matrix of guidance: rows actual, columns predicted, unjudged last."""
    given = [*range(len(rows)), None][: len(rows[0])]
    counts = [(a, g, n) for a, row in enumerate(rows) for g, n in zip(given, row, strict=True)]
    return one_each(*[(a, g) for a, g, n in counts for _ in range(n)])


def guidance(made):
    """Items, and accuracy and macro-F1 of guidance."""
    found = evaluate({"all": made}, metrics=["guidance_accuracy", "guidance_macro_f1"])["all"]
    return found.items, *(one.value for one in found.metrics.values())


def f1_by_class(made, label=1, classes=3):
    """By the definition, item by item: 2TP / (2TP + FP + FN)."""
    pairs, found = [(one.gold[label], one.predicted[label]) for one in made], []
    for c in range(classes):
        hits = pairs.count((c, c))
        of = sum(actual == c for actual, _ in pairs) + sum(given == c for _, given in pairs)
        if of:
            found.append(2 * hits / of)
    return found


def width(estimate):
    assert isinstance(estimate, Estimate)
    return estimate.high - estimate.low


def test_the_printed_confusion_matrix_gives_its_scores():
    # Table 3 of the oversight study; its text says accuracy .89 and F1 .83.
    made = labelled((382, 41, 8), (56, 298, 32), (12, 39, 346))
    assert [round(f1, 4) for f1 in f1_by_class(made)] == [0.8672, 0.7801, 0.8838]
    n, accuracy, macro_f1 = guidance(made)
    assert n == 1214
    assert round(accuracy, 4) == 0.8451
    assert round(macro_f1, 4) == 0.8437


# Published file → label, class given, counts per class, accuracy and macro-F1 to four digits.
TRIVIAL = [
    ("V2 mistake lenient", 0, (233, 1422), 0.8592, 0.4621),
    ("V2 guidance plain", 1, (304, 391, 960), 0.5801, 0.2447),
    ("V2 guidance revealed", 1, (536, 343, 776), 0.4689, 0.2128),
    ("V3 mistake strict", 0, (370 + 174, 1932), 0.7803, 0.4383),
    ("V3 guidance plain", 1, (566, 503, 1407), 0.5683, 0.2416),
]


@pytest.mark.parametrize(("name", "label", "counts", "right", "macro"), TRIVIAL)
def test_trivial_baselines_have_their_four_digits(name, label, counts, right, macro):
    actual = [cls for cls, count in enumerate(counts) for _ in range(count)]
    golds = [(0, c) if label else (c, 0) for c in actual]
    made = [Judged(str(i), str(i), gold, (None, None)) for i, gold in enumerate(golds)]
    scores = baselines(made)["always effective" if label else "always yes"]
    assert [round(one.value, 4) for one in scores.metrics.values()] == [right, macro]


def test_an_unjudged_item_is_wrong_and_no_false_positive():
    # Actual 0, 0, 1; predicted 0, none, 1. F1 of 0: 2·1/(2 + 1 missed) = 2/3; of 1: 1.
    n, accuracy, macro_f1 = guidance(one_each((0, 0), (0, None), (1, 1)))
    assert n == 3
    assert accuracy == pytest.approx(2 / 3)
    assert macro_f1 == pytest.approx((2 / 3 + 1) / 2)


def test_a_class_neither_actual_nor_predicted_is_left_out_of_the_mean():
    # F1 of 0: 4/5; of 1: 2/3.
    *_, macro_f1 = guidance(labelled((2, 0, 0), (1, 1, 0), (0, 0, 0)))
    assert macro_f1 == pytest.approx((4 / 5 + 2 / 3) / 2)


def test_no_items_have_no_scores():
    assert evaluate({"none": []}) == {}
    assert headline_of([]) is None
    assert np.isnan(headline(np.zeros(18, dtype=np.int64)))


def test_lenient_guidance_takes_partial_and_effective_together():
    # As two classes: 5 3 and 5 18, with 3 and 4 unjudged.
    made = labelled((5, 1, 2, 3), (4, 6, 7, 0), (1, 2, 3, 4))
    found = evaluate({"all": made})["all"].metrics
    assert found["guidance_lenient_accuracy"].value == pytest.approx(23 / 38)
    both = 2 * 5 / (11 + 10), 2 * 18 / (27 + 21)
    assert found["guidance_lenient_macro_f1"].value == pytest.approx(sum(both) / 2)


def test_many_counts_are_scored_like_one():
    many = np.random.default_rng(1).integers(0, 9, (4, 18))
    for score in METRICS.values():
        assert np.allclose(score(many), [score(one) for one in many], equal_nan=True)


def test_scores_are_those_of_the_definition_item_by_item():
    rng = random.Random(2)

    def labels():
        return rng.randrange(2), rng.randrange(3)

    made = [
        Judged(str(i), f"d{i % 9}", labels(), (None, None) if rng.random() < 0.1 else labels())
        for i in range(200)
    ]
    found = evaluate({"all": made})["all"].metrics
    means = []
    for place, (label, classes) in enumerate((("mistake", 2), ("guidance", 3))):
        means.append(np.mean(f1_by_class(made, place, classes)))
        right = np.mean([one.gold[place] == one.predicted[place] for one in made])
        assert found[f"{label}_accuracy"].value == pytest.approx(right)
        assert found[f"{label}_macro_f1"].value == pytest.approx(means[-1])
    assert found["headline"].value == pytest.approx(np.mean(means))


def test_the_spread_is_that_of_a_mean_over_dialogues():
    made = one_each(*[(0, int(i % 3 == 0)) for i in range(60)])
    found = evaluate({"all": made})["all"].metrics["guidance_accuracy"]
    assert width(found) == pytest.approx(2 * 1.96 * (2 / 9) ** 0.5 / 60**0.5, rel=0.06)


def test_few_dialogues_have_no_interval():
    found = evaluate({"all": items(3)})["all"].metrics["headline"]
    assert isinstance(found.interval, NotEstimable)


def test_intervals_are_over_dialogues_and_not_rows_or_replies():
    # As in V2: 200 rows of 195 conversations, where five conversations have two rows.
    made = items(195, replies=8) + [
        Judged(f"again-{i}", f"d{i % 5}", (1, 2), (1, 2)) for i in range(45)
    ]
    found = evaluate({"all": made})["all"]
    assert (found.items, found.dialogues) == (1605, 195)
    for name, estimate in found.metrics.items():
        kind = "Wilson score" if name.endswith("accuracy") else "Student's t"
        assert estimate.interval.method == f"{kind} over 195 dialogues"


@pytest.mark.costly
def test_copies_of_a_dialogue_leave_the_interval_as_wide_as_it_is():
    once = evaluate({"all": items(40)})["all"].metrics
    nine = evaluate({"all": items(40, copies=9)})["all"].metrics
    for name in METRICS:
        assert nine[name].value == pytest.approx(once[name].value)
        assert width(nine[name]) == pytest.approx(width(once[name]))
    single, narrow = (
        evaluate({"all": items(40, copies=copies)}, over="items")["all"].metrics
        for copies in (1, 9)
    )
    # Nine copies as nine clusters each: a third of the width.
    assert width(narrow["headline"]) == pytest.approx(width(single["headline"]) / 3, rel=0.02)
    assert "too narrow" in narrow["headline"].interval.method


def test_the_order_of_the_items_changes_no_digit():
    made = items(12)
    shuffled = random.Random(1).sample(made, len(made))
    one, other = (evaluate({"all": m})["all"].metrics for m in (made, shuffled))
    assert one == other


def test_groups_of_other_dialogues_are_scored_as_if_alone():
    groups = {"a": items(10), "b": items(7, seed=3), "none": []}
    together = evaluate(groups)
    assert together.keys() == {"a", "b"}
    for name in together:
        assert together[name].metrics == evaluate({name: groups[name]})[name].metrics


def test_differences_are_paired_on_items_and_corrected():
    good, bad = items(20, right=1.0), items(20, right=0.2)
    rows = differences({"good": good, "bad": bad, "same": good}, seed=1)
    by_pair = {(row.second, row.first): row for row in rows}
    assert by_pair["good", "bad"].test.difference > 0.3
    assert by_pair["good", "same"].test.difference == 0
    assert by_pair["good", "bad"].p_holm >= by_pair["good", "bad"].test.p_value
    against = differences({"good": good, "bad": bad, "same": good}, seed=1, reference="bad")
    assert {(row.second, row.first) for row in against} == {("good", "bad"), ("same", "bad")}
    [none] = differences({"a": good, "b": items(2, seed=9)[:0]}, seed=1)
    assert (none.pairs, none.p_holm) == (0, None)
    assert isinstance(none.difference, NotEstimable)


def test_the_interval_of_a_difference_is_over_dialogues():
    # Macro-F1 of guidance, 1 − 1/3, halved; without a wrong one (1 − 2/5) / 2, without a right one
    # (1 − 1/4) / 2: off by 1/30 and 1/24, twice each. Times 3/4; t of 3 is 3.182.
    first, second = one_each(*[(1, 1)] * 4), one_each((1, 0), (1, 1), (1, 1), (1, 0))
    groups = {"a": first, "b": second}
    [row] = differences(groups, seed=1)
    assert row.difference.value == row.test.difference == pytest.approx(1 / 3)
    values = (row.difference.low, row.difference.high)
    half = 3.182 * (3 / 4 * 2 * (1 / 30**2 + 1 / 24**2)) ** 0.5
    assert values == pytest.approx((1 / 3 - half, 1 / 3 + half), abs=1e-3)
    copies = {
        name: [one._replace(item=f"{one.item}.{i}") for one in made for i in range(9)]
        for name, made in groups.items()
    }
    [same] = differences(copies, seed=1)
    assert same.difference.low == pytest.approx(row.difference.low)
    [few] = differences({name: made[:3] for name, made in groups.items()}, seed=1)
    assert isinstance(few.difference.interval, NotEstimable)


@pytest.mark.costly
def test_where_there_is_no_difference_few_intervals_leave_out_zero():
    """300 sets of two conditions that are as often right, more in some dialogues than in others."""
    rng, out, sets = random.Random(3), 0, 300
    for _ in range(sets):
        gold = items(8, replies=4, seed=rng.random())
        eased = {one.conversation: rng.choice((0.3, 0.5, 0.8)) for one in gold}

        def label(one, eased=eased):
            right = rng.random() < eased[one.conversation]
            return one._replace(
                predicted=one.gold if right else (1 - one.gold[0], rng.randrange(3))
            )

        groups = {name: list(map(label, gold)) for name in ("a", "b")}
        [row] = differences(groups, seed=1)
        out += row.difference.low > 0 or row.difference.high < 0
    assert 0 < out <= sets * (0.05 + 3 * (0.05 * 0.95 / sets) ** 0.5)


def swap_test(first, second):
    [row] = differences({"a": first, "b": second}, seed=1)
    return row.test


def test_swaps_of_few_dialogues_are_enumerated():
    # Guidance right in all of 4 dialogues, in none: 2 of 16 swaps are as far apart.
    test = swap_test(one_each(*[(1, 1)] * 4), one_each(*[(1, 0)] * 4))
    assert test == PermutationTest(0.5, 2 / 16, 4, exact=True, tasks=4)
    test = swap_test(one_each(*[(1, 1)] * 2), one_each(*[(1, 0)] * 2))
    assert test == PermutationTest(0.5, 2 / 4, 2, exact=True, tasks=2)


def test_swaps_of_many_dialogues_find_a_difference_and_none():
    rng = random.Random(4)
    some, all_ = (one_each(*[(1, g) for g in gs]) for gs in (rng.choices((0, 1), k=60), [1] * 60))
    same = swap_test(some, some)
    assert (same.p_value, same.exact) == (1.0, False)
    apart = swap_test(all_, some)
    assert apart.p_value < 0.001
    assert apart.error == (apart.p_value * (1 - apart.p_value) / 10_000) ** 0.5
    assert isinstance(swap_test(some[:1], some[:1]), NotEstimable)


def test_pairs_over_the_same_dialogues_are_tested_as_if_alone():
    groups = {name: items(30, replies=2, right=right) for name, right in (("a", 1), ("b", 0.6))}
    groups |= {"c": items(30, replies=2, right=0.5), "d": items(4)}
    for row in differences(groups, seed=2):
        pair = {name: groups[name] for name in (row.second, row.first)}
        [alone] = differences(pair, seed=2)
        assert row.test == alone.test
