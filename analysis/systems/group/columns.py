"""Tables of lessons and duels for other programs, and the messages that people can rate."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

import polars as pl

from tutorsim.analysis.ratings.items import Block, Passage, Place
from tutorsim.analysis.runs.exported_tables import SHARED_TABLES, Table, table_of
from tutorsim.analysis.systems.system_view import SystemRun
from tutorsim.records.group import (
    CycleRecord,
    DuelRecord,
    EventRecord,
    GroupRecord,
    LessonRecord,
    RatingRecord,
    ThoughtRecord,
)

# --- Exported tables -----------------------------------------------------------------------------

Cells = Mapping[str, Any]
SCORES: Final = (
    *("relevance", "impact", "urgency", "coherence", "novelty", "balance"),
    *("internal", "external"),
)
"""Columns of scores; the last two where the evaluator gave the sums alone."""

_TEXT, _WHOLE, _REAL, _YES = pl.String(), pl.Int64(), pl.Float64(), pl.Boolean()
_NAMES: Final = pl.List(pl.String())


def _episodes(record: GroupRecord) -> Iterator[Cells]:
    kinds = [event.kind for event in record.events]
    row = {
        "repeat": record.repeat,
        "status": record.status,
        "events": len(kinds),
        "messages": kinds.count("message"),
        "silences": kinds.count("silence"),
        "seconds": record.events[-1].at_s if record.events else 0,
        "calls": len(record.calls),
    }
    if isinstance(record, LessonRecord):
        row |= {name: getattr(record, name) for name in ("ended_by", "stage_reached", "progress")}
    yield row


def _events(record: GroupRecord) -> Iterator[Cells]:
    for event in record.events:
        yield _event(event, event.cycle or CycleRecord())


def _event(event: EventRecord, cycle: CycleRecord) -> Cells:
    return {
        "event": event.number,
        "kind": event.kind,
        "at_s": event.at_s,
        "stage": event.stage,
        "who": event.who,
        "text": event.text,
        "to": list(event.to),
        "continues": event.continues,
        "signal": cycle.manager.signal if cycle.manager else None,
        "learner": cycle.learner.action if cycle.learner else None,
        "predicted": cycle.prediction.named if cycle.prediction else None,
        "chosen": cycle.chosen,
        "steps": [step.rule for step in cycle.steps],
        "withdrawn": cycle.withdrawn,
        "heard": sum(heard.text is not None for heard in cycle.heard),
    }


def _thoughts(record: GroupRecord) -> Iterator[Cells]:
    for event in record.events:
        cycle = event.cycle or CycleRecord()
        for thought in cycle.thoughts:
            yield _thought(event.number, cycle, thought)


def _thought(number: int, cycle: CycleRecord, thought: ThoughtRecord) -> Cells:
    return {
        "event": number,
        "agent": thought.agent,
        "status": thought.status,
        "action": thought.action,
        "corrects": thought.corrects,
        "silent": thought.silent,
        "speaker": cycle.speaker,
        "floor": cycle.floor,
        "addressed": thought.agent in cycle.addressed,
        "any_addressed": bool(cycle.addressed),
        "score_status": thought.score_status,
        **(thought.scores or {}),
        "total": thought.total,
        "adjusted": thought.adjusted,
        "chosen": thought.agent == cycle.chosen,
        "thought": thought.thought,
    }


def _codes(record: GroupRecord) -> Iterator[Cells]:
    if isinstance(record, LessonRecord):
        who = {event.number: event.who for event in record.events}
        for code in record.codes:
            yield {**code.model_dump(), "who": who[code.event]}


def _duels(record: GroupRecord) -> Iterator[Cells]:
    if isinstance(record, DuelRecord) and record.status == "complete":
        yield {
            "kind": record.kind,
            "difficulty": record.difficulty,
            "expected": record.expected_speaker,
            "self_selected": record.self_selected,
            "predicted": record.prediction.named if record.prediction else None,
            "result": record.result,
            "order_dependent": record.order_dependent,
            "first_order": record.first_order,
        }


def _ratings(record: GroupRecord) -> Iterator[Cells]:
    if isinstance(record, DuelRecord):
        for rating in record.ratings:
            for criterion, score in _scored(rating):
                yield {
                    "kind": record.kind,
                    "system": rating.system,
                    "rater": rating.rater,
                    "criterion": criterion,
                    "score": score,
                }


def _scored(rating: RatingRecord) -> list[tuple[str, float | None]]:
    """Criterion and score; one nameless criterion without a score where nothing could be read."""
    return [*(rating.scores or {}).items()] or [("", None)]


_BID: Final[dict[str, pl.DataType]] = {
    "event": _WHOLE,
    "agent": _TEXT,
    "action": _TEXT,
    "corrects": _YES,
    "silent": _WHOLE,
    "speaker": _TEXT,
    "floor": _YES,
    "addressed": _YES,
    "any_addressed": _YES,
    **dict.fromkeys(SCORES, _REAL),
    "chosen": _YES,
}
BIDS: Final = table_of(_BID, _thoughts)
"""Of the table `thoughts`, the columns that a recount of the selection needs."""

TABLES: Final[dict[str, Table]] = {
    "episodes": table_of(
        {
            "repeat": _WHOLE,
            "status": _TEXT,
            "ended_by": _TEXT,
            "stage_reached": _WHOLE,
            "progress": _REAL,
            "events": _WHOLE,
            "messages": _WHOLE,
            "silences": _WHOLE,
            "seconds": _WHOLE,
            "calls": _WHOLE,
        },
        _episodes,
    ),
    "events": table_of(
        {
            "event": _WHOLE,
            "kind": _TEXT,
            "at_s": _WHOLE,
            "stage": _WHOLE,
            "who": _TEXT,
            "text": _TEXT,
            "to": _NAMES,
            "continues": _YES,
            "signal": _TEXT,
            "learner": _TEXT,
            "predicted": _TEXT,
            "chosen": _TEXT,
            "steps": _NAMES,
            "withdrawn": _YES,
            "heard": _WHOLE,
        },
        _events,
    ),
    "thoughts": table_of(
        {
            "event": _WHOLE,
            "agent": _TEXT,
            "status": _TEXT,
            "action": _TEXT,
            "corrects": _YES,
            "silent": _WHOLE,
            "speaker": _TEXT,
            "floor": _YES,
            "addressed": _YES,
            "any_addressed": _YES,
            "score_status": _TEXT,
            **dict.fromkeys(SCORES, _REAL),
            "total": _REAL,
            "adjusted": _REAL,
            "chosen": _YES,
            "thought": _TEXT,
        },
        _thoughts,
    ),
    "codes": table_of(
        {"event": _WHOLE, "who": _TEXT, "coder": _TEXT, "category": _WHOLE, "attempts": _WHOLE},
        _codes,
    ),
    "duels": table_of(
        {
            "kind": _TEXT,
            "difficulty": _TEXT,
            "expected": _TEXT,
            "self_selected": _TEXT,
            "predicted": _TEXT,
            "result": _TEXT,
            "order_dependent": _YES,
            "first_order": _TEXT,
        },
        _duels,
    ),
    "ratings": table_of(
        {"kind": _TEXT, "system": _TEXT, "rater": _TEXT, "criterion": _TEXT, "score": _REAL},
        _ratings,
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
