"""Elections of small panels counted beforehand, and united over what voters may have cast."""

from itertools import permutations, product
from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.analysis.identify.conftest import answers_of, random_profile
from tests.reference.identifier import Identifier
from tests.reference.plain_rules import RANKING_RULES
from tutorsim.analysis.ballots.vote_arrays_and_profiles import DistinctPanels, Profile
from tutorsim.analysis.counting.names_and_parameters_of_rules import RankVector
from tutorsim.analysis.identify import small_panel_winners
from tutorsim.analysis.identify.possible_winners import READINGS_OF_TIES, answer_panels, table_ends
from tutorsim.analysis.identify.small_panel_winners import (
    ANY,
    labels_of,
    panel_ends,
    sums_tabled,
    tabled,
)


def test_ballots_that_leave_the_same_possible_share_a_label():
    ballots = [(25, 0, 0, 0), (9, 8, 8, 0), (0, 0, 1, 24), (12, 13, 0, 0)]
    tops = labels_of(ballots, "cumulative", "simple", 4).of.tolist()
    assert (tops[0] == tops[1], len(set(tops))) == (True, 3)
    assert ANY not in tops


def test_a_ballot_that_says_nothing_has_the_label_of_an_exempt_voter():
    assert labels_of([(5, 5, 5)], "cumulative", "ranked", 3).of.tolist() == [ANY]


def test_an_approval_under_its_own_rule_is_only_itself():
    labels = labels_of([(0, 0, 0), (1, 1, 1), (0, 1, 1)], "approval", "approval", 3)
    assert [labels.sets[i].tolist() for i in labels.of] == [[0], [7], [6]]


@pytest.mark.parametrize(("protocol", "m", "n"), [("approval", 4, 7), ("simple", 2, 11)])
def test_many_voters_are_united_too(protocol, m, n):
    random = Random(protocol)
    profiles = [random_profile(random, protocol, m, n, 25, abstain=0.2) for _ in range(8)]
    answers, of = answers_of(profiles, "simple", exempt=(0, 1, 2))
    for profile, panel in zip(profiles, of, strict=True):
        for k in range(3):
            plain = Identifier(budget=25).possible(profile, "simple", exempt=k, reading="set")
            found = np.flatnonzero(answers.possible[0, k, panel]) - 1
            assert tuple(found.tolist()) == plain.winners


def test_several_rules_are_asked_at_once():
    labels = labels_of([(2, 1, 0), (1, 2, 0)], "ranked", "schulze", 3)
    panels = labels.of[np.array([[0, 0, 1], [1, 1, 0]])]
    together = panel_ends(panels, labels, ["schulze", "bucklin"], 3, panels.shape[1])
    for i, rule in enumerate(("schulze", "bucklin")):
        assert (together[:, :, [i]] == panel_ends(panels, labels, [rule], 3, panels.shape[1])).all()


def test_panels_too_large_have_no_table():
    assert not tabled("ranked", 4, 5)
    assert not tabled("simple", 5, 2)
    assert tabled(RankVector((2**62 - 1, 1, 0)), 3, 2)  # sums of two voters fill 64 bits
    assert not tabled(RankVector((2**62, 1, 0)), 3, 2)


def test_each_election_is_counted_once_up_to_the_order_of_voters(monkeypatch):
    """Two rankings of three candidates: 36 combinations, of which 6 twice the same one and the
    other 30 in pairs with the voters swapped."""
    counted = []
    once = small_panel_winners.CountedPanels
    monkeypatch.setattr(
        small_panel_winners,
        "CountedPanels",
        lambda ballots, rows: counted.append(rows) or once(ballots, rows),
    )
    table = small_panel_winners.outcomes.__wrapped__("schulze", 3, 2)
    assert len(table) == 36
    assert [len(rows) for rows in counted] == [6 + 15]


