"""What people can rate of lessons: agents' messages, and no person's words unasked."""

from types import SimpleNamespace

import pytest

from tutorsim.analysis.ratings.texts_to_rate_as_raters_see import items_of
from tutorsim.analysis.systems.group.exported_tables_messages_to_rate import lesson_passages
from tutorsim.records.group import EventRecord, LessonRecord

SAID = (("bob", "Hello."), ("learner", "What now?"), ("alice", "Try y."), ("bob", "And then x."))


def lesson(**changes):
    events = [
        EventRecord(number=number, kind="message", at_s=8 * number, stage=1, who=who, text=text)
        for number, (who, text) in enumerate(SAID, start=1)
    ]
    events.insert(2, EventRecord(number=9, kind="silence", at_s=20, stage=1))
    whole = {
        "episode_id": "lesson.run.tom.self_select", "benchmark": "lesson", "task_id": "run",
        "variant": "tom", "condition": "self_select",
        "agents": ("alice", "bob"),
        "learner_name": "Tom", "problem": "How long is the fence?", "events": tuple(events),
        "ended_by": "tasks_done", "stage_reached": 1,
        "tasks_done": (),
        "progress": 1.0,
    }  # fmt: skip
    return LessonRecord(**{**whole, **changes})


def passages(*records, with_messages=False):
    return list(lesson_passages(SimpleNamespace(episodes=records, with_messages=with_messages)))


def test_messages_of_agents_count_from_the_learner_s_first_one_on():
    found = passages(lesson())
    assert [one.place.role for one in found] == ["alice", "bob"]
    last = [*items_of(found).values()][-1]
    assert last.text == (
        "Task:\nHow long is the fence?\n\nTutor:\nHello.\n\nStudent:\nWhat now?\n\n"
        "Tutor:\nTry y.\n\nThe tutor's reply to rate:\nAnd then x."
    )


@pytest.mark.parametrize("changes", [{"variant": "person"}, {"status": "failed"}])
def test_lessons_with_a_person_and_failed_ones_are_left_out(changes):
    assert passages(lesson(**changes)) == []


def test_a_person_s_lesson_is_shown_if_asked_for():
    assert len(passages(lesson(variant="person"), with_messages=True)) == 2


def test_the_same_words_in_two_lessons_are_one_item_at_two_places():
    found = items_of(passages(lesson(), lesson(episode_id="lesson.run.tom.next_speaker")))
    assert [len(item.places) for item in found.values()] == [2, 2]
