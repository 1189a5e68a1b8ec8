"""Group lessons and duels: tables, who else would have spoken, summary, report and traces."""

from typing import Final

from tutorsim.analysis.systems.group.exported_tables_messages_to_rate import (
    TABLES,
    in_lesson,
    lesson_passages,
)
from tutorsim.analysis.systems.group.page_tables_and_first_sentence import document, recount
from tutorsim.analysis.systems.group.speakers_under_other_settings import outcomes_under
from tutorsim.analysis.systems.system_view_opened_run_and_cost import View
from tutorsim.records.group import DuelRecord, GroupRecord, LessonRecord

__all__ = ["VIEW"]


def _silence_share(record: GroupRecord) -> float | None:
    if not isinstance(record, LessonRecord) or not record.events:
        return None
    kinds = [event.kind for event in record.events]
    return kinds.count("silence") / len(kinds)


def _hit(record: GroupRecord) -> float | None:
    if not isinstance(record, DuelRecord):
        return None
    return float(record.self_selected == record.expected_speaker)


VIEW: Final = View(
    tables={**TABLES, "outcomes": outcomes_under({})},
    document=document,
    recount=recount,
    outcomes_under=outcomes_under,
    recount_in_one_pass=True,
    outcomes={
        "progress": in_lesson("progress"),
        "stage_reached": in_lesson("stage_reached"),
        "silence_share": _silence_share,
        "speaker_hit": _hit,
    },
    passages={"replies": lesson_passages},
)
"""What a group shows of its runs."""
