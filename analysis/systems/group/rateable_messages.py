"""What people can rate of group lessons: the agents' messages to the learner."""

from collections.abc import Iterator

from tutorsim.analysis.ratings.rateable_items import Block, Passage, Place
from tutorsim.analysis.systems.system_view import SystemRun
from tutorsim.records.group import LessonRecord

__all__ = ["lesson_passages"]


def lesson_passages(run: SystemRun) -> Iterator[Passage]:
    """Messages of agents, from the learner's first message on.

    Lessons with a person are left out unless the run may be quoted with that person's words.
    """
    for record in run.episodes:
        if not isinstance(record, LessonRecord) or record.status != "complete":
            continue
        if record.variant != "person" or run.with_messages:
            yield from _of_lesson(record)


def _of_lesson(record: LessonRecord) -> Iterator[Passage]:
    said, heard = [Block("Task", record.problem)], False
    for event in record.events:
        if event.kind != "message" or event.who is None:
            continue
        if event.who == "learner":
            said.append(Block("Student", event.text))
            heard = True
            continue
        if heard:
            reply = Block("The tutor's reply to rate", event.text)
            task = f"{record.benchmark}.{record.task_id}"
            place = Place(record.episode_id, event.number, event.who, record.condition, task)
            yield Passage((*said, reply), place)
        said.append(Block("Tutor", event.text))
