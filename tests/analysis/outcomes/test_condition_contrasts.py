from collections.abc import Callable
from typing import Any

import pytest

from tutorsim.analysis.statistics.intervals_and_tests import NotEstimable, PermutationTest
from tutorsim.analysis.systems.panel.contrasts import contrasts

Make = Callable[..., Any]


def test_contrasts_pair_task_and_persona_and_correct_over_the_family(
    panel_episode: Make, panel_source: Make
) -> None:
    base = (0.1, 0.2, 0.3, 0.1, 0.2, 0.3)
    ends = {"baseline": base, "simple": (0.2, 0.4, 0.6, 0.2, 0.4, 0.6), "ranked": base}
    episodes = [
        panel_episode(condition=condition, task=f"t{i}", scores=(0.1, end))
        for condition, scores in ends.items()
        for i, end in enumerate(scores)
    ]
    lone = panel_episode(condition="simple", task="t9", scores=(0.1, 0.7))
    first, second, third = contrasts(panel_source(*episodes, lone), ["final_score"])
    assert [(c.first, c.second) for c in (first, second, third)] == [
        ("baseline", "simple"),
        ("baseline", "ranked"),
        ("simple", "ranked"),
    ]
    # Six differences above 0: two of 64 sign patterns are as large. Three tests in the family.
    # Twice 0.1, 0.2, 0.3: sd sqrt(0.04 / 5) over six tasks.
    spread = pytest.approx((0.04 / 5) ** 0.5)
    assert first.test == PermutationTest(pytest.approx(0.2), 2 / 64, 6, True, 0.0, 6, spread)
    assert first.p_holm == pytest.approx(6 / 64)
    # Three contrasts need seven tasks, whatever the spread.
    assert first.detectable == NotEstimable("too few tasks for 3 contrasts: 6, it takes 7")
    assert isinstance(second.test, PermutationTest)
    assert (second.test.p_value, second.p_holm) == (1.0, 1.0)


def test_pairs_of_one_task_flip_together_and_all_outcomes_are_one_family(
    panel_episode: Make, panel_source: Make
) -> None:
    """Six personas of two tasks all gain: 2 of 2^12 patterns by pair, half of them by task."""
    source = panel_source(
        *(
            panel_episode(condition=c, task=task, persona=persona, scores=(0.1, end))
            for c, end in (("simple", 0.3), ("ranked", 0.9))
            for task in "ab"
            for persona in "uvwxyz"
        )
    )
    found = contrasts(source, ["success", "final_score", "turns"])
    tests = [row.test for row in found]
    assert [(t.p_value, t.n, t.tasks) for t in tests[:2]] == [(0.5, 12, 2)] * 2  # type: ignore[union-attr]
    assert [row.p_holm for row in found] == [1.0] * 3
    # Of these tasks alone 2 of 2^12 patterns are as far; three times as many in a family of three.
    assert [row.p_alone < 0.01 for row in found] == [True, True, False]
    [row] = contrasts(source, ["success"])
    assert row.p_holm == 0.5


def test_a_reference_is_always_the_first_of_a_contrast(
    panel_episode: Make, panel_source: Make
) -> None:
    episodes = [
        panel_episode(condition=c, task=t, scores=(0.1, 0.4))
        for c in ("simple", "baseline", "ranked")
        for t in "ab"
    ]
    found = contrasts(panel_source(*episodes), ["success"], reference="baseline")
    assert [(c.first, c.second) for c in found] == [("baseline", "simple"), ("baseline", "ranked")]


def test_repeats_of_a_pair_are_averaged(panel_episode: Make, panel_source: Make) -> None:
    episodes = [
        panel_episode(task="a", condition="simple", scores=(0.1, 0.4)),
        panel_episode(task="a", condition="ranked", scores=(0.1, 0.2)),
        panel_episode(task="a", condition="ranked", scores=(0.1, 0.4), repeat=2),
        panel_episode(task="b", condition="simple", scores=(0.1, 0.4)),
        panel_episode(task="b", condition="ranked", scores=(0.1, 0.4)),
    ]
    [found] = contrasts(panel_source(*episodes), ["final_score"])
    assert isinstance(found.test, PermutationTest)
    assert found.test.n == 2
    assert found.test.difference == pytest.approx(-0.05)


def test_conditions_without_a_shared_pair_have_no_contrast(
    panel_episode: Make, panel_source: Make
) -> None:
    source = panel_source(
        panel_episode(task="a", condition="simple"), panel_episode(task="b", condition="ranked")
    )
    [found] = contrasts(source, ["final_score"])
    assert (found.test, found.p_holm, found.difference, found.detectable) == (
        NotEstimable("no pairs"),
        None,
        NotEstimable("no observations"),
        NotEstimable("no pairs"),
    )


def test_a_run_without_episodes_has_no_contrasts(panel_source: Make) -> None:
    assert contrasts(panel_source(), ["success"]) == []
