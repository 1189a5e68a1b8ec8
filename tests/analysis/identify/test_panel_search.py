"""Possible winners: hand cases of the consistency table, and a plain enumeration."""

import tracemalloc
from random import Random

import numpy as np
import pytest

from tests.analysis.identify.conftest import completions_of, random_profile, searched_alone
from tests.reference.completions import possible_by_enumeration, sets_by_enumeration
from tests.reference.identifier import Identifier
from tutorsim.analysis.ballots.vote_arrays_and_profiles import LEFT_OUT, Profile
from tutorsim.analysis.counting.names_and_parameters_of_rules import TARGETS, Approvals
from tutorsim.analysis.identify import possible_winners, win_conditions
from tutorsim.analysis.identify.ballots_voters_may_cast_and_best_per_candidate import (
    MANY,
    Domain,
    pair_options,
)
from tutorsim.analysis.identify.possible_winners import (
    NEVER,
    NOT_SETTLED,
    WORK_LIMIT,
    PanelSearch,
    breakdown_point,
    elected,
    query_of,
)
from tutorsim.analysis.identify.search_for_votes_that_meet_a_win_condition import (
    WorkBudget,
    linear_condition,
    with_subsets,
)
from tutorsim.analysis.identify.win_conditions import (
    NOBODY,
    OPTIONS,
    PAIRWISE_CONDITIONS,
    Query,
    _most,
    nobody_condition,
)
from tutorsim.vocabularies import PROTOCOLS


def possible(protocol, target, *ballots, exempt=0, budget=25):
    """Possible winners when the order breaks ties."""
    profile = Profile(protocol, len(next(b for b in ballots if b)), ballots)
    found = Identifier(budget=budget).possible(profile, target, exempt=exempt, reading="fallback")
    assert found.settled
    return found.winners


def test_a_ranking_tells_its_top_and_points_tell_their_largest():
    assert possible("ranked", "simple", (0, 2, 1), (1, 2, 0), (2, 1, 0)) == (1,)
    assert possible("cumulative", "simple", (5, 20, 0), (5, 20, 0), (20, 5, 0)) == (1,)
    # Two largest: the voter may name either.
    assert possible("cumulative", "simple", (10, 10, 5)) == (0, 1)


def test_a_single_choice_leaves_the_rest_of_the_ranking_open():
    # One ballot: its choice is first whatever follows.
    assert possible("simple", "ranked", (0, 1, 0)) == (1,)
    # Two ballots for 0 and 1: 2 is second on both at best, 1 + 1 points, a tie with 0 at 2 + 0.
    assert possible("simple", "ranked", (1, 0, 0), (0, 1, 0)) == (0, 1)
    # Four ballots, two each: 2 second on all has 4; 0 and 1 have 4 each. The order is against it.
    twice = [(1, 0, 0), (0, 1, 0)] * 2
    assert possible("simple", "ranked", *twice) == (0, 1)
    # Put first in the order, the same candidate is possible.
    swapped = [(0, 1, 0), (0, 0, 1)] * 2
    assert possible("simple", "ranked", *swapped) == (0, 1, 2)


def test_points_may_tie_along_a_ranking():
    # Even points 9, 8, 8 agree with the ranking; nobody but the first can lead.
    assert possible("ranked", "cumulative", (2, 1, 0)) == (0,)
    # 24 points split 8, 8, 8: all tie, the order decides, and it favours 0, the last-ranked.
    assert possible("ranked", "cumulative", (0, 1, 2), budget=24) == (0, 1, 2)


def test_an_empty_approval_may_stand_for_any_vote():
    assert possible("approval", "simple", (0, 0, 0)) == (0, 1, 2)
    assert possible("approval", "ranked", (0, 0, 0)) == (0, 1, 2)
    assert possible("approval", "approval", (0, 0, 0)) == (0,)


def test_a_ranking_approves_a_prefix_of_one_or_more():
    # 1, then 2, then 0: {1} and {1, 2} leave 1 the first of the order, {0, 1, 2} leaves 0.
    assert possible("ranked", "approval", (0, 2, 1)) == (0, 1)
    # Where the first voter approves of all, the second decides.
    assert possible("ranked", "approval", (1, 2, 0), (1, 0, 2)) == (0, 1, 2)


def test_abstentions_cast_nothing_under_any_target():
    for target in TARGETS:
        with_abstention = possible("ranked", target, (2, 1, 0), (0, 2, 1), None)
        assert with_abstention == possible("ranked", target, (2, 1, 0), (0, 2, 1))


