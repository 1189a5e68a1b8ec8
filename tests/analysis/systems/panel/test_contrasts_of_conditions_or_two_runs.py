"""Contrasts of conditions and of two runs, in pairs."""

from dataclasses import replace

import pytest

from tests.analysis.panel_runs import panel_episode, panel_source, panel_turn
from tutorsim.analysis.statistics.intervals_and_tests import NotEstimable, PermutationTest
from tutorsim.analysis.systems.panel.contrasts_of_conditions_or_two_runs import (
    Family,
    compare_runs,
    comparison_words,
    contrast_words,
    contrasts_of,
    contrasts_table,
)
from tutorsim.errors import UsageError


def test_contrasts_pair_task_and_persona_and_correct_over_the_family():
    base = (0.1, 0.2, 0.3, 0.1, 0.2, 0.3)
    ends = {"approval": base, "simple": (0.2, 0.4, 0.6, 0.2, 0.4, 0.6), "ranked": base}
    episodes = [
        panel_episode(condition=condition, task=f"t{i}", scores=(0.1, end))
        for condition, scores in ends.items()
        for i, end in enumerate(scores)
    ]
    lone = panel_episode(condition="simple", task="t9", scores=(0.1, 0.7))
    first, second, third = contrasts_of(panel_source(*episodes, lone), ["final_score"])
    values = [(c.first, c.second) for c in (first, second, third)]
    assert values == [("approval", "simple"), ("approval", "ranked"), ("simple", "ranked")]
    # Six differences above 0: two of 64 sign patterns are as large. Three tests in the family.
    # Twice 0.1, 0.2, 0.3: sd sqrt(0.04 / 5) over six tasks.
    spread = pytest.approx((0.04 / 5) ** 0.5)
    assert first.test == PermutationTest(pytest.approx(0.2), 2 / 64, 6, True, 0.0, 6, spread)
    assert first.p_holm == pytest.approx(6 / 64)
    # Three contrasts need seven tasks, whatever the spread.
    assert first.detectable == NotEstimable("too few tasks for 3 contrasts: 6, it takes 7")
    assert (second.test.p_value, second.p_holm) == (1.0, 1.0)


def test_pairs_of_one_task_flip_together_and_all_outcomes_are_one_family():
    """Six personas of two tasks all gain: 2 of 2^12 patterns by pair, half of them by task."""
    source = panel_source(
        *(
            panel_episode(condition=c, task=task, persona=persona, scores=(0.1, end))
            for c, end in (("simple", 0.3), ("ranked", 0.9))
            for task in "ab"
            for persona in "uvwxyz"
        )
    )
    found = contrasts_of(source, ["success", "final_score", "turns"])
    tests = [row.test for row in found]
    assert [(t.p_value, t.n, t.tasks) for t in tests[:2]] == [(0.5, 12, 2)] * 2  # type: ignore[union-attr]
    assert [row.p_holm for row in found] == [1.0] * 3
    # Of these tasks alone 2 of 2^12 patterns are as far; three times as many in a family of three.
    assert [row.p_alone < 0.01 for row in found] == [True, True, False]
    [row] = contrasts_of(source, ["success"])
    assert row.p_holm == 0.5


def test_the_single_tutor_is_always_the_first_of_a_contrast():
    episodes = [
        panel_episode(condition=c, task=t, scores=(0.1, 0.4))
        for c in ("simple", "baseline", "ranked")
        for t in "ab"
    ]
    found = contrasts_of(panel_source(*episodes), ["success"])
    assert [(c.first, c.second) for c in found] == [("baseline", "simple"), ("baseline", "ranked")]


def test_repeats_of_a_pair_are_averaged():
    episodes = [
        panel_episode(task="a", condition="simple", scores=(0.1, 0.4)),
        panel_episode(task="a", condition="ranked", scores=(0.1, 0.2)),
        panel_episode(task="a", condition="ranked", scores=(0.1, 0.4), repeat=2),
        panel_episode(task="b", condition="simple", scores=(0.1, 0.4)),
        panel_episode(task="b", condition="ranked", scores=(0.1, 0.4)),
    ]
    [found] = contrasts_of(panel_source(*episodes), ["final_score"])
    assert found.test.n == 2
    assert found.test.difference == pytest.approx(-0.05)


def test_conditions_without_a_shared_pair_have_no_contrast():
    source = panel_source(
        panel_episode(task="a", condition="simple"), panel_episode(task="b", condition="ranked")
    )
    [found] = contrasts_of(source, ["final_score"])
    assert (found.test, found.p_holm, found.difference, found.detectable) == (
        NotEstimable("no pairs"),
        None,
        NotEstimable("no observations"),
        NotEstimable("no pairs"),
    )


