"""Tables of a run of debates, for `export`."""

from collections.abc import Iterator
from typing import Any, Final

import polars as pl

from tutorsim.analysis.runs.exported_tables import PLACE, SHARED_TABLES, Table, place_of
from tutorsim.records import RunRecord
from tutorsim.records.debate import DebateRecord

Row = tuple[Any, ...]

EPISODES_SCHEMA: Final = pl.Schema(
    {
        **PLACE,
        "repeat": pl.Int64(),
        "status": pl.String(),  # complete or failed
        "ended_by": pl.String(),  # vote, consensus, limit or full; null for a model alone
        "decided": pl.Boolean(),  # null where there was nothing to decide
        "turns_taken": pl.Int64(),
        "answer": pl.String(),  # null if nothing was delivered
        "answer_of": pl.String(),
        "letter": pl.String(),
        "gold": pl.List(pl.String()),
        "score": pl.Float64(),  # in [0, 1]; null: nothing to score, never zero
        "exact": pl.Float64(),  # exact match of open questions
        "readable": pl.Boolean(),
        "failure": pl.String(),
    }
)
"""One row per episode."""

MESSAGES_SCHEMA: Final = pl.Schema(
    {
        **PLACE,
        "repeat": pl.Int64(),
        "turn": pl.Int64(),
        "number": pl.Int64(),
        "agent": pl.String(),
        "round": pl.Int64(),
        "kind": pl.String(),
        "shown": pl.List(pl.Int64()),
        "agreement": pl.String(),
        "text": pl.String(),
        "solution": pl.String(),
        "status": pl.String(),
        "solution_status": pl.String(),
    }
)
"""One row per message."""

ANSWERS_SCHEMA: Final = pl.Schema(
    {
        **PLACE,
        "repeat": pl.Int64(),
        "turn": pl.Int64(),
        "agent": pl.String(),
        "answer": pl.String(),
        "letter": pl.String(),
        "confidence": pl.Int64(),
        "candidate": pl.Boolean(),  # false for an answer that an earlier agent gave too
        "score": pl.Float64(),
    }
)
"""One row per final answer of an agent."""

CHALLENGES_SCHEMA: Final = pl.Schema(
    {
        **PLACE,
        "repeat": pl.Int64(),
        "setting": pl.String(),
        "agent": pl.String(),
        "shown_answer": pl.String(),
        "challenged": pl.Boolean(),  # null where the reply was neither word
        "counter": pl.String(),
        "score": pl.Float64(),  # of the counter answer
    }
)
"""One row per judgement of a challenge."""


def _episode_rows(record: DebateRecord, run: RunRecord) -> Iterator[Row]:
    yield (
        *place_of(record, run),
        record.repeat,
        record.status,
        record.ended_by,
        record.decided,
        record.turns_taken,
        record.answer,
        record.answer_of,
        record.letter,
        list(record.gold),
        record.score,
        record.exact,
        record.readable,
        None if record.failure is None else f"{record.failure.key}: {record.failure.error}",
    )


def _message_rows(record: DebateRecord, run: RunRecord) -> Iterator[Row]:
    place = place_of(record, run)
    for turn in record.turns if record.status == "complete" else ():
        for one in turn.messages:
            head = (record.repeat, turn.turn, one.number, one.agent, one.round, one.kind)
            said = (list(one.shown), one.agreement, one.text, one.solution)
            yield (*place, *head, *said, one.status, one.solution_status)


def _answer_rows(record: DebateRecord, run: RunRecord) -> Iterator[Row]:
    place = place_of(record, run)
    for turn in record.turns if record.status == "complete" else ():
        for agent, answer in turn.answers.items():
            stands = agent in turn.candidates
            told = (answer.text, answer.letter, answer.confidence, stands)
            yield (*place, record.repeat, turn.turn, agent, *told, record.worth(answer.text).value)


def _challenge_rows(record: DebateRecord, run: RunRecord) -> Iterator[Row]:
    place = place_of(record, run)
    for one in record.challenges if record.status == "complete" else ():
        told = (one.shown_answer, one.challenged, one.counter, one.score)
        yield (*place, record.repeat, one.setting, one.agent, *told)


TABLES: Final[dict[str, Table]] = {
    "episodes": Table(EPISODES_SCHEMA, _episode_rows),
    "messages": Table(MESSAGES_SCHEMA, _message_rows),
    "answers": Table(ANSWERS_SCHEMA, _answer_rows),
    "challenges": Table(CHALLENGES_SCHEMA, _challenge_rows),
    **SHARED_TABLES,
}
"""Every table of a run of debates by name."""