def test_where_all_abstain_everybody_is_tied():
    nobody = Profile("ranked", 3, (None, None))
    identifier = Identifier(budget=25)
    for target in TARGETS:
        found = identifier.possible(nobody, target, exempt=0, reading="set").winners
        assert found == ((NOBODY,) if target == "condorcet" else (0, 1, 2))
        first = identifier.possible(nobody, target, exempt=0, reading="fallback").winners
        assert first == ((NOBODY,) if target == "condorcet" else (0,))


def test_an_exempt_voter_may_have_cast_anything():
    unanimous = [(1, 0, 0)] * 3
    assert possible("simple", "simple", *unanimous, exempt=1) == (0,)
    assert possible("simple", "simple", *unanimous, exempt=2) == (0, 1, 2)
    # An abstaining voter is a voter: exempt, it may have cast a ballot.
    nobody = Profile("simple", 3, (None, None))
    found = Identifier(budget=25).possible(nobody, "simple", exempt=1, reading="fallback")
    assert found.winners == (0, 1, 2)


def test_sets_grow_with_the_exempt_voters():
    random = Random(11)
    identifier = Identifier(budget=5)
    for _ in range(60):
        protocol, target = random.choice(PROTOCOLS), random.choice(TARGETS)
        profile = random_profile(random, protocol, random.randint(2, 4), random.randint(1, 4), 5)
        for reading in ("set", "fallback"):
            sets = [
                set(identifier.possible(profile, target, exempt=k, reading=reading).winners)
                for k in range(4)
            ]
            assert sets[0] <= sets[1] <= sets[2] <= sets[3]


def breakdown(profile, target, winner):
    identifier = Identifier(budget=25)
    return breakdown_point(
        lambda k: identifier.contested(
            profile, target, winner=winner, exempt=k, reading="fallback"
        ),
        voters=len(profile.ballots),
    )


def test_the_breakdown_point_is_the_first_loss_of_the_necessary_winner():
    # Two of four changed: 0 ties 2:2 and stands first in the order.
    assert breakdown(Profile("simple", 3, ((0, 1, 0),) * 4), "simple", 1) == 2
    # One changed ballot makes it 1:2.
    assert breakdown(Profile("simple", 2, ((1, 0), (1, 0), (0, 1))), "simple", 0) == 1
    # Nobody can beat the only candidate.
    assert breakdown(Profile("simple", 1, ((1,), (1,))), "ranked", 0) == NEVER


def test_a_breakdown_point_behind_an_unsettled_question_is_unknown():
    answers = {1: False, 2: None, 3: True}
    assert breakdown_point(answers.__getitem__, voters=3) == NOT_SETTLED
    answers[2] = False
    assert breakdown_point(answers.__getitem__, voters=3) == 3
    assert breakdown_point(answers.__getitem__, voters=2) == NEVER


def test_contested_says_whether_another_outcome_is_possible():
    random = Random(13)
    identifier = Identifier(budget=4)
    for _ in range(60):
        protocol, target = random.choice(PROTOCOLS), random.choice(TARGETS)
        profile = random_profile(random, protocol, random.randint(2, 4), random.randint(1, 4), 4)
        for k in range(3):
            found = identifier.possible(profile, target, exempt=k, reading="set").winners
            for winner in range(profile.size):
                assert identifier.contested(
                    profile, target, winner=winner, exempt=k, reading="set"
                ) == bool(set(found) - {winner})


def test_too_costly_is_said_and_never_guessed():
    profile = Profile("simple", 5, tuple(tuple(int(c == v) for c in range(5)) for v in range(5)))
    full = Identifier(budget=25).possible(profile, "copeland", exempt=0, reading="set")
    starved = Identifier(budget=25, limit=30).possible(profile, "copeland", exempt=0, reading="set")
    assert full.settled
    assert not starved.settled
    assert starved.necessary is None
    assert set(starved.winners) <= set(full.winners)


@pytest.mark.usefixtures("with_and_without_elections")
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_plain_enumeration_finds_the_same_winners(protocol, target):
    random = Random(f"{protocol} {target}")
    compared = 0
    while compared < 30:
        m, n, budget = random.randint(3, 5), random.randint(1, 5), random.randint(1, 5)
        profile = random_profile(random, protocol, m, n, budget)
        exempt = random.choice((0, 0, 1, 2))
        if completions_of(profile, target, budget, exempt) > 400:
            continue
        compared += 1
        sets = sets_by_enumeration(profile, target, budget=budget, exempt=exempt)
        identifier = Identifier(budget=budget)
        for reading in ("set", "fallback"):
            found = identifier.possible(profile, target, exempt=exempt, reading=reading)
            assert found.settled
            assert found.winners == possible_by_enumeration(sets, reading, m), (profile, exempt)


