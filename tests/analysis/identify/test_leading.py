"""Rules over arrays of projected panels, held to the plain rules over single profiles."""

from random import Random

import numpy as np
import pytest

from analysis.identify.leading import ProjectedPanels
from analysis.identify.numbering import numbered
from analysis.identify.projection import project, projected_winners
from analysis.rules import TARGETS


@pytest.mark.parametrize("protocol", ["simple", "ranked", "cumulative", "approval"])
@pytest.mark.parametrize("target", TARGETS)
def test_leaders_in_arrays_are_those_of_the_plain_rule(protocol, target, random_profile):
    random = Random(f"{protocol} {target}")
    for m, n in ((4, 4), (3, 5), (1, 2)):
        profiles = [random_profile(random, protocol, m, n, 9, abstain=0.2) for _ in range(15)]
        masses = np.array([[b or (-1,) * m for b in profile.ballots] for profile in profiles])
        numbers, ballots = numbered(masses)
        of = ProjectedPanels(numbers, ballots, m=m, protocol=protocol, target=target, budget=9)
        for among in range(1 << m):
            standing = [c for c in range(m) if among >> c & 1]
            if not standing:
                assert not of.leaders(among).any()
                continue
            found = of.leaders(among).tolist()
            for profile, bits in zip(profiles, found, strict=True):
                plain = projected_winners(project(profile, target, budget=9), target, standing)
                assert [c for c in range(m) if bits >> c & 1] == list(plain)


def test_leaders_of_some_panels_are_found_alone():
    numbers, ballots = numbered(np.array([[[1, 0]], [[0, 1]], [[0, 1]]]))
    of = ProjectedPanels(numbers, ballots, m=2, protocol="simple", target="ranked", budget=9)
    assert of.leaders(0b11, np.array([2, 0])).tolist() == [0b10, 0b01]


@pytest.mark.parametrize("target", TARGETS)
def test_everybody_leads_where_nobody_voted(target):
    numbers, ballots = numbered(np.full((2, 3, 4), -1))
    of = ProjectedPanels(numbers, ballots, m=4, protocol="ranked", target=target, budget=9)
    assert of.leaders(0b1101).tolist() == [0 if target == "condorcet" else 0b1101] * 2
