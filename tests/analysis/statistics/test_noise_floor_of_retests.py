from collections import Counter
from dataclasses import replace
from fractions import Fraction
from itertools import permutations, product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.analysis.panel_runs import panel_episode, panel_source, panel_turn, votes, with_retest
from tutorsim.analysis.statistics import noise_floor_of_retests as redrawn_panels
from tutorsim.analysis.statistics.intervals_and_tests import (
    Estimate,
    NotEstimable,
    to_json,
    too_few_tasks,
)
from tutorsim.analysis.statistics.noise_floor_of_retests import (
    QUANTITIES,
    NoiseFloor,
    leader_of,
    noise_floor,
    noise_floor_of,
    said,
    stability_of,
    top_of,
)
from tutorsim.ballot_reading_and_decisions import RichBallot
from tutorsim.errors import LogError
from tutorsim.records import BallotRecord, Failure

S, MI, MO, ME = "scaffolding", "misconception", "motivation", "metacognitive"
ROLES = (S, MI, MO, ME)
ONE, TWO = "sciq.t1.novice.simple", "sciq.t2.novice.simple"


@pytest.fixture
def two_turns():
    """Simple voting, one turn in each of two tasks.

    t1: first S 2, MI 2 (the order picks S), final MI 4.  Flip; shares move by ½.
    t2: first S 1, MO 3, final S 4.                        Flip, also outside the set; ¾.
    """
    one = panel_turn("simple", votes(MI, MI, MI, MI), initial=votes(S, S, MI, MI))
    two = panel_turn("simple", votes(S, S, S, S), initial=votes(S, MO, MO, MO))
    return panel_source(panel_episode(one, task="t1"), panel_episode(two, task="t2"))


@pytest.fixture
def asked_again(two_turns):
    """Once more. t1: the second voter turns to MI; the fourth abstains from the final vote.
    t2: the fourth abstains from the first vote."""
    return with_retest(
        two_turns,
        (ONE, 1, "vote_initial", [votes(S, MI, MI, MI)]),
        (ONE, 1, "vote_final", [votes(MI, MI, MI, None)]),
        (TWO, 1, "vote_initial", [votes(S, MO, MO, None)]),
        (TWO, 1, "vote_final", [votes(S, S, S, S)]),
    )


def floor_of(source):
    found = noise_floor(source)
    assert isinstance(found, NoiseFloor)
    return found


def value(found):
    assert isinstance(found, Estimate)
    return found.value


def test_the_noise_floor_is_unknown_without_a_retest(two_turns):
    found = noise_floor(two_turns)
    assert isinstance(found, NotEstimable)
    assert "only a retest shows" in found.reason


def test_agreement_is_over_pairs_without_abstentions(asked_again):
    first, final = floor_of(asked_again).ballots
    # 8 pairs, one with an abstention; of the other 7 the second voter's of t1 differs.
    assert (first["form"], first["stage"], first["votes"]) == ("simple", "vote_initial", 2)
    assert (first["pairs"], first["one_abstained"], first["both_abstained"]) == (8, 1, 0)
    assert value(first["same"]) == value(first["same_top"]) == pytest.approx(6 / 7)
    assert first["same"].n == 7
    # One voter's ballots in t1 and t2: S S with S S, S MI with MO MO, MI MI with MO MO, and
    # MI MI with MO alone: 4 of 4 + 4 + 4 + 2 combinations are the same.
    assert first["chance"] == pytest.approx(4 / 14)
    assert (final["stage"], final["pairs"], final["one_abstained"]) == ("vote_final", 8, 1)
    assert value(final["same"]) == 1.0


def test_stability_is_over_all_panels_of_answers(asked_again):
    first, final = floor_of(asked_again).winners
    # t1: with the second voter's S the order picks S, with MI the leader is MI. t2: always MO.
    assert (first["stage"], first["turns"], first["sampled"]) == ("vote_initial", 2, 0)
    assert (value(first["elects_logged"]), value(first["agree"])) == (0.75, 0.75)
    assert final["stage"] == "vote_final"
    assert (value(final["elects_logged"]), value(final["agree"])) == (1.0, 1.0)


