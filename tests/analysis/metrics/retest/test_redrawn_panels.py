from collections import Counter
from fractions import Fraction
from itertools import permutations, product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tutorsim.analysis.metrics import noise_floor as redrawn_panels
from tutorsim.analysis.metrics.noise_floor import leader_of, noise_floor_of, stability_of

A, B, NOBODY = (1, 0), (0, 1), (0, 0)


def test_a_panel_is_one_answer_of_each_voter():
    # Panels A+B: 1 : 1, so the order picks A; B+B: B. Logged A+B.
    found = stability_of([[A, B], [B, B]], seed=0)
    assert found == (0.5, 0.5, True)


def test_the_floor_takes_two_different_askings_of_each_voter():
    # First voter A then B: 1 : 1 (A by the order, both lead) to 0 : 2 (B): a flip inside the set.
    # B then A: 0 : 2 (B alone leads) to 1 : 1 (A): a flip outside the set. Shares move by ½.
    assert noise_floor_of([[A, B], [B, B]], seed=0) == (1.0, 0.5, 0.5, True)


def test_three_askings_have_six_ordered_pairs():
    # One voter: A, A, B. Pairs AA 2, AB 2, BA 2, so 4 of 6 differ; A is elected in 2 of 3.
    floor = noise_floor_of([[A, A, B]], seed=0)
    assert floor[:3] == pytest.approx((2 / 3, 2 / 3, 2 / 3))
    assert stability_of([[A, A, B]], seed=0)[:2] == pytest.approx((2 / 3, 4 / 9 + 1 / 9))


def test_a_panel_without_mass_has_no_shift_and_the_order_picks_its_leader():
    # A then nobody: all tied, so A; no flip. No pair of panels has mass in both.
    assert noise_floor_of([[A, NOBODY]], seed=0) == (0.0, 0.0, None, True)
    # Of four pairs of panels two have mass in both: A then B, and B then A.
    assert noise_floor_of([[A, NOBODY], [B, NOBODY]], seed=0).shift == 1.0
    assert noise_floor_of([[NOBODY, NOBODY]], seed=0) == (0.0, 0.0, None, True)
    assert stability_of([[NOBODY, NOBODY]], seed=0) == (1.0, 1.0, True)


def test_a_tied_lead_goes_to_the_first_candidate():
    assert leader_of([(0, 1, 1), (0, 1, 1)]) == 1
    assert leader_of([(0, 0, 0)]) == 0


ANSWERS = st.tuples(*[st.integers(0, 3)] * 3)
PANELS = st.integers(2, 3).flatmap(
    lambda k: st.lists(st.lists(ANSWERS, min_size=k, max_size=k), min_size=1, max_size=3)
)


@given(PANELS)
def test_chances_are_those_of_listing_every_panel(askings):
    panels = [leader_of(panel) for panel in product(*askings)]
    chances = [Fraction(n, len(panels)) for n in Counter(panels).values()]
    found = stability_of(askings, seed=0)
    assert found.elects_logged == pytest.approx(panels.count(panels[0]) / len(panels))
    assert found.agree == pytest.approx(float(sum(p * p for p in chances)))

    twice = list(product(*(permutations(asked, 2) for asked in askings)))
    leaders = [
        (leader_of([pair[0] for pair in pairs]), leader_of([pair[1] for pair in pairs]))
        for pairs in twice
    ]
    floor = noise_floor_of(askings, seed=0)
    assert floor.exact
    assert floor.flip == pytest.approx(sum(a != b for a, b in leaders) / len(leaders))
    assert floor.flip_set <= floor.flip + 1e-9


def test_beyond_the_limit_panels_are_drawn_by_a_seed(monkeypatch):
    askings = [[A, B, B], [A, A, B], [B, A, NOBODY]]
    exact, stable = noise_floor_of(askings, seed=1), stability_of(askings, seed=1)
    monkeypatch.setattr(redrawn_panels, "ENUMERATED", 0)
    drawn, again = noise_floor_of(askings, seed=1), noise_floor_of(askings, seed=1)
    assert drawn == again
    assert not drawn.exact
    assert drawn[:3] == pytest.approx(exact[:3], abs=0.02)
    assert stability_of(askings, seed=1)[:2] == pytest.approx(stable[:2], abs=0.02)
