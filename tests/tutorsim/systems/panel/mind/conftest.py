"""Episodes played by the panel's mind without a server, and requests to it."""

from dataclasses import dataclass
from pathlib import Path

import pytest

from tutorsim.kernel.flow_drivers_and_call_log import CodeResult, drive, scripted
from tutorsim.kernel.load_and_check_study_file import load_study
from tutorsim.kernel.study_file_and_episode_spec import EpisodeSpec
from tutorsim.kernel.system_and_loaded_study import Chance
from tutorsim.model import Call
from tutorsim.records import EpisodeRecord, VerdictRecord
from tutorsim.standin.messages_api_routes_and_replies import read_request, think
from tutorsim.systems.panel.episode_flow_and_study import episode
from tutorsim.systems.panel.scene_and_reading_proposals_reviews_judge_scores import Scene
from tutorsim.systems.panel.scripted_prompt_reading_tasks_moods_quality import Asked

STUDY = """
name = "played"
seed = 5

[benchmarks.sciq]
limit = 2

[benchmarks.humaneval]
limit = 2
"""


@dataclass(frozen=True)
class Played:
    """What was asked and answered in a study of 120 episodes."""

    records: tuple[EpisodeRecord, ...]
    calls: tuple[tuple[EpisodeSpec, Call, str], ...]


@pytest.fixture(scope="session")
def played(tmp_path_factory):
    """Two tasks of each benchmark, all personas and conditions."""
    path: Path = tmp_path_factory.mktemp("played") / "study.toml"
    path.write_text(STUDY)
    loaded = load_study(path)
    calls: list[tuple[EpisodeSpec, Call, str]] = []
    records = []
    for spec in loaded.grid():

        def reply(call, spec=spec):
            chance = Chance(0, spec.episode_id, str(call.key))
            text = think(call.request.body(), chance).text
            calls.append((spec, call, text))
            return text

        world = scripted(reply, judge_code=lambda run, spec=spec: verdict(run, spec.task))
        records.append(drive(episode(Scene(loaded, spec)), world))
    return Played(tuple(records), tuple(calls))


def verdict(run, task):
    """Only the reference passes: every slip fails, as another test proves."""
    passed = task.canonical_solution.rstrip() in run.message
    outcome = "pass" if passed else "fail"
    return CodeResult(None, VerdictRecord(outcome=outcome, reason="compared"))


def ask(system, user):
    """Build what the mind reads from a system text and a user text."""
    body = {"system": system, "messages": [{"role": "user", "content": user}]}
    return Asked(*read_request(body))
