"""Oversight runs: what is shown of them and exported."""

from typing import Final

from tutorsim.analysis.ratings.texts_to_rate_as_raters_see import delivered
from tutorsim.analysis.systems.oversight.exported_tables_lead_examples_recounted_labels import (
    TABLES,
    outcomes_under,
)
from tutorsim.analysis.systems.oversight.guidance_of_audited_replies_also_under_other_rules import (
    proposal_passages,
)
from tutorsim.analysis.systems.oversight.label_accuracy import by_text
from tutorsim.analysis.systems.oversight.page_tables_and_first_sentence import document, recount
from tutorsim.analysis.systems.system_view_opened_run_and_cost import Use, View
from tutorsim.records import RunRecord


def _unread(head: RunRecord, use: Use) -> frozenset[str]:
    """What a recount does not look at: texts, and turns where no vote is in them.

    It reads the dialogue, by whose text items are taken together, and what is audited. A document
    looks at everything.
    """
    if use == "document":
        return frozenset()
    inside = (f"{one}.{name}" for one, names in _UNREAD_INSIDE.items() for name in names.split())
    voted = () if head.voting else ("turns",)
    return frozenset({*_UNREAD, *inside, *voted})


_UNREAD: Final = (
    *("tutor", "reply", "annotation", "briefing", "challenges", "press", "judge_swapped"),
    *("lead_prompt", "failure", "unjudged", "scores"),
)
_UNREAD_INSIDE: Final = {
    "messages": "status attempts act turn thesis evidence",
    "judge": "status attempts first_shown winner why",
    "stress": "status attempts weakness severity",
    "quick": "agent status reasoning",
    "lead": "agent status reasoning",
}
"""Record's field → what a recount does not look at in it."""


VIEW: Final = View(
    tables={**TABLES, "outcomes": outcomes_under({})},
    document=document,
    recount=recount,
    outcomes_under=outcomes_under,
    unread=_unread,
    outcomes={  # none without gold
        "mistake_correct": lambda record: record.scores.get("mistake"),
        "guidance_correct": lambda record: record.scores.get("guidance"),
        "both_correct": lambda record: all(record.scores.values()) if record.scores else None,
    },
    clusters=lambda records: {
        record.episode_id: record.conversation for record in by_text(records)
    },
    judged=frozenset({"replies"}),
    passages={"replies": delivered(proposal_passages), "proposals": proposal_passages},
)
"""What oversight shows of its runs."""
