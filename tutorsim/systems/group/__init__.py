"""Group lessons: a learner and peers who decide themselves when to speak, through four stages."""

from typing import Any, Final

from tutorsim.kernel.system_and_loaded_study import System
from tutorsim.records.group import DuelRecord, GroupRecord, LessonRecord
from tutorsim.systems.group.duels_of_speaker_selection_and_group_study import GroupStudy
from tutorsim.systems.group.lesson_problem_and_duel_scenario_files import (
    builtin_lessons,
    builtin_scenarios,
    read_lessons,
    read_scenarios,
    tasks_text,
)
from tutorsim.systems.group.scripted_agents_learner_and_raters import group_reply
from tutorsim.systems.group.settings import FIRST_TEXTS, Study, load_group_catalog
from tutorsim.tasks import TaskFormat

__all__ = ["GROUP", "outcome"]


def outcome(record: GroupRecord) -> dict[str, Any]:
    """What came of a lesson or a duel, in short."""
    if isinstance(record, DuelRecord):
        return {
            "result": record.result,
            "order_dependent": record.order_dependent,
            "self_selected": record.self_selected,
            "predicted": record.prediction.named if record.prediction else None,
        }
    assert isinstance(record, LessonRecord)
    return {
        "ended_by": record.ended_by,
        "events": len(record.events),
        "stage_reached": record.stage_reached,
        "progress": record.progress,
    }


GROUP: Final = System(
    name="group",
    stages=(
        *("manager", "learner", "think", "evaluate", "predict", "speak", "speak_predicted"),
        *("judge", "rate_self_select", "rate_next_speaker", "code"),
    ),
    study=Study,
    loaded=GroupStudy,
    record=GroupRecord,
    tasks={
        "lesson": TaskFormat(
            read_lessons, builtin_lessons, "tasks.{}.json", tasks_text, asked="problem"
        ),
        "scenario": TaskFormat(
            read_scenarios, builtin_scenarios, "tasks.{}.json", tasks_text, asked="problem"
        ),
    },
    catalog=load_group_catalog,
    outcome=outcome,
    first_texts=FIRST_TEXTS,
    view="tutorsim.analysis.systems.group:VIEW",
    trace="tutorsim.analysis.systems.group.episode_messages_and_telling_episodes:trace",
    standin=(group_reply,),
    commands=frozenset({"compare", "retest"}),
    asked_again=("evaluate",),
    chat="tutorsim.systems.group.what_a_person_in_a_lesson_sees_and_says:CHAT",
    demo="group",
    example="lessons",
)
