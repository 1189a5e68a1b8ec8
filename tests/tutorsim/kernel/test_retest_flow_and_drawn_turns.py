"""A retest asks the logged votes again and reads them as the run did."""

import json
from dataclasses import replace
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tutorsim.errors import UsageError
from tutorsim.kernel.flow_drivers_and_call_log import drive, scripted
from tutorsim.kernel.retest_flow_and_drawn_turns import (
    BallotReading,
    Design,
    askings,
    attempts_together,
    drawn_turns,
    reply_again,
    retest_flow,
    vote_again,
    votes_again,
)
from tutorsim.model import Call, CallKey, Question, Reply, Request
from tutorsim.records import BallotRecord, EpisodeRecord, Failure, RetestReply, Turn
from tutorsim.systems.panel.episode_flow_and_study import episode
from tutorsim.systems.panel.scene_and_reading_proposals_reviews_judge_scores import Scene
from tutorsim.vocabularies import TURN_VOTES

ROLES = ("scaffolding", "misconception", "motivation", "metacognitive")
LABELS = {"A": "motivation", "B": "scaffolding", "C": "misconception", "D": "metacognitive"}


READING = BallotReading("REMINDER", 25)
KEY = CallKey(2, "vote_final", "motivation", 1)
REQUEST = Request("m", "system", "user", 9)
BODY = json.dumps(REQUEST.body())


def said(form, *replies, repeats=1, stop="end_turn", **changes):
    """The calls that the last repeat of a ballot took, and what came of it."""
    logged = BallotRecord(voter="motivation", protocol=form, labels=LABELS, parsed=None, mass={})
    logged = replace(logged, **changes)
    one = vote_again(2, "vote_final", [logged], [KEY], ROLES, READING)
    calls: list[Call] = []

    def reply(call):
        if call.key.repeat == repeats:
            calls.append(call)
        first = call.key.attempt == 1
        return Reply(replies[call.key.attempt - 1], "m", stop if first else "end_turn", 1, 1)

    def world(effect):
        return tuple(reply(call) for call in effect.calls)  # type: ignore[union-attr]

    asked = askings([one], {str(KEY): BODY}, repeats, if_cut_off="CUT OFF")
    record = drive(retest_flow("e", [one], repeats, [a.question for a in asked]), world)
    return calls, record.votes[0].repeats[-1][0]  # type: ignore[union-attr]


def test_a_readable_reply_is_a_ballot_under_the_logged_labels():
    calls, ballot = said("ranked", "C,A,D,B", repeats=3)
    assert [str(call.key) for call in calls] == ["2/vote_final/motivation/1/r03"]
    assert calls[0].request.text == BODY
    assert ballot == BallotRecord(
        voter="motivation",
        protocol="ranked",
        labels=LABELS,
        raw="C,A,D,B",
        parsed=("misconception", "motivation", "metacognitive", "scaffolding"),
        mass={"scaffolding": 0, "misconception": 3, "motivation": 2, "metacognitive": 1},
    )


@pytest.mark.parametrize(
    ("form", "second", "status"),
    [
        ("simple", "B", "valid"),
        ("cumulative", "A=10,B=20,C=10,D=10", "repaired"),
        ("approval", "I like them all", "abstained"),
    ],
)
def test_what_cannot_be_read_is_asked_once_more_then_repaired_or_abstained(form, second, status):
    calls, ballot = said(form, "no ballot", second, repeats=2)
    values = [str(call.key) for call in calls]
    assert values == ["2/vote_final/motivation/1/r02", "2/vote_final/motivation/2/r02"]
    assert calls[1].request.user == "user\n\nREMINDER"
    assert (ballot.ballot_status, ballot.attempts) == (status, 2)
    assert (ballot.raw_first, ballot.raw) == ("no ballot", second)


def test_a_reply_that_was_cut_off_is_asked_for_again_as_the_study_does():
    calls, ballot = said("simple", "A", "B", stop="max_tokens")
    assert [call.key.attempt for call in calls] == [1, 2]
    assert calls[1].request.user == "user\n\nCUT OFF"
    assert (ballot.parsed, ballot.raw_first) == ("scaffolding", "A")


