"""Recounts of thresholds, weights and silence against lessons played under them."""

import polars as pl
import pytest

from tests.analysis.systems.group.conftest import RUN, thoughts
from tests.tutorsim.systems.group.conftest import play, standin
from tutorsim.analysis.systems.group.group_view import VIEW
from tutorsim.analysis.systems.group.other_speakers import (
    Change,
    changed_rule,
    curve,
    cycles_of,
    divergences,
    recounted,
    speakers,
)
from tutorsim.errors import UsageError
from tutorsim.systems.group.settings import GroupSettings
from tutorsim.systems.group.speaker_selection import Rule
from tutorsim.systems.group.tasks import builtin_lessons

LOGGED = GroupSettings().rule()
CHANGED = [
    {"threshold": "3"},
    {"threshold": "4"},
    {"threshold": "4.5"},
    {"lambda": "0.1"},
    {"lambda": "1"},
    {"silence": "decay"},
    {"silence": "off", "threshold": "3.9"},
    {"interrupt_threshold": "5"},
    {"selection": "inner_thoughts"},
]


def speaking(record):
    """Event → who spoke, of every cycle that came to a selection."""
    return {e.number: e.cycle.chosen for e in record.events if e.cycle and e.cycle.thoughts}


@pytest.fixture(scope="module")
def logged():
    return {
        lesson.id: play(lesson).record.model_copy(update={"episode_id": lesson.id})
        for lesson in builtin_lessons()[:2]
    }


def rule_of(changed):
    return changed_rule(LOGGED, [Change(key, value) for key, value in changed.items()])


def divergences_of(records, rule):
    cycles = cycles_of(thoughts(records))
    return divergences(cycles, speakers(cycles, rule)).to_dicts()


@pytest.mark.parametrize("changed", CHANGED, ids=str)
def test_a_lesson_played_under_the_change_agrees_before_and_differs_at_the_divergence(
    logged, changed
):
    numbers = {"threshold", "lambda", "interrupt_threshold"}
    setting = {key: float(x) if key in numbers else x for key, x in changed.items()}
    for lesson in builtin_lessons()[:2]:
        before = speaking(logged[lesson.id])
        again = speaking(play(lesson, standin(), **setting).record)
        [found] = divergences_of([logged[lesson.id]], rule_of(changed))
        first = found["event"]
        shared = [event for event in before if first is None or event < first]
        assert {e: before[e] for e in shared} == {e: again[e] for e in shared}
        assert found["cycles"] == len(before)
        assert found["coverage"] == len(shared) / len(before)
        if first is None:
            assert before == again
            assert found["difference"] is None
        else:
            assert (before[first], again[first]) == (found["logged"], found["changed"])
            assert found["logged"] != found["changed"]


def test_some_change_differs_somewhere(logged):
    lessons = [*logged.values()]
    kinds = {
        one["difference"]
        for changed in CHANGED
        for one in divergences_of(lessons, rule_of(changed))
    }
    assert {"another", "nobody", "somebody"} <= kinds


def test_the_logged_rule_recounts_to_the_log(logged):
    cycles = cycles_of(thoughts([*logged.values()]))
    assert speakers(cycles, LOGGED).tolist() == cycles.chosen.tolist()
    found = divergences(cycles, speakers(cycles, LOGGED))
    assert found["event"].is_null().all()
    assert found["coverage"].to_list() == [1.0, 1.0]


def test_a_curve_falls_with_the_threshold(logged):
    cycles = cycles_of(thoughts([*logged.values()]))
    rules = {value: rule_of({"threshold": value}) for value in ("1", "3.5", "5")}
    table = curve(cycles, recounted(cycles, rules))
    anybody = table.filter(table["agent"] == "")["share"].to_list()
    assert anybody[0] > anybody[1] > anybody[2]
    shares = table.filter((table["setting"] == "3.5") & (table["agent"] != ""))["share"]
    assert sum(shares) == pytest.approx(anybody[1])


def test_no_cycle_gives_no_divergence_and_no_share():
    assert divergences_of([], Rule()) == []
    cycles = cycles_of(thoughts([]))
    table = curve(cycles, recounted(cycles, {"x": Rule()}))
    assert table["share"].to_list() == [None]
    assert table["diverged"].to_list() == [None]


@pytest.mark.parametrize(
    ("key", "value"),
    [("threshold", "7"), ("threshold", "high"), ("lambda", "-1"), ("silence", "on"),
     ("criteria", "charm"), ("agents", "bob"), ("interrupt_threshold", "4.5")],
)  # fmt: skip
def test_bad_changes_are_refused(key, value):
    with pytest.raises(UsageError) as caught:
        rule_of({"selection": "inner_thoughts", key: value})
    assert value in str(caught.value) or key in str(caught.value)
    assert caught.value.why
    assert caught.value.hint


def test_each_event_has_its_speaker_under_each_setting(logged):
    """The logged threshold gives who was logged; nobody is null."""
    records = [*logged.values()]
    made = VIEW.outcomes_under({"threshold": ("3.5", "5")})
    frame = made.frame(records, RUN)
    assert frame.height == 2 * sum(len(speaking(record)) for record in records)
    for record in records:
        mine = frame.filter(pl.col("episode_id") == record.episode_id)
        same = mine.filter(pl.col("setting") == "threshold=3.5")
        assert dict(same.select("event", "speaker").iter_rows()) == speaking(record)
        assert same["logged"].equals(same["speaker"].alias("logged"))
    assert frame.filter(pl.col("setting") == "threshold=5")["speaker"].null_count()
    with pytest.raises(UsageError, match="no setting 'colour'"):
        VIEW.outcomes_under({"colour": ("1",)})
