"""Scores by rank: tables, search and projection say what `tests.reference.scores` enumerates."""

from contextlib import nullcontext
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.analysis.identify.conftest import searched_alone
from tests.reference import scores as plain
from tests.reference.identifier import Identifier
from tests.reference.projection import projected_winners
from tutorsim.analysis.ballots.vote_arrays_and_profiles import LEFT_OUT, DistinctPanels, Profile
from tutorsim.analysis.counting.names_and_parameters_of_rules import RankVector
from tutorsim.analysis.counting.voting_rules_in_arrays import projected_leaders
from tutorsim.analysis.identify.possible_winners import (
    NEVER,
    READINGS_OF_TIES,
    answer_panels,
    table_ends,
)
from tutorsim.analysis.identify.small_panel_winners import outcomes

EXEMPT = (0, 1, 2)


@st.composite
def votes(draw):
    """Scores, and ballots that show a weak order; a few of them abstentions."""
    m = draw(st.integers(2, 3))
    number = st.fractions(-3, 6, max_denominator=4)
    scores = sorted(draw(st.lists(number, min_size=m, max_size=m)), reverse=True)
    ballot = st.none() | st.tuples(*[st.integers(0, 2)] * m)
    return scores, draw(st.lists(ballot, min_size=1, max_size=3))


def panels_of(ballots, m, protocol="cumulative"):
    cast = np.array([[ballot is not None for ballot in ballots]])
    masses = np.array([[ballot or (0,) * m for ballot in ballots]], dtype=np.int64)
    return DistinctPanels.find(masses, cast, protocol)


@pytest.mark.parametrize("way", ["tables", "elections", "search"])
@settings(max_examples=15, deadline=None)
@given(votes())
def test_possible_winners_and_breakdown_points_are_those_of_every_choice(way, vote):
    scores, ballots = vote
    m, rule = len(scores), RankVector.of(scores)
    panels = panels_of(ballots, m)
    ends = table_ends(panels, [rule], budget=9)[rule] if way == "tables" else None
    with searched_alone() if way == "search" else nullcontext():
        found = answer_panels(panels, rule, exempt=EXEMPT, budget=9, ends=ends)
    assert found.settled.all()
    for r, reading in enumerate(READINGS_OF_TIES):
        for k, exempt in enumerate(EXEMPT):
            winners = set((np.flatnonzero(found.possible[r, k, 0]) - 1).tolist())
            assert winners == plain.elected(ballots, scores, exempt, reading)
        lost = plain.breakdown(ballots, scores, reading)
        assert found.breakdown[r, 0] == (NEVER if lost is None else lost)


@settings(max_examples=15, deadline=None)
@given(votes())
def test_the_point_is_the_mean_over_the_rankings_of_each_ballot(vote):
    scores, ballots = vote
    m, rule = len(scores), RankVector.of(scores)
    panels = panels_of(ballots, m)
    leaders = projected_leaders(
        panels.panels, panels.ballots, m=m, protocol="cumulative", target=rule, budget=9
    )
    led = np.flatnonzero(leaders[0]).tolist()
    assert set(led) == plain.point(ballots, scores)
    profile = Profile("cumulative", m, tuple(ballots))
    assert projected_winners(profile, rule, budget=9) == tuple(led)


def test_borda_as_scores_has_the_table_of_borda_and_veto_one_of_its_own():
    assert (outcomes(RankVector.of([9, 7, 5]), 3, 3) == outcomes("ranked", 3, 3)).all()
    veto = outcomes(RankVector.of([1, 1, 0]), 3, 2)
    # Two voters: the same last leaves the other two tied; different ones leave the third.
    orders = list(product(plain.rankings_of((0, 0, 0), 3), repeat=2))
    sets = [sum(1 << c for c in range(3) if c not in (a[2], b[2])) for a, b in orders]
    assert veto.tolist() == sets


@pytest.mark.parametrize("scale", [10, 10**5, 10**15])
def test_a_table_adds_large_scores_exactly(scale):
    scores = (3 * scale, 2 * scale - 1, 0)
    orders = product(plain.rankings_of((0, 0, 0), 3), repeat=3)
    sets = [sum(1 << c for c in plain.leaders(cast, scores)) for cast in orders]
    assert outcomes(RankVector.of(scores), 3, 3).tolist() == sets


