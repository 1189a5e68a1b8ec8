from fractions import Fraction

import pytest

from tests.analysis.panel_runs import panel_episode, panel_source, panel_turn, votes
from tutorsim.analysis.statistics.intervals_and_tests import (
    Estimate,
    NotEstimable,
    to_json,
    too_few_tasks,
)
from tutorsim.analysis.systems.panel.winning_roles_ties_ballots_shift_flip_chance import (
    chance_baselines,
    diagnostics,
    turn_diagnostics,
    winning_roles,
)

S, MI, MO, ME = "scaffolding", "misconception", "motivation", "metacognitive"
ROLES = (S, MI, MO, ME)


@pytest.fixture
def three_turns():
    """Simple voting, one turn in each of three episodes.

    t1: first 4 S.      final S 1, MI 3.            Winner MI by vote.
    t2: first S 2, MI 2 final S 2, MI 2; tie 1 : 3. Winner MI by tie round.
    t3: first MO 2, ME 2 final the same; tie 2 : 2. Winner MO by fallback.
    """
    one = panel_turn("simple", votes(S, MI, MI, MI), initial=votes(S, S, S, S))
    even = votes(S, S, MI, MI)
    two = panel_turn("simple", even, tie=votes(S, MI, MI, MI))
    late = votes(MO, MO, ME, ME)
    three = panel_turn("simple", late, tie=late)
    return panel_source(*(panel_episode(t, task=f"t{i}") for i, t in enumerate((one, two, three))))


def values(row, *names):
    return {
        name: value.value for name in names if isinstance(value := getattr(row, name), Estimate)
    }


def test_diagnostics_match_the_hand_count(three_turns):
    [row] = diagnostics(three_turns)
    assert (row.protocol, row.turns, row.episodes, row.abstentions, row.ballots) == (
        "simple", 3, 3, 0, 12,
    )  # fmt: skip
    # Shifts ¾, 0, 0. Flips: S to MI, S (picked from S, MI) to MI, none; outside the set: one.
    assert values(row, "shift", "flip", "flip_set", "tie_rate", "fallback_rate") == pytest.approx(
        {"shift": 1 / 4, "flip": 2 / 3, "flip_set": 1 / 3, "tie_rate": 2 / 3,
         "fallback_rate": 1 / 3},
    )  # fmt: skip
    assert row.decided_by == {"vote": 1, "tie_round": 1, "fallback": 1}


def test_a_turns_row_says_who_won_by_which_step_and_against_whom(three_turns):
    frame = turn_diagnostics(three_turns)
    assert frame.select("winner", "decided_by", "tied", "fallback", "flip", "flip_set").rows() == [
        (MI, "vote", False, False, True, True),
        (MI, "tie_round", True, False, True, False),
        (MO, "fallback", True, True, False, False),
    ]


def test_winning_roles_sum_to_the_turns_and_split_by_step(three_turns):
    assert winning_roles(three_turns).rows() == [
        ("simple", S, 0, 0, 0, 0),
        ("simple", MI, 2, 1, 1, 0),
        ("simple", MO, 1, 0, 0, 1),
        ("simple", ME, 0, 0, 0, 0),
    ]


def test_the_chance_baseline_is_the_mean_over_all_pairings_of_turns(three_turns):
    [row] = chance_baselines(three_turns)
    # Leaders S, S, MO; winners MI, MI, MO: one of nine pairings agrees.
    assert row.flip_expected == float(Fraction(8, 9))
    # κ = 1 − (2/3) / (8/9)
    assert row.kappa == pytest.approx(0.25)
    # Sets {S}, {S, MI}, {MO, ME}: MI is in one, MO in one; (1·2 + 1·1) / 9 are inside.
    assert row.flip_set_expected == pytest.approx(6 / 9)
    # First shares a = (1,0,0,0), b = (½,½,0,0), c = (0,0,½,½); final x = (¼,¾,0,0), b, c:
    # ¾ + ½ + 1 + ¼ + 0 + 1 + 1 + 1 + 0 over nine pairings.
    assert row.shift_expected == pytest.approx(5.5 / 9)
    assert (row.flip, row.shift) == (pytest.approx(2 / 3), pytest.approx(1 / 4))


def test_an_abstention_counts_no_mass_and_a_vote_of_nobody_has_no_shift():
    silent = panel_turn("approval", votes(None, None, None, None), initial=votes((S,), (), (), ()))
    half = panel_turn("approval", votes((S,), (S, MI), None, None), initial=votes((S,), (), (), ()))
    source = panel_source(panel_episode(silent), panel_episode(half, task="t2"))
    frame = turn_diagnostics(source)
    assert frame["abstained"].to_list() == [4, 2]
    assert frame["winner"].to_list() == [S, S]
    assert frame["decided_by"].to_list() == ["fallback", "vote"]
    [row] = diagnostics(source)
    assert (row.abstentions, row.ballots) == (6, 8)
    # Of the second turn alone: first (1,0,0,0), final (⅔,⅓,0,0).
    assert (row.shift.value, row.shift.n) == (pytest.approx(1 / 3), 1)


def test_failed_episodes_and_the_single_tutor_have_no_voting_turns():
    turn = panel_turn("simple", votes(S, S, S, S))
    source = panel_source(panel_episode(), panel_episode(turn, status="failed"))
    assert diagnostics(source) == []
    assert chance_baselines(source) == []
    assert turn_diagnostics(source).height == winning_roles(source).height == 0


def test_one_turn_has_values_but_no_chance_and_no_interval_of_its_mean():
    source = panel_source(panel_episode(panel_turn("ranked", votes(*[ROLES] * 4))))
    [row] = diagnostics(source)
    assert isinstance(row.shift, Estimate)
    assert row.shift.interval == too_few_tasks(1)
    [chance] = chance_baselines(source)
    assert isinstance(chance.kappa, NotEstimable)


def test_agreement_without_variation_has_no_kappa():
    turn = panel_turn("simple", votes(S, S, S, S))
    source = panel_source(panel_episode(turn), panel_episode(turn, task="t2"))
    [row] = chance_baselines(source)
    assert (row.flip, row.flip_expected) == (0.0, 0.0)
    assert row.kappa == NotEstimable("every first leader and every winner is the same")


def test_diagnostics_become_json(three_turns):
    assert to_json(diagnostics(three_turns)[0])["flip"]["value"] == pytest.approx(2 / 3)  # type: ignore[index]
    assert to_json(chance_baselines(three_turns)[0])["kappa"] == pytest.approx(0.25)
