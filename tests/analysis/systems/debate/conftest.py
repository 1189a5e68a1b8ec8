"""The bundled debates, replayed once, and small runs of scripted ones."""

import pytest

from tests.reference.debates import Draws, make_context, play
from tutorsim.analysis.systems.system_view_opened_run_and_cost import SystemRun, open_run
from tutorsim.records import Provenance, RunRecord, SystemSettings
from tutorsim.runner.find_and_check_recording import bundled_recording
from tutorsim.runner.replay_into_run_folder_in_several_processes import replay


@pytest.fixture(scope="session")
def bundled_log(tmp_path_factory):
    """The run folder of the bundled debates."""
    folder = tmp_path_factory.mktemp("debate") / "run"
    replay(bundled_recording("debate"), log_dir=folder)
    return folder


@pytest.fixture(scope="session")
def bundled(bundled_log):
    """The bundled debates as a run."""
    return open_run(bundled_log)


def make_run(conditions, *, debates=4, kind="relay", **settings):
    """Build a run of scripted debates: condition → settings."""
    episodes = []
    for number in range(debates):
        for condition in conditions:
            record = play(make_context(condition, **settings), Draws(number).of(condition))
            name = f"mmlu.t{number}.default.{condition}"
            told = {"episode_id": name, "task_id": f"t{number}"}
            episodes.append(record.model_copy(update=told))
    head = RunRecord(
        study=SystemSettings(name="made", system="debate", conditions=tuple(conditions)),
        provenance=Provenance(kind=kind, name="script"),
    )
    return SystemRun("made", head, tuple(episodes))