@pytest.mark.parametrize("rule", RANKING_RULES)
def test_elections_counted_in_arrays_are_those_of_the_plain_rule(rule):
    names = ["0", "1", "2"]
    rankings = [tuple((name,) for name in order) for order in permutations(names)]
    plain = [
        sum(1 << int(c) for c in RANKING_RULES[rule](cast, names))
        for cast in product(rankings, repeat=3)
    ]
    assert small_panel_winners.outcomes(rule, 3, 3).tolist() == plain


@st.composite
def scored_panels(draw):
    """A rule of scores, the end of the scale, and panels of ballots of one format."""
    form = draw(st.sampled_from(["ranked", "approval", "score"]))
    m, n, top = draw(st.integers(2, 4)), draw(st.integers(1, 4)), draw(st.integers(2, 5))
    ballot = {
        "ranked": st.permutations(range(m)),
        "approval": st.lists(st.integers(0, 1), min_size=m, max_size=m),
        "score": st.lists(st.integers(0, top), min_size=m, max_size=m),
    }[form]
    panel = st.lists(ballot, min_size=n, max_size=n)
    masses = np.array(draw(st.lists(panel, min_size=1, max_size=3)), dtype=np.int64)
    absent = draw(st.lists(st.booleans(), min_size=n, max_size=n))
    cast = np.tile(~np.array(absent), (len(masses), 1))
    target = draw(st.sampled_from(["score", "median_score"]))
    return target, top, DistinctPanels.find(masses, cast, form)


@settings(max_examples=40, deadline=None)
@given(scored_panels())
def test_scores_of_small_panels_end_as_the_search_says(drawn):
    target, top, panels = drawn
    ends = table_ends(panels, [target], budget=top)[target]
    tabled, searched = (
        answer_panels(panels, target, exempt=(0, 1, 2), budget=top, ends=one)
        for one in (ends, None)
    )
    assert searched.settled.all()
    assert (tabled.possible == searched.possible).all()
    assert (tabled.breakdown == searched.breakdown).all()


@pytest.mark.parametrize("tables", [True, False])
def test_a_median_may_be_an_end_of_the_scale_that_nobody_cast(tables):
    """Two candidates have 0; the one vote, exempt, may give 5 to the second, who stands alone."""
    only = [Profile("score", 2, ((0, 0),))]
    asked = {"exempt": (0, 1), "budget": 5, "tables": tables}
    answers, _ = answers_of(only, "median_score", **asked)
    order = READINGS_OF_TIES.index("fallback")
    assert answers.possible[order, :, 0, 1:].tolist() == [[True, False], [True, True]]


# --- Points added up in arrays, held to the search -----------------------------------------------


@pytest.mark.parametrize("protocol", ["simple", "ranked", "cumulative", "approval"])
@pytest.mark.parametrize(("m", "n", "budget"), [(3, 4, 7), (2, 5, 4), (4, 2, 25)])
def test_panels_with_every_number_of_exempt_voters(protocol, m, n, budget):
    random = Random(f"{protocol} {m}")
    profiles = [random_profile(random, protocol, m, n, budget, abstain=0.2) for _ in range(6)]
    answers, of = answers_of(profiles, "cumulative", exempt=range(n + 1), budget=budget)
    plain = Identifier(budget=budget)
    for profile, panel in zip(profiles, of, strict=True):
        for k in range(n + 1):
            for r, reading in enumerate(READINGS_OF_TIES):
                answer = plain.possible(profile, "cumulative", exempt=k, reading=reading)
                found = np.flatnonzero(answers.possible[r, k, panel]) - 1
                assert tuple(found.tolist()) == answer.winners


def test_panels_of_very_many_combinations_are_not_added_up():
    assert sums_tabled("cumulative", [(2, 1, 1)], "cumulative", 3, 12, budget=4)
    assert not sums_tabled("cumulative", [(2, 1, 1)], "cumulative", 3, 13, budget=4)
    assert not sums_tabled("cumulative", [(1, 1, 0, 0)], "approval", 4, 8, budget=25)
