"""The votes on labels are asked again: one reply, and a ballot on each label."""

import json

import pytest

from tests.tutorsim.systems.oversight.conftest import study
from tutorsim.kernel.flow_drivers_and_call_log import Round, drive, scripted
from tutorsim.kernel.retest_flow_and_drawn_turns import askings, retest_flow
from tutorsim.kernel.system_and_loaded_study import Asking, Chance
from tutorsim.model import Reply
from tutorsim.records import Failure
from tutorsim.records.oversight import CANDIDATES, LABELS
from tutorsim.systems.oversight.scripted_replies import recognise


def text_of(call):
    """The scripted mind's reply, whichever repeat asks for it."""
    asking = Asking(call.request.system, call.request.user)
    return recognise(asking, Chance(1, str(call.key._replace(repeat=0))), None) or ""


def played(loaded, condition):
    """The record of an item under a condition, what of it can be asked again, and its bodies."""
    spec = next(one for one in loaded.grid() if one.condition == condition)
    bodies = {}

    def reply(call):
        bodies[str(call.key)] = json.dumps(call.request.body())
        return text_of(call)

    record = drive(loaded.episode(spec), scripted(reply))
    return record, list(loaded.asked_again(spec, record)), bodies


@pytest.mark.parametrize(("condition", "voters"), [("self_consistency", 5), ("ensemble", 3)])
def test_the_same_replies_give_the_logged_ballots_on_both_labels(condition, voters):
    record, sets, bodies = played(study(), condition)
    asked = [a.question for a in askings(sets, bodies, 2, if_cut_off=None)]
    assert len(asked) == 2 * voters
    found = drive(retest_flow("e", sets, 2, asked), scripted(text_of))
    assert [(one.turn, one.stage) for one in found.votes] == [(1, "vote_final"), (2, "vote_final")]
    for vote, turn, label in zip(found.votes, record.turns, LABELS, strict=True):
        assert vote.repeats == (turn.ballots_final, turn.ballots_final)
        assert set(vote.repeats[0][0].labels) == set(CANDIDATES[label])


def test_a_failed_call_takes_its_repeat_from_both_votes_and_is_told_once():
    _, sets, bodies = played(study(), "ensemble")
    asked = [a.question for a in askings(sets, bodies, 2, if_cut_off=None)]

    def world(effect):
        assert isinstance(effect, Round)
        assert effect.each
        return tuple(
            Failure(key=str(call.key), error="HTTP 500.")
            if call.key.repeat == 2 and call.key.agent == "behavioural"
            else Reply(text_of(call), "m", "end_turn", 1, 1)
            for call in effect.calls
        )

    first, second = drive(retest_flow("e", sets, 2, asked), world).votes
    assert (len(first.repeats), len(second.repeats)) == (1, 1)
    assert [one.key for one in first.failures] == ["6/member/behavioural/1/r02"]
    assert second.failures == ()


@pytest.mark.parametrize("condition", ["single", "hpo"])
def test_where_the_lead_decides_there_is_no_vote_to_ask_again(condition):
    assert played(study(), condition)[1] == []
