"""The evaluations of a group's thoughts are asked again and read as the lesson read them."""

import json

import pytest

from tests.tutorsim.systems.group.conftest import play, standin, study_of
from tutorsim.kernel.flow import drive, scripted
from tutorsim.kernel.retest_flow import askings, retest_flow


def again(task, played, reply, repeats=1):
    """The record of a retest, whose calls `reply` answers."""
    loaded = study_of(task)
    [spec] = [one for one in loaded.grid() if one.condition in ("self_select", "duel")]
    sets = list(loaded.asked_again(spec, played.record))
    bodies = {str(call.key): json.dumps(call.request.body()) for call in played.calls}
    asked = [a.question for a in askings(sets, bodies, repeats, if_cut_off=None)]
    return drive(retest_flow(spec.episode_id, sets, repeats, asked), scripted(reply))


@pytest.mark.parametrize("task", ["lesson", "scenario"])
def test_the_same_reply_gives_the_logged_scores(task, request):
    task, said = request.getfixturevalue(task), {}
    canned = standin()

    def reply(call):
        return said.setdefault(str(call.key._replace(repeat=0)), canned(call))

    played = play(task, reply)
    found = again(task, played, reply)
    cycles = {event.number: event.cycle for event in played.record.events if event.cycle}
    evaluated = [turn for turn, one in cycles.items() if any(t.score_status for t in one.thoughts)]
    assert [one.turn for one in found.votes] == evaluated
    assert evaluated
    for one in found.votes:
        thoughts = cycles[one.turn].thoughts
        assert (one.stage, one.agent) == ("evaluate", "evaluator")
        assert one.values == ({t.agent: t.scores for t in thoughts if t.scores is not None},)


def test_what_cannot_be_read_is_asked_once_more_and_then_scores_nobody(lesson):
    played, asked = play(lesson), []

    def reply(call):
        asked.append(str(call.key))
        return "no scores"

    found = again(lesson, played, reply, repeats=2)
    assert all(one.values == ({}, {}) for one in found.votes)
    assert len(asked) == 4 * len(found.votes)


def test_prediction_evaluates_nothing(lesson):
    played = play(lesson, condition="next_speaker")
    loaded = study_of(lesson)
    spec = next(one for one in loaded.grid() if one.condition == "next_speaker")
    assert list(loaded.asked_again(spec, played.record)) == []