def test_a_rich_ballot_counts_as_the_logged_one_did():
    _, ballot = said("rich", "B=10,A=8|C=4,D=3", counted_as="approval")
    assert (ballot.protocol, ballot.counted_as) == ("rich", "approval")
    values = ballot.mass
    assert values == {"scaffolding": 1, "misconception": 0, "motivation": 1, "metacognitive": 0}


# --- What is asked -------------------------------------------------------------------------


@pytest.fixture
def played(make_scene, script):
    """An episode of three turns, and the bodies of its calls."""
    scene: Scene = make_scene()
    canned, bodies = script(), {}

    def reply(call):
        bodies[str(call.key)] = f'{{ "max_tokens":{call.request.max_tokens},' + _rest(call)
        text: str = canned(call)
        return text

    return drive(episode(scene), scripted(reply)), bodies


def _rest(call):
    body = {k: v for k, v in call.request.body().items() if k != "max_tokens"}
    return json.dumps(body)[1:]


def test_every_vote_of_every_decided_turn_is_found_in_the_order_of_the_log(played):
    record, _ = played
    found = list(votes_again(record, READING))
    assert [(one.turn, one.stage) for one in found] == list(product((1, 2, 3), TURN_VOTES))
    names = [ballot.voter for ballot in record.turns[2].ballots_final]
    assert [prompt.key.agent for prompt in found[5].prompts] == names


def test_a_prompt_is_the_recorded_request_with_its_bytes(played):
    record, bodies = played
    one = list(votes_again(record, READING))[3]
    asked = [a.question.call for a in askings([one], bodies, 1, if_cut_off=None)]
    assert [str(call.key) for call in asked] == [f"2/vote_final/{role}/1/r01" for role in ROLES]
    assert [call.request.text for call in asked] == [bodies[str(p.key)] for p in one.prompts]


def test_a_ballot_that_a_branch_asked_for_in_another_format_is_asked_for_in_that_format(played):
    record, _ = played
    [turn] = [turn for turn in record.turns if turn.turn == 2]
    ranked = {
        name: tuple(replace(b, protocol="ranked") for b in getattr(turn, name))
        for name in ("ballots_initial", "ballots_final")
    }
    calls = tuple(
        replace(call, key=call.key.replace("2/vote_final", "2/vote_as_ranked"))
        for call in record.calls
    )
    changed = record.model_copy(update={"turns": (turn.model_copy(update=ranked),), "calls": calls})
    first, final = votes_again(changed, READING)
    assert {prompt.key.stage for prompt in first.prompts} == {"vote_initial"}
    assert {prompt.key.stage for prompt in final.prompts} == {"vote_as_ranked"}
    assert final.stage == "vote_final"


def test_a_request_of_another_program_is_refused(played):
    record, bodies = played
    bodies["1/vote_final/motivation/1"] = '{"prompt": "vote!"}'
    with pytest.raises(UsageError, match="1/vote_final/motivation/1"):
        list(askings(votes_again(record, READING), bodies, 1, if_cut_off=None))


# --- Which turns are drawn -----------------------------------------------------------------

TURNS = [(f"sciq.task{i}.p.simple", turn) for i in range(7) for turn in (1, 2, 3)]


@given(st.permutations(TURNS), st.integers(1, 25), st.integers(0, 5), st.integers(1, 9))
def test_a_draw_depends_on_seed_and_turns_alone(order, sample, seed, repeats):
    drawn = drawn_turns(TURNS, Design(1, (), sample, seed))
    assert drawn == drawn_turns(order, Design(repeats, ("vote_final",), sample, seed))
    assert drawn == drawn_turns([*TURNS, *TURNS], Design(1, (), sample, seed))
    assert len(drawn) == min(sample, len(TURNS))
    assert drawn <= drawn_turns(TURNS, Design(1, (), sample + 1, seed))


