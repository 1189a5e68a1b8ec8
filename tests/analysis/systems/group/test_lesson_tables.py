"""Tables of lessons: conditions apart, and intervals over lessons."""

import pytest

from tests.tutorsim.systems.group.conftest import play, standin
from tutorsim.analysis.systems.group.lesson_tables import (
    balance_table,
    categories_table,
    phases_table,
)
from tutorsim.systems.group.tasks import builtin_lessons


@pytest.fixture(scope="module")
def lessons():
    """Two lessons of each shipped problem under both conditions."""
    return [
        play(lesson, standin(seed), condition=condition).record.model_copy(
            update={"episode_id": f"{lesson.id}.{condition}.{seed}"}
        )
        for condition in ("self_select", "next_speaker")
        for lesson in builtin_lessons()
        for seed in (1, 2)
    ]


@pytest.mark.parametrize("table", [categories_table, phases_table])
def test_the_baseline_stands_apart_and_printed_figures_beside_self_selection(lessons, table):
    whole = table(lessons).data
    for condition in ("self_select", "next_speaker"):
        alone = table([one for one in lessons if one.condition == condition]).data
        own = whole.filter(whole["condition"] == condition)
        assert own.to_dicts() == alone.to_dicts()
        assert own["printed"].is_not_null().any() == (condition == "self_select")


def test_the_interval_of_a_slope_is_over_lessons(lessons):
    for row in balance_table(lessons).data.iter_rows(named=True):
        assert row["lessons"] > len(builtin_lessons()) == 4
        assert row["low"] < row["change"] < row["high"]
    [three_problems] = balance_table(lessons[:6]).data.to_dicts()
    assert three_problems["low"] < three_problems["change"] < three_problems["high"]
    [three_lessons] = balance_table(lessons[:3]).data.to_dicts()
    assert three_lessons["low"] is None
