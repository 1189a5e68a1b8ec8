"""Debates: tables, what every protocol would have decided, summary, report and traces."""

from typing import Final

from tutorsim.analysis.systems.debate.columns import TABLES
from tutorsim.analysis.systems.debate.evidence import PUBLISHED
from tutorsim.analysis.systems.debate.page import document
from tutorsim.analysis.systems.debate.protocols import outcomes_under, recount_document
from tutorsim.analysis.systems.debate.trace import trace
from tutorsim.analysis.systems.system_view import View
from tutorsim.records.debate import DebateRecord

__all__ = ["VIEW"]


def _score(record: DebateRecord) -> float | None:
    return record.score


def _decided(record: DebateRecord) -> float | None:
    return None if record.decided is None else float(record.decided)


def _turns(record: DebateRecord) -> float | None:
    return float(record.turns_taken) if record.turns else None


VIEW: Final = View(
    tables={**TABLES, "outcomes": outcomes_under({})},
    document=document,
    trace=trace,
    recount=recount_document,
    outcomes_under=outcomes_under,
    recount_in_one_pass=True,
    recount_without=lambda head: frozenset({"calls"}),
    outcomes={"score": _score, "decided": _decided, "turns": _turns},
    embeds=True,
    published=PUBLISHED,
)
