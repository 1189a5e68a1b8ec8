"""One lesson or duel, message by message, with what was thought."""

from collections.abc import Iterator

from tutorsim.analysis.pages.document import Dialogue, Message
from tutorsim.records.group import DuelRecord, GroupRecord, LessonRecord
from tutorsim.systems.group.speaker_selection import reason


def episode_dialogue(record: GroupRecord) -> Dialogue:
    """One lesson or duel, message by message, with what was thought."""
    messages = [*_messages(record)]
    facts: tuple[tuple[str, str], ...]
    if isinstance(record, DuelRecord):
        messages += _duel_end(record)
        facts = (
            ("Kind", record.kind),
            ("Expected speaker", record.expected_speaker),
            ("Result of self-selection", record.result or "none"),
            ("Depends on the order", "yes" if record.order_dependent else "no"),
        )
    else:
        assert isinstance(record, LessonRecord)
        facts = (
            ("Problem", record.problem),
            ("Ended by", record.ended_by or "failure"),
            ("Stage reached", str(record.stage_reached)),
            ("Tasks done", ", ".join(record.tasks_done) or "none"),
        )
    return Dialogue(record.episode_id, "", tuple(messages), facts)


def _messages(record: GroupRecord) -> Iterator[Message]:
    def shown(who: str) -> str:
        return record.learner_name if who == "learner" else who.replace("_", " ").title()

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


def without_words(dialogue: Dialogue) -> Dialogue:
    """The course of a lesson with every text left out: others may quote the person."""
    messages = tuple(
        Message(one.speaker, f"({len(one.text.split())} words)", one.note, one.quiet)
        for one in dialogue.messages
    )
    why = "A person's lesson; texts are shown with --with-messages."
    return Dialogue(dialogue.id, why, messages, dialogue.facts)
