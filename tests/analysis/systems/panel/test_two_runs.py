import pytest

from tutorsim.analysis.systems.panel.two_runs import compare_runs, comparison_words
from tutorsim.errors import UsageError

S, MI, MO, ME = "scaffolding", "misconception", "motivation", "metacognitive"
ROLES = (S, MI, MO, ME)


def test_runs_are_paired_on_their_place_in_the_grid(panel_turn, panel_episode, panel_source):
    def run(winner, ends):
        turn = panel_turn("simple", dict.fromkeys(ROLES, winner))
        return panel_source(
            *(panel_episode(turn, task=task, scores=(0.0, end)) for task, end in ends.items()),
            panel_episode(turn, task="failed", status="failed"),
        )

    first = run(S, {"a": 0.25, "b": 0.5, "only here": 0.5})
    second = run(MI, {"b": 0.75, "a": 0.375})
    found = compare_runs(first, second)
    assert (found.pairs, found.only_first, found.only_second) == (2, 1, 0)
    by_name = {row.outcome: row for row in found.outcomes}
    assert list(by_name) == ["final_score", "score_gain", "success", "turns"]
    row = by_name["final_score"]
    assert (row.benchmark, row.condition, row.first, row.second) == (
        "sciq",
        "simple",
        0.375,
        0.5625,
    )
    # 0.125 and 0.25; ++ and -- of four sign patterns.
    assert row.difference.value == 0.1875
    assert (row.test.difference, row.test.p_value, row.test.tasks) == (0.1875, 0.5, 2)
    # Four tests in the family: 0.5, 0.5, 1 (0 and +1 in success, none in turns).
    assert row.p_holm == 1.0
    same = found.same_winner["simple"]
    assert (same.value, same.n) == (0.0, 2)
    assert found.caption.count("stand-in") == 2
    assert comparison_words(found) == (
        "Means differ in 3 of 4 outcomes",
        "2 tasks cannot show a difference between runs: signs flipped by task give no p below "
        "0.5, and 4 contrasts need 8.",
    )


def test_a_run_compared_with_itself_differs_in_nothing(panel_turn, panel_episode, panel_source):
    turn = panel_turn("ranked", dict.fromkeys(ROLES, ROLES))
    run = panel_source(panel_episode(turn), panel_episode(turn, task="t2"))
    found = compare_runs(run, run)
    assert found.only_first == found.only_second == 0
    for row in found.outcomes:
        assert (row.difference.value, row.p_holm) == (0, 1.0)
    same = found.same_winner["ranked"]
    assert same.value == 1.0
    assert comparison_words(found) == (
        "Nothing differs",
        "Every paired outcome is equal and every first turn has the same winner.",
    )


def test_runs_that_share_nothing_are_refused(panel_episode, panel_source):
    one, other = panel_source(panel_episode()), panel_source(panel_episode(task="other"))
    for second in (other, panel_source()):
        with pytest.raises(UsageError, match="share no episode that both have complete"):
            compare_runs(one, second)
