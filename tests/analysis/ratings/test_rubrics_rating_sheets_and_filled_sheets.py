"""The anchors of a model judge as a rubric for people."""

from tutorsim.analysis.ratings.rubrics_rating_sheets_and_filled_sheets import (
    judge_rubric,
    reply_rubric,
)
from tutorsim.systems.panel.settings_and_members_of_compared_panels import load_panel_catalog


def test_the_shipped_judge_s_anchors_are_the_rubric_in_tenths():
    prompt = load_panel_catalog().prompts["judge_system"]
    found = judge_rubric(prompt, threshold=0.75)
    assert found.anchors == {
        "0": "no credit",
        "0.1": "mostly incorrect",
        "0.4": "partial understanding",
        "0.7": "essentially correct with minor issues",
        "1": "fully correct and well explained",
    }
    assert found.scale == tuple(step / 10 for step in range(11))
    assert (found.threshold, found.of_judge) == (0.75, True)


def test_anchors_between_tenths_join_the_scale():
    found = judge_rubric("Grade.\n0.25: poor\n  1 - good\n", threshold=0.5)
    assert found.anchors == {"0.25": "poor", "1": "good"}
    assert 0.25 in found.scale


def test_a_prompt_without_two_anchors_is_no_rubric():
    for prompt in ("Grade from 0 to 1.", "1 good", "10 points\n20 points"):
        assert judge_rubric(prompt, threshold=0.75) is None


def test_of_programs_people_rate_the_words_as_the_judge_does():
    prompt = load_panel_catalog().prompts["judge_system"]
    words, programs = (judge_rubric(prompt, threshold=0.75, programs=p) for p in (False, True))
    assert "tests judge the code" in programs.question
    assert "code" not in words.question


def test_replies_have_a_rubric_of_their_own_on_the_scale_of_the_labels():
    found = reply_rubric(labelled=False)
    assert found.scale == (0, 1, 2)
    assert "none at all, or the answer itself" in found.anchors["0"]
    assert "answer" not in found.question
    assert not found.of_judge