@pytest.mark.parametrize(
    "scores", [[1, 0, 0, 0, 0], [1, 1, 1, 1, 0], [2, 1, 1, 0, 0], [60, 30, 20, 15, 12]]
)
def test_five_candidates_are_searched_exactly(scores):
    # A choice leaves 4! rankings, an approval of two 2! 3!: 288 choices.
    ballots = [(1, 0, 0, 0, 0), (0, 0, 0, 1, 1)]
    rule, identifier = RankVector.of(scores), Identifier(budget=25)
    profile = Profile("approval", 5, tuple(ballots))
    for reading in READINGS_OF_TIES:
        found = identifier.possible(profile, rule, exempt=0, reading=reading)
        assert found.settled
        assert set(found.winners) == plain.elected(ballots, scores, 0, reading)


def test_equal_scores_leave_few_options_so_that_many_candidates_settle():
    ballots = tuple(tuple(int(c == v % 3) for c in range(12)) for v in range(9))
    profile, identifier = Profile("simple", 12, ballots), Identifier(budget=25)
    asked = {"exempt": 1, "reading": "set"}
    plurality = identifier.possible(profile, RankVector.of([1, *[0] * 11]), **asked)
    assert plurality == identifier.possible(profile, "simple", **asked)
    two = identifier.possible(profile, RankVector.of([1, 1, *[0] * 10]), **asked)
    assert two.settled
    assert len(two.winners) == 12  # any candidate may be second on all nine


@pytest.mark.parametrize(("scale", "settled"), [(10**6, True), (10**12, True), (10**19, False)])
def test_large_scores_are_added_exactly_or_left_open(scale, settled):
    """Two first places are worth three seconds and one unit more, whatever the unit is worth."""
    scores = (3 * scale, 2 * scale - 1, 0, 0, 0)
    rule, identifier = RankVector.of(scores), Identifier(budget=25)
    first, second = (4, 3, 2, 1, 0), (0, 4, 3, 2, 1)
    known = (first, first, second, (1, 4, 3, 2, 0))
    asked = {"exempt": 0, "reading": "set"}
    counted = identifier.possible(Profile("ranked", 5, known), rule, **asked)
    assert counted.settled
    assert set(counted.winners) == plain.elected(known, scores, 0, "set")
    open_ = ((4, 3, 0, 0, 0), (4, 3, 0, 0, 0), (0, 4, 3, 3, 1), None)
    found = identifier.possible(Profile("cumulative", 5, open_), rule, **asked)
    assert found.settled == settled
    assert set(found.winners) == (plain.elected(open_, scores, 0, "set") if settled else set())


def test_scores_beyond_every_array_have_a_point_all_the_same():
    scores = [10**30 + 1, 10**30, 0]
    ballots = [(2, 1, 0), (1, 2, 0), (2, 1, 0), (1, 2, 0), (1, 2, 0)]
    panels = panels_of(ballots, 3, "ranked")
    rule = RankVector.of(scores)
    leaders = projected_leaders(
        panels.panels, panels.ballots, m=3, protocol="ranked", target=rule, budget=9
    )
    assert leaders.tolist() == [[False, True, False]]
    assert table_ends(panels, [rule], budget=9) == {}


def test_vectors_that_elect_the_same_have_one_form():
    half = Fraction(1, 2)
    assert RankVector.of([7, 5, 3]) == RankVector.of([1, half, 0]) == RankVector((2, 1, 0))
    assert RankVector.of([0, 0, -1]) == RankVector.of([1, 1, 0])
    assert RankVector.of([4, 4]) == RankVector((0, 0))


def test_the_place_of_a_candidate_in_scores_that_leave_some_out_is_open():
    """By hand: the first ballot, two scores open, may put 2 above both of those, and then 2 has 4,
    4, 1 and 1 Borda points more than 0, 1, 3 and 4."""
    ballots = ((LEFT_OUT, LEFT_OUT, 0, 4, 4), (2, 1, 4, 2, 2), (2, 3, 0, 1, 4), (0, 1, 4, 2, 0))
    for reading in READINGS_OF_TIES:
        found = Identifier(budget=4).possible(
            Profile("score", 5, ballots), "ranked", exempt=0, reading=reading
        )
        assert found == ((0, 1, 2, 3, 4), True)
