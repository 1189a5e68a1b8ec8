"""Duels: both orders, results, silence, warm-up."""

import itertools
import json

import pytest

from tests.tutorsim.systems.group.conftest import message, play, scores, thought
from tutorsim.records.group import JudgmentRecord
from tutorsim.systems.group.episode import duel_result

SYSTEMS = ("self_select", "next_speaker")


def judged(first, second):
    """Both askings: which of the two continuations shown was better."""
    pairs = zip(SYSTEMS, (first, second), strict=True)
    return [JudgmentRecord(first=system, better=better, reason="") for system, better in pairs]


# (first asking, second asking) → result of self-selection, depends on the order. In the second
# asking self-selection stands second.
TABLE = {
    ("first", "second"): ("win", False),
    ("second", "first"): ("loss", False),
    ("same", "same"): ("draw", False),
    ("first", "same"): ("win", False),
    ("same", "second"): ("win", False),
    ("second", "same"): ("loss", False),
    ("same", "first"): ("loss", False),
    ("first", "first"): ("draw", True),
    ("second", "second"): ("draw", True),
}


@pytest.mark.parametrize("said", TABLE)
def test_both_orders_make_the_result(said):
    assert duel_result(judged(*said)) == TABLE[said]


@pytest.mark.parametrize("said", [*itertools.product(["first", "second", "same"], repeat=2)])
def test_swapping_the_systems_swaps_wins_and_losses(said):
    swap = {"win": "loss", "loss": "win", "draw": "draw"}
    mine, dependent = duel_result(judged(*said), "self_select")
    theirs, also = duel_result(judged(*said), "next_speaker")
    assert (theirs, also) == (swap[mine], dependent)


def test_an_unread_asking_leaves_no_result():
    assert duel_result(judged("first", None)) == (None, False)


def replies(*, better, named="Alice", wants=True):
    def reply(call):
        stage = call.key.stage
        if stage == "judge":
            return f"BETTER: {better(call)}\nbecause"
        if stage.startswith("rate_"):
            return json.dumps(
                dict.fromkeys(("correctness", "relevance", "role_consistency", "reasoning"), 7.5)
            )
        return {
            "think": thought(action="speak" if wants else "listen"),
            "evaluate": scores(Bob=3.9, Alice=3.7),
            "speak": message("From a thought."),
            "predict": named,
            "speak_predicted": message("From a prediction."),
        }[stage]

    return reply


def test_a_judge_that_prefers_the_first_is_order_dependent_and_no_win(scenario):
    record = play(scenario, replies(better=lambda call: 1)).record
    assert (record.result, record.order_dependent, record.first_order) == ("draw", True, "win")


def test_a_judge_that_prefers_a_text_wins_in_both_orders(scenario):
    def better(call):
        first = call.request.user.index("From a thought.") < call.request.user.index(
            "From a prediction."
        )
        return 1 if first else 2

    record = play(scenario, replies(better=better)).record
    assert (record.result, record.order_dependent) == ("win", False)
    assert {judgment.first for judgment in record.judgments} == set(SYSTEMS)


def test_the_judge_never_reads_whom_the_scenario_expects(scenario):
    played = play(scenario, replies(better=lambda call: 1))
    for call in played.calls:
        assert scenario.expected.act not in call.request.user
        assert scenario.reference not in call.request.user


def test_with_nobody_speaking_anywhere_nobody_is_asked(scenario):
    played = play(scenario, replies(better=lambda call: 1, named="Tom", wants=False))
    record = played.record
    assert (record.result, record.judgments, record.ratings) == ("draw", (), ())
    assert record.self_selected is None


def test_a_reply_is_judged_against_silence(scenario):
    played = play(scenario, replies(better=lambda call: 1, named="Tom"))
    judge = next(call for call in played.calls if call.key.stage == "judge")
    assert "nobody speaks" in judge.request.user
    assert {rating.system for rating in played.record.ratings} == {"self_select"}


@pytest.mark.parametrize(("warm_up", "thinks"), [(True, 9), (False, 1)])
def test_a_warm_up_thinks_after_every_message(scenario, warm_up, thinks):
    played = play(scenario, replies(better=lambda call: 1), warm_up=warm_up)
    turns = {call.key.turn for call in played.calls if call.key.stage == "think"}
    assert len(turns) == thinks
    assert len(played.record.warm_up) == thinks - 1


def test_three_raters_rate_each_reply(scenario):
    record = play(scenario, replies(better=lambda call: 1)).record
    assert len(record.ratings) == 6
    assert record.ratings[0].scores == dict.fromkeys(
        ("correctness", "relevance", "role_consistency", "reasoning"), 7.5
    )


def test_the_other_rubric_shows_the_reference(scenario):
    def reply(call):
        if call.key.stage.startswith("rate_"):
            return '{"likeness": 4.0}'
        return replies(better=lambda call: 1)(call)

    played = play(scenario, reply, rubric="reference")
    rate = next(call for call in played.calls if call.key.stage.startswith("rate_"))
    assert scenario.reference in rate.request.user
    assert played.record.ratings[0].scores == {"likeness": 4.0}
