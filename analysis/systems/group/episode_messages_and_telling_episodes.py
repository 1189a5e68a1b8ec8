"""One lesson or duel, message by message, with what was thought; and which are worth a look."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final

from tutorsim.analysis.pages.shown_episodes import Episode, Message, Run, Telling, usual_marks
from tutorsim.analysis.pages.words_and_safe_text import spoken
from tutorsim.records.group import DuelRecord, GroupRecord, LessonRecord
from tutorsim.systems.group.speaker_selection_and_its_reasons import reason

TELLING: Final[Telling] = {
    "the first lesson with a simulated learner": lambda one: (
        isinstance(one, LessonRecord) and one.variant != "person"
    ),
    "a lesson with a person": lambda one: one.variant == "person",
    "the first duel": lambda one: isinstance(one, DuelRecord),
    "two orders of judging gave opposite verdicts": lambda one: (
        isinstance(one, DuelRecord) and one.order_dependent
    ),
    "something was withdrawn before it was said": lambda one: any(
        event.cycle and event.cycle.withdrawn for event in one.events
    ),
}
"""Why an episode is worth a look → whether it is one."""


def trace(run: Run, record: GroupRecord) -> Episode:
    """One lesson or duel, message by message, with what was thought.

    A person's lesson has no word of it, unless the run is `with_messages`.
    """
    messages = [*_messages(record)]
    marks = {**usual_marks(record, "Learner"), "Kind": ("duel",)}
    facts: tuple[tuple[str, str], ...]
    if isinstance(record, DuelRecord):
        messages += _duel_end(record)
        result = record.result or "none"
        outcome, line = f"self-selection: {result}", record.kind
        marks["Result"] = (result,)
        facts = (
            ("Kind", record.kind),
            ("Expected speaker", record.expected_speaker),
            ("Result of self-selection", result),
            ("Depends on the order", "yes" if record.order_dependent else "no"),
        )
    else:
        assert isinstance(record, LessonRecord)
        ended = (record.ended_by or "failure").replace("_", " ")
        outcome, line = f"stage {record.stage_reached}, {ended}", record.problem
        marks |= {"Kind": ("lesson",), "Ended by": (ended,)}
        facts = (
            ("Problem", record.problem),
            ("Ended by", record.ended_by or "failure"),
            ("Stage reached", str(record.stage_reached)),
            ("Tasks done", ", ".join(record.tasks_done) or "none"),
        )
    made = Episode(record.episode_id, tuple(messages), outcome, line, facts, marks)
    hidden = record.variant == "person" and not run.with_messages
    return _without_words(made, messages) if hidden else made


def _messages(record: GroupRecord) -> Iterator[Message]:
    def shown(who: str) -> str:
        return record.learner_name if who == "learner" else spoken(who).title()

    for event in record.events:
        who = shown(event.who or "")
        if event.kind == "message":
            to = f", to {', '.join(event.to)}" if event.to else ""
            yield Message(who, event.text, f"event {event.number}, {event.at_s} s{to}")
        elif event.kind == "stage":
            yield Message(f"Stage {event.stage}", event.text, f"event {event.number}")
        elif event.kind == "silence":
            yield Message("Silence", "Nobody wrote.", f"event {event.number}, {event.at_s} s")
        cycle = event.cycle
        for thought in cycle.thoughts if cycle else ():
            score = "listens" if thought.adjusted is None else f"{thought.adjusted:.2f}"
            chosen = ", chosen" if cycle and thought.agent == cycle.chosen else ""
            yield Message(shown(thought.agent), thought.thought, f"thinks, {score}{chosen}", True)
        if cycle and (decided := reason(cycle, shown)):
            yield Message("Next speaker", decided, f"after event {event.number}", True)
        if cycle and cycle.withdrawn and cycle.utterance:
            yield Message(shown(cycle.utterance.agent), cycle.utterance.text, "withdrawn", True)


def _duel_end(record: DuelRecord) -> Iterator[Message]:
    cycle = record.events[-1].cycle if record.events else None
    said = {"self-selection": cycle.utterance if cycle else None, "prediction": record.predicted}
    for system, utterance in said.items():
        if utterance is None:
            yield Message("Nobody", "(the group waits for the learner)", f"by {system}")
        else:
            yield Message(utterance.agent.title(), utterance.text, f"by {system}")
    for judgment in record.judgments:
        text = f"{judgment.better or 'unreadable'}: {judgment.reason}"
        yield Message("Judge", text, f"{judgment.first} first", True)


def _without_words(episode: Episode, messages: Sequence[Message]) -> Episode:
    """The course of a lesson with every text left out: others may quote the person."""
    left = tuple(
        Message(one.speaker, f"({len(one.text.split())} words)", one.note, one.quiet)
        for one in messages
    )
    told = ("Words", "A person's lesson; they are shown with --with-messages.")
    return replace(episode, parts=left, facts=(*episode.facts, told))
