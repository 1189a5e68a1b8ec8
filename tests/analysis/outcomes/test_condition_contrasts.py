from collections.abc import Callable
from typing import Any

import pytest

from tutorsim.analysis.outcomes.condition_contrasts import contrasts
from tutorsim.analysis.statistics.intervals_and_tests import NotEstimable, PermutationTest

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
    first, second, third = contrasts(panel_source(*episodes, lone), "final_score")
    assert [(c.first, c.second) for c in (first, second, third)] == [
        ("baseline", "simple"),
        ("baseline", "ranked"),
        ("simple", "ranked"),
    ]
    # Six differences above 0: two of 64 sign patterns are as large. Three tests in the family.
    assert first.test == PermutationTest(pytest.approx(0.2), 2 / 64, 6, exact=True)
    assert first.p_holm == pytest.approx(6 / 64)
    # Twice 0.1, 0.2, 0.3: sd sqrt(0.04 / 5) over six tasks.
    assert first.detectable == pytest.approx(2.801585 * (0.04 / 5) ** 0.5 / 6**0.5, abs=1e-6)
    assert isinstance(second.test, PermutationTest)
    assert (second.test.p_value, second.p_holm) == (1.0, 1.0)


def test_a_reference_is_always_the_first_of_a_contrast(
    panel_episode: Make, panel_source: Make
) -> None:
    episodes = [
        panel_episode(condition=c, task=t, scores=(0.1, 0.4))
        for c in ("simple", "baseline", "ranked")
        for t in "ab"
    ]
    found = contrasts(panel_source(*episodes), "success", reference="baseline")
    assert [(c.first, c.second) for c in found] == [("baseline", "simple"), ("baseline", "ranked")]


def test_repeats_of_a_pair_are_averaged(panel_episode: Make, panel_source: Make) -> None:
    episodes = [
        panel_episode(task="a", condition="simple", scores=(0.1, 0.4)),
        panel_episode(task="a", condition="ranked", scores=(0.1, 0.2)),
        panel_episode(task="a", condition="ranked", scores=(0.1, 0.4), repeat=2),
        panel_episode(task="b", condition="simple", scores=(0.1, 0.4)),
        panel_episode(task="b", condition="ranked", scores=(0.1, 0.4)),
    ]
    [found] = contrasts(panel_source(*episodes), "final_score")
    assert isinstance(found.test, PermutationTest)
    assert found.test.n == 2
    assert found.test.difference == pytest.approx(-0.05)


def test_conditions_without_a_shared_pair_have_no_contrast(
    panel_episode: Make, panel_source: Make
) -> None:
    source = panel_source(
        panel_episode(task="a", condition="simple"), panel_episode(task="b", condition="ranked")
    )
    [found] = contrasts(source, "final_score")
    assert (found.test, found.p_holm, found.difference, found.detectable) == (
        NotEstimable("no pairs"),
        None,
        NotEstimable("no observations"),
        NotEstimable("no pairs"),
    )


def test_a_run_without_episodes_has_no_contrasts(panel_source: Make) -> None:
    assert contrasts(panel_source(), "success") == []
