import pytest

from tutorsim.analysis.systems.panel.student_outcomes import SCORES_SCHEMA, scores_by_turn


def rows_of(*episodes, max_turns=3):
    frame = scores_by_turn(tuple(episodes), max_turns=max_turns)
    return {r["turn"]: r for r in frame.iter_rows(named=True)}


def test_an_episode_that_ended_keeps_its_last_score(panel_episode):
    """Turn 0: (0.2 + 0.8) / 2; turn 1 and 2: (0.4 + 0.8) / 2, (0.6 + 0.8) / 2."""
    long = panel_episode(task="t1", scores=(0.2, 0.4, 0.6))
    short = panel_episode(task="t2", scores=(0.8,))
    found = rows_of(long, short)
    assert [found[t]["mean"] for t in (0, 1, 2)] == pytest.approx([0.5, 0.6, 0.7])
    assert [found[t]["running"] for t in (0, 1, 2)] == [2, 1, 1]
    assert {found[t]["n"] for t in found} == {2}
    assert max(found) == 2


def test_an_unscored_attempt_is_left_out_and_is_no_zero(panel_episode):
    found = rows_of(
        panel_episode(task="t1", scores=(None, 0.4)), panel_episode(task="t2", scores=(0.8, None))
    )
    assert (found[0]["mean"], found[0]["n"]) == (0.8, 1)
    assert (found[1]["mean"], found[1]["n"]) == (0.4, 1)


def test_one_task_has_a_mean_and_no_interval(panel_episode):
    found = rows_of(panel_episode(scores=(0.1, 0.4)))
    assert found[0]["mean"] == 0.1
    assert found[0]["lower"] is None
    assert found[0]["upper"] is None


def test_failed_episodes_are_left_out_and_nothing_is_an_empty_table(panel_episode):
    failed = panel_episode(scores=(0.1,), status="failed")
    assert scores_by_turn((failed,), max_turns=3).schema == SCORES_SCHEMA
    assert scores_by_turn((failed,), max_turns=3).is_empty()


def test_all_unscored_has_no_mean(panel_episode):
    found = rows_of(panel_episode(scores=(None, None)))
    assert found[0]["mean"] is None
    assert found[0]["n"] == 0