def test_what_is_left_is_logged_less_floor(asked_again):
    found = {row["quantity"]: row for row in floor_of(asked_again).beside}
    figures = {
        name: (value(row["logged"]), value(row["floor"]), value(row["left"]))
        for name, row in found.items()
    }
    # Floor of t1: S 2, MI 2 against S 1, MI 3: S and MI lead, a flip both ways, outside the set
    # only from MI to S, shares move by ¼. Of t2: S 1, MO 3 against S 1, MO 2: no flip, 1/12.
    assert figures == {
        "flip": pytest.approx((1, 1 / 2, 1 / 2)),
        "flip_set": pytest.approx((1 / 2, 1 / 4, 1 / 4)),
        "leader": pytest.approx((1, 1 / 2, 1 / 2)),
        "shift": pytest.approx((5 / 8, 1 / 6, 11 / 24)),
    }
    assert {(row["stage"], row["turns"], row["sampled"]) for row in found.values()} == {
        ("vote_initial", 2, 0)
    }
    left = found["flip"]["left"]
    assert isinstance(left, Estimate)
    assert left.interval == too_few_tasks(2)


def test_a_tie_round_moves_the_winner_and_not_the_leader():
    turn = panel_turn(
        "simple", votes(S, S, MI, MI), initial=votes(S, S, S, S), tie=votes(MI, MI, MI, MI)
    )
    source = with_retest(
        panel_source(panel_episode(turn)), (ONE, 1, "vote_initial", [votes(S, S, S, S)] * 2)
    )
    found = {row["quantity"]: row for row in floor_of(source).beside}
    assert value(found["flip"]["logged"]) == 1.0
    assert value(found["leader"]["logged"]) == 0.0
    assert value(found["flip"]["floor"]) == 0.0
    assert floor_of(source).repeats == 2


def test_where_only_the_final_vote_was_asked_again_the_floor_is_of_that(two_turns):
    source = with_retest(two_turns, (ONE, 1, "vote_final", [votes(MI, MI, S, S)]))
    found = floor_of(source)
    assert {row["stage"] for row in found.beside} == {"vote_final"}
    assert [row["stage"] for row in found.winners] == ["vote_final"]
    # The third and the fourth voter answer MI and S in either order: MI 4 against S 2, MI 2 (S
    # by the order, outside the set of MI), the other way round (MI, inside), or twice S 1, MI 3.
    floor = {row["quantity"]: value(row["floor"]) for row in found.beside}
    assert floor == {"flip": 0.5, "flip_set": 0.25, "leader": 0.5, "shift": 0.25}
    # One task: values without intervals; no voter has ballots in two turns.
    assert found.beside[0]["left"].interval == too_few_tasks(1)  # type: ignore[union-attr]
    assert found.ballots[0]["chance"] == NotEstimable("no voter has ballots in two turns")


def test_without_a_first_vote_there_is_a_floor_and_nothing_to_set_beside_it():
    turn = panel_turn("simple", votes(S, S, MI, MI)).model_copy(update={"ballots_initial": ()})
    again = (ONE, 1, "vote_final", [votes(MI, MI, S, S)])
    found = floor_of(with_retest(panel_source(panel_episode(turn)), again))
    assert {row["quantity"]: row["turns"] for row in found.beside} == dict.fromkeys(QUANTITIES, 0)
    assert found.winners[0]["turns"] == 1


def test_voters_that_all_abstained_agree_on_nothing():
    nobody = votes(None, None, None, None)
    source = panel_source(panel_episode(panel_turn("simple", nobody)))
    found = floor_of(with_retest(source, (ONE, 1, "vote_initial", [nobody])))
    [ballots] = found.ballots
    assert (ballots["pairs"], ballots["both_abstained"]) == (4, 4)
    assert isinstance(ballots["same"], NotEstimable)
    figures = {row["quantity"]: row for row in found.beside}
    assert value(figures["flip"]["floor"]) == 0.0
    assert figures["shift"]["turns"] == 0
    assert figures["shift"]["left"] == NotEstimable("no observations")


def test_a_retest_of_nothing_has_no_floor(two_turns):
    nothing = with_retest(two_turns)
    assert noise_floor(nothing) == NotEstimable("no vote of a complete episode was asked again")
    assert noise_floor(with_retest(two_turns, (ONE, 1, "vote_initial", []))) == noise_floor(nothing)


