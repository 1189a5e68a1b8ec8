"""A retest asks the logged votes again and reads them as the run did."""

from itertools import product
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tutorsim.agents.scene import Scene
from tutorsim.drivers import drive, scripted
from tutorsim.episode import episode
from tutorsim.errors import UsageError
from tutorsim.mechanisms.flow import Round
from tutorsim.model import Call, CallKey, Request
from tutorsim.records import BallotRecord, EpisodeRecord, Failure, Turn
from tutorsim.retest import (
    RETEST_STAGES,
    Design,
    Prompt,
    ask_again,
    askings,
    drawn_turns,
    prompts_of,
    retest_record,
    votes_of,
)

ROLES = ("scaffolding", "misconception", "motivation", "metacognitive")
LABELS = {"A": "motivation", "B": "scaffolding", "C": "misconception", "D": "metacognitive"}


def prompt(form: Any, **changes: Any) -> Prompt:
    logged = BallotRecord(voter="motivation", protocol=form, labels=LABELS, parsed=None, mass={})
    call = Call(CallKey(2, "vote_final", "motivation", 1), Request("m", "system", "user", 9))
    logged = logged.model_copy(update=changes)
    return Prompt(call, logged, ROLES, reminder="REMINDER", budget=25)


def said(form: Any, *replies: str, repeat: int = 1, **changes: Any) -> tuple[list[Call], Any]:
    """The calls that a ballot took, and what came of it."""
    calls: list[Call] = []

    def reply(call: Call) -> str:
        calls.append(call)
        return replies[call.key.attempt - 1]

    return calls, drive(ask_again(prompt(form, **changes), repeat), scripted(reply))


def test_a_readable_reply_is_a_ballot_under_the_logged_labels() -> None:
    calls, ballot = said("ranked", "C,A,D,B", repeat=3)
    assert [str(call.key) for call in calls] == ["2/vote_final/motivation/1/r03"]
    assert calls[0].request == prompt("ranked").call.request
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
def test_what_cannot_be_read_is_asked_once_more_then_repaired_or_abstained(
    form: str, second: str, status: str
) -> None:
    calls, ballot = said(form, "no ballot", second, repeat=2)
    assert [str(call.key) for call in calls] == [
        "2/vote_final/motivation/1/r02",
        "2/vote_final/motivation/2/r02",
    ]
    assert calls[1].request.user == "user\n\nREMINDER"
    assert (ballot.ballot_status, ballot.attempts) == (status, 2)
    assert (ballot.raw_first, ballot.raw) == ("no ballot", second)


def test_a_rich_ballot_counts_as_the_logged_one_did() -> None:
    _, ballot = said("rich", "B=10,A=8|C=4,D=3", counted_as="approval")
    assert (ballot.protocol, ballot.counted_as) == ("rich", "approval")
    assert ballot.mass == {
        "scaffolding": 1,
        "misconception": 0,
        "motivation": 1,
        "metacognitive": 0,
    }


# --- What is asked -------------------------------------------------------------------------


@pytest.fixture
def played(make_scene: Any, script: Any) -> tuple[EpisodeRecord, dict[str, str]]:
    """An episode of three turns, and the bodies of its calls."""
    scene: Scene = make_scene()
    canned, bodies = script(), {}

    def reply(call: Call) -> str:
        bodies[str(call.key)] = f'{{ "max_tokens":{call.request.max_tokens},' + _rest(call)
        text: str = canned(call)
        return text

    return drive(episode(scene), scripted(reply)), bodies


def _rest(call: Call) -> str:
    import json

    body = {k: v for k, v in call.request.body().items() if k != "max_tokens"}
    return json.dumps(body)[1:]


def test_every_vote_of_the_chosen_turns_and_stages_is_found_in_the_order_of_the_log(
    played: Any,
) -> None:
    record, _ = played
    found = votes_of(record, {1, 3}, RETEST_STAGES)
    assert [(vote.turn, vote.stage) for vote in found] == list(product((1, 3), RETEST_STAGES))
    assert found[3].ballots == record.turns[2].ballots_final
    assert {vote.candidates for vote in found} == {ROLES}
    [only] = votes_of(record, {2}, ("vote_initial",))
    assert only.ballots == record.turns[1].ballots_initial


def test_a_prompt_is_the_recorded_request_with_its_bytes(played: Any) -> None:
    record, bodies = played
    [vote] = votes_of(record, {2}, ("vote_final",))
    found = prompts_of(vote, bodies, reminder="R", budget=25)
    assert [str(one.call.key) for one in found] == [f"2/vote_final/{role}/1" for role in ROLES]
    assert [one.call.request.text for one in found] == [bodies[str(p.call.key)] for p in found]


