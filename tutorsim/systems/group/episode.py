"""One episode of a group study: a lesson or a duel, and its record."""

from typing import Any

from tutorsim.mechanisms.call_log import CallLog, run_to_failure
from tutorsim.mechanisms.flow import Flow
from tutorsim.records import Failure
from tutorsim.records.group import DuelRecord, LessonRecord
from tutorsim.systems.group.lesson_flow import LessonState, run_lesson
from tutorsim.systems.group.prompts import GroupScene
from tutorsim.systems.group.selection_duel import (
    DuelState,
    duel_result,
    first_order_result,
    run_duel,
)
from tutorsim.systems.group.tasks import Scenario

__all__ = ["duel_episode", "group_episode", "lesson_episode"]


def group_episode(scene: GroupScene) -> Flow[LessonRecord | DuelRecord]:
    """Run a lesson or a duel, whichever the task is of.

    Returns:
        The record, with `status` `failed` when a call failed for good.
    """
    if isinstance(scene.task, Scenario):
        return (yield from duel_episode(scene))
    return (yield from lesson_episode(scene))


def lesson_episode(scene: GroupScene) -> Flow[LessonRecord]:
    """Run one lesson."""
    state, calls = LessonState(scene), CallLog()
    failure = yield from run_to_failure(run_lesson(state), calls)
    return LessonRecord(
        **_head(scene, failure, calls),
        events=state.records(),
        ended_by=None if failure else state.ended_by,
        stage_reached=state.progress.stage,
        tasks_done=state.progress.done_ids(),
        progress=float(round(state.progress.share, 4)),
        codes=tuple(state.codes),
    )


def duel_episode(scene: GroupScene) -> Flow[DuelRecord]:
    """Run one duel."""
    state, calls = DuelState(scene), CallLog()
    failure = yield from run_to_failure(run_duel(state), calls)
    judgments, scenario = state.judgments, state.scenario
    result, dependent = duel_result(judgments) if state.judged else (None, False)
    return DuelRecord(
        **_head(scene, failure, calls),
        events=state.records(),
        kind=scenario.kind,
        difficulty=scenario.difficulty,
        expected_speaker=scene.group.participant(scenario.expected.speaker) or "",
        warm_up=tuple(state.warm_up),
        prediction=state.prediction,
        predicted=state.predicted,
        judgments=tuple(judgments),
        result=result,
        order_dependent=dependent,
        first_order=first_order_result(judgments[0]) if judgments else result,
        ratings=tuple(state.ratings),
    )


def _head(scene: GroupScene, failure: Failure | None, calls: CallLog) -> dict[str, Any]:
    spec = scene.spec
    return {
        "episode_id": spec.episode_id,
        "benchmark": spec.benchmark,
        "task_id": spec.task.task_id,
        "variant": spec.variant,
        "condition": spec.condition,
        "repeat": spec.repeat,
        "status": "failed" if failure else "complete",
        "failure": failure,
        **calls.fields(),
        "agents": scene.group.agents,
        "learner_name": scene.group.learner_name,
        "problem": scene.task.problem,
    }
