"""Answers about panels: tables and search say the same, and what an enumeration says."""

from contextlib import nullcontext
from random import Random

import numpy as np
import pytest

from tests.analysis.identify.conftest import (
    answers_of,
    completions_of,
    random_profile,
    random_votes,
    searched_alone,
    spent,
)
from tests.reference.completions import possible_by_enumeration, sets_by_enumeration
from tests.reference.identifier import Identifier
from tutorsim.analysis.ballots.vote_arrays_and_profiles import Profile
from tutorsim.analysis.counting.names_and_parameters_of_rules import TARGETS
from tutorsim.analysis.identify import possible_winners, runoff_winners
from tutorsim.analysis.identify.possible_winners import (
    NEVER,
    NOT_SETTLED,
    READINGS_OF_TIES,
    PanelSearch,
    breakdown_point,
    query_of,
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


@pytest.mark.parametrize("tables", [True, False])
def test_without_breakdown_points_there_are_zeros_and_another_reading_stays_open(tables):
    votes = [Profile("simple", 3, ((1, 0, 0), (1, 0, 0), (0, 1, 0)))]
    answers, _ = answers_of(votes, "ranked", tables=tables, breakdown=False)
    assert (answers.breakdown.tolist(), answers.settled.all()) == ([[0], [0]], True)
    alone, _ = answers_of(votes, "ranked", tables=False, readings=("fallback",))
    assert alone.settled.tolist() == [[[False]], [[True]]]
    assert (alone.possible[0].any(), alone.breakdown.tolist()) == (False, [[NOT_SETTLED], [1]])


def test_panels_that_differ_by_who_cast_what_are_one():
    one, other = ((1, 0, 0), (0, 1, 0), None), (None, (0, 1, 0), (1, 0, 0))
    answers, of = answers_of([Profile("simple", 3, one), Profile("simple", 3, other)], "ranked")
    assert of == [0, 0]
    assert answers.possible.shape == (2, 1, 1, 4)


def test_large_points_need_no_table_of_all_ballots():
    profiles = [Profile("cumulative", 3, (b,)) for b in ((3_000_000, 1, 0), (0, 1, 3_000_000))]
    answers, of = answers_of(profiles, "simple", budget=3_000_001)
    assert [outcomes_of(answers, "fallback", 0, i) for i in of] == [(0,), (2,)]


SIZES = {
    "simple": (5, 6),
    "ranked": (6, 6),
    "cumulative": (6, 5),
    "approval": (6, 5),
    "score": (4, 4),
}
"""Format → candidates and voters of a drawn panel."""

# Target, and units of work for a panel of each of these formats: of a search without elections that
# has enough, then of elections and search that may take 600,000.
WORK = """
simple 813943 1355426 1422036 1168253 689561 49500 449404 544950 343082 397621
ranked 1113828 1177918 3189297 1457450 709130 24750 226784 616136 21080 250730
cumulative 988412 1171104 952730 1023405 568611 585944 561610 566245 552774 570733
approval 714620 980610 840180 952736 623432 24750 25296 21080 63060 615603
copeland 1282660 1196776 1897060 1742734 712968 24750 226528 614792 21080 392354
minimax 1252222 1186075 1864035 1672126 710575 24750 253120 614528 21080 408550
instant_runoff 166200 1519800 916200 1876800 772800 81150 1058076 149980 240460 121840
schulze 1428086 1265573 2037525 2166382 715585 24750 253120 616376 21080 408850
bucklin 2122058 3292587 3863570 3497483 1730787 24750 697630 613552 21080 352837
condorcet 979172 1265894 1264874 1087834 747863 289302 545469 557610 268734 415415
score 714620 980610 840180 840180 795551 571696 490305 560120 560120 653411
median_score 1034660 1368048 1163641 1163286 3121881 597378 504543 576056 575996 430492
"""


@pytest.mark.parametrize("listed", [2_000, 3])
def test_paths_and_positions_of_an_instant_runoff_agree(monkeypatch, listed):
    """With few ways of a ballot listed, paths may leave open what positions tell."""
    random, by_positions = Random(6), possible_winners.runoff_sets
    monkeypatch.setattr(runoff_winners, "_LISTED", listed)
    opened = 0
    for _ in range(40):
        m, n = random.randint(2, 4), random.randint(1, 6)
        query = query_of(random_profile(random, "ranked", m, n, 25), "instant_runoff", 25)
        found = []
        for way in (lambda *_, known, **__: (known, False), by_positions):
            monkeypatch.setattr(possible_winners, "runoff_sets", way)
            search = PanelSearch(query)
            with searched_alone():
                found.append(
                    [
                        search.possible(exempt=k, reading=r)
                        for k in (1, 2, 3)
                        for r in READINGS_OF_TIES
                    ]
                )
        for some, full in zip(*found, strict=True):
            assert some == full or (not some.settled and set(some.winners) <= set(full.winners))
            opened += not some.settled
    assert bool(opened) == (listed == 3)


@pytest.mark.parametrize("limit", [0, 1, 100_000])
@pytest.mark.parametrize("target", TARGETS)
def test_a_search_with_little_work_left_guesses_nothing(target, limit):
    stayed_open = 0
    for protocol, (m, n) in SIZES.items():
        query = query_of(random_votes(protocol, m, n), target, 25)
        whole, some = PanelSearch(query), PanelSearch(query, limit=limit)
        for reading in READINGS_OF_TIES:
            full, found = (one.possible(exempt=1, reading=reading) for one in (whole, some))
            assert found == full or (not found.settled and set(found.winners) <= set(full.winners))
            points = [one.breakdown(winner=None, reading=reading) for one in (whole, some)]
            assert points[1] in (points[0], NOT_SETTLED)
            stayed_open += not found.settled
    assert stayed_open


@pytest.mark.parametrize(("target", "units"), [row.split(" ", 1) for row in WORK.split("\n")[1:-1]])
def test_the_units_of_work_that_decide_what_stays_open_do_not_change(target, units, budgets):
    found = []
    for way, limit in ((searched_alone, 4_000_000), (nullcontext, 600_000)):
        for protocol, (m, n) in SIZES.items():
            budgets.clear()
            search = PanelSearch(query_of(random_votes(protocol, m, n), target, 25), limit=limit)
            with way():
                for exempt in (0, 2):
                    for reading in READINGS_OF_TIES:
                        search.possible(exempt=exempt, reading=reading)
                search.breakdown(winner=None, reading="fallback")
            found.append(spent(budgets))
    assert found == [*map(int, units.split())]