UNTOLD = ("cumulative", "score", "median_score")
"""Rules whose ballots a ranking does not tell."""


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_elections_that_favour_somebody_agree_with_the_ballots_cast(protocol, target):
    random = Random(f"{protocol} {target}")
    compared = 0
    while compared < 20:
        m, n, budget = random.randint(3, 5), random.randint(1, 4), random.randint(1, 5)
        profile = random_profile(random, protocol, m, n, budget)
        exempt = random.choice((0, 1, 2))
        if completions_of(profile, target, budget, exempt) > 400:
            continue
        compared += 1
        sets = sets_by_enumeration(profile, target, budget=budget, exempt=exempt)
        for each in (False, True):
            work = WorkBudget(WORK_LIMIT)
            query = query_of(profile, target, budget)
            held = elected(query, range(m), exempt, each=each, budget=work)
            assert held <= sets, (profile, exempt)
            assert bool(held) == (target not in UNTOLD) == (work.left < WORK_LIMIT)


def test_elections_favour_each_candidate_as_far_as_they_can():
    # Two votes for 0 and 1: each wins where both of the other's voters put it second, and 2 leads
    # nowhere. One voter exempt may name anybody.
    query = query_of(Profile("simple", 3, ((1, 0, 0), (0, 1, 0))), "ranked", 25)
    work = WorkBudget(WORK_LIMIT)
    held = elected(query, (0, 1, 2), 0, each=False, budget=work)
    assert held == {frozenset({0}), frozenset({1}), frozenset({0, 1, 2})}
    assert frozenset({2}) in elected(query, (2,), 1, each=False, budget=work)
    query = query_of(Profile("ranked", 3, ((2, 1, 0),)), Approvals(1, 2), 25)
    assert elected(query, (1,), 0, each=False, budget=work) == {frozenset({0, 1})}  # both


def test_elections_of_many_candidates_hold_one_number_for_each_and_each_voter():
    m = 400
    choices = tuple(tuple(int(c == named) for c in range(m)) for named in range(m))
    query = query_of(Profile("simple", m, choices), "simple", 25)
    tracemalloc.start()
    assert elected(query, (0,), 0, each=False, budget=WorkBudget(10**12)) == {frozenset(range(m))}
    held = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert held < 100 * m * m  # bytes; one for each pair of candidates and voter is 64 million


@pytest.mark.parametrize(
    "condition", [*(rule(2, (), 5) for rule in PAIRWISE_CONDITIONS.values()), nobody_condition(5)]
)
def test_large_margins_decide_as_small_ones_do(condition):
    random = np.random.default_rng(3)
    low = random.integers(-4, 3, (400, 10))
    high = low + random.integers(0, 4, (400, 10))
    opened = condition.open(low, high)
    assert 0 < opened.sum() < 400
    assert (condition.open(100_000 * low, 100_000 * high) == opened).all()
    nearest = condition.distance(low).argsort(kind="stable")
    assert (condition.distance(100_000 * low).argsort(kind="stable") == nearest).all()


def test_sums_are_as_far_from_passing_as_what_they_lack():
    sums = np.array([[1, 0], [2, -1], [5, -2], [3, 0], [4, 1]])
    condition = linear_condition((3, 0))
    assert condition.distance(2 * sums).tolist() == [4, 4, 4, 0, 0]
    assert condition.open(sums, sums).tolist() == [False, False, False, True, True]
    for m in (8, 9):  # three voters' worst leads, over all sets of rivals, with their bounds
        lost = with_subsets(np.full((1, m - 1), -3))
        assert 0 < linear_condition(0 * lost[0]).distance(4 * lost)[0] <= _most((1,), m, 3)


def test_a_linear_test_is_sharpened_by_the_sum_over_every_set_of_columns():
    rows = np.array([[1, 10, 100], [2, 0, 0]])
    assert with_subsets(rows).tolist() == [[1, 10, 100, 11, 101, 110, 111], [2, 0, 0, 2, 2, 0, 2]]


def test_looking_at_a_row_costs_what_its_margins_and_paths_do():
    """Of six candidates; for those that go through all triples, also a share of the cube."""
    costs = {name: rule(2, (), 6).cost for name, rule in PAIRWISE_CONDITIONS.items()}
    assert costs == {"copeland": 36, "minimax": 24, "schulze": 54 + 54}
    assert nobody_condition(6).cost == 24


