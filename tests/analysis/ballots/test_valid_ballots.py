"""The rule of each protocol over arrays is the plain rule of one ballot."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tutorsim.analysis.ballots.valid_ballots import are_valid, why_not
from tutorsim.vocabularies import PROTOCOLS

MASSES = st.integers(1, 5).flatmap(
    lambda m: st.lists(
        st.one_of(
            st.permutations(range(m)).map(list),
            st.lists(st.integers(0, 4), min_size=m, max_size=m),
        ),
        min_size=1,
        max_size=8,
    )
)


@pytest.mark.costly
@settings(deadline=None)
@given(masses=MASSES, protocol=st.sampled_from(PROTOCOLS), budget=st.integers(1, 6))
def test_arrays_and_the_plain_rule_agree(
    masses: list[list[int]], protocol: str, budget: int
) -> None:
    found = are_valid(np.array(masses), protocol, budget)
    assert found.tolist() == [why_not(one, protocol, budget) is None for one in masses]


@pytest.mark.parametrize(
    ("masses", "protocol", "valid"),
    [
        ([0, 1, 0], "simple", True),
        ([1, 1, 0], "simple", False),
        ([2, 1, 0], "ranked", True),
        ([2, 2, 0], "ranked", False),
        ([3, 2, 1], "ranked", False),
        ([2, 3, 0], "cumulative", True),
        ([2, 2, 0], "cumulative", False),
        ([1, 0, 1], "approval", True),
        ([0, 0, 0], "approval", True),
        ([0, 2, 0], "approval", False),
    ],
)
def test_what_makes_a_ballot(masses: list[int], protocol: str, valid: bool) -> None:
    assert are_valid(np.array([masses]), protocol, 5).tolist() == [valid]


def test_a_ranking_of_more_candidates_than_bits_is_looked_at_too() -> None:
    order = np.array([list(range(70)), [0, *range(1, 69), 68]])
    assert are_valid(order, "ranked", 5).tolist() == [True, False]


def test_the_reason_names_the_candidate_to_blame() -> None:
    fault = why_not([0, 0, 3], "approval", 5)
    assert fault is not None
    assert (fault.place, fault.reason) == (2, "the approval of {voter} has the mass 3, not 0 or 1")
