"""Each format is one entry: its rule over arrays is that of one ballot, and its bounds follow."""

from typing import get_args

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tutorsim.analysis.ballots.names_and_properties_of_ballot_formats import FORMATS, BallotForm
from tutorsim.analysis.ballots.vote_arrays_and_profiles import DistinctPanels
from tutorsim.analysis.counting.names_and_parameters_of_rules import TARGETS
from tutorsim.analysis.identify.possible_winners import answer_panels
from tutorsim.vocabularies import PROTOCOLS, Protocol

MASSES = st.integers(1, 5).flatmap(
    lambda m: st.lists(
        st.one_of(
            st.permutations(range(m)).map(list), st.lists(st.integers(0, 4), min_size=m, max_size=m)
        ),
        min_size=1,
        max_size=8,
    )
)


PLAIN = {
    "simple": lambda masses, _: sorted(masses) == [0] * (len(masses) - 1) + [1],
    "ranked": lambda masses, _: sorted(masses) == [*range(len(masses))],
    "cumulative": lambda masses, budget: sum(masses) == budget,
    "approval": lambda masses, _: max(masses) <= 1,
}


@pytest.mark.costly
@settings(deadline=None)
@given(masses=MASSES, protocol=st.sampled_from(PROTOCOLS), budget=st.integers(1, 6))
def test_arrays_and_the_plain_rule_agree(masses, protocol, budget):
    found = FORMATS[protocol].valid(np.array(masses), budget)
    assert found.tolist() == [PLAIN[protocol](one, budget) for one in masses]


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
def test_what_makes_a_ballot(masses, protocol, valid):
    assert FORMATS[protocol].valid(np.array([masses]), 5).tolist() == [valid]


def test_a_ranking_of_more_candidates_than_bits_is_looked_at_too():
    order = np.array([list(range(70)), [0, *range(1, 69), 68]])
    assert FORMATS["ranked"].valid(order, 5).tolist() == [True, False]


def test_the_reason_names_the_candidate_to_blame():
    fault = FORMATS["approval"].fault([0, 0, 3], 5)
    assert fault.place == 2
    assert fault.reason == "the approval of {voter!r} has the mass 3, not 0 or 1"


def test_every_protocol_is_declared():
    assert set(FORMATS) == set(get_args(Protocol))


def test_a_sixth_format_is_an_entry_and_is_bounded_under_every_rule(monkeypatch):
    """Thumbs: 2 up, 1 neither, 0 down. It shows a weak order, as points do."""
    thumbs = BallotForm(
        lambda masses, _: (masses <= 2).all(axis=1),
        lambda masses, _: None,
        lambda m, budget, top: 2,
        numbers=True,
    )
    monkeypatch.setitem(FORMATS, "thumbs", thumbs)
    masses = np.array([[[2, 1, 0, 0], [0, 2, 2, 0], [1, 0, 2, 1]]])
    cast = np.ones((1, 3), dtype=np.bool_)
    panels = {form: DistinctPanels.find(masses, cast, form) for form in ("thumbs", "score")}
    for target in (rule for rule in TARGETS if rule not in ("score", "median_score")):
        sixth, fifth = (
            answer_panels(found, target, exempt=(0, 1), budget=5) for found in panels.values()
        )
        assert sixth.settled.all()
        assert (sixth.possible == fifth.possible).all()
        assert (sixth.breakdown == fifth.breakdown).all()
