"""Rules over arrays of projected panels, held to the plain rules over single profiles."""

from random import Random

import numpy as np
import pytest

from tests.reference.completions import tied_winners
from tests.reference.projection import project
from tutorsim.analysis.ballots.vote_arrays import LEFT_OUT, DistinctPanels, Profile
from tutorsim.analysis.counting.ballot_format_conversion import projected_winners
from tutorsim.analysis.counting.rule_definitions import TARGETS, ballot_format
from tutorsim.analysis.counting.rules_in_arrays import ProjectedPanels, RankedElections


def drawn_ballot(random, protocol, m):
    if random.random() < 0.2:
        return None
    if protocol == "ranked":
        named = random.randint(1, m) if random.random() < 0.5 else m
        order = random.sample(range(m), m)
        return tuple(m - 1 - order.index(c) if c in order[:named] else LEFT_OUT for c in range(m))
    if protocol == "approval":
        return tuple(random.randint(0, 1) for _ in range(m))
    marks = random.choices(range(m), k=1 if protocol == "simple" else 9)
    return tuple(marks.count(c) for c in range(m))


def projected(profiles, target):
    m, rule = profiles[0].size, profiles[0].protocol
    cast = np.array([[b is not None for b in p.ballots] for p in profiles])
    masses = np.array([[b or (0,) * m for b in p.ballots] for p in profiles])
    found = DistinctPanels.find(masses, cast, rule)
    of = ProjectedPanels(found.panels, found.ballots, m=m, protocol=rule, target=target, budget=9)
    return of.leaders()[found.of].tolist()


@pytest.mark.costly
@pytest.mark.parametrize("protocol", ["simple", "ranked", "cumulative", "approval"])
@pytest.mark.parametrize("target", TARGETS)
def test_leaders_in_arrays_are_those_of_the_plain_rule(protocol, target):
    random = Random(f"{protocol} {target}")
    for m, n in ((4, 4), (3, 5), (1, 2), (6, 3), (44, 2)):
        profiles = [
            Profile(protocol, m, tuple(drawn_ballot(random, protocol, m) for _ in range(n)))
            for _ in range(15 if m < 40 else 2)
        ]
        for profile, row in zip(profiles, projected(profiles, target), strict=True):
            plain = projected_winners(project(profile, target, budget=9), target, range(m))
            assert [c for c in range(m) if row[c]] == list(plain)


@pytest.mark.parametrize("target", TARGETS)
def test_everybody_leads_where_nobody_voted(target):
    silent = Profile("ranked", 4, (None, None, None))
    assert projected([silent] * 2, target) == [[target != "condorcet"] * 4] * 2


def test_a_rule_that_is_not_known_here_is_refused_and_never_counted_as_another():
    with pytest.raises(NotImplementedError, match="'antiplurality' is in"):
        projected([Profile("ranked", 2, ((1, 0),))], "antiplurality")


def elections(m, n):
    """Thirty elections, with rankings as masses."""
    random = np.random.default_rng(m * n)
    place = np.argsort(random.random((30, n, m)), axis=2)
    votes = random.random((30, n)) < 0.8
    masses = [
        [tuple(ballot) for ballot, cast in zip(*one, strict=True) if cast]
        for one in zip((m - 1 - place).tolist(), votes.tolist(), strict=True)
    ]
    return RankedElections(place, votes), masses


@pytest.mark.parametrize(("m", "n"), [(4, 4), (3, 5), (1, 2), (6, 3), (2, 8)])
@pytest.mark.parametrize("target", [t for t in TARGETS if ballot_format(t) == "ranked"])
def test_elections_by_rankings_end_as_the_plain_rule_says(target, m, n):
    held, masses = elections(m, n)
    assert held.winners(target) == {tied_winners(target, tuple(one), m) for one in masses}


@pytest.mark.parametrize("most", [0, 1, 2])
def test_whoever_is_named_most_leads_elections_by_approval(most):
    held, masses = elections(4, 3)
    approved = [[tuple(int(x > 3 - most) for x in ballot) for ballot in one] for one in masses]
    expected = {tied_winners("approval", tuple(one), 4) for one in approved}
    assert held.most_named(np.full(held.votes.shape, most)) == expected
