from collections import Counter

import pytest

from tests.tutorsim.systems.oversight.conftest import play
from tutorsim.kernel.system_and_loaded_study import Asking, Chance
from tutorsim.systems.oversight.conditions_as_acts_and_study_file import CONDITIONS
from tutorsim.systems.oversight.item_flow_and_oversight_study import builtin_items
from tutorsim.systems.oversight.scripted_replies import recognise

N = len(builtin_items())


def test_other_prompts_are_left_to_others():
    assert recognise(Asking("You are a tutor.", "Vote for one."), Chance(1), None) is None


def test_the_same_request_and_chance_give_the_same_reply(scene):
    one, other = play(scene()), play(scene())
    assert one.record == other.record


def test_debate_differs_from_the_single_lead(scene):
    labels = {c: [play(scene(c, i)).record.label for i in range(N)] for c in ("hpo", "single")}
    assert labels["hpo"] != labels["single"]


@pytest.mark.costly
def test_all_that_has_to_be_handled_occurs(scene):
    found = Counter()
    for condition in CONDITIONS:
        for place in range(N):
            for seed in (1, 2, 3):
                record = play(scene(condition, place, seed)).record
                assert record.status == "complete"
                found["unjudged"] += record.unjudged
                found["press"] += bool(record.press and record.press.presses)
                found["met"] += bool(record.press and not record.press.presses)
                found["malformed"] += bool(record.lead and record.lead.attempts == 2)
                found["abstained"] += any(
                    b.ballot_status == "abstained" for t in record.turns for b in t.ballots_final
                )
                labels = {str(m.labels) for m in record.messages}
                found["critics differ"] += len(labels) > 1
                found["wrong"] += not all(record.scores.values())
                found["right"] += all(record.scores.values())
    for name in ("unjudged", "press", "met", "malformed", "abstained", "critics differ", "wrong"):
        assert found[name] > 0, name
    assert found["right"] > found["wrong"] / 4


@pytest.mark.costly
def test_about_a_tenth_of_the_defences_are_unmet(scene):
    verdicts = [
        verdict
        for seed in range(12)
        for place in range(N)
        for verdict in play(scene("hpo", place, seed)).record.press.verdicts.values()
    ]
    # 384 defences; deviation of a share of 0.1: 0.015.
    assert 0.05 < verdicts.count("unmet") / len(verdicts) < 0.16


def test_permissive_sees_more_than_strict(scene):
    sums = Counter()
    for place in range(N):
        for message in play(scene("hpo", place)).record.messages:
            if message.labels is not None:
                sums[message.agent] += message.labels.guidance
    assert sums["permissive"] > sums["strict"]
