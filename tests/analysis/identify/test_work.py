"""Elections of many voters: what is counted, what is searched, and what is left open."""

from random import Random
from sys import getsizeof
from weakref import ref

import pytest

from tests.analysis.identify.conftest import random_profile, random_votes, spent
from tests.reference.identifier import Identifier
from tutorsim.analysis.ballots.vote_arrays_and_profiles import Profile
from tutorsim.analysis.counting.names_and_parameters_of_rules import ANY_NUMBER, TARGETS
from tutorsim.analysis.identify import (
    ballots_voters_may_cast_and_best_per_candidate,
    win_conditions,
)
from tutorsim.analysis.identify.ballots_voters_may_cast_and_best_per_candidate import (
    Domain,
    approved_sets,
)
from tutorsim.analysis.identify.possible_winners import (
    NOT_SETTLED,
    READINGS_OF_TIES,
    WORK_LIMIT,
    PanelSearch,
    breakdown_point,
    query_of,
)
from tutorsim.vocabularies import PROTOCOLS

pytestmark = pytest.mark.costly


OVERSHOOT = 1.3
"""Work is counted as it is done, so that the last step may pass the limit."""


def rankings(seed, m, n):
    random = Random(seed)
    return Profile("ranked", m, tuple(tuple(random.sample(range(m), m)) for _ in range(n)))


UNTOLD = ("cumulative", "approval", "score", "median_score")
"""Rules whose ballots a ranking does not tell."""


@pytest.mark.parametrize("target", [t for t in TARGETS if t not in UNTOLD])
def test_known_ballots_are_counted_and_not_searched(target, budgets):
    found = Identifier(budget=25, limit=1).possible(
        rankings(1, 20, 300), target, exempt=0, reading="fallback"
    )
    assert found.settled
    assert len(found.winners) == 1
    assert spent(budgets) == 0


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(("m", "n"), [(4, 100), (5, 60)])
def test_many_voters_with_few_candidates_settle(target, m, n, budgets):
    profile, identifier = rankings(2, m, n), Identifier(budget=25)
    for reading in ("set", "fallback"):
        found = [identifier.possible(profile, target, exempt=k, reading=reading) for k in range(3)]
        assert all(one.settled for one in found)
        winner = found[0].necessary
        if winner is not None:
            lost = breakdown_point(
                lambda k, winner=winner, reading=reading: identifier.contested(  # type: ignore[misc]
                    profile, target, winner=winner, exempt=k, reading=reading
                ),
                voters=n,
            )
            assert lost > 0
    assert spent(budgets) < 2 * WORK_LIMIT


@pytest.mark.parametrize("target", ["ranked", pytest.param("copeland", marks=pytest.mark.slow)])
def test_too_many_voters_are_left_open_within_the_budget(target, budgets):
    profile, identifier = rankings(3, 20, 1000), Identifier(budget=25)
    found = {k: identifier.possible(profile, target, exempt=k, reading="set") for k in (0, 15)}
    assert found[0].settled
    assert not found[15].settled
    assert found[15].necessary is None
    assert set(found[0].winners) <= set(found[15].winners)
    assert all(budget.given <= WORK_LIMIT for budget in budgets)
    assert spent(budgets) < OVERSHOOT * WORK_LIMIT


@pytest.mark.parametrize("target", ["ranked", "copeland", "schulze", "instant_runoff"])
def test_elections_show_of_many_voters_that_everybody_may_win(target, budgets):
    found = Identifier(budget=25).possible(rankings(3, 20, 1000), target, exempt=60, reading="set")
    assert found == (tuple(range(20)), True)
    assert spent(budgets) < WORK_LIMIT


def test_a_search_that_stayed_open_is_not_asked_again(budgets):
    search = PanelSearch(query_of(rankings(6, 8, 8), "copeland", 25), limit=12_000_000)
    before = search.possible(exempt=1, reading="set")
    assert not before.settled
    assert all(budget.left > 0 for budget in budgets)
    work = spent(budgets)
    assert search.possible(exempt=1, reading="set") == before
    assert spent(budgets) == work