def test_a_ballot_that_a_branch_asked_for_in_another_format_is_asked_for_in_that_format(
    played: Any,
) -> None:
    record, bodies = played
    [vote] = votes_of(record, {2}, ("vote_final",))
    ranked = tuple(b.model_copy(update={"protocol": "ranked"}) for b in vote.ballots)
    bodies |= {
        key.replace("vote_final", "vote_as_ranked"): text.replace("Vote", "Rank")
        for key, text in bodies.items()
        if key.startswith("2/vote_final")
    }
    found = prompts_of(vote._replace(ballots=ranked), bodies, reminder="R", budget=25)
    assert {one.call.key.stage for one in found} == {"vote_as_ranked"}
    first = prompts_of(
        vote._replace(stage="vote_initial", ballots=ranked), bodies, reminder="R", budget=25
    )
    assert {one.call.key.stage for one in first} == {"vote_initial"}


def test_a_request_of_another_program_is_refused(played: Any) -> None:
    record, bodies = played
    [vote] = votes_of(record, {1}, ("vote_final",))
    bodies["1/vote_final/motivation/1"] = '{"prompt": "vote!"}'
    with pytest.raises(UsageError, match="1/vote_final/motivation/1"):
        prompts_of(vote, bodies, reminder="R", budget=25)


# --- Which turns are drawn -----------------------------------------------------------------

TURNS = [(f"sciq.task{i}.p.simple", turn) for i in range(7) for turn in (1, 2, 3)]


@given(st.permutations(TURNS), st.integers(1, 25), st.integers(0, 5), st.integers(1, 9))
def test_a_draw_depends_on_seed_and_turns_alone(
    order: Any, sample: int, seed: int, repeats: int
) -> None:
    drawn = drawn_turns(TURNS, Design(1, sample=sample, seed=seed))
    assert drawn == drawn_turns(order, Design(repeats, ("vote_final",), sample, seed))
    assert len(drawn) == min(sample, len(TURNS))
    assert drawn <= drawn_turns(TURNS, Design(1, sample=sample + 1, seed=seed))


def test_another_seed_draws_other_turns_and_no_sample_draws_all() -> None:
    draws = {drawn_turns(TURNS, Design(1, sample=5, seed=seed)) for seed in range(20)}
    assert len(draws) == 20
    assert drawn_turns(TURNS, Design(1)) == set(TURNS)


DESIGNS = st.builds(
    Design,
    repeats=st.integers(1, 3),
    stages=st.sampled_from([("vote_initial",), ("vote_final",), RETEST_STAGES]),
    sample=st.none() | st.integers(1, 21),
    seed=st.integers(0, 2),
)


@given(DESIGNS, DESIGNS)
def test_a_design_covers_another_only_if_it_asks_all_of_it(one: Design, other: Design) -> None:
    def asked(design: Design) -> set[Any]:
        drawn = drawn_turns(TURNS, design)
        return set(product(drawn, design.stages, range(design.repeats)))

    if one.covers(other):
        assert asked(one) >= asked(other)
    assert one.covers(one)


# --- What came of it -----------------------------------------------------------------------


def test_askings_go_by_vote_repeat_and_voter() -> None:
    votes = [["a1", "a2"], ["b1"]]
    assert list(askings(votes, 2)) == [  # type: ignore[arg-type]
        *(("a1", 1), ("a2", 1), ("a1", 2), ("a2", 2)),
        *(("b1", 1), ("b1", 2)),
    ]


def test_a_repeat_counts_where_every_voter_answered_and_failures_are_named(played: Any) -> None:
    record, _ = played
    [vote] = votes_of(record, {1}, ("vote_final",))
    failed = Failure(key="1/vote_final/motivation/1/r02", error="HTTP 500.")
    outcomes = [*vote.ballots, *vote.ballots[:2], failed, vote.ballots[3], *vote.ballots]
    found = retest_record(record.episode_id, [vote], 3, outcomes)
    [again] = found.votes
    assert (again.turn, again.stage) == (1, "vote_final")
    assert again.repeats == (vote.ballots, vote.ballots)
    assert again.failures == (failed,)


def test_turns_of_the_single_tutor_hold_no_vote() -> None:
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
    assert votes_of(record, {1}, RETEST_STAGES) == ()
    assert retest_record("e", [], 2, []).votes == ()


def test_each_asking_is_one_round_of_one_call() -> None:
    effect = next(ask_again(prompt("simple"), 1))
    assert isinstance(effect, Round)
    assert len(effect.calls) == 1
