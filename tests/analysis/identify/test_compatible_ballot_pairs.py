"""Agreement of two ballots is the table's, and held to listing every ballot."""

from itertools import product

import pytest

from tutorsim.analysis.recount.same_voter_in_two_formats import may_have_cast, share_a_ranking
from tutorsim.vocabularies import PROTOCOLS

BUDGET = 4


@pytest.mark.parametrize(("logged", "target"), list(product(PROTOCOLS, repeat=2)))
@pytest.mark.parametrize("m", [2, 3])
def test_a_ballot_agrees_with_another_as_the_table_reads(logged, target, m, table_of_ballots):
    agrees, every_ballot = table_of_ballots
    pairs = list(product(every_ballot(logged, m, BUDGET), every_ballot(target, m, BUDGET)))
    found = [may_have_cast(a, logged, b, target) for a, b in pairs]
    assert found == [agrees(a, logged, b, target) for a, b in pairs]
    assert any(found)


@pytest.mark.parametrize(("one", "two"), list(product(PROTOCOLS, repeat=2)))
def test_ballots_share_a_ranking_where_some_ranking_agrees_with_both(one, two, table_of_ballots):
    agrees, every_ballot = table_of_ballots
    rankings = every_ballot("ranked", 3, BUDGET)
    for a, b in product(every_ballot(one, 3, BUDGET), every_ballot(two, 3, BUDGET)):
        expected = any(
            agrees(a, one, r, "ranked") and agrees(b, two, r, "ranked") for r in rankings
        )
        assert share_a_ranking(a, b) == expected, (a, b)


def test_three_candidates_by_hand():
    # Ranking 0 > 1 > 2 as masses 2, 1, 0.
    ranking = (2, 1, 0)
    assert may_have_cast(ranking, "ranked", (1, 0, 0), "simple")
    assert not may_have_cast(ranking, "ranked", (0, 1, 0), "simple")
    assert may_have_cast(ranking, "ranked", (1, 1, 0), "approval")
    assert not may_have_cast(ranking, "ranked", (0, 0, 0), "approval")
    # An empty approval says nothing: any candidate may come first.
    assert may_have_cast((0, 0, 0), "approval", (0, 0, 1), "simple")
    # Equal points are approved of together; from the approval's side points may differ.
    assert not may_have_cast((2, 2, 0), "cumulative", (1, 0, 0), "approval")
    assert may_have_cast((1, 0, 0), "approval", (2, 2, 0), "cumulative")
