"""Tables of a run of debates, for `export`."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

import polars as pl

from tutorsim.analysis.runs.exported_tables import SHARED_TABLES, Table, table_of
from tutorsim.records.debate import DebateRecord, DebateTurn

Cells = Mapping[str, Any]

_TEXT, _WHOLE, _REAL, _YES = pl.String(), pl.Int64(), pl.Float64(), pl.Boolean()


def _episodes(record: DebateRecord) -> Iterator[Cells]:
    failure = record.failure
    told = None if failure is None else f"{failure.key}: {failure.error}"
    yield {**vars(record), "gold": list(record.gold), "failure": told}


def _turns(record: DebateRecord) -> tuple[DebateTurn, ...]:
    return record.turns if record.status == "complete" else ()


def _messages(record: DebateRecord) -> Iterator[Cells]:
    for turn in _turns(record):
        place = {"repeat": record.repeat, "turn": turn.turn}
        for message in turn.messages:
            yield {**vars(message), **place, "shown": list(message.shown)}


def _answers(record: DebateRecord) -> Iterator[Cells]:
    for turn in _turns(record):
        for agent, answer in turn.answers.items():
            yield {
                **vars(answer),
                "repeat": record.repeat,
                "turn": turn.turn,
                "agent": agent,
                "answer": answer.text,
                "candidate": agent in turn.candidates,
                "score": record.worth(answer.text).value,
            }


def _challenges(record: DebateRecord) -> Iterator[Cells]:
    for one in record.challenges if record.status == "complete" else ():
        yield {**vars(one), "repeat": record.repeat}


TABLES: Final[dict[str, Table]] = {
    "episodes": table_of(
        {
            "repeat": _WHOLE,
            "status": _TEXT,  # complete or failed
            "ended_by": _TEXT,  # vote, consensus, limit or full; null for a model alone
            "decided": _YES,  # null where there was nothing to decide
            "turns_taken": _WHOLE,
            "answer": _TEXT,  # null if nothing was delivered
            "answer_of": _TEXT,
            "letter": _TEXT,
            "gold": pl.List(pl.String()),
            "score": _REAL,  # in [0, 1]; null: nothing to score, never zero
            "exact": _REAL,  # exact match of open questions
            "readable": _YES,
            "failure": _TEXT,
        },
        _episodes,
    ),
    "messages": table_of(
        {
            **dict.fromkeys(("repeat", "turn", "number"), _WHOLE),
            "agent": _TEXT,
            "round": _WHOLE,
            "kind": _TEXT,
            "shown": pl.List(pl.Int64()),
            **dict.fromkeys(("agreement", "text", "solution", "status", "solution_status"), _TEXT),
        },
        _messages,
    ),
    "answers": table_of(
        {
            **dict.fromkeys(("repeat", "turn"), _WHOLE),
            **dict.fromkeys(("agent", "answer", "letter"), _TEXT),
            "confidence": _WHOLE,
            "candidate": _YES,  # false for an answer that an earlier agent gave too
            "score": _REAL,
        },
        _answers,
    ),
    "challenges": table_of(
        {
            "repeat": _WHOLE,
            **dict.fromkeys(("setting", "agent", "shown_answer"), _TEXT),
            "challenged": _YES,  # null where the reply was neither word
            "counter": _TEXT,
            "score": _REAL,  # of the counter answer
        },
        _challenges,
    ),
    **SHARED_TABLES,
}
"""Every table of a run of debates by name: a row for each episode, message, final answer of an
agent, and judgement of a challenge."""
