from collections.abc import Callable
from math import log
from typing import Any

import pytest

from tutorsim.analysis.metrics.text_similarity import (
    role_collapse,
    similarities,
    text_similarities,
)
from tutorsim.analysis.statistics.intervals_and_tests import Estimate

Make = Callable[..., Any]


def test_the_same_words_are_one_and_other_words_are_nought() -> None:
    assert text_similarities([["Alpha, beta!", "beta alpha"], ["gamma", "delta x"]]) == [
        pytest.approx(1),
        0.0,
    ]


def test_a_shared_word_counts_by_its_rarity() -> None:
    # "aa" in both of two texts: weight ln(3/3) + 1 = 1; "bb", "cc" in one: ln(3/2) + 1.
    rare = log(3 / 2) + 1
    assert text_similarities([["aa bb", "aa cc"]]) == [pytest.approx(1 / (1 + rare**2))]


def test_texts_without_words_are_left_out_and_one_text_has_no_similarity() -> None:
    assert text_similarities([["words here", "", "!"], [], ["one", "one", ""]]) == [
        None,
        None,
        pytest.approx(1),
    ]


def test_role_collapse_is_per_condition_with_its_change(
    panel_turn: Make, panel_episode: Make, panel_source: Make
) -> None:
    same = dict.fromkeys(
        ("scaffolding", "misconception", "motivation", "metacognitive"), "the same"
    )
    turn = panel_turn("simple", {"scaffolding": "motivation"}, texts=same)
    source = panel_source(panel_episode(turn), panel_episode(turn, task="t2"), panel_episode())
    assert similarities(source).select("task", "version", "similarity").rows() == [
        ("t1", "initial", pytest.approx(1)),
        ("t1", "final", pytest.approx(1)),
        ("t2", "initial", pytest.approx(1)),
        ("t2", "final", pytest.approx(1)),
    ]
    found = role_collapse(source)
    assert list(found) == ["simple"]
    change = found["simple"]["change"]
    assert isinstance(change, Estimate)
    assert (change.value, change.n) == (0, 2)


def test_a_run_without_panels_has_no_role_collapse(panel_episode: Make, panel_source: Make) -> None:
    assert role_collapse(panel_source(panel_episode())) == {}
    assert role_collapse(panel_source()) == {}
