"""Episodes played by the stand-in's mind without a server, and requests to it."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tutorsim.agents.scene import Scene
from tutorsim.drivers import drive, scripted
from tutorsim.episode import episode
from tutorsim.mechanisms.flow import CodeResult, CodeRun
from tutorsim.model import Call
from tutorsim.records import EpisodeRecord, VerdictRecord
from tutorsim.standin.chance import Chance
from tutorsim.standin.mind import think
from tutorsim.standin.reading import Asked, read_request
from tutorsim.study import EpisodeSpec, load_study
from tutorsim.tasks import CodeTask

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
def played(tmp_path_factory: pytest.TempPathFactory) -> Played:
    """Two tasks of each benchmark, all personas and conditions."""
    path: Path = tmp_path_factory.mktemp("played") / "study.toml"
    path.write_text(STUDY)
    loaded = load_study(path)
    calls: list[tuple[EpisodeSpec, Call, str]] = []
    records = []
    for spec in loaded.grid():

        def reply(call: Call, spec: EpisodeSpec = spec) -> str:
            chance = Chance(0, spec.episode_id, str(call.key))
            text = think(call.request.body(), chance).text
            calls.append((spec, call, text))
            return text

        world = scripted(reply, judge_code=lambda run, spec=spec: verdict(run, spec.task))
        records.append(drive(episode(Scene(loaded, spec)), world))
    return Played(tuple(records), tuple(calls))


def verdict(run: CodeRun, task: CodeTask) -> CodeResult:
    """Only the reference passes: every slip fails, as another test proves."""
    passed = task.canonical_solution.rstrip() in run.message
    outcome = "pass" if passed else "fail"
    return CodeResult(None, VerdictRecord(outcome=outcome, reason="compared"))


Ask = Callable[..., Asked]


@pytest.fixture
def ask() -> Ask:
    """Build what the mind reads from a system text and a user text."""

    def build(system: str, user: str) -> Asked:
        return read_request({"system": system, "messages": [{"role": "user", "content": user}]})

    return build


@pytest.fixture
def body() -> Callable[..., dict[str, Any]]:
    """Build a request body: a simple vote over four replies unless told otherwise."""

    def build(**fields: Any) -> dict[str, Any]:
        drafts = "\n\n".join(f"{label}: Reply number {label}." for label in "ABCD")
        user = f"Question:\nWhy?\n\n{drafts}\n\nVote for the one best reply."
        return {
            "model": "some-model",
            "max_tokens": 100,
            "system": "You assess replies to a student.",
            "messages": [{"role": "user", "content": user}],
            **fields,
        }

    return build
