import pytest

from tests.analysis.panel_runs import panel_episode, panel_source
from tutorsim.analysis.ballots.recount_source import open_source
from tutorsim.analysis.recount.success_under_other_score_thresholds import (
    at_threshold,
    episode_at_threshold,
)
from tutorsim.analysis.statistics.intervals_and_tests import Bounds, NotEstimable, to_json
from tutorsim.errors import UsageError


def point(value):
    return Bounds(value, value, 1)


def test_a_lower_threshold_ends_an_episode_on_its_logged_path():
    e = panel_episode(scores=(0.1, 0.5, 0.9))
    found = episode_at_threshold(e, 0.5, max_turns=3)
    assert found.exact
    assert (found.success, found.turns, found.final) == (point(1), point(1), point(0.5))
    assert found.gain == point(0.4)
    at_once = episode_at_threshold(e, 0.1, max_turns=3)
    assert (at_once.turns, at_once.gain) == (point(0), None)


def test_a_higher_threshold_leaves_an_early_success_open():
    e = panel_episode(scores=(0.25, 0.8))
    found = episode_at_threshold(e, 0.9, max_turns=3)
    assert not found.exact
    assert (found.success, found.turns) == (Bounds(0, 1, 1), Bounds(2, 3, 1))
    assert (found.final, found.gain) == (Bounds(0, 1, 1), Bounds(-0.25, 0.75, 1))


def test_an_episode_that_used_its_turns_is_exact_under_any_threshold():
    e = panel_episode(scores=(0.1, 0.2, 0.3, 0.8))
    high = episode_at_threshold(e, 0.9, max_turns=3)
    assert (high.exact, high.success, high.turns) == (True, point(0), point(3))
    same = episode_at_threshold(e, 0.75, max_turns=3)
    assert (same.success, same.turns) == (point(1), point(3))


def test_a_program_must_pass_as_well():
    e = panel_episode(benchmark="humaneval", scores=(0.6, 0.6, 0.9), codes=(False, True, True))
    found = episode_at_threshold(e, 0.5, max_turns=3)
    assert found.turns == point(1)


def test_an_unscored_attempt_reaches_no_threshold():
    e = panel_episode(scores=(None, 0.4, None, None))
    found = episode_at_threshold(e, 0.3, max_turns=3)
    assert (found.turns, found.final, found.gain) == (point(1), point(0.4), None)


def test_the_table_averages_exact_and_open_episodes():
    source = panel_source(
        panel_episode(task="a", scores=(0.8,)),
        panel_episode(task="b", scores=(0.25, 0.95)),
        panel_episode(task="c", scores=(0.0, 0.5, 0.5, 0.5)),
        panel_episode(task="d", scores=(0.0,), status="failed"),
    )
    [row] = at_threshold(source, 0.9)
    # a: open, 1 to 3 turns, gain -0.8 to 0.2. b: reached, 1 turn, gain 0.7. c: 3 turns, gain 0.5.
    assert (row["episodes"], row["exact"], row["fired"]) == (3, 2, 3)
    assert row["success"] == Bounds(1 / 3, 2 / 3, 3)
    assert row["turns"] == Bounds(5 / 3, 7 / 3, 3)
    assert row["gain"] == Bounds(pytest.approx(0.4 / 3), pytest.approx(1.4 / 3), 3)
    assert to_json(row)["fired"] == 3


def test_the_logged_threshold_gives_the_logged_outcomes():
    episodes = [
        panel_episode(task=f"t{i}", scores=scores)
        for i, scores in enumerate([(0.9,), (0.1, 0.75), (0.1, 0.7, 0.7, 0.7)])
    ]
    [row] = at_threshold(panel_source(*episodes), 0.75)
    assert row["exact"] == 3
    assert row["success"] == Bounds(2 / 3, 2 / 3, 3)
    assert row["turns"].low == sum(e.turns_taken for e in episodes) / 3


def test_without_scores_there_are_means_of_nothing():
    [row] = at_threshold(panel_source(panel_episode(scores=(None, None))), 0.5)
    assert row["final"] == NotEstimable("no scored episode")
    assert row["gain"] == NotEstimable("no scored episode with tutoring")
    assert at_threshold(panel_source(), 0.5) == []


def test_a_threshold_needs_scores_and_lies_between_nought_and_one(tmp_path):
    with pytest.raises(UsageError, match="not between"):
        at_threshold(panel_source(), 1.5)
    (tmp_path / "v.soc").write_text("1: 1,2\n")
    with pytest.raises(UsageError, match="has no scores"):
        at_threshold(open_source(tmp_path / "v.soc"), 0.5)
