"""Builders of items, scenes and MRBench files."""

import json
import os
from dataclasses import dataclass
from pathlib import Path

import pytest

from tutorsim.kernel.flow_drivers_and_call_log import drive, scripted
from tutorsim.kernel.study_file_and_episode_spec import EpisodeSpec
from tutorsim.kernel.system_and_loaded_study import Asking, Chance
from tutorsim.model import Request
from tutorsim.records.oversight import OversightRecord
from tutorsim.systems.oversight import OVERSIGHT
from tutorsim.systems.oversight.conditions_as_acts_and_study_file import CONDITIONS, Study
from tutorsim.systems.oversight.item_flow_and_oversight_study import (
    OversightStudy,
    builtin_items,
    item_flow,
)
from tutorsim.systems.oversight.judge_and_lead_with_or_without_debate import ItemScene
from tutorsim.systems.oversight.scripted_replies import recognise

SHARED = Path(os.environ.get("TUTORSIM_PUBLISHED_DATA", "nowhere"))


@pytest.fixture
def published():
    """Path of a published data file; skips the test if it is not on this machine."""

    def path(name):
        if not (SHARED / name).is_file():
            pytest.skip(f"{name} is not on this machine")
        return SHARED / name

    return path


def make_annotation(mistake="Yes", guidance="Yes", **others):
    return {
        "Mistake_Identification": mistake, "Mistake_Location": "Yes",
        "Revealing_of_the_Answer": "No", "Providing_Guidance": guidance, "Actionability": "Yes",
        "humanlikeness": "Yes", "Coherence": "Yes", "Tutor_Tone": "Neutral", **others,
    }  # fmt: skip


def make_row(conversation="one", replies=None):
    return {
        "conversation_id": conversation,
        "conversation_history": "Tutor: What is 2 + 2? \n\xa0Student: It is 5.\nI am sure.",
        "Ground_Truth_Solution": "It is 4.",
        "anno_llm_responses": replies
        or {"Expert": {"response": "Count again.", "annotation": make_annotation()}},
    }


@pytest.fixture
def bench(tmp_path):
    """Write rows as a file of the benchmark, and give its path."""

    def write(*rows, text=None):
        path = tmp_path / "bench.json"
        path.write_text(json.dumps(rows) if text is None else text, encoding="utf-8")
        return path

    return write


def study(items=(), seed=7, models=None, conditions=CONDITIONS, **settings):
    """Build a study of the built-in items, or of given ones."""
    chosen = Study(
        name="small", seed=seed, conditions=conditions, benchmarks={"mrbench": {}},
        oversight=settings, models=models or {},
    )  # fmt: skip
    tasks = {"mrbench": tuple(items) or builtin_items()}
    return OversightStudy(chosen, OVERSIGHT.catalog(), tasks, OVERSIGHT)


@pytest.fixture
def scene():
    """Build a scene of a built-in item, or of a given one."""

    def build(condition="hpo", item=0, seed=7, **settings):
        chosen = builtin_items()[item] if isinstance(item, int) else item
        name = f"mrbench.{chosen.task_id}.none.{condition}"
        spec = EpisodeSpec("mrbench", chosen, "none", condition, 1, name, name)
        loaded = study([chosen], seed, conditions=[condition], **settings)
        stored = loaded.with_wordings(loaded.wordings())
        return ItemScene(stored, spec)

    return build


@dataclass
class Played:
    """A record, and what was sent for it."""

    record: OversightRecord
    requests: dict[str, Request]

    @property
    def keys(self):
        return list(self.requests)

    @property
    def texts(self):
        return [f"{r.system}\n{r.user}" for r in self.requests.values()]


def play(scene, replies=None):
    """Run a scene; the scripted mind answers, except what is given by call key."""
    requests: dict[str, Request] = {}

    def reply(call):
        requests[str(call.key)] = call.request
        given = (replies or {}).get(str(call.key))
        if given is not None:
            return given
        chance = Chance(scene.loaded.study.seed, scene.spec.episode_id, str(call.key))
        asking = Asking(call.request.system, call.request.user)
        return recognise(asking, chance, None)

    return Played(drive(item_flow(scene), scripted(reply)), requests)