def test_votes_may_differ_in_how_often_they_were_asked(two_turns):
    again = votes(S, S, MI, MI)
    source = with_retest(
        two_turns,
        (ONE, 1, "vote_initial", [again, votes(S, MI, MI, MI)]),
        (TWO, 1, "vote_initial", [votes(S, MO, MO, MO)]),
    )
    [record, other] = source.retest.episodes
    [vote] = other.votes
    lost = Failure(key="1/vote_initial/motivation/1/r02", error="HTTP 500")
    other = other.model_copy(update={"votes": (vote.model_copy(update={"failures": (lost,)}),)})
    found = floor_of(replace(source, retest=source.retest._replace(episodes=(record, other))))
    assert (found.repeats, found.failed) == (2, 1)
    [ballots] = found.ballots
    # Four voters with three pairs each, and four with one; the second of t1 said S, S, MI.
    assert (ballots["pairs"], value(ballots["same"])) == (16, pytest.approx(14 / 16))
    # t1: of six ordered pairs SS 2, S MI 2, MI S 2; S 2, MI 2 and S 1, MI 3 have other leaders.
    floor = {row["quantity"]: value(row["floor"]) for row in found.beside}
    assert floor["flip"] == pytest.approx((4 / 6 + 0) / 2)


def test_ties_go_to_the_order_that_decided(asked_again):
    """A tied lead of S and MI is MI's where MI stands first: then no re-asked panel differs."""
    order = (MI, S, MO, ME)
    study = asked_again.run.study.model_copy(update={"fallback_order": order})
    run = asked_again.run.model_copy(update={"study": study})
    found = floor_of(replace(asked_again, run=run, fallback_order=order))
    first = {row["quantity"]: row for row in found.beside}["flip"]
    # t1: MI led and won; t2: MO led and S won.
    assert (value(first["logged"]), value(first["floor"])) == (0.5, 0.0)
    assert value(found.winners[0]["elects_logged"]) == 1.0


def test_failed_episodes_are_left_out(asked_again, two_turns):
    failed = asked_again.episodes[1].model_copy(update={"status": "failed"})
    left = two_turns.ballots.filter(two_turns.ballots["task"] == "t1")
    source = replace(asked_again, episodes=(asked_again.episodes[0], failed), rows=left)
    assert {row["turns"] for row in floor_of(source).beside} == {1}


def test_a_retest_of_another_log_is_refused(asked_again):
    with pytest.raises(LogError, match="do not belong together"):
        noise_floor(replace(asked_again, episodes=asked_again.episodes[:1]))
    others = with_retest(asked_again, (ONE, 1, "vote_initial", [{"somebody": S}]))
    with pytest.raises(LogError, match="vote_initial"):
        noise_floor(others)


def test_a_floor_becomes_json(asked_again):
    made = to_json(floor_of(asked_again))
    assert made["answered_by"] == "stand-in: asked again"
    assert made["beside"][0]["left"]["value"] == pytest.approx(0.5)  # type: ignore[index]


def ballot(form, parsed):
    return BallotRecord(voter=S, protocol=form, labels={}, parsed=parsed, mass={})


def test_a_set_of_approved_has_no_order_and_a_ranking_has():
    assert said(ballot("approval", (S, MI))) == said(ballot("approval", (MI, S)))
    assert said(ballot("ranked", ROLES)) != said(ballot("ranked", ROLES[::-1]))
    assert said(ballot("cumulative", {S: 1, MI: 2})) == said(ballot("cumulative", {MI: 2, S: 1}))
    assert said(ballot("simple", None)) is None
    assert said(ballot("approval", ())) is not None


def test_rich_ballots_are_the_same_only_where_every_part_is():
    one = RichBallot(points={S: 10, MI: 10, MO: 5}, order=(S, MI, MO), approved=(S, MI))
    assert said(ballot("rich", one)) == said(ballot("rich", one.model_copy()))
    for change in ({"order": (MI, S, MO)}, {"approved": (S, MI, MO)}):
        assert said(ballot("rich", one)) != said(ballot("rich", one.model_copy(update=change)))


def test_whom_a_ballot_puts_first():
    assert top_of(ballot("cumulative", {S: 9, MI: 9, MO: 7}), ROLES) == {S, MI}
    assert top_of(ballot("ranked", ROLES), ROLES) == {S}
    assert top_of(ballot("approval", ()), ROLES) == top_of(ballot("simple", None), ROLES) == set()
    rich = RichBallot(points={S: 9, MI: 9, MO: 7}, order=(MI, S, MO), approved=(MI, S))
    assert top_of(ballot("rich", rich), ROLES) == {MI}


