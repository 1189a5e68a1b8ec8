"""Answers about panels: tables and search say the same, and what an enumeration says."""

from random import Random

import numpy as np
import pytest

from tests.analysis.identify.conftest import answers_of, completions_of, random_profile
from tests.reference.completions import possible_by_enumeration, sets_by_enumeration
from tests.reference.identifier import Identifier
from tutorsim.analysis.ballots.vote_arrays import Profile
from tutorsim.analysis.counting.rule_definitions import TARGETS
from tutorsim.analysis.identify.possible_winners import (
    NEVER,
    READINGS_OF_TIES,
    breakdown_point,
)


def outcomes_of(answers, reading, k, panel):
    row = answers.possible[READINGS_OF_TIES.index(reading), k, panel]
    return tuple((np.flatnonzero(row) - 1).tolist())


@pytest.mark.parametrize("protocol", ["simple", "ranked", "cumulative", "approval"])
@pytest.mark.parametrize(("m", "n", "budget"), [(3, 2, 4), (2, 3, 5), (3, 3, 3)])
def test_tables_are_the_enumeration_of_what_voters_may_have_cast(protocol, m, n, budget):
    random = Random(f"{protocol} {m} {n}")
    profiles = [random_profile(random, protocol, m, n, budget) for _ in range(3)]
    asked = 0
    for target in TARGETS:
        answers, of = answers_of(profiles, target, exempt=(0, 1), budget=budget)
        for profile, panel in zip(profiles, of, strict=True):
            for k in (0, 1):
                if completions_of(profile, target, budget, k) > 3_000:
                    continue
                sets = sets_by_enumeration(profile, target, budget=budget, exempt=k)
                for reading in READINGS_OF_TIES:
                    found = outcomes_of(answers, reading, k, panel)
                    assert found == possible_by_enumeration(sets, reading, m)
                    assert answers.settled.all()
                    asked += 1
    assert asked > 60


@pytest.mark.usefixtures("with_and_without_elections")
@pytest.mark.costly
@pytest.mark.parametrize("protocol", ["simple", "ranked", "cumulative", "approval"])
@pytest.mark.parametrize("target", TARGETS)
def test_tables_and_search_have_one_shape_and_one_answer(protocol, target):
    random = Random(f"{protocol} {target}")
    profiles = [random_profile(random, protocol, 4, 4, 25, abstain=0.2) for _ in range(5)]
    asked = {"exempt": (0, 1, 2, 9)}
    by_table, of = answers_of(profiles, target, **asked)
    by_search, of_search = answers_of(profiles, target, tables=False, **asked)
    assert of == of_search
    assert by_search.settled.all()
    assert (by_table.settled == by_search.settled).all()
    assert (by_table.possible == by_search.possible).all()
    assert (by_table.breakdown == by_search.breakdown).all()


@pytest.mark.parametrize("target", ["simple", "ranked", "condorcet"])
def test_breakdown_points_are_those_of_the_definition(target):
    random = Random(target)
    profiles = [random_profile(random, "ranked", 3, 4, 25) for _ in range(8)]
    answers, of = answers_of(profiles, target)
    plain = Identifier(budget=25)
    for profile, panel in zip(profiles, of, strict=True):
        for r, reading in enumerate(READINGS_OF_TIES):
            start = plain.possible(profile, target, exempt=0, reading=reading)
            asked = {"winner": start.winners[0], "reading": reading}
            expected = (
                breakdown_point(
                    lambda k, asked=asked, profile=profile: plain.contested(
                        profile, target, exempt=k, **asked
                    ),
                    voters=4,
                )
                if len(start.winners) == 1
                else 0
            )
            assert answers.breakdown[r, panel] == expected


def test_a_single_candidate_is_never_lost():
    answers, _ = answers_of([Profile("simple", 1, ((1,), (1,)))], "ranked")
    assert answers.breakdown.tolist() == [[NEVER], [NEVER]]


def test_panels_that_differ_by_who_cast_what_are_one():
    one, other = ((1, 0, 0), (0, 1, 0), None), (None, (0, 1, 0), (1, 0, 0))
    answers, of = answers_of([Profile("simple", 3, one), Profile("simple", 3, other)], "ranked")
    assert of == [0, 0]
    assert answers.possible.shape == (2, 1, 1, 4)


def test_large_points_need_no_table_of_all_ballots():
    profiles = [Profile("cumulative", 3, (b,)) for b in ((3_000_000, 1, 0), (0, 1, 3_000_000))]
    answers, of = answers_of(profiles, "simple", budget=3_000_001)
    assert [outcomes_of(answers, "fallback", 0, i) for i in of] == [(0,), (2,)]
