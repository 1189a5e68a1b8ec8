"""Sums and ties."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tutorsim.voting import first_in_order, leaders, tally

ROLES = ("s", "m", "v", "c")
votes = st.lists(st.dictionaries(st.sampled_from(ROLES), st.integers(0, 25)), max_size=8)


def test_masses_add_up_and_absent_candidates_stay_at_zero():
    assert tally([{"m": 2, "v": 1}, {}, {"m": 1}], ROLES) == {"s": 0, "m": 3, "v": 1, "c": 0}


def test_mass_for_somebody_who_does_not_stand_is_not_counted():
    assert tally([{"s": 3, "v": 1}], ("v", "c")) == {"v": 1, "c": 0}


def test_no_ballots_leave_everybody_leading():
    assert leaders(tally([], ROLES)) == ROLES


def test_leaders_are_all_with_the_largest_total():
    assert leaders({"s": 2, "m": 3, "v": 3, "c": 0}) == ("m", "v")


@given(votes, st.randoms(use_true_random=False))
def test_the_order_of_ballots_does_not_matter(ballots, random):
    shuffled = list(ballots)
    random.shuffle(shuffled)
    assert tally(shuffled, ROLES) == tally(ballots, ROLES)


def test_the_first_of_the_tied_in_the_order_is_taken():
    assert first_in_order(("s", "v"), ("c", "v", "m", "s")) == "v"


def test_an_order_without_the_tied_is_an_error_and_no_silent_pick():
    with pytest.raises(ValueError, match="no candidate"):
        first_in_order(("s",), ("m", "v"))
