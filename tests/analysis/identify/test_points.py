"""Points added up in arrays, held to the search."""

from random import Random

import numpy as np
import pytest

from analysis.identify import Identifier, points
from analysis.identify.tabled import possible_winners


@pytest.mark.parametrize("protocol", ["simple", "ranked", "cumulative", "approval"])
@pytest.mark.parametrize(("m", "n", "budget"), [(3, 4, 7), (2, 5, 4), (4, 2, 25)])
def test_panels_with_every_number_of_exempt_voters(protocol, m, n, budget, random_profile):
    random = Random(f"{protocol} {m}")
    profiles = [random_profile(random, protocol, m, n, budget, abstain=0.2) for _ in range(6)]
    masses = np.array([[b or (-1,) * m for b in profile.ballots] for profile in profiles])
    found = possible_winners(masses, protocol, "cumulative", exempt=n, budget=budget)
    plain = Identifier(budget=budget)
    for i, profile in enumerate(profiles):
        for k in range(n + 1):
            for reading, bits in (("fallback", found.fallback), ("set", found.tied)):
                answer = plain.possible(profile, "cumulative", exempt=k, reading=reading)
                assert answer.winners == tuple(c for c in range(m) if bits[i, k] >> (c + 1) & 1)


def test_points_of_equal_panels_are_added_up_once(monkeypatch):
    """Three simple votes of two candidates, with abstentions: 10 panels, whatever the turns."""
    searched, once = [], points._searched
    monkeypatch.setattr(
        points, "_searched", lambda rows, *rest: searched.append(len(rows)) or once(rows, *rest)
    )
    points._known.cache_clear()
    votes = np.eye(2, dtype=np.int64)[np.random.default_rng(1).integers(0, 2, (5_000, 3))]
    votes[np.random.default_rng(2).random((5_000, 3)) < 0.2] = -1
    found = [possible_winners(votes, "simple", "cumulative", exempt=1) for _ in range(2)]
    assert (found[0].tied == found[1].tied).all()
    assert searched == [10]
