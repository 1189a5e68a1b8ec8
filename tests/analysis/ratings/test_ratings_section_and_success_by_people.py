"""People's scores of answers and of what other rules would have delivered, by hand counts."""

import pytest

from tests.analysis.panel_runs import panel_episode
from tutorsim.analysis.ratings.item_scores_and_agreement_of_raters_and_judge import Gathered
from tutorsim.analysis.ratings.ratings_section_and_success_by_people import (
    other_rules,
    peoples_success,
    whole_turns,
)
from tutorsim.analysis.ratings.texts_to_rate_as_raters_see import Block, Item, Place
from tutorsim.analysis.statistics.intervals_and_tests import NotEstimable
from tutorsim.records.ratings import Rubric

RUBRIC = Rubric(name="reply", question="?", scale=(0.0, 1.0, 2.0), threshold=2.0)
FREE = Rubric(name="free", question="?", scale=(0.0, 1.0, 2.0))


def rated(kind, texts, rubric=RUBRIC):
    """Texts by where they stand: episode, turn, role, delivered → score, `None` for nobody's."""
    items, scores = {}, {}
    for (episode, turn, role, delivered), score in texts.items():
        place = Place(episode, turn, role, "simple", episode, delivered)
        name = f"{episode}.{turn}.{role}"
        items[name] = Item(name, (Block("Text", name),), (place,))
        if score is not None:
            scores[name] = {("s", 1): float(score)}
    return Gathered(kind, rubric, "people", items, scores)


def test_an_answer_that_nobody_rated_could_pass_or_not():
    """Answers 0 and 1 of three episodes, let pass from 2 on.

    The first passes at once. The second fails, and then could be either. The third fails twice
    after the log ended it there, so that what follows could be either too. Nobody rated the fourth.
    """
    episodes = [panel_episode(task=f"t{i}", scores=(0.1, 0.9)) for i in range(4)]
    first, second, third, _ = (episode.episode_id for episode in episodes)
    answers = {(first, 0): 2, (second, 0): 1, (third, 0): 0, (third, 1): 1}
    texts = {(name, turn, "student", True): score for (name, turn), score in answers.items()}
    failed = episodes[0].model_copy(update={"status": "failed"})
    [row] = peoples_success(rated("answers", texts), [*episodes, failed], max_turns=3)
    assert [row[n] for n in ("episodes", "answers", "rated", "logged")] == [4, 8, 4, 1.0]
    assert (row["success"].low, row["success"].high) == (1 / 4, 1.0)
    [last] = peoples_success(rated("answers", texts), episodes, max_turns=1)
    # With one turn in all, nothing follows the third.
    assert (last["success"].low, last["success"].high) == (1 / 4, 3 / 4)
    assert [*peoples_success(rated("answers", {}), episodes, max_turns=3)] == []
    assert [*peoples_success(rated("answers", texts, FREE), episodes, max_turns=3)] == []


TURNS = {
    ("e", 1, "a", True): 2,
    ("e", 1, "b", False): 0,
    ("e", 2, "a", False): 1,
    ("e", 2, "b", True): 2,
    ("e", 3, "a", True): 1,  # nobody rated the other
    ("e", 3, "b", False): None,
    ("e", 4, "a", True): 2,  # of a single tutor
}


def test_turns_are_whole_where_several_proposals_are_all_rated():
    found = whole_turns(rated("replies", TURNS))
    whole = {("e", 1): {"a": 2, "b": 0}, ("e", 2): {"a": 1, "b": 2}}
    assert {turn: scores for turn, (_, scores) in found.items()} == whole
    assert [place.role for place, _ in found.values()] == ["a", "b"]


@pytest.mark.parametrize("rubric", [RUBRIC, FREE])
def test_another_rule_has_the_scores_of_its_possible_winners(rubric):
    """Delivered: 2 and 2. Under the rule b in the first turn, and any in the second."""
    possible = {("e", 1): {"ranked": ("b",)}, ("e", 2): {"ranked": ("a", "b")}}
    [row] = other_rules(rated("replies", TURNS, rubric), possible)
    names = ("logged_protocol", "rule", "turns", "identified", "delivered")
    assert [row[name] for name in names] == ["simple", "ranked", 2, 1, 2.0]
    assert (row["score"].low, row["score"].high) == (0.5, 1.0)
    del possible["e", 2]
    assert next(other_rules(rated("replies", TURNS, rubric), possible))["identified"] == 1
    if rubric is FREE:
        assert row["delivered_good"] is None
        assert isinstance(row["good"], NotEstimable)
    else:
        assert (row["delivered_good"], row["good"].low, row["good"].high) == (1.0, 0.0, 0.5)
