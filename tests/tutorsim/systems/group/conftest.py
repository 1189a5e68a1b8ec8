"""A group driven by canned replies or by the scripted group, without a network."""

import json
from collections import Counter

import pytest

from tutorsim.kernel.flow_drivers_and_call_log import drive, scripted
from tutorsim.kernel.system_and_loaded_study import Asking, Chance
from tutorsim.systems.group import GROUP
from tutorsim.systems.group.duels_of_speaker_selection_and_group_study import GroupStudy
from tutorsim.systems.group.lesson_problem_and_duel_scenario_files import (
    builtin_lessons,
    builtin_scenarios,
)
from tutorsim.systems.group.scripted_agents_learner_and_raters import group_reply
from tutorsim.systems.group.settings import Study, load_group_catalog


class Played:
    """A record, the calls that it took, and the prompts of each."""

    def __init__(self, record, calls):
        self.record = record
        self.calls = calls
        """In call order."""

    def keys(self):
        return [str(call.key) for call in self.calls]

    def per_turn(self):
        """Turn → calls that its cycle took; coding is not part of a cycle."""
        return Counter(call.key.turn for call in self.calls if call.key.stage != "code")


def standin(seed=7):
    """A world's replies from the scripted group."""

    def reply(call):
        asking = Asking(call.request.system, call.request.user)
        text = group_reply(asking, Chance(seed, str(call.key), asking.user))
        assert text is not None, call.key
        return text

    return reply


def study_of(task, *, learner="tom_average", conditions=("self_select", "next_speaker"), **changed):
    """A study of one task, with settings of `[group]` changed."""
    study = Study.model_validate(
        {"name": "x", "conditions": conditions, "learners": [learner],
         "benchmarks": {task.benchmark: {}}, "group": changed},
    )  # fmt: skip
    return GroupStudy(study, load_group_catalog(), {task.benchmark: (task,)}, GROUP)


def play(
    task, reply=None, *, condition="self_select", persona="tom_average", listen=None, **changed
):
    """Drive one episode to its record."""
    calls = []
    answer = reply or standin()

    def noted(call):
        calls.append(call)
        return answer(call)

    loaded = study_of(task, learner=persona, **changed)
    [spec] = [one for one in loaded.grid() if one.condition in (condition, "duel")]
    return Played(drive(loaded.episode(spec), scripted(noted, listen=listen)), calls)


@pytest.fixture(scope="session")
def lesson():
    return builtin_lessons()[0]


@pytest.fixture(scope="session")
def scenario():
    return builtin_scenarios()[0]


def thought(text="I have an idea", *, action="speak", corrects=False, stimuli=()):
    return json.dumps(
        {"stimuli": [*stimuli], "thought": text, "action": action, "corrects": corrects}
    )


def message(text, *, to=("all",), continues=False):
    return json.dumps({"message": text, "to": [*to], "continues": continues})


def scores(**values):
    """Agent as shown → the score of all six criteria."""
    names = ("relevance", "impact", "urgency", "coherence", "novelty", "balance")
    return json.dumps([{"agent": who} | dict.fromkeys(names, x) for who, x in values.items()])


def ruling(signal="continue", completed=()):
    return json.dumps({"reason": "so", "signal": signal, "completed": [*completed]})


WAIT = json.dumps({"action": "wait", "message": ""})
