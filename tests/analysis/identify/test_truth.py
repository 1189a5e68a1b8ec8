"""Voters with known preferences: the sets always hold what they would have elected."""

import numpy as np
import pytest

from tests.reference.truth import TRUTH_SCHEMA, sincere_ballots, truth_experiment
from tutorsim.vocabularies import PROTOCOLS

pytestmark = pytest.mark.costly


@pytest.mark.parametrize(("candidates", "voters"), [(3, 5), (4, 4), (5, 3)])
@pytest.mark.parametrize("correlation", [0.0, 0.5])
def test_the_true_winner_is_always_possible(candidates, voters, correlation, record_property):
    found = truth_experiment(
        profiles=8, seed=9, candidates=candidates, voters=voters, correlation=correlation
    )
    assert dict(found.schema) == dict(TRUTH_SCHEMA)
    assert found.height == 44
    assert (found["settled"] == found["profiles"]).all()
    assert (found["contained"] == found["settled"]).all()
    for row in found.iter_rows(named=True):
        pair = f"{row['logged_protocol']} as {row['target']}"
        record_property(pair, f"width {row['mean_width']:.2f}, projection {row['hit_rate']:.0%}")


@pytest.mark.parametrize("size", range(3, 9))
def test_panels_of_every_size_are_settled_within_the_work_bound(size):
    found = truth_experiment(
        profiles=2, seed=9, candidates=size, voters=size, targets=PROTOCOLS, correlation=0.5
    )
    assert found["settled"].to_list() == [2] * 16
    assert found["contained"].to_list() == [2] * 16


def test_the_logged_format_itself_leaves_nothing_open():
    found = truth_experiment(profiles=5, seed=2, targets=("simple", "ranked"))
    own = found.filter(found["logged_protocol"] == found["target"])
    assert own["identified"].to_list() == [1.0, 1.0]
    assert own["hit_rate"].to_list() == [1.0, 1.0]


def test_sincere_ballots_by_hand():
    # Above the worst: 3, 1, 0, so 25 x 3/4 and 1/4: 18.75 and 6.25.
    ballots = sincere_ballots(np.array([[2.0, 0.0, -1.0]]))
    assert ballots == {
        "simple": ((1, 0, 0),),
        "ranked": ((2, 1, 0),),
        "cumulative": ((19, 6, 0),),
        "approval": ((1, 0, 0),),
    }


def test_no_profiles_give_no_rates():
    found = truth_experiment(profiles=0, seed=1, targets=("simple",))
    assert found["identified"].to_list() == [None] * 4
