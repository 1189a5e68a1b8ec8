"""Rules over arrays of projected panels, held to the plain rules over single profiles."""

from random import Random

import numpy as np
import pytest

from tests.reference.completions import tied_winners
from tests.reference.projection import projected_winners
from tutorsim.analysis.ballots.vote_arrays_and_profiles import LEFT_OUT, DistinctPanels, Profile
from tutorsim.analysis.counting.names_and_parameters_of_rules import TARGETS
from tutorsim.analysis.counting.voting_rules_in_arrays import CountedPanels, projected_leaders


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
    leaders = projected_leaders(
        found.panels, found.ballots, m=m, protocol=rule, target=target, budget=9
    )
    return leaders[found.of].tolist()


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
            plain = projected_winners(profile, target, budget=9)
            assert [c for c in range(m) if row[c]] == list(plain)


@pytest.mark.parametrize("target", TARGETS)
def test_everybody_leads_where_nobody_voted(target):
    silent = Profile("ranked", 4, (None, None, None))
    assert projected([silent] * 2, target) == [[target != "condorcet"] * 4] * 2


def test_a_rule_that_is_not_known_here_is_never_counted_as_another():
    with pytest.raises(KeyError, match="'antiplurality'"):
        projected([Profile("ranked", 2, ((1, 0),))], "antiplurality")


@pytest.mark.parametrize(("m", "n"), [(4, 4), (3, 5), (1, 2), (6, 3), (2, 8)])
@pytest.mark.parametrize("target", TARGETS)
def test_elections_that_share_no_ballot_end_as_the_plain_rule_says(target, m, n):
    random = np.random.default_rng(m * n)
    cast = np.argsort(random.random((30, n, m)), axis=2)
    votes = random.random((30, n)) < 0.8
    led = CountedPanels.of_elections(cast, votes).leaders(target)
    for ballots, voted, row in zip(cast.tolist(), votes, led, strict=True):
        known = tuple(tuple(b) for b, voter in zip(ballots, voted, strict=True) if voter)
        assert set(np.flatnonzero(row).tolist()) == tied_winners(target, known, m)
