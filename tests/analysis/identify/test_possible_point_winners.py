"""Points added up in arrays, held to the search."""

from random import Random

import numpy as np
import pytest

from tests.analysis.identify.conftest import answers_of, random_profile
from tutorsim.analysis.identify import READINGS_OF_TIES, Identifier
from tutorsim.analysis.identify.small_panel_winners import points_tabled


@pytest.mark.parametrize("protocol", ["simple", "ranked", "cumulative", "approval"])
@pytest.mark.parametrize(("m", "n", "budget"), [(3, 4, 7), (2, 5, 4), (4, 2, 25)])
def test_panels_with_every_number_of_exempt_voters(protocol, m, n, budget):
    random = Random(f"{protocol} {m}")
    profiles = [random_profile(random, protocol, m, n, budget, abstain=0.2) for _ in range(6)]
    answers, of = answers_of(profiles, "cumulative", exempt=range(n + 1), budget=budget)
    plain = Identifier(budget=budget)
    for profile, panel in zip(profiles, of, strict=True):
        for k in range(n + 1):
            for r, reading in enumerate(READINGS_OF_TIES):
                answer = plain.possible(profile, "cumulative", exempt=k, reading=reading)
                found = np.flatnonzero(answers.possible[r, k, panel]) - 1
                assert tuple(found.tolist()) == answer.winners


def test_panels_of_very_many_combinations_are_not_added_up():
    assert points_tabled([(2, 1, 1)], "cumulative", 3, 12, budget=4)
    assert not points_tabled([(2, 1, 1)], "cumulative", 3, 13, budget=4)
    assert not points_tabled([(1, 1, 0, 0)], "approval", 4, 8, budget=25)
