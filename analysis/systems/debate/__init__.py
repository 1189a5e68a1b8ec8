"""Debates: tables for `export`, and what is shown of a run."""

from typing import Final

from tutorsim.analysis.runs.exported_tables import (
    SHARED_TABLES,
    Table,
    real,
    several,
    table_of,
    text,
    whole,
    yes,
)
from tutorsim.analysis.systems.debate.page_of_scores_turns_cost_challenges import document
from tutorsim.analysis.systems.debate.tables_of_protocols_recounted_on_same_debates import (
    outcomes_under,
    recount_document,
)
from tutorsim.analysis.systems.system_view_opened_run_and_cost import Use, View
from tutorsim.records import RunRecord
from tutorsim.records.debate import DebateRecord, DebateTurn

__all__ = ["TABLES", "VIEW"]


def _turns(record: DebateRecord) -> tuple[DebateTurn, ...]:
    return record.turns if record.status == "complete" else ()


TABLES: Final[dict[str, Table]] = {
    "episodes": table_of(
        repeat=whole(),
        status=text(),  # complete or failed
        ended_by=text(),  # vote, consensus, limit or full; null for a model alone
        decided=yes(),  # null where there was nothing to decide
        turns_taken=whole(),
        answer=text(),  # null if nothing was delivered
        answer_of=text(),
        letter=text(),
        gold=several(text()),
        score=real(),  # in [0, 1]; null: nothing to score, never zero
        exact=real(),  # exact match of open questions
        readable=yes(),
        failure=text(lambda one: one.failure and f"{one.failure.key}: {one.failure.error}"),
    ),
    "messages": table_of(
        lambda record: ((record, turn, one) for turn in _turns(record) for one in turn.messages),
        ("record", "turn", "message"),
        repeat=whole("record.repeat"),
        turn=whole("turn.turn"),
        number=whole(),
        agent=text(),
        round=whole(),
        kind=text(),
        shown=several(whole()),
        agreement=text(),
        text=text(),
        solution=text(),
        status=text(),
        solution_status=text(),
    ),
    "answers": table_of(
        lambda record: (
            (record, turn, *said) for turn in _turns(record) for said in turn.answers.items()
        ),
        ("record", "turn", "agent", "answer"),
        repeat=whole("record.repeat"),
        turn=whole("turn.turn"),
        agent=text("agent"),
        answer=text("answer.text"),
        letter=text(),
        confidence=whole(),
        candidate=yes(lambda _, turn, agent, __: agent in turn.candidates),  # no: given before
        score=real(lambda record, _, __, answer: record.worth(answer.text).value),
    ),
    "challenges": table_of(
        lambda record: ((record, one) for one in record.challenges if record.status == "complete"),
        ("record", "challenge"),
        repeat=whole("record.repeat"),
        setting=text(),
        agent=text(),
        shown_answer=text(),
        challenged=yes(),  # null where the reply was neither word
        counter=text(),
        score=real(),  # of the counter answer
    ),
    **SHARED_TABLES,
}
"""Every table of a run of debates by name: a row for each episode, message, final answer of an
agent, and judgement of a challenge."""


_VOTES: Final = ("ballots_initial", "ballots_final", "ballots_as", "other_votes")
_UNREAD_OF_BALLOTS: Final = ("labels", "raw", "parsed", "attempts", "raw_first")


def _unread(head: RunRecord, use: Use) -> frozenset[str]:
    """A recount looks at the ends of calls alone, a document at what ballots count as."""
    if use == "recount":
        return frozenset({"calls.model", "calls.input_tokens", "calls.output_tokens"})
    if head.provenance.kind == "imported":  # as councils are, whose labels are looked at
        return frozenset()
    return frozenset(f"turns.{vote}.{name}" for vote in _VOTES for name in _UNREAD_OF_BALLOTS)


VIEW: Final = View(
    tables={**TABLES, "outcomes": outcomes_under({})},
    document=document,
    recount=recount_document,
    outcomes_under=outcomes_under,
    recount_in_one_pass=True,
    unread=_unread,
    outcomes={
        "score": lambda record: record.score,
        "decided": lambda record: record.decided,
        "turns": lambda record: record.turns_taken if record.turns else None,
    },
    embeds=True,
)