# --- Redrawn panels -------------------------------------------------------------------------------

A, B, NOBODY = (1, 0), (0, 1), (0, 0)


def test_a_panel_is_one_answer_of_each_voter():
    # Panels A+B: 1 : 1, so the order picks A; B+B: B. Logged A+B.
    found = stability_of([[A, B], [B, B]], seed=0)
    assert found == (0.5, 0.5, True)


def test_the_floor_takes_two_different_askings_of_each_voter():
    # First voter A then B: 1 : 1 (A by the order, both lead) to 0 : 2 (B): a flip inside the set.
    # B then A: 0 : 2 (B alone leads) to 1 : 1 (A): a flip outside the set. Shares move by ½.
    floor = {"flip": 1.0, "flip_set": 0.5, "leader": 1.0, "shift": 0.5}
    assert noise_floor_of([[A, B], [B, B]], seed=0) == (floor, True)


def test_three_askings_have_six_ordered_pairs():
    # One voter: A, A, B. Pairs AA 2, AB 2, BA 2, so 4 of 6 differ; A is elected in 2 of 3.
    floor, _ = noise_floor_of([[A, A, B]], seed=0)
    assert floor == pytest.approx(dict.fromkeys(QUANTITIES, 2 / 3))
    assert stability_of([[A, A, B]], seed=0)[:2] == pytest.approx((2 / 3, 4 / 9 + 1 / 9))


def test_a_panel_without_mass_has_no_shift_and_the_order_picks_its_leader():
    # A then nobody: all tied, so A; no flip. No pair of panels has mass in both.
    still = {"flip": 0.0, "flip_set": 0.0, "leader": 0.0}
    assert noise_floor_of([[A, NOBODY]], seed=0) == (still, True)
    # Of four pairs of panels two have mass in both: A then B, and B then A.
    assert noise_floor_of([[A, NOBODY], [B, NOBODY]], seed=0)[0]["shift"] == 1.0
    assert noise_floor_of([[NOBODY, NOBODY]], seed=0) == (still, True)
    assert stability_of([[NOBODY, NOBODY]], seed=0) == (1.0, 1.0, True)


def test_a_tied_lead_goes_to_the_first_candidate():
    assert leader_of([(0, 1, 1), (0, 1, 1)]) == 1
    assert leader_of([(0, 0, 0)]) == 0


ANSWERS = st.tuples(*[st.integers(0, 3)] * 3)
PANELS = st.integers(2, 3).flatmap(
    lambda k: st.lists(st.lists(ANSWERS, min_size=k, max_size=k), min_size=1, max_size=3)
)


@given(PANELS)
def test_chances_are_those_of_listing_every_panel(askings):
    panels = [leader_of(panel) for panel in product(*askings)]
    chances = [Fraction(n, len(panels)) for n in Counter(panels).values()]
    elects_logged, agree, _ = stability_of(askings, seed=0)
    assert elects_logged == pytest.approx(panels.count(panels[0]) / len(panels))
    assert agree == pytest.approx(float(sum(p * p for p in chances)))

    twice = list(product(*(permutations(asked, 2) for asked in askings)))
    leaders = [
        (leader_of([pair[0] for pair in pairs]), leader_of([pair[1] for pair in pairs]))
        for pairs in twice
    ]
    floor, exact = noise_floor_of(askings, seed=0)
    assert exact
    assert floor["flip"] == pytest.approx(sum(a != b for a, b in leaders) / len(leaders))
    assert floor["flip_set"] <= floor["flip"] + 1e-9


def test_beyond_the_limit_panels_are_drawn_by_a_seed(monkeypatch):
    askings = [[A, B, B], [A, A, B], [B, A, NOBODY]]
    listed, stable = noise_floor_of(askings, seed=1), stability_of(askings, seed=1)
    monkeypatch.setattr(redrawn_panels, "ENUMERATED", 0)
    drawn, again = noise_floor_of(askings, seed=1), noise_floor_of(askings, seed=1)
    assert drawn == again
    assert (listed[1], drawn[1]) == (True, False)
    assert drawn[0] == pytest.approx(listed[0], abs=0.02)
    assert stability_of(askings, seed=1)[:2] == pytest.approx(stable[:2], abs=0.02)
