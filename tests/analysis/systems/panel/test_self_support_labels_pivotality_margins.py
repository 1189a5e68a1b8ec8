from collections import Counter
from itertools import permutations, product

import numpy as np
import pytest

from tests.analysis.panel_runs import panel_episode, panel_source, panel_turn
from tutorsim.analysis.statistics.intervals_and_tests import NotEstimable
from tutorsim.analysis.systems.panel import (
    self_support_labels_pivotality_margins as self_support_and_label_tests,
)
from tutorsim.analysis.systems.panel.self_support_labels_pivotality_margins import (
    LabelPosition,
    SelfSupport,
    label_positions,
    self_support,
)

ROLES = ("scaffolding", "misconception", "motivation", "metacognitive")


def test_self_support_of_readers_with_labels_of_their_own_is_exact():
    source = panel_source(panel_episode(panel_turn("simple", {r: r for r in ROLES})))
    [found] = self_support(source)
    assert isinstance(found, SelfSupport)
    assert (found.ballots, found.share, found.expected) == (4, 1.0, 0.25)
    # Four independent draws of ¼, mean 1; only 4 of 4 is as far away.
    assert found.p_value == pytest.approx(0.25**4)


def test_self_support_under_shared_labels_counts_one_draw_a_turn():
    turn = panel_turn("simple", {r: r for r in ROLES})
    [found] = self_support(panel_source(panel_episode(turn), blinding="shared"))
    assert isinstance(found, SelfSupport)
    # Only the identity of 24 permutations has four fixed points.
    assert found.p_value == pytest.approx(1 / 24)


def test_an_exact_p_value_is_never_nought():
    turn = panel_turn("simple", {r: r for r in ROLES})
    source = panel_source(*(panel_episode(turn, task=f"t{i}") for i in range(20)))
    [found] = self_support(source)
    assert isinstance(found, SelfSupport)
    # Eighty of eighty: ¼⁸⁰.
    assert (found.share, found.p_value) == (1.0, 1e-12)


def test_self_support_of_points_agrees_with_all_draws():
    masses = [(10, 5, 5, 5), (0, 25, 0, 0), (7, 7, 6, 5), (1, 2, 3, 19)]
    cast = {r: dict(zip(ROLES, m, strict=True)) for r, m in zip(ROLES, masses, strict=True)}
    [found] = self_support(panel_source(panel_episode(panel_turn("cumulative", cast))))
    assert isinstance(found, SelfSupport)
    own = 10 + 25 + 6 + 19
    sums = [sum(draw) for draw in product(*masses)]
    far = [abs(s - 25) >= abs(own - 25) for s in sums]
    assert found.share == own / 100
    assert found.p_value == pytest.approx(sum(far) / len(sums))


def test_two_votes_for_one_label_are_tested_against_all_shuffles():
    first, second, *_ = ROLES
    swapped = (second, first, *ROLES[2:])
    # Both voters choose what they saw as A: different roles.
    turn = panel_turn("simple", {first: first, second: second}, shown={second: swapped})
    [found] = label_positions(panel_source(panel_episode(turn)))
    assert isinstance(found, LabelPosition)
    assert found.share == {"A": 1.0, "B": 0, "C": 0, "D": 0}
    # The two labels agree in 4 of 16 cases.
    assert found.p_value == pytest.approx(0.25)
    # A: 2 of 2 with ¼ each, 1/16, times four labels. The others: 0 is no further than any.
    assert found.p_values == pytest.approx({"A": 0.25, "B": 1, "C": 1, "D": 1})


def test_shared_labels_shuffle_a_turns_ballots_together():
    turn = panel_turn("simple", dict.fromkeys(ROLES, ROLES[0]))
    [shared] = label_positions(panel_source(panel_episode(turn), blinding="shared"))
    [own] = label_positions(panel_source(panel_episode(turn)))
    assert isinstance(shared, LabelPosition)
    assert isinstance(own, LabelPosition)
    assert shared.p_value == 1.0
    # Four equal labels of four: 4 · ¼⁴, drawn here because 24⁴ shuffles are too many.
    assert own.p_value == pytest.approx(4 / 256, abs=0.01)


def test_the_drawn_test_repeats_itself_and_agrees_with_enumeration(monkeypatch):
    masses = [(2, 1, 0), (2, 1, 0), (1, 2, 0), (2, 0, 1), (2, 1, 0), (2, 1, 0), (0, 1, 2)]
    roles = ROLES[:3]
    turns = [
        panel_episode(
            panel_turn(
                "ranked",
                {roles[0]: tuple(sorted(roles, key=lambda r: -mass[roles.index(r)]))},
                roles=roles,
            ),
            task=f"t{i}",
        )
        for i, mass in enumerate(masses)
    ]
    source = panel_source(*turns, roles=roles, fallback_order=roles)
    [found] = label_positions(source)
    assert isinstance(found, LabelPosition)
    assert found == label_positions(source)[0]

    def deviation(sums):
        return sum((3 * s - sum(sums)) ** 2 for s in sums)

    reached = Counter({(0, 0, 0): 1})
    for _ in masses:
        reached = Counter(
            {
                sums: sum(
                    reached[tuple(s - x for s, x in zip(sums, draw, strict=True))]
                    for draw in permutations((2, 1, 0))
                )
                for sums in product(range(15), repeat=3)
                if sum(sums) == sum(next(iter(reached))) + 3
            }
        )
    observed = deviation(tuple(sum(c) for c in zip(*masses, strict=True)))
    extreme = sum(n for sums, n in reached.items() if deviation(sums) >= observed)
    monkeypatch.setattr(self_support_and_label_tests, "SEED", 5)
    assert found != label_positions(source)[0]
    assert found.p_value == pytest.approx(extreme / 6 ** len(masses), abs=0.03)


def test_unknown_labels_and_voters_that_do_not_stand_are_not_estimable():
    turn = panel_turn("simple", {"a judge": ROLES[0]})
    source = panel_source(panel_episode(turn))
    [found] = self_support(source)
    assert found == NotEstimable("simple: no ballots with mass by voters that are candidates")
    [abstained] = label_positions(
        panel_source(panel_episode(panel_turn("simple", {ROLES[0]: None})))
    )
    assert isinstance(abstained, NotEstimable)


def test_a_sum_of_very_many_units_has_the_tails_that_convolution_gives(monkeypatch):
    units = [((0, 0, 0, 1), 900), ((0, 1, 2, 3), 700), ((1, 2, 9, 13), 300)]
    # Means ¼, 1½ and 6¼ a unit: 225 + 1050 + 1875.
    observed = [3150, 3200, 3300, 3000]
    exact = self_support_and_label_tests._two_sided(units, observed)
    monkeypatch.setattr(self_support_and_label_tests, "_WORK", 0)
    assert self_support_and_label_tests._two_sided(units, observed) == pytest.approx(
        exact, abs=0.01
    )


def test_equal_units_are_shuffled_together_as_they_are_one_by_one():
    unit, times = (0, 1, 1, 4), 60
    sums = {}
    for together in (False, True):
        rng = np.random.default_rng(1)
        sums[together] = self_support_and_label_tests._shuffled(unit, times, rng, together=together)
    # A label gets 1½ a unit, with a variance of 9/4: 90 and 135.
    for drawn in sums.values():
        assert (drawn.sum(axis=1) == 360).all()
        assert drawn.mean(axis=0) == pytest.approx(90, abs=1.5)
        assert drawn.var(axis=0) == pytest.approx(135, rel=0.15)
