"""Interaction analysis of a lesson of 24 messages, counted by hand."""

import pytest

from tutorsim.analysis.systems.group import page_data_and_shares_of_coded_talk as talk

# who and category of each of the 24 messages; eight in each phase
PHASES = (
    "bob 6, tom 7, alice 6, tom 8, charlie 1, alice 5, tom 7, bob 4",
    "alice 6, tom 5, charlie 2, tom 11, charlie 1, alice 10, tom 3, bob 9",
    "alice 6, tom 3, charlie 1, tom 1, bob 4, tom 7, alice 3, bob 6",
)
CODED = [message.split() for phase in PHASES for message in phase.split(", ")]
LESSON = [talk.Act(who, int(category)) for who, category in CODED]


def test_twelve_categories_are_of_two_areas_and_four_kinds():
    kinds = [(talk.kind_of(category), talk.area_of(category)) for category in range(1, 13)]
    assert kinds == [
        *3 * [("affective", "social_emotional")],
        *3 * [("guiding", "task")],
        *3 * [("questioning", "task")],
        *3 * [("other", "social_emotional")],
    ]


def test_phases_are_thirds_of_the_messages():
    assert [talk.phase_of(place, 24) for place in (0, 7, 8, 15, 16, 23)] == [0, 0, 1, 1, 2, 2]
    assert [talk.phase_of(place, 4) for place in range(4)] == [0, 0, 1, 2]


def test_phase_shares_of_the_learner():
    # early: 7 8 7; middle: 5 11 3; late: 3 1 7
    early, middle, late = talk.phase_shares(LESSON, "tom")
    assert early == {"guiding": 0, "questioning": 1, "affective": 0, "other": 0}
    third, rest = pytest.approx(1 / 3), pytest.approx(2 / 3)
    assert middle == {"guiding": third, "questioning": 0, "affective": third, "other": third}
    assert late == {"guiding": 0, "questioning": third, "affective": rest, "other": 0}


def test_phase_shares_sum_to_one():
    for who in ("bob", "alice", "charlie", "tom"):
        for phase in talk.phase_shares(LESSON, who):
            assert phase is None or sum(phase.values()) == pytest.approx(1)


def test_a_phase_without_an_act_has_no_shares():
    values = talk.phase_shares(LESSON[:3], "tom")
    assert values == [None, {"guiding": 0, "questioning": 1, "affective": 0, "other": 0}, None]


def test_rolling_task_share():
    # task acts (4 to 9) among messages 1 to 10: all but charlie's 1 at message 5 -> 9 of 10
    shares = talk.rolling_task_share(LESSON)
    assert len(shares) == 15
    assert shares[0] == 0.9
    # messages 15 to 24: 3 9 6 3 1 1 4 7 3 6 -> 9, 6, 4, 7, 6 are task acts
    assert shares[14] == 0.5


def test_an_uncoded_message_is_left_out_of_the_window():
    assert talk.rolling_task_share([talk.Act("a", None), *[talk.Act("a", 5)] * 10]) == [1.0]
    assert talk.rolling_task_share([talk.Act("a", 5)] * 9) == []


def test_slope_is_the_change_over_the_lesson():
    assert talk.slope([0.9, 0.8, 0.7, 0.6]) == pytest.approx(-0.3)
    assert talk.slope([0.5]) is None


def test_kappa_of_a_hand_counted_table():
    # 10 messages: agreement on 7; a says 4 5 times, b 6 times
    first = [4, 4, 4, 4, 4, 1, 1, 1, 1, 1]
    second = [4, 4, 4, 4, 1, 4, 4, 1, 1, 1]
    # observed 7/10; expected (5·6 + 5·4) / 100 = 0.5
    assert talk.kappa(first, second) == pytest.approx(0.4)


def test_kappa_without_chance_to_disagree_is_missing():
    assert talk.kappa([4, 4], [4, 4]) is None
    assert talk.kappa([], []) is None


def test_kappa_is_one_for_equal_codings():
    assert talk.kappa([1, 4, 7], [1, 4, 7]) == 1


def test_adherence_of_a_profile_to_itself():
    # alice: 6 5 6 10 6 3
    shares = [0, 0, 1 / 6, 0, 1 / 6, 0.5, 0, 0, 0, 1 / 6, 0, 0]
    found = talk.adherence_to(shares, LESSON, "alice")
    assert found == {"acts": 6, "distance": 0, "cosine": pytest.approx(1)}


def test_adherence_of_profiles_without_overlap():
    ideal = [1.0, *[0.0] * 11]
    found = talk.adherence_to(ideal, [talk.Act("alice", 6)], "alice")
    assert found == {"acts": 1, "distance": 1, "cosine": 0}
    assert talk.adherence_to(ideal, [], "alice") is None


def test_ideal_profiles_sum_to_one():
    assert set(talk.ideal_profiles()) == {"alice", "bob", "charlie"}
    for shares in talk.ideal_profiles().values():
        assert sum(shares) == pytest.approx(1)


def test_gini_of_hand_counted_shares():
    assert talk.gini([5, 5, 5, 5]) == 0
    assert talk.gini([0, 0, 0, 8]) == pytest.approx(0.75)
    # 1, 2, 3: mean absolute difference (1+2+1)·2 / 9 = 8/9, over twice the mean 4
    assert talk.gini([3, 1, 2]) == pytest.approx(8 / 36)
    assert talk.gini([0, 0]) is None
