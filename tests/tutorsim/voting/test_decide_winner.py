"""Decisions, with hand tallies."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tutorsim.vocabularies import DEFAULT_ROLES, PROTOCOLS
from tutorsim.voting import decide, first_in_order, leaders, masses_of, tally

S, M, V, C = DEFAULT_ROLES


def cast(protocol, *choices, among=DEFAULT_ROLES):
    return [masses_of(choice, among, protocol=protocol) for choice in choices]


def test_the_largest_sum_wins():
    # m 2, v 1, c 1
    decision = decide(cast("simple", M, M, V, C), DEFAULT_ROLES, order=DEFAULT_ROLES)
    assert decision.tallies == {S: 0, M: 2, V: 1, C: 1}
    assert (decision.winner, decision.decided_by, decision.tied_set) == (M, "vote", ())
    assert [step.step for step in decision.steps] == ["vote_final"]
    assert decision.undecided == (M,)


def test_borda_points_count_down_to_zero():
    # s: 3+0+1+2 = 6, m: 2+3+0+3 = 8, v: 1+2+3+1 = 7, c: 0+1+2+0 = 3
    ballots = cast("ranked", (S, M, V, C), (M, V, C, S), (V, C, S, M), (M, S, V, C))
    decision = decide(ballots, DEFAULT_ROLES, order=DEFAULT_ROLES)
    assert decision.tallies == {S: 6, M: 8, V: 7, C: 3}
    assert decision.winner == M


def test_points_and_approvals_add_up():
    points = [{S: 10, M: 5, V: 5, C: 5}, {S: 0, M: 0, V: 25, C: 0}, {S: 6, M: 6, V: 6, C: 7}]
    decision = decide(points, DEFAULT_ROLES, order=DEFAULT_ROLES)
    assert decision.tallies == {S: 16, M: 11, V: 36, C: 12}
    approved = cast("approval", (S, C), (), (C,), (M, S, C))
    assert decide(approved, DEFAULT_ROLES, order=DEFAULT_ROLES).tallies == {S: 2, M: 1, V: 0, C: 3}


def test_a_tie_round_that_resolves_decides():
    final = cast("simple", S, S, V, V)
    tie = cast("simple", V, V, S, V, among=(S, V))  # v 3, s 1
    decision = decide(final, DEFAULT_ROLES, order=DEFAULT_ROLES, tie_round=tie)
    assert (decision.winner, decision.decided_by, decision.tied_set) == (V, "tie_round", (S, V))
    assert [(step.step, step.remaining) for step in decision.steps] == [
        ("vote_final", (S, V)),
        ("tie_vote", (V,)),
    ]
    assert decision.steps[1].tallies == {S: 1, V: 3}
    assert decision.tallies == {S: 2, M: 0, V: 2, C: 0}


def test_a_tie_that_narrows_from_four_to_two_falls_back_among_those_two():
    final = cast("simple", S, M, V, C)
    tie = cast("simple", V, C, V, C)  # v 2, c 2: the order's first two are out
    decision = decide(final, DEFAULT_ROLES, order=DEFAULT_ROLES, tie_round=tie)
    assert decision.tied_in_vote == DEFAULT_ROLES
    assert decision.tied_set == decision.undecided == (V, C)
    assert (decision.winner, decision.decided_by) == (V, "fallback")
    reverse = decide(final, DEFAULT_ROLES, order=(C, V, M, S), tie_round=tie)
    assert reverse.winner == C
    assert reverse.steps[-1].model_dump() == {
        "step": "fallback",
        "tallies": None,
        "remaining": (C,),
    }


def test_a_tie_that_holds_goes_to_the_order():
    final = cast("simple", M, M, C, C)
    tie = cast("simple", C, M, M, C, among=(M, C))
    decision = decide(final, DEFAULT_ROLES, order=(V, C, S, M), tie_round=tie)
    assert (decision.winner, decision.decided_by, decision.undecided) == (C, "fallback", (M, C))


def test_without_a_tie_round_the_order_decides_at_once():
    decision = decide(cast("simple", M, C), DEFAULT_ROLES, order=(C, V, S, M))
    assert (decision.winner, decision.decided_by) == (C, "fallback")
    assert [step.step for step in decision.steps] == ["vote_final", "fallback"]


def test_a_tie_round_is_not_looked_at_when_nothing_was_tied():
    tie = cast("simple", C, among=(M, C))
    decision = decide(cast("simple", M), DEFAULT_ROLES, order=DEFAULT_ROLES, tie_round=tie)
    assert (decision.winner, decision.decided_by) == (M, "vote")


@pytest.mark.parametrize("ballots", [[], [{}, {}, {}, {}]])
def test_everybody_is_tied_when_all_abstain(ballots):
    decision = decide(ballots, DEFAULT_ROLES, order=(V, C, S, M), tie_round=ballots)
    assert decision.tied_set == decision.undecided == DEFAULT_ROLES
    assert (decision.winner, decision.decided_by) == (V, "fallback")


def choices(protocol):
    one = st.sampled_from(DEFAULT_ROLES)
    points = st.lists(st.integers(0, 25), min_size=3, max_size=3).map(sorted)
    return {
        "simple": one,
        "ranked": st.permutations(DEFAULT_ROLES).map(tuple),
        "approval": st.sets(one).map(lambda chosen: tuple(sorted(chosen))),
        "cumulative": points.map(
            lambda cut: dict(
                zip(
                    DEFAULT_ROLES,
                    (cut[0], cut[1] - cut[0], cut[2] - cut[1], 25 - cut[2]),
                    strict=True,
                )
            )
        ),
    }[protocol]


@pytest.mark.parametrize("protocol", PROTOCOLS)
@given(st.data())
def test_the_winner_leads_and_voters_are_interchangeable(protocol, data):
    ballots = cast(protocol, *data.draw(st.lists(choices(protocol) | st.none(), max_size=6)))
    tie = cast(protocol, *data.draw(st.lists(choices(protocol), max_size=6)))
    order = data.draw(st.permutations(DEFAULT_ROLES))
    decision = decide(ballots, DEFAULT_ROLES, order=order, tie_round=tie)
    standing = leaders(tally(ballots, DEFAULT_ROLES))
    assert decision.winner in standing
    assert decision.winner in decision.undecided
    assert set(decision.undecided) <= set(standing)
    assert (decision.decided_by == "vote") == (len(standing) == 1)
    if decision.decided_by == "fallback":
        assert decision.winner == first_in_order(decision.undecided, order)
        assert len(decision.undecided) > 1
    shuffled = data.draw(st.permutations(ballots))
    assert decide(shuffled, DEFAULT_ROLES, order=order, tie_round=tie[::-1]) == decision


@given(st.permutations(DEFAULT_ROLES), st.lists(st.sampled_from(DEFAULT_ROLES), max_size=5))
def test_the_order_of_candidates_changes_no_winner(candidates, named):
    ballots = cast("simple", *named)
    one = decide(ballots, DEFAULT_ROLES, order=DEFAULT_ROLES)
    other = decide(ballots, candidates, order=DEFAULT_ROLES)
    assert (one.winner, one.tallies, set(one.tied_set)) == (
        other.winner,
        other.tallies,
        set(other.tied_set),
    )


# --- Sums and ties --------------------------------------------------------------------------------

ROLES = ("s", "m", "v", "c")
votes = st.lists(st.dictionaries(st.sampled_from(ROLES), st.integers(0, 25)), max_size=8)


def test_masses_add_up_and_absent_candidates_stay_at_zero():
    assert tally([{"m": 2, "v": 1}, {}, {"m": 1}], ROLES) == {"s": 0, "m": 3, "v": 1, "c": 0}


def test_mass_for_somebody_who_does_not_stand_is_not_counted():
    assert tally([{"s": 3, "v": 1}], ("v", "c")) == {"v": 1, "c": 0}


def test_no_ballots_leave_everybody_leading():
    assert leaders(tally([], ROLES)) == ROLES


def test_leaders_are_all_with_the_largest_total():
    assert leaders({"s": 2, "m": 3, "v": 3, "c": 0}) == ("m", "v")


@given(votes, st.randoms(use_true_random=False))
def test_the_order_of_ballots_does_not_matter(ballots, random):
    shuffled = list(ballots)
    random.shuffle(shuffled)
    assert tally(shuffled, ROLES) == tally(ballots, ROLES)


def test_the_first_of_the_tied_in_the_order_is_taken():
    assert first_in_order(("s", "v"), ("c", "v", "m", "s")) == "v"


def test_an_order_without_the_tied_is_an_error_and_no_silent_pick():
    with pytest.raises(ValueError, match="no candidate"):
        first_in_order(("s",), ("m", "v"))
