"""Adversarial oversight: critics, an advocate and judges label a tutor's reply."""

from functools import cache, partial
from typing import Any, Final

from tutorsim.catalog import BaseCatalog, read_catalog
from tutorsim.kernel.system_and_loaded_study import System
from tutorsim.records.oversight import OversightRecord
from tutorsim.systems.oversight.conditions_as_acts_and_study_file import FIRST_TEXTS, Study
from tutorsim.systems.oversight.item_flow_and_oversight_study import FORMATS, OversightStudy
from tutorsim.systems.oversight.scripted_replies import recognise

__all__ = ["OVERSIGHT", "STAGES", "outcome"]

STAGES: Final = (
    *("brief", "quick", "open", "cross", "rebut", "press", "close"),
    *("argue", "assess", "merge", "judge", "judge_swapped", "stress", "lead"),
    *("sample", "member"),
)


def outcome(record: OversightRecord) -> dict[str, Any]:
    """What came of an item, in short."""
    label = record.label
    return {
        "mistake": None if label is None else label.mistake,
        "guidance": None if label is None else label.guidance,
        "unjudged": record.unjudged,
        "correct": record.scores,
    }


OVERSIGHT: Final = System(
    name="oversight",
    stages=STAGES,
    study=Study,
    loaded=OversightStudy,
    record=OversightRecord,
    tasks=FORMATS,
    catalog=cache(partial(read_catalog, BaseCatalog, "tutorsim.systems.oversight")),
    outcome=outcome,
    first_texts=FIRST_TEXTS,
    view="tutorsim.analysis.systems.oversight:VIEW",
    trace="tutorsim.analysis.systems.oversight.episode_messages_and_telling_episodes:trace",
    standin=(recognise,),
    commands=frozenset({"compare", "retest"}),
    asked_again=("vote_final",),
    auditing="tutorsim.systems.oversight.audit_study_of_replies_of_a_run:AUDITING",
    demo="oversight",
    example="oversight",
)
