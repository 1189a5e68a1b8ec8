"""The range of calls that a lesson or a duel can take."""

from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.tutorsim.systems.group.conftest import play, standin, study_of
from tests.tutorsim.systems.group.test_lesson_flow import bounded, quiet
from tutorsim.kernel.cost_plan import estimate_tokens, total_tokens
from tutorsim.kernel.flow import PersonInput
from tutorsim.kernel.system import Chance
from tutorsim.systems.group.settings import GroupSettings
from tutorsim.systems.group.study import lesson_calls
from tutorsim.systems.group.tasks import builtin_lessons, builtin_scenarios


def range_of(task, condition, **changed):
    loaded = study_of(task, **changed)
    [spec] = [one for one in loaded.grid() if one.condition in (condition, "duel")]
    return loaded.call_range(spec)


@pytest.mark.parametrize("condition", ["self_select", "next_speaker"])
def test_a_lesson_in_which_nobody_speaks_takes_the_least(lesson, condition):
    played = play(lesson, quiet, condition=condition)
    assert len(played.calls) == range_of(lesson, condition).least


def test_the_least_of_three_agents_is_a_hand_count():
    # event 1: three thoughts; silences 1 and 2: the learner and three thoughts; silence 3 ends it
    assert lesson_calls(GroupSettings(), predicted=False, person=False)[0] == 3 + 4 + 4
    assert lesson_calls(GroupSettings(), predicted=True, person=False)[0] == 1 + 2 + 2


def test_the_most_of_a_short_lesson_is_a_hand_count():
    # three events: the first cycle ends in an agent's message with the floor, the second in any.
    # 3 thoughts, scores, words, 2 codes; manager, learner asked by its name, 3 thoughts, scores,
    # words, 2 codes
    settings = GroupSettings(max_events=3)
    assert lesson_calls(settings, predicted=False, person=False)[1] == (3 + 2 + 2) + (
        1 + 1 + 3 + 2 + 2
    )


@pytest.mark.parametrize("condition", ["self_select", "next_speaker"])
def test_a_talkative_lesson_stays_below_the_most(lesson, condition):
    played = play(lesson, bounded, condition=condition)
    bounds = range_of(lesson, condition)
    assert bounds.least < len(played.calls) <= bounds.most


@pytest.mark.parametrize("condition", ["self_select", "next_speaker"])
def test_the_longest_lesson_with_a_person_has_the_tokens_of_all_its_calls(lesson, condition):
    """The person stays to the end; on the shortest path they leave at once."""
    loaded = study_of(lesson, learner="person", conditions=[condition])
    [spec] = loaded.grid()
    assert not total_tokens(estimate_tokens(loaded, longest=False).values())
    tokens = total_tokens(estimate_tokens(loaded, longest=True).values())
    played = play(
        lesson, partial(loaded.usual_reply, spec, longest=True), condition=condition,
        persona="person", listen=lambda _: PersonInput(None, 0),
    )  # fmt: skip
    assert len(played.calls) == loaded.call_range(spec).most
    asked = sum(call.input_tokens for call in played.record.calls)
    assert sum(asked for asked, _ in tokens.values()) == asked > 100_000


@pytest.mark.costly
@given(st.integers(0, 10_000))
def test_lessons_of_any_course_stay_within_the_ceiling(seed):
    answer, chance = standin(seed), Chance(seed)

    def reply(call):
        return "no" if chance.happens(str(call.key), 0.05) else answer(call)

    lesson = builtin_lessons()[seed % 4]
    played = play(lesson, reply, max_events=12)
    bounds = range_of(lesson, "self_select", max_events=12)
    first = [call for call in played.calls if call.key.attempt == 1]
    assert bounds.least <= len(first) <= bounds.most
    assert len(played.calls) <= bounds.ceiling


@pytest.mark.parametrize("warm_up", [True, False])
def test_duels_stay_within_their_range(warm_up):
    for scenario in builtin_scenarios():
        first = [c for c in play(scenario, warm_up=warm_up).calls if c.key.attempt == 1]
        bounds = range_of(scenario, "duel", warm_up=warm_up)
        assert bounds.least <= len(first) <= bounds.most
