import pytest

from tutorsim.kernel.system import Chance
from tutorsim.standin.endpoint import think


def panel_turns(played, *conditions):
    return [turn for r in played.records if r.condition in conditions for turn in r.turns]


def share(turns, fact):
    return sum(bool(fact(turn)) for turn in turns) / len(turns)


def flipped(turn):
    totals = {
        role: sum(ballot.mass.get(role, 0) for ballot in turn.ballots_initial)
        for role in turn.decision.tallies
    }
    return max(totals, key=totals.get) != turn.decision.winner


@pytest.mark.costly
def test_a_study_has_what_later_readers_need_to_meet(played):
    turns = [turn for r in played.records for turn in r.turns if turn.decision]
    ballots = [b for turn in turns for b in (*turn.ballots_initial, *turn.ballots_final)]
    assert {turn.decision.decided_by for turn in turns} == {"vote", "tie_round", "fallback"}
    assert {ballot.ballot_status for ballot in ballots} == {"valid", "repaired", "abstained"}
    assert {turn.decision.winner for turn in turns} == {
        "scaffolding",
        "misconception",
        "motivation",
        "metacognitive",
    }
    assert {attempt.code_passed for r in played.records for attempt in r.attempts} == {
        True,
        False,
        None,
    }


@pytest.mark.costly
def test_some_first_attempts_succeed_and_tutoring_helps_most_students(played):
    first = sum(bool(r.success) for r in played.records if not r.turns) / len(played.records)
    last = sum(bool(r.success) for r in played.records) / len(played.records)
    assert 0.1 < first < 0.3
    assert 0.5 < last < 0.9


@pytest.mark.costly
@pytest.mark.parametrize(
    ("condition", "least", "most"),
    [
        ("simple", 0.08, 0.35),
        ("approval", 0.1, 0.45),
        ("ranked", 0.03, 0.3),
        ("cumulative", 0.01, 0.25),
    ],
)
def test_ties_occur_at_natural_rates(played, condition, least, most):
    tied = share(panel_turns(played, condition), lambda turn: turn.decision.tied_set)
    assert least < tied < most


@pytest.mark.costly
def test_revising_changes_the_winner_now_and_then(played):
    turns = panel_turns(played, "simple", "ranked", "cumulative", "approval")
    assert 0.15 < share(turns, flipped) < 0.45


def test_replies_are_short(played):
    longest = {}
    for _, call, text in played.calls:
        longest[call.key.stage] = max(longest.get(call.key.stage, 0), len(text))
    assert longest.pop("student") < 1400
    assert longest.pop("critique") < 900
    assert max(longest.values()) < 900


def test_the_same_body_and_chance_give_the_same_reply(played):
    for _, call, _ in played.calls[:200]:
        body = call.request.body()
        assert think(body, Chance("x", str(call.key))) == think(body, Chance("x", str(call.key)))
