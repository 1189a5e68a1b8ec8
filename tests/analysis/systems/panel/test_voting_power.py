from itertools import combinations, permutations, product
from random import Random

import polars as pl
import pytest

from tests.analysis.panel_runs import panel_episode, panel_source, panel_turn
from tutorsim.analysis.ballots.recount_source import open_source
from tutorsim.analysis.statistics.intervals_and_tests import NotEstimable, share_over_tasks
from tutorsim.analysis.systems.panel.self_support_labels_pivotality_margins import (
    effective_votes,
    margins,
    pivotality,
)
from tutorsim.ballot_reading_and_decisions import decide, masses_of
from tutorsim.vocabularies import PROTOCOLS

S, MI, MO, ME = "scaffolding", "misconception", "motivation", "metacognitive"
ROLES = (S, MI, MO, ME)


@pytest.fixture
def one_turn():
    def build(*args, source=None, **turn):
        return panel_source(panel_episode(panel_turn(*args, **turn)), **(source or {}))

    return build


def test_voters_that_always_agree_are_one_vote(one_turn):
    [row] = effective_votes(one_turn("ranked", dict.fromkeys(ROLES, ROLES)))
    assert (row.voters, row.correlation, row.votes) == (4, pytest.approx(1), pytest.approx(1))


def test_two_that_agree_and_one_that_does_not_are_worth_three(one_turn):
    three = ROLES[:3]
    source = one_turn(
        "simple",
        {S: S, MI: S, MO: MI},
        roles=three,
        source={"roles": three, "fallback_order": three},
    )
    [row] = effective_votes(source)
    # Centred (⅔,−⅓,−⅓) twice and (−⅓,⅔,−⅓): correlations 1, −½, −½; 3 / (1 + 2 · 0).
    assert row.correlation == pytest.approx(0)
    assert row.votes == pytest.approx(3)


def test_opposites_and_ballots_that_tell_nothing_apart_have_no_number_of_votes(one_turn):
    [row] = effective_votes(one_turn("ranked", {S: ROLES, MI: ROLES[::-1]}))
    assert row.correlation == pytest.approx(-1)
    assert isinstance(row.votes, NotEstimable)
    [row] = effective_votes(one_turn("approval", {S: ROLES, MI: ()}))
    assert isinstance(row.correlation, NotEstimable)
    assert row.votes == row.correlation


def test_a_dropped_ballot_can_leave_a_tie_that_only_the_order_breaks(one_turn):
    order = (MI, S, MO, ME)
    source = one_turn(
        "simple", {S: S, MI: S, MO: MI, ME: ME}, order=order, source={"fallback_order": order}
    )
    # S 2, MI 1, ME 1. Without S's or MI's ballot S, MI and ME are tied and the order says MI.
    assert pivotality(source).drop("low", "high").rows() == [
        ("simple", ME, 1, 0, 0),
        ("simple", MI, 1, 1, 0),
        ("simple", MO, 1, 0, 0),
        ("simple", S, 1, 1, 0),
    ]


def test_a_voter_is_dropped_from_the_tie_round_too(one_turn):
    source = one_turn(
        "approval",
        {S: (S, MI), MI: (S, MI), MO: (S, MI), ME: (S, MI)},
        tie={S: (S,), MI: (MI,), MO: (MI,), ME: ()},
    )
    # The same two stay tied without anybody. Tie round S 1, MI 2: without MI or MO it is 1 : 1,
    # and the order says S. Without S or ME MI stays ahead.
    values = [row[1:5] for row in pivotality(source).rows()]
    assert values == [(ME, 1, 0, 0), (MI, 1, 1, 1), (MO, 1, 1, 1), (S, 1, 0, 0)]


def test_a_ballot_that_breaks_the_final_tie_is_pivotal_for_certain(one_turn):
    source = one_turn("simple", {S: S, MI: S, MO: MI, ME: MI}, tie={S: S, MI: MI, MO: MI, ME: MI})
    # Delivered MI by tie round. Without MO or ME it is S 2, MI 1; without S or MI, MI wins anyway.
    found = {row[1]: row[3:5] for row in pivotality(source).rows()}
    assert found == {S: (0, 0), MI: (0, 0), MO: (1, 1), ME: (1, 1)}


