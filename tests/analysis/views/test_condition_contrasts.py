"""Conditions against one another, in a table and a sentence."""

from typing import Any

import pytest

from tutorsim.analysis.systems.panel.contrasts import contrast_table, contrast_words, contrasts_of


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
    assert words == (
        "Beyond chance over tasks: simple − baseline +0.20 in last judge score (sciq), p = 0.008 "
        "(of 1 contrast, Holm, signs flipped by task; 8 tasks)."
    )
    table = contrast_table(found)
    assert table is not None
    assert table.data.row(0)[2:5] == ("simple − baseline", 8, 8)
    assert table.data["p"][0] == "0.008"


def test_no_difference_is_never_told_as_an_absence(panel_episode: Any, panel_source: Any) -> None:
    words = contrast_words(contrasts_of(run_of(panel_episode, panel_source, 8, gain=0.0)))
    assert "No difference between conditions is beyond chance over tasks (2 contrasts" in words
    assert "which does not show that there is none." in words


def test_too_few_tasks_are_told(panel_episode: Any, panel_source: Any) -> None:
    found = contrasts_of(run_of(panel_episode, panel_source, 2, gain=0.2), ["final_score"])
    table = contrast_table(found)
    assert table is not None
    assert "[too few tasks]" in table.data["difference"][0]
    assert table.data["detectable"][0] == "not estimable"
    assert contrast_words(found) == (
        "2 tasks cannot show a difference between conditions: signs flipped by task give no p "
        "below 0.5, and 1 contrast needs 6. About 40 would show one of 0.3 in success with 80 % "
        "power: see `tutorsim guide statistics`."
    )


def test_one_task_speaks_of_itself_alone(panel_episode: Any, panel_source: Any) -> None:
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


def test_a_run_of_one_condition_has_nothing_to_contrast(
    panel_episode: Any, panel_source: Any
) -> None:
    found = contrasts_of(panel_source(panel_episode(condition="simple")))
    assert contrast_table(found) is None
    assert contrast_words(found) == "No two conditions share enough pairs to be compared."
