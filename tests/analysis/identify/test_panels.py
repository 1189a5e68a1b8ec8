"""Possible winners by table, held to the search and to a plain enumeration."""

from itertools import permutations, product
from random import Random

import numpy as np
import pytest

from analysis.identify import READINGS_OF_TIES, Identifier, outcomes
from analysis.identify.outcomes import tabled
from analysis.identify.tabled import TabledIdentifier, possible_winners
from analysis.profiles import Profile
from analysis.rules import RANKING_RULES, TARGETS
from tutorsim.errors import UsageError


def outcomes_of(bits: int) -> tuple[int, ...]:
    return tuple(c - 1 for c in range(6) if bits >> c & 1)


@pytest.mark.parametrize("protocol", ["simple", "ranked", "cumulative", "approval"])
@pytest.mark.parametrize(("m", "n", "budget"), [(3, 2, 4), (2, 3, 5), (3, 3, 3)])
def test_tables_are_the_enumeration_of_what_voters_may_have_cast(
    protocol, m, n, budget, random_profile, enumerate_sets, enumerate_possible, completions_of
):
    random = Random(f"{protocol} {m} {n}")
    profiles = [random_profile(random, protocol, m, n, budget) for _ in range(3)]
    identifier = TabledIdentifier(budget=budget)
    identifier.learn(profiles, TARGETS)
    asked = 0
    for profile in profiles:
        for target in TARGETS:
            for k in (0, 1):
                if completions_of(profile, target, budget, k) > 3_000:
                    continue
                sets = enumerate_sets(profile, target, budget=budget, exempt=k)
                for reading in READINGS_OF_TIES:
                    found = identifier.possible(profile, target, exempt=k, reading=reading)
                    assert found.winners == enumerate_possible(sets, reading, m)
                    assert found.settled
                    asked += 1
    assert asked > 60


@pytest.mark.costly
@pytest.mark.parametrize("protocol", ["simple", "ranked", "cumulative", "approval"])
def test_tables_and_search_agree_on_panels_of_four(protocol, random_profile, monkeypatch):
    random = Random(protocol)
    profiles = [random_profile(random, protocol, 4, 4, 25) for _ in range(5)]
    searched, found = Identifier(budget=25), TabledIdentifier(budget=25)
    found.learn(profiles, TARGETS)
    expected = {
        (profile, target, k, reading): searched.possible(profile, target, exempt=k, reading=reading)
        for profile in profiles
        for target in TARGETS
        for k in range(5)
        for reading in READINGS_OF_TIES
    }
    monkeypatch.setattr(Identifier, "possible", None)  # nothing is searched any more
    for (profile, target, k, reading), answer in expected.items():
        assert found.possible(profile, target, exempt=k, reading=reading) == answer
        winner = answer.winners[0]
        contested = found.contested(profile, target, winner=winner, exempt=k, reading=reading)
        assert contested == (len(answer.winners) > 1)


def test_what_is_too_large_or_was_not_learned_is_searched():
    five = Profile("simple", 5, ((1, 0, 0, 0, 0), (0, 1, 0, 0, 0)))
    new = Profile("simple", 3, ((1, 0, 0),))
    identifier = TabledIdentifier(budget=25)
    identifier.learn([five], TARGETS)
    for profile in (five, new):
        for target in TARGETS:
            asked = {"exempt": 1, "reading": "fallback"}
            plain = Identifier(budget=25).possible(profile, target, **asked)
            assert identifier.possible(profile, target, **asked) == plain


@pytest.mark.parametrize("protocol", ["simple", "ranked", "cumulative", "approval"])
@pytest.mark.parametrize("target", ["simple", "ranked", "cumulative", "approval"])
def test_an_array_of_turns_is_answered_like_each_of_its_profiles(protocol, target, random_profile):
    random = Random(f"{protocol} {target}")
    profiles = [random_profile(random, protocol, 4, 3, 25, abstain=0.2) for _ in range(12)]
    masses = np.array([[b or (-1,) * 4 for b in profile.ballots] for profile in profiles])
    found = possible_winners(masses, protocol, target, exempt=2)
    plain = Identifier(budget=25)
    for i, profile in enumerate(profiles):
        for k in range(3):
            for reading, bits in (("fallback", found.fallback), ("set", found.tied)):
                answer = plain.possible(profile, target, exempt=k, reading=reading)
                assert outcomes_of(int(bits[i, k])) == answer.winners


def test_large_points_are_coded_without_a_table_of_all_ballots():
    masses = np.array([[[3_000_000, 1, 0]], [[0, 1, 3_000_000]]])
    found = possible_winners(masses, "cumulative", "simple", budget=3_000_001)
    assert [outcomes_of(int(bits)) for bits in found.fallback[:, 0]] == [(0,), (2,)]


def test_panels_too_large_for_tables_are_refused():
    with pytest.raises(UsageError, match="5 voters"):
        possible_winners(np.tile(np.arange(4), (1, 5, 1)), "ranked", "ranked")
    assert not tabled("ranked", 4, 5)
    assert not tabled("simple", 5, 2)


def test_each_election_is_counted_once_up_to_the_order_of_voters(monkeypatch):
    """Two rankings of three candidates: 36 combinations, of which 6 twice the same one and the
    other 30 in pairs with the voters swapped."""
    counted = []
    once = outcomes.ProjectedPanels
    monkeypatch.setattr(
        outcomes,
        "ProjectedPanels",
        lambda rows, *a, **k: counted.append(rows) or once(rows, *a, **k),
    )
    table = outcomes._by_rule("schulze", 3, 2)
    assert len(table) == 36
    assert [len(rows) for rows in counted] == [6 + 15]


@pytest.mark.parametrize("rule", RANKING_RULES)
def test_elections_counted_in_arrays_are_those_of_the_plain_rule(rule):
    names = ["0", "1", "2"]
    rankings = [tuple((name,) for name in order) for order in permutations(names)]
    plain = [
        sum(1 << int(c) for c in RANKING_RULES[rule](cast, names))
        for cast in product(rankings, repeat=3)
    ]
    assert outcomes.outcomes(rule, 3, 3).tolist() == plain
