"""Group lessons: replay of a long one and per call, and recounts of many cycles.

Lessons are the scripted stand-in's.
"""

import time
from dataclasses import replace
from itertools import count
from typing import Any, Final

import pytest
import tomli_w

from tests.benchmarks.making import published, record_stand_in
from tests.benchmarks.test_replay_speed import stock
from tutorsim.analysis.systems.group.page_tables_and_first_sentence import recount
from tutorsim.analysis.systems.group.speakers_under_other_settings import cycles_in
from tutorsim.analysis.systems.system_view_opened_run_and_cost import SystemRun, open_run
from tutorsim.kernel.load_and_check_study_file import load_study
from tutorsim.runner.find_and_check_recording import open_recording
from tutorsim.runner.replay_into_run_folder_in_several_processes import replay, replay_each
from tutorsim.sandbox import Sandbox
from tutorsim.systems.group.lesson_problem_and_duel_scenario_files import (
    builtin_lessons,
    tasks_text,
)

EVENTS: Final = 85
"""Of an average lesson of the study."""
TASKS: Final = 16
"""Of each stage of a long lesson; it is full before they are done."""
CYCLES: Final = 100_000
CHANGES: Final = {
    "threshold": tuple(f"{2.5 + i / 4}" for i in range(10)),
    "lambda": ("0.2", "0.4", "0.5", "0.6", "0.8"),
}
"""Fifty settings."""


def long_lesson(folder, **settings):
    """A study of one lesson that has so many tasks that it ends with its list of events.

    Args:
        folder: Where it is written.
        settings: Of `[group]`, or `learners`, in place of the usual ones.
    """
    lesson = builtin_lessons()[0]
    stages = tuple(
        stage.model_copy(
            update={
                "tasks": tuple(
                    stage.tasks[0].model_copy(
                        update={"id": f"{number}.{i}", "text": f"Say number {i} of part {number}."}
                    )
                    for i in range(1, TASKS + 1)
                )
            }
        )
        for number, stage in enumerate(lesson.stages, start=1)
    )
    (folder / "long.json").write_text(
        tasks_text([lesson.model_copy(update={"id": "long", "stages": stages})]), encoding="utf-8"
    )
    study = {
        "name": "long",
        "system": "group",
        "conditions": ["self_select"],
        "learners": settings.pop("learners", ["tom_average"]),
        "benchmarks": {"lesson": {"tasks": "long.json"}},
        "group": {"max_events": EVENTS, "max_silences": EVENTS, **settings},
    }
    path = folder / "long.toml"
    path.write_text(tomli_w.dumps(study), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def long(tmp_path_factory):
    folder = tmp_path_factory.mktemp("lesson")
    loaded = load_study(long_lesson(folder))
    with Sandbox("auto") as sandbox:
        return record_stand_in(folder / "recording", loaded, sandbox)


@pytest.fixture(scope="module")
def lessons(tmp_path_factory):
    """The shipped lessons of about thirty events."""
    folder = tmp_path_factory.mktemp("lessons")
    study = folder / "lessons.toml"
    settings = {
        "name": "lessons",
        "system": "group",
        "conditions": ["self_select"],
        "learners": ["tom_average", "tom_anxious"],
        "benchmarks": {"lesson": {"tasks": "builtin"}},
    }
    study.write_text(tomli_w.dumps(settings), encoding="utf-8")
    with Sandbox("auto") as sandbox:
        return record_stand_in(folder / "recording", load_study(study), sandbox)


def test_a_lesson_of_average_length_replays_within_a_third_of_a_second(side_by_side, long):
    recording = open_recording(long.folder)
    played = side_by_side.benchmark.pedantic(lambda: list(replay_each(recording)), rounds=5)
    assert f'"number":{EVENTS},' in played[-1].line
    side_by_side.note_time(
        what=f"replay of a lesson of {EVENTS} events, {long.calls} calls, "
        "requests checked, record written",
        target="at most 0.3 s",
    )


def test_replay_costs_per_call_what_a_panels_does(side_by_side, lessons):
    with Sandbox("auto") as sandbox:
        panels = record_stand_in(lessons.folder.parent / "panels", published(tasks=1), sandbox)
    both = [open_recording(made.folder) for made in (panels, lessons)]
    found = side_by_side.time(
        *((lambda recording=one: list(replay_each(recording, workers=1))) for one in both), rounds=5
    )
    panel, lesson = (x / made.calls for x, made in zip(found, (panels, lessons), strict=True))
    side_by_side.note(
        what=f"replay of lessons, per call ({1e6 * lesson:,.0f} µs)",
        reference=f"replay of panels, per call ({1e6 * panel:,.0f} µs)",
        target="as the panel's",
        ratio=lesson / panel,
        unit="× its time",
    )


def test_replay_beside_the_stock_client(side_by_side, lessons):
    recording = open_recording(lessons.folder)
    some = replace(recording, specs=recording.specs[:1])
    found = side_by_side.time(lambda: stock(some), lambda: list(replay_each(some, workers=1)))
    side_by_side.note(
        what="replay of a lesson, fast reader, per call",
        reference="stock vcrpy + SDK, the same cassette",
        target="at least 50 × faster, as the panel's",
        ratio=found.reference / found.candidate,
        unit="× faster",
    )


@pytest.fixture(scope="module")
def many(lessons):
    """The lessons, repeated under other names."""
    log = lessons.folder.parent / "log"
    replay(lessons.folder, log_dir=log)
    run = open_run(log)
    return repeated(run, CYCLES // len(cycles_in(run.episodes, run.head).event) + 1)


def repeated(run, times):
    """A run with every episode so many times."""
    numbers = count(1)
    episodes = [
        one.model_copy(update={"episode_id": f"{one.episode_id}.{next(numbers)}"})
        for _ in range(times)
        for one in run.episodes
    ]
    return SystemRun(run.name, run.head, episodes)


def test_fifty_settings_on_a_hundred_thousand_cycles(side_by_side, many):
    cycles: list[Any] = []

    def gather():
        cycles[:] = [cycles_in(many.episodes, many.head)]

    found = side_by_side.time(
        gather, lambda: recount(many, CHANGES), rounds=2, clock=time.process_time
    )
    assert len(cycles[0].event) >= CYCLES
    document = recount(many, {"threshold": ("3",)})
    assert document.sections[1].tables[0].data.height == len(many.episodes)
    side_by_side.note(
        what=f"recount of {len(cycles[0].event):,} cycles in {len(many.episodes):,} lessons under "
        "50 settings, processor time",
        reference=f"none (gathering scores from the records is {found.reference:.1f} s of it)",
        target="at most 10 s",
        ratio=found.candidate,
        unit="s",
    )
