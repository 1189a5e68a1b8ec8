"""Scores, recounts, tables and documents of oversight runs, and the audit of other runs."""

from collections.abc import Callable
from functools import partial
from typing import Final

from tutorsim.analysis.systems.oversight.audit import (
    delivered_passages,
    proposal_passages,
)
from tutorsim.analysis.systems.oversight.columns import TABLES
from tutorsim.analysis.systems.oversight.page import PUBLISHED, document, outcomes_under, recount
from tutorsim.analysis.systems.oversight.scores import by_text
from tutorsim.analysis.systems.oversight.trace import trace
from tutorsim.analysis.systems.system_view import View
from tutorsim.records import RunRecord
from tutorsim.records.oversight import OversightRecord

__all__ = ["VIEW"]


def _correct(label: str, record: OversightRecord) -> float | None:
    """Whether a label is right, as a number; `None` without gold."""
    return float(record.scores[label]) if record.scores else None


def _both_correct(record: OversightRecord) -> float | None:
    return float(all(record.scores.values())) if record.scores else None


def _unread(head: RunRecord) -> frozenset[str]:
    """What a recount does not look at: texts, and turns where no vote is in them."""
    shown = {"tutor", "dialogue", "reply", "audited", "annotation"}
    said = {"briefing", "challenges", "press", "judge_swapped", "lead_prompt"}
    counted = {"failure", "unjudged", "scores"}
    found = {f"{one}.{name}" for one, names in _UNREAD_INSIDE.items() for name in names.split()}
    voted = () if head.voting else ("turns",)
    return frozenset({*shown, *said, *counted, *found, *voted})


_UNREAD_INSIDE: Final = {
    "calls": "stage model stop_reason",
    "messages": "status attempts act turn thesis evidence",
    "judge": "status attempts first_shown winner why",
    "stress": "status attempts weakness severity",
    "quick": "agent status reasoning",
    "lead": "agent status reasoning",
}
"""Record's field → what a recount does not look at in it."""


_OUTCOMES: Final[dict[str, Callable[[OversightRecord], float | None]]] = {
    "mistake_correct": partial(_correct, "mistake"),
    "guidance_correct": partial(_correct, "guidance"),
    "both_correct": _both_correct,
}

VIEW: Final = View(
    tables={**TABLES, "outcomes": outcomes_under({})},
    document=document,
    trace=trace,
    recount=recount,
    outcomes_under=outcomes_under,
    recount_without=_unread,
    outcomes=_OUTCOMES,
    clusters=lambda records: {
        record.episode_id: record.conversation for record in by_text(records)
    },
    published=PUBLISHED,
    judged=frozenset({"replies"}),
    passages={"replies": delivered_passages, "proposals": proposal_passages},
)
"""What oversight shows of its runs."""
