"""Conditions against one another, in a table and a sentence."""

from typing import Any

import pytest

from tutorsim.analysis.views.condition_contrasts import contrast_table, contrast_words, contrasts_of


def run_of(panel_episode: Any, panel_source: Any, tasks: int, *, gain: float) -> Any:
    """Each task once under the single tutor and once under simple voting."""
    scores = [0.1 + 0.05 * (i % 3) for i in range(tasks)]
    return panel_source(
        *(
            panel_episode(condition=condition, task=f"t{i}", scores=(0.1, score + extra))
            for condition, extra in (("baseline", 0.0), ("simple", gain))
            for i, score in enumerate(scores)
        )
    )


def test_a_difference_beyond_chance_is_told_with_its_size(
    panel_episode: Any, panel_source: Any
) -> None:
    found = contrasts_of(run_of(panel_episode, panel_source, 8, gain=0.2), ["final_score"])
    [row] = found
    # Eight differences of 0.2: 2 of 2^8 sign patterns are as large.
    assert row.p_holm == pytest.approx(2 / 256)
    words = contrast_words(found)
    assert "simple − baseline +0.20 in last judge score (sciq), of 1 contrasts" in words
    table = contrast_table(found)
    assert table is not None
    assert table.data.row(0)[2:4] == ("simple − baseline", 8)
    assert table.data["p"][0] == "0.008"


def test_no_difference_is_never_told_as_an_absence(panel_episode: Any, panel_source: Any) -> None:
    words = contrast_words(contrasts_of(run_of(panel_episode, panel_source, 8, gain=0.0)))
    assert "does not show that there is none" in words


def test_too_few_tasks_are_told(panel_episode: Any, panel_source: Any) -> None:
    found = contrasts_of(run_of(panel_episode, panel_source, 2, gain=0.2), ["final_score"])
    table = contrast_table(found)
    assert table is not None
    assert "[too few tasks]" in table.data["difference"][0]
    assert table.data["detectable"][0] == "not estimable"
    assert "too few tasks" in contrast_words(found)


def test_a_run_of_one_condition_has_nothing_to_contrast(
    panel_episode: Any, panel_source: Any
) -> None:
    found = contrasts_of(panel_source(panel_episode(condition="simple")))
    assert contrast_table(found) is None
    assert contrast_words(found) == "No two conditions share enough pairs to be compared."
