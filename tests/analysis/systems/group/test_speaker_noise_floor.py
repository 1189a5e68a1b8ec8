"""The noise floor of speaking, counted by hand on played lessons."""

import pytest

from tests.tutorsim.systems.group.conftest import play
from tutorsim.analysis.systems.group.speaker_noise_floor import speaking_floor, speaking_section
from tutorsim.analysis.systems.system_view import SystemRun
from tutorsim.records import (
    Provenance,
    Retest,
    RetestHead,
    RetestRecord,
    RetestReply,
    RunRecord,
    SystemSettings,
)
from tutorsim.systems.group.tasks import builtin_lessons

STATED = Provenance(kind="relay", name="script")


@pytest.fixture(scope="module")
def record():
    return play(builtin_lessons()[0]).record


def run_of(record, *values):
    """A run of one lesson whose evaluations gave these values, repeat by repeat."""
    evaluated = {
        event.number: {t.agent: t.scores for t in event.cycle.thoughts if t.scores}
        for event in record.events
        if event.cycle and any(t.score_status for t in event.cycle.thoughts)
    }
    again = RetestRecord(
        episode_id=record.episode_id,
        votes=tuple(
            RetestReply(
                turn=turn,
                stage="evaluate",
                agent="evaluator",
                values=tuple(value(scores) for value in values),
            )
            for turn, scores in evaluated.items()
        ),
    )
    head = RetestHead(
        recording_digest="0" * 64, repeats=len(values), stages=("evaluate",), provenance=STATED
    )
    settings = SystemSettings(name="made", system="group", conditions=("self_select",))
    run = RunRecord(
        study=settings,
        study_digest="0" * 64,
        recording_digest="0" * 64,
        provenance=STATED,
        packages={},
        episodes=1,
    )
    return SystemRun("made", run, (record,), Retest(head, (again,)) if values else None)


def test_without_a_retest_there_is_no_floor(record):
    assert speaking_floor(run_of(record)) is None


def test_the_same_scores_choose_the_same_speaker(record):
    found = speaking_floor(run_of(record, dict, dict))
    assert found.pairs == 3 * found.cycles  # three askings are three pairs
    assert found.other.value == found.another.value == 0
    assert found.thresholds["3.5"].value == 0  # the default, under which it was recorded


def test_scores_that_nobody_can_read_silence_whoever_spoke(record):
    spoke = [
        event.cycle.chosen is not None
        for event in record.events
        if event.cycle and any(t.score_status for t in event.cycle.thoughts)
    ]
    found = speaking_floor(run_of(record, lambda scores: {}))
    assert (found.cycles, found.pairs) == (len(spoke), len(spoke))
    assert found.other.value == pytest.approx(sum(spoke) / len(spoke))
    assert sum(spoke) > 0
    assert found.another.value == 0  # nobody in place of somebody is no other agent


def test_two_different_agents_are_counted_apart_from_silence(record):
    """Alice alone is scored high: she speaks where she wanted to, and otherwise nobody does.

    Of 18 cycles bob spoke in five where she did not want to; charlie spoke before her in one.
    """

    def alice_first(scores):
        return {
            agent: dict.fromkeys(of, 5.0 if agent == "alice" else 1.0)
            for agent, of in scores.items()
        }

    found = speaking_floor(run_of(record, alice_first))
    assert (found.cycles, found.pairs) == (18, 18)
    assert found.other.value == pytest.approx(6 / 18)
    assert found.another.value == pytest.approx(1 / 18)


def test_the_section_says_who_answered_and_sets_thresholds_beside_the_floor(record):
    run = run_of(record, dict)
    section = speaking_section(run, speaking_floor(run))
    assert section.lead == "Asked again 1 × by relay: script."
    [table] = section.tables
    assert table.data.height == 2 + 5