def test_ballots_that_leave_several_orders_share_the_room_for_options(monkeypatch):
    """Room for 60 of 3 candidates, shared by whoever is exempt and one ballot that is open."""
    room = []
    monkeypatch.setattr(win_conditions.dom, "ALL_OPTIONS", 60)
    monkeypatch.setattr(win_conditions, "_SOME", 1)
    monkeypatch.setitem(
        win_conditions.OPTIONS,
        "pairs",
        lambda d, c, m, _, many: room.append(many) or pair_options(d, c, m, many),
    )
    known, open_ = Domain("order", ((0,), (1,), (2,))), Domain("order", ((0, 1, 2),))
    query = Query("copeland", 3, 25, (None, known, open_))
    win_conditions.sums_of(query)("pairs", 0, None, False)
    assert set(room) == {60 // (3 * 2)}


@pytest.mark.parametrize(
    ("kind", "extra"),
    [
        *(("scores", scores) for scores in ((4, 3, 2, 1, 0), (5, 5, 2, 2, 0), (1, 0, 0, 0, 0))),
        *(("bucklin", depth) for depth in (1, 2, 3)),
        *(("approval", (3, Approvals(*ends))) for ends in ((2, 3), (3, 3), (4, None))),
        *(("cumulative", points) for points in (3, 8, 14)),
        ("pairs", 0),
    ],
)
def test_options_left_out_lie_within_the_bounds(kind, extra):
    """What one quantity can be at least and at most is told exactly where places alone decide."""
    left_out = 0
    two_levels = [((3,), (0, 1, 2, 4)), ((0, 2, 4), (1, 3)), ((4, 1), (0, 2, 3))]
    for levels in [((0, 1, 2, 3, 4),), *two_levels]:
        domain = Domain("choice" if kind == "approval" else "order", levels)
        for c in range(5):
            every, some = (OPTIONS[kind](domain, c, 5, extra, many=many) for many in (MANY, 1))
            assert every.whole
            assert set(map(tuple, some.rows)) <= set(map(tuple, every.rows))
            assert some.whole == (len(every.rows) == 1) or kind == "approval"
            assert (some.low <= every.low).all()
            assert (some.high >= every.high).all()
            if kind in ("scores", "bucklin", "pairs"):
                one_each = slice(4) if kind == "scores" else slice(None)
                assert (some.low[one_each] == every.low[one_each]).all()
                assert (some.high[one_each] == every.high[one_each]).all()
            left_out += not some.whole
    assert left_out


@pytest.mark.usefixtures("with_and_without_elections")
@pytest.mark.parametrize("target", TARGETS)
def test_more_placements_than_are_listed_show_nobody_who_cannot_win(target):
    """Six candidates without a score may stand on any of three levels, in 729 ways."""
    vote, identifier = (9, 0, 5, *[LEFT_OUT] * 6), Identifier(budget=9)
    alone = identifier.possible(Profile("score", 9, (vote,)), target, exempt=0, reading="fallback")
    assert {0} == {0, 1, 2}.intersection(alone.winners)
    votes = Profile("score", 9, (vote, *[(0, 9, *[0] * 7)] * 3))
    if target in ("simple", "condorcet", "cumulative"):  # of points, all may get as many
        found = identifier.possible(votes, target, exempt=0, reading="set")
        assert found == (tuple(range(9)) if target == "cumulative" else (1,), True)


def test_a_runoff_looks_at_each_placement_once_until_everybody_may_win(monkeypatch):
    """Two of five without a score have nine placements; eleven of fourteen have too many."""
    asked, once = [], possible_winners.runoff_sets
    monkeypatch.setattr(
        possible_winners, "runoff_sets", lambda *of, **k: asked.append(of) or once(*of, **k)
    )
    vote, every = (LEFT_OUT, LEFT_OUT, 4, 8, 6), [(*[LEFT_OUT] * 11, 4, 8, 6)]
    for votes, limit, *expected in (
        ([vote[i:] + vote[:i] for i in range(5)], WORK_LIMIT, 1, True),
        ([vote] * 3, WORK_LIMIT, 165, True),  # of 9³, those that differ
        ([vote] * 3, 10**6, 33, False),  # about 30,000 units each
        (every, WORK_LIMIT, 0, False),
    ):
        asked.clear()
        query = query_of(Profile("score", len(votes[0]), tuple(votes)), "instant_runoff", 9)
        with searched_alone():
            found = PanelSearch(query, limit=limit).possible(exempt=0, reading="set")
        assert [len(asked), found.settled] == expected
