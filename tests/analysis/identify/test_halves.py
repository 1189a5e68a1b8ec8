"""Panels looked up by their halves, held to the search; each half is met once."""

from random import Random

import numpy as np
import pytest

from analysis.identify import Identifier
from analysis.identify.halves import PanelTable, labels_of, panel_table
from analysis.identify.tabled import possible_winners


def outcomes_of(bits):
    return tuple(c - 1 for c in range(6) if bits >> c & 1)


def test_ballots_that_leave_the_same_possible_share_a_label():
    ballots = np.array([[25, 0, 0, 0], [9, 8, 8, 0], [0, 0, 1, 24], [12, 13, 0, 0]])
    tops = labels_of("cumulative", "simple", 4).of(ballots).tolist()
    assert (tops[0] == tops[1], len(set(tops))) == (True, 3)
    assert [len(labels_of("ranked", t, 4).sets) for t in ("simple", "ranked")] == [15, 75]
    assert len(labels_of("approval", "approval", 4).sets) == 16


def test_an_approval_under_its_own_rule_is_only_itself():
    ballots = np.array([[0, 0, 0], [1, 1, 1], [0, 1, 1]])
    labels = labels_of("approval", "approval", 3)
    assert [labels.sets[i] for i in labels.of(ballots)] == [(0,), (7,), (6,)]


@pytest.mark.parametrize(("protocol", "m", "n"), [("approval", 4, 7), ("simple", 2, 11)])
def test_many_voters_are_looked_up_in_halves_too(protocol, m, n, random_profile):
    random = Random(protocol)
    profiles = [random_profile(random, protocol, m, n, 25, abstain=0.2) for _ in range(8)]
    masses = np.array([[b or (-1,) * m for b in profile.ballots] for profile in profiles])
    found = possible_winners(masses, protocol, "simple", exempt=2).tied
    for i, profile in enumerate(profiles):
        for k in range(3):
            answer = Identifier(budget=25).possible(profile, "simple", exempt=k, reading="set")
            assert outcomes_of(int(found[i, k])) == answer.winners


def test_halves_are_met_once_however_many_turns_there_are(monkeypatch):
    """The first of three voters has one of three votes, whatever the number of turns."""
    met, once = [], PanelTable._crossed
    monkeypatch.setattr(
        PanelTable, "_crossed", lambda f, heads: met.append(len(heads)) or once(f, heads)
    )
    panel_table.cache_clear()
    votes = np.eye(3, dtype=np.int64)[np.random.default_rng(1).integers(0, 3, (50_000, 3))]
    for turns in (1, 2, 50_000, 50_000):
        assert len(possible_winners(votes[:turns], "simple", "approval").fallback) == turns
    assert sum(met) == 3
