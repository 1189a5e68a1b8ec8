"""Tables of lessons and duels for other programs, and the messages that people can rate."""

from collections.abc import Callable, Iterator
from typing import Any, Final

from tutorsim.analysis.ratings.texts_to_rate_as_raters_see import Block, Passage, Place
from tutorsim.analysis.runs.exported_tables import (
    SHARED_TABLES,
    Column,
    Parts,
    Table,
    real,
    several,
    table_of,
    text,
    whole,
    yes,
)
from tutorsim.analysis.systems.system_view_opened_run_and_cost import SystemRun
from tutorsim.records.group import CycleRecord, DuelRecord, GroupRecord, LessonRecord

# --- Exported tables -----------------------------------------------------------------------------

SCORES: Final = (
    *("relevance", "impact", "urgency", "coherence", "novelty", "balance"),
    *("internal", "external"),
)
"""Columns of scores; the last two where the evaluator gave the sums alone."""


def _count(kind: str) -> Column:
    """Number of events of a kind."""
    return whole(lambda record: sum(event.kind == kind for event in record.events))


def in_lesson(name: str) -> Callable[[GroupRecord], Any]:
    """What a lesson says; null for a duel."""
    return lambda record: getattr(record, name) if isinstance(record, LessonRecord) else None


def _thoughts(record: GroupRecord) -> Iterator[Parts]:
    for event in record.events:
        cycle = event.cycle or CycleRecord()
        yield from ((record, event, cycle, thought) for thought in cycle.thoughts)


def _score(name: str) -> Column:
    return real(lambda _, __, ___, thought: (thought.scores or {}).get(name))


def _codes(record: GroupRecord) -> Iterator[Parts]:
    if isinstance(record, LessonRecord):
        who = {event.number: event.who for event in record.events}
        yield from ((record, who[code.event], code) for code in record.codes)


def _ratings(record: GroupRecord) -> Iterator[Parts]:
    """Nameless and null where nothing could be read."""
    for rating in record.ratings if isinstance(record, DuelRecord) else ():
        scores = rating.scores.items() if rating.scores else [("", None)]
        yield from ((record, rating, *one) for one in scores)


_THOUGHT: Final = {
    "event": whole("event.number"),
    "agent": text(),
    "status": text(),
    "action": text(),
    "corrects": yes(),
    "silent": whole(),
    "speaker": text("cycle.speaker"),
    "floor": yes("cycle.floor"),
    "addressed": yes(lambda _, __, cycle, thought: thought.agent in cycle.addressed),
    "any_addressed": yes(lambda _, __, cycle, ___: bool(cycle.addressed)),
    "score_status": text(),
    **{name: _score(name) for name in SCORES},
    "total": real(),
    "adjusted": real(),
    "chosen": yes(lambda _, __, cycle, thought: thought.agent == cycle.chosen),
    "thought": text(),
}
_OF_THOUGHT: Final = ("record", "event", "cycle", "thought")
_NO_BID: Final = ("status", "score_status", "total", "adjusted", "thought")
_BID: Final = {name: column for name, column in _THOUGHT.items() if name not in _NO_BID}
BIDS: Final = table_of(_thoughts, _OF_THOUGHT, **_BID)
"""Columns of the table `thoughts` that a recount of the selection needs."""

TABLES: Final[dict[str, Table]] = {
    "episodes": table_of(
        repeat=whole(),
        status=text(),
        ended_by=text(in_lesson("ended_by")),
        stage_reached=whole(in_lesson("stage_reached")),
        progress=real(in_lesson("progress")),
        events=whole(lambda record: len(record.events)),
        messages=_count("message"),
        silences=_count("silence"),
        seconds=whole(lambda record: record.events[-1].at_s if record.events else 0),
        calls=whole(lambda record: len(record.calls)),
    ),
    "events": table_of(
        lambda record: ((record, event.cycle or CycleRecord(), event) for event in record.events),
        ("record", "cycle", "event"),
        event=whole("event.number"),
        kind=text(),
        at_s=whole(),
        stage=whole(),
        who=text(),
        text=text(),
        to=several(text()),
        continues=yes(),
        signal=text("cycle.manager.signal"),
        learner=text("cycle.learner.action"),
        predicted=text("cycle.prediction.named"),
        chosen=text("cycle.chosen"),
        steps=several(text(lambda _, cycle, __: [step.rule for step in cycle.steps])),
        withdrawn=yes("cycle.withdrawn"),
        heard=whole(lambda _, cycle, __: sum(one.text is not None for one in cycle.heard)),
    ),
    "thoughts": table_of(_thoughts, _OF_THOUGHT, **_THOUGHT),
    "codes": table_of(
        _codes,
        ("record", "who", "code"),
        event=whole(),
        who=text("who"),
        coder=text(),
        category=whole(),
        attempts=whole(),
    ),
    "duels": table_of(
        lambda one: [(one,)] if isinstance(one, DuelRecord) and one.status == "complete" else [],
        kind=text(),
        difficulty=text(),
        expected=text("expected_speaker"),
        self_selected=text(),
        predicted=text("prediction.named"),
        result=text(),
        order_dependent=yes(),
        first_order=text(),
    ),
    "ratings": table_of(
        _ratings,
        ("duel", "rating", "criterion", "score"),
        kind=text("duel.kind"),
        system=text("rating.system"),
        rater=text("rating.rater"),
        criterion=text("criterion"),
        score=real("score"),
    ),
    **SHARED_TABLES,
}
"""Every table of a group's run by name.

`thoughts` has one row per event and agent that thought, in catalog order within an event: all that
a recount of the selection needs. Thoughts of a duel's warm-up, which were never scored, are left
out.
"""


# --- Rateable messages ---------------------------------------------------------------------------


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