@pytest.mark.parametrize("m", [62, 63, 64, 65])
@pytest.mark.parametrize("target", ["simple", "instant_runoff"])
def test_very_many_candidates_have_the_winners_of_a_few(target, m):
    """Two vote for the last, who wins; the third vote is for the first."""
    votes = ((*[0] * (m - 1), 1),) * 2 + ((1, *[0] * (m - 1)),)
    found = Identifier(budget=25).possible(
        Profile("simple", m, votes), target, exempt=0, reading="set"
    )
    assert found.winners == (m - 1,)


def test_settled_answers_stay_when_the_budget_runs_out(budgets):
    search = PanelSearch(query_of(rankings(5, 4, 30), "minimax", 25))
    before = search.possible(exempt=1, reading="set")
    for budget in budgets:
        budget.left = 0
    assert before.settled
    assert search.possible(exempt=1, reading="set") == before


def test_options_left_out_never_settle_a_refusal(monkeypatch):
    random = Random(7)
    drawn = [
        (random_profile(random, random.choice(PROTOCOLS), 4, 3, 6), random.choice(TARGETS))
        for _ in range(80)
    ]

    def answers():
        for module in (ballots_voters_may_cast_and_best_per_candidate, win_conditions):
            for cached in vars(module).values():
                getattr(cached, "cache_clear", lambda: None)()
        identifier = Identifier(budget=6)
        return [
            identifier.possible(profile, target, exempt=k, reading="set")
            for profile, target in drawn
            for k in (0, 1)
        ]

    whole = answers()
    for room in ("MANY", "ALL_OPTIONS"):
        monkeypatch.setattr(win_conditions.dom, room, 2)
    monkeypatch.setattr("tutorsim.analysis.identify.win_conditions._SOME", 2)
    some = answers()
    monkeypatch.undo()
    assert whole == answers()
    for every, part in zip(whole, some, strict=True):
        assert set(part.winners) <= set(every.winners)
        assert not part.settled or part == every, (every, part)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(
    ("protocol", "m", "n"), [("cumulative", 10, 10), ("approval", 8, 4), ("simple", 20, 40)]
)
def test_work_stays_within_its_budget(protocol, target, m, n, budgets):
    search = PanelSearch(query_of(random_votes(protocol, m, n), target, 25))
    for reading in READINGS_OF_TIES:
        for k in range(3):
            search.possible(exempt=k, reading=reading)
        search.breakdown(winner=0, reading=reading)
    assert sum(budget.given for budget in budgets) == 2 * WORK_LIMIT
    assert spent(budgets) < OVERSHOOT * 2 * WORK_LIMIT


def test_a_breakdown_point_that_takes_too_much_is_not_settled():
    search = PanelSearch(query_of(rankings(8, 6, 9), "copeland", 25), limit=10)
    [winner] = search.possible(exempt=0, reading="fallback").winners
    assert search.breakdown(winner=winner, reading="fallback") == NOT_SETTLED


def test_one_hundred_alike_voters_lose_their_winner_to_half_of_them():
    alike = Profile("ranked", 4, ((3, 2, 1, 0),) * 100)
    found = {t: PanelSearch(query_of(alike, t, 25)) for t in ("simple", "schulze", "bucklin")}
    points = {t: one.breakdown(winner=0, reading="fallback") for t, one in found.items()}
    assert points == {"simple": 51, "schulze": 51, "bucklin": 50}


def test_what_many_candidates_may_be_approved_takes_little_room():
    """A set of 300 is 300 bits; there are as many sets as candidates, for every voter."""
    domain = Domain("choice", tuple((c,) for c in range(300)))
    sets = approved_sets(domain, 300, 0, ANY_NUMBER)
    assert len({core | free for core, free in sets}) == 300
    assert sum(map(getsizeof, {id(one): one for pair in sets for one in pair}.values())) < 50_000


def test_the_sums_of_a_search_go_with_it():
    """Those of many voters are large, and no question about another rule needs them."""
    query = query_of(random_votes("simple", 5, 6), "cumulative", 25)
    search = PanelSearch(query)
    search.possible(exempt=0, reading="set")
    held = [ref(progress._few[0][0].sums) for progress in search._progress.values()]
    assert held
    assert all(one() is not None for one in held)
    del search
    assert [one for one in held if one() is not None] == []
