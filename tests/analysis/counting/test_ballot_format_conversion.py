"""Named projections, exactly as named."""

from tests.reference.projection import projected_ballots, projected_winners
from tests.reference.truth import apportioned
from tutorsim.analysis.ballots.vote_arrays_and_profiles import Profile
from tutorsim.analysis.counting.ballot_format_conversion import AS_CAST, projection_name
from tutorsim.analysis.counting.names_and_parameters_of_rules import TARGETS
from tutorsim.vocabularies import PROTOCOLS


def projected(protocol, target, ballot, budget=25):
    profile = Profile(protocol, len(ballot), (ballot,))
    return projected_ballots(profile, target, budget=budget)[0]


def test_a_ranking_becomes_points_in_proportion_to_borda_points():
    # 25 x 3/6, 2/6, 1/6, 0 = 12.5, 8.33, 4.17, 0; the spare point goes to the largest remainder.
    # In parts of a point, lcm(1..4) = 12.
    assert projected("ranked", "cumulative", (3, 2, 1, 0)) == (13 * 12, 8 * 12, 4 * 12, 0)


def test_points_and_approvals_become_average_ranks():
    # Places 1 and 2 shared by 10, 10: points 3, 2 on average 2.5; doubled, as all are: 5.
    assert projected("cumulative", "ranked", (10, 10, 4, 1)) == (5, 5, 2, 0)
    # S = {0}: 3 and three times the average of 2, 1, 0.
    assert projected("approval", "ranked", (1, 0, 0, 0)) == (6, 2, 2, 2)


def test_points_above_an_equal_share_become_approvals():
    # 25/4 = 6.25
    assert projected("cumulative", "approval", (7, 6, 6, 6)) == (1, 0, 0, 0)
    assert projected("cumulative", "approval", (7, 7, 7, 4)) == (1, 1, 1, 0)


def test_an_approval_set_splits_its_vote_equally():
    # lcm(1..4) = 12 parts of a vote
    assert projected("approval", "simple", (1, 0, 1, 0)) == (6, 0, 6, 0)
    assert projected("approval", "simple", (1, 1, 1, 0)) == (4, 4, 4, 0)
    assert projected("approval", "simple", (0, 0, 0, 0)) == (3, 3, 3, 3)
    assert projected("approval", "cumulative", (1, 0, 1, 0)) == (150, 0, 150, 0)  # 12.5 each


def test_no_rounding_of_points_breaks_a_tie():
    # 25 points for 4, 3, 2, 1 of 10: 10, 7.5, 5, 2.5; the spare point is shared by the halves.
    assert projected("ranked", "cumulative", (4, 3, 2, 1, 0)) == (600, 450, 300, 150, 0)
    # Two approvals of one and of the other: all tie, as under approval itself.
    profile = Profile("approval", 3, ((1, 1, 0), (1, 1, 0), (1, 0, 1), (0, 1, 1)))
    assert projected_winners(profile, "cumulative", budget=25) == (0, 1)


def test_a_single_choice_has_all_the_mass():
    assert projected("simple", "cumulative", (0, 1, 0)) == (0, 25 * 6, 0)
    assert projected("simple", "approval", (0, 1, 0)) == (0, 1, 0)
    assert projected("simple", "ranked", (0, 1, 0)) == (1, 4, 1)


def test_ballots_in_the_targets_format_stay_as_cast():
    for protocol in PROTOCOLS:
        assert projection_name(protocol, protocol) == AS_CAST
    assert projection_name("ranked", "schulze") == AS_CAST
    assert projection_name("simple", "schulze") == "all mass on the choice"
    assert projected("ranked", "ranked", (2, 0, 1)) == (2, 0, 1)


def test_every_pair_has_a_name():
    assert all(projection_name(p, target) for p in PROTOCOLS for target in TARGETS)


def test_apportioned_points_sum_to_the_budget():
    assert apportioned((1, 1, 1), 25) == (9, 8, 8)
    assert apportioned((0, 0, 0), 2) == (1, 1, 0)
    assert sum(apportioned((5, 3, 1, 7), 23)) == 23