def test_a_share_of_pivotal_turns_has_its_interval_over_tasks():
    # S alone leads by its own ballot, in two of the three turns of every second task.
    own, clear = {S: S, MI: S, MO: MI, ME: ME}, dict.fromkeys((S, MI, MO, ME), S)
    order = (MI, S, MO, ME)
    turns = {
        task: [panel_turn("simple", votes, turn=i + 1, order=order) for i, votes in enumerate(told)]
        for task, told in zip("abcdef", [[own, own, clear], [clear] * 3] * 3, strict=True)
    }
    source = panel_source(
        *(panel_episode(*made, task=task) for task, made in turns.items()), fallback_order=order
    )
    [row] = [row for row in pivotality(source).rows(named=True) if row["voter"] == S]
    assert (row["turns"], row["pivotal"]) == (18, 6)
    hits = [1.0, 1.0, 0.0, *[0.0] * 3] * 3
    share = share_over_tasks(hits, [i // 3 for i in range(18)])
    assert (row["low"], row["high"]) == (share.low, share.high)  # type: ignore[union-attr]


@pytest.mark.parametrize(("leader", "other"), [("x", "y"), ("y", "x")])
def test_without_an_order_no_power_hangs_on_how_candidates_are_sorted(tmp_path, leader, other):
    """A tie has no winner to change, and takes the win from who had it."""
    votes = {1: (leader, other), 2: (leader, leader, other), 3: (leader, leader, leader, other)}
    rows = [f"{turn},{v},{c}" for turn, cast in votes.items() for v, c in enumerate(cast)]
    path = tmp_path / "votes.csv"
    path.write_text("\n".join(["turn,voter,choice", *rows]), encoding="utf-8")
    source = open_source(path)
    counted = [row[1:5] for row in pivotality(source).rows()]
    assert counted == [("0", 2, 1, 0), ("1", 2, 1, 0), ("2", 2, 0, 0), ("3", 1, 0, 0)]
    assert margins(source).filter(pl.col("turn") > 1)["margin"].to_list() == [1, 1]


def test_a_turn_with_a_tied_final_vote_hangs_on_one_ballot(one_turn):
    even = {S: S, MI: S, MO: MI, ME: MI}
    [row] = margins(one_turn("simple", even, tie=even)).rows(named=True)
    assert row["margin"] == 1


@pytest.mark.parametrize(("leader", "other", "ballots"), [(MI, S, 1), (S, MI, 2)])
def test_a_tie_changes_the_winner_where_the_other_stands_first(one_turn, leader, other, ballots):
    """Three to one, of which one ballot makes a tie."""
    final = dict(zip(ROLES, (leader, leader, leader, other), strict=True))
    [row] = margins(one_turn("simple", final)).rows(named=True)
    assert row["margin"] == ballots


def test_without_ballots_there_is_no_margin(one_turn):
    [row] = margins(one_turn("simple", dict.fromkeys(ROLES))).rows(named=True)
    assert row["margin"] is None


BUDGET = 3


def every_mass(protocol, m):
    if protocol == "simple":
        yield from (tuple(int(i == c) for i in range(m)) for c in range(m))
    elif protocol == "ranked":
        yield from permutations(range(m))
    else:
        most = BUDGET if protocol == "cumulative" else 1
        yield from (
            mass
            for mass in product(range(most + 1), repeat=m)
            if protocol == "approval" or sum(mass) == BUDGET
        )


def choice_of(protocol, mass):
    by_mass = sorted(mass, key=lambda c: -mass[c])
    return {
        "simple": by_mass[0],
        "ranked": tuple(by_mass),
        "cumulative": mass,
        "approval": tuple(c for c in mass if mass[c]),
    }[protocol]


def fewest_by_trying(masses, roles, protocol):
    logged = decide(masses, roles, order=roles).winner
    every = [dict(zip(roles, mass, strict=True)) for mass in every_mass(protocol, len(roles))]
    for k in range(1, len(masses) + 1):
        for changed in combinations(range(len(masses)), k):
            for new in product(every, repeat=k):
                tried = list(masses)
                for i, ballot in zip(changed, new, strict=True):
                    tried[i] = ballot
                if decide(tried, roles, order=roles).winner != logged:
                    return k
    return None


@pytest.mark.costly
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_margins_agree_with_trying_every_change(one_turn, protocol):
    random = Random(protocol)
    roles = ROLES[:3]
    every = list(every_mass(protocol, 3))
    for _ in range(20):
        voters = ROLES[: random.choice([1, 2, 3])]
        masses = [dict(zip(roles, random.choice(every), strict=True)) for _ in voters]
        final = {v: choice_of(protocol, mass) for v, mass in zip(voters, masses, strict=True)}
        assert [masses_of(c, roles, protocol=protocol) for c in final.values()] == masses
        source = one_turn(
            protocol,
            final,
            roles=roles,
            source={"roles": roles, "fallback_order": roles, "cumulative_budget": BUDGET},
        )
        [row] = margins(source).rows(named=True)
        assert row["margin"] == fewest_by_trying(masses, roles, protocol)