def test_a_run_without_episodes_has_no_contrasts():
    assert contrasts_of(panel_source(), ["success"]) == []


# --- Conditions against one another, in a table and a sentence ------------------------------------


def run_of(tasks, *, gain):
    """Each task once under the single tutor and once under simple voting."""
    scores = [0.1 + 0.05 * (i % 3) for i in range(tasks)]
    return panel_source(
        *(
            panel_episode(condition=condition, task=f"t{i}", scores=(0.1, score + extra))
            for condition, extra in (("baseline", 0.0), ("simple", gain))
            for i, score in enumerate(scores)
        )
    )


def test_a_difference_beyond_chance_is_told_with_its_size():
    found = contrasts_of(run_of(8, gain=0.2), ["final_score"])
    [row] = found
    # Eight differences of 0.2: 2 of 2^8 sign patterns are as large.
    assert row.p_holm == pytest.approx(2 / 256)
    words = contrast_words(found)
    assert words == (
        "Beyond chance over tasks: simple − baseline +0.20 in last judge score (sciq), p = 0.008. "
        "1 contrast was tested over 8 tasks, by flipping signs of tasks, with Holm's correction."
    )
    table = contrasts_table(Family(found))
    assert table.data["difference of"][0] == "simple − baseline in last judge score (sciq)"
    assert table.data.row(0)[3:5] == (8, 8)
    assert table.data["p"][0] == "0.008"


def test_no_difference_is_never_told_as_an_absence():
    words = contrast_words(contrasts_of(run_of(8, gain=0.0)))
    assert words.startswith("No difference between conditions is beyond chance over tasks, which")
    assert "which does not show that there is none. 2 contrasts were tested over 8 tasks" in words


def test_too_few_tasks_are_told():
    found = contrasts_of(run_of(2, gain=0.2), ["final_score"])
    table = contrasts_table(Family(found))
    assert table.data["difference"][0] == "+0.20"
    assert table.caption.endswith(" Without an interval: too few tasks.")
    assert table.data["detectable"][0] == "not estimable"
    assert contrast_words(found) == (
        "2 tasks cannot show a difference between conditions. Signs flipped by task give no p "
        "below 0.5. For 1 contrast at least 6 tasks are needed. About 40 would show a difference "
        "of 0.3 in success. That is with 80 % power: see `tutorsim guide statistics`."
    )


def test_one_task_speaks_of_itself_alone():
    """One task under six personas, all of which gain: a claim about them alone."""
    source = panel_source(
        *(
            panel_episode(condition=condition, persona=persona, scores=(0.1, end))
            for condition, end in (("baseline", 0.2), ("simple", 0.9))
            for persona in "uvwxyz"
        )
    )
    words = contrast_words(contrasts_of(source, ["final_score"]))
    assert words.startswith("One task under each of the conditions compared: nothing here speaks")
    alone = "On these tasks and personas alone, were they run again: simple − baseline +0.70"
    assert alone in words


def test_a_run_of_one_condition_has_nothing_to_contrast():
    found = contrasts_of(panel_source(panel_episode(condition="simple")))
    assert contrasts_table(Family(found)) is None
    assert contrast_words(found) == "No two conditions share enough pairs to be compared."


# --- Two runs ------------------------------------------------------------------------------------

S, MI, MO, ME = "scaffolding", "misconception", "motivation", "metacognitive"
ROLES = (S, MI, MO, ME)


def test_runs_are_paired_on_their_place_in_the_grid():
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
    values = (row.benchmark, row.condition, row.first_mean, row.second_mean)
    assert values == ("sciq", "simple", 0.375, 0.5625)
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
        "2 tasks cannot show a difference between runs. Signs flipped by task give no p below "
        "0.5. For 4 contrasts at least 8 tasks are needed.",
    )


def test_a_run_compared_with_itself_differs_in_nothing():
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


def test_runs_that_share_nothing_are_refused():
    one, other = panel_source(panel_episode()), panel_source(panel_episode(task="other"))
    for second in (other, panel_source()):
        with pytest.raises(UsageError, match="share no episode that both have complete"):
            compare_runs(one, second)


def test_opposite_differences_are_no_equality(decided_and_tied):
    """One pair up and one down by as much: the mean is 0, and still they differ."""
    up, down = decided_and_tied.episodes
    moved = (
        up.model_copy(update={"final_correctness": 0.6}),
        down.model_copy(update={"final_correctness": 0.6}),
    )
    headline, words = comparison_words(
        compare_runs(decided_and_tied, replace(decided_and_tied, episodes=moved))
    )
    assert headline != "Nothing differs"
    assert "cannot show a difference between runs" in words