def test_another_seed_draws_other_turns_and_no_sample_draws_all():
    draws = {drawn_turns(TURNS, Design(1, (), 5, seed)) for seed in range(20)}
    assert len(draws) == 20
    assert drawn_turns(TURNS, Design(1, ())) == set(TURNS)


DESIGNS = st.builds(
    Design,
    repeats=st.integers(1, 3),
    stages=st.sampled_from([("vote_initial",), ("vote_final",), TURN_VOTES]),
    sample=st.none() | st.integers(1, 21),
    seed=st.integers(0, 2),
)


@given(DESIGNS, DESIGNS)
def test_a_design_covers_another_only_if_it_asks_all_of_it(one, other):
    def asked(design):
        drawn = drawn_turns(TURNS, design)
        return set(product(drawn, design.stages, range(design.repeats)))

    if one.covers(other):
        assert asked(one) >= asked(other)
    assert one.covers(one)


# --- What came of it -----------------------------------------------------------------------


def failing(record, bodies, *failed):
    """The record of a retest of three repeats in which calls fail, and the tape's order."""
    sets = list(votes_again(record, READING))[:2]
    order: list[CallKey] = []

    def world(effect):
        calls = effect.calls  # type: ignore[union-attr]
        order.extend(call.key for call in calls)
        return tuple(
            Failure(key=str(call.key), error="HTTP 500.")
            if str(call.key) in failed
            else Reply("A" if call.key.attempt == 1 else "B", "m", "end_turn", 1, 1)
            for call in calls
        )

    asked = [a.question for a in askings(sets, bodies, 3, if_cut_off=None)]
    return drive(retest_flow(record.episode_id, sets, 3, asked), world), order


def test_a_repeat_counts_where_every_voter_answered_and_failures_are_named(played):
    record, bodies = played
    key = "1/vote_final/motivation/1/r02"
    found, _ = failing(record, bodies, key)
    first, final = found.votes
    values = [(vote.turn, vote.stage) for vote in found.votes]
    assert values == [(1, "vote_initial"), (1, "vote_final")]
    assert (len(first.repeats), first.failures) == (3, ())
    assert (len(final.repeats), final.failures) == (2, (Failure(key=key, error="HTTP 500."),))
    assert [b.voter for b in final.repeats[0]] == [b.voter for b in record.turns[0].ballots_final]


def test_a_tape_has_votes_repeats_and_voters_in_order_and_a_second_asking_behind_its_first(played):
    _, order = failing(*played)
    again = [order[4]._replace(attempt=2), *order, order[0]._replace(attempt=2)]
    kept = attempts_together(again)
    assert [key for key in kept if key.attempt == 1] == order
    assert (kept[1], kept[6]) == (order[0]._replace(attempt=2), order[4]._replace(attempt=2))
    assert [(k.stage, k.repeat) for k in order[::4]] == list(product(TURN_VOTES, (1, 2, 3)))


def test_a_prompt_without_ballots_gives_what_its_system_reads():
    key = CallKey(4, "weigh", "judge", 1)
    one = reply_again(
        key, lambda call: Question(call, lambda text: int(text), ""), lambda answer: answer.value
    )
    asked = [a.question for a in askings([one], {str(key): BODY}, 2, if_cut_off=None)]
    canned = scripted({"4/weigh/judge/1/r01": "7", "4/weigh/judge/1/r02": "8"})
    found = drive(retest_flow("e", [one], 2, asked), canned)
    assert found.votes == (RetestReply(turn=4, stage="weigh", agent="judge", values=(7, 8)),)


def test_turns_of_the_single_tutor_hold_no_vote():
    record = EpisodeRecord(
        episode_id="sciq.x.p.baseline",
        benchmark="sciq",
        task_id="x",
        persona="p",
        condition="baseline",
        attempts=(),
        turns=(Turn(turn=1, delivered="Hint."),),
        turns_taken=1,
    )
    assert list(votes_again(record, READING)) == []
    assert drive(retest_flow("e", [], 2, []), scripted({})).votes == ()
