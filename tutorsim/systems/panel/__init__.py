"""The tutoring panel: tutors who propose, review, vote, revise and vote again on one reply."""

from typing import Any, Final

from tutorsim.kernel.system_and_loaded_study import Asking, Chance, System
from tutorsim.records import EpisodeRecord
from tutorsim.systems.panel.episode_flow_and_study import PanelStudy
from tutorsim.systems.panel.settings_and_members_of_compared_panels import (
    FIRST_TEXTS,
    PANEL_STAGES,
    TIE_STAGES,
    Study,
    load_panel_catalog,
)
from tutorsim.tasks import FORMATS
from tutorsim.vocabularies import BALLOT_FORMATS

__all__ = ["PANEL", "outcome"]


def outcome(record: EpisodeRecord) -> dict[str, Any]:
    """What came of an episode, in short."""
    decisions = [turn.decision for turn in record.turns if turn.decision is not None]
    return {
        "success": record.success,
        "turns_taken": record.turns_taken,
        "winners": [decision.winner for decision in decisions],
        "decided_by": [decision.decided_by for decision in decisions],
        "initial_correctness": record.initial_correctness,
        "final_correctness": record.final_correctness,
        "code_passed": record.code_passed,
    }


def _mind(asking: Asking, chance: Chance, steady: Chance | None) -> str | None:
    """The panel's mind, which only the scripted model needs."""
    from tutorsim.systems.panel.scripted_replies import panel_reply

    return panel_reply(asking, chance, steady)


PANEL: Final = System(
    name="panel",
    stages=(
        *("student", "judge"),
        *PANEL_STAGES,
        *(f"vote_as_{form}" for form in BALLOT_FORMATS),
        *TIE_STAGES,
    ),
    study=Study,
    loaded=PanelStudy,
    record=EpisodeRecord,
    tasks=FORMATS,
    catalog=load_panel_catalog,
    outcome=outcome,
    first_texts=FIRST_TEXTS,
    view="tutorsim.analysis.systems.panel.view_list_of_episodes_texts_to_rate:VIEW",
    trace="tutorsim.analysis.systems.panel.episode_messages_and_telling_episodes:trace",
    standin=(_mind,),
    standin_last=True,
    commands=frozenset({"branch", "compare", "diverge", "retest", "show --turn"}),
    branching="tutorsim.systems.panel.branch_study_and_plan_of_calls_to_pay:BRANCHING",
    before_decision=PANEL_STAGES,
    demo="demo",
    example="published",
)
